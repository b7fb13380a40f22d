// SPDX-License-Identifier: Apache-2.0
#include "server/report/window.h"

#include "base/clock.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum {
    SUB_BITS = 3,
    SUBS = 1 << SUB_BITS, // buckets an octave
    LAST = TD_SERVER_WINDOW_BUCKETS - 1,
};

#define SHORT_NS (10 * TD_NS_PER_S)
#define LONG_NS (60 * TD_NS_PER_S)

static size_t bucket_of(uint64_t value)
{
    if (value < SUBS) return value;
    unsigned octave = 63 - (unsigned)__builtin_clzll(value) - SUB_BITS;
    size_t bucket = ((size_t)octave << SUB_BITS) + (value >> octave);
    return bucket < LAST ? bucket : LAST;
}

// The least value of a bucket; that of the one above it is one above its top.
static uint64_t bucket_bottom(size_t bucket)
{
    if (bucket < SUBS) return bucket;
    unsigned octave = (unsigned)(bucket >> SUB_BITS) - 1;
    return (uint64_t)(bucket % SUBS + SUBS) << octave;
}

// There is one writer, so that a load and a store do. Stores release and loads
// acquire: whoever has seen a value of the slice's next use also sees that its
// number has changed.
static void put(_Atomic uint64_t *number, uint64_t value)
{
    atomic_store_explicit(number, value, memory_order_release);
}

static uint64_t get(const _Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_acquire);
}

static void reuse(td_server_slice *slice, uint32_t number)
{
    atomic_store_explicit(&slice->number, 0, memory_order_release);
    put(&slice->sum, 0);
    put(&slice->min, UINT64_MAX);
    put(&slice->max, 0);
    for (size_t i = 0; i < TD_SERVER_WINDOW_BUCKETS; i++)
        atomic_store_explicit(&slice->counts[i], 0, memory_order_release);
    atomic_store_explicit(&slice->number, number, memory_order_release);
}

void td_server_window_clear(td_server_window *window)
{
    for (size_t i = 0; i < TD_SERVER_WINDOW_SHORT; i++)
        atomic_store_explicit(&window->few[i].number, 0, memory_order_release);
    for (size_t i = 0; i < TD_SERVER_WINDOW_LONG; i++)
        atomic_store_explicit(&window->many[i].number, 0, memory_order_release);
    put(&window->written, 0);
    put(&window->begun, 0);
}

static uint32_t slice_at(int64_t ns, int64_t slice_ns)
{
    return ns < 0 ? 0 : (uint32_t)(ns / slice_ns) + 1;
}

static void record(td_server_slice *slices, size_t count, uint32_t number,
                   uint64_t value)
{
    td_server_slice *slice = &slices[number % count];
    if (atomic_load_explicit(&slice->number, memory_order_relaxed) < number)
        reuse(slice, number);
    put(&slice->sum, get(&slice->sum) + value);
    if (value < get(&slice->min)) put(&slice->min, value);
    if (value > get(&slice->max)) put(&slice->max, value);
    // Last, and read first: what is counted is within least and largest.
    _Atomic uint32_t *cell = &slice->counts[bucket_of(value)];
    uint32_t before = atomic_load_explicit(cell, memory_order_relaxed);
    atomic_store_explicit(cell, before + 1, memory_order_release);
}

void td_server_window_record(td_server_window *window, int64_t now_ns,
                             uint64_t value)
{
    uint64_t written =
        atomic_load_explicit(&window->written, memory_order_relaxed);
    put(&window->begun, written + 1);
    record(window->few, TD_SERVER_WINDOW_SHORT, slice_at(now_ns, SHORT_NS),
           value);
    record(window->many, TD_SERVER_WINDOW_LONG, slice_at(now_ns, LONG_NS),
           value);
    put(&window->last[written % TD_SERVER_WINDOW_EXACT], value);
    put(&window->written, written + 1);
}

// False if the slice was taken into use again meanwhile: it is too old then.
static bool copy(const td_server_slice *slice, uint32_t number,
                 td_server_sum *ret_copy)
{
    *ret_copy = (td_server_sum){.count = 0};
    for (size_t i = 0; i < TD_SERVER_WINDOW_BUCKETS; i++) {
        ret_copy->counts[i] =
            atomic_load_explicit(&slice->counts[i], memory_order_acquire);
        ret_copy->count += ret_copy->counts[i];
    }
    ret_copy->sum = get(&slice->sum);
    ret_copy->min = get(&slice->min);
    ret_copy->max = get(&slice->max);
    return atomic_load_explicit(&slice->number, memory_order_relaxed) == number;
}

static void add(td_server_sum *into, const td_server_sum *from)
{
    into->count += from->count;
    into->sum += from->sum;
    if (from->min < into->min) into->min = from->min;
    if (from->max > into->max) into->max = from->max;
    for (size_t i = 0; i < TD_SERVER_WINDOW_BUCKETS; i++)
        into->counts[i] += from->counts[i];
}

static void add_slices(const td_server_slice *slices, size_t count,
                       uint32_t oldest, td_server_sum *sum)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t number =
            atomic_load_explicit(&slices[i].number, memory_order_acquire);
        td_server_sum slice;
        if (number != 0 && number >= oldest && copy(&slices[i], number, &slice))
            add(sum, &slice);
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// The values that were just counted, if they are few: the last so many, unless
// one more came meanwhile.
static void add_values(const td_server_window *window, uint64_t written,
                       uint64_t count, td_server_sum *sum)
{
    bool all = sum->value_count + count == sum->count && count <= written;
    if (!all || sum->count > TD_SERVER_WINDOW_EXACT) return;
    uint64_t *to = &sum->values[sum->value_count];
    for (uint64_t i = 0; i < count; i++)
        to[i] =
            get(&window->last[(written - count + i) % TD_SERVER_WINDOW_EXACT]);
    if (get(&window->begun) == written) sum->value_count += count;
}

static uint64_t rank_of(const td_server_sum *sum, double q)
{
    uint64_t rank = (uint64_t)ceil(q * (double)sum->count);
    return rank < 1 ? 1 : rank;
}

// The place of `rank` (from 1) among the values of its bucket decides where
// between the bucket's ends it is taken to be.
static double quantile(const td_server_sum *sum, double q)
{
    uint64_t rank = rank_of(sum, q);
    if (sum->value_count == sum->count) return (double)sum->values[rank - 1];
    uint64_t before = 0;
    size_t bucket = 0;
    while (bucket < LAST && before + sum->counts[bucket] < rank)
        before += sum->counts[bucket++];
    double bottom = (double)bucket_bottom(bucket);
    double top = bucket == LAST ? (double)sum->max
                                : (double)bucket_bottom(bucket + 1) - 1;
    double inside = (double)(rank - before) / (double)sum->counts[bucket];
    double value = bottom + (top - bottom) * inside;
    return fmax(fmin(value, (double)sum->max), (double)sum->min);
}

static bool is_short(int64_t window_ns)
{
    return window_ns <= (TD_SERVER_WINDOW_SHORT - 1) * SHORT_NS;
}

void td_server_window_add(const td_server_window *window, int64_t now_ns,
                          int64_t window_ns, td_server_sum *sum)
{
    int64_t since_ns = now_ns - window_ns;
    uint64_t written = get(&window->written), before = sum->count;
    if (is_short(window_ns))
        add_slices(window->few, TD_SERVER_WINDOW_SHORT,
                   slice_at(since_ns, SHORT_NS), sum);
    else
        add_slices(window->many, TD_SERVER_WINDOW_LONG,
                   slice_at(since_ns, LONG_NS), sum);
    add_values(window, written, sum->count - before, sum);
}

void td_server_window_spread(td_server_sum *sum,
                             td_server_stats_spread *ret_spread)
{
    *ret_spread = (td_server_stats_spread){.count = sum->count};
    if (sum->count == 0) return;
    qsort(sum->values, sum->value_count, sizeof sum->values[0], by_value);
    *ret_spread = (td_server_stats_spread){
        .count = sum->count,
        .mean = fmin((double)sum->sum / (double)sum->count, (double)sum->max),
        .min = (double)sum->min,
        .max = (double)sum->max,
        .p50 = quantile(sum, 0.5),
        .p95 = quantile(sum, 0.95),
        .p99 = quantile(sum, 0.99),
        .p999 = quantile(sum, 0.999),
    };
}

void td_server_window_read(const td_server_window *window, int64_t now_ns,
                           int64_t window_ns,
                           td_server_stats_spread *ret_spread)
{
    td_server_sum sum = TD_SERVER_SUM_EMPTY;
    td_server_window_add(window, now_ns, window_ns, &sum);
    td_server_window_spread(&sum, ret_spread);
}

int64_t td_server_window_since_ns(int64_t now_ns, int64_t window_ns)
{
    int64_t slice_ns = is_short(window_ns) ? SHORT_NS : LONG_NS;
    int64_t since_ns = now_ns - window_ns;
    return since_ns < 0 ? 0 : since_ns - since_ns % slice_ns;
}

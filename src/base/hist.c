// SPDX-License-Identifier: Apache-2.0
#include "base/hist.h"

#include <math.h>

enum {
    SUBS = 1 << TD_HIST_SUB_BITS, // buckets an octave
    LAST = TD_HIST_BUCKETS - 1,
};

// There is one writer, so that a load and a store do: it needs no locked
// instruction. A reader still sees each number whole.
static void add(_Atomic uint64_t *number, uint64_t more)
{
    uint64_t before = atomic_load_explicit(number, memory_order_relaxed);
    atomic_store_explicit(number, before + more, memory_order_relaxed);
}

static void lower_to(_Atomic int64_t *number, int64_t value)
{
    if (value < atomic_load_explicit(number, memory_order_relaxed))
        atomic_store_explicit(number, value, memory_order_relaxed);
}

static void raise_to(_Atomic int64_t *number, int64_t value)
{
    if (value > atomic_load_explicit(number, memory_order_relaxed))
        atomic_store_explicit(number, value, memory_order_relaxed);
}

// The count is stored last and read first: a reader finds at least that many
// values in the buckets.
static void add_count(td_hist *hist, uint64_t more)
{
    uint64_t before = atomic_load_explicit(&hist->count, memory_order_relaxed);
    atomic_store_explicit(&hist->count, before + more, memory_order_release);
}

void td_hist_init(td_hist *hist)
{
    atomic_init(&hist->count, 0);
    atomic_init(&hist->sum, 0);
    atomic_init(&hist->min, INT64_MAX);
    atomic_init(&hist->max, INT64_MIN);
    for (size_t i = 0; i < TD_HIST_BUCKETS; i++)
        atomic_init(&hist->buckets[i], 0);
}

// Below 2^7 each value has its bucket; above, the highest bit picks the octave
// and the seven bits after it the bucket.
static size_t bucket_of(uint64_t value)
{
    if (value < SUBS) return value;
    unsigned octave = 63 - (unsigned)__builtin_clzll(value) - TD_HIST_SUB_BITS;
    size_t bucket = ((size_t)octave << TD_HIST_SUB_BITS) + (value >> octave);
    return bucket < LAST ? bucket : LAST;
}

// The last bucket has no top: it also takes what is too large for the others.
static int64_t bucket_top(size_t bucket)
{
    if (bucket < SUBS) return (int64_t)bucket;
    if (bucket == LAST) return INT64_MAX;
    unsigned octave = (unsigned)(bucket >> TD_HIST_SUB_BITS) - 1;
    int64_t sub = (int64_t)(bucket % SUBS) + SUBS;
    return ((sub + 1) << octave) - 1;
}

void td_hist_record(td_hist *hist, int64_t value)
{
    if (value < 0) value = 0;
    add(&hist->buckets[bucket_of((uint64_t)value)], 1);
    add(&hist->sum, (uint64_t)value);
    lower_to(&hist->min, value);
    raise_to(&hist->max, value);
    add_count(hist, 1);
}

void td_hist_merge(td_hist *into, const td_hist *from)
{
    uint64_t count = atomic_load_explicit(&from->count, memory_order_acquire);
    for (size_t i = 0; i < TD_HIST_BUCKETS; i++)
        add(&into->buckets[i],
            atomic_load_explicit(&from->buckets[i], memory_order_relaxed));
    add(&into->sum, atomic_load_explicit(&from->sum, memory_order_relaxed));
    lower_to(&into->min,
             atomic_load_explicit(&from->min, memory_order_relaxed));
    raise_to(&into->max,
             atomic_load_explicit(&from->max, memory_order_relaxed));
    add_count(into, count);
}

// A value that falls into the bucket: its top, but for the last one.
static int64_t value_in(size_t bucket, int64_t max)
{
    int64_t top = bucket_top(bucket);
    return top < max ? top : max;
}

void td_hist_since(const td_hist *now, const td_hist *before, td_hist *ret_hist)
{
    td_hist_init(ret_hist);
    uint64_t count = 0;
    for (size_t i = 0; i < TD_HIST_BUCKETS; i++) {
        uint64_t more =
            atomic_load_explicit(&now->buckets[i], memory_order_relaxed) -
            atomic_load_explicit(&before->buckets[i], memory_order_relaxed);
        if (more == 0) continue;
        count += more;
        add(&ret_hist->buckets[i], more);
        lower_to(&ret_hist->min, value_in(i, td_hist_max(now)));
        raise_to(&ret_hist->max, value_in(i, td_hist_max(now)));
    }
    add(&ret_hist->sum, atomic_load(&now->sum) - atomic_load(&before->sum));
    add_count(ret_hist, count);
}

static size_t bucket_at_rank(const td_hist *hist, uint64_t rank)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < LAST; i++) {
        seen += atomic_load_explicit(&hist->buckets[i], memory_order_relaxed);
        if (seen >= rank) return i;
    }
    return LAST;
}

int64_t td_hist_quantile(const td_hist *hist, double quantile)
{
    uint64_t count = td_hist_count(hist);
    if (count == 0) return 0;

    double rank = ceil(quantile * (double)count);
    if (!(rank > 1)) return td_hist_min(hist);
    if (rank >= (double)count) return td_hist_max(hist);

    return value_in(bucket_at_rank(hist, (uint64_t)rank), td_hist_max(hist));
}

uint64_t td_hist_count_to(const td_hist *hist, int64_t value)
{
    if (value < 0) return 0;
    uint64_t count = 0;
    size_t last = bucket_of((uint64_t)value);
    for (size_t i = 0; i <= last; i++)
        count += atomic_load_explicit(&hist->buckets[i], memory_order_relaxed);
    return count;
}

uint64_t td_hist_count(const td_hist *hist)
{
    return atomic_load_explicit(&hist->count, memory_order_acquire);
}

uint64_t td_hist_sum(const td_hist *hist)
{
    return atomic_load_explicit(&hist->sum, memory_order_relaxed);
}

int64_t td_hist_min(const td_hist *hist)
{
    if (td_hist_count(hist) == 0) return 0;
    return atomic_load_explicit(&hist->min, memory_order_relaxed);
}

int64_t td_hist_max(const td_hist *hist)
{
    if (td_hist_count(hist) == 0) return 0;
    return atomic_load_explicit(&hist->max, memory_order_relaxed);
}

double td_hist_mean(const td_hist *hist)
{
    uint64_t count = td_hist_count(hist);
    if (count == 0) return 0;
    return (double)td_hist_sum(hist) / (double)count;
}

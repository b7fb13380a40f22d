// SPDX-License-Identifier: Apache-2.0
// Counters, spreads and histograms, written by any thread and read by any other
// without waiting.
//
// A counter is one relaxed atomic. A spread is a window (window.c) and a
// histogram, written by one thread at a time (whoever holds the device's lock)
// and read with atomics. A client's numbers are in a place of its own, made
// when that number is first given and used again afterwards; `life` changes
// when somebody else has it, so a reader looks at it before and after and
// throws away what it read of two clients.
//
// `departed_lock` guards the short list of clients that left, between the loop
// and readers; it is held for a copy, with no other lock inside. Freed when the
// model is closed: nobody records and nobody reads any more.
#include "server/report/stats.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CLIENT_SPREADS (TD_SERVER_SPREAD_PAYLOAD + 1) // they come first
#define ID_WORDS ((TD_WIRE_MAX_NAME + 1 + 7) / 8)

static const uint64_t time_bounds_us[] = {
    100,    1000,   2500,   5000,    10000,   25000,    50000,
    100000, 250000, 500000, 1000000, 2500000, 10000000,
};
static const uint64_t byte_bounds[] = {
    1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24,
};
static const uint64_t piece_bounds[] = {1, 2, 4, 8, 16, 32, 64, 256, 1024};

// A spread at work.
struct series {
    td_server_window window;
    _Atomic uint64_t counts[TD_SERVER_STATS_BOUNDS + 1];
    _Atomic uint64_t sum;
    _Atomic uint64_t newest, newest_ns; // 0: nothing came
};

struct numbers {
    _Atomic uint64_t counters[TD_SERVER_COUNTER_COUNT];
    _Atomic uint64_t errors[TD_ERR_COUNT];
};

// Whoever reads one looks at `life` before and after: it is odd while a client
// is here, and changes when another is.
struct client {
    _Atomic uint32_t life;
    _Atomic uint64_t id[ID_WORDS];
    _Atomic int64_t since_ns;
    struct numbers numbers;
    struct series series[CLIENT_SPREADS];
};

struct td_server_stats {
    td_server_tap tap;
    struct numbers numbers;
    struct series series[TD_SERVER_SPREAD_COUNT];

    pthread_mutex_t
        departed_lock; // guards the two below; the loop's and readers
    td_server_departed departed[TD_SERVER_STATS_DEPARTED]; // the newest first
    uint32_t departed_count;

    uint32_t capacity;
    _Atomic(struct client *) clients[]; // NULL: nobody yet
};

td_err td_server_stats_new(uint32_t capacity, td_server_stats **ret_stats)
{
    td_server_stats *stats =
        calloc(1, sizeof *stats + capacity * sizeof(_Atomic(struct client *)));
    if (!stats) return TD_ERR_NOMEM;
    pthread_mutex_init(&stats->departed_lock, NULL);
    stats->capacity = capacity;
    *ret_stats = stats;
    return TD_OK;
}

void td_server_stats_tap(td_server_stats *stats, const td_server_tap *tap)
{
    stats->tap = *tap;
}

void td_server_stats_free(td_server_stats *stats)
{
    for (uint32_t i = 0; i < stats->capacity; i++)
        free(atomic_load(&stats->clients[i]));
    pthread_mutex_destroy(&stats->departed_lock);
    free(stats);
}

static void put(_Atomic uint64_t *number, uint64_t value)
{
    atomic_store_explicit(number, value, memory_order_release);
}

static uint64_t get(const _Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_acquire);
}

static void add(_Atomic uint64_t *number, uint64_t more)
{
    atomic_fetch_add_explicit(number, more, memory_order_release);
}

static struct client *client_at(const td_server_stats *stats, uint32_t client)
{
    if (client >= stats->capacity) return NULL;
    return atomic_load_explicit(&stats->clients[client], memory_order_acquire);
}

static void put_id(struct client *client, const char *id)
{
    uint64_t words[ID_WORDS] = {0};
    size_t size = strlen(id);
    memcpy(words, id, size < TD_WIRE_MAX_NAME ? size : TD_WIRE_MAX_NAME);
    for (size_t i = 0; i < ID_WORDS; i++)
        put(&client->id[i], words[i]);
}

static void get_id(const struct client *client,
                   char ret_id[TD_WIRE_MAX_NAME + 1])
{
    uint64_t words[ID_WORDS];
    for (size_t i = 0; i < ID_WORDS; i++)
        words[i] = get(&client->id[i]);
    memcpy(ret_id, words, TD_WIRE_MAX_NAME);
    ret_id[TD_WIRE_MAX_NAME] = '\0';
}

static void clear(struct client *client)
{
    for (int i = 0; i < TD_SERVER_COUNTER_COUNT; i++)
        put(&client->numbers.counters[i], 0);
    for (int i = 0; i < TD_ERR_COUNT; i++)
        put(&client->numbers.errors[i], 0);
    for (int i = 0; i < CLIENT_SPREADS; i++) {
        struct series *series = &client->series[i];
        td_server_window_clear(&series->window);
        for (size_t j = 0; j <= TD_SERVER_STATS_BOUNDS; j++)
            put(&series->counts[j], 0);
        put(&series->sum, 0);
        put(&series->newest_ns, 0);
    }
}

td_err td_server_stats_enter(td_server_stats *stats, uint32_t number,
                             const char *id, int64_t now_ns)
{
    struct client *client = client_at(stats, number);
    if (!client) {
        client = calloc(1, sizeof *client);
        if (!client) return TD_ERR_NOMEM;
        atomic_store_explicit(&stats->clients[number], client,
                              memory_order_release);
    }
    td_server_stats_leave(stats, number);
    clear(client);
    put_id(client, id);
    atomic_store_explicit(&client->since_ns, now_ns, memory_order_release);
    atomic_fetch_add_explicit(&client->life, 1, memory_order_release);
    return TD_OK;
}

// To the front, with one time more; the last one falls off when there are too
// many.
static void remember_locked(td_server_stats *stats, const char *id)
{
    td_server_departed *list = stats->departed;
    uint32_t at = 0;
    while (at < stats->departed_count && strcmp(list[at].id, id) != 0)
        at++;
    td_server_departed entry = {.times = 0};
    if (at < stats->departed_count)
        entry = list[at];
    else if (at < TD_SERVER_STATS_DEPARTED)
        stats->departed_count++;
    else
        at--;
    memmove(list + 1, list, at * sizeof *list);
    memcpy(entry.id, id, strlen(id) + 1);
    entry.times++;
    list[0] = entry;
}

static void notify(const td_server_stats *stats, const struct client *client,
                   td_server_sample sample)
{
    char id[TD_WIRE_MAX_NAME + 1];
    if (!stats->tap.notify) return;
    if (client) {
        get_id(client, id);
        sample.client = id;
    }
    stats->tap.notify(stats->tap.user, &sample);
}

void td_server_stats_leave(td_server_stats *stats, uint32_t number)
{
    static const td_server_counter_id counter =
        TD_SERVER_COUNT_CLIENT_DISCONNECTED;
    struct client *client = client_at(stats, number);
    if (!client || atomic_load(&client->life) % 2 == 0) return;
    char id[TD_WIRE_MAX_NAME + 1];
    get_id(client, id);
    atomic_fetch_add_explicit(&client->life, 1, memory_order_release);
    add(&stats->numbers.counters[counter], 1);
    notify(stats, NULL,
           (td_server_sample){.row = &td_server_counter_rows[counter],
                              .client = id,
                              .value = 1});
    pthread_mutex_lock(&stats->departed_lock);
    remember_locked(stats, id);
    pthread_mutex_unlock(&stats->departed_lock);
}

static struct client *count(td_server_stats *stats,
                            td_server_counter_id counter, uint32_t number,
                            uint64_t more)
{
    add(&stats->numbers.counters[counter], more);
    struct client *client = client_at(stats, number);
    if (client) add(&client->numbers.counters[counter], more);
    return client;
}

void td_server_stats_count(td_server_stats *stats, td_server_counter_id counter,
                           uint32_t number, uint64_t more)
{
    const struct client *client = count(stats, counter, number, more);
    notify(stats, client,
           (td_server_sample){.row = &td_server_counter_rows[counter],
                              .value = (double)more});
}

void td_server_stats_error(td_server_stats *stats, uint32_t number, td_err err)
{
    static const td_server_counter_id counter = TD_SERVER_COUNT_DISPATCH_ERRORS;
    struct client *client = count(stats, counter, number, 1);
    if ((unsigned)err >= TD_ERR_COUNT) err = TD_ERR_INTERNAL;
    add(&stats->numbers.errors[err], 1);
    if (client) add(&client->numbers.errors[err], 1);
    notify(stats, client,
           (td_server_sample){.row = &td_server_counter_rows[counter],
                              .error = err,
                              .value = 1});
}

const uint64_t *td_server_stats_bounds(td_server_unit unit, size_t *ret_count)
{
    switch (unit) {
    case TD_SERVER_TIME:
        *ret_count = TD_COUNT_OF(time_bounds_us);
        return time_bounds_us;
    case TD_SERVER_BYTES:
        *ret_count = TD_COUNT_OF(byte_bounds);
        return byte_bounds;
    default:
        *ret_count = TD_COUNT_OF(piece_bounds);
        return piece_bounds;
    }
}

// There is one writer at a time, so that a load and a store do.
static void record(struct series *series, td_server_unit unit, int64_t now_ns,
                   uint64_t value)
{
    td_server_window_record(&series->window, now_ns, value);
    size_t count, at = 0;
    const uint64_t *bounds = td_server_stats_bounds(unit, &count);
    while (at < count && value > bounds[at])
        at++;
    put(&series->sum, get(&series->sum) + value);
    put(&series->counts[at], get(&series->counts[at]) + 1);
    put(&series->newest, value);
    put(&series->newest_ns, (uint64_t)now_ns);
}

void td_server_stats_record(td_server_stats *stats, td_server_spread_id spread,
                            uint32_t number, int64_t now_ns, int64_t value)
{
    uint64_t positive = value < 0 ? 0 : (uint64_t)value;
    td_server_unit unit = td_server_spread_rows[spread].unit;
    record(&stats->series[spread], unit, now_ns, positive);
    struct client *client = client_at(stats, number);
    if (client && spread < CLIENT_SPREADS)
        record(&client->series[spread], unit, now_ns, positive);
    notify(stats, client,
           (td_server_sample){.row = &td_server_spread_rows[spread],
                              .value = (double)positive *
                                       (unit == TD_SERVER_TIME ? 1e-3 : 1)});
}

uint32_t td_server_stats_capacity(const td_server_stats *stats)
{
    return stats->capacity;
}

uint64_t td_server_stats_counter(const td_server_stats *stats,
                                 td_server_counter_id counter)
{
    return get(&stats->numbers.counters[counter]);
}

static void read_numbers(const struct numbers *numbers,
                         td_server_numbers *ret_numbers)
{
    for (int i = 0; i < TD_SERVER_COUNTER_COUNT; i++)
        ret_numbers->counters[i] = get(&numbers->counters[i]);
    for (int i = 0; i < TD_ERR_COUNT; i++)
        ret_numbers->errors[i] = get(&numbers->errors[i]);
}

static void read_series(const struct series *series, int64_t now_ns,
                        int64_t window_ns, td_server_stats_spread *ret_spread,
                        td_server_totals *ret_totals)
{
    if (window_ns > 0)
        td_server_window_read(&series->window, now_ns, window_ns, ret_spread);
    for (size_t i = 0; i <= TD_SERVER_STATS_BOUNDS; i++)
        ret_totals->counts[i] = get(&series->counts[i]);
    ret_totals->sum = get(&series->sum);
}

void td_server_stats_model(const td_server_stats *stats, int64_t now_ns,
                           int64_t window_ns, td_server_numbers *ret_numbers)
{
    *ret_numbers = (td_server_numbers){.counters = {0}};
    read_numbers(&stats->numbers, ret_numbers);
    for (int i = 0; i < TD_SERVER_SPREAD_COUNT; i++)
        read_series(&stats->series[i], now_ns, window_ns,
                    &ret_numbers->spreads[i], &ret_numbers->totals[i]);
}

bool td_server_stats_client(const td_server_stats *stats, uint32_t number,
                            int64_t now_ns, int64_t window_ns,
                            td_server_client_numbers *ret_client)
{
    const struct client *client = client_at(stats, number);
    if (!client) return false;
    uint32_t life = atomic_load_explicit(&client->life, memory_order_acquire);
    if (life % 2 == 0) return false;
    *ret_client = (td_server_client_numbers){.id = ""};
    get_id(client, ret_client->id);
    ret_client->since_ns =
        atomic_load_explicit(&client->since_ns, memory_order_acquire);
    td_server_numbers *numbers = &ret_client->numbers;
    read_numbers(&client->numbers, numbers);
    for (int i = 0; i < CLIENT_SPREADS; i++)
        read_series(&client->series[i], now_ns, window_ns, &numbers->spreads[i],
                    &numbers->totals[i]);
    return atomic_load_explicit(&client->life, memory_order_relaxed) == life;
}

// Of the model, or of a client that is here; NULL: none.
static const struct series *find_series(const td_server_stats *stats,
                                        td_server_spread_id spread,
                                        const char *client)
{
    if (!client) return &stats->series[spread];
    if (spread >= CLIENT_SPREADS) return NULL;
    for (uint32_t i = 0; i < stats->capacity; i++) {
        const struct client *one = client_at(stats, i);
        char id[TD_WIRE_MAX_NAME + 1];
        if (!one || atomic_load(&one->life) % 2 == 0) continue;
        get_id(one, id);
        if (strcmp(id, client) == 0) return &one->series[spread];
    }
    return NULL;
}

void td_server_stats_add(const td_server_stats *stats,
                         td_server_spread_id spread, const char *client,
                         int64_t now_ns, int64_t window_ns, td_server_sum *sum)
{
    const struct series *series = find_series(stats, spread, client);
    if (series) td_server_window_add(&series->window, now_ns, window_ns, sum);
}

bool td_server_stats_newest(const td_server_stats *stats,
                            td_server_spread_id spread, const char *client,
                            uint64_t *ret_value, int64_t *ret_at_ns)
{
    const struct series *series = find_series(stats, spread, client);
    uint64_t at_ns = series ? get(&series->newest_ns) : 0;
    if (at_ns == 0) return false;
    *ret_value = get(&series->newest);
    *ret_at_ns = (int64_t)at_ns;
    return true;
}

uint32_t td_server_stats_departed(
    td_server_stats *stats,
    td_server_departed ret_departed[TD_SERVER_STATS_DEPARTED])
{
    pthread_mutex_lock(&stats->departed_lock);
    uint32_t count = stats->departed_count;
    memcpy(ret_departed, stats->departed, count * sizeof *ret_departed);
    pthread_mutex_unlock(&stats->departed_lock);
    return count;
}

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_REPORT_STATS_H
#define TD_SERVER_REPORT_STATS_H

// The numbers of one server: what server/report/metrics.h lists, for the model
// as a whole and for each attached client.
//
// Memory is made for as many clients as were ever attached at a time, and used
// again: an id that left takes no room, and its numbers go with it. Recording
// costs tens of nanoseconds and waits for nobody; readers on other threads see
// each number whole and delay no writer. Pure: the time is an argument.

#include "server/report/metrics.h"
#include "server/report/window.h"

#define TD_SERVER_NOBODY UINT32_MAX
#define TD_SERVER_STATS_BOUNDS 13   // of a histogram, at most
#define TD_SERVER_STATS_DEPARTED 64 // clients that left and are remembered

// A histogram since the start, for Prometheus.
typedef struct td_server_totals {
    uint64_t counts[TD_SERVER_STATS_BOUNDS + 1]; // the last: above all bounds
    uint64_t sum;
} td_server_totals;

// The numbers of the model, or of one client.
typedef struct td_server_numbers {
    uint64_t counters[TD_SERVER_COUNTER_COUNT];
    uint64_t errors[TD_ERR_COUNT]; // DISPATCH_ERRORS, one by one
    td_server_stats_spread
        spreads[TD_SERVER_SPREAD_COUNT]; // over the window asked
    td_server_totals totals[TD_SERVER_SPREAD_COUNT];
} td_server_numbers;

typedef struct td_server_client_numbers {
    char id[TD_WIRE_MAX_NAME + 1];
    int64_t since_ns; // attached
    td_server_numbers numbers;
} td_server_client_numbers;

typedef struct td_server_departed {
    char id[TD_WIRE_MAX_NAME + 1];
    uint64_t times;
} td_server_departed;

// One thing that was recorded.
typedef struct td_server_sample {
    const td_server_metric *row;
    const char *client; // NULL: nobody's
    td_err error;       // of DISPATCH_ERRORS, else OK
    double value;       // as it is shown: a spread's times in milliseconds
} td_server_sample;

// Who is notified of each, on the thread that records it. It must not block.
typedef struct td_server_tap {
    void (*notify)(void *user, const td_server_sample *sample); // NULL: nobody
    void *user;
} td_server_tap;

typedef struct td_server_stats td_server_stats;

// Client numbers are below `capacity`. Owned by the caller. NOMEM.
TD_NODISCARD td_err td_server_stats_new(uint32_t capacity,
                                        td_server_stats **ret_stats);
void td_server_stats_free(td_server_stats *stats);
TD_AUTO_FREE(td_server_stats, td_server_stats_free)

// Who is notified. Before anything is recorded.
void td_server_stats_tap(td_server_stats *stats, const td_server_tap *tap);

// A client has come: its numbers start from 0. Nothing is recorded for the
// number meanwhile. Loop's thread. NOMEM.
TD_NODISCARD td_err td_server_stats_enter(td_server_stats *stats,
                                          uint32_t number, const char *id,
                                          int64_t now_ns);

// It has left, and is counted as disconnected; nothing if it is not here.
// Loop's thread.
void td_server_stats_leave(td_server_stats *stats, uint32_t number);

// Adds to a counter, and to that of the client, if it is one's. Any
// thread; never blocks.
void td_server_stats_count(td_server_stats *stats, td_server_counter_id counter,
                           uint32_t number, uint64_t more);

// A request that the engine failed for good. Any thread; never blocks.
void td_server_stats_error(td_server_stats *stats, uint32_t number, td_err err);

// A value of a spread: microseconds, bytes or pieces. One thread at a time, for
// each server; never blocks.
void td_server_stats_record(td_server_stats *stats, td_server_spread_id spread,
                            uint32_t number, int64_t now_ns, int64_t value);

uint32_t td_server_stats_capacity(const td_server_stats *stats);
uint64_t td_server_stats_counter(const td_server_stats *stats,
                                 td_server_counter_id counter);

// The model's numbers; the spreads over the last `window_ns` (0: left out). Any
// thread; never blocks.
void td_server_stats_model(const td_server_stats *stats, int64_t now_ns,
                           int64_t window_ns, td_server_numbers *ret_numbers);

// Those of a client. False if nobody has that number, or somebody else came to
// have it meanwhile. Any thread; never blocks.
bool td_server_stats_client(const td_server_stats *stats, uint32_t number,
                            int64_t now_ns, int64_t window_ns,
                            td_server_client_numbers *ret_client);

// Adds a spread over the last `window_ns` to `sum`: the model's, or that of the
// client (NULL: the model's). Any thread; never blocks.
void td_server_stats_add(const td_server_stats *stats,
                         td_server_spread_id spread, const char *client,
                         int64_t now_ns, int64_t window_ns, td_server_sum *sum);

// The newest value of a spread, likewise, and when it came. False: none. Any
// thread; never blocks.
bool td_server_stats_newest(const td_server_stats *stats,
                            td_server_spread_id spread, const char *client,
                            uint64_t *ret_value, int64_t *ret_at_ns);

// The clients that left last, the newest first; returns how many. Any thread.
uint32_t td_server_stats_departed(
    td_server_stats *stats,
    td_server_departed ret_departed[TD_SERVER_STATS_DEPARTED]);

// The bounds of a spread's histogram; the values of one are up to it.
const uint64_t *td_server_stats_bounds(td_server_unit unit, size_t *ret_count);

#endif

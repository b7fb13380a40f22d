// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BENCH_ASYNC_H
#define TD_BENCH_ASYNC_H

// What the parts of `tendon bench async` share: one robot at 30 Hz with chunks
// of 50 rows, a server of its own, half a millisecond of network each way.

#include "bench/bench.h"
#include "sim/measure.h"

#define TD_BENCH_ASYNC_HZ 30
#define TD_BENCH_ASYNC_CHUNK 50
#define TD_BENCH_ASYNC_TRANSPORT_MS 1.0 // both ways together

// When a robot asks.
typedef struct td_bench_async_setting {
    const char *name;  // in a case
    const char *title; // of a column
    const char *long_title;
    td_edge_ask_mode mode;
    double g;
    uint32_t max_unanswered;
} td_bench_async_setting;

// From HALF to EVERY_STEP it asks when half a chunk is left or earlier.
enum {
    TD_BENCH_ASYNC_SEQUENTIAL,
    TD_BENCH_ASYNC_THIRD,
    TD_BENCH_ASYNC_HALF,
    TD_BENCH_ASYNC_MORE,
    TD_BENCH_ASYNC_WHOLE,
    TD_BENCH_ASYNC_EVERY_STEP,
    TD_BENCH_ASYNC_TIME,
    TD_BENCH_ASYNC_AUTO,
    TD_BENCH_ASYNC_SETTINGS,
};

extern const td_bench_async_setting
    td_bench_async_settings[TD_BENCH_ASYNC_SETTINGS];

// How long inference takes: always the same, or lognormal with this mean and a
// deviation of 0.3 of it.
typedef struct td_bench_async_server {
    double ms;
    bool lognormal;
} td_bench_async_server;

#define TD_BENCH_ASYNC_SERVERS 12
extern const td_bench_async_server
    td_bench_async_servers[TD_BENCH_ASYNC_SERVERS];

// "300ms" or "300ms-lognormal".
#define TD_BENCH_ASYNC_NAME_BYTES 32
void td_bench_async_name(const td_bench_async_server *server,
                         char ret_name[TD_BENCH_ASYNC_NAME_BYTES]);

// Five minutes of a server that is always the same, an hour of another.
td_sim_config td_bench_async_config(const td_bench_options *options,
                                    const td_bench_async_setting *setting,
                                    const td_bench_async_server *server);

// Prints what must hold, as figures with limits. `autos` are those of each
// server with `auto`. CANCELLED.
TD_NODISCARD td_err td_bench_async_limits(
    const td_bench_options *options,
    const td_sim_figures autos[TD_BENCH_ASYNC_SERVERS], td_errinfo *info);

// Draws queues.svg: the queue over time, for each setting. IO, NOMEM.
TD_NODISCARD td_err td_bench_async_plot(const td_bench_options *options,
                                        td_errinfo *info);

#endif

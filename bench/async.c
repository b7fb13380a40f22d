// SPDX-License-Identifier: Apache-2.0
// What asking early is worth, in virtual time, with the cores that robots and
// servers run.
#include "bench/async.h"

#include "base/clock.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define BUFFER_TIME_NS (750 * TD_NS_PER_MS)
#define DEVIATION 0.3
#define CHUNK_NOISE 0.002 // rad; the path goes 0.005 a step at most
#define PATIENCE_NS (10 * TD_NS_PER_S) // for an answer of 2 s and its tail

const td_bench_async_setting td_bench_async_settings[TD_BENCH_ASYNC_SETTINGS] =
    {
        [TD_BENCH_ASYNC_SEQUENTIAL] = {"g0", "g=0", "g = 0 (sequential)",
                                       TD_EDGE_ASK_THRESHOLD, 0, 1},
        [TD_BENCH_ASYNC_THIRD] = {"g0.3", "g=0.3", "g = 0.3",
                                  TD_EDGE_ASK_THRESHOLD, 0.3, 1},
        [TD_BENCH_ASYNC_HALF] = {"g0.5", "g=0.5", "g = 0.5",
                                 TD_EDGE_ASK_THRESHOLD, 0.5, 1},
        [TD_BENCH_ASYNC_MORE] = {"g0.7", "g=0.7", "g = 0.7",
                                 TD_EDGE_ASK_THRESHOLD, 0.7, 1},
        [TD_BENCH_ASYNC_WHOLE] = {"g1", "g=1", "g = 1", TD_EDGE_ASK_THRESHOLD,
                                  1, 1},
        [TD_BENCH_ASYNC_EVERY_STEP] = {"g1-every-step", "g=1 (*)",
                                       "g = 1, at every step",
                                       TD_EDGE_ASK_THRESHOLD, 1, 60},
        [TD_BENCH_ASYNC_TIME] = {"buffer0.75s", "0.75 s", "buffer_time 0.75 s",
                                 TD_EDGE_ASK_TIME, 0, 1},
        [TD_BENCH_ASYNC_AUTO] = {"auto", "auto", "auto", TD_EDGE_ASK_AUTO, 0,
                                 1},
};

const td_bench_async_server td_bench_async_servers[TD_BENCH_ASYNC_SERVERS] = {
    {30, false},   {100, false},  {300, false}, {600, false},
    {1000, false}, {2000, false}, {30, true},   {100, true},
    {300, true},   {600, true},   {1000, true}, {2000, true},
};

static const struct {
    const char *title;
    const char *name; // in a case
    const char *unit;
    size_t offset;
    double scale;
    int decimals;
} metrics[] = {
    {"Idle ticks, %", "idle", "%", offsetof(td_sim_figures, idle_share), 100,
     2},
    {"Requests a second", "requests", "1/s", offsetof(td_sim_figures, ask_hz),
     1, 2},
    {"Age of executed actions, ms, p50", "age/p50", "ms",
     offsetof(td_sim_figures, age_p50_ms), 1, 0},
    {"Age of executed actions, ms, p99", "age/p99", "ms",
     offsetof(td_sim_figures, age_p99_ms), 1, 0},
    {"Roughness: rms acceleration of the commands, rad/s2", "roughness",
     "rad/s2", offsetof(td_sim_figures, rms_accel), 1, 2},
};

typedef td_sim_figures table[TD_BENCH_ASYNC_SERVERS][TD_BENCH_ASYNC_SETTINGS];

void td_bench_async_name(const td_bench_async_server *server,
                         char ret_name[TD_BENCH_ASYNC_NAME_BYTES])
{
    (void)snprintf(ret_name, TD_BENCH_ASYNC_NAME_BYTES, "%.0fms%s", server->ms,
                   server->lognormal ? "-lognormal" : "");
}

td_sim_config td_bench_async_config(const td_bench_options *options,
                                    const td_bench_async_setting *setting,
                                    const td_bench_async_server *server)
{
    td_sim_config config = td_sim_config_default();
    bool long_run = server->lognormal && !options->quick;
    config.robots = 1;
    config.trace = false;
    config.fps = TD_BENCH_ASYNC_HZ;
    config.chunk_rows = TD_BENCH_ASYNC_CHUNK;
    config.duration_ns = (long_run ? 60 : 5) * (60 * TD_NS_PER_S);
    config.chunk_noise = CHUNK_NOISE;
    config.edge.ask.mode = setting->mode;
    config.edge.ask.threshold = setting->g;
    config.edge.ask.buffer_time_ns = BUFFER_TIME_NS;
    config.edge.ask.max_unanswered = setting->max_unanswered;
    config.edge.ask.resend_max_ns = PATIENCE_NS;
    config.edge.max_action_age_ns = PATIENCE_NS;
    config.faults = (td_net_faults){
        .delay_ns = (int64_t)(TD_BENCH_ASYNC_TRANSPORT_MS * 1e6 / 2)};
    config.latency = (td_engine_latency){
        .kind = server->lognormal ? TD_ENGINE_LATENCY_LOGNORMAL
                                  : TD_ENGINE_LATENCY_FIXED,
        .ms = server->ms,
        .std_ms = DEVIATION * server->ms,
    };
    return config;
}

static td_err fill(const td_bench_options *options, table figures,
                   td_errinfo *info)
{
    for (size_t i = 0; i < TD_BENCH_ASYNC_SERVERS; i++)
        for (size_t j = 0; j < TD_BENCH_ASYNC_SETTINGS; j++) {
            char name[TD_BENCH_ASYNC_NAME_BYTES];
            td_bench_async_name(&td_bench_async_servers[i], name);
            td_bench_progress("async: %s, %s", name,
                              td_bench_async_settings[j].title);
            td_sim_config config =
                td_bench_async_config(options, &td_bench_async_settings[j],
                                      &td_bench_async_servers[i]);
            TD_TRY(td_sim_measure(&config, &figures[i][j], info));
            TD_TRY(td_bench_sleep(0));
        }
    return TD_OK;
}

static double value_of(const td_sim_figures *figures, size_t metric)
{
    double value;
    memcpy(&value, (const char *)figures + metrics[metric].offset,
           sizeof value);
    return metrics[metric].scale * value;
}

static void print_matrix(const td_bench_options *options, table figures,
                         size_t metric)
{
    char line[160];
    int used = 0;
    td_bench_say(options, "%s", metrics[metric].title);
    for (size_t j = 0; j < TD_BENCH_ASYNC_SETTINGS; j++)
        used += snprintf(line + used, sizeof line - (size_t)used, "%9s",
                         td_bench_async_settings[j].title);
    td_bench_say(options, "  %-18s%s", "inference", line);
    for (size_t i = 0; i < TD_BENCH_ASYNC_SERVERS; i++) {
        char name[TD_BENCH_ASYNC_NAME_BYTES];
        td_bench_async_name(&td_bench_async_servers[i], name);
        used = 0;
        for (size_t j = 0; j < TD_BENCH_ASYNC_SETTINGS; j++)
            used += snprintf(line + used, sizeof line - (size_t)used, "%9.*f",
                             metrics[metric].decimals,
                             value_of(&figures[i][j], metric));
        td_bench_say(options, "  %-18s%s", name, line);
    }
    td_bench_say(options, "%s", "");
}

static void print_json(const td_bench_options *options, table figures,
                       size_t server, size_t setting)
{
    char name[TD_BENCH_ASYNC_NAME_BYTES];
    td_bench_async_name(&td_bench_async_servers[server], name);
    for (size_t k = 0; k < TD_COUNT_OF(metrics); k++) {
        char text[96];
        (void)snprintf(text, sizeof text, "%s/%s/%s", name,
                       td_bench_async_settings[setting].name, metrics[k].name);
        const td_bench_row row = {
            .bench = "async",
            .name = text,
            .value = value_of(&figures[server][setting], k),
            .unit = metrics[k].unit,
        };
        td_bench_print(options, &row);
    }
}

static void print(const td_bench_options *options, table figures)
{
    td_bench_say(options,
                 "A robot at %d Hz, chunks of %d rows, %g ms of network; "
                 "columns say when it asks.\n(*) up to 60 unanswered: at every "
                 "step; the others wait for the last answer.\n",
                 TD_BENCH_ASYNC_HZ, TD_BENCH_ASYNC_CHUNK,
                 TD_BENCH_ASYNC_TRANSPORT_MS);
    for (size_t k = 0; k < TD_COUNT_OF(metrics); k++)
        print_matrix(options, figures, k);
    for (size_t i = 0; options->json && i < TD_BENCH_ASYNC_SERVERS; i++)
        for (size_t j = 0; j < TD_BENCH_ASYNC_SETTINGS; j++)
            print_json(options, figures, i, j);
}

td_err td_bench_async(const td_bench_options *options, td_errinfo *info)
{
    table figures;
    td_sim_figures autos[TD_BENCH_ASYNC_SERVERS];
    if (options->plot) TD_TRY(td_bench_async_plot(options, info));
    TD_TRY(fill(options, figures, info));
    print(options, figures);
    for (size_t i = 0; i < TD_BENCH_ASYNC_SERVERS; i++)
        autos[i] = figures[i][TD_BENCH_ASYNC_AUTO];
    return td_bench_async_limits(options, autos, info);
}

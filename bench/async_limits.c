// SPDX-License-Identifier: Apache-2.0
// What must hold of asking early, each figure beside its limit.
#include "bench/async.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>

#define TASK_STEPS 3000
#define MOST_REQUESTS 1.2 // of those of the best fixed g

static td_err measure(const td_bench_options *options, size_t setting,
                      double inference_ms, td_sim_figures *ret_figures,
                      td_errinfo *info)
{
    const td_bench_async_server server = {.ms = inference_ms};
    td_sim_config config = td_bench_async_config(
        options, &td_bench_async_settings[setting], &server);
    TD_TRY(td_bench_sleep(0));
    return td_sim_measure(&config, ret_figures, info);
}

// Inference of whole periods: an answer within one costs nothing, since the
// observation leaves with the tick that plays the last row.
static td_err sequential_idles(const td_bench_options *options,
                               td_errinfo *info)
{
    static const double inference_ms[] = {100, 300, 600, 1000, 2000};
    const double moving_ms = 1e3 * TD_BENCH_ASYNC_CHUNK / TD_BENCH_ASYNC_HZ;
    for (size_t i = 0; i < TD_COUNT_OF(inference_ms); i++) {
        td_sim_figures seen;
        TD_TRY(measure(options, TD_BENCH_ASYNC_SEQUENTIAL, inference_ms[i],
                       &seen, info));
        double latency_ms = inference_ms[i] + TD_BENCH_ASYNC_TRANSPORT_MS;
        double wanted = latency_ms / (moving_ms + latency_ms);
        char name[64];
        (void)snprintf(name, sizeof name, "g0/%.0fms/idle-off-formula",
                       inference_ms[i]);
        const td_bench_row row = {
            .bench = "async",
            .name = name,
            .value = 100 * fabs(seen.idle_share / wanted - 1),
            .unit = "%",
            .limited = TD_BENCH_VALUE,
            .limit = 2,
        };
        td_bench_print(options, &row);
    }
    return TD_OK;
}

// The latency is under the buffer while it is under half a chunk: what is left
// at an ask is a chunk less the latency of the one before.
static td_err early_never_idles(const td_bench_options *options, size_t setting,
                                td_errinfo *info)
{
    static const double inference_ms[] = {30, 100, 300, 600, 800};
    double most = 0;
    for (size_t i = 0; i < TD_COUNT_OF(inference_ms); i++) {
        td_sim_figures seen;
        TD_TRY(measure(options, setting, inference_ms[i], &seen, info));
        most = fmax(most, seen.idle_share);
    }
    char name[64];
    (void)snprintf(name, sizeof name, "%s/30ms-to-800ms/idle",
                   td_bench_async_settings[setting].name);
    const td_bench_row row = {
        .bench = "async",
        .name = name,
        .value = 100 * most,
        .unit = "%",
        .limited = TD_BENCH_VALUE,
        .limit = 0,
    };
    td_bench_print(options, &row);
    return TD_OK;
}

static td_err task_s(const td_bench_options *options, double g,
                     uint32_t actions_per_chunk, double inference_ms,
                     double *ret_s, td_errinfo *info)
{
    const td_bench_async_setting setting = {.g = g, .max_unanswered = 1};
    const td_bench_async_server server = {.ms = inference_ms};
    td_sim_config config = td_bench_async_config(options, &setting, &server);
    config.edge.actions_per_chunk = actions_per_chunk;
    config.steps = TASK_STEPS;
    config.duration_ns = 3600 * TD_NS_PER_S;
    td_sim_figures seen;
    TD_TRY(td_bench_sleep(0));
    TD_TRY(td_sim_measure(&config, &seen, info));
    *ret_s = seen.seconds;
    return TD_OK;
}

// Sequential executes n rows of a chunk and waits; asynchronous asks as often,
// at half a chunk at the latest, and goes on with the others.
static td_err task_is_shorter(const td_bench_options *options,
                              uint32_t executed, double inference_ms,
                              td_errinfo *info)
{
    double after = fmin(0.5, (double)executed / TD_BENCH_ASYNC_CHUNK);
    double sequential_s, asynchronous_s;
    TD_TRY(task_s(options, 0, executed, inference_ms, &sequential_s, info));
    TD_TRY(task_s(options, 1 - after, TD_BENCH_ASYNC_CHUNK, inference_ms,
                  &asynchronous_s, info));
    double moving_ms = 1e3 * executed / TD_BENCH_ASYNC_HZ;
    double faster = sequential_s / asynchronous_s;
    char name[64];
    (void)snprintf(name, sizeof name, "task/%u-rows/%.0fms/speed-up", executed,
                   inference_ms);
    const td_bench_row row = {
        .bench = "async",
        .name = name,
        .value = faster,
        .unit = "x",
        .more = true,
        .against = "(n dt + L) / (n dt)",
        .ratio = faster * moving_ms / (moving_ms + inference_ms),
        .limited = TD_BENCH_RATIO,
        .limit = 0.98,
    };
    td_bench_print(options, &row);
    return TD_OK;
}

static td_err tasks_are_shorter(const td_bench_options *options,
                                td_errinfo *info)
{
    static const uint32_t executed[] = {10, 25, TD_BENCH_ASYNC_CHUNK};
    static const double inference_ms[] = {100, 300, 600};
    for (size_t i = 0; i < TD_COUNT_OF(executed); i++)
        for (size_t j = 0; j < TD_COUNT_OF(inference_ms); j++)
            TD_TRY(
                task_is_shorter(options, executed[i], inference_ms[j], info));
    return TD_OK;
}

static void print_share(const td_bench_options *options, const char *name,
                        const char *what, double share, bool limited,
                        double target)
{
    char text[64];
    (void)snprintf(text, sizeof text, "auto/%s/%s", name, what);
    const td_bench_row row = {
        .bench = "async",
        .name = text,
        .value = 100 * share,
        .unit = "%",
        .limited = limited ? TD_BENCH_VALUE : TD_BENCH_NO_LIMIT,
        .limit = 100 * target,
    };
    td_bench_print(options, &row);
}

// The target is a limit where some fixed g keeps it.
static td_err auto_keeps_target(const td_bench_options *options,
                                const td_sim_config *config, const char *name,
                                const td_sim_figures *seen, td_errinfo *info)
{
    double target = config->edge.ask.starve_target;
    td_sim_figures best;
    td_err err = TD_OK;
    if (seen->starve_share > target)
        err = td_sim_best_fixed(config, 1, target, &best, info);
    if (err != TD_OK && err != TD_ERR_NOTFOUND) return err;
    print_share(options, name, "starving-asks", seen->starve_share,
                err == TD_OK, target);
    print_share(options, name, "idle", seen->idle_share, err == TD_OK, target);
    return TD_OK;
}

static td_err auto_asks_little(const td_bench_options *options,
                               const td_sim_config *config, const char *name,
                               const td_sim_figures *seen, td_errinfo *info)
{
    td_sim_figures best;
    td_err err = td_sim_best_fixed(config, seen->idle_share, 1, &best, info);
    if (err != TD_OK && err != TD_ERR_NOTFOUND) return err;
    bool found = err == TD_OK;
    char text[64];
    (void)snprintf(text, sizeof text, "auto/%s/requests", name);
    const td_bench_row row = {
        .bench = "async",
        .name = text,
        .value = seen->ask_hz,
        .unit = "1/s",
        .against = found ? "best fixed g" : NULL,
        .ratio = found ? seen->ask_hz / best.ask_hz : 0,
        .limited = found ? TD_BENCH_RATIO : TD_BENCH_NO_LIMIT,
        .limit = MOST_REQUESTS,
    };
    td_bench_print(options, &row);
    return TD_OK;
}

td_err td_bench_async_limits(const td_bench_options *options,
                             const td_sim_figures autos[TD_BENCH_ASYNC_SERVERS],
                             td_errinfo *info)
{
    TD_TRY(sequential_idles(options, info));
    for (size_t i = TD_BENCH_ASYNC_HALF; i <= TD_BENCH_ASYNC_EVERY_STEP; i++)
        TD_TRY(early_never_idles(options, i, info));
    TD_TRY(tasks_are_shorter(options, info));
    for (size_t i = 0; i < TD_BENCH_ASYNC_SERVERS; i++) {
        const td_bench_async_server *server = &td_bench_async_servers[i];
        td_sim_config config = td_bench_async_config(
            options, &td_bench_async_settings[TD_BENCH_ASYNC_AUTO], server);
        char name[TD_BENCH_ASYNC_NAME_BYTES];
        td_bench_async_name(server, name);
        td_bench_progress("async: the best fixed g at %s", name);
        TD_TRY(auto_keeps_target(options, &config, name, &autos[i], info));
        TD_TRY(auto_asks_little(options, &config, name, &autos[i], info));
        TD_TRY(td_bench_sleep(0));
    }
    return TD_OK;
}

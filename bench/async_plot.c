// SPDX-License-Identifier: Apache-2.0
// The queue over time, a panel for each setting.
#include "bench/async.h"

#include "base/chart/chart.h"
#include "base/clock.h"

#include <stdio.h>

#define INFERENCE_MS 600
#define FROM_NS (30 * TD_NS_PER_S) // `auto` has measured by then
#define SHOWN_NS (12 * TD_NS_PER_S)

enum { MAX_TICKS = 512 };

typedef struct seen {
    uint32_t count;
    double at_s[MAX_TICKS];
    uint32_t left[MAX_TICKS];
    bool idle[MAX_TICKS];
    bool asked[MAX_TICKS];
} seen;

static void watch(void *user, const td_sim_tick *tick)
{
    seen *kept = user;
    if (tick->now_ns < FROM_NS || kept->count == MAX_TICKS) return;
    uint32_t i = kept->count++;
    kept->at_s[i] = (double)(tick->now_ns - FROM_NS) / (double)TD_NS_PER_S;
    kept->left[i] = tick->step->left;
    kept->idle[i] = tick->step->starved;
    kept->asked[i] = tick->step->ask;
}

static void add_idle(td_chart *chart, const seen *kept, bool label)
{
    td_chart_add_series(chart,
                        &(td_chart_series){.label = label ? "idle" : NULL,
                                           .style = TD_CHART_BANDS,
                                           .colour = TD_CHART_VERMILION});
    for (uint32_t i = 0; i < kept->count;) {
        uint32_t first = i;
        while (i < kept->count && kept->idle[i])
            i++;
        if (i > first && i < kept->count)
            td_chart_add_span(chart, kept->at_s[first], kept->at_s[i], 0);
        if (i == first) i++;
    }
}

static void add_queue(td_chart *chart, const seen *kept, bool label)
{
    td_chart_add_series(
        chart, &(td_chart_series){.label = label ? "actions left" : NULL,
                                  .style = TD_CHART_STEPS,
                                  .colour = TD_CHART_BLUE});
    for (uint32_t i = 0; i < kept->count; i++)
        td_chart_add_point(chart, kept->at_s[i], kept->left[i]);
    td_chart_add_series(chart,
                        &(td_chart_series){.label = label ? "asked" : NULL,
                                           .style = TD_CHART_TRIANGLES,
                                           .colour = TD_CHART_ORANGE});
    for (uint32_t i = 0; i < kept->count; i++)
        if (kept->asked[i])
            td_chart_add_point(chart, kept->at_s[i], kept->left[i]);
}

static void count(const seen *kept, uint32_t *ret_idle, uint32_t *ret_asks)
{
    *ret_idle = *ret_asks = 0;
    for (uint32_t i = 0; i < kept->count; i++) {
        *ret_idle += kept->idle[i];
        *ret_asks += kept->asked[i];
    }
}

static void add_panel(td_chart *chart, size_t setting, const seen *kept)
{
    char title[96];
    uint32_t idle, asks;
    count(kept, &idle, &asks);
    (void)snprintf(title, sizeof title, "%s: idle in %u of %u ticks, %u asks",
                   td_bench_async_settings[setting].long_title, idle,
                   kept->count, asks);
    bool first = setting == 0;
    td_chart_add_panel(chart,
                       &(td_chart_panel){.title = title,
                                         .x_label = first ? "time (s)" : NULL,
                                         .y_label = "actions left",
                                         .height_px = 90,
                                         .y_from_zero = true});
    add_idle(chart, kept, first);
    add_queue(chart, kept, first);
}

static td_err run(const td_bench_options *options, size_t setting,
                  td_chart *chart, td_errinfo *info)
{
    seen kept = {.count = 0};
    const td_bench_async_server server = {.ms = INFERENCE_MS};
    td_sim_config config = td_bench_async_config(
        options, &td_bench_async_settings[setting], &server);
    config.duration_ns = FROM_NS + SHOWN_NS;
    config.watch = watch;
    config.watch_user = &kept;
    td_sim_result result;
    TD_TRY(td_sim_run(&config, &result, info));
    td_sim_result_done(&result);
    add_panel(chart, setting, &kept);
    return TD_OK;
}

td_err td_bench_async_plot(const td_bench_options *options, td_errinfo *info)
{
    TD_AUTO(td_chart) *chart = NULL;
    char subtitle[128];
    (void)snprintf(subtitle, sizeof subtitle,
                   "Chunks of %d actions at %d Hz, inference of %d ms, one at "
                   "a time: %d seconds of a simulated robot.",
                   TD_BENCH_ASYNC_CHUNK, TD_BENCH_ASYNC_HZ, INFERENCE_MS,
                   (int)(SHOWN_NS / TD_NS_PER_S));
    TD_TRY(td_chart_new("Actions left in the queue, by when the robot asks for "
                        "more",
                        subtitle, &chart));
    for (size_t i = 0; i < TD_BENCH_ASYNC_SETTINGS; i++)
        TD_TRY(run(options, i, chart, info));
    return td_chart_save(chart, options->plot, "queues.svg", info);
}

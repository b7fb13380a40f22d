// SPDX-License-Identifier: Apache-2.0
#include "edge/report/plot/run.h"

static bool is_starved(const td_edge_traced_tick *tick)
{
    return tick->starved;
}

static bool is_asked(const td_edge_traced_tick *tick)
{
    return tick->asked;
}

// How many rows the first tick after each merge found.
static void add_installs(td_chart *chart, const td_edge_plot_run *run,
                         size_t from)
{
    const td_edge_traced *traced = &run->traced;
    size_t tick = from;
    for (size_t i = 0; i < traced->merge_count; i++) {
        int64_t installed_ns = traced->merges[i].installed_ns;
        while (tick < traced->tick_count &&
               traced->ticks[tick].now_ns < installed_ns)
            tick++;
        if (tick > from && tick < traced->tick_count)
            td_chart_add_point(chart, td_edge_plot_tick_s(run, tick),
                               traced->ticks[tick].left);
    }
}

static void add_marks(td_chart *chart, const td_edge_plot_run *run, size_t from)
{
    const td_edge_traced *traced = &run->traced;
    td_edge_plot_series(chart, "asked for a chunk", TD_CHART_TRIANGLES,
                        TD_CHART_ORANGE);
    for (size_t i = from; i < traced->tick_count; i++)
        if (traced->ticks[i].asked)
            td_chart_add_point(chart, td_edge_plot_tick_s(run, i),
                               traced->ticks[i].left);
    td_edge_plot_series(chart, "chunk installed", TD_CHART_DOTS,
                        TD_CHART_GREEN);
    add_installs(chart, run, from);
}

static void add_panel(td_chart *chart, const td_edge_plot_run *run, size_t from,
                      const char *title)
{
    const td_edge_traced *traced = &run->traced;
    td_chart_add_panel(chart, &(td_chart_panel){.title = title,
                                                .x_label = TD_EDGE_PLOT_TIME,
                                                .y_label = "actions left",
                                                .height_px = 260,
                                                .y_from_zero = true});
    td_edge_plot_series(chart, "idle: the queue was empty", TD_CHART_BANDS,
                        TD_CHART_VERMILION);
    td_edge_plot_bands(chart, run, from, is_starved);
    td_edge_plot_series(chart, "actions left", TD_CHART_STEPS, TD_CHART_BLUE);
    for (size_t i = from; i < traced->tick_count; i++)
        td_chart_add_point(chart, td_edge_plot_tick_s(run, i),
                           traced->ticks[i].left);
}

td_err td_edge_plot_queue(const td_edge_plot_run *run, td_chart **ret_chart)
{
    const td_edge_traced *traced = &run->traced;
    uint64_t starved = td_edge_plot_count(run, is_starved);
    char subtitle[TD_EDGE_PLOT_SUBTITLE_BYTES];
    (void)snprintf(
        subtitle, sizeof subtitle,
        "%zu ticks in %.1f s. The robot asked %llu times and installed %zu "
        "chunks; it had nothing to play in %llu ticks (%.2f %%).",
        traced->tick_count, td_edge_plot_duration_s(run),
        (unsigned long long)td_edge_plot_count(run, is_asked),
        traced->merge_count, (unsigned long long)starved,
        td_edge_plot_percent(starved, traced->tick_count));

    td_chart *chart;
    TD_TRY(td_edge_plot_chart(run,
                              "How many actions were left in the robot's queue",
                              subtitle, &chart));
    add_panel(chart, run, 0, "The whole run");
    size_t close_up = td_edge_plot_close_up(run);
    if (close_up) add_panel(chart, run, close_up, "The last 40 seconds");
    add_marks(chart, run, close_up);
    *ret_chart = chart;
    return TD_OK;
}

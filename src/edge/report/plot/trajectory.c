// SPDX-License-Identifier: Apache-2.0
#include "edge/report/plot/run.h"

#include <math.h>

enum {
    CHANNEL_PX = 96,
    STRIP_PX = 32,
};

static bool is_held(const td_edge_traced_tick *tick)
{
    return tick->held;
}

static bool is_clamped(const td_edge_traced_tick *tick)
{
    return tick->clamped;
}

static void add_marks(td_chart *chart, const td_edge_plot_run *run)
{
    td_chart_add_panel(
        chart, &(td_chart_panel){.title = "When the robot held its last "
                                          "command or was limited: whole run",
                                 .x_label = TD_EDGE_PLOT_TIME,
                                 .height_px = STRIP_PX});
    td_edge_plot_series(chart, "held", TD_CHART_BANDS, TD_CHART_ORANGE);
    td_edge_plot_bands(chart, run, 0, is_held);
    td_edge_plot_series(chart, "limited", TD_CHART_BANDS, TD_CHART_VERMILION);
    td_edge_plot_bands(chart, run, 0, is_clamped);
}

// The legend stands over the first channel only.
static void add_channel(td_chart *chart, const td_edge_plot_run *run,
                        size_t from, uint32_t channel)
{
    const td_edge_traced *traced = &run->traced;
    bool first = channel == 0;
    td_chart_add_panel(
        chart, &(td_chart_panel){.title = traced->names[channel],
                                 .x_label = first ? TD_EDGE_PLOT_TIME : NULL,
                                 .height_px = CHANNEL_PX});
    td_edge_plot_series(chart, first ? "holding the last command" : NULL,
                        TD_CHART_BANDS, TD_CHART_ORANGE);
    td_edge_plot_bands(chart, run, from, is_held);
    td_edge_plot_series(chart, first ? "wanted by the policy" : NULL,
                        TD_CHART_THIN, TD_CHART_GREY);
    for (size_t i = from; i < traced->tick_count; i++)
        td_chart_add_point(chart, td_edge_plot_tick_s(run, i),
                           traced->ticks[i].wanted[channel]);
    td_edge_plot_series(chart, first ? "commanded" : NULL, TD_CHART_LINE,
                        TD_CHART_BLUE);
    for (size_t i = from; i < traced->tick_count; i++) {
        const td_edge_traced_tick *tick = &traced->ticks[i];
        bool any = tick->fresh || tick->held;
        td_chart_add_point(chart, td_edge_plot_tick_s(run, i),
                           any ? tick->commanded[channel] : NAN);
    }
    td_edge_plot_series(chart,
                        first ? "limited by the robot's own limits" : NULL,
                        TD_CHART_DOTS, TD_CHART_VERMILION);
    for (size_t i = from; i < traced->tick_count; i++)
        if (traced->ticks[i].limited >> channel & 1)
            td_chart_add_point(chart, td_edge_plot_tick_s(run, i),
                               traced->ticks[i].commanded[channel]);
}

td_err td_edge_plot_trajectory(const td_edge_plot_run *run,
                               td_chart **ret_chart)
{
    const td_edge_traced *traced = &run->traced;
    size_t close_up = td_edge_plot_close_up(run);
    uint64_t held = td_edge_plot_count(run, is_held);
    uint64_t clamped = td_edge_plot_count(run, is_clamped);
    char subtitle[TD_EDGE_PLOT_SUBTITLE_BYTES];
    (void)snprintf(
        subtitle, sizeof subtitle,
        "%u of %u channels%s, in the robot's own units. Of %zu ticks %llu "
        "held the last command (%.2f %%) and %llu were limited (%.2f %%).",
        traced->channels, traced->robot_channels,
        close_up ? " at the end of the run" : "", traced->tick_count,
        (unsigned long long)held,
        td_edge_plot_percent(held, traced->tick_count),
        (unsigned long long)clamped,
        td_edge_plot_percent(clamped, traced->tick_count));

    td_chart *chart;
    TD_TRY(td_edge_plot_chart(
        run, "What each channel of the robot was commanded to do", subtitle,
        &chart));
    if (close_up) add_marks(chart, run);
    for (uint32_t c = 0; c < traced->channels; c++)
        add_channel(chart, run, close_up, c);
    *ret_chart = chart;
    return TD_OK;
}

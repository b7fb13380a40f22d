// SPDX-License-Identifier: Apache-2.0
#include "edge/report/plot/run.h"

static double round_trip_ms(const td_edge_traced_merge *merge)
{
    return (double)merge->round_trip_ns / 1e6;
}

static double felt_ms(const td_edge_traced_merge *merge)
{
    return (double)merge->felt_ns / 1e6;
}

static td_edge_plot_spread
take_times(const td_edge_plot_run *run,
           double (*time_ms)(const td_edge_traced_merge *merge))
{
    for (size_t i = 0; i < run->traced.merge_count; i++)
        run->values[i] = time_ms(&run->traced.merges[i]);
    return td_edge_plot_spread_of(run->values, run->traced.merge_count);
}

static const struct {
    double (*time_ms)(const td_edge_traced_merge *merge);
    const char *label, *heading;
    td_chart_style style;
    td_chart_colour colour;
} trips[] = {
    {felt_ms, "from the camera and joints to the queue: what the robot feels",
     "How often which time: capture to installed", TD_CHART_CROSSES,
     TD_CHART_ORANGE},
    {round_trip_ms, "from sending to the answer: network and server",
     "How often which time: sent to answered", TD_CHART_DOTS, TD_CHART_BLUE},
};

static void add_trip_histograms(td_chart *chart, const td_edge_plot_run *run,
                                bool log_x)
{
    for (size_t t = 0; t < TD_COUNT_OF(trips); t++) {
        td_chart_add_panel(chart,
                           &(td_chart_panel){.title = trips[t].heading,
                                             .x_label = t ? NULL : "time (ms)",
                                             .y_label = "chunks",
                                             .height_px = 110,
                                             .x_log = log_x});
        td_edge_plot_series(chart, NULL, TD_CHART_BARS, trips[t].colour);
        (void)take_times(run, trips[t].time_ms);
        td_chart_add_histogram(chart, run->values, run->traced.merge_count);
    }
}

td_err td_edge_plot_roundtrip(const td_edge_plot_run *run, td_chart **ret_chart)
{
    const td_edge_traced *traced = &run->traced;
    td_edge_plot_spread trip = take_times(run, round_trip_ms);
    td_edge_plot_spread felt = take_times(run, felt_ms);
    char subtitle[TD_EDGE_PLOT_SUBTITLE_BYTES];
    (void)snprintf(
        subtitle, sizeof subtitle,
        "%zu chunks. Sent to answered: half within %.1f ms, slowest %.1f "
        "ms. Capture to installed: half within %.1f ms, slowest %.1f ms.",
        traced->merge_count, trip.median, trip.worst, felt.median, felt.worst);

    td_chart *chart;
    TD_TRY(td_edge_plot_chart(run, "How long the robot waited for each answer",
                              subtitle, &chart));
    td_chart_add_panel(chart, &(td_chart_panel){.title = "Answer by answer",
                                                .x_label = TD_EDGE_PLOT_TIME,
                                                .y_label = "ms",
                                                .height_px = 200,
                                                .y_from_zero = true});
    for (size_t t = 0; t < TD_COUNT_OF(trips); t++) {
        td_edge_plot_series(chart, trips[t].label, trips[t].style,
                            trips[t].colour);
        for (size_t i = 0; i < traced->merge_count; i++)
            td_chart_add_point(chart, td_edge_plot_merge_s(run, i),
                               trips[t].time_ms(&traced->merges[i]));
    }
    add_trip_histograms(chart, run, trip.least > 0 && felt.least > 0);
    *ret_chart = chart;
    return TD_OK;
}

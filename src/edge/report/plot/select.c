// SPDX-License-Identifier: Apache-2.0
#include "edge/report/plot/run.h"

td_err td_edge_plot_select(const td_edge_plot_run *run, td_chart **ret_chart)
{
    const td_edge_traced *traced = &run->traced;
    for (size_t i = 0; i < traced->tick_count; i++)
        run->values[i] = (double)traced->ticks[i].select_ns / 1e3;
    td_edge_plot_spread spread =
        td_edge_plot_spread_of(run->values, traced->tick_count);
    char subtitle[TD_EDGE_PLOT_SUBTITLE_BYTES];
    (void)snprintf(subtitle, sizeof subtitle,
                   "%zu ticks: half within %.2f µs, 99.9 %% within %.2f µs, "
                   "the slowest %.2f µs.",
                   traced->tick_count, spread.median, spread.p999,
                   spread.worst);

    td_chart *chart;
    TD_TRY(td_edge_plot_chart(
        run, "How long each tick took to choose its action", subtitle, &chart));
    td_chart_add_panel(chart,
                       &(td_chart_panel){.title = "Time to choose an action",
                                         .x_label = TD_EDGE_PLOT_TIME,
                                         .y_label = "µs",
                                         .y_log = spread.least > 0});
    td_edge_plot_series(chart, NULL, TD_CHART_DOTS, TD_CHART_BLUE);
    for (size_t i = 0; i < traced->tick_count; i++)
        td_chart_add_point(chart, td_edge_plot_tick_s(run, i),
                           (double)traced->ticks[i].select_ns / 1e3);
    td_chart_add_panel(chart,
                       &(td_chart_panel){.title = "How late each tick began",
                                         .y_label = "µs after it was due",
                                         .y_from_zero = true});
    td_edge_plot_series(chart, NULL, TD_CHART_DOTS, TD_CHART_PURPLE);
    for (size_t i = 0; i < traced->tick_count; i++)
        td_chart_add_point(chart, td_edge_plot_tick_s(run, i),
                           (double)traced->ticks[i].lateness_ns / 1e3);
    td_chart_add_panel(
        chart, &(td_chart_panel){.title = "How often which time was needed",
                                 .x_label = "time to choose an action (µs)",
                                 .y_label = "ticks",
                                 .x_log = spread.least > 0});
    td_edge_plot_series(chart, NULL, TD_CHART_BARS, TD_CHART_BLUE);
    td_chart_add_histogram(chart, run->values, traced->tick_count);
    *ret_chart = chart;
    return TD_OK;
}

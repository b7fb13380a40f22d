// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_REPORT_PLOT_RUN_H
#define TD_EDGE_REPORT_PLOT_RUN_H

// What the charts of a trace share. Private to edge/plot.

#include "base/chart/chart.h"
#include "edge/report/trace.h"

#define TD_EDGE_PLOT_TIME "time since the start (s)"
#define TD_EDGE_PLOT_SUBTITLE_BYTES 512

typedef struct td_edge_plot_run {
    td_edge_traced traced;
    int64_t start_ns;
    double *values; // room for a value of each tick or each merge
} td_edge_plot_run;

typedef struct td_edge_plot_spread {
    double least, median, p999, worst;
} td_edge_plot_spread;

typedef bool (*td_edge_plot_is)(const td_edge_traced_tick *tick);

// When tick or merge `i` was, in seconds since the start.
double td_edge_plot_tick_s(const td_edge_plot_run *run, size_t i);
double td_edge_plot_merge_s(const td_edge_plot_run *run, size_t i);
double td_edge_plot_duration_s(const td_edge_plot_run *run);

// The first tick of the last 40 seconds, for charts that would be too dense; 0
// if the run is hardly longer.
size_t td_edge_plot_close_up(const td_edge_plot_run *run);

uint64_t td_edge_plot_count(const td_edge_plot_run *run, td_edge_plot_is is);
double td_edge_plot_percent(uint64_t part, uint64_t whole);

// Sorts the values.
td_edge_plot_spread td_edge_plot_spread_of(double *values, size_t count);

// A chart whose subtitle also says what the trace lost. Owned by the caller.
TD_NODISCARD td_err td_edge_plot_chart(const td_edge_plot_run *run,
                                       const char *title, const char *subtitle,
                                       td_chart **ret_chart);

void td_edge_plot_series(td_chart *chart, const char *label,
                         td_chart_style style, td_chart_colour colour);

// To the newest series: a band for each time in which `is` held for tick after
// tick, from tick `from` on. It lasts until the first tick for which it does
// not.
void td_edge_plot_bands(td_chart *chart, const td_edge_plot_run *run,
                        size_t from, td_edge_plot_is is);

// The charts, one file each. Owned by the caller. NOMEM.
TD_NODISCARD td_err td_edge_plot_queue(const td_edge_plot_run *run,
                                       td_chart **ret_chart);
TD_NODISCARD td_err td_edge_plot_select(const td_edge_plot_run *run,
                                        td_chart **ret_chart);
TD_NODISCARD td_err td_edge_plot_overlaps(const td_edge_plot_run *run,
                                          td_chart **ret_chart);
TD_NODISCARD td_err td_edge_plot_roundtrip(const td_edge_plot_run *run,
                                           td_chart **ret_chart);
TD_NODISCARD td_err td_edge_plot_trajectory(const td_edge_plot_run *run,
                                            td_chart **ret_chart);

#endif

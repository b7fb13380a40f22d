// SPDX-License-Identifier: Apache-2.0
#include "edge/report/plot/run.h"

enum { SHOWN_CHUNKS = 40 };

static void add_chunks(td_chart *chart, const td_edge_plot_run *run,
                       size_t from)
{
    const td_edge_traced *traced = &run->traced;
    td_edge_plot_series(chart, "steps that no chunk had covered yet",
                        TD_CHART_SPANS, TD_CHART_SKY);
    for (size_t i = from; i < traced->merge_count; i++) {
        const td_edge_traced_merge *merge = &traced->merges[i];
        if (merge->rows > merge->overlap_rows)
            td_chart_add_span(chart,
                              (double)(merge->first + merge->overlap_rows),
                              (double)(merge->first + merge->rows),
                              td_edge_plot_merge_s(run, i));
    }
    td_edge_plot_series(chart,
                        "steps that an earlier chunk had covered: blended",
                        TD_CHART_SPANS, TD_CHART_BLUE);
    for (size_t i = from; i < traced->merge_count; i++) {
        const td_edge_traced_merge *merge = &traced->merges[i];
        if (merge->overlap_rows)
            td_chart_add_span(chart, (double)merge->first,
                              (double)(merge->first + merge->overlap_rows),
                              td_edge_plot_merge_s(run, i));
    }
}

static void add_rows(td_chart *chart, const td_edge_plot_run *run)
{
    const td_edge_traced *traced = &run->traced;
    td_edge_plot_series(chart, "steps still to come when it was installed",
                        TD_CHART_DOTS, TD_CHART_SKY);
    for (size_t i = 0; i < traced->merge_count; i++)
        td_chart_add_point(chart, td_edge_plot_merge_s(run, i),
                           traced->merges[i].rows);
    td_edge_plot_series(chart, "of these, blended with an earlier chunk",
                        TD_CHART_DOTS, TD_CHART_BLUE);
    for (size_t i = 0; i < traced->merge_count; i++)
        td_chart_add_point(chart, td_edge_plot_merge_s(run, i),
                           traced->merges[i].overlap_rows);
}

td_err td_edge_plot_overlaps(const td_edge_plot_run *run, td_chart **ret_chart)
{
    const td_edge_traced *traced = &run->traced;
    uint64_t rows = 0;
    uint64_t overlap = 0;
    for (size_t i = 0; i < traced->merge_count; i++) {
        rows += traced->merges[i].rows;
        overlap += traced->merges[i].overlap_rows;
    }
    size_t shown =
        traced->merge_count < SHOWN_CHUNKS ? traced->merge_count : SHOWN_CHUNKS;
    char subtitle[TD_EDGE_PLOT_SUBTITLE_BYTES];
    (void)snprintf(subtitle, sizeof subtitle,
                   "%zu chunks with %llu steps still to come, of which %llu "
                   "(%.1f %%) were blended with those of an earlier chunk.",
                   traced->merge_count, (unsigned long long)rows,
                   (unsigned long long)overlap,
                   td_edge_plot_percent(overlap, rows));
    char heading[80];
    (void)snprintf(heading, sizeof heading,
                   "The steps of the last %zu chunks, each when it came",
                   shown);

    td_chart *chart;
    TD_TRY(td_edge_plot_chart(
        run, "Which steps each chunk covered, and which it shared", subtitle,
        &chart));
    td_chart_add_panel(
        chart, &(td_chart_panel){.title = heading,
                                 .x_label = "step of the policy",
                                 .y_label = "installed at (s)",
                                 .height_px = 120 + 7 * (uint32_t)shown});
    add_chunks(chart, run, traced->merge_count - shown);
    td_chart_add_panel(chart,
                       &(td_chart_panel){.title = "Every chunk of the run",
                                         .x_label = TD_EDGE_PLOT_TIME,
                                         .y_label = "steps",
                                         .y_from_zero = true});
    add_rows(chart, run);
    *ret_chart = chart;
    return TD_OK;
}

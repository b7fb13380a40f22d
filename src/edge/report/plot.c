// SPDX-License-Identifier: Apache-2.0
#include "edge/report/plot.h"

#include "edge/report/plot/run.h"

#include <stdlib.h>

static td_err init_run(const td_edge_trace *trace, td_edge_plot_run *ret_run)
{
    td_edge_plot_run run = {.traced = td_edge_trace_read(trace)};
    if (run.traced.tick_count)
        run.start_ns = run.traced.ticks[0].now_ns;
    else if (run.traced.merge_count)
        run.start_ns = run.traced.merges[0].installed_ns;
    run.values = calloc(run.traced.tick_count + run.traced.merge_count + 1,
                        sizeof *run.values);
    if (!run.values) return TD_ERR_NOMEM;
    *ret_run = run;
    return TD_OK;
}

static const struct {
    const char *file;
    td_err (*draw)(const td_edge_plot_run *run, td_chart **ret_chart);
} plots[] = {
    {"queue.svg", td_edge_plot_queue},
    {"select.svg", td_edge_plot_select},
    {"overlaps.svg", td_edge_plot_overlaps},
    {"roundtrip.svg", td_edge_plot_roundtrip},
    {"trajectory.svg", td_edge_plot_trajectory},
};

static td_err plot_all(const td_edge_plot_run *run, const char *dir,
                       td_errinfo *info)
{
    for (size_t i = 0; i < TD_COUNT_OF(plots); i++) {
        TD_AUTO(td_chart) *chart = NULL;
        TD_TRY(plots[i].draw(run, &chart));
        TD_TRY(td_chart_save(chart, dir, plots[i].file, info));
    }
    return TD_OK;
}

td_err td_edge_plot(const td_edge_trace *trace, const char *dir,
                    td_errinfo *info)
{
    td_edge_plot_run run;
    td_err err = init_run(trace, &run);
    if (err == TD_OK) {
        err = plot_all(&run, dir, info);
        free(run.values);
    }
    if (err == TD_ERR_NOMEM)
        return td_fail(info, err, "%s: %s", dir, td_err_text(err));
    return err;
}

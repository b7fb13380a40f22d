// SPDX-License-Identifier: Apache-2.0
#include "edge/report/plot/run.h"

#include <math.h>
#include <stdlib.h>

enum {
    CLOSE_UP_S = 40,
    CLOSE_UP_FROM_S = 60,
};

static double seconds(const td_edge_plot_run *run, int64_t ns)
{
    return (double)(ns - run->start_ns) / 1e9;
}

double td_edge_plot_tick_s(const td_edge_plot_run *run, size_t i)
{
    return seconds(run, run->traced.ticks[i].now_ns);
}

double td_edge_plot_merge_s(const td_edge_plot_run *run, size_t i)
{
    return seconds(run, run->traced.merges[i].installed_ns);
}

void td_edge_plot_series(td_chart *chart, const char *label,
                         td_chart_style style, td_chart_colour colour)
{
    td_chart_add_series(
        chart,
        &(td_chart_series){.label = label, .style = style, .colour = colour});
}

void td_edge_plot_bands(td_chart *chart, const td_edge_plot_run *run,
                        size_t from, td_edge_plot_is is)
{
    const td_edge_traced *traced = &run->traced;
    for (size_t i = from; i < traced->tick_count; i++) {
        if (!is(&traced->ticks[i])) continue;
        size_t first = i;
        while (i + 1 < traced->tick_count && is(&traced->ticks[i]))
            i++;
        td_chart_add_span(chart, td_edge_plot_tick_s(run, first),
                          td_edge_plot_tick_s(run, i), 0);
    }
}

uint64_t td_edge_plot_count(const td_edge_plot_run *run, td_edge_plot_is is)
{
    uint64_t count = 0;
    for (size_t i = 0; i < run->traced.tick_count; i++)
        count += is(&run->traced.ticks[i]);
    return count;
}

double td_edge_plot_percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

double td_edge_plot_duration_s(const td_edge_plot_run *run)
{
    size_t count = run->traced.tick_count;
    return count ? td_edge_plot_tick_s(run, count - 1) : 0;
}

size_t td_edge_plot_close_up(const td_edge_plot_run *run)
{
    double end_s = td_edge_plot_duration_s(run);
    if (end_s < CLOSE_UP_FROM_S) return 0;
    size_t i = run->traced.tick_count - 1;
    while (td_edge_plot_tick_s(run, i - 1) >= end_s - CLOSE_UP_S)
        i--;
    return i;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

td_edge_plot_spread td_edge_plot_spread_of(double *values, size_t count)
{
    if (count == 0) return (td_edge_plot_spread){0};
    qsort(values, count, sizeof *values, ascending);
    return (td_edge_plot_spread){
        .least = values[0],
        .median = values[(count - 1) / 2],
        .p999 = values[(size_t)ceil(0.999 * (double)count) - 1],
        .worst = values[count - 1],
    };
}

// What the trace lost is said wherever it would be missed.
td_err td_edge_plot_chart(const td_edge_plot_run *run, const char *title,
                          const char *subtitle, td_chart **ret_chart)
{
    const td_edge_traced *traced = &run->traced;
    uint64_t ticks = traced->ticks_dropped + traced->ticks_past_max;
    uint64_t merges = traced->merges_dropped + traced->merges_past_max;
    char text[TD_EDGE_PLOT_SUBTITLE_BYTES + 128];
    if (ticks || merges)
        (void)snprintf(text, sizeof text,
                       "%s\nNot shown, for want of room: %llu ticks and %llu "
                       "chunks.",
                       subtitle, (unsigned long long)ticks,
                       (unsigned long long)merges);
    else
        (void)snprintf(text, sizeof text, "%s", subtitle);
    return td_chart_new(title, text, ret_chart);
}

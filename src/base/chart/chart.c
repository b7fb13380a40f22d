// SPDX-License-Identifier: Apache-2.0
#include "base/chart/chart.h"

#include "base/chart/internal.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MIN_BINS = 20,
    MAX_BINS = 60,
};

// Room for one more: an array is as large as the power of two at or above its
// count. NULL if there is no memory; `items` is then as it was.
static void *grown(void *items, size_t count, size_t item_bytes)
{
    if (count & (count - 1)) return items;
    return reallocarray(items, count ? 2 * count : 1, item_bytes);
}

static bool copy_text(const char *text, const char **ret_copy)
{
    *ret_copy = text ? strdup(text) : NULL;
    return !text || *ret_copy;
}

static void free_text(const char *text)
{
    free((void *)(uintptr_t)text);
}

static void fail(td_chart *chart, td_err err)
{
    if (chart->err == TD_OK) chart->err = err;
}

td_err td_chart_new(const char *title, const char *subtitle,
                    td_chart **ret_chart)
{
    TD_AUTO(td_chart) *chart = calloc(1, sizeof *chart);
    if (!chart) return TD_ERR_NOMEM;
    chart->title = strdup(title);
    chart->subtitle = subtitle ? strdup(subtitle) : NULL;
    if (!chart->title || (subtitle && !chart->subtitle)) return TD_ERR_NOMEM;

    *ret_chart = TD_TAKE(chart);
    return TD_OK;
}

static void free_panel(td_chart_panel_data *panel)
{
    for (size_t i = 0; i < panel->count; i++) {
        free_text(panel->series[i].about.label);
        free(panel->series[i].spans);
    }
    free(panel->series);
    free_text(panel->about.title);
    free_text(panel->about.x_label);
    free_text(panel->about.y_label);
}

void td_chart_free(td_chart *chart)
{
    for (size_t i = 0; i < chart->count; i++)
        free_panel(&chart->panels[i]);
    free(chart->panels);
    free(chart->title);
    free(chart->subtitle);
    free(chart);
}

void td_chart_add_panel(td_chart *chart, const td_chart_panel *panel)
{
    td_chart_panel_data *panels =
        grown(chart->panels, chart->count, sizeof *panels);
    if (!panels) {
        fail(chart, TD_ERR_NOMEM);
        return;
    }
    chart->panels = panels;
    td_chart_panel_data *added = &panels[chart->count++];
    *added = (td_chart_panel_data){.about = *panel};
    bool copied = copy_text(panel->title, &added->about.title);
    copied &= copy_text(panel->x_label, &added->about.x_label);
    copied &= copy_text(panel->y_label, &added->about.y_label);
    if (!copied) fail(chart, TD_ERR_NOMEM);
}

void td_chart_add_series(td_chart *chart, const td_chart_series *series)
{
    if (chart->count == 0) {
        fail(chart, TD_ERR_INVALID);
        return;
    }
    td_chart_panel_data *panel = &chart->panels[chart->count - 1];
    td_chart_series_data *all = grown(panel->series, panel->count, sizeof *all);
    if (!all) {
        fail(chart, TD_ERR_NOMEM);
        return;
    }
    panel->series = all;
    td_chart_series_data *added = &all[panel->count++];
    *added = (td_chart_series_data){.about = *series};
    if (!copy_text(series->label, &added->about.label))
        fail(chart, TD_ERR_NOMEM);
}

static td_chart_series_data *newest_series(const td_chart *chart)
{
    if (chart->count == 0) return NULL;
    const td_chart_panel_data *panel = &chart->panels[chart->count - 1];
    return panel->count ? &panel->series[panel->count - 1] : NULL;
}

void td_chart_add_span(td_chart *chart, double x, double x_end, double y)
{
    td_chart_series_data *series = newest_series(chart);
    if (!series) {
        fail(chart, TD_ERR_INVALID);
        return;
    }
    td_chart_span *spans = grown(series->spans, series->count, sizeof *spans);
    if (!spans) {
        fail(chart, TD_ERR_NOMEM);
        return;
    }
    series->spans = spans;
    spans[series->count++] = (td_chart_span){x, x_end, y};
}

void td_chart_add_point(td_chart *chart, double x, double y)
{
    td_chart_add_span(chart, x, x, y);
}

static bool is_x_log(const td_chart *chart)
{
    size_t i = chart->count;
    while (i > 1 && !chart->panels[i - 1].about.x_label)
        i--;
    return i > 0 && chart->panels[i - 1].about.x_log;
}

static td_chart_axis axis_over(const double *values, size_t count, bool log_x)
{
    double lo = INFINITY;
    double hi = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        if (!td_chart_axis_shows(log_x, values[i])) continue;
        lo = fmin(lo, values[i]);
        hi = fmax(hi, values[i]);
    }
    return td_chart_axis_of(lo, hi, log_x);
}

void td_chart_add_histogram(td_chart *chart, const double *values, size_t count)
{
    bool log_x = is_x_log(chart);
    td_chart_axis axis = axis_over(values, count, log_x);
    double bins = fmin(fmax(sqrt((double)count), MIN_BINS), MAX_BINS);
    size_t bin_count = (size_t)bins;
    uint64_t counts[MAX_BINS] = {0};
    for (size_t i = 0; i < count; i++) {
        if (!td_chart_axis_shows(log_x, values[i])) continue;
        double share = td_chart_axis_share(&axis, values[i]);
        size_t bin = (size_t)(fmax(share, 0) * (double)bin_count);
        counts[bin < bin_count ? bin : bin_count - 1]++;
    }
    for (size_t i = 0; i < bin_count; i++)
        if (counts[i])
            td_chart_add_span(
                chart,
                td_chart_axis_value(&axis, (double)i / (double)bin_count),
                td_chart_axis_value(&axis, (double)(i + 1) / (double)bin_count),
                (double)counts[i]);
}

static td_err write_file(const td_chart *chart, const char *path,
                         td_errinfo *info)
{
    FILE *file = fopen(path, "we");
    if (!file) return td_fail(info, TD_ERR_IO, "%s: %s", path, strerror(errno));
    td_err err = td_chart_write(chart, file);
    int failed = errno;
    if (fclose(file) != 0 && err == TD_OK) {
        err = TD_ERR_IO;
        failed = errno;
    }
    if (err == TD_OK) return TD_OK;

    (void)unlink(path);
    return td_fail(info, err, "%s: %s", path,
                   err == TD_ERR_IO ? strerror(failed) : td_err_text(err));
}

td_err td_chart_save(const td_chart *chart, const char *dir, const char *name,
                     td_errinfo *info)
{
    char path[PATH_MAX];
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return td_fail(info, TD_ERR_IO, "%s: %s", dir, strerror(errno));
    int size = snprintf(path, sizeof path, "%s/%s", dir, name);
    if (size < 0 || (size_t)size >= sizeof path)
        return td_fail(info, TD_ERR_IO, "%s: the path is too long", dir);
    return write_file(chart, path, info);
}

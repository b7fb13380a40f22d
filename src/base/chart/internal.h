// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_CHART_INTERNAL_H
#define TD_BASE_CHART_INTERNAL_H

// What a chart is made of. Private to base/chart.

#include "base/chart/axis.h"
#include "base/chart/chart.h"

// A point is a span from x to x.
typedef struct td_chart_span {
    double x, x_end, y;
} td_chart_span;

typedef struct td_chart_series_data {
    td_chart_series about; // its label is owned
    td_chart_span *spans;
    size_t count;
} td_chart_series_data;

typedef struct td_chart_panel_data {
    td_chart_panel about; // its texts are owned
    td_chart_series_data *series;
    size_t count;
} td_chart_panel_data;

struct td_chart {
    char *title;
    char *subtitle; // NULL: none
    td_chart_panel_data *panels;
    size_t count;
    td_err err; // the first failure to add
};

// Where the values of a panel come to lie.
typedef struct td_chart_frame {
    td_chart_axis x, y;
    double left, top, width, height; // in pixels
} td_chart_frame;

// path.c: one <path> for the whole series, none if there is nothing to draw.
void td_chart_path_write(const td_chart_series_data *series,
                         const td_chart_frame *frame, FILE *file);

// A sample of the series for the legend, some 18 pixels wide, its middle left
// edge at (x, y).
void td_chart_path_sample(const td_chart_series *series, double x, double y,
                          FILE *file);

#endif

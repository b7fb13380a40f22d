// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_CHART_CHART_H
#define TD_BASE_CHART_CHART_H

// Charts as SVG: panels below each other, each with series of lines, marks,
// bars or bands.
//
// A chart is built from top to bottom: a panel, a series in it, the points of
// that series, the next series. Everything added is copied. Adding returns
// nothing; the first failure is kept, and td_chart_write() returns it. One
// thread at a time, and never a real-time one: adding allocates.
//
// A value that is not finite (or beyond 1e100, or not above 0 on a logarithmic
// axis) is a gap. However many points a series has, at most a few are drawn in
// one column of pixels, the lowest and the highest always among them. Equal
// charts are equal files.

#include "base/err.h"

#include <stdbool.h>
#include <stdio.h>

typedef enum td_chart_style {
    TD_CHART_LINE,
    TD_CHART_THIN,  // a line that stays in the background
    TD_CHART_STEPS, // a value holds until the next one
    TD_CHART_DOTS,
    TD_CHART_CROSSES,
    TD_CHART_TRIANGLES,
    TD_CHART_BARS,  // from x to x_end, from 0 to y
    TD_CHART_SPANS, // from x to x_end, at y
    TD_CHART_BANDS, // from x to x_end, from top to bottom
    TD_CHART_STYLE_COUNT,
} td_chart_style;

// Of Okabe and Ito's palette, those that stand out on white and on black.
typedef enum td_chart_colour {
    TD_CHART_BLUE,
    TD_CHART_ORANGE,
    TD_CHART_GREEN,
    TD_CHART_VERMILION,
    TD_CHART_PURPLE,
    TD_CHART_SKY,
    TD_CHART_GREY,
    TD_CHART_COLOUR_COUNT,
} td_chart_colour;

typedef struct td_chart_panel {
    const char *title;   // NULL: none
    const char *x_label; // with its unit; NULL: shares the x axis above
    const char *y_label; // with its unit; NULL: none
    uint32_t height_px;  // 0: 160
    bool x_log;          // counts where x_label does
    bool x_doubles;      // likewise, with x_log: ticks at x, 2 x, 4 x and so on
    bool y_log;
    bool y_from_zero; // not with y_log
} td_chart_panel;

typedef struct td_chart_series {
    const char *label; // in the legend; NULL: not there
    td_chart_style style;
    td_chart_colour colour;
} td_chart_series;

typedef struct td_chart td_chart;

// `title` says what one looks at, `subtitle` (NULL: none) what came out; both
// are broken into lines as needed, and where they say so. Owned by the caller.
// NOMEM.
TD_NODISCARD td_err td_chart_new(const char *title, const char *subtitle,
                                 td_chart **ret_chart);
void td_chart_free(td_chart *chart);
TD_AUTO_FREE(td_chart, td_chart_free)

void td_chart_add_panel(td_chart *chart, const td_chart_panel *panel);

// To the newest panel. Later series are drawn over earlier ones.
void td_chart_add_series(td_chart *chart, const td_chart_series *series);

// To the newest series; x ascends.
void td_chart_add_point(td_chart *chart, double x, double y);

// To the newest series, of bars, spans or bands (whose y does not matter).
void td_chart_add_span(td_chart *chart, double x, double x_end, double y);

// Sorts `values` into bars of equal width on the panel's x axis, and adds them
// to the newest series. Those that the axis cannot show are left out.
void td_chart_add_histogram(td_chart *chart, const double *values,
                            size_t count);

// Writes the chart and flushes. Blocks. IO; NOMEM or INVALID (a point without a
// series, a series without a panel) from when it was built.
TD_NODISCARD td_err td_chart_write(const td_chart *chart, FILE *file);

// Writes it to dir/name; the directory is made if it is not there, a file of
// that name is replaced. Blocks. As td_chart_write(), with the path and what
// was wrong with it.
TD_NODISCARD td_err td_chart_save(const td_chart *chart, const char *dir,
                                  const char *name, td_errinfo *info);

#endif

// SPDX-License-Identifier: Apache-2.0
// A series as one SVG path: lines, steps, marks, bars, spans and bands.
//
// What falls into one column of pixels is thinned to its first, lowest, highest
// and last place, in the order in which they came, so that a file stays small
// however many values there are and no extreme is lost. A value that its axis
// cannot show is a gap: a new line begins after it. A line begins with a
// stroke of no length, which alone is a dot.
//
// Of bars, spans and bands those that touch become one, and what would be too
// thin to see has a least width. `styles` has how each style is drawn, one row
// a style.
//
// Pure but for the stream that is written to; the output depends on the values
// alone.
#include "base/chart/internal.h"
#include "base/chart/svg.h"

#include <math.h>

enum {
    SPAN_PX = 6, // height of a span
    BAR_GAP_PX = 1,
    MIN_WIDTH_PX = 2, // of what would be too thin to see
    SAMPLE_PX = 18,
    SAMPLE_HEIGHT_PX = 8,
};

enum kind { JOINED, APART, AREA };

static const struct {
    enum kind kind;
    const char *place;  // at # #
    const char *colour; // the attribute that takes it
    const char *looks;
} styles[TD_CHART_STYLE_COUNT] = {
    [TD_CHART_LINE] = {JOINED, "L# #", "stroke",
                       "fill=\"none\" stroke-width=\"1.5\""},
    [TD_CHART_THIN] = {JOINED, "L# #", "stroke",
                       "fill=\"none\" stroke-width=\"1\" opacity=\".8\""},
    [TD_CHART_STEPS] = {JOINED, "H#V#", "stroke",
                        "fill=\"none\" stroke-width=\"1.5\""},
    [TD_CHART_DOTS] = {APART, "M# #h0", "stroke",
                       "fill=\"none\" stroke-width=\"5\""},
    [TD_CHART_CROSSES] = {APART, "M# #m-3-3l6 6m0-6l-6 6", "stroke",
                          "fill=\"none\" stroke-width=\"1.5\""},
    [TD_CHART_TRIANGLES] = {APART, "M# #m0-4l4 7h-8z", "fill", ""},
    [TD_CHART_BARS] = {AREA, NULL, "fill", "opacity=\".85\""},
    [TD_CHART_SPANS] = {AREA, NULL, "fill", ""},
    [TD_CHART_BANDS] = {AREA, NULL, "fill", "opacity=\".25\""},
};

static const char *const colours[TD_CHART_COLOUR_COUNT] = {
    [TD_CHART_BLUE] = "#0072b2",   [TD_CHART_ORANGE] = "#e69f00",
    [TD_CHART_GREEN] = "#009e73",  [TD_CHART_VERMILION] = "#d55e00",
    [TD_CHART_PURPLE] = "#cc79a7", [TD_CHART_SKY] = "#56b4e9",
    [TD_CHART_GREY] = "#8c8c8c",
};

struct place {
    double x, y;
};

// Writes the <path> when its first piece comes.
struct pen {
    const td_chart_series *series;
    FILE *file;
    bool begun;
    bool down; // a line is being drawn
};

static void begin(struct pen *pen)
{
    if (pen->begun) return;
    pen->begun = true;
    fprintf(pen->file, "<path %s=\"%s\" %s d=\"",
            styles[pen->series->style].colour, colours[pen->series->colour],
            styles[pen->series->style].looks);
}

static void end(const struct pen *pen)
{
    if (pen->begun) fputs("\"/>\n", pen->file);
}

// A line begins with a stroke of no length: alone, it is a dot.
static void put_place(struct pen *pen, struct place at)
{
    begin(pen);
    bool joined = styles[pen->series->style].kind == JOINED;
    const char *shape =
        joined && !pen->down ? "M# #h0" : styles[pen->series->style].place;
    td_chart_svg_shape(shape, (double[]){at.x, at.y}, pen->file);
    pen->down = true;
}

struct area {
    double left, top, right, bottom;
};

static void put_area(struct pen *pen, struct area at)
{
    begin(pen);
    td_chart_svg_shape(
        "M# #H#V#H#z",
        (double[]){at.left, at.top, at.right, at.bottom, at.left}, pen->file);
}

// What fell into one column of pixels so far.
struct column {
    size_t count;
    double at;
    bool gap; // after the last place
    struct place first, low, high, last;
    size_t low_at, high_at; // their numbers within the column
};

static void column_add(struct column *column, struct place at)
{
    size_t i = column->count++;
    column->gap = false;
    column->last = at;
    if (i == 0) column->first = at;
    if (i == 0 || at.y < column->low.y) {
        column->low = at;
        column->low_at = i;
    }
    if (i == 0 || at.y > column->high.y) {
        column->high = at;
        column->high_at = i;
    }
}

static void column_put(const struct column *column, struct pen *pen)
{
    if (column->count == 0) return;
    bool low_first = column->low_at <= column->high_at;
    size_t at[] = {0, low_first ? column->low_at : column->high_at,
                   low_first ? column->high_at : column->low_at,
                   column->count - 1};
    struct place places[] = {
        column->first, low_first ? column->low : column->high,
        low_first ? column->high : column->low, column->last};
    for (size_t i = 0; i < TD_COUNT_OF(places); i++)
        if (i == 0 || at[i] > at[i - 1]) put_place(pen, places[i]);
    if (column->gap) pen->down = false;
}

static double x_px(const td_chart_frame *frame, double x)
{
    return frame->left + td_chart_axis_share(&frame->x, x) * frame->width;
}

static double y_px(const td_chart_frame *frame, double y)
{
    return frame->top + (1 - td_chart_axis_share(&frame->y, y)) * frame->height;
}

static bool is_shown(const td_chart_series_data *series,
                     const td_chart_frame *frame, const td_chart_span *span)
{
    return td_chart_axis_shows(frame->x.log, span->x) &&
           td_chart_axis_shows(frame->x.log, span->x_end) &&
           (series->about.style == TD_CHART_BANDS ||
            td_chart_axis_shows(frame->y.log, span->y));
}

static void put_places(const td_chart_series_data *series,
                       const td_chart_frame *frame, struct pen *pen)
{
    struct column column = {0};
    for (size_t i = 0; i < series->count; i++) {
        const td_chart_span *span = &series->spans[i];
        if (!is_shown(series, frame, span)) {
            column.gap = true;
            continue;
        }
        struct place at = {x_px(frame, span->x), y_px(frame, span->y)};
        if (column.count && floor(at.x) != column.at) {
            column_put(&column, pen);
            column.count = 0;
        }
        column.at = floor(at.x);
        column_add(&column, at);
    }
    column_put(&column, pen);
}

static struct area area_of(const td_chart_series_data *series,
                           const td_chart_frame *frame,
                           const td_chart_span *span)
{
    struct area at = {x_px(frame, span->x), frame->top,
                      x_px(frame, span->x_end), frame->top + frame->height};
    if (series->about.style == TD_CHART_BARS) {
        double base = fmin(fmax(0, frame->y.lo), frame->y.hi);
        at.top = y_px(frame, fmax(span->y, base));
        at.bottom = y_px(frame, fmin(span->y, base));
        at.right -= BAR_GAP_PX;
    } else if (series->about.style == TD_CHART_SPANS) {
        at.top = y_px(frame, span->y) - SPAN_PX / 2.0;
        at.bottom = at.top + SPAN_PX;
    }
    at.right = fmax(at.right, at.left + MIN_WIDTH_PX);
    return at;
}

static bool touch(struct area a, struct area b)
{
    return fabs(a.top - b.top) < 0.05 && fabs(a.bottom - b.bottom) < 0.05 &&
           b.left >= a.left && b.left <= a.right + 0.5;
}

// Those that touch become one.
static void put_areas(const td_chart_series_data *series,
                      const td_chart_frame *frame, struct pen *pen)
{
    bool waits = false;
    struct area waiting = {0};
    for (size_t i = 0; i < series->count; i++) {
        const td_chart_span *span = &series->spans[i];
        if (!is_shown(series, frame, span)) continue;
        struct area at = area_of(series, frame, span);
        if (waits && touch(waiting, at)) {
            waiting.right = fmax(waiting.right, at.right);
            continue;
        }
        if (waits) put_area(pen, waiting);
        waiting = at;
        waits = true;
    }
    if (waits) put_area(pen, waiting);
}

void td_chart_path_write(const td_chart_series_data *series,
                         const td_chart_frame *frame, FILE *file)
{
    struct pen pen = {.series = &series->about, .file = file};
    if (styles[series->about.style].kind == AREA)
        put_areas(series, frame, &pen);
    else
        put_places(series, frame, &pen);
    end(&pen);
}

void td_chart_path_sample(const td_chart_series *series, double x, double y,
                          FILE *file)
{
    struct pen pen = {.series = series, .file = file};
    switch (styles[series->style].kind) {
    case JOINED:
        put_place(&pen, (struct place){x, y});
        put_place(&pen, (struct place){x + SAMPLE_PX, y});
        break;
    case APART:
        put_place(&pen, (struct place){x + SAMPLE_PX / 2.0, y});
        break;
    case AREA:
        put_area(&pen,
                 (struct area){x, y - SAMPLE_HEIGHT_PX / 2.0, x + SAMPLE_PX,
                               y + SAMPLE_HEIGHT_PX / 2.0});
        break;
    }
    end(&pen);
}

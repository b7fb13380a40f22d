// SPDX-License-Identifier: Apache-2.0
// The layout of a chart: title, subtitle, then the panels, each with its own
// title and legend; the labels of an x axis stand under the last panel that
// shares it.
//
// Heights are known before anything is drawn, so that the size of the picture
// can stand in its first line. The width of a text is a guess from its number
// of characters, since the font is the viewer's.
//
// Texts are escaped. Writing returns nothing and fails only with its stream,
// which the caller asks at the end. The series themselves are drawn by
// chart/path.c, the ticks and labels of axes come from chart/axis.c.
#include "base/chart/internal.h"
#include "base/chart/svg.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 960,
    LEFT = 76, // of a frame
    FRAME_WIDTH = WIDTH - LEFT - 24,
    EDGE = 16, // of the page
    TITLE_LINE = 24,
    TITLE_CHARS = 84,
    SUBTITLE_LINE = 17,
    SUBTITLE_CHARS = 136,
    HEAD_LINE = 18, // of a panel's title and of its legend
    LEGEND_CHAR = 7,
    LEGEND_GAP = 22,
    SAMPLE = 24,
    FRAME_HEIGHT = 160,
    X_LABELS = 38, // ticks and label
    PANEL_GAP = 16,
    X_TICKS = 11,
    Y_TICK_PX = 28, // one tick at most in so many
    MAX_Y_TICKS = 12,
};

static const char style_sheet[] =
    "<style>\n"
    "text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',"
    "sans-serif;font-size:12px;fill:#222}\n"
    ".title{font-size:19px;font-weight:600}\n"
    ".head{font-size:13px;font-weight:600}\n"
    ".quiet{fill:#555}\n"
    ".end{text-anchor:end}\n"
    ".middle{text-anchor:middle}\n"
    ".paper{fill:#fff}\n"
    ".grid{stroke:#ddd;stroke-width:1;fill:none}\n"
    ".frame{stroke:#888;stroke-width:1;fill:none}\n"
    "@media (prefers-color-scheme:dark){\n"
    "text{fill:#eee}\n"
    ".quiet{fill:#bbb}\n"
    ".paper{fill:#16181c}\n"
    ".grid{stroke:#333}\n"
    "}\n"
    "</style>\n";

static void put_text_at(const char *place, const char *class, const char *text,
                        size_t bytes, FILE *file)
{
    fprintf(file, "<text %s class=\"%s\">", place, class);
    td_chart_svg_text(text, bytes, file);
    fputs("</text>\n", file);
}

static void put_text(double x, double y, const char *class, const char *text,
                     size_t bytes, FILE *file)
{
    char place[80];
    (void)snprintf(place, sizeof place, "x=\"%ld\" y=\"%ld\"", lround(x),
                   lround(y));
    put_text_at(place, class, text, bytes, file);
}

// How much of `text` goes on a line: up to its end, or the last space that
// fits.
static size_t line_bytes(const char *text, size_t chars)
{
    size_t size = strcspn(text, "\n");
    if (td_chart_svg_length(text, size) <= chars) return size;
    size_t fits = 0;
    for (size_t i = 1; i < size; i++)
        if (text[i] == ' ' && td_chart_svg_length(text, i) <= chars) fits = i;
    return fits ? fits : size;
}

// Returns the height of `text` in lines; draws it unless `file` is NULL.
static double put_lines(double y, const char *class, const char *text,
                        double line_px, size_t chars, FILE *file)
{
    double height = 0;
    while (text && *text) {
        size_t bytes = line_bytes(text, chars);
        height += line_px;
        if (file) put_text(EDGE, y + height - 4, class, text, bytes, file);
        text += bytes;
        text += strspn(text, " \n");
    }
    return height;
}

static double put_titles(const td_chart *chart, FILE *file)
{
    double y = EDGE / 2.0;
    y += put_lines(y, "title", chart->title, TITLE_LINE, TITLE_CHARS, file);
    y += put_lines(y, "quiet", chart->subtitle, SUBTITLE_LINE, SUBTITLE_CHARS,
                   file);
    return y + PANEL_GAP;
}

static double label_width(const char *label)
{
    size_t length = td_chart_svg_length(label, strlen(label));
    return SAMPLE + LEGEND_CHAR * (double)length + LEGEND_GAP;
}

// Returns its height; draws it unless `file` is NULL.
static double put_legend(const td_chart_panel_data *panel, double y, FILE *file)
{
    double height = 0;
    double x = WIDTH;
    for (size_t i = 0; i < panel->count; i++) {
        const td_chart_series *about = &panel->series[i].about;
        if (!about->label) continue;
        double width = label_width(about->label);
        if (height == 0 || x + width > LEFT + FRAME_WIDTH) {
            x = LEFT;
            height += HEAD_LINE;
        }
        if (file) {
            td_chart_path_sample(about, x, y + height - 10, file);
            put_text(x + SAMPLE, y + height - 6, "quiet", about->label,
                     strlen(about->label), file);
        }
        x += width;
    }
    return height;
}

static double put_head(const td_chart_panel_data *panel, double y, FILE *file)
{
    double height = 0;
    if (panel->about.title) {
        height = HEAD_LINE;
        if (file)
            put_text(LEFT, y + height - 6, "head", panel->about.title,
                     strlen(panel->about.title), file);
    }
    return height + put_legend(panel, y + height, file);
}

static double frame_height(const td_chart_panel_data *panel)
{
    return panel->about.height_px ? panel->about.height_px : FRAME_HEIGHT;
}

// Whether the x axis of panel `i` ends with it.
static bool ends_axis(const td_chart *chart, size_t i)
{
    return i + 1 == chart->count || chart->panels[i + 1].about.x_label;
}

static double page_height(const td_chart *chart)
{
    double y = put_titles(chart, NULL);
    for (size_t i = 0; i < chart->count; i++) {
        const td_chart_panel_data *panel = &chart->panels[i];
        y += put_head(panel, 0, NULL) + frame_height(panel) + PANEL_GAP;
        if (ends_axis(chart, i)) y += X_LABELS;
    }
    return y;
}

struct range {
    double lo, hi;
};

static void cover(struct range *range, bool log_axis, double value)
{
    if (!td_chart_axis_shows(log_axis, value)) return;
    range->lo = fmin(range->lo, value);
    range->hi = fmax(range->hi, value);
}

// The axis that panel `from` and those after it share.
static td_chart_axis x_axis(const td_chart *chart, size_t from)
{
    struct range range = {INFINITY, -INFINITY};
    bool log_x = chart->panels[from].about.x_log;
    size_t i = from;
    do {
        const td_chart_panel_data *panel = &chart->panels[i];
        for (size_t s = 0; s < panel->count; s++)
            for (size_t k = 0; k < panel->series[s].count; k++) {
                cover(&range, log_x, panel->series[s].spans[k].x);
                cover(&range, log_x, panel->series[s].spans[k].x_end);
            }
    } while (!ends_axis(chart, i++));
    td_chart_axis axis = td_chart_axis_of(range.lo, range.hi, log_x);
    axis.doubles = chart->panels[from].about.x_doubles;
    return axis;
}

static size_t y_ticks(double height)
{
    double ticks = 2 + floor(height / Y_TICK_PX);
    return (size_t)fmin(ticks, MAX_Y_TICKS);
}

static td_chart_axis y_axis(const td_chart_panel_data *panel)
{
    struct range range = {INFINITY, -INFINITY};
    bool log_y = panel->about.y_log;
    for (size_t s = 0; s < panel->count; s++) {
        const td_chart_series_data *series = &panel->series[s];
        if (series->about.style == TD_CHART_BANDS) continue;
        if (series->about.style == TD_CHART_BARS && series->count)
            cover(&range, log_y, 0);
        for (size_t k = 0; k < series->count; k++)
            cover(&range, log_y, series->spans[k].y);
    }
    if (panel->about.y_from_zero && range.lo <= range.hi)
        cover(&range, log_y, 0);
    td_chart_axis axis = td_chart_axis_of(range.lo, range.hi, log_y);
    td_chart_axis_widen(&axis, y_ticks(frame_height(panel)));
    return axis;
}

static void put_grid(const td_chart_frame *frame, bool across, double share,
                     FILE *file)
{
    double x = frame->left + share * frame->width;
    double y = frame->top + (1 - share) * frame->height;
    fputs("<path class=\"grid\" d=\"", file);
    if (across)
        td_chart_svg_shape("M# #h#", (double[]){frame->left, y, frame->width},
                           file);
    else
        td_chart_svg_shape("M# #v#", (double[]){x, frame->top, frame->height},
                           file);
    fputs("\"/>\n", file);
}

static void put_y_ticks(const td_chart_frame *frame, FILE *file)
{
    td_chart_tick ticks[MAX_Y_TICKS];
    size_t count =
        td_chart_axis_ticks(&frame->y, y_ticks(frame->height), ticks);
    for (size_t i = 0; i < count; i++) {
        char label[TD_CHART_LABEL_BYTES];
        td_chart_tick_label(ticks[i], label);
        double share =
            td_chart_axis_share(&frame->y, td_chart_tick_value(ticks[i]));
        put_grid(frame, true, share, file);
        put_text(frame->left - 6, frame->top + (1 - share) * frame->height + 4,
                 "quiet end", label, strlen(label), file);
    }
}

static void put_x_ticks(const td_chart_frame *frame, bool labels, FILE *file)
{
    td_chart_tick ticks[X_TICKS];
    size_t count = td_chart_axis_ticks(&frame->x, X_TICKS, ticks);
    for (size_t i = 0; i < count; i++) {
        char label[TD_CHART_LABEL_BYTES];
        td_chart_tick_label(ticks[i], label);
        double share =
            td_chart_axis_share(&frame->x, td_chart_tick_value(ticks[i]));
        put_grid(frame, false, share, file);
        if (labels)
            put_text(frame->left + share * frame->width,
                     frame->top + frame->height + 16, "quiet middle", label,
                     strlen(label), file);
    }
}

static void put_y_label(const td_chart_frame *frame, const char *label,
                        FILE *file)
{
    if (!label) return;
    char place[80];
    (void)snprintf(place, sizeof place,
                   "transform=\"translate(18 %ld) rotate(-90)\"",
                   lround(frame->top + frame->height / 2));
    put_text_at(place, "quiet middle", label, strlen(label), file);
}

static void put_frame(const td_chart_frame *frame, FILE *file)
{
    fputs("<path class=\"frame\" d=\"", file);
    td_chart_svg_shape(
        "M# #v#h#",
        (double[]){frame->left, frame->top, frame->height, frame->width}, file);
    fputs("\"/>\n", file);
}

static bool is_empty(const td_chart_panel_data *panel)
{
    for (size_t i = 0; i < panel->count; i++)
        if (panel->series[i].count) return false;
    return true;
}

// Bands alone have no height to read.
static bool has_heights(const td_chart_panel_data *panel)
{
    for (size_t i = 0; i < panel->count; i++)
        if (panel->series[i].count &&
            panel->series[i].about.style != TD_CHART_BANDS)
            return true;
    return false;
}

static void put_panel(const td_chart_panel_data *panel,
                      const td_chart_frame *frame, bool x_labels, FILE *file)
{
    static const char nothing[] = "nothing to show";
    if (has_heights(panel)) put_y_ticks(frame, file);
    put_x_ticks(frame, x_labels, file);
    put_y_label(frame, panel->about.y_label, file);
    for (size_t i = 0; i < panel->count; i++)
        td_chart_path_write(&panel->series[i], frame, file);
    put_frame(frame, file);
    if (is_empty(panel))
        put_text(frame->left + frame->width / 2,
                 frame->top + frame->height / 2 + 4, "quiet middle", nothing,
                 strlen(nothing), file);
}

static void put_x_label(const td_chart_frame *frame, const char *label,
                        FILE *file)
{
    if (label)
        put_text(frame->left + frame->width / 2,
                 frame->top + frame->height + 34, "quiet middle", label,
                 strlen(label), file);
}

static void put_panels(const td_chart *chart, FILE *file)
{
    double y = put_titles(chart, file);
    td_chart_frame frame = {.left = LEFT, .width = FRAME_WIDTH};
    const char *x_label = NULL;
    for (size_t i = 0; i < chart->count; i++) {
        const td_chart_panel_data *panel = &chart->panels[i];
        if (i == 0 || panel->about.x_label) {
            frame.x = x_axis(chart, i);
            x_label = panel->about.x_label;
        }
        bool ends = ends_axis(chart, i);
        y += put_head(panel, y, file);
        frame.y = y_axis(panel);
        frame.top = y;
        frame.height = frame_height(panel);
        put_panel(panel, &frame, ends, file);
        if (ends) put_x_label(&frame, x_label, file);
        y += frame.height + PANEL_GAP + (ends ? X_LABELS : 0);
    }
}

td_err td_chart_write(const td_chart *chart, FILE *file)
{
    if (chart->err != TD_OK) return chart->err;

    long height = lround(page_height(chart));
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %ld\" "
            "width=\"%d\" height=\"%ld\" role=\"img\" stroke-linecap=\"round\" "
            "stroke-linejoin=\"round\">\n<title>",
            WIDTH, height, WIDTH, height);
    td_chart_svg_text(chart->title, strlen(chart->title), file);
    fputs("</title>\n", file);
    fputs(style_sheet, file);
    fputs("<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n", file);
    put_panels(chart, file);
    fputs("</svg>\n", file);
    return fflush(file) == 0 && !ferror(file) ? TD_OK : TD_ERR_IO;
}

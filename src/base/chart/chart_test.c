// SPDX-License-Identifier: Apache-2.0
#include "base/chart/chart.h"

#include "base/chart/wellformed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 1000000 };

static td_chart *new_chart(const char *title)
{
    td_chart *chart = NULL;
    assert_int_equal(td_chart_new(title, "what came out", &chart), TD_OK);
    return chart;
}

static void add_panel(td_chart *chart)
{
    td_chart_add_panel(
        chart, &(td_chart_panel){.x_label = "time (s)", .y_label = "rad"});
}

static void add_series(td_chart *chart, td_chart_style style)
{
    td_chart_add_series(chart,
                        &(td_chart_series){.label = "series", .style = style});
}

// The chart as text, well formed. Owned by the caller.
static char *text_of(const td_chart *chart, size_t *ret_size)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, ret_size);
    assert_non_null(file);
    assert_int_equal(td_chart_write(chart, file), TD_OK);
    assert_int_equal(fclose(file), 0);
    const char *wrong = td_chart_wellformed(text);
    if (wrong) fail_msg("%s", wrong);
    return text;
}

static char *only_text_of(const td_chart *chart)
{
    size_t size;
    return text_of(chart, &size);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        count++;
    return count;
}

// The path of the only series that has no label, drawn last.
static char *last_path_of(const td_chart *chart)
{
    char *text = only_text_of(chart);
    char *path = NULL;
    for (char *at = text; (at = strstr(at, "<path stroke")); at++)
        path = at;
    char *copy = path ? strndup(path, strcspn(path, "\n")) : strdup("");
    free(text);
    return copy;
}

static const struct {
    const char *name;
    const char *text, *written;
} texts[] = {
    {"markup", "a<b>&\"c'", "a&lt;b&gt;&amp;&quot;c&#39;"},
    {"other scripts", "gr\xc3\xb6\xc3\x9f\x65r \xe2\x86\x92 \xf0\x9f\xa6\xbe",
     "gr\xc3\xb6\xc3\x9f\x65r \xe2\x86\x92 \xf0\x9f\xa6\xbe"},
    {"control characters",
     "a\x01"
     "b\x1b[c",
     "a?b?[c"},
    {"broken UTF-8",
     "a\xff"
     "b\xc3"
     "c\xe2\x86",
     "a?b?c??"},
    {"overlong and surrogate", "\xc0\xaf \xed\xa0\x80", "?? ???"},
    {"not a character", "\xef\xbf\xbf", "???"},
};

static void text_is_escaped(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(texts); i++) {
        TD_AUTO(td_chart) *chart = new_chart(texts[i].text);
        td_chart_add_panel(chart, &(td_chart_panel){.title = texts[i].text,
                                                    .x_label = texts[i].text,
                                                    .y_label = texts[i].text});
        td_chart_add_series(chart, &(td_chart_series){.label = texts[i].text});
        char *text = only_text_of(chart);
        if (count_of(text, texts[i].written) != 6)
            fail_msg("%s: %s", texts[i].name, text);
        free(text);
    }
}

static void every_style_draws_something(void **state)
{
    (void)state;
    for (int style = 0; style < TD_CHART_STYLE_COUNT; style++) {
        TD_AUTO(td_chart) *chart = new_chart("title");
        add_panel(chart);
        add_series(chart, (td_chart_style)style);
        char *empty = only_text_of(chart);
        td_chart_add_span(chart, 0, 1, 3);
        td_chart_add_span(chart, 2, 3, 4);
        char *drawn = only_text_of(chart);
        assert_int_equal(count_of(drawn, " d=\"M"),
                         1 + count_of(empty, " d=\"M") -
                             count_of(empty, "class=\"grid\"") +
                             count_of(drawn, "class=\"grid\""));
        free(empty);
        free(drawn);
    }
}

static void chart_without_data_says_so(void **state)
{
    (void)state;
    TD_AUTO(td_chart) *bare = new_chart("title");
    free(only_text_of(bare));

    TD_AUTO(td_chart) *chart = new_chart("title");
    add_panel(chart);
    add_panel(chart);
    add_series(chart, TD_CHART_LINE);
    char *text = only_text_of(chart);
    assert_int_equal(count_of(text, "nothing to show"), 2);
    free(text);
}

static const struct {
    const char *name;
    double y[5];
    size_t count;
    size_t lines; // subpaths
} gaps[] = {
    {"one point", {1}, 1, 1},
    {"no gap", {1, 2, 3}, 3, 1},
    {"NaN", {1, NAN, 3}, 3, 2},
    {"infinity", {1, INFINITY, 3, -INFINITY, 5}, 5, 3},
    {"gap at both ends", {NAN, 2, 3, NAN}, 4, 1},
    {"only gaps", {NAN, NAN}, 2, 0},
};

static void value_that_is_not_finite_is_a_gap(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(gaps); i++) {
        TD_AUTO(td_chart) *chart = new_chart("title");
        add_panel(chart);
        td_chart_add_series(chart, &(td_chart_series){.style = TD_CHART_LINE});
        for (size_t k = 0; k < gaps[i].count; k++)
            td_chart_add_point(chart, (double)k, gaps[i].y[k]);
        char *path = last_path_of(chart);
        if (count_of(path, "M") != gaps[i].lines)
            fail_msg("%s: %s", gaps[i].name, path);
        free(path);
    }
}

static void log_axis_takes_zero_as_a_gap(void **state)
{
    (void)state;
    TD_AUTO(td_chart) *chart = new_chart("title");
    td_chart_add_panel(chart,
                       &(td_chart_panel){.x_label = "time", .y_log = true});
    td_chart_add_series(chart, &(td_chart_series){.style = TD_CHART_LINE});
    td_chart_add_point(chart, 0, 10);
    td_chart_add_point(chart, 1, 0);
    td_chart_add_point(chart, 2, 1000);
    char *path = last_path_of(chart);
    assert_int_equal(count_of(path, "M"), 2);
    free(path);
}

// How often the path reaches the row of pixels `y`.
static size_t count_at(const char *path, int y, td_chart_style style)
{
    char place[32];
    (void)snprintf(place, sizeof place, "%c%d",
                   style == TD_CHART_STEPS ? 'V' : ' ', y);
    return count_of(path, place);
}

// A flat line at 1 with one peak up and one down among a million.
static double peaks_at(int i)
{
    if (i == 123456) return 100;
    return i == 765432 ? -100 : 1;
}

// The frame spans the peaks, and both its edges are touched.
static void thinning_keeps_the_extremes(void **state)
{
    (void)state;
    static const td_chart_style styles[] = {TD_CHART_LINE, TD_CHART_STEPS,
                                            TD_CHART_DOTS};
    for (size_t s = 0; s < TD_COUNT_OF(styles); s++) {
        TD_AUTO(td_chart) *chart = new_chart("title");
        td_chart_add_panel(chart,
                           &(td_chart_panel){.x_label = "x", .height_px = 200});
        td_chart_add_series(chart, &(td_chart_series){.style = styles[s]});
        for (int i = 0; i < MANY; i++)
            td_chart_add_point(chart, i, peaks_at(i));
        char *text = only_text_of(chart);
        char *path = last_path_of(chart);
        int top = 0;
        assert_int_equal(sscanf(strstr(text, "class=\"frame\""),
                                "class=\"frame\" d=\"M76 %d", &top),
                         1);
        if (count_at(path, top, styles[s]) != 1 ||
            count_at(path, top + 200, styles[s]) != 1)
            fail_msg("style %d: %.4000s", styles[s], path);
        free(path);
        free(text);
    }
}

static void huge_series_make_a_small_file(void **state)
{
    (void)state;
    TD_AUTO(td_chart) *chart = new_chart("title");
    for (int p = 0; p < 4; p++) {
        add_panel(chart);
        for (int style = 0; style <= TD_CHART_TRIANGLES; style += 2) {
            add_series(chart, (td_chart_style)style);
            for (int i = 0; i < MANY / 10; i++)
                td_chart_add_point(chart, i,
                                   i % 7 == 3 ? NAN : sin((double)i * i));
        }
        add_series(chart, TD_CHART_BANDS);
        for (int i = 0; i < MANY / 10; i += 2)
            td_chart_add_span(chart, i, i + 1, 0);
    }
    size_t size;
    char *text = text_of(chart, &size);
    assert_in_range(size, 1000, 1000000);
    free(text);
}

static void histogram_counts_every_value_once(void **state)
{
    (void)state;
    for (int log_x = 0; log_x < 2; log_x++) {
        TD_AUTO(td_chart) *chart = new_chart("title");
        td_chart_add_panel(chart,
                           &(td_chart_panel){.x_label = "ms", .x_log = log_x});
        add_series(chart, TD_CHART_BARS);
        // Two heaps at the ends of the range: two bars, the y axis to 300.
        double values[501];
        for (int i = 0; i < 500; i++)
            values[i] = i < 300 ? 1 : 100;
        values[500] = NAN;
        td_chart_add_histogram(chart, values, TD_COUNT_OF(values));
        char *text = only_text_of(chart);
        assert_int_equal(count_of(text, ">300</text>"), 1);
        assert_int_equal(count_of(text, ">350</text>"), 0);
        const char *bars = strstr(text, "opacity=\".85\" d=\"");
        bars = strstr(bars + 1, "opacity=\".85\" d=\"");
        char *path = strndup(bars, strcspn(bars, "\n"));
        assert_int_equal(count_of(path, "M"), 2);
        free(path);
        free(text);
    }
}

static void panels_share_an_x_axis_until_the_next_label(void **state)
{
    (void)state;
    TD_AUTO(td_chart) *chart = new_chart("title");
    const char *labels[] = {"first axis", NULL, "second axis"};
    for (size_t i = 0; i < TD_COUNT_OF(labels); i++) {
        td_chart_add_panel(chart, &(td_chart_panel){.x_label = labels[i]});
        td_chart_add_series(chart, &(td_chart_series){.style = TD_CHART_LINE});
        td_chart_add_point(chart, i == 1 ? 700 : 0, 3);
        td_chart_add_point(chart, i == 1 ? 1000 : 40, 4);
    }
    char *text = only_text_of(chart);
    assert_int_equal(count_of(text, ">1000</text>"), 1);
    assert_int_equal(count_of(text, ">40</text>"), 1);
    assert_int_equal(count_of(text, "first axis"), 1);
    assert_int_equal(count_of(text, "second axis"), 1);
    free(text);
}

static void equal_charts_are_equal_files(void **state)
{
    (void)state;
    char *texts_of[2];
    for (size_t i = 0; i < TD_COUNT_OF(texts_of); i++) {
        TD_AUTO(td_chart) *chart = new_chart("title");
        add_panel(chart);
        add_series(chart, TD_CHART_LINE);
        for (int k = 0; k < 1000; k++)
            td_chart_add_point(chart, k, cos(k));
        texts_of[i] = only_text_of(chart);
    }
    assert_string_equal(texts_of[0], texts_of[1]);
    free(texts_of[0]);
    free(texts_of[1]);
}

static void texts_are_copied(void **state)
{
    (void)state;
    TD_AUTO(td_chart) *chart = new_chart("title");
    char label[] = "before";
    td_chart_add_panel(chart, &(td_chart_panel){.title = label});
    td_chart_add_series(chart, &(td_chart_series){.label = label});
    strcpy(label, "after");
    char *text = only_text_of(chart);
    assert_int_equal(count_of(text, "before"), 2);
    free(text);
}

static void long_subtitle_is_broken_into_lines(void **state)
{
    (void)state;
    char subtitle[400];
    for (size_t i = 0; i < sizeof subtitle - 1; i++)
        subtitle[i] = i % 10 == 9 ? ' ' : 'a';
    subtitle[sizeof subtitle - 1] = 0;
    TD_AUTO(td_chart) *chart = NULL;
    assert_int_equal(td_chart_new("title", subtitle, &chart), TD_OK);
    char *text = only_text_of(chart);
    assert_int_equal(count_of(text, "class=\"quiet\""), 4);
    free(text);
}

static void point_without_a_series_is_refused(void **state)
{
    (void)state;
    TD_AUTO(td_chart) *chart = new_chart("title");
    td_chart_add_point(chart, 1, 2);
    add_panel(chart);
    assert_int_equal(td_chart_write(chart, stderr), TD_ERR_INVALID);

    TD_AUTO(td_chart) *other = new_chart("title");
    add_series(other, TD_CHART_LINE);
    assert_int_equal(td_chart_write(other, stderr), TD_ERR_INVALID);
}

static void full_disk_is_an_error(void **state)
{
    (void)state;
    TD_AUTO(td_chart) *chart = new_chart("title");
    add_panel(chart);
    FILE *full = fopen("/dev/full", "we");
    assert_non_null(full);
    assert_int_equal(td_chart_write(chart, full), TD_ERR_IO);
    if (full) (void)fclose(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_escaped),
        cmocka_unit_test(every_style_draws_something),
        cmocka_unit_test(chart_without_data_says_so),
        cmocka_unit_test(value_that_is_not_finite_is_a_gap),
        cmocka_unit_test(log_axis_takes_zero_as_a_gap),
        cmocka_unit_test(thinning_keeps_the_extremes),
        cmocka_unit_test(huge_series_make_a_small_file),
        cmocka_unit_test(histogram_counts_every_value_once),
        cmocka_unit_test(panels_share_an_x_axis_until_the_next_label),
        cmocka_unit_test(equal_charts_are_equal_files),
        cmocka_unit_test(texts_are_copied),
        cmocka_unit_test(long_subtitle_is_broken_into_lines),
        cmocka_unit_test(point_without_a_series_is_refused),
        cmocka_unit_test(full_disk_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "base/chart/axis.h"

#include "base/err.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 8 };

// The labels of all ticks, joined by spaces.
static void labels_of(const td_chart_axis *axis, char ret_text[256])
{
    td_chart_tick ticks[MOST];
    size_t count = td_chart_axis_ticks(axis, MOST, ticks);
    int size = 0;
    for (size_t i = 0; i < count; i++) {
        char label[TD_CHART_LABEL_BYTES];
        td_chart_tick_label(ticks[i], label);
        size += snprintf(ret_text + size, 256 - (size_t)size, "%s%s",
                         i ? " " : "", label);
    }
}

static const struct {
    const char *name;
    double lo, hi;
    bool log, widen;
    const char *labels;
} cases[] = {
    {"whole numbers", 0, 10, false, false, "0 2 4 6 8 10"},
    {"within the range", 0.3, 9.7, false, false, "2 4 6 8"},
    {"widened", 0.3, 9.7, false, true, "0 2 4 6 8 10"},
    {"tenths", -0.2, 0.31, false, false, "-0.2 -0.1 0 0.1 0.2 0.3"},
    {"below minus one", -1.5, -1.1, false, false, "-1.5 -1.4 -1.3 -1.2 -1.1"},
    {"hundredths far from 0", 100.01, 100.05, false, false,
     "100.01 100.02 100.03 100.04 100.05"},
    {"thousands", 0, 30000, false, false,
     "0 5000 10000 15000 20000 25000 30000"},
    {"huge", 0, 4e12, false, false, "0 1e12 2e12 3e12 4e12"},
    {"tiny", 0, 4e-9, false, false, "0 1e-9 2e-9 3e-9 4e-9"},
    {"one value", 5, 5, false, true, "4.4 4.6 4.8 5.0 5.2 5.4 5.6"},
    {"zero alone", 0, 0, false, false, "0 0.2 0.4 0.6 0.8 1.0"},
    {"nothing", INFINITY, -INFINITY, false, false, "0 0.2 0.4 0.6 0.8 1.0"},
    {"a decade", 1, 10, true, false, "1 2 5 10"},
    {"decades", 0.01, 1000, true, false, "0.01 0.1 1 10 100 1000"},
    {"many decades", 1e-6, 1e10, true, false,
     "0.000001 0.001 1 1000 1000000 1e9"},
    {"less than a decade", 30, 45, true, false, "30 35 40 45"},
    {"log, widened", 3, 700, true, true, "1 10 100 1000"},
    {"log, one value", 4, 4, true, true, "1 2 5 10"},
    {"log, nothing", INFINITY, -INFINITY, true, false, "1 2 5 10"},
};

static void ticks_stand_at_round_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_chart_axis axis =
            td_chart_axis_of(cases[i].lo, cases[i].hi, cases[i].log);
        if (cases[i].widen) td_chart_axis_widen(&axis, MOST);
        char labels[256];
        labels_of(&axis, labels);
        if (strcmp(labels, cases[i].labels) != 0)
            fail_msg("%s: %s", cases[i].name, labels);
    }
}

static void ticks_may_double_from_the_first_value(void **state)
{
    (void)state;
    static const struct {
        double lo, hi;
        const char *labels;
    } rows[] = {{8, 64, "8 16 32 64"},
                {1, 16, "1 2 4 8 16"},
                {1e-9, 4, "1 2 4"},
                {1e90, 1e91, ""}};
    for (size_t i = 0; i < TD_COUNT_OF(rows); i++) {
        char labels[256] = "";
        td_chart_axis axis = td_chart_axis_of(rows[i].lo, rows[i].hi, true);
        axis.doubles = true;
        labels_of(&axis, labels);
        assert_string_equal(labels, rows[i].labels);
    }
}

static void share_and_value_are_inverse(void **state)
{
    (void)state;
    const td_chart_axis axes[] = {{.lo = -3, .hi = 12},
                                  {.lo = 0.1, .hi = 500, .log = true}};
    for (size_t i = 0; i < TD_COUNT_OF(axes); i++) {
        assert_float_equal(td_chart_axis_share(&axes[i], axes[i].lo), 0, 1e-9);
        assert_float_equal(td_chart_axis_share(&axes[i], axes[i].hi), 1, 1e-9);
        double value = td_chart_axis_value(&axes[i], 0.3);
        assert_float_equal(td_chart_axis_share(&axes[i], value), 0.3, 1e-9);
    }
}

static void what_cannot_be_placed_is_not_shown(void **state)
{
    (void)state;
    assert_true(td_chart_axis_shows(false, -7));
    assert_true(td_chart_axis_shows(true, 7));
    assert_false(td_chart_axis_shows(true, 0));
    assert_false(td_chart_axis_shows(true, -7));
    assert_false(td_chart_axis_shows(false, NAN));
    assert_false(td_chart_axis_shows(false, INFINITY));
    assert_false(td_chart_axis_shows(false, -1e200));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_stand_at_round_values),
        cmocka_unit_test(ticks_may_double_from_the_first_value),
        cmocka_unit_test(share_and_value_are_inverse),
        cmocka_unit_test(what_cannot_be_placed_is_not_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

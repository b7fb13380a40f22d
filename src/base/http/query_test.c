// SPDX-License-Identifier: Apache-2.0
#include "base/http/query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

static td_query parsed(const char *text)
{
    td_query query = {0};
    td_errinfo info = {""};
    if (td_query_parse(text, strlen(text), &query, &info) != TD_OK)
        fail_msg("%s: %s", text, info.text);
    return query;
}

static void parameters_are_decoded(void **state)
{
    (void)state;
    td_query query = parsed("a=1&b=x%20y+z%26%3d&c=&d==");
    assert_int_equal(query.count, 4);
    assert_string_equal(td_query_text(&query, "a"), "1");
    assert_string_equal(td_query_text(&query, "b"), "x y z&=");
    assert_string_equal(td_query_text(&query, "c"), "");
    assert_string_equal(td_query_text(&query, "d"), "=");
    assert_null(td_query_text(&query, "e"));
}

static void nothing_is_no_parameter(void **state)
{
    (void)state;
    assert_int_equal(parsed("").count, 0);
    assert_int_equal(parsed("a=1&").count, 1);
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *text;
        td_err err;
        const char *says;
    } cases[] = {
        {"window", TD_ERR_FORMAT, "name=value"},
        {"=1", TD_ERR_FORMAT, "name=value"},
        {"&a=1", TD_ERR_FORMAT, "name=value"},
        {"a&b=1", TD_ERR_FORMAT, "name=value"},
        {"a=1&a=2", TD_ERR_FORMAT, "a: is there twice"},
        {"a=%", TD_ERR_FORMAT, "two hex digits"},
        {"a=%4", TD_ERR_FORMAT, "two hex digits"},
        {"a=%4g", TD_ERR_FORMAT, "two hex digits"},
        {"a=%00", TD_ERR_FORMAT, "control character"},
        {"a=%0a", TD_ERR_FORMAT, "control character"},
        {"a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1", TD_ERR_LIMIT, "at most 8"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=1", TD_ERR_LIMIT, "at most 32"},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_query query = {.count = 77};
        td_errinfo info = {""};
        td_err err =
            td_query_parse(cases[i].text, strlen(cases[i].text), &query, &info);
        if (err != cases[i].err || !strstr(info.text, cases[i].says))
            fail_msg("%s: %s", cases[i].text, info.text);
        assert_int_equal(query.count, 77);
    }
}

static void a_value_has_a_limit(void **state)
{
    (void)state;
    char text[2 + TD_QUERY_MAX_TEXT + 1] = "a=";
    memset(text + 2, 'x', TD_QUERY_MAX_TEXT + 1);
    td_query query;
    td_errinfo info;
    assert_int_equal(td_query_parse(text, sizeof text - 1, &query, &info),
                     TD_OK);
    assert_int_equal(strlen(td_query_text(&query, "a")), TD_QUERY_MAX_TEXT);
    assert_int_equal(td_query_parse(text, sizeof text, &query, &info),
                     TD_ERR_LIMIT);
}

static void strange_parameters_are_refused(void **state)
{
    static const char *const names[] = {"window", "model", NULL};
    (void)state;
    td_errinfo info;
    td_query query = parsed("window=1&model=act");
    assert_int_equal(td_query_only(&query, names, &info), TD_OK);
    query = parsed("window=1&modle=act");
    assert_int_equal(td_query_only(&query, names, &info), TD_ERR_NOTFOUND);
    assert_string_equal(info.text,
                        "modle: no such parameter; there are: window model");
}

static void numbers_have_bounds(void **state)
{
    static const struct {
        const char *text;
        bool is_good;
        int64_t number;
    } cases[] = {
        {"n=1", true, 1},
        {"n=600", true, 600},
        {"n=060", true, 60},
        {"x=7", true, -5},
        {"n=0", false, 0},
        {"n=601", false, 0},
        {"n=", false, 0},
        {"n=-1", false, 0},
        {"n=1.5", false, 0},
        {"n=+1", false, 0},
        {"n=1e2", false, 0},
        {"n=%201", false, 0},
        {"n=99999999999999999999", false, 0},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_query query = parsed(cases[i].text);
        int64_t number = -5;
        td_errinfo info = {""};
        td_err err = td_query_number(&query, "n", 1, 600, &number, &info);
        if ((err == TD_OK) != cases[i].is_good) fail_msg("%s", cases[i].text);
        assert_int_equal(number, cases[i].is_good ? cases[i].number : -5);
        assert_true(cases[i].is_good ||
                    strstr(info.text, "n: must be a whole number from 1 to "
                                      "600, got"));
    }
}

static void the_largest_number_fits(void **state)
{
    (void)state;
    td_query query = parsed("n=9223372036854775807&m=9223372036854775808");
    int64_t number = 0;
    assert_int_equal(td_query_number(&query, "n", 0, INT64_MAX, &number, NULL),
                     TD_OK);
    assert_true(number == INT64_MAX);
    assert_int_equal(td_query_number(&query, "m", 0, INT64_MAX, &number, NULL),
                     TD_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_decoded),
        cmocka_unit_test(nothing_is_no_parameter),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(a_value_has_a_limit),
        cmocka_unit_test(strange_parameters_are_refused),
        cmocka_unit_test(numbers_have_bounds),
        cmocka_unit_test(the_largest_number_fits),
    };
    return cmocka_run_group_tests_name("base/query", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "engine/native/checkpoint/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static json_t *parse(const char *text)
{
    json_t *json = NULL;
    td_slice bytes = {text, strlen(text)};
    assert_int_equal(td_native_json_parse(bytes, "a.json", &json, NULL), TD_OK);
    return json;
}

static const struct {
    const char *name;
    const char *text;
    td_err err;
    const char *says;
} bad[] = {
    {"nothing", "", TD_ERR_FORMAT, "a.json:"},
    {"cut short", "{\"a\":\n\n1", TD_ERR_FORMAT, "a.json:3: "},
    {"no object", "[]", TD_ERR_FORMAT, "a.json: is no JSON object"},
    {"a key twice", "{\"a\":1,\"a\":2}", TD_ERR_FORMAT, "duplicate"},
    {"more behind it", "{} {}", TD_ERR_FORMAT, "a.json:1: "},
    {"a NUL", "{\"a\":\"\\u0000\"}", TD_ERR_FORMAT, "a.json:1: "},
    {"33 deep",
     "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
     TD_ERR_LIMIT, "a.json: is nested deeper than 32"},
};

static void what_is_no_object_is_refused_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(bad); i++) {
        json_t *json = NULL;
        td_errinfo info = {""};
        td_slice bytes = {bad[i].text, strlen(bad[i].text)};
        td_err err = td_native_json_parse(bytes, "a.json", &json, &info);
        if (err != bad[i].err || !strstr(info.text, bad[i].says))
            fail_msg("%s: %s: %s", bad[i].name, td_err_name(err), info.text);
        assert_null(json);
    }
}

static void brackets_in_a_text_are_no_depth(void **state)
{
    (void)state;
    json_decref(
        parse("{\"a\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[\"}"));
}

static void members_come_out_as_they_are(void **state)
{
    (void)state;
    json_t *json = parse("{\"whole\":7,\"number\":2.5,\"yes\":true,"
                         "\"text\":\"t\",\"object\":{},\"list\":[],"
                         "\"null\":null}");
    const td_native_json at = {"a.json", "", json};
    uint32_t whole = 0;
    double number = 0;
    bool yes = false;
    const char *text = NULL;
    json_t *object = NULL, *list = NULL;
    assert_int_equal(td_native_json_whole(&at, "whole", 7, 7, &whole, NULL), 0);
    assert_int_equal(whole, 7);
    assert_int_equal(td_native_json_number(&at, "number", &number, NULL), 0);
    assert_true(number == 2.5);
    assert_int_equal(td_native_json_number(&at, "whole", &number, NULL), 0);
    assert_true(number == 7);
    assert_int_equal(td_native_json_bool(&at, "yes", &yes, NULL), TD_OK);
    assert_true(yes);
    assert_int_equal(td_native_json_text(&at, "text", &text, NULL), TD_OK);
    assert_string_equal(text, "t");
    assert_int_equal(td_native_json_object(&at, "object", &object, NULL), 0);
    assert_int_equal(td_native_json_array(&at, "list", &list, NULL), TD_OK);
    assert_true(td_native_json_is_null(&at, "null"));
    assert_true(td_native_json_is_null(&at, "missing"));
    assert_false(td_native_json_is_null(&at, "whole"));
    json_decref(json);
}

static void what_does_not_fit_is_named_with_its_place(void **state)
{
    (void)state;
    json_t *json = parse("{\"whole\":7,\"text\":\"t\",\"minus\":-1}");
    const td_native_json at = {"a.json", "steps[2].", json};
    td_errinfo info = {""};
    uint32_t whole = 0;
    bool yes = false;
    const char *text = NULL;
    json_t *value = NULL;
    double number = 0;
    assert_int_equal(td_native_json_whole(&at, "gone", 0, 9, &whole, &info),
                     TD_ERR_FORMAT);
    assert_string_equal(info.text, "a.json: steps[2].gone: is missing");
    assert_int_equal(td_native_json_whole(&at, "whole", 8, 9, &whole, &info),
                     TD_ERR_LIMIT);
    assert_string_equal(info.text,
                        "a.json: steps[2].whole: must be 8 to 9, got 7");
    assert_int_equal(td_native_json_whole(&at, "minus", 0, 9, &whole, &info),
                     TD_ERR_LIMIT);
    assert_int_equal(td_native_json_whole(&at, "text", 0, 9, &whole, &info),
                     TD_ERR_FORMAT);
    assert_string_equal(info.text,
                        "a.json: steps[2].text: must be a whole number");
    assert_int_equal(td_native_json_bool(&at, "whole", &yes, &info),
                     TD_ERR_FORMAT);
    assert_int_equal(td_native_json_text(&at, "whole", &text, &info),
                     TD_ERR_FORMAT);
    assert_int_equal(td_native_json_number(&at, "text", &number, &info),
                     TD_ERR_FORMAT);
    assert_int_equal(td_native_json_object(&at, "text", &value, &info),
                     TD_ERR_FORMAT);
    assert_int_equal(td_native_json_array(&at, "text", &value, &info),
                     TD_ERR_FORMAT);
    json_decref(json);
}

static void a_file_that_is_none_is_named(void **state)
{
    (void)state;
    json_t *json = NULL;
    td_errinfo info = {""};
    assert_int_equal(td_native_json_load("/none/a.json", &json, &info),
                     TD_ERR_NOTFOUND);
    assert_non_null(strstr(info.text, "/none/a.json: "));
    assert_int_equal(td_native_json_load("/tmp", &json, &info), TD_ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_object_is_refused_with_its_line),
        cmocka_unit_test(brackets_in_a_text_are_no_depth),
        cmocka_unit_test(members_come_out_as_they_are),
        cmocka_unit_test(what_does_not_fit_is_named_with_its_place),
        cmocka_unit_test(a_file_that_is_none_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

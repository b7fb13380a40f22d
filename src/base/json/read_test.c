// SPDX-License-Identifier: Apache-2.0
#include "base/json/read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MOST 100 // bytes

static json_t *parse(const char *text)
{
    json_t *json = NULL;
    td_slice bytes = {text, strlen(text)};
    assert_int_equal(td_json_read_bytes(bytes, MOST, "a.json", &json, NULL),
                     TD_OK);
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
    {"a byte too many",
     "{                                                                       "
     "                            }",
     TD_ERR_LIMIT, "a.json: has 101 bytes, at most 100"},
};

static void what_is_no_object_is_refused_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(bad); i++) {
        json_t *json = NULL;
        td_errinfo info = {""};
        td_slice bytes = {bad[i].text, strlen(bad[i].text)};
        td_err err = td_json_read_bytes(bytes, MOST, "a.json", &json, &info);
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
    const td_json_at at = {"a.json", "", json};
    uint32_t whole = 0;
    double number = 0;
    bool yes = false;
    const char *text = NULL;
    json_t *object = NULL, *list = NULL;
    assert_int_equal(td_json_read_whole(&at, "whole", 7, 7, &whole, NULL), 0);
    assert_int_equal(whole, 7);
    assert_int_equal(td_json_read_number(&at, "number", &number, NULL), 0);
    assert_true(number == 2.5);
    assert_int_equal(td_json_read_number(&at, "whole", &number, NULL), 0);
    assert_true(number == 7);
    assert_int_equal(td_json_read_bool(&at, "yes", &yes, NULL), TD_OK);
    assert_true(yes);
    assert_int_equal(td_json_read_text(&at, "text", &text, NULL), TD_OK);
    assert_string_equal(text, "t");
    assert_int_equal(td_json_read_object(&at, "object", &object, NULL), 0);
    assert_int_equal(td_json_read_array(&at, "list", &list, NULL), TD_OK);
    assert_true(td_json_read_is_null(&at, "null"));
    assert_true(td_json_read_is_null(&at, "missing"));
    assert_false(td_json_read_is_null(&at, "whole"));
    json_decref(json);
}

static void what_does_not_fit_is_named_with_its_place(void **state)
{
    (void)state;
    json_t *json = parse("{\"whole\":7,\"text\":\"t\",\"minus\":-1}");
    const td_json_at at = {"a.json", "steps[2].", json};
    td_errinfo info = {""};
    uint32_t whole = 0;
    bool yes = false;
    const char *text = NULL;
    json_t *value = NULL;
    double number = 0;
    assert_int_equal(td_json_read_whole(&at, "gone", 0, 9, &whole, &info),
                     TD_ERR_FORMAT);
    assert_string_equal(info.text, "a.json: steps[2].gone: is missing");
    assert_int_equal(td_json_read_whole(&at, "whole", 8, 9, &whole, &info),
                     TD_ERR_LIMIT);
    assert_string_equal(info.text,
                        "a.json: steps[2].whole: must be 8 to 9, got 7");
    assert_int_equal(td_json_read_whole(&at, "minus", 0, 9, &whole, &info),
                     TD_ERR_LIMIT);
    assert_int_equal(td_json_read_whole(&at, "text", 0, 9, &whole, &info),
                     TD_ERR_FORMAT);
    assert_string_equal(info.text,
                        "a.json: steps[2].text: must be a whole number");
    assert_int_equal(td_json_read_bool(&at, "whole", &yes, &info),
                     TD_ERR_FORMAT);
    assert_int_equal(td_json_read_text(&at, "whole", &text, &info),
                     TD_ERR_FORMAT);
    assert_int_equal(td_json_read_number(&at, "text", &number, &info),
                     TD_ERR_FORMAT);
    assert_int_equal(td_json_read_object(&at, "text", &value, &info),
                     TD_ERR_FORMAT);
    assert_int_equal(td_json_read_array(&at, "text", &value, &info),
                     TD_ERR_FORMAT);
    json_decref(json);
}

static void a_file_that_is_none_is_named(void **state)
{
    (void)state;
    json_t *json = NULL;
    td_errinfo info = {""};
    assert_int_equal(td_json_read_file("/none/a.json", MOST, &json, &info),
                     TD_ERR_NOTFOUND);
    assert_non_null(strstr(info.text, "/none/a.json: "));
    assert_int_equal(td_json_read_file("/tmp", MOST, &json, &info), TD_ERR_IO);
    assert_string_equal(info.text, "/tmp: is no file");
}

static void a_pipe_is_refused_and_not_waited_for(void **state)
{
    (void)state;
    char path[] = "/tmp/td-json-XXXXXX";
    json_t *json = NULL;
    assert_non_null(mkdtemp(path));
    char fifo[sizeof path + 8];
    (void)snprintf(fifo, sizeof fifo, "%s/pipe", path);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(td_json_read_file(fifo, MOST, &json, NULL), TD_ERR_IO);
    assert_int_equal(unlink(fifo), 0);
    assert_int_equal(rmdir(path), 0);
}

static void a_file_is_read_up_to_its_limit(void **state)
{
    (void)state;
    static const char text[] = "{\"whole\":7}";
    const size_t size = sizeof text - 1;
    char path[] = "/tmp/td-json-XXXXXX";
    json_t *json = NULL;
    td_errinfo info = {""};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, size), size);
    assert_int_equal(close(fd), 0);
    assert_int_equal(td_json_read_file(path, size - 1, &json, &info),
                     TD_ERR_LIMIT);
    assert_non_null(strstr(info.text, ": has 11 bytes, at most 10"));
    assert_null(json);
    assert_int_equal(td_json_read_file(path, size, &json, &info), TD_OK);
    assert_int_equal(json_integer_value(json_object_get(json, "whole")), 7);
    json_decref(json);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_object_is_refused_with_its_line),
        cmocka_unit_test(brackets_in_a_text_are_no_depth),
        cmocka_unit_test(members_come_out_as_they_are),
        cmocka_unit_test(what_does_not_fit_is_named_with_its_place),
        cmocka_unit_test(a_file_that_is_none_is_named),
        cmocka_unit_test(a_pipe_is_refused_and_not_waited_for),
        cmocka_unit_test(a_file_is_read_up_to_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

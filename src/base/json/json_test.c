// SPDX-License-Identifier: Apache-2.0
#include "base/json/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

// What is written between init and end.
struct page {
    char *text;
    size_t size;
    td_json json;
};

static void begin(struct page *page)
{
    FILE *out = open_memstream(&page->text, &page->size);
    assert_non_null(out);
    td_json_init(&page->json, out);
}

static void assert_reads(struct page *page, const char *expected)
{
    assert_int_equal(fclose(page->json.out), 0);
    assert_string_equal(page->text, expected);
    free(page->text);
}

static void members_are_named_and_parted(void **state)
{
    (void)state;
    struct page page;
    begin(&page);
    td_json_object(&page.json, NULL);
    td_json_text(&page.json, "a", "b");
    td_json_whole(&page.json, "n", UINT64_MAX);
    td_json_array(&page.json, "list");
    td_json_number(&page.json, NULL, 1.5);
    td_json_bool(&page.json, NULL, true);
    td_json_object(&page.json, NULL);
    td_json_end_object(&page.json);
    td_json_end_array(&page.json);
    td_json_bool(&page.json, "no", false);
    td_json_text(&page.json, "none", NULL);
    td_json_end_object(&page.json);
    assert_reads(&page, "{\"a\":\"b\",\"n\":18446744073709551615,"
                        "\"list\":[1.5,true,{}],\"no\":false,"
                        "\"none\":null}");
}

static void text_is_escaped(void **state)
{
    static const struct {
        const char *text, *written;
    } cases[] = {
        {"", "\"\""},
        {"\"\\/", "\"\\\"\\\\/\""},
        {"\n\t\x01\x7f", "\"\\u000a\\u0009\\u0001\\u007f\""},
        {"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
         "\"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""},
        {"a\xff"
         "b",
         "\"a\\ufffdb\""},
        {"\xc3", "\"\\ufffd\""},                       // half a character
        {"\xe2\x82", "\"\\ufffd\\ufffd\""},            // two thirds
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""}, // a surrogate
        {"\xc0\x80", "\"\\ufffd\\ufffd\""},            // a long zero
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct page page;
        begin(&page);
        td_json_text(&page.json, NULL, cases[i].text);
        assert_reads(&page, cases[i].written);
    }
}

static void numbers_that_are_none_are_null(void **state)
{
    (void)state;
    struct page page;
    begin(&page);
    td_json_array(&page.json, NULL);
    td_json_number(&page.json, NULL, NAN);
    td_json_number(&page.json, NULL, -INFINITY);
    td_json_number(&page.json, NULL, 0.0001234567);
    td_json_end_array(&page.json);
    assert_reads(&page, "[null,null,0.000123457]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_named_and_parted),
        cmocka_unit_test(text_is_escaped),
        cmocka_unit_test(numbers_that_are_none_are_null),
    };
    return cmocka_run_group_tests_name("base/json", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "engine/native/pipeline/tokenizer.h"

#include "engine/native/checkpoint/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PI0 TD_NATIVE_GOLDEN "pi0/tokenizer.json"

static td_slice slice(const char *text)
{
    return (td_slice){text, strlen(text)};
}

static void a_text_begins_with_the_token_that_all_begin_with(void **state)
{
    (void)state;
    td_native_tokenizer *tokenizer = NULL;
    uint32_t ids[8], count = 0;
    assert_int_equal(td_native_tokenizer_open(PI0, 8, &tokenizer, NULL), TD_OK);
    assert_int_equal(
        td_native_tokenizer_encode(tokenizer, slice(""), ids, &count, NULL),
        TD_OK);
    assert_int_equal(count, 1);
    assert_int_equal(ids[0], 2); // <bos>
    td_native_tokenizer_close(tokenizer);
}

static void a_long_text_is_cut_to_what_there_is_room_for(void **state)
{
    (void)state;
    td_native_tokenizer *tokenizer = NULL;
    uint32_t ids[4] = {0, 0, 0, 77}, count = 0;
    assert_int_equal(td_native_tokenizer_open(PI0, 3, &tokenizer, NULL), TD_OK);
    assert_int_equal(td_native_tokenizer_encode(tokenizer,
                                                slice("pick the red cube, now"),
                                                ids, &count, NULL),
                     TD_OK);
    assert_int_equal(count, 3);
    assert_int_equal(ids[0], 2);
    assert_int_equal(ids[3], 77);
    td_native_tokenizer_close(tokenizer);
}

static void what_is_no_text_is_refused(void **state)
{
    (void)state;
    td_native_tokenizer *tokenizer = NULL;
    uint32_t ids[8], count = 99;
    td_errinfo info = {""};
    assert_int_equal(td_native_tokenizer_open(PI0, 8, &tokenizer, NULL), TD_OK);
    assert_int_equal(td_native_tokenizer_encode(tokenizer, slice("a\xff\xfe"),
                                                ids, &count, &info),
                     TD_ERR_INVALID);
    assert_int_equal(count, 99);
    td_native_tokenizer_close(tokenizer);
}

static void what_is_no_tokenizer_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        td_err err;
        const char *says;
    } cases[] = {
        {TD_NATIVE_GOLDEN "act/tokenizer.json", TD_ERR_NOTFOUND,
         "act/tokenizer.json: "},
        {TD_NATIVE_GOLDEN "act/config.json", TD_ERR_FORMAT,
         "act/config.json: is no tokenizer: "},
        {TD_NATIVE_GOLDEN "act", TD_ERR_IO, "is no file"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_native_tokenizer *tokenizer = NULL;
        td_errinfo info = {""};
        assert_int_equal(
            td_native_tokenizer_open(cases[i].path, 8, &tokenizer, &info),
            cases[i].err);
        assert_non_null(strstr(info.text, cases[i].says));
    }
}

static void without_its_library_it_says_what_to_do(void **state)
{
    (void)state;
    td_native_tokenizer *tokenizer = NULL;
    td_errinfo info = {""};
    assert_int_equal(setenv("TENDON_FORMATS_LIBRARY", "/nowhere.so", 1), 0);
    assert_int_equal(td_native_tokenizer_open(TD_NATIVE_GOLDEN
                                              "act/config.json",
                                              8, &tokenizer, &info),
                     TD_ERR_UNSUPPORTED);
    assert_null(tokenizer);
    assert_non_null(strstr(info.text, "no tokenizer without "
                                      "libtendon_formats.so: build it with "
                                      "`make all`"));
    assert_int_equal(unsetenv("TENDON_FORMATS_LIBRARY"), 0);
}

// In this order: once loaded, the library stays.
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_its_library_it_says_what_to_do),
        cmocka_unit_test(a_text_begins_with_the_token_that_all_begin_with),
        cmocka_unit_test(a_long_text_is_cut_to_what_there_is_room_for),
        cmocka_unit_test(what_is_no_text_is_refused),
        cmocka_unit_test(what_is_no_tokenizer_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

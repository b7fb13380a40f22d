// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *name;
    const char *text;
    td_err err;
} cases[] = {
    {"OK", "ok", TD_OK},
    {"INVALID", "invalid argument", TD_ERR_INVALID},
    {"DENIED", "not permitted", TD_ERR_DENIED},
    {"INTERNAL", "internal error", TD_ERR_INTERNAL},
    {"UNKNOWN", "unknown error", TD_ERR_COUNT},
    {"UNKNOWN", "unknown error", (td_err)-1},
};

static void every_error_has_a_name_and_a_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        assert_string_equal(td_err_name(cases[i].err), cases[i].name);
        assert_string_equal(td_err_text(cases[i].err), cases[i].text);
    }
    for (int err = 0; err < TD_ERR_COUNT; err++) {
        assert_non_null(td_err_name((td_err)err));
        assert_non_null(td_err_text((td_err)err));
    }
}

static void fail_writes_the_detail_and_returns_the_error(void **state)
{
    (void)state;
    td_errinfo info = {0};
    td_err err = td_fail(&info, TD_ERR_FORMAT, "fps: got %d", 0);
    assert_int_equal(err, TD_ERR_FORMAT);
    assert_string_equal(info.text, "fps: got 0");
}

static void fail_without_info_only_returns_the_error(void **state)
{
    (void)state;
    assert_int_equal(td_fail(NULL, TD_ERR_IO, "%s", "lost"), TD_ERR_IO);
}

static void a_long_detail_is_cut_to_fit(void **state)
{
    (void)state;
    char text[2 * sizeof((td_errinfo){0}.text)];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';

    td_errinfo info;
    assert_int_equal(td_fail(&info, TD_ERR_IO, "%s", text), TD_ERR_IO);
    assert_int_equal(strlen(info.text), sizeof info.text - 1);
}

static void a_detail_can_be_put_in_front_of_itself(void **state)
{
    (void)state;
    td_errinfo info = {"fps: got 0"};
    (void)td_fail(&info, TD_ERR_FORMAT, "a.yaml: %s", info.text);
    assert_string_equal(info.text, "a.yaml: fps: got 0");
}

static td_err pass_on(td_err err, bool *ret_went_on)
{
    TD_TRY(err);
    *ret_went_on = true;
    return TD_OK;
}

static void try_returns_the_error_at_once(void **state)
{
    (void)state;
    bool went_on = false;
    assert_int_equal(pass_on(TD_ERR_FULL, &went_on), TD_ERR_FULL);
    assert_false(went_on);
    assert_int_equal(pass_on(TD_OK, &went_on), TD_OK);
    assert_true(went_on);
}

typedef struct thing {
    int *frees;
} thing;

static void thing_free(thing *freed)
{
    ++*freed->frees;
    free(freed);
}
TD_AUTO_FREE(thing, thing_free)

static thing *make_thing(int *frees, bool keep)
{
    TD_AUTO(thing) *made = calloc(1, sizeof *made);
    made->frees = frees;
    return keep ? TD_TAKE(made) : NULL;
}

static void a_scope_frees_what_was_not_taken(void **state)
{
    (void)state;
    int frees = 0;
    assert_null(make_thing(&frees, false));
    assert_int_equal(frees, 1);

    thing *kept = make_thing(&frees, true);
    assert_non_null(kept);
    assert_int_equal(frees, 1);
    thing_free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_a_name_and_a_text),
        cmocka_unit_test(fail_writes_the_detail_and_returns_the_error),
        cmocka_unit_test(fail_without_info_only_returns_the_error),
        cmocka_unit_test(a_long_detail_is_cut_to_fit),
        cmocka_unit_test(a_detail_can_be_put_in_front_of_itself),
        cmocka_unit_test(try_returns_the_error_at_once),
        cmocka_unit_test(a_scope_frees_what_was_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "net/inproc/keyexpr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

// What a key and an expression do is in the conformance suite; here both are
// expressions.
static const struct {
    const char *a, *b;
    bool intersect;
} pairs[] = {
    {"a/*", "*/b", true},           {"a/*", "b/*", false},
    {"a/**", "**/b", true},         {"a/**/c", "a/*/b/*", true},
    {"a/**/c", "a/*/b/d", false},   {"**/x/**", "**/y/**", true},
    {"*/**", "**", true},           {"*", "**/a/b", false},
    {"a/*/**", "a", false},         {"@a/*", "*/b", false},
    {"*/@a/**", "**/b/@a/*", true}, {"@a/**", "@a/*", true},
};

static void expressions_meet_either_way_round(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(pairs); i++) {
        bool there = td_inproc_keyexpr_intersects(pairs[i].a, pairs[i].b);
        bool back = td_inproc_keyexpr_intersects(pairs[i].b, pairs[i].a);
        if (there != pairs[i].intersect || back != pairs[i].intersect)
            fail_msg("'%s' and '%s': %d, %d", pairs[i].a, pairs[i].b, there,
                     back);
    }
}

static const struct {
    const char *name;
    const char *keyexpr;
    td_err key, expr;
} checks[] = {
    {"key", "a/b-c/@d.e", TD_OK, TD_OK},
    {"one wild", "a/*", TD_ERR_INVALID, TD_OK},
    {"all", "**", TD_ERR_INVALID, TD_OK},
    {"shortest form", "*/**", TD_ERR_INVALID, TD_OK},
    {"longer form", "**/*", TD_ERR_INVALID, TD_ERR_INVALID},
    {"twice all", "a/**/**", TD_ERR_INVALID, TD_ERR_INVALID},
    {"part of a chunk", "a*", TD_ERR_INVALID, TD_ERR_INVALID},
    {"dollar", "a/$*", TD_ERR_INVALID, TD_ERR_INVALID},
    {"three stars", "***", TD_ERR_INVALID, TD_ERR_INVALID},
    {"nothing", "", TD_ERR_INVALID, TD_ERR_INVALID},
    {"slash", "/", TD_ERR_INVALID, TD_ERR_INVALID},
    {"empty chunk", "a//b", TD_ERR_INVALID, TD_ERR_INVALID},
};

static void bad_expressions_are_refused_with_a_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(checks); i++) {
        td_errinfo info = {""};
        td_err key = td_inproc_keyexpr_check_key(checks[i].keyexpr, &info);
        td_err expr = td_inproc_keyexpr_check(checks[i].keyexpr, &info);
        if (key != checks[i].key || expr != checks[i].expr)
            fail_msg("%s: %s, %s", checks[i].name, td_err_name(key),
                     td_err_name(expr));
        assert_int_equal(*info.text == '\0', key == TD_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_meet_either_way_round),
        cmocka_unit_test(bad_expressions_are_refused_with_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

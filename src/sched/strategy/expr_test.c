// SPDX-License-Identifier: Apache-2.0
#include "sched/strategy/expr.h"

#include "base/rand.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const names[] = {"age", "urgency", "priority", "bad"};
static const td_sched_expr_fields fields = {names, TD_COUNT_OF(names)};
static const double values[] = {30, 0.5, 2, NAN};

static td_err compile(const char *text, td_sched_expr *expr, td_errinfo *info)
{
    return td_sched_expr_compile(text, strlen(text), fields, expr, info);
}

static void expressions_have_their_value(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"1", 1},
        {" 2.5e1 ", 25},
        {".5", 0.5},
        {"1 + 2 * 3", 7},
        {"(1 + 2) * 3", 9},
        {"10 - 4 - 3", 3},
        {"16 / 4 / 2", 2},
        {"-2 * -3", 6},
        {"--2", 2},
        {"1 - -1", 2},
        {"age", 30},
        {"25 * urgency + 10 * (10 - min(priority, 10)) / 10", 20.5},
        {"min(4, 2, 3)", 2},
        {"max(4, 2, 5)", 5},
        {"clamp(age, 0, 10)", 10},
        {"clamp(-age, 0, 10)", 0},
        {"clamp(5, 9, 1)", 1},
        {"urgency > 0.9", 0},
        {"(urgency >= 0.5) * 1000 + priority", 1002},
        {"1 < 2", 1},
        {"2 <= 1", 0},
        {"1 == 1", 1},
        {"1 != 1", 0},
        {"(1 < 2) < 2", 1},
        {"1 / 0", 0},
        {"0 / 0", 0},
        {"1e308 * 10", DBL_MAX},
        {"-1e308 * 10", -DBL_MAX},
        {"1e308 * 10 - 1e308 * 10", 0},
        {"bad + 1", 1},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_sched_expr expr;
        td_errinfo info = {""};
        if (compile(cases[i].text, &expr, &info) != TD_OK)
            fail_msg("%s: %s", cases[i].text, info.text);
        double value = td_sched_expr_eval(&expr, values);
        if (value != cases[i].value) fail_msg("%s is %g", cases[i].text, value);
    }
}

static void errors_name_the_column_and_what_would_be_right(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"", "column 1: ends here, where a number, a field or '(' should be"},
        {"1 +", "column 4: ends here, where a number, a field or '(' should"},
        {"1 2", "column 3: '2', where an operator or the end should be"},
        {"(1", "column 3: ends here, where an operator or ')' should be"},
        {"min(1)", "column 6: ')', where an operator or ',' should be"},
        {"clamp(1, 2)", "column 11: ')', where an operator or ',' should be"},
        {"clamp(1, 2, 3, 4)", "column 14: ',', where an operator or ')'"},
        {"exec(1)", "column 1: 'e', where min(, max( or clamp( should be"},
        {"2 * urgancy", "column 5: no field \"urgancy\": there is age, "
                        "urgency, priority, bad"},
        {"1e", "column 3: ends here, where a digit of the exponent should"},
        {"1.2.3", "column 4: '.', where an operator or the end should be"},
        {".", "column 1: '.', where a decimal number should be"},
        {"1e999", "column 1: '1', where a decimal number should be"},
        {"1 < 2 < 3", "column 7: '<', where an operator or the end should"},
        {"1 = 1", "column 3: '=', where an operator or the end should be"},
        {"1 \x01", "column 3: byte 0x01, where an operator or the end"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_sched_expr expr;
        td_errinfo info = {""};
        assert_int_equal(compile(cases[i].text, &expr, &info), TD_ERR_FORMAT);
        if (strncmp(info.text, cases[i].error, strlen(cases[i].error)) != 0)
            fail_msg("%s: %s", cases[i].text, info.text);
    }
}

static void limits_hold(void **state)
{
    (void)state;
    static char text[TD_SCHED_EXPR_MAX_TEXT + 2];
    td_sched_expr expr;
    td_errinfo info;
    memset(text, ' ', TD_SCHED_EXPR_MAX_TEXT + 1);
    text[0] = '1';
    assert_int_equal(compile(text, &expr, &info), TD_ERR_LIMIT);

    memset(text, '(', 500);
    text[500] = '\0';
    assert_int_equal(compile(text, &expr, &info), TD_ERR_LIMIT);
    memset(text, '-', 500);
    assert_int_equal(compile(text, &expr, &info), TD_ERR_LIMIT);

    char *end = text;
    for (int i = 0; i < 200; i++)
        end = stpcpy(end, i ? "+1" : "1");
    assert_int_equal(compile(text, &expr, &info), TD_ERR_LIMIT);
    assert_non_null(strstr(info.text, "more than 256 operations"));

    end = text;
    for (int i = 0; i < 12; i++)
        end = stpcpy(end, "1 < 1 + 1 * (");
    assert_int_equal(compile(text, &expr, &info), TD_ERR_LIMIT);
    assert_non_null(strstr(info.text, "more than 32 values"));

    memset(text, '1', 40);
    text[40] = '\0';
    assert_int_equal(compile(text, &expr, &info), TD_ERR_LIMIT);
}

// Writes a random expression and works out its value beside it.
typedef struct writer {
    td_rand rand;
    char text[4096];
    size_t size;
} writer;

static void put(writer *w, const char *text)
{
    w->size += (size_t)snprintf(w->text + w->size, sizeof w->text - w->size,
                                "%s", text);
}

static double write_leaf(writer *w)
{
    uint64_t pick = td_rand_u64(&w->rand) % 6;
    if (pick < 3) {
        put(w, names[pick]);
        return values[pick];
    }
    char number[8];
    snprintf(number, sizeof number, "%u", (unsigned)(pick - 3));
    put(w, number);
    return (double)(pick - 3);
}

static double write_any(writer *w, int depth)
{
    static const char *const signs[] = {" + ", "-", "*", "/ ", "<", " >= "};
    if (depth == 0) return write_leaf(w);
    uint64_t pick = td_rand_u64(&w->rand) % 7;
    put(w, pick == 6 ? "max(" : "(");
    double a = write_any(w, depth - 1);
    put(w, pick == 6 ? "," : signs[pick]);
    double b = write_any(w, depth - 1);
    put(w, ")");
    double results[] = {a + b, a - b, a * b, b == 0 ? 0 : a / b,
                        a<b, a >= b, a> b ? a : b};
    return results[pick];
}

static void random_expressions_have_the_value_of_plain_c(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        writer w = {.size = 0};
        td_rand_init(&w.rand, seed);
        double value = write_any(&w, 1 + (int)(seed % 5));
        td_sched_expr expr;
        td_errinfo info = {""};
        if (compile(w.text, &expr, &info) != TD_OK)
            fail_msg("%s: %s", w.text, info.text);
        if (td_sched_expr_eval(&expr, values) != value)
            fail_msg("%s is not %g", w.text, value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_have_their_value),
        cmocka_unit_test(errors_name_the_column_and_what_would_be_right),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(random_expressions_have_the_value_of_plain_c),
    };
    return cmocka_run_group_tests_name("sched/expr", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "server/core/fit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NONE (-1)

static const td_server_fit_limits settings = TD_SERVER_FIT_LIMITS;

static void set_age(td_wire_tensor *tensor, int64_t age_us)
{
    tensor->has_age = age_us != NONE;
    tensor->age_us = age_us == NONE ? 0 : age_us;
}

static td_server_fit_ages ages_of(const int64_t age_us[3])
{
    td_server_fit_ages ages;
    td_wire_obs obs = {
        .tensors = {{.name = {"force", 5}}, {.name = {"touch", 5}}},
        .tensor_count = 2,
    };
    set_age(&obs.state, age_us[0]);
    set_age(&obs.tensors[0].tensor, age_us[1]);
    set_age(&obs.tensors[1].tensor, age_us[2]);
    td_server_fit_ages_of(&obs, &ages);
    return ages;
}

static void ages_decide(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t age_us[3]; // state, force, touch
        bool misaligned;
        const char *stale; // the reason; NULL: it is not
    } cases[] = {
        {"nobody says", {NONE, NONE, NONE}, false, NULL},
        {"one says", {NONE, 900000, NONE}, false, NULL},
        {"all of one moment", {100, 100, 100}, false, NULL},
        {"as far apart as may be", {0, 20000, 10000}, false, NULL},
        {"a microsecond further", {0, 20001, 10000}, true, NULL},
        {"the state is the old one", {30001, 10000, 20000}, true, NULL},
        {"as old as may be", {NONE, 1000000, NONE}, false, NULL},
        {"older",
         {NONE, 1000001, 1000000},
         false,
         "force: is 1000.001 ms old, at most 1000 ms are taken"},
        {"the oldest is named",
         {1200000, NONE, 2500000},
         true,
         "touch: is 2500 ms old, at most 1000 ms are taken"},
        {"the state too",
         {1250500, NONE, NONE},
         false,
         "state: is 1250.5 ms old, at most 1000 ms are taken"},
        {"as old as a number can say",
         {NONE, INT64_MAX, 0},
         true,
         "force: is 9.223372e+15 ms old, at most 1000 ms are taken"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_server_fit_ages ages = ages_of(cases[i].age_us);
        td_errinfo info = {""};
        td_err err = td_server_fit_fresh(&settings, &ages, &info);
        const char *want = cases[i].stale ? cases[i].stale : "";
        if (err != (cases[i].stale ? TD_ERR_LIMIT : TD_OK))
            fail_msg("%s: %s", cases[i].name, td_err_name(err));
        assert_string_equal(info.text, want);
        if (td_server_fit_misaligned(&settings, &ages) != cases[i].misaligned)
            fail_msg("%s: misaligned or not", cases[i].name);
    }
}

static void the_ages_are_those_that_were_said(void **state)
{
    (void)state;
    td_server_fit_ages ages = ages_of((int64_t[]){300, NONE, 200});
    assert_int_equal(ages.count, 2);
    assert_int_equal(ages.oldest_us, 300);
    assert_int_equal(ages.youngest_us, 200);
    assert_true(td_wire_text_is(ages.oldest, "state"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ages_decide),
        cmocka_unit_test(the_ages_are_those_that_were_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

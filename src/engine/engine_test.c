// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint64_t seed_of(const char *client, uint64_t episode, uint64_t seq)
{
    return td_engine_seed(td_wire_text_of(client), episode, seq);
}

static void a_seed_is_the_same_on_every_machine(void **state)
{
    (void)state;
    assert_true(seed_of("robot-1", 2, 3) == UINT64_C(0x521979e0e3fc13ce));
}

static void each_part_of_a_request_changes_its_seed(void **state)
{
    (void)state;
    uint64_t seed = seed_of("robot-1", 2, 3);
    assert_true(seed != seed_of("robot-2", 2, 3));
    assert_true(seed != seed_of("robot-1", 3, 3));
    assert_true(seed != seed_of("robot-1", 2, 4));
    assert_true(seed != seed_of("robot-1", 3, 2));
}

static void
an_engine_that_is_not_known_is_refused_with_the_known_ones(void **state)
{
    (void)state;
    td_engine *engine = NULL;
    td_engine_config config = {0};
    td_errinfo info = {""};
    assert_int_equal(td_engine_open("abacus", &config, &engine, &info),
                     TD_ERR_NOTFOUND);
    assert_string_equal(info.text, "no engine called abacus, known are "
                                   "synthetic, worker, callback, native, pool");
    assert_null(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_is_the_same_on_every_machine),
        cmocka_unit_test(each_part_of_a_request_changes_its_seed),
        cmocka_unit_test(
            an_engine_that_is_not_known_is_refused_with_the_known_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

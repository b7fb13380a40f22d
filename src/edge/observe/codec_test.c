// SPDX-License-Identifier: Apache-2.0
#include "edge/observe/codec.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_setting_is_obeyed_whatever_it_costs(void **state)
{
    td_edge_codec_choice choice;
    (void)state;
    for (int raw = 0; raw < 2; raw++) {
        td_edge_codec_begin(&choice,
                            raw ? TD_EDGE_CODEC_RAW : TD_EDGE_CODEC_JPEG);
        for (int i = 0; i < 20; i++) {
            assert_int_equal(td_edge_codec_is_raw(&choice), raw);
            assert_false(td_edge_codec_tried(&choice, raw, 1000000));
        }
    }
}

// Works as a publisher does, until it is decided.
static bool decide(td_edge_codec_choice *choice, const int64_t *raw_ns,
                   const int64_t *jpeg_ns)
{
    uint32_t tried[2] = {0, 0};
    td_edge_codec_begin(choice, TD_EDGE_CODEC_AUTO);
    for (;;) {
        bool raw = td_edge_codec_is_raw(choice);
        int64_t cost_ns = (raw ? raw_ns : jpeg_ns)[tried[raw]++];
        bool decided = td_edge_codec_tried(choice, raw, cost_ns);
        assert_int_equal(decided,
                         tried[0] + tried[1] == 2 * TD_EDGE_CODEC_TRIALS);
        if (decided) return td_edge_codec_is_raw(choice);
    }
}

static void auto_tries_both_and_takes_the_cheaper(void **state)
{
    static const struct {
        const char *name;
        int64_t raw_ns[TD_EDGE_CODEC_TRIALS], jpeg_ns[TD_EDGE_CODEC_TRIALS];
        bool raw;
    } cases[] = {
        {"raw", {30, 30, 30, 30}, {40, 40, 40, 40}, true},
        {"jpeg", {30, 30, 30, 30}, {20, 20, 20, 20}, false},
        {"raw, once disturbed", {90, 30, 30, 30}, {40, 41, 42, 43}, true},
        {"jpeg, once disturbed", {30, 30, 30, 30}, {90, 90, 90, 20}, false},
        {"as much", {30, 30, 30, 30}, {30, 30, 30, 30}, false},
        {"raw, once refused", {INT64_MAX, 3, 3, 3}, {4, 4, 4, 4}, true},
        {"raw never goes",
         {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX},
         {900, 900, 900, 900},
         false},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_codec_choice choice;
        if (decide(&choice, cases[i].raw_ns, cases[i].jpeg_ns) != cases[i].raw)
            fail_msg("%s", cases[i].name);
    }
}

static void what_is_decided_stays_until_the_next_server(void **state)
{
    static const int64_t cheap[] = {1, 1, 1, 1}, dear[] = {9, 9, 9, 9};
    td_edge_codec_choice choice;
    (void)state;
    assert_true(decide(&choice, cheap, dear));
    for (int i = 0; i < 20; i++) {
        assert_false(td_edge_codec_tried(&choice, true, 1000));
        assert_true(td_edge_codec_is_raw(&choice));
    }
    assert_false(decide(&choice, dear, cheap));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_setting_is_obeyed_whatever_it_costs),
        cmocka_unit_test(auto_tries_both_and_takes_the_cheaper),
        cmocka_unit_test(what_is_decided_stays_until_the_next_server),
    };
    return cmocka_run_group_tests_name("edge/codec", tests, NULL, NULL);
}

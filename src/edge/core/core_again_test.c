// SPDX-License-Identifier: Apache-2.0
// The core where an answer was missed, and is asked for once more.
#include "edge/core/core_fixture.h"
#include "edge/core/internal.h"

#define ROWS 4

// A robot that has missed the answer to its second observation, which it sent
// before the second of its eight rows, and asks for it again with its third.
// Answers take a period, so it waits for three.
static td_edge_core *robot_that_missed(int64_t *ret_now_ns)
{
    td_edge_core_settings settings = robot_settings();
    settings.ask.threshold = 1;
    settings.ask.again = true;
    settings.ask.resend_min_ns = PERIOD_NS;
    td_edge_core *core = robot_new(&settings);
    int64_t now_ns = PERIOD_NS;
    robot_tick(core, 0);
    robot_answered(core, now_ns, 1, 8, 100);
    assert_int_equal(robot_tick(core, now_ns).seq, 2);
    assert_false(robot_tick(core, now_ns += PERIOD_NS).ask);
    assert_false(robot_tick(core, now_ns += PERIOD_NS).ask);
    td_edge_step step = robot_tick_alone(core, now_ns += PERIOD_NS, 1);
    assert_true(step.ask);
    assert_int_equal(step.seq, 3);
    assert_int_equal(step.again, 2);
    const td_edge_sent sent = {.seq = 3,
                               .episode = 5,
                               .cursor = td_edge_core_cursor(core),
                               .captured_ns = now_ns,
                               .put_ns = now_ns,
                               .again = 2};
    assert_true(td_edge_core_sent(core, &sent));
    assert_int_equal(robot_counts(core).asked_again, 1);
    *ret_now_ns = now_ns;
    return core;
}

static td_edge_answer robot_answered_again(td_edge_core *core, int64_t now_ns)
{
    robot_answer answer;
    answer_fill(&answer, 2, 16, 200);
    answer.action.superseded[0] = 3;
    answer.action.superseded_count = 1;
    return robot_hear(core, now_ns, &answer.action);
}

static void what_was_asked_for_again_is_of_its_own_step(void **state)
{
    (void)state;
    int64_t now_ns;
    TD_AUTO(td_edge_core) *core = robot_that_missed(&now_ns);
    assert_int_equal(robot_answered_again(core, now_ns).outcome,
                     TD_EDGE_MERGED);
    td_edge_counts counts = robot_counts(core);
    assert_int_equal(counts.outcomes[TD_EDGE_SUPERSEDED], 1);
    assert_int_equal(counts.outcomes[TD_EDGE_PENDING], 0);
    td_edge_step step = robot_tick(core, now_ns + PERIOD_NS);
    assert_float_equal(step.command[0], 203, 0); // three rows are past
    assert_true(step.ask);                       // and nothing is on its way
    assert_int_equal(step.again, 0);
}

// Else the next one would be waited for three times as long as for this one.
static void what_was_asked_for_again_has_no_round_trip(void **state)
{
    (void)state;
    int64_t now_ns;
    TD_AUTO(td_edge_core) *core = robot_that_missed(&now_ns);
    robot_answered_again(core, now_ns);
    assert_int_equal(robot_tick(core, now_ns + PERIOD_NS).seq, 4);
    assert_false(robot_tick(core, now_ns + 3 * PERIOD_NS).ask);
    assert_true(robot_tick(core, now_ns + 4 * PERIOD_NS).ask);
}

static void an_answer_that_comes_twice_frees_the_one_that_asked(void **state)
{
    (void)state;
    int64_t now_ns;
    TD_AUTO(td_edge_core) *core = robot_that_missed(&now_ns);
    assert_int_equal(robot_answered(core, now_ns, 2, 16, 200).outcome,
                     TD_EDGE_MERGED); // it was only late
    assert_false(robot_tick(core, now_ns + PERIOD_NS).ask);
    assert_true(robot_answered_again(core, now_ns + PERIOD_NS).stray);
    assert_int_equal(robot_counts(core).outcomes[TD_EDGE_PENDING], 0);
    assert_true(robot_tick(core, now_ns + 2 * PERIOD_NS).ask);
}

static void where_nothing_is_kept_the_robot_observes_at_once(void **state)
{
    (void)state;
    int64_t now_ns;
    TD_AUTO(td_edge_core) *core = robot_that_missed(&now_ns);
    robot_answer answer;
    answer_fill(&answer, 3, 16, 0);
    answer.action.error_code = td_wire_text_of("NOTFOUND");
    assert_int_equal(robot_hear(core, now_ns, &answer.action).outcome,
                     TD_EDGE_REFUSED);
    td_edge_step step = robot_tick(core, now_ns + PERIOD_NS);
    assert_true(step.ask && step.must_go);
    assert_int_equal(step.seq, 4);
    assert_int_equal(step.again, 0);
}

// The first was answered, and 2 and 4 asked for it again.
static td_edge_core *robot_that_asked_again(void)
{
    const td_edge_core_settings settings = robot_settings();
    td_edge_core *core = robot_new(&settings);
    robot_send(core, 1, 0);
    robot_answered(core, 0, 1, ROWS, 0);
    for (uint64_t seq = 2; seq <= 4; seq++)
        assert_true(td_edge_core_sent(
            core, &(td_edge_sent){
                      .seq = seq, .episode = 5, .again = seq == 3 ? 0 : 1}));
    return core;
}

static void an_answer_that_comes_twice_frees_those_it_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t boot;
        uint64_t superseded[2];
        uint32_t count;
        uint64_t pending;
    } cases[] = {
        {"both", 7, {2, 4}, 2, 1},
        {"the second of two", 7, {99, 4}, 2, 2},
        {"the first alone", 7, {2, 4}, 1, 2},
        {"one that did not ask again", 7, {3}, 1, 3},
        {"in an answer to another", 6, {2, 4}, 2, 3},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        TD_AUTO(td_edge_core) *core = robot_that_asked_again();
        robot_answer answer;
        answer_fill(&answer, 1, ROWS, 0);
        answer.action.ident.boot = cases[i].boot;
        memcpy(answer.action.superseded, cases[i].superseded,
               sizeof cases[i].superseded);
        answer.action.superseded_count = cases[i].count;
        if (!robot_hear(core, 0, &answer.action).stray ||
            robot_counts(core).outcomes[TD_EDGE_PENDING] != cases[i].pending)
            fail_msg("%s", cases[i].name);
    }
}

// The tick may ask again after what has ended, and observes at once instead of
// what was skipped.
static void a_refusal_of_one_that_asked_again_counts_as_skipped(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t again;
        const char *error;
        uint64_t ended_seq, skipped_seq;
    } cases[] = {
        {"an observation, merged", 0, "", 2, 0},
        {"an observation, refused", 0, "E", 2, 0},
        {"one that asked again, merged", 1, "", 2, 0},
        {"one that asked again, refused", 1, "E", 1, 2},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        const td_edge_core_settings settings = robot_settings();
        TD_AUTO(td_edge_core) *core = robot_new(&settings);
        robot_send(core, 1, 0);
        robot_answered(core, 0, 1, ROWS, 0);
        assert_true(td_edge_core_sent(
            core,
            &(td_edge_sent){.seq = 2, .episode = 5, .again = cases[i].again}));
        robot_answer answer;
        answer_fill(&answer, 2, ROWS, 0);
        answer.action.error_code = td_wire_text_of(cases[i].error);
        td_edge_answer result = robot_hear(core, 0, &answer.action);
        bool refused = result.outcome == TD_EDGE_REFUSED;
        if (refused != (*cases[i].error != 0) ||
            atomic_load(&core->ended_seq) != cases[i].ended_seq ||
            atomic_load(&core->skipped_seq) != cases[i].skipped_seq)
            fail_msg("%s", cases[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_asked_for_again_is_of_its_own_step),
        cmocka_unit_test(what_was_asked_for_again_has_no_round_trip),
        cmocka_unit_test(an_answer_that_comes_twice_frees_the_one_that_asked),
        cmocka_unit_test(where_nothing_is_kept_the_robot_observes_at_once),
        cmocka_unit_test(an_answer_that_comes_twice_frees_those_it_names),
        cmocka_unit_test(a_refusal_of_one_that_asked_again_counts_as_skipped),
    };
    return cmocka_run_group_tests_name("edge/core_again", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "edge/core/core_fixture.h"

#define ROWS 4

static void settings_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t channels;
        int64_t period_ns;
        uint32_t actions_per_chunk;
        uint32_t quaternion_from, quaternion_to; // channels of that kind
        td_err err;
    } cases[] = {
        {"no channel", 0, PERIOD_NS, 1, 0, 0, TD_ERR_INVALID},
        {"too many", 257, PERIOD_NS, 1, 0, 0, TD_ERR_INVALID},
        {"no period", 2, 0, 1, 0, 0, TD_ERR_INVALID},
        {"period below zero", 2, -1, 1, 0, 0, TD_ERR_INVALID},
        {"no rows", 2, PERIOD_NS, 0, 0, 0, TD_ERR_INVALID},
        {"cut quaternion", 3, PERIOD_NS, 1, 0, 3, TD_ERR_INVALID},
        {"quaternion of three", 4, PERIOD_NS, 1, 0, 3, TD_ERR_INVALID},
        {"quaternion of five", 8, PERIOD_NS, 1, 1, 6, TD_ERR_INVALID},
        {"one channel", 1, PERIOD_NS, 1, 0, 0, TD_OK},
        {"most channels", 256, PERIOD_NS, 1, 0, 0, TD_OK},
        {"two quaternions", 9, PERIOD_NS, 1, 1, 9, TD_OK},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_core_settings settings;
        uint32_t channels = cases[i].channels;
        td_edge_core_settings_plain(channels > 256 ? 0 : channels,
                                    cases[i].period_ns, &settings);
        settings.channels = channels;
        settings.actions_per_chunk = cases[i].actions_per_chunk;
        for (uint32_t k = cases[i].quaternion_from; k < cases[i].quaternion_to;
             k++)
            settings.kinds[k] = TD_WIRE_QUATERNION;
        TD_AUTO(td_edge_core) *core = NULL;
        if (td_edge_core_new(&settings, &core, NULL) != cases[i].err ||
            (core != NULL) != (cases[i].err == TD_OK))
            fail_msg("%s", cases[i].name);
    }
}

static td_err try_new(const td_edge_core_settings *settings)
{
    TD_AUTO(td_edge_core) *core = NULL;
    return td_edge_core_new(settings, &core, NULL);
}

static void a_substep_is_a_nanosecond_or_more(void **state)
{
    (void)state;
    static const struct {
        int64_t period_ns;
        uint32_t substeps;
        td_err err;
    } cases[] = {
        {1, 1, TD_OK},          {2, 2, TD_OK},          {2, 3, TD_ERR_INVALID},
        {2, 0, TD_ERR_INVALID}, {0, 1, TD_ERR_INVALID}, {0, 0, TD_ERR_INVALID},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_core_settings settings = robot_settings();
        settings.period_ns = cases[i].period_ns;
        settings.substeps = cases[i].substeps;
        assert_int_equal(try_new(&settings), cases[i].err);
    }
}

static void keep_new(void *user, uint64_t step, const float *old_row,
                     const float *new_row, uint32_t channels, float *ret_row)
{
    (void)user, (void)step, (void)old_row;
    memcpy(ret_row, new_row, channels * sizeof(float));
}

static td_err keep_all_new(void *user, const td_edge_overlap *overlap,
                           float *ret_rows)
{
    (void)user;
    size_t count = (size_t)overlap->rows * overlap->channels;
    memcpy(ret_rows, overlap->new_rows, count * sizeof(float));
    return TD_OK;
}

static void a_users_aggregate_is_one_function(void **state)
{
    (void)state;
    static const struct {
        td_edge_blend_fn fn;
        td_edge_blend_all_fn all;
        td_err err;
    } cases[] = {
        {NULL, NULL, TD_ERR_INVALID},
        {keep_new, NULL, TD_OK},
        {NULL, keep_all_new, TD_OK},
        {keep_new, keep_all_new, TD_ERR_INVALID},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_core_settings settings = robot_settings();
        settings.aggregate = TD_EDGE_CUSTOM;
        settings.blend = cases[i].fn;
        settings.blend_all = cases[i].all;
        assert_int_equal(try_new(&settings), cases[i].err);
    }
}

static void when_to_ask_is_checked_and_how_often(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.ask.threshold = 2;
    assert_int_equal(try_new(&settings), TD_ERR_INVALID);
    settings.ask.threshold = 1;
    assert_int_equal(try_new(&settings), TD_OK);
    settings.rate_hz = -1;
    assert_int_equal(try_new(&settings), TD_ERR_INVALID);
}

static void plain_settings_are_those_of_a_robots_file(void **state)
{
    (void)state;
    td_edge_core_settings plain;
    td_edge_core_settings_plain(2, PERIOD_NS, &plain);
    assert_true(plain.ask.threshold == 0.5 && plain.ask.starve_target == 0.001);
    assert_int_equal(plain.ask.resend_min_ns, 100 * TD_NS_PER_MS);
    assert_int_equal(plain.ask.resend_max_ns, 3 * TD_NS_PER_S);
    assert_int_equal(plain.max_action_age_ns, 3 * TD_NS_PER_S);
    assert_int_equal(plain.priority, 1);
    assert_int_equal(plain.warn_after_empty_ticks, 10);
    assert_int_equal(plain.boot, 1);
    assert_int_equal(plain.episode, 1);
}

static void nobody_moves_or_starves_before_the_first_chunk(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    for (int64_t i = 0; i < 20; i++) {
        td_edge_step step = robot_tick(core, i * PERIOD_NS);
        assert_null(step.command);
        assert_false(step.fresh || step.starved);
    }
    assert_int_equal(td_edge_core_cursor(core), 0);
    assert_int_equal(robot_counts(core).starved, 0);
    assert_int_equal(robot_counts(core).ticks, 20);
}

static void a_chunk_plays_row_by_row(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_tick(core, 0);
    assert_int_equal(robot_answered(core, 1, 1, ROWS, 100).rows, ROWS);
    for (uint32_t i = 0; i < ROWS; i++) {
        td_edge_step step = robot_tick(core, PERIOD_NS);
        assert_true(step.fresh);
        assert_float_equal(step.command[0], 100 + (float)i, 0);
        assert_float_equal(step.command[1], -100 - (float)i, 0);
        assert_int_equal(step.left, ROWS - 1 - i);
        assert_int_equal(td_edge_core_cursor(core), i + 1);
        assert_int_equal(robot_counts(core).left, ROWS - 1 - i);
    }
}

static void the_cursor_stands_still_while_the_robot_holds(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_tick(core, 0);
    robot_answered(core, 0, 1, 2, 100);
    robot_tick(core, 0);
    robot_tick(core, 0);
    for (int i = 0; i < 10; i++) {
        td_edge_step step = robot_tick(core, 0);
        assert_false(step.fresh);
        assert_true(step.starved);
        assert_float_equal(step.command[0], 101, 0);
        assert_int_equal(td_edge_core_cursor(core), 2);
    }
    assert_int_equal(robot_counts(core).fresh, 2);
    assert_int_equal(robot_counts(core).starved, 10);
}

static void rows_that_were_played_meanwhile_are_not_played_again(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.ask.threshold = 3.0 / ROWS;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_tick(core, 0);
    robot_answered(core, 0, 1, ROWS, 100);
    assert_true(robot_tick(core, 0).ask); // at cursor 1
    robot_tick(core, 0);
    robot_tick(core, 0);

    td_edge_answer answer = robot_answered(core, 0, 2, ROWS, 200);
    assert_int_equal(answer.sent.cursor, 1);
    assert_int_equal(answer.rows, 2);
    assert_float_equal(robot_tick(core, 0).command[0], 202, 0);
    assert_float_equal(robot_tick(core, 0).command[0], 203, 0);
    assert_false(robot_tick(core, 0).fresh);
}

static void rows_beyond_actions_per_chunk_are_not_used(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.actions_per_chunk = 2;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_tick(core, 0);
    assert_int_equal(robot_answered(core, 0, 1, ROWS, 100).rows, 2);
    assert_int_equal(robot_tick(core, 0).left, 1);
}

// A server whose answers take `periods` of ticks; returns how many rows played.
static uint32_t play_with_round_trip(td_edge_core *core, uint32_t periods,
                                     uint32_t ticks)
{
    uint64_t asked = 0;
    uint32_t due = 0;
    uint32_t played = 0;
    for (uint32_t i = 0; i < ticks; i++) {
        int64_t now_ns = i * PERIOD_NS;
        if (asked > 0 && i == due)
            robot_answered(core, now_ns, asked, ROWS, 10 * (float)asked);
        td_edge_step step = robot_tick(core, now_ns);
        if (step.fresh) {
            uint32_t seq = 1 + played / ROWS;
            assert_float_equal(step.command[0], 10 * seq + played % ROWS, 0);
            played++;
        }
        if (!step.ask) continue;
        asked = step.seq;
        due = i + periods;
    }
    return played;
}

static void by_steps_a_round_trip_beyond_a_chunk_loses_no_row(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    uint32_t played = play_with_round_trip(core, 3 * ROWS, 1000);
    td_edge_counts counts = robot_counts(core);
    assert_true(counts.outcomes[TD_EDGE_MERGED] > 50);
    assert_int_equal(counts.outcomes[TD_EDGE_MERGED] +
                         counts.outcomes[TD_EDGE_PENDING],
                     counts.sent);
    assert_true(played + ROWS > counts.outcomes[TD_EDGE_MERGED] * ROWS);
}

static void by_time_a_round_trip_beyond_a_chunk_discards_them_all(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.trim = TD_EDGE_TRIM_TIME;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    assert_int_equal(play_with_round_trip(core, 3 * ROWS, 1000), ROWS);
    td_edge_counts counts = robot_counts(core);
    assert_int_equal(counts.outcomes[TD_EDGE_MERGED], 1);
    assert_true(counts.outcomes[TD_EDGE_EXPIRED] > 50);
}

static void by_time_round_trip_over_period_rows_are_past(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t round_trip_ns;
        uint32_t rows; // that stay
    } cases[] = {
        {"no time", 0, ROWS},
        {"just below a period", PERIOD_NS - 1, ROWS},
        {"a period", PERIOD_NS, ROWS - 1},
        {"two and a half", 5 * PERIOD_NS / 2, ROWS - 2},
        {"all but one", ROWS * PERIOD_NS - 1, 1},
        {"a chunk", ROWS * PERIOD_NS, 0},
        {"longer than any chunk", TD_NS_PER_S * 50, 0},
        {"before it was put", -5 * PERIOD_NS, ROWS},
    };
    td_edge_core_settings settings = robot_settings();
    settings.trim = TD_EDGE_TRIM_TIME;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        TD_AUTO(td_edge_core) *core = robot_new(&settings);
        const int64_t start_ns = 60 * TD_NS_PER_S;
        for (uint64_t seq = 1; seq <= 2; seq++)
            assert_true(td_edge_core_sent(
                core, &(td_edge_sent){
                          .seq = seq,
                          .episode = 5,
                          .captured_ns = start_ns - 3 * PERIOD_NS,
                          .put_ns = start_ns,
                      }));
        robot_answered(core, start_ns, 1, 1, 0);
        td_edge_answer answer = robot_answered(
            core, start_ns + cases[i].round_trip_ns, 2, ROWS, 100);
        td_edge_step step = robot_tick(core, start_ns);
        float expected = 100 + (float)(ROWS - cases[i].rows);
        if (answer.rows != cases[i].rows ||
            (answer.outcome == TD_EDGE_EXPIRED) != (cases[i].rows == 0) ||
            (cases[i].rows > 0 && (step.command[0] != expected ||
                                   step.chunk_row != ROWS - cases[i].rows)))
            fail_msg("%s: %u rows", cases[i].name, answer.rows);
    }
}

// The second observation is of step 2, and its answer comes at step 3.
static void a_step_says_which_row_of_which_answer_it_is(void **state)
{
    (void)state;
    static const struct {
        uint64_t chunk, row;
    } steps[] = {{1, 0}, {1, 1}, {1, 2}, {2, 1}, {2, 2}, {2, 3}};
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_send(core, 1, 0);
    robot_answered(core, 0, 1, ROWS, 0);
    for (size_t i = 0; i < TD_COUNT_OF(steps); i++) {
        if (i == 2) robot_send(core, 2, 0);
        if (i == 3) robot_answered(core, 0, 2, ROWS, 100);
        td_edge_step step = robot_tick_alone(core, (int64_t)i * PERIOD_NS, 0);
        assert_true(step.fresh && step.substep == 1);
        assert_int_equal(step.chunk, steps[i].chunk);
        assert_int_equal(step.chunk_row, steps[i].row);
    }
    assert_false(robot_tick_alone(core, TD_NS_PER_S, 0).fresh);
}

static void by_time_the_first_chunk_is_whole(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.trim = TD_EDGE_TRIM_TIME;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_tick(core, 0);
    td_edge_answer answer = robot_answered(core, 50 * PERIOD_NS, 1, ROWS, 100);
    assert_int_equal(answer.rows, ROWS);
    assert_float_equal(robot_tick(core, 50 * PERIOD_NS).command[0], 100, 0);
}

static void asks_at_once_and_again_only_when_it_is_due(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.ask.resend_min_ns = settings.ask.resend_max_ns = 5 * PERIOD_NS;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    for (int64_t i = 0; i < 16; i++) {
        td_edge_step step = robot_tick(core, i * PERIOD_NS);
        assert_int_equal(step.ask, i % 5 == 0);
        if (!step.ask) continue;
        assert_int_equal(step.seq, 1 + i / 5);
        assert_true(step.must_go);
    }
    assert_int_equal(robot_counts(core).asked, 4);
    assert_int_equal(robot_counts(core).outcomes[TD_EDGE_PENDING], 4);
}

// Seconds before anything is known, then three times the longest of late.
static void asks_again_after_three_usual_round_trips(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.ask.resend_min_ns = PERIOD_NS;
    settings.ask.resend_max_ns = 100 * PERIOD_NS;
    settings.ask.threshold = 1;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    assert_true(robot_tick(core, 0).ask);
    assert_false(robot_tick(core, 99 * PERIOD_NS).ask);
    robot_answered(core, 99 * PERIOD_NS, 1, ROWS, 100); // a cold start
    assert_true(robot_tick(core, 100 * PERIOD_NS).ask);
    robot_answered(core, 104 * PERIOD_NS, 2, ROWS, 200);
    assert_true(robot_tick(core, 110 * PERIOD_NS).ask);
    assert_false(robot_tick(core, 121 * PERIOD_NS).ask);
    assert_true(robot_tick(core, 122 * PERIOD_NS).ask);
}

static void asks_again_when_few_enough_rows_are_left(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.ask.threshold = 1.0 / ROWS;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    assert_true(robot_tick(core, 0).must_go);
    robot_answered(core, 0, 1, ROWS, 100);
    assert_false(robot_tick(core, 0).ask); // 3 left
    assert_false(robot_tick(core, 0).ask); // 2 left
    td_edge_step step = robot_tick(core, 0);
    assert_int_equal(step.left, 1);
    assert_true(step.ask);
    assert_int_equal(step.seq, 2);
    assert_false(step.must_go);
    assert_false(robot_tick(core, 0).ask); // the second is on its way
}

static void a_server_just_found_is_asked_at_once(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    assert_true(robot_tick_alone(core, 0, 1).ask);
    assert_false(robot_tick_alone(core, 1, 1).ask);
    assert_false(robot_tick_alone(core, 2, 0).ask);
    assert_true(robot_tick_alone(core, 3, 2).ask);
    assert_false(robot_tick_alone(core, 4, 2).ask);
    assert_true(robot_tick_alone(core, 5, 3).ask); // found between two ticks
    assert_false(robot_tick_alone(core, 6, 3).ask);
}

static void nobody_asks_while_there_is_no_server(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    for (int64_t i = 0; i < 10; i++) {
        td_edge_step step = robot_tick_alone(core, i * TD_NS_PER_S, 0);
        assert_false(step.ask || step.must_go);
    }
    td_edge_step step = robot_tick_alone(core, 10 * TD_NS_PER_S, 1);
    assert_true(step.ask);
    assert_int_equal(step.seq, 1);
}

static void what_is_buffered_plays_while_there_is_no_server(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_tick(core, 0);
    robot_answered(core, 0, 1, ROWS, 100);
    for (int i = 0; i < ROWS; i++)
        assert_true(robot_tick_alone(core, 0, 0).fresh);
    assert_true(robot_tick_alone(core, 0, 0).starved);
}

static void warns_once_and_recovers_once(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings(); // warns after 3
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_tick(core, 0);
    for (uint64_t round = 1; round <= 2; round++) {
        robot_answered(core, 0, round, 2, 100);
        robot_tick(core, 0);
        robot_tick(core, 0);
        assert_false(robot_counts(core).warned);
        for (int i = 1; i <= 10; i++) {
            td_edge_step step = robot_tick(core, 0);
            assert_true(step.starved);
            assert_int_equal(robot_counts(core).warned, i >= 3);
            assert_int_equal(robot_counts(core).warnings, round - (i < 3));
        }
    }
}

static void a_short_gap_is_no_reason_to_warn(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings(); // warns after 3
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_tick(core, 0);
    for (uint64_t seq = 1; seq <= 5; seq++) {
        robot_answered(core, 0, seq, 1, 100);
        for (int i = 0; i < 3; i++)
            robot_tick(core, 0);
        assert_false(robot_counts(core).warned);
    }
    assert_int_equal(robot_counts(core).starved, 10);
    assert_int_equal(robot_counts(core).warnings, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_that_make_no_sense_are_refused),
        cmocka_unit_test(a_substep_is_a_nanosecond_or_more),
        cmocka_unit_test(a_users_aggregate_is_one_function),
        cmocka_unit_test(when_to_ask_is_checked_and_how_often),
        cmocka_unit_test(plain_settings_are_those_of_a_robots_file),
        cmocka_unit_test(nobody_moves_or_starves_before_the_first_chunk),
        cmocka_unit_test(a_chunk_plays_row_by_row),
        cmocka_unit_test(the_cursor_stands_still_while_the_robot_holds),
        cmocka_unit_test(rows_that_were_played_meanwhile_are_not_played_again),
        cmocka_unit_test(rows_beyond_actions_per_chunk_are_not_used),
        cmocka_unit_test(by_steps_a_round_trip_beyond_a_chunk_loses_no_row),
        cmocka_unit_test(by_time_a_round_trip_beyond_a_chunk_discards_them_all),
        cmocka_unit_test(by_time_round_trip_over_period_rows_are_past),
        cmocka_unit_test(a_step_says_which_row_of_which_answer_it_is),
        cmocka_unit_test(by_time_the_first_chunk_is_whole),
        cmocka_unit_test(asks_at_once_and_again_only_when_it_is_due),
        cmocka_unit_test(asks_again_after_three_usual_round_trips),
        cmocka_unit_test(asks_again_when_few_enough_rows_are_left),
        cmocka_unit_test(a_server_just_found_is_asked_at_once),
        cmocka_unit_test(nobody_asks_while_there_is_no_server),
        cmocka_unit_test(what_is_buffered_plays_while_there_is_no_server),
        cmocka_unit_test(warns_once_and_recovers_once),
        cmocka_unit_test(a_short_gap_is_no_reason_to_warn),
    };
    return cmocka_run_group_tests_name("edge/core", tests, NULL, NULL);
}

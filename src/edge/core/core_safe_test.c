// SPDX-License-Identifier: Apache-2.0
// The core between policy and robot: gate, fail-safe, control rate, episodes.
#include "edge/core/core_fixture.h"

#include <math.h>

#define ROWS 4

static td_edge_step tick_at(td_edge_core *core, int64_t now_ns, float at,
                            bool driver_down)
{
    const float reading[CHANNELS] = {at, at};
    const td_edge_core_input seen = {
        .now_ns = now_ns,
        .connection = 1,
        .reading = reading,
        .read_ns = now_ns,
        .driver_down = driver_down,
    };
    td_edge_step step = td_edge_core_tick(core, &seen);
    if (step.ask) robot_send(core, step.seq, now_ns);
    return step;
}

static td_edge_core_settings limited(double max_step)
{
    td_edge_core_settings settings = robot_settings();
    for (int i = 0; i < CHANNELS; i++)
        settings.limits[i].max_step = max_step;
    return settings;
}

static void nothing_is_commanded_before_the_robot_was_read(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    td_edge_core_input blind = {.connection = 1};
    td_edge_step step = td_edge_core_tick(core, &blind);
    robot_send(core, step.seq, 0);
    robot_answered(core, 0, 1, ROWS, 100);
    step = td_edge_core_tick(core, &blind);
    assert_null(step.command);
    assert_false(step.fresh);
    assert_int_equal(td_edge_core_cursor(core), 0);
    step = tick_at(core, 1, 100, false);
    assert_float_equal(step.command[0], 100, 0);
}

static void the_first_command_leads_from_where_the_robot_is(void **state)
{
    (void)state;
    const td_edge_core_settings settings = limited(0.5);
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    tick_at(core, 0, 2, false);
    robot_answered(core, 0, 1, ROWS, 10);
    td_edge_step step = tick_at(core, 1, 2, false);
    assert_float_equal(step.command[0], 2.5, 1e-6);
    assert_float_equal(step.wanted[0], 10, 0);
    assert_int_equal(step.hits->count[TD_EDGE_GATE_STEP], CHANNELS);
}

static void limits_hit_in_a_row_mean_fail_safe_until_a_newer_chunk(void **state)
{
    (void)state;
    td_edge_core_settings settings = limited(0.5);
    settings.max_limit_hits = 3;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    tick_at(core, 0, 0, false);
    robot_answered(core, 0, 1, 32, 100);
    for (int64_t i = 1; i <= 3; i++)
        assert_int_equal(tick_at(core, i, 0, false).failsafe,
                         TD_EDGE_FAILSAFE_FOR_NONE);
    td_edge_step step = tick_at(core, 4, 0, false);
    assert_int_equal(step.failsafe, TD_EDGE_FAILSAFE_FOR_LIMITS);
    assert_true(step.ask && step.must_go);
    assert_float_equal(step.command[0], 1.5, 1e-6); // where it was
    assert_int_equal(td_edge_core_cursor(core), 3); // and stands still
    assert_true(step.left > 0);
    step = tick_at(core, 5, 0, false);
    assert_int_equal(step.failsafe, TD_EDGE_FAILSAFE_FOR_LIMITS);

    robot_answered(core, 6, 2, ROWS, 1.5F);
    step = tick_at(core, 7, 0, false);
    assert_int_equal(step.failsafe, TD_EDGE_FAILSAFE_FOR_NONE);
    assert_float_equal(step.command[0], 1.5, 0);
    assert_int_equal(robot_counts(core).failsafes[TD_EDGE_FAILSAFE_FOR_LIMITS],
                     2);
}

static void rows_within_the_limits_never_stop_the_robot(void **state)
{
    (void)state;
    td_edge_core_settings settings = limited(1.5);
    settings.max_limit_hits = 1;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    tick_at(core, 0, 0, false);
    robot_answered(core, 0, 1, ROWS, 1);
    for (int64_t i = 1; i <= ROWS; i++)
        assert_true(tick_at(core, i, 0, false).fresh);
}

static void a_reset_ends_what_the_limits_stopped(void **state)
{
    (void)state;
    td_edge_core_settings settings = limited(0.5);
    settings.max_limit_hits = 1;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    tick_at(core, 0, 0, false);
    robot_answered(core, 0, 1, ROWS, 100);
    assert_true(tick_at(core, 1, 0, false).fresh);
    for (int64_t i = 2; i <= 5; i++)
        assert_int_equal(tick_at(core, i, 0, false).failsafe,
                         TD_EDGE_FAILSAFE_FOR_LIMITS);
    assert_int_equal(td_edge_core_reset(core), TD_OK);
    assert_int_equal(tick_at(core, 6, 0, false).failsafe,
                     TD_EDGE_FAILSAFE_FOR_STARVED);
}

// On its way to the safe pose, in the middle of a step, it meets the limit.
static void what_the_fail_safe_meets_is_not_counted_for_the_step(void **state)
{
    (void)state;
    td_edge_core_settings settings = limited(0.5);
    settings.substeps = 2;
    settings.max_limit_hits = 1;
    for (int i = 0; i < CHANNELS; i++)
        settings.failsafe[i] = (td_edge_failsafe_channel){
            .mode = TD_EDGE_FAILSAFE_SAFE_POSE, .safe = 9, .safe_step = 9};
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    static const float zeros[ROWS * CHANNELS];
    tick_at(core, 0, 0, false);
    robot_answer answer;
    answer_fill(&answer, 1, ROWS, 0);
    answer.action.actions.data = zeros;
    robot_hear(core, 0, &answer.action);
    assert_true(tick_at(core, 1, 0, false).fresh);
    td_edge_step step = tick_at(core, 2, 0, true);
    assert_int_equal(step.hits->count[TD_EDGE_GATE_STEP], CHANNELS);
    for (int64_t i = 3; i <= 6; i++)
        assert_true(tick_at(core, i, 0, false).fresh);
}

static void what_the_gate_changed_is_counted_by_its_limit(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.limits[0].max = 2;
    settings.limits[1].max_step = 0.5;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    tick_at(core, 0, 0, false);
    robot_answered(core, 0, 1, ROWS, 5);
    for (uint64_t ticks = 1; ticks < ROWS; ticks++) {
        tick_at(core, 1, 0, false);
        td_edge_counts counts = robot_counts(core);
        assert_int_equal(counts.limited[TD_EDGE_GATE_POSITION], ticks);
        assert_int_equal(counts.limited[TD_EDGE_GATE_STEP], ticks);
        assert_int_equal(counts.limited[TD_EDGE_GATE_ACCEL], 0);
        assert_int_equal(counts.limited[TD_EDGE_GATE_VALUE], 0);
        assert_int_equal(counts.left, ROWS - ticks);
        assert_int_equal(counts.blends_refused, 0);
    }
}

static void the_gate_goes_by_the_kind_of_each_channel(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    for (int i = 0; i < CHANNELS; i++) {
        settings.kinds[i] = TD_WIRE_HOLD; // which has no acceleration
        settings.limits[i].max_accel_step = 0.1;
    }
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    tick_at(core, 0, 0, false);
    robot_answered(core, 0, 1, ROWS, 5);
    td_edge_step step = tick_at(core, 1, 0, false);
    assert_true(step.command[0] == 5 && step.command[1] == -5);
}

static void limits_count_by_policy_step_and_not_in_the_fail_safe(void **state)
{
    (void)state;
    td_edge_core_settings settings = limited(0.5);
    settings.substeps = 10;
    settings.max_limit_hits = 2;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    tick_at(core, 0, 0, false);
    robot_answered(core, 0, 1, ROWS, 100);
    for (int64_t i = 1; i <= 20; i++)
        assert_true(tick_at(core, i, 0, false).fresh);
    assert_int_equal(tick_at(core, 21, 0, false).failsafe,
                     TD_EDGE_FAILSAFE_FOR_LIMITS);
    robot_answered(core, 22, 2, ROWS, 100); // as bad
    for (int64_t i = 23; i <= 42; i++)
        assert_true(tick_at(core, i, 0, false).fresh);
    assert_int_equal(tick_at(core, 43, 0, false).failsafe,
                     TD_EDGE_FAILSAFE_FOR_LIMITS);
}

static void a_driver_that_is_down_holds_and_its_robot_is_read_anew(void **state)
{
    (void)state;
    const td_edge_core_settings settings = limited(0.5);
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    tick_at(core, 0, 0, false);
    robot_answered(core, 0, 1, ROWS, 0);
    assert_true(tick_at(core, 1, 0, false).fresh);
    td_edge_step step = tick_at(core, 2, 0, true);
    assert_int_equal(step.failsafe, TD_EDGE_FAILSAFE_FOR_DRIVER);
    assert_int_equal(td_edge_core_cursor(core), 1);
    step = tick_at(core, 3, 7, false); // somebody moved it
    assert_true(step.fresh);
    assert_float_equal(step.command[0], 6.5, 1e-6);
}

static void an_old_reading_does_not_end_the_fail_safe(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    tick_at(core, 0, 0, false);
    robot_answered(core, 0, 1, ROWS, 0);
    tick_at(core, 5, 0, true);
    const float reading[CHANNELS] = {0};
    td_edge_core_input seen = {
        .now_ns = 6, .connection = 1, .reading = reading, .read_ns = 5};
    assert_int_equal(td_edge_core_tick(core, &seen).failsafe,
                     TD_EDGE_FAILSAFE_FOR_DRIVER);
    seen.read_ns = 6;
    assert_int_equal(td_edge_core_tick(core, &seen).failsafe,
                     TD_EDGE_FAILSAFE_FOR_NONE);
}

static void a_starved_robot_does_what_each_channel_says(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.failsafe[0].mode = TD_EDGE_FAILSAFE_HOLD;
    settings.failsafe[1] = (td_edge_failsafe_channel){
        .mode = TD_EDGE_FAILSAFE_SAFE_POSE, .safe = 1, .safe_step = 0.25};
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    tick_at(core, 0, 0, false);
    robot_answered(core, 0, 1, 1, 0); // one row, of zeros
    assert_true(tick_at(core, 1, 0, false).fresh);
    for (int64_t i = 2; i < 40; i++) {
        td_edge_step step = tick_at(core, i, 0, false);
        assert_true(step.starved);
        assert_float_equal(step.command[0], 0, 0);
        assert_true(step.command[1] <= 1);
    }
    assert_float_equal(tick_at(core, 40, 0, false).command[1], 1, 1e-6);
}

static void after_the_fail_safe_the_way_begins_where_it_led(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.substeps = 4;
    for (int i = 0; i < CHANNELS; i++)
        settings.failsafe[i] =
            (td_edge_failsafe_channel){.mode = TD_EDGE_FAILSAFE_ZERO_VELOCITY};
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    tick_at(core, 0, 0, false);
    robot_answered(core, 0, 1, 1, 8);
    for (int64_t i = 1; i <= 4; i++)
        tick_at(core, i, 0, false);
    assert_float_equal(tick_at(core, 5, 0, false).command[0], 0, 0);
    robot_answered(core, 6, 2, 2, 4);
    assert_float_equal(tick_at(core, 7, 0, false).command[0], 1, 1e-6);
}

static void ticks_between_policy_steps_are_interpolated(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.substeps = 4;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    tick_at(core, 0, 0, false);
    robot_answered(core, 0, 1, 2, 8); // rows 8 and 9
    for (int64_t i = 1; i <= 4; i++)
        assert_float_equal(tick_at(core, i, 0, false).command[0], 8, 0);
    assert_int_equal(td_edge_core_cursor(core), 1);
    for (int64_t i = 1; i <= 4; i++)
        assert_float_equal(tick_at(core, 4 + i, 0, false).command[0],
                           8 + (double)i / 4, 1e-6);
    assert_int_equal(td_edge_core_cursor(core), 2);
    assert_true(tick_at(core, 9, 0, false).starved);
    assert_int_equal(robot_counts(core).fresh, 8);
}

static void
a_chunk_with_a_value_that_is_no_number_is_refused_whole(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < TD_COUNT_OF(bad); i++) {
        const td_edge_core_settings settings = robot_settings();
        TD_AUTO(td_edge_core) *core = robot_new(&settings);
        tick_at(core, 0, 0, false);
        robot_answer answer;
        answer_fill(&answer, 1, ROWS, 1);
        memcpy(answer.bytes + 1 + (ROWS * CHANNELS - 1) * sizeof(float),
               &bad[i], sizeof(float));
        assert_int_equal(robot_hear(core, 0, &answer.action).outcome,
                         TD_EDGE_NOT_FINITE);
        assert_null(tick_at(core, 1, 0, false).command);
    }
}

static void a_reset_forgets_what_was_to_come(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.ask.threshold = 1;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    tick_at(core, 0, 0, false);
    robot_answered(core, 0, 1, ROWS, 3);
    td_edge_step step = tick_at(core, 1, 0, false);
    assert_true(step.fresh && step.ask); // seq 2 is on its way
    assert_int_equal(td_edge_core_reset(core), TD_OK);
    assert_int_equal(td_edge_core_episode(core), 6);
    assert_int_equal(robot_counts(core).outcomes[TD_EDGE_RESET], 1);

    step = tick_at(core, 2, 0, false);
    assert_true(step.starved && step.ask && step.must_go);
    assert_float_equal(step.command[0], 3, 0);
    robot_answer answer;
    answer_fill(&answer, 2, ROWS, 50); // of the episode before
    td_edge_answer result = robot_hear(core, 3, &answer.action);
    assert_true(result.stray && result.why_stray == TD_EDGE_STRAY_EPISODE);
    answer_fill(&answer, 3, ROWS, 3);
    answer.action.ident.episode = 6;
    assert_int_equal(robot_hear(core, 4, &answer.action).outcome,
                     TD_EDGE_MERGED);
    assert_true(tick_at(core, 5, 0, false).fresh);
}

static void an_observation_of_an_old_episode_is_not_sent(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    td_edge_step step = robot_tick_alone(core, 0, 1);
    assert_int_equal(td_edge_core_reset(core), TD_OK);
    const td_edge_sent sent = {.seq = step.seq, .episode = 5};
    assert_false(td_edge_core_sent(core, &sent));
    assert_int_equal(robot_counts(core).outcomes[TD_EDGE_RESET], 1);
    assert_true(robot_tick_alone(core, 1, 1).ask);
}

static void the_age_of_what_is_played_counts_from_the_capture(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    tick_at(core, 100, 0, false);
    robot_answered(core, 130, 1, ROWS, 0);
    assert_int_equal(tick_at(core, 150, 0, false).age_ns, 50);
    assert_int_equal(tick_at(core, 170, 0, false).age_ns, 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_commanded_before_the_robot_was_read),
        cmocka_unit_test(the_first_command_leads_from_where_the_robot_is),
        cmocka_unit_test(
            limits_hit_in_a_row_mean_fail_safe_until_a_newer_chunk),
        cmocka_unit_test(limits_count_by_policy_step_and_not_in_the_fail_safe),
        cmocka_unit_test(
            a_driver_that_is_down_holds_and_its_robot_is_read_anew),
        cmocka_unit_test(an_old_reading_does_not_end_the_fail_safe),
        cmocka_unit_test(a_starved_robot_does_what_each_channel_says),
        cmocka_unit_test(after_the_fail_safe_the_way_begins_where_it_led),
        cmocka_unit_test(ticks_between_policy_steps_are_interpolated),
        cmocka_unit_test(
            a_chunk_with_a_value_that_is_no_number_is_refused_whole),
        cmocka_unit_test(a_reset_forgets_what_was_to_come),
        cmocka_unit_test(an_observation_of_an_old_episode_is_not_sent),
        cmocka_unit_test(the_age_of_what_is_played_counts_from_the_capture),
        cmocka_unit_test(rows_within_the_limits_never_stop_the_robot),
        cmocka_unit_test(a_reset_ends_what_the_limits_stopped),
        cmocka_unit_test(what_the_fail_safe_meets_is_not_counted_for_the_step),
        cmocka_unit_test(what_the_gate_changed_is_counted_by_its_limit),
        cmocka_unit_test(the_gate_goes_by_the_kind_of_each_channel),
    };
    return cmocka_run_group_tests_name("edge/core_safe", tests, NULL, NULL);
}

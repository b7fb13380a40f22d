// SPDX-License-Identifier: Apache-2.0
#include "edge/safety/failsafe.h"

#include "base/err.h"
#include "base/rand.h"
#include "edge/safety/gate_fixture.h"

// An arm, a wheel, a gripper and a wrist.
#define CHANNELS 8
#define ARM 0
#define WHEEL 1
#define FREE 2
#define GRIPPER 3
#define WRIST 4

static const td_edge_gate_channel limits[CHANNELS] = {
    [ARM] = {TD_WIRE_LINEAR, -2, 2, 0.1, 0.01},
    [WHEEL] = {TD_WIRE_LINEAR, -1, 1, 0.2, 0.05},
    [FREE] = {TD_WIRE_ANGLE, -INFINITY, INFINITY, 0.1, 0.01},
    [GRIPPER] = {TD_WIRE_HOLD, 0, 1, 0.5, INFINITY},
    [WRIST] = {TD_WIRE_QUATERNION, -INFINITY, INFINITY, 0.1, 0.01},
    ROTATION,
    ROTATION,
    ROTATION,
};

static const float home[CHANNELS] = {0, 0, 3, 0.5F, 0, 0, 0, 1};

typedef struct robot {
    td_edge_gate gate;
    td_edge_failsafe failsafe;
    gate_watch watches[5];
    float command[CHANNELS];
} robot;

static robot robot_of(const td_edge_failsafe_channel *channels)
{
    robot r = {.gate = gate_new(limits, CHANNELS, home)};
    td_errinfo info = {.text = ""};
    if (td_edge_failsafe_init(&r.failsafe, channels, &r.gate, &info) != TD_OK)
        fail_msg("%s", info.text);
    for (uint32_t i = 0; i <= WRIST; i++)
        r.watches[i] = gate_watch_from(&r.gate, i);
    return r;
}

static robot robot_in(td_edge_failsafe_mode mode)
{
    td_edge_failsafe_channel channels[CHANNELS];
    for (uint32_t i = 0; i < CHANNELS; i++)
        channels[i] = (td_edge_failsafe_channel){mode, home[i], 0.05};
    return robot_of(channels);
}

// Passes the gate and looks that no limit is broken.
static td_edge_gate_hits want(robot *r, const float *wanted)
{
    td_edge_gate_hits hits = gate_pass(&r->gate, wanted, r->command);
    for (uint32_t i = 0; i <= WRIST; i++)
        gate_watch_command(&r->watches[i], &r->command[i]);
    return hits;
}

static td_edge_gate_hits fail_safe(robot *r, const float *row)
{
    float wanted[CHANNELS];
    td_edge_failsafe_row(&r->failsafe, &r->gate, row, wanted);
    return want(r, wanted);
}

// A row that everything has far to go to.
static const float far[CHANNELS] = {1.9F, 0.9F, -1, 1, 0, 1, 0, 0};

// Half a second on the way there, at full speed.
static void get_going(robot *r)
{
    for (int i = 0; i < 15; i++)
        want(r, far);
}

static void hold_brakes_and_stays_where_it_stopped(void **state)
{
    (void)state;
    robot r = robot_in(TD_EDGE_FAILSAFE_HOLD);
    get_going(&r);
    float before = r.command[ARM];
    for (int i = 0; i < 20; i++) {
        fail_safe(&r, far);
        assert_true(r.command[ARM] >= before);
        before = r.command[ARM];
    }
    float stopped[CHANNELS];
    memcpy(stopped, r.command, sizeof stopped);
    td_edge_gate_hits hits = fail_safe(&r, far);
    assert_memory_equal(r.command, stopped, sizeof stopped);
    assert_int_equal(hits.consecutive, 0);
}

static void hold_at_rest_repeats_the_last_gated_command(void **state)
{
    (void)state;
    robot r = robot_in(TD_EDGE_FAILSAFE_HOLD);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fail_safe(&r, far).consecutive, 0);
        assert_memory_equal(r.command, home, sizeof home);
    }
}

static void zero_velocity_goes_to_zero(void **state)
{
    (void)state;
    td_edge_failsafe_channel channels[CHANNELS] = {
        [WHEEL] = {.mode = TD_EDGE_FAILSAFE_ZERO_VELOCITY}};
    robot r = robot_of(channels);
    get_going(&r);
    assert_true(r.command[WHEEL] > 0.5F);
    for (int i = 0; i < 20; i++)
        fail_safe(&r, far);
    assert_float_equal(r.command[WHEEL], 0, 0);
    assert_true(r.command[ARM] > 0.5F);
}

static void safe_pose_is_reached_at_its_own_speed(void **state)
{
    (void)state;
    robot r = robot_in(TD_EDGE_FAILSAFE_SAFE_POSE);
    for (int i = 0; i < 100; i++)
        want(&r, far);
    // Slower than the robot's own limits: they are not hit on the way.
    float before = r.command[ARM];
    td_edge_gate_hits hits = {0};
    for (int i = 0; i < 100; i++) {
        hits = fail_safe(&r, far);
        assert_true(r.command[ARM] <= before &&
                    r.command[ARM] >= before - 0.05F - 1e-6F);
        before = r.command[ARM];
    }
    assert_int_equal(hits.consecutive, 0);
    for (uint32_t i = 0; i < WRIST; i++)
        if (i != FREE) assert_float_equal(r.command[i], home[i], 0);
    assert_float_equal(remainder(r.command[FREE] - home[FREE], 2 * M_PI), 0,
                       1e-6);
    assert_float_equal(fabsf(r.command[WRIST + 3]), 1, 1e-6);
}

static void safe_pose_is_reached_by_steps_too_small_for_a_float(void **state)
{
    (void)state;
    const td_edge_gate_channel channel = {TD_WIRE_LINEAR, -1e4, 1e4, 1, 1};
    const td_edge_failsafe_channel to = {TD_EDGE_FAILSAFE_SAFE_POSE, 8000.01F,
                                         1e-5};
    td_edge_gate gate = gate_new(&channel, 1, (float[]){8000});
    td_edge_failsafe failsafe;
    assert_int_equal(td_edge_failsafe_init(&failsafe, &to, &gate, NULL), TD_OK);
    float command = 8000;
    for (int i = 0; i < 1000 && command != to.safe; i++) {
        td_edge_failsafe_row(&failsafe, &gate, NULL, &command);
        command = gate_pass_one(&gate, command);
    }
    assert_float_equal(command, to.safe, 0);
}

static void repeat_completes_the_motion_to_the_last_row(void **state)
{
    (void)state;
    robot r = robot_in(TD_EDGE_FAILSAFE_REPEAT);
    get_going(&r);
    for (int i = 0; i < 100; i++)
        fail_safe(&r, far);
    assert_float_equal(r.command[ARM], far[ARM], 0);
    assert_float_equal(r.command[GRIPPER], far[GRIPPER], 0);
    assert_float_equal(fabsf(r.command[WRIST + 1]), 1, 1e-6);
}

static void repeat_without_a_row_holds(void **state)
{
    (void)state;
    robot r = robot_in(TD_EDGE_FAILSAFE_REPEAT);
    fail_safe(&r, NULL);
    assert_memory_equal(r.command, home, sizeof home);
}

static void each_channel_has_its_own_mode(void **state)
{
    (void)state;
    td_edge_failsafe_channel channels[CHANNELS] = {
        [ARM] = {TD_EDGE_FAILSAFE_SAFE_POSE, -1, 0.1},
        [WHEEL] = {.mode = TD_EDGE_FAILSAFE_ZERO_VELOCITY},
        [GRIPPER] = {.mode = TD_EDGE_FAILSAFE_REPEAT},
    };
    robot r = robot_of(channels);
    float wanted[CHANNELS];
    td_edge_failsafe_row(&r.failsafe, &r.gate, far, wanted);
    assert_true(wanted[ARM] < 0 && wanted[ARM] >= -0.1F);
    assert_float_equal(wanted[WHEEL], 0, 0);
    assert_float_equal(wanted[FREE], home[FREE], 0);
    assert_float_equal(wanted[GRIPPER], far[GRIPPER], 0);
    assert_memory_equal(&wanted[WRIST], &home[WRIST], 4 * sizeof(float));
}

// In and out of it at random, with rows from anywhere: want() and fail_safe()
// look at every command.
static void entering_and_leaving_makes_no_step_above_the_limits(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 7);
    for (int i = 0; i < 2000; i++) {
        td_edge_failsafe_channel channels[CHANNELS];
        for (uint32_t j = 0; j < CHANNELS; j++) {
            td_edge_failsafe_mode mode = td_rand_u64(&rand) % 4;
            if (mode == TD_EDGE_FAILSAFE_ZERO_VELOCITY && j != WHEEL)
                mode = TD_EDGE_FAILSAFE_HOLD;
            channels[j] = (td_edge_failsafe_channel){mode, home[j], 0.03};
        }
        robot r = robot_of(channels);
        float row[CHANNELS];
        memcpy(row, home, sizeof row);
        for (int turns = 0; turns < 10; turns++) {
            for (uint32_t j = 0; j < CHANNELS; j++)
                row[j] = (float)(3 * td_rand_normal(&rand));
            for (uint64_t n = td_rand_u64(&rand) % 30; n > 0; n--)
                want(&r, row);
            for (uint64_t n = td_rand_u64(&rand) % 30; n > 0; n--)
                fail_safe(&r, row);
        }
    }
}

static void settings_that_make_no_sense_are_named(void **state)
{
    (void)state;
    static const struct {
        uint32_t channel;
        td_edge_failsafe_channel setting;
        const char *text;
    } cases[] = {
        {ARM,
         {TD_EDGE_FAILSAFE_SAFE_POSE, 3, 1},
         "channel 0: safe: must be -2 to 2, got 3"},
        {ARM,
         {TD_EDGE_FAILSAFE_SAFE_POSE, NAN, 1},
         "channel 0: safe: must be -2 to 2, got nan"},
        {WHEEL,
         {TD_EDGE_FAILSAFE_SAFE_POSE, 0, 0},
         "channel 1: safe_step: must be above 0, got 0"},
        {FREE,
         {TD_EDGE_FAILSAFE_ZERO_VELOCITY, 0, 0},
         "channel 2: mode: zero_velocity is for commands that are speeds, not "
         "for a rotation"},
        {WRIST,
         {TD_EDGE_FAILSAFE_SAFE_POSE, 1, 1},
         "channel 4: safe: a quaternion must be of length 1, got 1.41421"},
    };
    td_edge_gate gate = gate_new(limits, CHANNELS, home);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_failsafe_channel channels[CHANNELS] = {[WRIST + 3].safe = 1};
        td_edge_failsafe failsafe;
        td_errinfo info;
        channels[cases[i].channel] = cases[i].setting;
        assert_int_equal(
            td_edge_failsafe_init(&failsafe, channels, &gate, &info),
            TD_ERR_INVALID);
        assert_string_equal(info.text, cases[i].text);
    }
}

static void a_safe_pose_may_be_at_a_limit(void **state)
{
    (void)state;
    static const float poses[] = {-2, 2};
    td_edge_gate gate = gate_new(limits, 1, home);
    for (size_t i = 0; i < TD_COUNT_OF(poses); i++) {
        const td_edge_failsafe_channel to = {TD_EDGE_FAILSAFE_SAFE_POSE,
                                             poses[i], 1};
        td_edge_failsafe failsafe;
        assert_int_equal(td_edge_failsafe_init(&failsafe, &to, &gate, NULL),
                         TD_OK);
    }
}

static void zero_velocity_needs_a_zero_within_the_limits(void **state)
{
    (void)state;
    static const struct {
        double min, max;
        td_err err;
    } cases[] = {{-0.5, 0.5, TD_OK},
                 {0, 0.5, TD_OK},
                 {-0.5, 0, TD_OK},
                 {0.5, 2, TD_ERR_INVALID},
                 {-2, -0.5, TD_ERR_INVALID}};
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        const td_edge_gate_channel channel = {TD_WIRE_LINEAR, cases[i].min,
                                              cases[i].max, 1, 1};
        const td_edge_failsafe_channel zero = {
            .mode = TD_EDGE_FAILSAFE_ZERO_VELOCITY};
        td_edge_gate gate = gate_new(&channel, 1, (float[]){0});
        td_edge_failsafe failsafe;
        if (td_edge_failsafe_init(&failsafe, &zero, &gate, NULL) !=
            cases[i].err)
            fail_msg("%g to %g", cases[i].min, cases[i].max);
    }
}

static void names_are_those_of_the_file_and_the_log(void **state)
{
    (void)state;
    assert_string_equal(td_edge_failsafe_mode_name(TD_EDGE_FAILSAFE_SAFE_POSE),
                        "safe_pose");
    assert_string_equal(
        td_edge_failsafe_reason_name(TD_EDGE_FAILSAFE_FOR_LIMITS), "limits");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hold_brakes_and_stays_where_it_stopped),
        cmocka_unit_test(hold_at_rest_repeats_the_last_gated_command),
        cmocka_unit_test(zero_velocity_goes_to_zero),
        cmocka_unit_test(safe_pose_is_reached_at_its_own_speed),
        cmocka_unit_test(safe_pose_is_reached_by_steps_too_small_for_a_float),
        cmocka_unit_test(repeat_completes_the_motion_to_the_last_row),
        cmocka_unit_test(repeat_without_a_row_holds),
        cmocka_unit_test(each_channel_has_its_own_mode),
        cmocka_unit_test(entering_and_leaving_makes_no_step_above_the_limits),
        cmocka_unit_test(settings_that_make_no_sense_are_named),
        cmocka_unit_test(a_safe_pose_may_be_at_a_limit),
        cmocka_unit_test(zero_velocity_needs_a_zero_within_the_limits),
        cmocka_unit_test(names_are_those_of_the_file_and_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

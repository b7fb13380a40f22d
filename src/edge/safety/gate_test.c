// SPDX-License-Identifier: Apache-2.0
#include "edge/safety/gate_fixture.h"

#include "base/err.h"
#include "base/rand.h"

#define NONE INFINITY
#define HIT(limit) (1U << TD_EDGE_GATE_##limit)
#define PI_F ((float)M_PI)

static void a_gate_that_was_not_started_lets_nothing_pass(void **state)
{
    (void)state;
    const td_edge_gate_channel channel = {TD_WIRE_LINEAR, -1, 1, NONE, NONE};
    td_edge_gate gate;
    td_edge_gate_hits hits;
    float command = 7;
    assert_int_equal(td_edge_gate_init(&gate, &channel, 1, NULL), TD_OK);
    assert_int_equal(td_edge_gate_pass(&gate, (float[]){0}, &command, &hits),
                     TD_ERR_CLOSED);
    assert_float_equal(command, 7, 0);
}

static void a_reading_that_is_no_place_does_not_start_it(void **state)
{
    (void)state;
    const td_edge_gate_channel channels[] = {
        {TD_WIRE_LINEAR, -1, 1, NONE, NONE},
        ROTATION,
        ROTATION,
        ROTATION,
        ROTATION,
    };
    td_edge_gate gate = gate_new(channels, 5, (float[]){0.5F, 0, 0, 0, 1});
    assert_int_equal(td_edge_gate_start(&gate, (float[]){NAN, 0, 0, 0, 1}),
                     TD_ERR_INVALID);
    assert_int_equal(td_edge_gate_start(&gate, (float[]){0, 0, 0, 0, 0}),
                     TD_ERR_INVALID);
    assert_float_equal(td_edge_gate_last(&gate, 0), 0.5, 0);
}

static void limits_that_make_no_sense_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        td_edge_gate_channel channels[2];
    } cases[] = {
        {"channel 0: min, max: no position from 1 to -1",
         {{TD_WIRE_LINEAR, 1, -1, 1, 1}, {TD_WIRE_LINEAR, -1, 1, 1, 1}}},
        {"channel 1: min, max: no position from nan to 1",
         {{TD_WIRE_LINEAR, -1, 1, 1, 1}, {TD_WIRE_LINEAR, NAN, 1, 1, 1}}},
        {"channel 0: max_step: must be at least 1e-12, got 0",
         {{TD_WIRE_LINEAR, -1, 1, 0, 1}, {TD_WIRE_LINEAR, -1, 1, 1, 1}}},
        {"channel 0: max_accel_step: must be at least 1e-12, got 1e-300",
         {{TD_WIRE_LINEAR, -1, 1, 1, 1e-300}, {TD_WIRE_LINEAR, -1, 1, 1, 1}}},
        {"channel 1: max_accel_step: must be at least 1e-12, got nan",
         {{TD_WIRE_LINEAR, -1, 1, 1, 1}, {TD_WIRE_ANGLE, -1, 1, 1, NAN}}},
        {"channel 0: kind: a quaternion is four channels in a row",
         {ROTATION, ROTATION}},
        {"channel 1: kind: a quaternion is four channels in a row",
         {{TD_WIRE_LINEAR, -1, 1, 1, 1}, ROTATION}},
        {"channel 0: min, max: not for a quaternion",
         {{TD_WIRE_QUATERNION, -1, 1, 1, 1}, ROTATION}},
        {"channel 0: min, max: not for a quaternion",
         {{TD_WIRE_QUATERNION, -NONE, 1, 1, 1}, ROTATION}},
        {"channel 0: min, max: no position from inf to inf",
         {{TD_WIRE_ANGLE, NONE, NONE, 1, 1}, {TD_WIRE_LINEAR, -1, 1, 1, 1}}},
        {"channel 1: min, max: no position from -inf to -inf",
         {{TD_WIRE_LINEAR, -1, 1, 1, 1}, {TD_WIRE_ANGLE, -NONE, -NONE, 1, 1}}},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_gate gate;
        td_errinfo info;
        assert_int_equal(td_edge_gate_init(&gate, cases[i].channels, 2, &info),
                         TD_ERR_INVALID);
        assert_string_equal(info.text, cases[i].text);
    }
}

static void the_least_limits_and_a_single_position_are_taken(void **state)
{
    (void)state;
    static const td_edge_gate_channel channels[] = {
        {TD_WIRE_LINEAR, -1, 1, 1e-12, 1e-12},
        {TD_WIRE_LINEAR, 1, 1, NONE, NONE},
    };
    td_edge_gate gate;
    assert_int_equal(td_edge_gate_init(&gate, channels, 2, NULL), TD_OK);
}

static void a_gate_has_as_many_channels_as_the_wire(void **state)
{
    (void)state;
    static const struct {
        uint32_t count;
        td_err err;
    } cases[] = {
        {0, TD_ERR_INVALID},
        {1, TD_OK},
        {TD_WIRE_MAX_CHANNELS, TD_OK},
        {TD_WIRE_MAX_CHANNELS + 1, TD_ERR_INVALID},
    };
    td_edge_gate_channel channels[TD_WIRE_MAX_CHANNELS + 1];
    for (size_t i = 0; i < TD_COUNT_OF(channels); i++)
        channels[i] = (td_edge_gate_channel){TD_WIRE_LINEAR, -1, 1, 1, 1};
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_gate gate;
        if (td_edge_gate_init(&gate, channels, cases[i].count, NULL) !=
            cases[i].err)
            fail_msg("%u channels", cases[i].count);
    }
}

static void a_quaternion_ends_within_the_channels(void **state)
{
    (void)state;
    static const td_edge_gate_channel channels[] = {
        {TD_WIRE_LINEAR, -1, 1, 1, 1}, ROTATION, ROTATION, ROTATION, ROTATION};
    for (uint32_t count = 1; count <= 5; count++) {
        td_edge_gate gate;
        assert_int_equal(td_edge_gate_init(&gate, channels, count, NULL),
                         count == 1 || count == 5 ? TD_OK : TD_ERR_INVALID);
    }
}

// Neither 0.1 nor -0.1 is a float32, and both round away from 0.
static void position_limits_round_inward(void **state)
{
    (void)state;
    td_edge_gate gate = gate_of(-0.1, 0.1, NONE, NONE);
    float high = gate_pass_one(&gate, 5), low = gate_pass_one(&gate, -5);
    assert_true((double)high <= 0.1 && high > 0.0999999F);
    assert_true((double)low >= -0.1 && low < -0.0999999F);
}

// Too fast to stop short of what a float32 can hold, if that were no limit.
static void a_channel_without_limits_stays_finite(void **state)
{
    (void)state;
    const td_edge_gate_channel channel = {TD_WIRE_LINEAR, -NONE, NONE, NONE,
                                          1e36};
    static const float rows[] = {3.21e38F, 3.23e38F,  3.26e38F,  3.30e38F,
                                 3.35e38F, 3.402e38F, 3.402e38F, 3.402e38F};
    td_edge_gate gate = gate_new(&channel, 1, (float[]){3.2e38F});
    for (size_t i = 0; i < TD_COUNT_OF(rows); i++)
        assert_true(isfinite(gate_pass_one(&gate, rows[i])));
}

static void each_limit_is_hit_under_its_name(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double min, max, step, accel;
        float wanted, command;
        uint32_t hits;
    } cases[] = {
        {"nothing", -2, 2, 1, 1, 0.5F, 0.5F, 0},
        {"position", -2, 2, NONE, NONE, 3, 2, HIT(POSITION)},
        {"step", -2, 2, 0.5, NONE, -1, -0.5F, HIT(STEP)},
        {"acceleration", -2, 2, NONE, 0.25, 1, 0.25F, HIT(ACCEL)},
        {"step and acceleration", -2, 2, 0.5, 0.25, 1, 0.25F,
         HIT(STEP) | HIT(ACCEL)},
        {"not finite", -2, 2, NONE, NONE, NAN, 0, HIT(VALUE)},
        {"infinite", -2, 2, NONE, NONE, INFINITY, 0, HIT(VALUE)},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_gate gate =
            gate_of(cases[i].min, cases[i].max, cases[i].step, cases[i].accel);
        float command;
        td_edge_gate_hits hits = gate_pass(&gate, &cases[i].wanted, &command);
        if (command != cases[i].command || hits.channel[0] != cases[i].hits)
            fail_msg("%s: %g, hits %x", cases[i].name, (double)command,
                     hits.channel[0]);
        for (uint32_t j = 0; j < TD_EDGE_GATE_LIMIT_COUNT; j++)
            assert_int_equal(hits.count[j], cases[i].hits >> j & 1);
    }
    assert_string_equal(td_edge_gate_limit_name(TD_EDGE_GATE_ACCEL),
                        "acceleration");
}

static void hits_in_a_row_are_counted_until_a_clean_tick(void **state)
{
    (void)state;
    td_edge_gate gate = gate_of(-1, 1, NONE, NONE);
    float command;
    assert_int_equal(gate_pass(&gate, (float[]){2}, &command).consecutive, 1);
    assert_int_equal(gate_pass(&gate, (float[]){NAN}, &command).consecutive, 2);
    assert_int_equal(gate_pass(&gate, (float[]){3}, &command).consecutive, 3);
    assert_int_equal(gate_pass(&gate, (float[]){1}, &command).consecutive, 0);
    assert_int_equal(gate_pass(&gate, (float[]){2}, &command).consecutive, 1);
}

static void the_first_command_starts_from_where_the_robot_is(void **state)
{
    (void)state;
    const td_edge_gate_channel channel = {TD_WIRE_LINEAR, -9, 9, 0.5, 0.1};
    td_edge_gate gate = gate_new(&channel, 1, (float[]){4});
    assert_float_equal(gate_pass_one(&gate, -4), 3.9, 1e-6);
}

static void a_start_over_forgets_the_motion_before(void **state)
{
    (void)state;
    td_edge_gate gate = gate_of(-9, 9, 1, 0.1);
    for (int i = 0; i < 5; i++)
        gate_pass_one(&gate, 9);
    assert_int_equal(td_edge_gate_start(&gate, (float[]){-2}), TD_OK);
    assert_float_equal(gate_pass_one(&gate, -2), -2, 0);
}

// One tick braked too late would end beyond the wall or break the limit.
static void a_run_at_a_limit_brakes_in_time_and_ends_on_it(void **state)
{
    (void)state;
    td_edge_gate gate = gate_of(-1, 1, 0.2, 0.01);
    gate_watch watch = gate_watch_from(&gate, 0);
    int ticks = 0;
    for (float at = 0; at < 1 && ticks < 100; ticks++) {
        at = gate_pass_one(&gate, 5);
        gate_watch_command(&watch, &at);
    }
    // Ten ticks up to 0.1 and ten down cover 1; that is also the fastest.
    assert_int_equal(ticks, 19);
    assert_float_equal(gate_pass_one(&gate, 5), 1, 0);
}

static void a_robot_found_outside_stays_or_comes_in(void **state)
{
    (void)state;
    const td_edge_gate_channel channel = {TD_WIRE_LINEAR, -1, 1, 0.5, 0.1};
    td_edge_gate gate = gate_new(&channel, 1, (float[]){3});
    gate_watch watch = gate_watch_from(&gate, 0);
    float command;
    assert_int_equal(gate_pass(&gate, (float[]){3}, &command).consecutive, 0);
    assert_float_equal(command, 3, 0);
    td_edge_gate_hits hits = gate_pass(&gate, (float[]){4}, &command);
    assert_int_equal(hits.channel[0], HIT(POSITION));
    assert_float_equal(command, 3, 0);
    for (int i = 0; i < 100; i++) {
        command = gate_pass_one(&gate, 0);
        gate_watch_command(&watch, &command);
    }
    assert_float_equal(command, 0, 0);
    assert_float_equal(gate_pass_one(&gate, 0.05F), 0.05, 1e-7);
}

static void a_jump_is_followed_without_overshoot(void **state)
{
    (void)state;
    td_edge_gate gate = gate_of(-9, 9, 0.3, 0.02);
    float before = 0, now = 0;
    for (int i = 0; i < 60; i++) {
        now = gate_pass_one(&gate, 2);
        assert_true(now >= before && now <= 2);
        before = now;
    }
    assert_float_equal(now, 2, 0);
}

static void a_moving_target_is_caught_up_with_and_then_passed_on(void **state)
{
    (void)state;
    td_edge_gate gate = gate_of(-99, 99, 0.3, 0.02);
    float command;
    td_edge_gate_hits hits = {0};
    for (int i = 0; i < 100; i++) {
        float wanted = 1 + 0.1F * (float)i;
        hits = gate_pass(&gate, &wanted, &command);
        assert_true(command <= wanted);
        if (hits.consecutive == 0) assert_float_equal(command, wanted, 0);
    }
    assert_int_equal(hits.consecutive, 0);
}

// A wanted that jumps back to where the command is must not throw it back.
static void a_target_that_jumps_onto_the_command_only_brakes(void **state)
{
    (void)state;
    td_edge_gate gate = gate_of(-99, 99, 1, 0.25);
    gate_pass_one(&gate, 50);
    float at = gate_pass_one(&gate, 50);
    assert_float_equal(at, 0.75, 0);
    assert_float_equal(gate_pass_one(&gate, at), 1, 0);
    assert_float_equal(gate_pass_one(&gate, 1), 1, 0);
    assert_float_equal(gate_pass_one(&gate, 1), 1, 0);
}

static void a_value_that_is_not_finite_brakes_its_channel_alone(void **state)
{
    (void)state;
    const td_edge_gate_channel channels[] = {
        {TD_WIRE_LINEAR, -9, 9, 1, 0.25},
        {TD_WIRE_LINEAR, -9, 9, 1, 0.25},
    };
    td_edge_gate gate = gate_new(channels, 2, (float[]){0, 0});
    float command[2];
    gate_pass(&gate, (float[]){0.25F, 0.25F}, command);
    gate_pass(&gate, (float[]){0.75F, 0.75F}, command);
    td_edge_gate_hits hits = gate_pass(&gate, (float[]){NAN, 1.25F}, command);
    assert_float_equal(command[0], 1, 0);
    assert_float_equal(command[1], 1.25, 0);
    assert_int_equal(hits.channel[0], HIT(VALUE) | HIT(ACCEL));
    assert_int_equal(hits.channel[1], 0);
    assert_int_equal(hits.count[TD_EDGE_GATE_VALUE], 1);
    gate_pass(&gate, (float[]){-INFINITY, 1.75F}, command);
    assert_float_equal(command[0], 1, 0);
}

static void a_free_angle_goes_the_shorter_way_and_does_not_wrap(void **state)
{
    (void)state;
    const td_edge_gate_channel channel = {TD_WIRE_ANGLE, -NONE, NONE, 0.2,
                                          NONE};
    td_edge_gate gate = gate_new(&channel, 1, (float[]){PI_F - 0.05F});
    float command;
    td_edge_gate_hits hits =
        gate_pass(&gate, (float[]){-PI_F + 0.05F}, &command);
    assert_int_equal(hits.consecutive, 0);
    assert_float_equal(command, M_PI + 0.05, 1e-6);
    hits = gate_pass(&gate, (float[]){-PI_F + 1.0F}, &command);
    assert_int_equal(hits.channel[0], HIT(STEP));
    assert_float_equal(command, M_PI + 0.25, 1e-6);
}

static void a_free_angle_less_than_half_a_turn_away_is_not_touched(void **state)
{
    (void)state;
    const td_edge_gate_channel channel = {TD_WIRE_ANGLE, -NONE, NONE, NONE,
                                          NONE};
    td_edge_gate gate = gate_new(&channel, 1, (float[]){3});
    assert_true(signbit(gate_pass_one(&gate, -0.0F)));
}

static void all_but_an_angle_without_a_limit_is_a_line(void **state)
{
    (void)state;
    static const td_edge_gate_channel channels[] = {
        {TD_WIRE_ANGLE, -3.1, 3.1, 0.2, NONE},
        {TD_WIRE_ANGLE, -NONE, 3.1, 0.2, NONE},
        {TD_WIRE_ANGLE, -3.1, NONE, 0.2, NONE},
        {TD_WIRE_LINEAR, -NONE, NONE, 0.2, NONE},
    };
    for (size_t i = 0; i < TD_COUNT_OF(channels); i++) {
        td_edge_gate gate = gate_new(&channels[i], 1, (float[]){3});
        assert_float_equal(gate_pass_one(&gate, -3), 2.8, 1e-6);
    }
}

// The driver was away, and what it reads may be wrapped: the way on must not be
// a turn long.
static void a_start_over_counts_an_angle_on_its_turn(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double limit;
        float last, reading, at;
    } cases[] = {
        {"wrapped", 4, 3.5F, 3.5F - 2 * PI_F, 3.5F},
        {"wrapped, and moved meanwhile", 4, 3.5F, 3.2F - 2 * PI_F, 3.2F},
        {"across half a turn", 4, -3.1F, 3.1F, 3.1F - 2 * PI_F},
        {"read as commanded", 7, 6.5F, 6.4F, 6.4F},
        {"moved almost a quarter", 7, 4, 2.5F - 2 * PI_F, 2.5F},
        {"moved far", 7, 4, -0.5F, -0.5F},
        {"no room for another turn", 3.2, 3.1F, -3.05F, -3.05F},
        {"free", NONE, 20, 20 - 6 * PI_F, 20},
        {"free, and moved far", NONE, 7, -1, 2 * PI_F - 1},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        const td_edge_gate_channel channel = {TD_WIRE_ANGLE, -cases[i].limit,
                                              cases[i].limit, 0.1, NONE};
        td_edge_gate gate = gate_new(&channel, 1, &cases[i].last);
        assert_int_equal(td_edge_gate_start(&gate, &cases[i].reading), TD_OK);
        if (fabsf(td_edge_gate_last(&gate, 0) - cases[i].at) > 1e-5F)
            fail_msg("%s: at %g", cases[i].name,
                     (double)td_edge_gate_last(&gate, 0));
    }
}

static void a_hold_channel_has_no_acceleration(void **state)
{
    (void)state;
    const td_edge_gate_channel channels[] = {
        {TD_WIRE_HOLD, 0, 1, NONE, 0.01},
        {TD_WIRE_HOLD, 0, 1, 0.25, 0.01},
    };
    td_edge_gate gate = gate_new(channels, 2, (float[]){0, 0});
    float command[2];
    gate_pass(&gate, (float[]){2, 2}, command);
    assert_float_equal(command[0], 1, 0);
    assert_float_equal(command[1], 0.25, 0);
}

static td_edge_gate rotation_of(double max_step, double max_accel_step)
{
    const td_edge_gate_channel channels[] = {
        {TD_WIRE_QUATERNION, -NONE, NONE, max_step, max_accel_step},
        ROTATION,
        ROTATION,
        ROTATION,
    };
    return gate_new(channels, 4, (float[]){0, 0, 0, 1});
}

// About x.
static void turned(double angle, float *ret_quaternion)
{
    ret_quaternion[0] = (float)sin(angle / 2);
    ret_quaternion[1] = ret_quaternion[2] = 0;
    ret_quaternion[3] = (float)cos(angle / 2);
}

static double angle_of(const float *quaternion)
{
    return 2 * atan2((double)quaternion[0], (double)quaternion[3]);
}

static void a_quaternion_turns_by_its_step_at_most(void **state)
{
    (void)state;
    td_edge_gate gate = rotation_of(0.1, NONE);
    float wanted[4], command[4];
    turned(1, wanted);
    td_edge_gate_hits hits = gate_pass(&gate, wanted, command);
    assert_float_equal(angle_of(command), 0.1, 1e-6);
    assert_int_equal(hits.count[TD_EDGE_GATE_STEP], 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(hits.channel[i], HIT(STEP));
}

static void a_quaternion_is_of_length_one_and_keeps_its_side(void **state)
{
    (void)state;
    static const float lengths[] = {-3, -1, 1, 3};
    for (size_t k = 0; k < TD_COUNT_OF(lengths); k++) {
        td_edge_gate gate = rotation_of(NONE, NONE);
        float wanted[4], command[4];
        turned(0.5, wanted);
        for (int i = 0; i < 4; i++)
            wanted[i] *= lengths[k];
        td_edge_gate_hits hits = gate_pass(&gate, wanted, command);
        assert_int_equal(hits.consecutive, 0);
        assert_float_equal(angle_of(command), 0.5, 1e-6);
        assert_true(command[3] > 0);
    }
}

// Of length 1 but for its rounding: to divide by that would change it.
static void an_orientation_passes_bit_for_bit(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 1);
    for (int i = 0; i < 1000; i++) {
        double unit[4] = {0, 0, 0, 1};
        const double turn[3] = {td_rand_unit(&rand), td_rand_unit(&rand),
                                td_rand_unit(&rand)};
        td_edge_rotation_apply(turn, unit);
        float wanted[4], command[4];
        for (int j = 0; j < 4; j++)
            wanted[j] = (float)unit[j];
        td_edge_gate gate = rotation_of(NONE, NONE);
        gate_pass(&gate, wanted, command);
        assert_memory_equal(command, wanted, sizeof wanted);
    }
}

// Rounding makes some of these steps longer than 0.1.
static void a_turn_that_keeps_its_limits_is_not_touched(void **state)
{
    (void)state;
    td_edge_gate gate = rotation_of(0.1, 0.1);
    for (int i = 1; i <= 30; i++) {
        const double turn[3] = {0, 0.1 * i, 0};
        double unit[4] = {0, 0, 0, 1};
        td_edge_rotation_apply(turn, unit);
        float wanted[4], command[4];
        for (int j = 0; j < 4; j++)
            wanted[j] = (float)unit[j];
        assert_int_equal(gate_pass(&gate, wanted, command).consecutive, 0);
        assert_memory_equal(command, wanted, sizeof wanted);
    }
}

static void a_quaternion_of_no_length_holds_the_last(void **state)
{
    (void)state;
    td_edge_gate gate = rotation_of(NONE, NONE);
    float wanted[4], command[4];
    turned(0.5, wanted);
    gate_pass(&gate, wanted, command);
    td_edge_gate_hits hits =
        gate_pass(&gate, (float[]){0, 1e-5F, 0, 0}, command);
    assert_int_equal(hits.count[TD_EDGE_GATE_VALUE], 1);
    assert_memory_equal(command, wanted, sizeof wanted);
    hits = gate_pass(&gate, (float[]){0, NAN, 0, 1}, command);
    assert_int_equal(hits.count[TD_EDGE_GATE_VALUE], 1);
    assert_memory_equal(command, wanted, sizeof wanted);
}

static void a_quaternion_brakes_onto_a_jump(void **state)
{
    (void)state;
    td_edge_gate gate = rotation_of(0.2, 0.01);
    gate_watch watch = gate_watch_from(&gate, 0);
    float wanted[4], command[4];
    turned(1, wanted);
    double before = 0;
    for (int i = 0; i < 40; i++) {
        gate_pass(&gate, wanted, command);
        gate_watch_command(&watch, command);
        double now = angle_of(command);
        assert_true(now >= before - 1e-7 && now <= 1 + 1e-7);
        before = now;
    }
    assert_memory_equal(command, wanted, sizeof wanted);
}

// By a step of its own, by its brakes at most, and to the bit at the end.
static void a_channel_approaches_its_goal_as_it_may(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        td_edge_gate_channel limits;
        float at, goal;
        double max_step;
        float wanted;
    } cases[] = {
        {"by its step", {TD_WIRE_LINEAR, -9, 9, NONE, NONE}, 1, 3, 0.5, 1.5F},
        {"and back", {TD_WIRE_LINEAR, -9, 9, NONE, NONE}, 1, -3, 0.5, 0.5F},
        {"the rest", {TD_WIRE_LINEAR, -9, 9, NONE, NONE}, 1, 1.3F, 0.5, 1.3F},
        {"by its brakes", {TD_WIRE_LINEAR, -9, 9, NONE, 1}, 0, 3, 9, 2},
        {"by less than they", {TD_WIRE_LINEAR, -9, 9, NONE, 1}, 0, 3, 1, 1},
        {"too little to see",
         {TD_WIRE_LINEAR, -9, 9, 1, 1},
         4,
         8,
         1e-12,
         4 + 4 * FLT_EPSILON},
        {"on its turn",
         {TD_WIRE_ANGLE, -NONE, NONE, 1, 1},
         3,
         2 - 2 * PI_F,
         0.25,
         2.75F},
        {"the shorter way",
         {TD_WIRE_ANGLE, -NONE, NONE, 1, 1},
         3,
         -3,
         0.25,
         3.25F},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_gate gate = gate_new(&cases[i].limits, 1, &cases[i].at);
        float wanted;
        td_edge_gate_approach(&gate, 0, &cases[i].goal, cases[i].max_step,
                              &wanted);
        if (wanted != cases[i].wanted)
            fail_msg("%s: %.9g", cases[i].name, (double)wanted);
    }
}

// About an axis that is none of the world's.
static void oblique(double angle, float *ret_quaternion)
{
    const double turn[3] = {angle * 0.48, angle * 0.6, angle * 0.64};
    double unit[4] = {0.5, 0.5, 0.5, 0.5};
    td_edge_rotation_apply(turn, unit);
    for (int i = 0; i < 4; i++)
        ret_quaternion[i] = (float)unit[i];
}

static void a_rotation_approaches_its_goal_as_it_may(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double max_accel_step, goal, max_step, wanted;
    } cases[] = {
        {"by its step", NONE, 1, 0.25, 0.25},
        {"by its brakes", 0.25, 0.75, 9, 0.5},
        {"by less than they", 0.25, 0.75, 0.125, 0.125},
        {"the rest", NONE, 0.25, 0.5, 0.25},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_gate_channel channels[5] = {{TD_WIRE_LINEAR, -1, 1, NONE, NONE},
                                            ROTATION,
                                            ROTATION,
                                            ROTATION,
                                            ROTATION};
        channels[1].max_accel_step = cases[i].max_accel_step;
        float at[5] = {0}, goal[4], expected[4], wanted[4];
        oblique(0, &at[1]);
        oblique(cases[i].goal, goal);
        oblique(cases[i].wanted, expected);
        td_edge_gate gate = gate_new(channels, 5, at);
        td_edge_gate_approach(&gate, 1, goal, cases[i].max_step, wanted);
        for (int j = 0; j < 4; j++)
            if (!(fabsf(wanted[j] - expected[j]) < 1e-6F))
                fail_msg("%s: [%d] is %g", cases[i].name, j, (double)wanted[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gate_that_was_not_started_lets_nothing_pass),
        cmocka_unit_test(a_reading_that_is_no_place_does_not_start_it),
        cmocka_unit_test(limits_that_make_no_sense_are_named),
        cmocka_unit_test(the_least_limits_and_a_single_position_are_taken),
        cmocka_unit_test(a_gate_has_as_many_channels_as_the_wire),
        cmocka_unit_test(a_quaternion_ends_within_the_channels),
        cmocka_unit_test(position_limits_round_inward),
        cmocka_unit_test(a_channel_without_limits_stays_finite),
        cmocka_unit_test(each_limit_is_hit_under_its_name),
        cmocka_unit_test(hits_in_a_row_are_counted_until_a_clean_tick),
        cmocka_unit_test(the_first_command_starts_from_where_the_robot_is),
        cmocka_unit_test(a_start_over_forgets_the_motion_before),
        cmocka_unit_test(a_run_at_a_limit_brakes_in_time_and_ends_on_it),
        cmocka_unit_test(a_robot_found_outside_stays_or_comes_in),
        cmocka_unit_test(a_jump_is_followed_without_overshoot),
        cmocka_unit_test(a_moving_target_is_caught_up_with_and_then_passed_on),
        cmocka_unit_test(a_target_that_jumps_onto_the_command_only_brakes),
        cmocka_unit_test(a_value_that_is_not_finite_brakes_its_channel_alone),
        cmocka_unit_test(a_free_angle_goes_the_shorter_way_and_does_not_wrap),
        cmocka_unit_test(
            a_free_angle_less_than_half_a_turn_away_is_not_touched),
        cmocka_unit_test(all_but_an_angle_without_a_limit_is_a_line),
        cmocka_unit_test(a_start_over_counts_an_angle_on_its_turn),
        cmocka_unit_test(a_hold_channel_has_no_acceleration),
        cmocka_unit_test(a_quaternion_turns_by_its_step_at_most),
        cmocka_unit_test(a_quaternion_is_of_length_one_and_keeps_its_side),
        cmocka_unit_test(an_orientation_passes_bit_for_bit),
        cmocka_unit_test(a_turn_that_keeps_its_limits_is_not_touched),
        cmocka_unit_test(a_quaternion_of_no_length_holds_the_last),
        cmocka_unit_test(a_quaternion_brakes_onto_a_jump),
        cmocka_unit_test(a_channel_approaches_its_goal_as_it_may),
        cmocka_unit_test(a_rotation_approaches_its_goal_as_it_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

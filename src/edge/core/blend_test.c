// SPDX-License-Identifier: Apache-2.0
#include "edge/core/blend.h"

#include "base/rand.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TURN ((float)(2.0 * M_PI))
#define ROUNDS 20000

static const td_wire_channel_kind linear[] = {TD_WIRE_LINEAR};
static const td_wire_channel_kind angle[] = {TD_WIRE_ANGLE};
static const td_wire_channel_kind hold[] = {TD_WIRE_HOLD};
static const td_wire_channel_kind quaternion[] = {
    TD_WIRE_QUATERNION,
    TD_WIRE_QUATERNION,
    TD_WIRE_QUATERNION,
    TD_WIRE_QUATERNION,
};
static const td_wire_channel_kind all[] = {
    TD_WIRE_HOLD,       TD_WIRE_QUATERNION, TD_WIRE_QUATERNION,
    TD_WIRE_QUATERNION, TD_WIRE_QUATERNION, TD_WIRE_LINEAR,
    TD_WIRE_ANGLE,
};

static const td_edge_aggregate built_in[] = {
    TD_EDGE_WEIGHTED_AVERAGE, TD_EDGE_LATEST_ONLY, TD_EDGE_AVERAGE,
    TD_EDGE_CONSERVATIVE,     TD_EDGE_TEMPORAL,
};

static const td_edge_place somewhere = {.step = 9, .index = 2, .overlap = 7};

static td_edge_blend built_in_blend(td_edge_aggregate aggregate,
                                    uint32_t channels,
                                    const td_wire_channel_kind *kinds)
{
    return (td_edge_blend){
        .aggregate = aggregate,
        .channels = channels,
        .kinds = kinds,
    };
}

static td_edge_blend users(uint32_t channels, const td_wire_channel_kind *kinds,
                           td_edge_blend_fn fn, void *user)
{
    return (td_edge_blend){
        .aggregate = TD_EDGE_CUSTOM,
        .channels = channels,
        .kinds = kinds,
        .fn = fn,
        .user = user,
    };
}

static bool is_near(float a, float b)
{
    return fabsf(a - b) < 1e-5f;
}

static bool same_place(float a, float b)
{
    return fabsf(remainderf(a - b, TURN)) < 1e-5f;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static bool same_bits(float a, float b)
{
    return bits_of(a) == bits_of(b);
}

static bool same_rows(const float *a, const float *b, uint32_t channels)
{
    for (uint32_t i = 0; i < channels; i++)
        if (!same_bits(a[i], b[i])) return false;
    return true;
}

static float length_of(const float q[4])
{
    return sqrtf(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
}

static float blend_one(td_edge_aggregate aggregate,
                       const td_wire_channel_kind *kind, float old, float new)
{
    const td_edge_blend blend = built_in_blend(aggregate, 1, kind);
    float row;
    assert_true(td_edge_blend_row(&blend, &somewhere, &old, &new, &row));
    return row;
}

// Any sign, and sizes from a millionth to a million.
static float any_float(td_rand *rand)
{
    double size = pow(10, 12 * td_rand_unit(rand) - 6);
    return (float)(td_rand_unit(rand) < 0.5 ? -size : size);
}

static void any_quaternion(td_rand *rand, float ret[4])
{
    for (int i = 0; i < 4; i++)
        ret[i] = (float)td_rand_normal(rand);
}

static td_edge_aggregate any_aggregate(td_rand *rand)
{
    return built_in[td_rand_u64(rand) % TD_COUNT_OF(built_in)];
}

static void each_aggregate_takes_its_share_of_the_new(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        td_edge_aggregate aggregate;
        double share;
    } cases[] = {
        {"weighted_average", TD_EDGE_WEIGHTED_AVERAGE, 0.7},
        {"latest_only", TD_EDGE_LATEST_ONLY, 1.0},
        {"average", TD_EDGE_AVERAGE, 0.5},
        {"conservative", TD_EDGE_CONSERVATIVE, 0.3},
        {"temporal, third of seven", TD_EDGE_TEMPORAL, 3.0 / 8.0},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        double share = td_edge_blend_share(cases[i].aggregate, 2, 7);
        float row = blend_one(cases[i].aggregate, linear, 10, 20);
        if (share != cases[i].share || !is_near(row, 10 + 10 * (float)share))
            fail_msg("%s: %g, %g", cases[i].name, share, (double)row);
    }
    assert_true(td_edge_blend_share(TD_EDGE_CUSTOM, 2, 7) == 1.0);
}

// Expected values by numpy in binary64. In the first two rows a fused
// multiply-add gives another last bit.
static void linear_channels_are_exact_to_the_bit(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        td_edge_aggregate aggregate;
        float old, new, expected;
    } cases[] = {
        {"no fused multiply-add", TD_EDGE_WEIGHTED_AVERAGE, -0x1.b5dc66p-2f,
         0x1.1f9bc4p-1f, 0x1.0f4b28p-2f},
        {"nor with other signs", TD_EDGE_WEIGHTED_AVERAGE, 0x1.e0fb3ap-2f,
         -0x1.26b602p-1f, -0x1.0c4d0cp-2f},
        {"largest numbers", TD_EDGE_AVERAGE, FLT_MAX, -FLT_MAX, 0},
        {"smallest numbers", TD_EDGE_AVERAGE, 0x1p-149f, 0x1p-149f, 0x1p-149f},
        {"minus zero", TD_EDGE_LATEST_ONLY, 1, -0.0f, -0.0f},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        float row =
            blend_one(cases[i].aggregate, linear, cases[i].old, cases[i].new);
        if (!same_bits(row, cases[i].expected))
            fail_msg("%s: %a", cases[i].name, (double)row);
    }
}

static void a_linear_blend_lies_between_the_two(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 1);
    for (int i = 0; i < ROUNDS; i++) {
        td_edge_aggregate aggregate = any_aggregate(&rand);
        float old = any_float(&rand), new = any_float(&rand);
        float row = blend_one(aggregate, linear, old, new);
        assert_true(row >= fminf(old, new) && row <= fmaxf(old, new));
    }
}

static void agreeing_chunks_change_nothing(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 2);
    for (int i = 0; i < ROUNDS; i++) {
        td_edge_aggregate aggregate = any_aggregate(&rand);
        float value = any_float(&rand);
        assert_true(
            same_bits(blend_one(aggregate, linear, value, value), value));
        assert_true(
            same_bits(blend_one(aggregate, angle, value, value), value));
    }
}

static void an_average_does_not_ask_which_came_first(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 3);
    for (int i = 0; i < ROUNDS; i++) {
        float a = any_float(&rand), b = any_float(&rand);
        assert_true(same_bits(blend_one(TD_EDGE_AVERAGE, linear, a, b),
                              blend_one(TD_EDGE_AVERAGE, linear, b, a)));
        a = (float)(8 * td_rand_unit(&rand) - 4);
        b = (float)(8 * td_rand_unit(&rand) - 4);
        assert_true(same_place(blend_one(TD_EDGE_AVERAGE, angle, a, b),
                               blend_one(TD_EDGE_AVERAGE, angle, b, a)));
        assert_true(is_near(blend_one(TD_EDGE_WEIGHTED_AVERAGE, linear, a, b),
                            blend_one(TD_EDGE_CONSERVATIVE, linear, b, a)));
    }
}

// The row before the overlap is all old and the row after it all new.
static void temporal_shares_climb_evenly_from_old_to_new(void **state)
{
    (void)state;
    static const uint32_t overlaps[] = {1, 2, 3, 7, 49, 1000, 1u << 24};
    for (size_t k = 0; k < TD_COUNT_OF(overlaps); k++) {
        uint32_t overlap = overlaps[k];
        double stride = 1.0 / (overlap + 1.0);
        double before = 0;
        for (uint32_t i = 0; i < overlap && i < 1000; i++) {
            double share = td_edge_blend_share(TD_EDGE_TEMPORAL, i, overlap);
            assert_true(fabs(share - before - stride) < 1e-12);
            before = share;
        }
        double last =
            td_edge_blend_share(TD_EDGE_TEMPORAL, overlap - 1, overlap);
        assert_true(fabs(1.0 - last - stride) < 1e-12);
    }
}

static void angles_blend_the_short_way(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        td_edge_aggregate aggregate;
        float old, new, expected; // expected up to whole turns
    } cases[] = {
        {"no seam", TD_EDGE_AVERAGE, 1.0f, 2.0f, 1.5f},
        {"over pi", TD_EDGE_AVERAGE, 3.0f, 3.0f - TURN + 0.4f, 3.2f},
        {"under -pi", TD_EDGE_AVERAGE, -3.0f, TURN - 3.4f, -3.2f},
        {"mostly new", TD_EDGE_WEIGHTED_AVERAGE, 3.1f, -3.1f,
         3.1f + 0.7f * (TURN - 6.2f)},
        {"mostly old", TD_EDGE_CONSERVATIVE, 3.1f, -3.1f,
         3.1f + 0.3f * (TURN - 6.2f)},
        {"at pi and -pi", TD_EDGE_AVERAGE, (float)M_PI, -(float)M_PI,
         (float)M_PI},
        {"turns apart", TD_EDGE_AVERAGE, 0.2f, 0.4f + 3 * TURN, 0.3f},
        {"the same place", TD_EDGE_AVERAGE, 1.0f, 1.0f - TURN, 1.0f},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        float row =
            blend_one(cases[i].aggregate, angle, cases[i].old, cases[i].new);
        if (!same_place(row, cases[i].expected))
            fail_msg("%s: %g", cases[i].name, (double)row);
    }
}

static void an_angle_stays_within_half_a_turn_of_the_new(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 4);
    for (int i = 0; i < ROUNDS; i++) {
        float old = (float)(200 * td_rand_unit(&rand) - 100);
        float new = (float)(8 * td_rand_unit(&rand) - 4);
        td_edge_aggregate aggregate = any_aggregate(&rand);
        double share =
            td_edge_blend_share(aggregate, somewhere.index, somewhere.overlap);
        double apart = fabs(remainder((double)new - old, 2 * M_PI));
        float row = blend_one(aggregate, angle, old, new);
        assert_true(fabs(fabs((double)new - row) - (1 - share) * apart) < 1e-5);
    }
}

static void a_whole_turn_of_the_old_angle_means_nothing(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 5);
    for (int i = 0; i < ROUNDS; i++) {
        float old = (float)(6 * td_rand_unit(&rand) - 3);
        float new = old + (float)(6 * td_rand_unit(&rand) - 3);
        float turned = old + TURN * (float)(td_rand_u64(&rand) % 5);
        td_edge_aggregate aggregate = any_aggregate(&rand);
        assert_float_equal(blend_one(aggregate, angle, old, new),
                           blend_one(aggregate, angle, turned, new), 1e-5);
    }
}

// A turn about z, as x, y, z, w.
static void turn_about_z(double degrees, double sign, float ret[4])
{
    double half = degrees * M_PI / 360.0;
    ret[0] = ret[1] = 0;
    ret[2] = (float)(sign * sin(half));
    ret[3] = (float)(sign * cos(half));
}

static void quaternions_turn_along_the_short_arc(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        td_edge_aggregate aggregate;
        double from, from_sign, to, to_sign, expected; // degrees about z
    } cases[] = {
        {"half way", TD_EDGE_AVERAGE, 0, 1, 90, 1, 45},
        {"constant speed", TD_EDGE_CONSERVATIVE, 0, 1, 100, 1, 30},
        {"mostly new", TD_EDGE_WEIGHTED_AVERAGE, 0, 1, 100, 1, 70},
        {"old by its other name", TD_EDGE_AVERAGE, 0, -1, 90, 1, 45},
        {"new by its other name", TD_EDGE_AVERAGE, 0, 1, 90, -1, 45},
        {"back over the seam", TD_EDGE_AVERAGE, 170, 1, -170, 1, -180},
        {"the same", TD_EDGE_AVERAGE, 33, 1, 33, 1, 33},
        {"the same, other name", TD_EDGE_AVERAGE, 33, -1, 33, 1, 33},
        {"almost the same", TD_EDGE_AVERAGE, 33, 1, 33.00001, 1, 33},
        {"latest only", TD_EDGE_LATEST_ONLY, 0, 1, 90, -1, 90},
        {"temporal, third of seven", TD_EDGE_TEMPORAL, 0, 1, 80, 1, 30},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_blend blend = built_in_blend(cases[i].aggregate, 4, quaternion);
        float old[4], new[4], expected[4], row[4];
        turn_about_z(cases[i].from, cases[i].from_sign, old);
        turn_about_z(cases[i].to, cases[i].to_sign, new);
        turn_about_z(cases[i].expected, cases[i].to_sign, expected);
        (void)td_edge_blend_row(&blend, &somewhere, old, new, row);
        for (int k = 0; k < 4; k++)
            if (!is_near(row[k], expected[k]))
                fail_msg("%s: [%d] is %g", cases[i].name, k, (double)row[k]);
    }
}

static void quaternions_of_any_length_come_out_with_length_one(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        float old[4], new[4];
    } cases[] = {
        {"both long", {0, 0, 0, 3}, {0, 2, 0, 2}},
        {"both short", {0.1f, 0, 0, 0}, {0, 0, 0.2f, 0}},
        {"longest", {FLT_MAX, FLT_MAX, 0, 0}, {0, FLT_MAX, 0, FLT_MAX}},
        {"shortest", {0x1p-149f, 0, 0, 0}, {0, 0x1p-149f, 0, 0}},
        {"opposite", {1, 0, 0, 0}, {-1, 0, 0, 0}},
        {"no old one", {0, 0, 0, 0}, {0, 0.6f, 0, 0.8f}},
        {"no new one", {0, 0.6f, 0, 0.8f}, {0, 0, 0, 0}},
    };
    const td_edge_blend blend =
        built_in_blend(TD_EDGE_WEIGHTED_AVERAGE, 4, quaternion);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        float row[4];
        (void)td_edge_blend_row(&blend, &somewhere, cases[i].old, cases[i].new,
                                row);
        if (!is_near(length_of(row), 1))
            fail_msg("%s: %g", cases[i].name, (double)length_of(row));
    }
}

static void two_quaternions_without_length_stay_zero(void **state)
{
    (void)state;
    const td_edge_blend blend = built_in_blend(TD_EDGE_AVERAGE, 4, quaternion);
    const float zero[4] = {0};
    float row[4] = {1, 1, 1, 1};
    (void)td_edge_blend_row(&blend, &somewhere, zero, zero, row);
    assert_memory_equal(row, zero, sizeof zero);
    td_edge_blend_alone(&blend, zero, row);
    assert_memory_equal(row, zero, sizeof zero);
}

// So short an arc is divided as a straight line.
static void a_quaternion_divides_the_shortest_arc_by_its_share(void **state)
{
    (void)state;
    const float from[4] = {0, 0, 0, 1}, to[4] = {8e-7f, 0, 0, 1};
    for (uint32_t i = 1; i <= 8; i++) {
        float row[4];
        td_edge_blend_between(quaternion, 4, from, to, i, 8, row);
        if (!(fabs((double)row[0] - i * 1e-7) < 1e-12 && row[3] == 1))
            fail_msg("%u: %g", i, (double)row[0]);
    }
}

// The angle between two quaternions of length 1, by whatever names.
static double arc(const float a[4], const float b[4])
{
    double dot = 0;
    for (int i = 0; i < 4; i++)
        dot += (double)a[i] * b[i];
    return acos(fmin(fabs(dot), 1.0));
}

static void a_quaternion_divides_its_arc_by_its_share(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 6);
    for (int i = 0; i < ROUNDS; i++) {
        td_edge_blend blend =
            built_in_blend(any_aggregate(&rand), 4, quaternion);
        double share = td_edge_blend_share(blend.aggregate, somewhere.index,
                                           somewhere.overlap);
        float old[4], new[4], before[4], after[4], row[4];
        any_quaternion(&rand, old);
        any_quaternion(&rand, new);
        td_edge_blend_alone(&blend, old, before);
        td_edge_blend_alone(&blend, new, after);
        (void)td_edge_blend_row(&blend, &somewhere, old, new, row);
        assert_true(is_near(length_of(row), 1));
        double whole = arc(before, after);
        assert_float_equal(arc(before, row), share * whole, 1e-3);
        assert_float_equal(arc(row, after), (1 - share) * whole, 1e-3);
    }
}

static void a_gripper_takes_the_new_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(built_in); i++)
        assert_true(same_bits(blend_one(built_in[i], hold, 0.1f, 0.7f), 0.7f));
}

static void each_channel_blends_by_its_own_kind(void **state)
{
    (void)state;
    const td_edge_blend blend = built_in_blend(TD_EDGE_AVERAGE, 7, all);
    float old[7] = {0, 0, 0, 0, 1, 10, 3.0f};
    float new[7] = {1, 0, 0, 1, 0, 20, 3.4f - TURN};
    float half = sqrtf(0.5f);
    float expected[7] = {1, 0, 0, half, half, 15, 3.2f - TURN};
    float row[7];
    (void)td_edge_blend_row(&blend, &somewhere, old, new, row);
    for (int i = 0; i < 7; i++)
        assert_float_equal(row[i], expected[i], 1e-5);
}

static void a_row_alone_keeps_its_bits_and_unit_quaternions(void **state)
{
    (void)state;
    const td_edge_blend blend = built_in_blend(TD_EDGE_AVERAGE, 7, all);
    const float new[7] = {0.1f, 0, 0, 3, 4, -0.0f, 9.0f};
    const float expected[7] = {0.1f, 0, 0, 0.6f, 0.8f, -0.0f, 9.0f};
    float row[7];
    td_edge_blend_alone(&blend, new, row);
    assert_memory_equal(row, expected, sizeof row);
}

static void quaternions_side_by_side_each_get_length_one(void **state)
{
    (void)state;
    td_wire_channel_kind kinds[9] = {[8] = TD_WIRE_LINEAR};
    for (int i = 0; i < 8; i++)
        kinds[i] = TD_WIRE_QUATERNION;
    const td_edge_blend blend = built_in_blend(TD_EDGE_AVERAGE, 9, kinds);
    const float new[9] = {0, 0, 0, 2, 0, 3, 0, 4, 7};
    const float expected[9] = {0, 0, 0, 1, 0, 0.6f, 0, 0.8f, 7};
    float row[9];
    td_edge_blend_alone(&blend, new, row);
    assert_memory_equal(row, expected, sizeof row);
}

typedef struct asked {
    int calls;
    uint64_t step;
    float answer[7];
    uint32_t answered; // channels that are written
} asked;

static void give_answer(void *user, uint64_t step, const float *old_row,
                        const float *new_row, uint32_t channels, float *ret_row)
{
    (void)old_row, (void)new_row, (void)channels;
    asked *call = user;
    call->calls++;
    call->step = step;
    memcpy(ret_row, call->answer, call->answered * sizeof(float));
}

static void a_users_function_decides_the_row(void **state)
{
    (void)state;
    asked call = {
        .answer = {0.25f, 0, 3, 0, 4, -5, 100},
        .answered = 7,
    };
    const td_edge_blend blend = users(7, all, give_answer, &call);
    const float old[7] = {0, 0, 0, 0, 1, 0, 0};
    const float new[7] = {1, 0, 0, 0, 1, 1, 1};
    const float expected[7] = {0.25f, 0, 0.6f, 0, 0.8f, -5, 100};
    float row[7];
    assert_true(td_edge_blend_row(&blend, &somewhere, old, new, row));
    assert_memory_equal(row, expected, sizeof row);
    assert_int_equal(call.calls, 1);
    assert_int_equal(call.step, somewhere.step);
}

static void add_rows(void *user, uint64_t step, const float *old_row,
                     const float *new_row, uint32_t channels, float *ret_row)
{
    (void)user, (void)step;
    for (uint32_t i = 0; i < channels; i++)
        ret_row[i] = 10 * old_row[i] + new_row[i];
}

static void a_users_function_sees_old_and_new(void **state)
{
    (void)state;
    const td_wire_channel_kind kinds[] = {TD_WIRE_LINEAR, TD_WIRE_HOLD};
    const td_edge_blend blend = users(2, kinds, add_rows, NULL);
    float row[2];
    assert_true(td_edge_blend_row(&blend, &somewhere, (float[]){1, 2},
                                  (float[]){3, 4}, row));
    assert_float_equal(row[0], 13, 0);
    assert_float_equal(row[1], 24, 0);
}

static void a_function_that_misbehaves_gets_the_latest_only(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        asked call;
    } cases[] = {
        {"not a number", {.answer = {0, 0, 0, 0, 1, NAN, 0}, .answered = 7}},
        {"infinite", {.answer = {0, 0, 0, 0, 1, 0, -INFINITY}, .answered = 7}},
        {"no length", {.answer = {0, 0, 0, 0, 0, 0, 0}, .answered = 7}},
        {"writes nothing", {.answered = 0}},
        {"writes too little", {.answer = {0, 0, 0, 0, 1, 0}, .answered = 6}},
    };
    const float old[7] = {0, 0, 0, 0, 1, 0, 0};
    const float new[7] = {1, 0, 0, 3, 4, 2, 3};
    const float expected[7] = {1, 0, 0, 0.6f, 0.8f, 2, 3};
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        asked call = cases[i].call;
        const td_edge_blend blend = users(7, all, give_answer, &call);
        float row[7];
        if (td_edge_blend_row(&blend, &somewhere, old, new, row) ||
            !same_rows(row, expected, 7) || call.calls != 1)
            fail_msg("%s", cases[i].name);
    }
}

static void forget_the_first(void *user, uint64_t step, const float *old_row,
                             const float *new_row, uint32_t channels,
                             float *ret_row)
{
    (void)user, (void)step, (void)old_row;
    memcpy(&ret_row[1], &new_row[1], (channels - 1) * sizeof(float));
}

static void what_a_function_does_not_write_is_refused(void **state)
{
    (void)state;
    const td_wire_channel_kind kinds[] = {TD_WIRE_LINEAR, TD_WIRE_LINEAR};
    const td_edge_blend blend = users(2, kinds, forget_the_first, NULL);
    float row[2] = {0, 0};
    assert_false(td_edge_blend_row(&blend, &somewhere, (float[]){1, 2},
                                   (float[]){3, 4}, row));
    assert_true(row[0] == 3 && row[1] == 4);
}

static float between_one(const td_wire_channel_kind *kind, float from, float to,
                         uint32_t i, uint32_t n)
{
    float row;
    td_edge_blend_between(kind, 1, &from, &to, i, n, &row);
    return row;
}

static void the_last_substep_is_the_row_itself(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 7);
    for (int i = 0; i < ROUNDS; i++) {
        float from[7], to[7], row[7];
        for (int k = 0; k < 7; k++) {
            from[k] = any_float(&rand);
            to[k] = any_float(&rand);
        }
        uint32_t n = 1 + (uint32_t)(td_rand_u64(&rand) % 50);
        td_edge_blend_between(all, 7, from, to, n, n, row);
        assert_memory_equal(row, to, sizeof row);
    }
}

static void substeps_go_evenly_and_never_beyond(void **state)
{
    (void)state;
    assert_float_equal(between_one(linear, 10, 20, 1, 4), 12.5, 0);
    assert_float_equal(between_one(linear, 10, 20, 2, 4), 15, 0);
    assert_float_equal(between_one(linear, 10, 20, 3, 4), 17.5, 0);
    td_rand rand;
    td_rand_init(&rand, 8);
    for (int k = 0; k < ROUNDS / 50; k++) {
        float from = any_float(&rand), to = any_float(&rand), before = from;
        float sign = to < from ? -1.0f : 1.0f;
        for (uint32_t i = 1; i <= 33; i++) {
            float now = between_one(linear, from, to, i, 33);
            assert_true(sign * now >= sign * before && sign * now <= sign * to);
            before = now;
        }
    }
}

static void substeps_of_an_angle_take_the_short_way(void **state)
{
    (void)state;
    float from = 3.0f, to = 3.4f - TURN;
    for (uint32_t i = 1; i <= 4; i++)
        assert_float_equal(between_one(angle, from, to, i, 4),
                           3.0f + 0.1f * (float)i - TURN, 1e-5);
}

static void substeps_of_a_quaternion_turn_evenly(void **state)
{
    (void)state;
    float from[4], to[4], row[4], expected[4];
    turn_about_z(10, -1, from);
    turn_about_z(90, 1, to);
    for (uint32_t i = 1; i <= 8; i++) {
        td_edge_blend_between(quaternion, 4, from, to, i, 8, row);
        turn_about_z(10 + 10.0 * i, 1, expected);
        for (int k = 0; k < 4; k++)
            assert_float_equal(row[k], expected[k], 1e-6);
    }
}

static void a_gripper_switches_with_the_first_substep(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= 5; i++)
        assert_true(same_bits(between_one(hold, 0.1f, 0.9f, i, 5), 0.9f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_aggregate_takes_its_share_of_the_new),
        cmocka_unit_test(linear_channels_are_exact_to_the_bit),
        cmocka_unit_test(a_linear_blend_lies_between_the_two),
        cmocka_unit_test(agreeing_chunks_change_nothing),
        cmocka_unit_test(an_average_does_not_ask_which_came_first),
        cmocka_unit_test(temporal_shares_climb_evenly_from_old_to_new),
        cmocka_unit_test(angles_blend_the_short_way),
        cmocka_unit_test(an_angle_stays_within_half_a_turn_of_the_new),
        cmocka_unit_test(a_whole_turn_of_the_old_angle_means_nothing),
        cmocka_unit_test(quaternions_turn_along_the_short_arc),
        cmocka_unit_test(quaternions_of_any_length_come_out_with_length_one),
        cmocka_unit_test(two_quaternions_without_length_stay_zero),
        cmocka_unit_test(a_quaternion_divides_its_arc_by_its_share),
        cmocka_unit_test(a_gripper_takes_the_new_value),
        cmocka_unit_test(each_channel_blends_by_its_own_kind),
        cmocka_unit_test(a_row_alone_keeps_its_bits_and_unit_quaternions),
        cmocka_unit_test(a_users_function_decides_the_row),
        cmocka_unit_test(a_users_function_sees_old_and_new),
        cmocka_unit_test(a_function_that_misbehaves_gets_the_latest_only),
        cmocka_unit_test(the_last_substep_is_the_row_itself),
        cmocka_unit_test(substeps_go_evenly_and_never_beyond),
        cmocka_unit_test(substeps_of_an_angle_take_the_short_way),
        cmocka_unit_test(substeps_of_a_quaternion_turn_evenly),
        cmocka_unit_test(a_gripper_switches_with_the_first_substep),
        cmocka_unit_test(a_quaternion_divides_the_shortest_arc_by_its_share),
        cmocka_unit_test(quaternions_side_by_side_each_get_length_one),
        cmocka_unit_test(what_a_function_does_not_write_is_refused),
    };
    return cmocka_run_group_tests_name("edge/blend", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "edge/timeline.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TURN ((float)(2.0 * M_PI))

static const td_wire_channel_kind linear[] = {TD_WIRE_LINEAR};
static const td_wire_channel_kind angle[] = {TD_WIRE_ANGLE};
static const td_wire_channel_kind quaternion[] = {
    TD_WIRE_QUATERNION,
    TD_WIRE_QUATERNION,
    TD_WIRE_QUATERNION,
    TD_WIRE_QUATERNION,
};

static const td_edge_blend latest = {TD_EDGE_LATEST_ONLY, 1, linear};

static bool is_near(float a, float b)
{
    return fabsf(a - b) < 1e-5F;
}

static td_edge_timeline *merge(const td_edge_timeline *old, uint64_t first,
                               uint32_t rows, const float *data,
                               uint64_t cursor, const td_edge_blend *blend)
{
    td_edge_chunk chunk = {first, rows, data};
    td_edge_timeline *next = NULL;
    assert_int_equal(td_edge_timeline_merge(old, &chunk, cursor, blend, &next),
                     TD_OK);
    return next;
}

// One row of `before`, then one of `after` for the same step.
static void blend_rows(const td_edge_blend *blend, const float *before,
                       const float *after, float *ret_row)
{
    td_edge_timeline *old = merge(NULL, 0, 1, before, 0, blend);
    td_edge_timeline *new = merge(old, 0, 1, after, 0, blend);
    memcpy(ret_row, new->data, blend->channels * sizeof(float));
    free(old);
    free(new);
}

static void no_timeline_has_no_rows(void **state)
{
    (void)state;
    assert_null(td_edge_timeline_row(NULL, 0));
    assert_int_equal(td_edge_timeline_left(NULL, 0), 0);
}

static void rows_below_the_cursor_are_past(void **state)
{
    (void)state;
    const float data[] = {50, 60, 70, 80};
    td_edge_timeline *timeline = merge(NULL, 5, 4, data, 7, &latest);
    assert_int_equal(timeline->first, 7);
    assert_int_equal(timeline->rows, 2);
    assert_null(td_edge_timeline_row(timeline, 6));
    assert_float_equal(*td_edge_timeline_row(timeline, 7), 70, 0);
    assert_float_equal(*td_edge_timeline_row(timeline, 8), 80, 0);
    assert_null(td_edge_timeline_row(timeline, 9));
    free(timeline);
}

static void left_counts_down_to_nothing(void **state)
{
    (void)state;
    const float data[] = {1, 2, 3};
    td_edge_timeline *timeline = merge(NULL, 4, 3, data, 4, &latest);
    assert_int_equal(td_edge_timeline_left(timeline, 4), 3);
    assert_int_equal(td_edge_timeline_left(timeline, 6), 1);
    assert_int_equal(td_edge_timeline_left(timeline, 7), 0);
    assert_int_equal(td_edge_timeline_left(timeline, UINT64_MAX), 0);
    free(timeline);
}

static void a_chunk_all_past_is_empty(void **state)
{
    (void)state;
    const float data[] = {1, 2};
    td_edge_chunk chunk = {3, 2, data};
    td_edge_timeline untouched;
    td_edge_timeline *next = &untouched;
    assert_int_equal(td_edge_timeline_merge(NULL, &chunk, 5, &latest, &next),
                     TD_ERR_EMPTY);
    assert_ptr_equal(next, &untouched);
}

static void each_aggregate_takes_its_share_of_the_new(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        td_edge_aggregate aggregate;
        float share;
    } cases[] = {
        {"weighted_average", TD_EDGE_WEIGHTED_AVERAGE, 0.7F},
        {"latest_only", TD_EDGE_LATEST_ONLY, 1.0F},
        {"average", TD_EDGE_AVERAGE, 0.5F},
        {"conservative", TD_EDGE_CONSERVATIVE, 0.3F},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_blend blend = {cases[i].aggregate, 1, linear};
        float row;
        blend_rows(&blend, (float[]){10}, (float[]){20}, &row);
        if (!is_near(row, 10 + 10 * cases[i].share) ||
            td_edge_aggregate_share(cases[i].aggregate) != cases[i].share)
            fail_msg("%s: %g", cases[i].name, (double)row);
    }
}

static void only_steps_that_both_know_are_blended(void **state)
{
    (void)state;
    const td_edge_blend average = {TD_EDGE_AVERAGE, 1, linear};
    td_edge_timeline *old =
        merge(NULL, 0, 3, (float[]){0, 10, 20}, 0, &average);
    td_edge_timeline *new =
        merge(old, 1, 4, (float[]){110, 120, 130, 140}, 1, &average);
    const float expected[] = {60, 70, 130, 140};
    assert_int_equal(new->rows, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_float_equal(new->data[i], expected[i], 1e-5);
    free(old);
    free(new);
}

static void steps_beyond_the_newer_chunk_are_dropped(void **state)
{
    (void)state;
    td_edge_timeline *old =
        merge(NULL, 0, 5, (float[]){0, 1, 2, 3, 4}, 0, &latest);
    td_edge_timeline *new = merge(old, 1, 2, (float[]){11, 12}, 1, &latest);
    assert_int_equal(td_edge_timeline_left(new, 1), 2);
    assert_null(td_edge_timeline_row(new, 3));
    assert_int_equal(old->rows, 5);
    assert_float_equal(old->data[1], 1, 0);
    free(old);
    free(new);
}

static void generations_count_up(void **state)
{
    (void)state;
    td_edge_timeline *first = merge(NULL, 0, 1, (float[]){0}, 0, &latest);
    td_edge_timeline *second = merge(first, 0, 1, (float[]){0}, 0, &latest);
    assert_int_equal(first->generation, 1);
    assert_int_equal(second->generation, 2);
    free(first);
    free(second);
}

static void angles_blend_the_short_way(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        td_edge_aggregate aggregate;
        float old, new, expected; // expected up to whole turns
    } cases[] = {
        {"no seam", TD_EDGE_AVERAGE, 1.0F, 2.0F, 1.5F},
        {"over pi", TD_EDGE_AVERAGE, 3.0F, 3.0F - TURN + 0.4F, 3.2F},
        {"under -pi", TD_EDGE_AVERAGE, -3.0F, TURN - 3.4F, -3.2F},
        {"mostly new", TD_EDGE_WEIGHTED_AVERAGE, 3.1F, -3.1F,
         3.1F + 0.7F * (TURN - 6.2F)},
        {"mostly old", TD_EDGE_CONSERVATIVE, 3.1F, -3.1F,
         3.1F + 0.3F * (TURN - 6.2F)},
        {"turns apart", TD_EDGE_AVERAGE, 0.2F, 0.4F + 3 * TURN, 0.3F},
        {"the same place", TD_EDGE_AVERAGE, 1.0F, 1.0F - TURN, 1.0F},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_blend blend = {cases[i].aggregate, 1, angle};
        float row;
        blend_rows(&blend, &cases[i].old, &cases[i].new, &row);
        if (!is_near(remainderf(row - cases[i].expected, TURN), 0))
            fail_msg("%s: %g", cases[i].name, (double)row);
    }
}

// Row 1 is blended and row 2 is the chunk's alone; both say 4 radians.
static void blended_angles_join_their_chunk_without_a_turn(void **state)
{
    (void)state;
    const td_edge_blend average = {TD_EDGE_AVERAGE, 1, angle};
    td_edge_timeline *old =
        merge(NULL, 0, 2, (float[]){4.0F, 4.0F - TURN}, 0, &average);
    td_edge_timeline *new = merge(old, 1, 2, (float[]){4, 4}, 1, &average);
    assert_float_equal(new->data[0], 4, 1e-5);
    assert_float_equal(new->data[1], 4, 0);
    free(old);
    free(new);
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
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_blend blend = {cases[i].aggregate, 4, quaternion};
        float old[4], new[4], expected[4], row[4];
        turn_about_z(cases[i].from, cases[i].from_sign, old);
        turn_about_z(cases[i].to, cases[i].to_sign, new);
        turn_about_z(cases[i].expected, cases[i].to_sign, expected);
        blend_rows(&blend, old, new, row);
        for (int k = 0; k < 4; k++)
            if (!is_near(row[k], expected[k]))
                fail_msg("%s: [%d] is %g", cases[i].name, k, (double)row[k]);
    }
}

static void quaternions_come_out_with_length_one(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        float old[4], new[4];
    } cases[] = {
        {"both long", {0, 0, 0, 3}, {0, 2, 0, 2}},
        {"both short", {0.1F, 0, 0, 0}, {0, 0, 0.2F, 0}},
        {"opposite", {1, 0, 0, 0}, {-1, 0, 0, 0}},
        {"no old one", {0, 0, 0, 0}, {0, 0.6F, 0, 0.8F}},
    };
    const td_edge_blend blend = {TD_EDGE_WEIGHTED_AVERAGE, 4, quaternion};
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        float row[4];
        blend_rows(&blend, cases[i].old, cases[i].new, row);
        float length = 0;
        for (int k = 0; k < 4; k++)
            length += row[k] * row[k];
        if (!is_near(length, 1))
            fail_msg("%s: %g", cases[i].name, (double)length);
    }
}

static void a_gripper_takes_the_new_value(void **state)
{
    (void)state;
    const td_wire_channel_kind kinds[] = {TD_WIRE_HOLD};
    const td_edge_blend blend = {TD_EDGE_CONSERVATIVE, 1, kinds};
    float row;
    blend_rows(&blend, (float[]){0}, (float[]){1}, &row);
    assert_float_equal(row, 1, 0);
}

static void each_channel_blends_by_its_own_kind(void **state)
{
    (void)state;
    const td_wire_channel_kind kinds[] = {
        TD_WIRE_HOLD,       TD_WIRE_QUATERNION, TD_WIRE_QUATERNION,
        TD_WIRE_QUATERNION, TD_WIRE_QUATERNION, TD_WIRE_LINEAR,
        TD_WIRE_ANGLE,
    };
    const td_edge_blend blend = {TD_EDGE_AVERAGE, 7, kinds};
    float old[7] = {0, 0, 0, 0, 1, 10, 3.0F};
    float new[7] = {1, 0, 0, 1, 0, 20, 3.4F - TURN};
    float half = sqrtf(0.5F);
    float expected[7] = {1, 0, 0, half, half, 15, 3.2F - TURN};
    float row[7];
    blend_rows(&blend, old, new, row);
    for (int i = 0; i < 7; i++)
        assert_float_equal(row[i], expected[i], 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_timeline_has_no_rows),
        cmocka_unit_test(rows_below_the_cursor_are_past),
        cmocka_unit_test(left_counts_down_to_nothing),
        cmocka_unit_test(a_chunk_all_past_is_empty),
        cmocka_unit_test(each_aggregate_takes_its_share_of_the_new),
        cmocka_unit_test(only_steps_that_both_know_are_blended),
        cmocka_unit_test(steps_beyond_the_newer_chunk_are_dropped),
        cmocka_unit_test(generations_count_up),
        cmocka_unit_test(angles_blend_the_short_way),
        cmocka_unit_test(blended_angles_join_their_chunk_without_a_turn),
        cmocka_unit_test(quaternions_turn_along_the_short_arc),
        cmocka_unit_test(quaternions_come_out_with_length_one),
        cmocka_unit_test(a_gripper_takes_the_new_value),
        cmocka_unit_test(each_channel_blends_by_its_own_kind),
    };
    return cmocka_run_group_tests_name("edge/timeline", tests, NULL, NULL);
}

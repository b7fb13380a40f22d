// SPDX-License-Identifier: Apache-2.0
#include "edge/core/timeline.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define TURN ((float)(2.0 * M_PI))

static const td_wire_channel_kind linear[] = {TD_WIRE_LINEAR};
static const td_wire_channel_kind angle[] = {TD_WIRE_ANGLE};

static const td_edge_blend latest = {
    .aggregate = TD_EDGE_LATEST_ONLY,
    .channels = 1,
    .kinds = linear,
};
static const td_edge_blend average = {
    .aggregate = TD_EDGE_AVERAGE,
    .channels = 1,
    .kinds = linear,
};

static td_edge_timeline *merge(const td_edge_timeline *old, uint64_t first,
                               uint32_t rows, const float *data,
                               uint64_t cursor, const td_edge_blend *blend)
{
    td_edge_chunk chunk = {first, rows, 0, data};
    td_edge_timeline *next = NULL;
    assert_int_equal(td_edge_timeline_merge(old, &chunk, cursor, blend, &next),
                     TD_OK);
    return next;
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
    td_edge_chunk chunk = {3, 2, 0, data};
    td_edge_timeline untouched;
    td_edge_timeline *next = &untouched;
    assert_int_equal(td_edge_timeline_merge(NULL, &chunk, 5, &latest, &next),
                     TD_ERR_EMPTY);
    assert_ptr_equal(next, &untouched);
}

static void only_steps_that_both_know_are_blended(void **state)
{
    (void)state;
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

// Row 1 is blended and row 2 is the chunk's alone; both say 4 radians.
static void blended_angles_join_their_chunk_without_a_turn(void **state)
{
    (void)state;
    const td_edge_blend halves = {
        .aggregate = TD_EDGE_AVERAGE,
        .channels = 1,
        .kinds = angle,
    };
    td_edge_timeline *old =
        merge(NULL, 0, 2, (float[]){4.0f, 4.0f - TURN}, 0, &halves);
    td_edge_timeline *new = merge(old, 1, 2, (float[]){4, 4}, 1, &halves);
    assert_float_equal(new->data[0], 4, 1e-5);
    assert_float_equal(new->data[1], 4, 0);
    free(old);
    free(new);
}

// Old says 0 and new says 1; the row played before was 0.
static void a_temporal_merge_has_no_jump_at_either_end(void **state)
{
    (void)state;
    static const float zeros[12];
    static const float ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const td_edge_blend temporal = {
        .aggregate = TD_EDGE_TEMPORAL,
        .channels = 1,
        .kinds = linear,
    };
    for (uint32_t played = 0; played < 12; played++) {
        td_edge_timeline *old = merge(NULL, 0, 12, zeros, 0, &latest);
        td_edge_timeline *new = merge(old, played, 12, ones, played, &temporal);
        float stride = 1.0f / (float)(12 - played + 1);
        float before = 0;
        for (uint32_t i = 0; i < new->rows; i++) {
            assert_true(new->data[i] >= before);
            assert_true(new->data[i] - before <= stride + 1e-6f);
            before = new->data[i];
        }
        assert_true(1 - before <= stride + 1e-6f);
        free(old);
        free(new);
    }
}

static void the_overlap_counts_from_the_cursor(void **state)
{
    (void)state;
    const td_edge_blend temporal = {
        .aggregate = TD_EDGE_TEMPORAL,
        .channels = 1,
        .kinds = linear,
    };
    td_edge_timeline *old =
        merge(NULL, 0, 6, (float[]){0, 0, 0, 0, 0, 0}, 0, &temporal);
    td_edge_timeline *new =
        merge(old, 1, 7, (float[]){8, 8, 8, 8, 8, 8, 8}, 3, &temporal);
    const float expected[] = {2, 4, 6, 8, 8};
    assert_int_equal(new->rows, 5);
    assert_memory_equal(new->data, expected, sizeof expected);
    free(old);
    free(new);
}

// Refuses odd steps.
static void keep_old_on_even_steps(void *user, uint64_t step,
                                   const float *old_row, const float *new_row,
                                   uint32_t channels, float *ret_row)
{
    (void)new_row, (void)channels;
    ++*(int *)user;
    ret_row[0] = step % 2 == 0 ? old_row[0] : NAN;
}

static void refused_rows_are_new_and_counted(void **state)
{
    (void)state;
    int calls = 0;
    const td_edge_blend custom = {
        .aggregate = TD_EDGE_CUSTOM,
        .channels = 1,
        .kinds = linear,
        .fn = keep_old_on_even_steps,
        .user = &calls,
    };
    td_edge_timeline *old =
        merge(NULL, 0, 4, (float[]){0, 1, 2, 3}, 0, &custom);
    assert_int_equal(calls, 0);
    assert_int_equal(old->refused, 0);
    td_edge_timeline *new =
        merge(old, 1, 5, (float[]){11, 12, 13, 14, 15}, 1, &custom);
    const float expected[] = {11, 2, 13, 14, 15};
    assert_memory_equal(new->data, expected, sizeof expected);
    assert_int_equal(calls, 3);
    assert_int_equal(new->refused, 2);
    free(old);
    free(new);
}

static td_err all_says;

// Old values on even steps; odd ones are left as they are, not a number.
static td_err keep_all_old_on_even_steps(void *user,
                                         const td_edge_overlap *overlap,
                                         float *ret_rows)
{
    ++*(int *)user;
    assert_int_equal(overlap->first, 1);
    assert_int_equal(overlap->rows, 3);
    for (uint32_t i = 0; i < overlap->rows; i++)
        ret_rows[i] =
            (overlap->first + i) % 2 == 0 ? overlap->old_rows[i] : NAN;
    return all_says;
}

static void a_function_of_all_rows_is_called_once_or_not_used(void **state)
{
    static const struct {
        const char *name;
        td_err says;
        uint32_t refused;
        float step_2;
    } cases[] = {
        {"it is in time", TD_OK, 2, 2},
        {"it is late", TD_ERR_TIMEOUT, 0, 12},
        {"it fails", TD_ERR_IO, 0, 12},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        int calls = 0;
        const td_edge_blend custom = {
            .aggregate = TD_EDGE_CUSTOM,
            .channels = 1,
            .kinds = linear,
            .all = keep_all_old_on_even_steps,
            .user = &calls,
        };
        print_message("%s\n", cases[i].name);
        all_says = cases[i].says;
        td_edge_timeline *old =
            merge(NULL, 0, 4, (float[]){0, 1, 2, 3}, 0, &custom);
        assert_int_equal(calls, 0);
        td_edge_timeline *new =
            merge(old, 1, 5, (float[]){11, 12, 13, 14, 15}, 1, &custom);
        const float expected[] = {11, cases[i].step_2, 13, 14, 15};
        assert_memory_equal(new->data, expected, sizeof expected);
        assert_int_equal(calls, 1);
        assert_int_equal(new->refused, cases[i].refused);
        assert_int_equal(new->blended, cases[i].says);
        free(old);
        free(new);
    }
}

static void every_quaternion_of_a_timeline_has_length_one(void **state)
{
    (void)state;
    static const td_wire_channel_kind quaternion[] = {
        TD_WIRE_QUATERNION,
        TD_WIRE_QUATERNION,
        TD_WIRE_QUATERNION,
        TD_WIRE_QUATERNION,
    };
    td_edge_blend blend = {.channels = 4, .kinds = quaternion};
    const float data[] = {0, 0, 0, 2, 0, 3, 0, 3, 0.1f, 0, 0, 0};
    for (int i = TD_EDGE_WEIGHTED_AVERAGE; i <= TD_EDGE_TEMPORAL; i++) {
        blend.aggregate = (td_edge_aggregate)i;
        td_edge_timeline *old = merge(NULL, 0, 3, data, 0, &blend);
        td_edge_timeline *new = merge(old, 1, 3, data, 1, &blend);
        for (uint32_t row = 0; row < new->rows; row++) {
            const float *q = &new->data[(size_t)row * 4];
            assert_float_equal(
                q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3], 1, 1e-6);
        }
        free(old);
        free(new);
    }
}

static void the_example_of_the_docs_holds(void **state)
{
    (void)state;
    static const td_wire_channel_kind kinds[] = {TD_WIRE_LINEAR, TD_WIRE_HOLD};
    static const struct {
        const char *name;
        td_edge_aggregate aggregate;
        float step_4, step_5;
    } cases[] = {
        {"weighted_average", TD_EDGE_WEIGHTED_AVERAGE, 11, 12},
        {"latest_only", TD_EDGE_LATEST_ONLY, 14, 15},
        {"average", TD_EDGE_AVERAGE, 9, 10},
        {"conservative", TD_EDGE_CONSERVATIVE, 7, 8},
        {"temporal", TD_EDGE_TEMPORAL, 7.3333335f, 11.666667f},
    };
    const float a[] = {0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0};
    const float b[] = {12, 0, 13, 0, 14, 0, 15, 1, 16, 1, 17, 1};
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        const td_edge_blend blend = {
            .aggregate = cases[i].aggregate,
            .channels = 2,
            .kinds = kinds,
        };
        td_edge_timeline *old = merge(NULL, 0, 6, a, 0, &blend);
        td_edge_timeline *new = merge(old, 2, 6, b, 4, &blend);
        const float expected[] = {
            cases[i].step_4, 0, cases[i].step_5, 1, 16, 1, 17, 1,
        };
        assert_int_equal(new->first, 4);
        assert_int_equal(new->rows, 4);
        for (int k = 0; k < 8; k++)
            if (new->data[k] != expected[k])
                fail_msg("%s: [%d] is %a", cases[i].name, k,
                         (double)new->data[k]);
        free(old);
        free(new);
    }
}

// Far along, a timeline is as small as at the start.
static void steps_are_counted_in_64_bits(void **state)
{
    (void)state;
    const uint64_t far = UINT64_C(1) << 40;
    td_edge_timeline *timeline =
        merge(NULL, far, 3, (float[]){1, 2, 3}, far + 1, &latest);
    assert_int_equal(timeline->rows, 2);
    assert_true(*td_edge_timeline_row(timeline, far + 2) == 3);
    free(timeline);
}

static void say_the_step(void *user, uint64_t step, const float *old_row,
                         const float *new_row, uint32_t channels,
                         float *ret_row)
{
    (void)user, (void)old_row, (void)new_row, (void)channels;
    ret_row[0] = (float)step;
}

static void a_users_function_is_given_each_step_by_number(void **state)
{
    (void)state;
    const td_edge_blend custom = {
        .aggregate = TD_EDGE_CUSTOM,
        .channels = 1,
        .kinds = linear,
        .fn = say_the_step,
    };
    td_edge_timeline *old =
        merge(NULL, 5, 4, (float[]){0, 0, 0, 0}, 5, &custom);
    td_edge_timeline *new = merge(old, 5, 4, (float[]){0, 0, 0, 0}, 6, &custom);
    const float expected[] = {6, 7, 8};
    assert_int_equal(new->rows, 3);
    assert_memory_equal(new->data, expected, sizeof expected);
    free(old);
    free(new);
}

// Ten times old and once new; the second row is left as it is.
static td_err add_all(void *user, const td_edge_overlap *overlap,
                      float *ret_rows)
{
    ++*(int *)user;
    for (uint32_t i = 0; i < overlap->rows * overlap->channels; i++)
        ret_rows[i] = i / overlap->channels == 1
                          ? NAN
                          : 10 * overlap->old_rows[i] + overlap->new_rows[i];
    return TD_OK;
}

// Both end with the same step: nothing lies behind the rows that both know.
static void a_function_of_all_rows_is_given_every_channel(void **state)
{
    (void)state;
    static const td_wire_channel_kind kinds[] = {TD_WIRE_LINEAR, TD_WIRE_HOLD};
    int calls = 0;
    const td_edge_blend custom = {
        .aggregate = TD_EDGE_CUSTOM,
        .channels = 2,
        .kinds = kinds,
        .all = add_all,
        .user = &calls,
    };
    td_edge_timeline *old =
        merge(NULL, 0, 3, (float[]){1, 2, 3, 4, 5, 6}, 0, &custom);
    for (uint32_t cursor = 0; cursor < 3; cursor++) {
        td_edge_timeline *new =
            merge(old, 0, 3, (float[]){1, 1, 2, 2, 3, 3}, cursor, &custom);
        static const float expected[3][6] = {
            {11, 21, 2, 2, 53, 63}, {32, 42, 3, 3}, {53, 63}};
        assert_int_equal(new->rows, 3 - cursor);
        assert_memory_equal(new->data, expected[cursor],
                            (size_t)new->rows * 2 * sizeof(float));
        assert_int_equal(new->refused, cursor < 2);
        assert_int_equal(calls, cursor + 1);
        free(new);
    }
    free(old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_timeline_has_no_rows),
        cmocka_unit_test(rows_below_the_cursor_are_past),
        cmocka_unit_test(left_counts_down_to_nothing),
        cmocka_unit_test(a_chunk_all_past_is_empty),
        cmocka_unit_test(only_steps_that_both_know_are_blended),
        cmocka_unit_test(steps_beyond_the_newer_chunk_are_dropped),
        cmocka_unit_test(generations_count_up),
        cmocka_unit_test(blended_angles_join_their_chunk_without_a_turn),
        cmocka_unit_test(a_temporal_merge_has_no_jump_at_either_end),
        cmocka_unit_test(the_overlap_counts_from_the_cursor),
        cmocka_unit_test(refused_rows_are_new_and_counted),
        cmocka_unit_test(a_function_of_all_rows_is_called_once_or_not_used),
        cmocka_unit_test(every_quaternion_of_a_timeline_has_length_one),
        cmocka_unit_test(the_example_of_the_docs_holds),
        cmocka_unit_test(steps_are_counted_in_64_bits),
        cmocka_unit_test(a_users_function_is_given_each_step_by_number),
        cmocka_unit_test(a_function_of_all_rows_is_given_every_channel),
    };
    return cmocka_run_group_tests_name("edge/timeline", tests, NULL, NULL);
}

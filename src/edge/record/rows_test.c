// SPDX-License-Identifier: Apache-2.0
#include "edge/record/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MAX_ROWS 64

static td_edge_rows *rows;
static uint32_t substeps;
static int64_t now_ns;

// What came out.
typedef struct seen {
    int64_t seen_ns, age_ns;
    uint64_t episode, lost, chunk, step;
    bool held, clamped, failsafe;
    float state, action;
} seen;
static seen out[MAX_ROWS];
static size_t out_count;
static bool without_room; // for what comes out

static void begin(uint32_t ticks_a_row)
{
    assert_int_equal(td_edge_rows_new(1, 1, ticks_a_row, &rows), TD_OK);
    substeps = ticks_a_row;
    now_ns = 0;
    out_count = 0;
}

static int teardown(void **state)
{
    (void)state;
    if (rows) td_edge_rows_free(TD_TAKE(rows));
    return 0;
}

static void keep(const td_edge_row *row)
{
    if (!row) return;
    assert_true(out_count < MAX_ROWS);
    out[out_count++] = (seen){
        .seen_ns = row->seen_ns,
        .age_ns = row->age_ns,
        .episode = row->episode,
        .lost = row->lost,
        .chunk = row->chunk,
        .step = row->step,
        .held = row->held,
        .clamped = row->clamped,
        .failsafe = row->failsafe,
        .state = row->values[0],
        .action = row->values[1],
    };
    if (without_room) td_edge_rows_lose(rows, row);
}

// One tick a call; the state is the time, and so is the command.
static void tick(td_edge_step step, uint32_t missed)
{
    const float value = (float)++now_ns;
    static const td_edge_gate_hits no_hits;
    step.command = &value;
    if (!step.hits) step.hits = &no_hits;
    const td_edge_rows_tick in = {
        .now_ns = now_ns,
        .missed = missed,
        .episode = 7,
        .state = &value,
        .step = &step,
    };
    keep(td_edge_rows_add(rows, &in));
}

static void play(uint64_t row)
{
    for (uint32_t k = 1; k <= substeps; k++)
        tick((td_edge_step){.fresh = true,
                            .substep = k,
                            .chunk = 3,
                            .chunk_row = row,
                            .age_ns = 40 + k},
             0);
}

static void starve(uint32_t ticks)
{
    for (uint32_t k = 0; k < ticks; k++)
        tick((td_edge_step){.failsafe = TD_EDGE_FAILSAFE_FOR_STARVED,
                            .starved = true},
             0);
}

static void every_step_is_one_row(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 4; n++) {
        begin(n);
        for (uint64_t k = 0; k < 5; k++)
            play(k);
        assert_int_equal(out_count, 5);
        for (uint64_t k = 0; k < 5; k++) {
            assert_int_equal(out[k].step, k);
            assert_int_equal(out[k].chunk, 3);
            assert_int_equal(out[k].episode, 7);
            assert_int_equal(out[k].age_ns, 41);
            assert_false(out[k].held);
            assert_int_equal(out[k].lost, 0);
        }
        teardown(NULL);
    }
}

static void a_row_has_what_was_seen_first_and_done_last(void **state)
{
    (void)state;
    begin(3);
    play(0);
    assert_int_equal(out[0].seen_ns, 1);
    assert_true(out[0].state == 1 && out[0].action == 3);
}

static void held_ticks_make_a_row_a_period(void **state)
{
    (void)state;
    begin(3);
    starve(7);
    assert_int_equal(out_count, 2);
    assert_true(out[0].held && out[1].held);
    assert_false(out[0].failsafe);
    assert_int_equal(out[1].seen_ns, 4);
}

// Four ticks held, a step, two ticks held: the ticks before and after the step
// are one period together.
static void no_step_is_lost_between_held_ticks(void **state)
{
    (void)state;
    begin(3);
    starve(4);
    play(5);
    starve(2);
    assert_int_equal(out_count, 3);
    assert_true(out[0].held);
    assert_int_equal(out[1].step, 5);
    assert_true(out[2].held);
}

static void a_step_that_was_interrupted_is_one_row(void **state)
{
    (void)state;
    begin(2);
    tick((td_edge_step){.fresh = true, .substep = 1, .chunk_row = 9}, 0);
    tick((td_edge_step){.failsafe = TD_EDGE_FAILSAFE_FOR_DRIVER}, 0);
    tick((td_edge_step){.failsafe = TD_EDGE_FAILSAFE_FOR_DRIVER}, 0);
    tick((td_edge_step){.fresh = true, .substep = 2, .chunk_row = 9}, 0);
    assert_int_equal(out_count, 2);
    assert_true(out[0].held && out[0].failsafe);
    assert_int_equal(out[1].step, 9);
    assert_int_equal(out[1].seen_ns, 1);
    assert_false(out[1].failsafe);
}

static void a_limit_in_any_tick_is_recorded(void **state)
{
    static const td_edge_gate_hits hits = {.consecutive = 1};
    (void)state;
    begin(2);
    tick((td_edge_step){.fresh = true, .substep = 1, .hits = &hits}, 0);
    tick((td_edge_step){.fresh = true, .substep = 2}, 0);
    play(1);
    assert_true(out[0].clamped);
    assert_false(out[1].clamped);
}

static void before_the_first_command_there_is_no_row(void **state)
{
    (void)state;
    begin(1);
    const float value = 1;
    const td_edge_step nothing = {0};
    const td_edge_rows_tick idle = {.state = &value, .step = &nothing};
    for (int i = 0; i < 5; i++)
        assert_null(td_edge_rows_add(rows, &idle));
}

static void a_step_whose_beginning_was_not_seen_is_no_row(void **state)
{
    (void)state;
    begin(2);
    tick((td_edge_step){.fresh = true, .substep = 2}, 0);
    assert_int_equal(out_count, 0);
}

static void ticks_that_were_missed_are_lost_rows(void **state)
{
    static const struct {
        const char *name;
        uint32_t substeps, held, missed;
        uint64_t lost; // in the next row
    } cases[] = {
        {"one", 1, 0, 1, 1},
        {"less than a period", 4, 0, 3, 0},
        {"with those held before", 4, 2, 3, 1},
        {"many", 2, 0, 9, 4},
        {"none", 2, 1, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        begin(cases[i].substeps);
        starve(cases[i].held);
        size_t before = out_count;
        tick((td_edge_step){.fresh = true, .substep = 1}, cases[i].missed);
        for (uint32_t k = 2; k <= substeps; k++)
            tick((td_edge_step){.fresh = true, .substep = k}, 0);
        if (out_count != before + 1 || out[before].lost != cases[i].lost)
            fail_msg("%s: %llu lost", cases[i].name,
                     (unsigned long long)out[before].lost);
        teardown(NULL);
    }
}

// Rows and time go together, whatever happens in which order.
static void rows_keep_to_the_clock(void **state)
{
    (void)state;
    begin(4);
    uint64_t ticks = 0, lost = 0;
    for (uint32_t i = 0; i < 9; i++) {
        starve(i % 5);
        play(i);
        ticks += i % 5 + substeps;
    }
    for (size_t i = 0; i < out_count; i++)
        lost += out[i].lost;
    assert_int_equal(lost, 0);
    assert_int_equal(out_count, ticks / substeps);
}

static void a_row_without_room_is_counted_in_the_next(void **state)
{
    (void)state;
    begin(1);
    without_room = true;
    play(0);
    play(1);
    without_room = false;
    play(2);
    play(3);
    assert_int_equal(out[1].lost, 1);
    assert_int_equal(out[2].lost, 2);
    assert_int_equal(out[3].lost, 0);
}

static void a_state_that_is_not_known_is_the_last_one(void **state)
{
    (void)state;
    begin(1);
    play(0);
    static const td_edge_gate_hits no_hits;
    const float command = 5;
    const td_edge_step step = {
        .command = &command, .hits = &no_hits, .fresh = true, .substep = 1};
    const td_edge_rows_tick blind = {.now_ns = 9, .step = &step};
    keep(td_edge_rows_add(rows, &blind));
    assert_true(out[1].state == out[0].state && out[1].action == 5);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_step_is_one_row),
        TEST(a_row_has_what_was_seen_first_and_done_last),
        TEST(held_ticks_make_a_row_a_period),
        TEST(no_step_is_lost_between_held_ticks),
        TEST(a_step_that_was_interrupted_is_one_row),
        TEST(a_limit_in_any_tick_is_recorded),
        TEST(before_the_first_command_there_is_no_row),
        TEST(a_step_whose_beginning_was_not_seen_is_no_row),
        TEST(ticks_that_were_missed_are_lost_rows),
        TEST(rows_keep_to_the_clock),
        TEST(a_row_without_room_is_counted_in_the_next),
        TEST(a_state_that_is_not_known_is_the_last_one),
    };
    return cmocka_run_group_tests_name("edge/rows", tests, NULL, NULL);
}

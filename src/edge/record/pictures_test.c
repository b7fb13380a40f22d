// SPDX-License-Identifier: Apache-2.0
#include "edge/record/pictures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MOST_NS 1000

static td_edge_frame frames[8]; // without pixels
static td_edge_arrival script[8];
static size_t script_count, script_at;
static int held; // frames handed out and not given back

static bool next(void *user, td_edge_arrival *ret_taken)
{
    (void)user;
    if (script_at == script_count) return false;
    *ret_taken = script[script_at++];
    if (ret_taken->frame) held++;
    return true;
}

static void give_back(void *user, td_edge_frame *frame)
{
    (void)user;
    assert_non_null(frame);
    held--;
}

static td_edge_pictures pictures;

static int setup(void **state)
{
    static const td_edge_picture_source source = {NULL, next, give_back};
    (void)state;
    script_count = script_at = 0;
    held = 0;
    td_edge_pictures_init(&pictures, &source);
    return 0;
}

// A picture that was asked for at its arrival, or one without room.
static void come(int64_t arrived_ns, bool room)
{
    td_edge_frame *frame = &frames[script_count];
    frame->captured_ns = arrived_ns;
    script[script_count++] = (td_edge_arrival){arrived_ns, room ? frame : NULL};
}

static const td_edge_frame *at(int64_t at_ns, td_edge_picture_kind kind)
{
    const td_edge_frame *frame = NULL;
    assert_int_equal(td_edge_pictures_at(&pictures, at_ns, MOST_NS, &frame),
                     kind);
    return frame;
}

static void before_the_first_there_is_none(void **state)
{
    (void)state;
    come(10, true);
    assert_null(at(9, TD_EDGE_PICTURE_NONE));
    assert_ptr_equal(at(10, TD_EDGE_PICTURE_THERE), &frames[0]);
}

static void the_newest_that_had_arrived_is_the_one(void **state)
{
    (void)state;
    come(10, true);
    come(20, true);
    come(30, true);
    assert_ptr_equal(at(29, TD_EDGE_PICTURE_THERE), &frames[1]);
    assert_ptr_equal(at(30, TD_EDGE_PICTURE_THERE), &frames[2]);
}

static void a_picture_serves_until_the_next(void **state)
{
    (void)state;
    come(10, true);
    for (int64_t t = 10; t < 50; t += 10)
        assert_ptr_equal(at(t, TD_EDGE_PICTURE_THERE), &frames[0]);
}

static void an_older_time_has_the_present_one(void **state)
{
    (void)state;
    come(10, true);
    come(20, true);
    assert_ptr_equal(at(25, TD_EDGE_PICTURE_THERE), &frames[1]);
    assert_ptr_equal(at(15, TD_EDGE_PICTURE_THERE), &frames[1]);
}

static void a_picture_that_is_too_old_is_none(void **state)
{
    (void)state;
    come(10, true);
    (void)at(10 + MOST_NS, TD_EDGE_PICTURE_THERE);
    assert_null(at(11 + MOST_NS, TD_EDGE_PICTURE_NONE));
}

static void a_picture_without_room_is_missing_until_the_next(void **state)
{
    (void)state;
    come(10, true);
    come(20, false);
    come(30, true);
    (void)at(10, TD_EDGE_PICTURE_THERE);
    assert_null(at(20, TD_EDGE_PICTURE_NO_ROOM));
    assert_null(at(29, TD_EDGE_PICTURE_NO_ROOM));
    assert_ptr_equal(at(30, TD_EDGE_PICTURE_THERE), &frames[2]);
}

static void what_is_past_is_given_back(void **state)
{
    (void)state;
    for (int64_t i = 1; i <= 5; i++)
        come(10 * i, true);
    (void)at(45, TD_EDGE_PICTURE_THERE);
    assert_int_equal(held, 2); // it, and the one that comes
    td_edge_pictures_done(&pictures);
    assert_int_equal(held, 0);
}

static void the_end_gives_back_what_nobody_looked_at(void **state)
{
    (void)state;
    come(10, true);
    come(20, false);
    come(30, true);
    td_edge_pictures_done(&pictures);
    assert_int_equal(script_at, 3);
    assert_int_equal(held, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(before_the_first_there_is_none),
        TEST(the_newest_that_had_arrived_is_the_one),
        TEST(a_picture_serves_until_the_next),
        TEST(an_older_time_has_the_present_one),
        TEST(a_picture_that_is_too_old_is_none),
        TEST(a_picture_without_room_is_missing_until_the_next),
        TEST(what_is_past_is_given_back),
        TEST(the_end_gives_back_what_nobody_looked_at),
    };
    return cmocka_run_group_tests_name("edge/pictures", tests, NULL, NULL);
}

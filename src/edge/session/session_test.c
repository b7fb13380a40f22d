// SPDX-License-Identifier: Apache-2.0
// The states against servers that fall silent, refuse and go.
//
// A test may be kept from job for a while, and its robot then takes a
// server for silent that is not; so nothing here is true of one moment, or of
// how often. A fake server counts in which states it was asked to attach.
#include "edge/edge_fixture.h"

#define WATCHDOG_NS (300 * TD_NS_PER_MS)

static uint64_t played; // rows, when the server fell silent

// Nothing is left of what it was sent, and nothing is on the way.
static bool holds(world *w)
{
    return w->report.counts.fresh >= w->fake_servers[0].promised;
}

static bool plays_again(world *w)
{
    return w->report.state == TD_EDGE_STREAMING &&
           w->report.counts.fresh > played + 2 * ROWS;
}

// Streams from "gpu-1" until that says nothing more.
static fake_server *open_and_silence(world *w)
{
    fake_server *p = fake_server_open(w, 0, "gpu-1");
    w->config.watchdog_ns = WATCHDOG_NS;
    w->config.core.ask.resend_min_ns = WATCHDOG_NS / 10;
    w->config.core.ask.resend_max_ns = WATCHDOG_NS / 10;
    world_stream(w);
    assert_int_equal(p->attached_in[TD_EDGE_CONNECTING], 1);
    world_until(w, has_merged_twenty);
    p->answers_left = 0;
    world_until(w, holds);
    played = w->report.counts.fresh;
    return p;
}

// Rows follow each other, whoever sent them, and none is left out.
static void assert_motion_is_smooth(world *w)
{
    size_t count;
    world_stop(w);
    world_close(w);
    const float *commands = world_commands(w, &count);
    assert_true(count > 1 && commands[(count - 1) * CHANNELS] >= (float)played);
    for (size_t i = 1; i < count; i++)
        assert_true(commands[i * CHANNELS] > commands[(i - 1) * CHANNELS]);
}

static uint64_t entered(const world *w, td_edge_state state)
{
    return w->report.entered[state];
}

static bool was_asked_again(world *w)
{
    return w->fake_servers[0].attached_in[TD_EDGE_STALLED] > 0;
}

static void a_stalled_server_that_is_still_there_resumes(void **state)
{
    world *w = *state;
    fake_server *p = open_and_silence(w);
    p->wakes = true;
    world_until(w, was_asked_again);
    world_until(w, plays_again);
    assert_string_equal(w->report.server, "gpu-1");
    assert_true(entered(w, TD_EDGE_STALLED) >= 1);
    assert_true(entered(w, TD_EDGE_DEGRADED) >= 1);
    assert_int_equal(p->left, 0);
    assert_motion_is_smooth(w);
}

static bool is_stalled(world *w)
{
    return w->report.state == TD_EDGE_STALLED;
}

static bool is_served_again(world *w)
{
    return w->report.counts.fresh > played;
}

static bool was_denied(world *w)
{
    return w->fake_servers[0].denied > 0;
}

static bool streams_again(world *w)
{
    return w->report.state == TD_EDGE_STREAMING;
}

// Before it answers the question whether it is there.
static void a_chunk_that_comes_after_all_ends_the_stall(void **state)
{
    world *w = *state;
    fake_server *p = open_and_silence(w);
    p->mute = true;
    world_until(w, is_stalled);
    p->answers_left = UINT64_MAX;
    world_until(w, is_served_again);
    p->denies = "it would rather not";
    p->mute = false;
    world_until(w, was_denied);
    p->denies = NULL;
    world_until(w, streams_again);
    assert_int_equal(p->attached_in[TD_EDGE_RECONNECTING], 0);
    world_until(w, plays_again);
    assert_motion_is_smooth(w);
}

static bool second_has_it(world *w)
{
    return w->fake_servers[1].attached > 0;
}

static bool was_left(world *w)
{
    return w->fake_servers[0].left > 0;
}

static void a_stalled_server_that_does_not_answer_is_left(void **state)
{
    world *w = *state;
    fake_server *first = open_and_silence(w);
    first->mute = true;
    fake_server *second = fake_server_open(w, 1, "gpu-2");
    second->load = 1;
    world_until(w, second_has_it);
    assert_true(second->attached_in[TD_EDGE_RECONNECTING] > 0);
    world_until(w, plays_again);
    first->mute = false;
    world_until(w, was_left);
    assert_motion_is_smooth(w);
}

static void a_server_that_answers_but_sends_no_chunk_is_left(void **state)
{
    world *w = *state;
    fake_server *first = open_and_silence(w);
    fake_server *second = fake_server_open(w, 1, "gpu-2");
    second->load = 1; // more than the silent one
    world_until(w, second_has_it);
    assert_true(first->attached_in[TD_EDGE_STALLED] > 0);
    assert_true(second->attached_in[TD_EDGE_RECONNECTING] > 0);
    world_until(w, was_left);
    world_until(w, plays_again);
    assert_motion_is_smooth(w);
}

static bool was_found_again(world *w)
{
    return w->fake_servers[0].attached_in[TD_EDGE_RECONNECTING] > 0;
}

static void a_silent_server_is_taken_when_there_is_no_other(void **state)
{
    world *w = *state;
    fake_server *p = open_and_silence(w);
    world_until(w, was_found_again);
    p->answers_left = UINT64_MAX;
    world_until(w, plays_again);
    assert_int_equal(p->left, 0);
    assert_motion_is_smooth(w);
}

static void other_period(td_wire_status *status)
{
    status->step_period_us = 20000;
}

static void a_stalled_server_that_no_longer_fits_is_left(void **state)
{
    world *w = *state;
    fake_server *first = open_and_silence(w);
    first->edit_status = other_period;
    world_until(w, is_reconnecting);
    (void)fake_server_open(w, 1, "gpu-2");
    world_until(w, plays_again);
    world_until(w, was_left);
    assert_motion_is_smooth(w);
}

static void a_stalled_server_that_refuses_is_left(void **state)
{
    world *w = *state;
    fake_server *first = open_and_silence(w);
    first->denies = "it drains";
    world_until(w, is_reconnecting);
    (void)fake_server_open(w, 1, "gpu-2");
    world_until(w, plays_again);
    world_until(w, was_left);
    assert_motion_is_smooth(w);
}

static void a_killed_server_is_replaced_and_not_told(void **state)
{
    world *w = *state;
    fake_server *first = open_and_silence(w);
    fake_server_close(first);
    world_until(w, is_reconnecting);
    fake_server *second = fake_server_open(w, 1, "gpu-2");
    world_until(w, plays_again);
    assert_true(second->attached_in[TD_EDGE_RECONNECTING] > 0);
    assert_int_equal(second->left_others, 0);
    assert_motion_is_smooth(w);
}

// No server fits any more: one that has moved holds and keeps looking.
static void a_robot_that_has_moved_never_gives_up(void **state)
{
    world *w = *state;
    w->config.refused_for_ns = 1;
    fake_server *p = open_and_silence(w);
    p->edit_status = other_period;
    world_until(w, is_reconnecting);
    p->queries = 0;
    world_until(w, has_asked);
    p->edit_status = NULL;
    p->denies = "another start is here";
    p->queries = 0;
    world_until(w, has_asked);
    assert_int_equal(w->report.state, TD_EDGE_RECONNECTING);
    p->denies = NULL;
    p->answers_left = UINT64_MAX;
    world_until(w, plays_again);
    assert_motion_is_smooth(w);
}

static void each_state_is_counted_as_it_is_entered(void **state)
{
    world *w = *state;
    fake_server *p = open_and_silence(w);
    p->wakes = true;
    world_until(w, plays_again);
    fake_server_close(p);
    world_until(w, is_reconnecting);
    world_stop(w);
    td_edge_report_get(w->edge, &w->report);
    assert_int_equal(w->report.state, TD_EDGE_STOPPED);
    assert_int_equal(entered(w, TD_EDGE_CONNECTING), 1);
    assert_true(entered(w, TD_EDGE_STREAMING) >= 2);
    assert_true(entered(w, TD_EDGE_DEGRADED) >= 1);
    assert_true(entered(w, TD_EDGE_STALLED) >= 1);
    assert_true(entered(w, TD_EDGE_RECONNECTING) >= 1);
    assert_int_equal(entered(w, TD_EDGE_STOPPED), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_stalled_server_that_is_still_there_resumes),
        WORLD_TEST(a_chunk_that_comes_after_all_ends_the_stall),
        WORLD_TEST(a_stalled_server_that_does_not_answer_is_left),
        WORLD_TEST(a_server_that_answers_but_sends_no_chunk_is_left),
        WORLD_TEST(a_silent_server_is_taken_when_there_is_no_other),
        WORLD_TEST(a_stalled_server_that_no_longer_fits_is_left),
        WORLD_TEST(a_stalled_server_that_refuses_is_left),
        WORLD_TEST(a_killed_server_is_replaced_and_not_told),
        WORLD_TEST(a_robot_that_has_moved_never_gives_up),
        WORLD_TEST(each_state_is_counted_as_it_is_entered),
    };
    return cmocka_run_group_tests_name("edge/session", tests, NULL, NULL);
}

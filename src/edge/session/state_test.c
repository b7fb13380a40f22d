// SPDX-License-Identifier: Apache-2.0
#include "edge/session/state.h"

#include "base/clock.h"
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const events[] = {
#define EVENT_NAME(name) #name,
    TD_EDGE_EVENTS(EVENT_NAME)
#undef EVENT_NAME
};

// The first letters of where each event leads; '.' is ignored.
//   C S D X R Z: CONNECTING STREAMING DEGRADED STALLED RECONNECTING STOPPED
static const char letters[] = "CSDXRZ";
static const struct {
    td_edge_event event;
    const char *to; // from each state, in the order of the letters
} expected[] = {
    {TD_EDGE_EVENT_ATTACHED, "S...D."},
    {TD_EDGE_EVENT_CHUNK, "...S.."},
    {TD_EDGE_EVENT_STARVED, ".D...."},
    {TD_EDGE_EVENT_LIMITS, ".D...."},
    {TD_EDGE_EVENT_DRIVER, ".D...."},
    {TD_EDGE_EVENT_RECOVERED, "..S..."},
    {TD_EDGE_EVENT_OVERDUE, ".XX..."},
    {TD_EDGE_EVENT_SILENT, ".RR..."},
    {TD_EDGE_EVENT_STILL_THERE, "...D.."},
    {TD_EDGE_EVENT_GONE, ".RRR.."},
    {TD_EDGE_EVENT_REFUSED, "...R.."},
    {TD_EDGE_EVENT_TURNED_AWAY, "Z....."},
    {TD_EDGE_EVENT_MISMATCH, "Z..R.."},
    {TD_EDGE_EVENT_STOP, "ZZZZZ."},
};

static char letter_of(const td_edge_transition *transition)
{
    if (!transition) return '.';
    return letters[transition->to];
}

static void every_event_in_every_state_is_defined(void **state)
{
    (void)state;
    assert_int_equal(TD_COUNT_OF(expected), TD_EDGE_EVENT_COUNT);
    for (int e = 0; e < TD_EDGE_EVENT_COUNT; e++) {
        assert_int_equal(expected[e].event, e);
        for (int s = 0; s < TD_EDGE_STATE_COUNT; s++) {
            const td_edge_transition *transition =
                td_edge_state_next((td_edge_state)s, (td_edge_event)e);
            char want[] = {expected[e].to[s], 0};
            char got[] = {letter_of(transition), 0};
            print_message("%s in %s: %s\n", events[e],
                          td_edge_state_name((td_edge_state)s), got);
            assert_string_equal(got, want);
        }
    }
}

static void a_transition_names_both_states_and_the_reason(void **state)
{
    (void)state;
    for (int e = 0; e < TD_EDGE_EVENT_COUNT; e++)
        for (int s = 0; s < TD_EDGE_STATE_COUNT; s++) {
            const td_edge_transition *transition =
                td_edge_state_next((td_edge_state)s, (td_edge_event)e);
            if (!transition) continue;
            assert_int_equal(transition->from, s);
            assert_int_equal(transition->event, e);
            assert_int_not_equal(transition->to, s);
            assert_true(strlen(transition->meaning) >= strlen("stopped"));
        }
}

// A state changes by a transition and by nothing else, so that each change can
// be shown.
static void whatever_happens_stopped_is_final(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        td_rand rand;
        td_rand_init(&rand, seed);
        td_edge_state at = TD_EDGE_CONNECTING;
        bool attached_before = false, stopped = false;
        for (int i = 0; i < 1000; i++) {
            td_edge_event event =
                (td_edge_event)(td_rand_u64(&rand) % TD_EDGE_EVENT_COUNT);
            const td_edge_transition *transition =
                td_edge_state_next(at, event);
            if (!transition) continue;
            assert_false(stopped);
            assert_int_equal(transition->from, at);
            at = transition->to;
            stopped = at == TD_EDGE_STOPPED;
            attached_before |= td_edge_state_is_attached(at);
            assert_false(attached_before && at == TD_EDGE_CONNECTING);
            if (stopped && attached_before)
                assert_int_equal(event, TD_EDGE_EVENT_STOP);
        }
        assert_true(stopped);
    }
}

static void a_server_has_the_robot_in_three_states(void **state)
{
    static const bool attached[] = {
        [TD_EDGE_CONNECTING] = false,   [TD_EDGE_STREAMING] = true,
        [TD_EDGE_DEGRADED] = true,      [TD_EDGE_STALLED] = true,
        [TD_EDGE_RECONNECTING] = false, [TD_EDGE_STOPPED] = false,
    };
    (void)state;
    for (int s = 0; s < TD_EDGE_STATE_COUNT; s++)
        assert_int_equal(td_edge_state_is_attached((td_edge_state)s),
                         attached[s]);
}

static void the_meaning_names_the_server(void **state)
{
    static const struct {
        td_edge_state from;
        td_edge_event event;
        size_t size;
        const char *text;
    } cases[] = {
        {TD_EDGE_STREAMING, TD_EDGE_EVENT_GONE, 128,
         "server gpu-1 is gone: holding, looking for one"},
        {TD_EDGE_CONNECTING, TD_EDGE_EVENT_ATTACHED, 128,
         "attached to server gpu-1"},
        {TD_EDGE_STREAMING, TD_EDGE_EVENT_STOP, 128, "stopped"},
        {TD_EDGE_CONNECTING, TD_EDGE_EVENT_ATTACHED, 9, "attached"},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        char text[128];
        td_edge_state_describe(
            td_edge_state_next(cases[i].from, cases[i].event), "gpu-1", text,
            cases[i].size);
        assert_string_equal(text, cases[i].text);
    }
}

static void a_state_has_a_name_and_a_counter(void **state)
{
    (void)state;
    assert_string_equal(td_edge_state_name(TD_EDGE_DEGRADED), "DEGRADED");
    assert_string_equal(td_edge_state_counter(TD_EDGE_DEGRADED),
                        "entered_degraded");
}

static void the_watchdog_acts_only_on_a_robot_that_starves(void **state)
{
    static const struct {
        const char *name;
        int64_t now_ns, since_ns;
        uint32_t left;
        bool overdue;
    } cases[] = {
        {"just attached", 1000, 1000, 0, false},
        {"at its limit", 1500, 1000, 0, false},
        {"beyond it", 1501, 1000, 0, true},
        {"beyond it with rows", 1501, 1000, 1, false},
        {"a chunk that is newer than the look", 1000, 1001, 0, false},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        print_message("%s\n", cases[i].name);
        assert_int_equal(td_edge_state_overdue(cases[i].now_ns,
                                               cases[i].since_ns, cases[i].left,
                                               500),
                         cases[i].overdue);
    }
}

// The longest of many waits after that attempt.
static int64_t longest_ns(uint32_t attempt)
{
    td_rand rand;
    td_rand_init(&rand, attempt);
    int64_t longest = 0;
    for (int i = 0; i < 10000; i++) {
        int64_t wait_ns = td_edge_state_retry_ns(attempt, &rand);
        assert_true(wait_ns >= TD_EDGE_RETRY_MIN_NS);
        if (wait_ns > longest) longest = wait_ns;
    }
    return longest;
}

static void a_retry_waits_longer_within_its_bounds(void **state)
{
    static const struct {
        uint32_t attempt;
        int64_t bound_ms;
    } cases[] = {
        {0, 200}, {1, 400}, {2, 800}, {3, 1600}, {4, 2000}, {UINT32_MAX, 2000},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        int64_t bound_ns = cases[i].bound_ms * TD_NS_PER_MS;
        int64_t longest = longest_ns(cases[i].attempt);
        assert_true(longest <= bound_ns);
        assert_true(longest > bound_ns - bound_ns / 100);
    }
}

// No tenth of a second gets more than a fifth of them.
static void a_hundred_robots_do_not_come_back_in_step(void **state)
{
    int robots[20] = {0};
    (void)state;
    for (uint64_t boot = 0; boot < 100; boot++) {
        td_rand rand;
        td_rand_init(&rand, boot);
        int64_t wait_ns = td_edge_state_retry_ns(9, &rand);
        robots[wait_ns / (100 * TD_NS_PER_MS)]++;
    }
    for (size_t i = 0; i < TD_COUNT_OF(robots); i++)
        assert_true(robots[i] <= 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_in_every_state_is_defined),
        cmocka_unit_test(a_transition_names_both_states_and_the_reason),
        cmocka_unit_test(whatever_happens_stopped_is_final),
        cmocka_unit_test(a_server_has_the_robot_in_three_states),
        cmocka_unit_test(the_meaning_names_the_server),
        cmocka_unit_test(a_state_has_a_name_and_a_counter),
        cmocka_unit_test(the_watchdog_acts_only_on_a_robot_that_starves),
        cmocka_unit_test(a_retry_waits_longer_within_its_bounds),
        cmocka_unit_test(a_hundred_robots_do_not_come_back_in_step),
    };
    return cmocka_run_group_tests_name("edge/state", tests, NULL, NULL);
}

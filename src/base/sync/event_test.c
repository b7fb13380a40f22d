// SPDX-License-Identifier: Apache-2.0
#include "base/sync/event.h"

#include "base/clock.h"
#include "base/sync/thread.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>

#include <cmocka.h>

enum { ROUNDS = 20000, SIGNALS = 200000 };

static int64_t soon_ns(void)
{
    return td_clock_monotonic_ns() + 2 * TD_NS_PER_MS;
}

static td_thread *start(void (*run)(void *user), void *user)
{
    const td_thread_config config = {.name = "other", .cpu = -1};
    td_thread *thread = NULL;
    assert_int_equal(td_thread_start(&config, run, user, &thread, NULL), TD_OK);
    return thread;
}

static void a_signal_before_the_wait_is_kept(void **state)
{
    (void)state;
    td_event event;
    td_event_init(&event);
    td_event_signal(&event);
    assert_true(td_event_wait_until(&event, INT64_MAX));
}

static void signals_do_not_add_up(void **state)
{
    (void)state;
    td_event event;
    td_event_init(&event);
    td_event_signal(&event);
    td_event_signal(&event);
    assert_true(td_event_wait_until(&event, INT64_MAX));
    assert_false(td_event_wait_until(&event, 0));
}

static void no_signal_ends_in_false_at_the_limit(void **state)
{
    (void)state;
    td_event event;
    td_event_init(&event);
    int64_t until_ns = soon_ns();
    assert_false(td_event_wait_until(&event, until_ns));
    assert_true(td_clock_monotonic_ns() >= until_ns);
}

static void a_limit_in_the_past_returns(void **state)
{
    (void)state;
    td_event event;
    td_event_init(&event);
    assert_false(td_event_wait_until(&event, 1));
    assert_false(td_event_wait_until(&event, -1));
    assert_false(td_event_wait_until(&event, INT64_MIN));
    td_event_signal(&event);
    assert_true(td_event_wait_until(&event, -1));
}

static void works_again_after_a_limit(void **state)
{
    (void)state;
    td_event event;
    td_event_init(&event);
    assert_false(td_event_wait_until(&event, 0));
    td_event_signal(&event);
    assert_true(td_event_wait_until(&event, INT64_MAX));
}

struct table {
    td_event ping;
    td_event pong;
    uint32_t ball; // handed over by the events: no lock, no atomic
};

static void play(void *user)
{
    struct table *table = user;
    for (int i = 0; i < ROUNDS; i++) {
        td_event_wait_until(&table->ping, INT64_MAX);
        table->ball++;
        td_event_signal(&table->pong);
    }
}

static void two_threads_wake_each_other_and_hand_over_memory(void **state)
{
    (void)state;
    struct table table = {0};
    td_event_init(&table.ping);
    td_event_init(&table.pong);
    td_thread *thread = start(play, &table);

    for (int i = 0; i < ROUNDS; i++) {
        table.ball++;
        td_event_signal(&table.ping);
        td_event_wait_until(&table.pong, INT64_MAX);
    }
    td_thread_join(thread);
    assert_int_equal(table.ball, 2 * ROUNDS);
}

struct tally {
    td_event event;
    _Atomic uint32_t count;
};

static void signal_many(void *user)
{
    struct tally *tally = user;
    for (int i = 0; i < SIGNALS; i++) {
        atomic_fetch_add(&tally->count, 1);
        td_event_signal(&tally->event);
    }
}

// A lost wake-up would leave this waiting for ever.
static void the_last_signal_of_a_burst_is_never_lost(void **state)
{
    (void)state;
    struct tally tally = {0};
    td_event_init(&tally.event);
    td_thread *thread = start(signal_many, &tally);

    while (atomic_load(&tally.count) < SIGNALS)
        td_event_wait_until(&tally.event, INT64_MAX);
    td_thread_join(thread);
    assert_int_equal(tally.count, SIGNALS);
}

static void do_nothing(int number)
{
    (void)number;
}

struct interrupter {
    pthread_t target;
    td_event *event;
};

static void interrupt_then_signal(void *user)
{
    struct interrupter *interrupter = user;
    for (int i = 0; i < 1000; i++)
        pthread_kill(interrupter->target, SIGUSR1);
    td_event_signal(interrupter->event);
}

static void a_unix_signal_does_not_end_the_wait(void **state)
{
    (void)state;
    const struct sigaction action = {.sa_handler = do_nothing};
    sigaction(SIGUSR1, &action, NULL);
    td_event event;
    td_event_init(&event);
    struct interrupter interrupter = {pthread_self(), &event};
    td_thread *thread = start(interrupt_then_signal, &interrupter);

    bool is_signalled = td_event_wait_until(&event, INT64_MAX);
    td_thread_join(thread);
    assert_true(is_signalled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_before_the_wait_is_kept),
        cmocka_unit_test(signals_do_not_add_up),
        cmocka_unit_test(no_signal_ends_in_false_at_the_limit),
        cmocka_unit_test(a_limit_in_the_past_returns),
        cmocka_unit_test(works_again_after_a_limit),
        cmocka_unit_test(two_threads_wake_each_other_and_hand_over_memory),
        cmocka_unit_test(the_last_signal_of_a_burst_is_never_lost),
        cmocka_unit_test(a_unix_signal_does_not_end_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

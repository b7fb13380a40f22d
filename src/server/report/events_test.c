// SPDX-License-Identifier: Apache-2.0
#include "server/report/events.h"

#include "base/sync/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { WRITERS = 4, EACH = 500 };

// What a subscriber heard.
struct heard {
    uint64_t count, last, losses;
    bool in_order;
    td_server_events_item newest;
};

static void hear(void *user, const td_server_events_item *event)
{
    struct heard *heard = user;
    heard->in_order = heard->in_order && event->number > heard->last;
    heard->last = event->number;
    heard->losses += event->kind == TD_SERVER_EVENT_OVERFLOW;
    heard->count++;
    heard->newest = *event;
}

static int setup(void **state)
{
    return td_server_events_new((td_server_events **)state);
}

static int teardown(void **state)
{
    td_server_events_free(*state);
    return 0;
}

static void add_one(td_server_events *events)
{
    td_server_events_add(events, 0, TD_SERVER_EVENT_LEFT, "gpu-1", "arm-0",
                         "it said so");
}

static void an_event_is_kept_with_its_number(void **state)
{
    td_server_events *events = *state;
    td_server_events_item event;
    uint64_t lost = 99;
    assert_false(td_server_events_next(events, 0, &event, &lost));
    td_server_events_add(events, 7, TD_SERVER_EVENT_ATTACHED, "gpu-1", NULL,
                         "boot %d", 3);
    assert_true(td_server_events_next(events, 0, &event, &lost));
    assert_int_equal(event.number, 1);
    assert_int_equal(event.at_ns, 7);
    assert_int_equal(event.kind, TD_SERVER_EVENT_ATTACHED);
    assert_string_equal(event.server, "gpu-1");
    assert_string_equal(event.client, "");
    assert_string_equal(event.text, "boot 3");
    assert_int_equal(lost, 0);
    assert_int_equal(td_server_events_newest(events), 1);
    assert_false(td_server_events_next(events, 1, &event, &lost));
}

static void a_text_without_end_is_cut(void **state)
{
    td_server_events *events = *state;
    char text[4 * TD_SERVER_EVENT_TEXT];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    td_server_events_add(events, 0, TD_SERVER_EVENT_REFUSED, text, text, "%s",
                         text);
    td_server_events_item event;
    uint64_t lost;
    assert_true(td_server_events_next(events, 0, &event, &lost));
    assert_int_equal(strlen(event.text), TD_SERVER_EVENT_TEXT);
    assert_int_equal(strlen(event.client), TD_WIRE_MAX_NAME);
}

static void who_comes_late_is_told_what_is_lost(void **state)
{
    td_server_events *events = *state;
    for (int i = 0; i < TD_SERVER_EVENTS_KEPT + 10; i++)
        add_one(events);
    td_server_events_item event;
    uint64_t lost;
    assert_true(td_server_events_next(events, 3, &event, &lost));
    assert_int_equal(event.number, 11);
    assert_int_equal(lost, 7);
    assert_true(td_server_events_next(events, 11, &event, &lost));
    assert_int_equal(event.number, 12);
    assert_int_equal(lost, 0);
}

static void a_subscriber_is_told_once_and_in_order(void **state)
{
    td_server_events *events = *state;
    struct heard heard = {.in_order = true};
    add_one(events); // before anybody listens
    assert_int_equal(td_server_events_subscribe(events, hear, &heard), TD_OK);
    td_server_events_deliver(events);
    assert_int_equal(heard.count, 0);
    for (int i = 0; i < 5; i++)
        add_one(events);
    td_server_events_deliver(events);
    td_server_events_deliver(events);
    assert_int_equal(heard.count, 5);
    assert_int_equal(heard.last, 6);
    assert_true(heard.in_order);
    assert_string_equal(heard.newest.client, "arm-0");
}

static void a_subscriber_hears_of_a_loss(void **state)
{
    td_server_events *events = *state;
    struct heard heard = {.in_order = true};
    assert_int_equal(td_server_events_subscribe(events, hear, &heard), TD_OK);
    for (int i = 0; i < TD_SERVER_EVENTS_KEPT + 10; i++)
        add_one(events);
    td_server_events_deliver(events);
    assert_int_equal(heard.losses, 1);
    assert_int_equal(heard.count, TD_SERVER_EVENTS_KEPT + 1);
    assert_true(heard.in_order);
}

static void subscribers_are_few(void **state)
{
    struct heard heard = {0};
    int taken = 0;
    while (taken < 100 &&
           td_server_events_subscribe(*state, hear, &heard) == TD_OK)
        taken++;
    assert_in_range(taken, 1, 99);
}

static void add_many(void *user)
{
    for (int i = 0; i < EACH; i++)
        add_one(user);
}

static void many_threads_may_add(void **state)
{
    td_server_events *events = *state;
    struct heard heard = {.in_order = true};
    assert_int_equal(td_server_events_subscribe(events, hear, &heard), TD_OK);
    const td_thread_config config = {.name = "adder", .cpu = -1};
    td_thread *threads[WRITERS];
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(
            td_thread_start(&config, add_many, events, &threads[i], NULL),
            TD_OK);
    for (int i = 0; i < 1000; i++)
        td_server_events_deliver(events);
    for (int i = 0; i < WRITERS; i++)
        td_thread_join(threads[i]);
    td_server_events_deliver(events);
    assert_int_equal(td_server_events_newest(events), WRITERS * EACH);
    assert_int_equal(heard.last, WRITERS * EACH);
    assert_true(heard.in_order);
}

#define EVENTS_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EVENTS_TEST(an_event_is_kept_with_its_number),
        EVENTS_TEST(a_text_without_end_is_cut),
        EVENTS_TEST(who_comes_late_is_told_what_is_lost),
        EVENTS_TEST(a_subscriber_is_told_once_and_in_order),
        EVENTS_TEST(a_subscriber_hears_of_a_loss),
        EVENTS_TEST(subscribers_are_few),
        EVENTS_TEST(many_threads_may_add),
    };
    return cmocka_run_group_tests_name("server/events", tests, NULL, NULL);
}

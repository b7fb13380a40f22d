// SPDX-License-Identifier: Apache-2.0
// What happened, in a ring that keeps the newest, and whoever subscribed.
//
// add() numbers an event and puts it in the ring; any thread, also with a
// device's lock held, so `lock` is held for a copy and no other inside it.
// deliver() is called by the models' loops: it takes one event after the other
// out of the ring and notifies the subscribers, without `lock`. `delivering`
// makes that one thread at a time, so that everybody sees them in order; a
// subscriber may add events, but not subscribe. Whoever is too slow gets an
// event that says how many were lost.
#include "server/report/events.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUBSCRIBERS 8

struct subscriber {
    td_server_events_fn notify;
    void *user;
};

struct td_server_events {
    pthread_mutex_t lock;                              // guards ring and newest
    td_server_events_item ring[TD_SERVER_EVENTS_KEPT]; // by number
    uint64_t newest;

    pthread_mutex_t
        delivering; // guards what is below; held while one is notified
    struct subscriber subscribers[SUBSCRIBERS];
    size_t subscriber_count;
    uint64_t delivered; // the last one
};

const char *td_server_event_name(td_server_event_kind kind)
{
    static const char *const names[] = {
#define EVENT_NAME(name, text) text,
        TD_SERVER_EVENT_KINDS(EVENT_NAME)
#undef EVENT_NAME
    };
    return names[kind];
}

td_err td_server_events_new(td_server_events **ret_events)
{
    td_server_events *events = calloc(1, sizeof *events);
    if (!events) return TD_ERR_NOMEM;
    pthread_mutex_init(&events->lock, NULL);
    pthread_mutex_init(&events->delivering, NULL);
    *ret_events = events;
    return TD_OK;
}

void td_server_events_free(td_server_events *events)
{
    pthread_mutex_destroy(&events->delivering);
    pthread_mutex_destroy(&events->lock);
    free(events);
}

td_err td_server_events_subscribe(td_server_events *events,
                                  td_server_events_fn notify, void *user)
{
    pthread_mutex_lock(&events->delivering);
    bool fits = events->subscriber_count < SUBSCRIBERS;
    if (events->subscriber_count == 0)
        events->delivered = td_server_events_newest(events);
    if (fits)
        events->subscribers[events->subscriber_count++] =
            (struct subscriber){notify, user};
    pthread_mutex_unlock(&events->delivering);
    return fits ? TD_OK : TD_ERR_FULL;
}

static void copy_name(char ret_name[TD_WIRE_MAX_NAME + 1], const char *name)
{
    (void)snprintf(ret_name, TD_WIRE_MAX_NAME + 1, "%s", name ? name : "");
}

void td_server_events_add(td_server_events *events, int64_t now_ns,
                          td_server_event_kind kind, const char *server,
                          const char *client, const char *fmt, ...)
{
    td_server_events_item event = {.at_ns = now_ns, .kind = kind};
    copy_name(event.server, server);
    copy_name(event.client, client);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(event.text, sizeof event.text, fmt, args);
    va_end(args);

    pthread_mutex_lock(&events->lock);
    event.number = ++events->newest;
    events->ring[event.number % TD_SERVER_EVENTS_KEPT] = event;
    pthread_mutex_unlock(&events->lock);
}

bool td_server_events_next(td_server_events *events, uint64_t after,
                           td_server_events_item *ret_event, uint64_t *ret_lost)
{
    pthread_mutex_lock(&events->lock);
    uint64_t newest = events->newest;
    uint64_t oldest =
        newest > TD_SERVER_EVENTS_KEPT ? newest - TD_SERVER_EVENTS_KEPT + 1 : 1;
    bool is_there = after < newest;
    if (is_there) {
        uint64_t next = after + 1 < oldest ? oldest : after + 1;
        *ret_lost = next - after - 1;
        *ret_event = events->ring[next % TD_SERVER_EVENTS_KEPT];
    }
    pthread_mutex_unlock(&events->lock);
    return is_there;
}

uint64_t td_server_events_newest(td_server_events *events)
{
    pthread_mutex_lock(&events->lock);
    uint64_t newest = events->newest;
    pthread_mutex_unlock(&events->lock);
    return newest;
}

static void tell_all_locked(const td_server_events *events,
                            const td_server_events_item *event)
{
    for (size_t i = 0; i < events->subscriber_count; i++)
        events->subscribers[i].notify(events->subscribers[i].user, event);
}

// In the place of events that were lost before they could be delivered.
static void tell_loss_locked(const td_server_events *events,
                             const td_server_events_item *next, uint64_t lost)
{
    td_server_events_item loss = {.number = next->number - 1,
                                  .at_ns = next->at_ns,
                                  .kind = TD_SERVER_EVENT_OVERFLOW};
    (void)snprintf(loss.text, sizeof loss.text, "%llu events were lost",
                   (unsigned long long)lost);
    tell_all_locked(events, &loss);
}

void td_server_events_deliver(td_server_events *events)
{
    td_server_events_item event;
    uint64_t lost;
    pthread_mutex_lock(&events->delivering);
    while (events->subscriber_count > 0 &&
           td_server_events_next(events, events->delivered, &event, &lost)) {
        if (lost > 0) tell_loss_locked(events, &event, lost);
        tell_all_locked(events, &event);
        events->delivered = event.number;
    }
    pthread_mutex_unlock(&events->delivering);
}

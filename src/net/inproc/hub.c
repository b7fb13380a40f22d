// SPDX-License-Identifier: Apache-2.0
// The hub of the in-process transport: what is on its way, and who delivers it.
//
// Deliveries stand in a heap by the time when they are due, and among equals in
// the order in which they were sent. With a virtual clock nobody delivers by
// itself: td_net_hub_run_until() moves the clock from one delivery to the next,
// on the caller's thread. A threaded hub has a thread that sleeps until the
// next is due.
//
// One lock guards all of a hub and is never held while a callback runs:
// call_begin() notes which declaration is called and lets go, call_end() takes
// it again and wakes whoever waits for that callback to end. One callback runs
// at a time.
//
// Shutdown: the sessions are closed first, each waiting for its callbacks
// (inproc.c). Then stop (the delivering thread gets a flag and is joined),
// drain (what is still on its way is let go, uncalled), free.
#include "net/inproc/hub.h"

#include <assert.h>
#include <stdlib.h>

void td_inproc_hub_lock(td_net_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
}

void td_inproc_hub_unlock(td_net_hub *hub)
{
    pthread_mutex_unlock(&hub->lock);
}

bool td_inproc_hub_in_callback(const td_net_hub *hub)
{
    return hub->calling && pthread_equal(hub->caller, pthread_self());
}

uint64_t td_inproc_hub_new_id(td_net_hub *hub)
{
    return ++hub->last_id;
}

int64_t td_inproc_hub_now_ns(const td_net_hub *hub)
{
    return td_clock_now_ns(hub->clock);
}

td_err td_inproc_hub_push(td_net_hub *hub, const td_inproc_delivery *delivery)
{
    td_err err = td_inproc_heap_push(&hub->heap, delivery);
    if (err != TD_OK) td_inproc_msg_unref(delivery->msg);
    td_event_signal(&hub->wake);
    return err;
}

static void release(td_net_hub *hub, const td_inproc_delivery *delivery)
{
    if (delivery->what == TD_INPROC_SAMPLE) hub->stats.cut++;
    if (delivery->what == TD_INPROC_REQUEST ||
        delivery->what == TD_INPROC_FINAL)
        td_inproc_query_forget(hub, delivery->query, delivery->request);
    td_inproc_msg_unref(delivery->msg);
}

void td_inproc_hub_discard(td_net_hub *hub, td_inproc_doomed doomed,
                           const void *user)
{
    td_inproc_heap *heap = &hub->heap;
    size_t kept = 0;
    for (size_t i = 0; i < heap->count; i++) {
        if (doomed(&heap->items[i], user))
            release(hub, &heap->items[i]);
        else
            heap->items[kept++] = heap->items[i];
    }
    heap->count = kept;
    td_inproc_heap_restore(heap);
    td_inproc_query_end_unasked(hub);
}

void td_inproc_hub_call_begin(td_net_hub *hub, const td_inproc_decl *decl,
                              const td_inproc_session *session)
{
    hub->calling = true;
    hub->caller = pthread_self();
    hub->calling_decl = decl;
    hub->calling_session = session->id;
    td_inproc_hub_unlock(hub);
}

void td_inproc_hub_call_end(td_net_hub *hub)
{
    td_inproc_hub_lock(hub);
    hub->calling = false;
    hub->calling_decl = NULL;
    hub->calling_session = 0;
    pthread_cond_broadcast(&hub->idle);
}

static bool is_due(const td_net_hub *hub, int64_t at_ns)
{
    return hub->heap.count > 0 && hub->heap.items[0].due_ns <= at_ns;
}

static void deliver_first(td_net_hub *hub)
{
    td_inproc_delivery delivery = td_inproc_heap_pop(&hub->heap);
    if (delivery.what == TD_INPROC_SAMPLE) hub->stats.delivered++;
    if (delivery.query)
        td_inproc_query_deliver(hub, &delivery);
    else
        td_inproc_decl_deliver(hub, &delivery);
    td_inproc_msg_unref(delivery.msg);
}

static void deliver_by_itself(void *user)
{
    td_net_hub *hub = user;
    td_inproc_hub_lock(hub);
    while (!hub->stopping) {
        if (is_due(hub, td_inproc_hub_now_ns(hub))) {
            deliver_first(hub);
            continue;
        }
        int64_t next_ns =
            hub->heap.count ? hub->heap.items[0].due_ns : INT64_MAX;
        td_inproc_hub_unlock(hub);
        td_event_wait_until(&hub->wake, next_ns);
        td_inproc_hub_lock(hub);
    }
    td_inproc_hub_unlock(hub);
}

static td_err new_hub(const td_clock *clock, uint64_t seed,
                      td_net_hub **ret_hub)
{
    td_net_hub *hub = calloc(1, sizeof *hub);
    if (!hub) return TD_ERR_NOMEM;
    hub->self = hub;
    hub->clock = clock;
    hub->version = 1;
    td_rand_init(&hub->rand, seed);
    td_event_init(&hub->wake);
    pthread_mutex_init(&hub->lock, NULL);
    pthread_cond_init(&hub->idle, NULL);
    *ret_hub = hub;
    return TD_OK;
}

td_err td_net_hub_new(td_clock_virtual *clock, uint64_t seed,
                      td_net_hub **ret_hub)
{
    td_net_hub *hub = NULL;
    TD_TRY(new_hub(&clock->clock, seed, &hub));
    hub->virtual_clock = clock;
    *ret_hub = hub;
    return TD_OK;
}

td_err td_net_hub_new_threaded(uint64_t seed, td_net_hub **ret_hub)
{
    TD_AUTO(td_net_hub) *hub = NULL;
    TD_TRY(new_hub(&td_clock_monotonic, seed, &hub));
    td_thread_config config = {.name = "td-inproc", .cpu = -1};
    TD_TRY(
        td_thread_start(&config, deliver_by_itself, hub, &hub->thread, NULL));
    *ret_hub = TD_TAKE(hub);
    return TD_OK;
}

static void stop(td_net_hub *hub)
{
    td_inproc_hub_lock(hub);
    hub->stopping = true;
    td_inproc_hub_unlock(hub);
    td_event_signal(&hub->wake);
    if (hub->thread) td_thread_join(hub->thread);
}

static void drain(td_net_hub *hub)
{
    for (size_t i = 0; i < hub->heap.count; i++)
        td_inproc_msg_unref(hub->heap.items[i].msg);
    free(hub->heap.items);
}

void td_net_hub_free(td_net_hub *hub)
{
    stop(hub);
    for (size_t i = 0; i < hub->session_count; i++)
        assert(!hub->sessions[i]);
    drain(hub);
    td_inproc_link_rules_done(hub);
    free(hub->sessions);
    pthread_cond_destroy(&hub->idle);
    pthread_mutex_destroy(&hub->lock);
    free(hub);
}

bool td_net_hub_next_due(const td_net_hub *hub, int64_t *ret_at_ns)
{
    assert(hub->virtual_clock);
    td_inproc_hub_lock(hub->self);
    bool any = hub->heap.count > 0;
    if (any) *ret_at_ns = hub->heap.items[0].due_ns;
    td_inproc_hub_unlock(hub->self);
    return any;
}

void td_net_hub_run_until(td_net_hub *hub, int64_t at_ns)
{
    assert(hub->virtual_clock);
    td_inproc_hub_lock(hub);
    assert(!hub->calling);
    while (is_due(hub, at_ns)) {
        td_clock_virtual_advance_to(hub->virtual_clock,
                                    hub->heap.items[0].due_ns);
        deliver_first(hub);
    }
    td_clock_virtual_advance_to(hub->virtual_clock, at_ns);
    td_inproc_hub_unlock(hub);
}

void td_net_hub_stats_get(const td_net_hub *hub, td_net_hub_stats *ret_stats)
{
    td_inproc_hub_lock(hub->self);
    td_net_hub_stats stats = hub->stats;
    for (size_t i = 0; i < hub->heap.count; i++)
        if (hub->heap.items[i].what == TD_INPROC_SAMPLE) stats.waiting++;
    td_inproc_hub_unlock(hub->self);
    *ret_stats = stats;
}

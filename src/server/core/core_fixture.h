// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_CORE_CORE_FIXTURE_H
#define TD_SERVER_CORE_CORE_FIXTURE_H

// A server of a small model for tests: two joints and a gripper, two cameras.

#include "server/core/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static inline void model_describe(td_engine_spec *spec)
{
    *spec = (td_engine_spec){
        .model_id = "act",
        .model_version = "v1",
        .cameras = {{td_wire_text_of("top"), 480, 640},
                    {td_wire_text_of("hand"), 96, 128}},
        .camera_count = 2,
        .states = {{td_wire_text_of("shoulder"), TD_WIRE_LINEAR},
                   {td_wire_text_of("wrist"), TD_WIRE_ANGLE},
                   {td_wire_text_of("gripper"), TD_WIRE_HOLD}},
        .state_count = 3,
        .actions = {{td_wire_text_of("shoulder"), TD_WIRE_LINEAR},
                    {td_wire_text_of("gripper"), TD_WIRE_HOLD}},
        .action_count = 2,
        .chunk_rows = 50,
        .step_period_us = 33333,
        .max_batch = 8,
    };
}

static const char *const listed_names[] = {"arm-0", "arm-1", "arm-2"};
static const td_server_allowance listed_clients[] = {
    {"arm-0", 50000000, 0, 1},
    {"arm-1", 50000000, 0, 1},
    {"arm-2", 50000000, 0, 1},
};

static inline td_server_settings server_settings(void)
{
    return (td_server_settings){
        .server_id = "gpu-1",
        .boot = 11,
        .clients = listed_clients,
        .client_count = TD_COUNT_OF(listed_clients),
        .capacity = 2,
    };
}

// Room for a model of up to 1,024 clients; batches start at once.
static inline td_server_dispatch *dispatch_new(const td_engine_spec *spec)
{
    td_server_dispatch *dispatch = NULL;
    td_server_device_settings settings = td_server_device_defaults;
    td_server_model_settings how = td_server_model_defaults;
    uint32_t model = 99;
    settings.clients = 1024;
    how.batch.wait = TD_SCHED_WAIT_NONE;
    assert_int_equal(td_server_dispatch_new(&settings, &dispatch, NULL), TD_OK);
    assert_int_equal(td_server_dispatch_add(dispatch, spec, &how, &model),
                     TD_OK);
    assert_int_equal(model, 0);
    td_server_dispatch_open(dispatch, model, true);
    return dispatch;
}

static inline td_server_core_model model_of(const td_engine_spec *spec,
                                            td_server_dispatch *dispatch)
{
    return (td_server_core_model){
        .spec = spec,
        .dispatch = dispatch,
        .cadence = TD_SCHED_CADENCE_DEFAULTS,
        .precompute = true,
        .inputs = TD_SERVER_FIT_LIMITS,
    };
}

// READY. Borrows all three.
static inline td_server_core *server_new(const td_server_settings *settings,
                                         const td_engine_spec *spec,
                                         td_server_dispatch *dispatch)
{
    td_server_core *core = NULL;
    const td_server_core_model model = model_of(spec, dispatch);
    assert_int_equal(td_server_core_new(settings, &model, &core), TD_OK);
    td_server_core_set_state(core, TD_WIRE_READY);
    return core;
}

// The counts, checked: every observation received has exactly one outcome.
static inline td_server_counts server_counts(const td_server_core *core)
{
    td_server_counts counts;
    td_server_core_counts(core, &counts);
    uint64_t sum = 0;
    for (int i = 0; i < TD_SERVER_OUTCOME_COUNT; i++)
        sum += counts.outcomes[i];
    assert_int_equal(sum, counts.received);
    return counts;
}

#define FIXTURE_REQUESTS 8

// A server for one test, with what its core borrows.
typedef struct fixture {
    td_engine_spec spec;
    td_server_settings settings;
    td_server_dispatch *dispatch;
    td_server_core *core;
    int64_t now_ns;
    td_server_dispatch_batch batch;               // the newest
    td_server_client clients[4];                  // by who attached first
    td_server_request requests[FIXTURE_REQUESTS]; // of seq % FIXTURE_REQUESTS
} fixture;

static inline int fixture_setup(void **state)
{
    static fixture h;
    h = (fixture){.settings = server_settings(), .now_ns = 1000};
    model_describe(&h.spec);
    h.dispatch = dispatch_new(&h.spec);
    h.core = server_new(&h.settings, &h.spec, h.dispatch);
    *state = &h;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    fixture *h = *state;
    td_server_core_free(h->core);
    td_server_dispatch_free(h->dispatch);
    return 0;
}

// The record of that name, attached or not; a new one if there is none. A name
// that is too long is cut.
static inline td_server_client *fixture_client(fixture *h, const char *id)
{
    td_server_client *client = h->clients;
    while (client->id[0] && strcmp(client->id, id) != 0)
        client++;
    assert_true(client < h->clients + TD_COUNT_OF(h->clients));
    size_t length = strlen(id);
    if (length >= sizeof client->id) length = sizeof client->id - 1;
    memcpy(client->id, id, length);
    client->id[length] = 0;
    return client;
}

static inline td_err fixture_attach(fixture *h, const char *client,
                                    uint64_t boot,
                                    td_server_core_dropped *ret_dropped,
                                    td_errinfo *info)
{
    const td_wire_attach asked = {
        .client = td_wire_text_of(client),
        .server = td_wire_text_of("gpu-1"),
        .boot = boot,
    };
    return td_server_core_attach(h->core, h->now_ns, &asked,
                                 fixture_client(h, client), ret_dropped, info);
}

static inline td_server_client *fixture_attached(fixture *h, const char *client,
                                                 uint64_t boot)
{
    td_server_core_dropped dropped;
    assert_int_equal(fixture_attach(h, client, boot, &dropped, NULL), TD_OK);
    td_server_client *found =
        td_server_core_find(h->core, td_wire_text_of(client));
    assert_ptr_equal(found, fixture_client(h, client));
    return found;
}

static inline td_err fixture_detach(fixture *h, const char *client,
                                    uint64_t boot,
                                    td_server_core_dropped *ret_dropped)
{
    return td_server_core_detach(h->core, fixture_client(h, client), boot,
                                 ret_dropped);
}

// The request of that observation, as it comes.
static inline td_server_request *
fixture_request(fixture *h, td_server_client *client, const td_wire_obs *obs)
{
    td_server_request *request =
        &h->requests[obs->ident.seq % FIXTURE_REQUESTS];
    *request = (td_server_request){.client = client, .obs = *obs};
    return request;
}

static inline td_server_outcome
fixture_observe(fixture *h, td_server_client *client, uint64_t boot,
                uint64_t episode, uint64_t seq,
                td_server_core_dropped *ret_dropped)
{
    const td_wire_obs obs = {
        .ident = {.boot = boot, .episode = episode, .seq = seq}};
    return td_server_core_observe(
        h->core, h->now_ns, fixture_request(h, client, &obs), ret_dropped);
}

// Observes what must be taken; returns the seq that it displaced, 0: none.
static inline uint64_t fixture_taken(fixture *h, td_server_client *client,
                                     uint64_t boot, uint64_t episode,
                                     uint64_t seq)
{
    td_server_core_dropped dropped;
    assert_int_equal(fixture_observe(h, client, boot, episode, seq, &dropped),
                     TD_SERVER_WAITING);
    if (dropped.count == 0) return 0;
    assert_int_equal(dropped.count, 1);
    return dropped.requests[0]->obs.ident.seq;
}

// Starts the next batch; returns how many are in it.
static inline uint32_t fixture_start(fixture *h)
{
    if (!td_server_dispatch_next(h->dispatch, h->now_ns, &h->batch)) return 0;
    for (uint32_t i = 0; i < h->batch.count; i++)
        td_server_core_started(h->core, h->batch.picks[i].request.payload,
                               h->batch.picks[i].ticket);
    return h->batch.count;
}

// Starts what must be a batch of one at most; returns its seq, 0: none.
static inline uint64_t fixture_run_next(fixture *h)
{
    uint32_t count = fixture_start(h);
    if (count == 0) return 0;
    assert_int_equal(count, 1);
    return h->batch.picks[0].request.seq;
}

// The batch has ended.
static inline void fixture_done(fixture *h, td_server_outcome outcome)
{
    for (uint32_t i = 0; i < h->batch.count; i++)
        assert_int_equal(td_server_core_done(h->core, h->now_ns,
                                             h->batch.picks[i].request.payload,
                                             outcome),
                         outcome);
    td_server_dispatch_end(h->dispatch, h->now_ns, 0, h->batch.run,
                           h->batch.count, 1000);
}

static inline uint64_t fixture_count(const fixture *h,
                                     td_server_outcome outcome)
{
    return server_counts(h->core).outcomes[outcome];
}

#endif

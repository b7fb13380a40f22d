// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_CORE_FIXTURE_H
#define TD_SERVER_CORE_FIXTURE_H

// A server of a small model for tests: two joints and a gripper, two cameras.

#include "server/core.h"

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
static const td_server_client listed_clients[] = {
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

// READY. Borrows both.
static inline td_server_core *server_new(const td_server_settings *settings,
                                         const td_engine_spec *spec)
{
    td_server_core *core = NULL;
    assert_int_equal(td_server_core_new(settings, spec, &core), TD_OK);
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

// A server for one test, with what its core borrows.
typedef struct house {
    td_engine_spec spec;
    td_server_settings settings;
    td_server_core *core;
} house;

static inline int house_setup(void **state)
{
    static house h;
    model_describe(&h.spec);
    h.settings = server_settings();
    h.core = server_new(&h.settings, &h.spec);
    *state = &h;
    return 0;
}

static inline int house_teardown(void **state)
{
    house *h = *state;
    td_server_core_free(h->core);
    return 0;
}

static inline td_err house_attach(house *h, const char *client, uint64_t boot,
                                  uint32_t *ret_client,
                                  td_sched_request *ret_dropped,
                                  td_errinfo *info)
{
    const td_wire_attach asked = {
        .client = td_wire_text_of(client),
        .server = td_wire_text_of("gpu-1"),
        .boot = boot,
    };
    return td_server_core_attach(h->core, &asked, ret_client, ret_dropped,
                                 info);
}

static inline uint32_t house_attached(house *h, const char *client,
                                      uint64_t boot)
{
    uint32_t number = 99;
    td_sched_request dropped;
    assert_int_equal(house_attach(h, client, boot, &number, &dropped, NULL),
                     TD_OK);
    return number;
}

static char house_payloads[8]; // of seq % 8

static inline td_server_outcome house_observe(house *h, uint32_t client,
                                              uint64_t boot, uint64_t episode,
                                              uint64_t seq,
                                              td_sched_request *ret_displaced)
{
    const td_wire_ident ident = {.boot = boot, .episode = episode, .seq = seq};
    return td_server_core_observe(h->core, client, 1000, &ident,
                                  &house_payloads[seq % 8], ret_displaced);
}

// Observes what must be taken; returns the seq that it displaced, 0: none.
static inline uint64_t house_taken(house *h, uint32_t client, uint64_t boot,
                                   uint64_t episode, uint64_t seq)
{
    td_sched_request displaced;
    assert_int_equal(house_observe(h, client, boot, episode, seq, &displaced),
                     TD_SERVER_WAITING);
    if (!displaced.payload) return 0;
    assert_ptr_equal(displaced.payload, &house_payloads[displaced.seq % 8]);
    return displaced.seq;
}

static inline uint64_t house_run_next(house *h)
{
    uint32_t client;
    td_sched_request request;
    if (td_server_core_next(h->core, 1, &client, &request) == 0) return 0;
    return request.seq;
}

static inline uint64_t house_count(const house *h, td_server_outcome outcome)
{
    return server_counts(h->core).outcomes[outcome];
}

#endif

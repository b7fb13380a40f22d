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

static const char *const listed_clients[] = {"arm-0", "arm-1", "arm-2"};

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

#endif

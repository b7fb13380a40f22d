// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_NATIVE_FIXTURE_H
#define TD_ENGINE_NATIVE_NATIVE_FIXTURE_H

// For tests of the native engine, in this process or as a worker of its own:
// requests to the golden checkpoint "no-camera".

#include "base/sync/event.h"
#include "engine/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define STATES 5
#define ENVIRONMENT 9
#define ROWS 33
#define ACTIONS 5

enum { VALUES = ROWS * ACTIONS }; // of a chunk

// One observation, and room for its answer.
typedef struct request {
    float state[STATES], environment[ENVIRONMENT];
    float actions[VALUES];
    td_wire_obs obs;
    td_errinfo why;
    td_engine_item item;
    td_engine_batch batch;
    td_event event;
} request;

static inline td_wire_tensor tensor_of(const float *data, uint32_t count)
{
    return (td_wire_tensor){.dtype = TD_WIRE_F32,
                            .rank = 1,
                            .shape = {count},
                            .data = data,
                            .size = count * sizeof(float)};
}

// All values are 0, and may still be changed.
static inline void make_request(request *r, const char *client, uint64_t cursor)
{
    *r = (request){.obs = {.client = td_wire_text_of(client)}};
    r->obs.cursor = cursor;
    r->obs.state = tensor_of(r->state, STATES);
    r->obs.tensors[0] =
        (td_wire_named){.name = td_wire_text_of("environment_state"),
                        .tensor = tensor_of(r->environment, ENVIRONMENT)};
    r->obs.tensor_count = 1;
    r->item = (td_engine_item){
        .obs = &r->obs, .actions = r->actions, .info = &r->why};
    r->batch = (td_engine_batch){.items = {&r->item}, .count = 1};
    td_event_init(&r->event);
}

static inline void on_done(void *user, td_engine_batch *batch)
{
    (void)batch;
    td_event_signal(user);
}

static inline td_err ask(td_engine *engine, request *r)
{
    assert_int_equal(engine->ops->submit(engine, &r->batch, on_done, &r->event),
                     TD_OK);
    (void)td_event_wait_until(&r->event, INT64_MAX);
    return r->item.status;
}

static inline td_engine *open_as(const char *name,
                                 const td_engine_config *config)
{
    td_engine *engine = NULL;
    td_errinfo info = {.text = ""};
    td_err err = td_engine_open(name, config, &engine, &info);
    if (err != TD_OK) print_error("%s\n", info.text);
    assert_int_equal(err, TD_OK);
    return engine;
}

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_WORKER_WORKER_FIXTURE_H
#define TD_ENGINE_WORKER_WORKER_FIXTURE_H

// For tests of the worker engine: one with tests/worker/echo.c as its process,
// and batches for it. What it is asked is in the first value of a state.

#include "base/clock.h"
#include "base/log.h"
#include "base/sync/event.h"
#include "engine/results.h"
#include "engine/worker/worker.h"
#include "engine/worker/worker_orders.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 5
#define CHANNELS 2
#define MOST 8

static const char *command[3] = {TD_WORKER_ECHO};
static td_engine_worker_settings settings = {
    .spec = {.camera_count = 1,
             .state_count = 2,
             .action_count = CHANNELS,
             .chunk_rows = ROWS,
             .max_batch = MOST,
             .cameras = {{"front", 48, 64}},
             .states = {{"x", TD_WIRE_LINEAR}, {"y", TD_WIRE_LINEAR}},
             .actions = {{"a", TD_WIRE_LINEAR}, {"b", TD_WIRE_HOLD}}},
    .command = command,
    .start_ns = 60 * TD_NS_PER_S,
    .answer_ns = 60 * TD_NS_PER_S,
};
static const td_engine_config config = {.model_id = "pi0",
                                        .model_version = "v1",
                                        .step_period_us = 33333,
                                        .settings = &settings};

static uint8_t pixels[48 * 64 * 3];
static td_engine *engine;
static td_event done_event;

typedef struct request {
    float state[2];
    float actions[ROWS * CHANNELS];
    td_errinfo info;
    td_wire_obs obs;
    td_engine_item item;
} request;

typedef struct group {
    request requests[MOST];
    td_engine_batch batch;
    _Atomic bool done;
} group;

static inline int open_engine(const char *how, int64_t answer_ns)
{
    command[1] = how;
    settings.answer_ns = answer_ns;
    td_errinfo info = {""};
    if (td_engine_open("worker", &config, &engine, &info) == TD_OK) return 0;
    print_error("%s\n", info.text);
    return -1;
}

static inline int setup(void **state)
{
    (void)state;
    td_event_init(&done_event);
    settings.start_ns = 60 * TD_NS_PER_S;
    return open_engine(NULL, 60 * TD_NS_PER_S);
}

static inline int teardown(void **state)
{
    (void)state;
    if (engine) td_engine_close(engine);
    engine = NULL;
    return 0;
}

static inline void on_done(void *user, td_engine_batch *batch)
{
    group *self = user;
    (void)batch;
    self->done = true;
    td_event_signal(&done_event);
}

static inline void make_request(request *made, float first, float second)
{
    *made = (request){.state = {first, second}};
    made->obs = (td_wire_obs){
        .client = td_wire_text_of("robot"),
        .state = {.dtype = TD_WIRE_F32,
                  .rank = 1,
                  .shape = {2},
                  .data = made->state,
                  .size = sizeof made->state},
        .images = {{.name = td_wire_text_of("front"),
                    .codec = TD_WIRE_RAW,
                    .shape = {48, 64, 3},
                    .data = pixels,
                    .size = sizeof pixels}},
        .image_count = 1,
    };
    made->item = (td_engine_item){
        .obs = &made->obs, .actions = made->actions, .info = &made->info};
}

static inline void make_group(group *self, const float *firsts, uint32_t count)
{
    *self = (group){.batch = {.count = count}};
    for (uint32_t i = 0; i < count; i++) {
        make_request(&self->requests[i], firsts[i], (float)i);
        self->batch.items[i] = &self->requests[i].item;
    }
}

// One batch of states that begin with these values.
static inline td_err submit(group *self, const float *firsts, uint32_t count)
{
    make_group(self, firsts, count);
    return engine->ops->submit(engine, &self->batch, on_done, self);
}

static inline void wait_done(const group *self)
{
    while (!self->done)
        td_event_wait_until(&done_event, INT64_MAX);
}

static inline void run(group *self, const float *firsts, uint32_t count)
{
    assert_int_equal(submit(self, firsts, count), TD_OK);
    wait_done(self);
}

static inline td_err run_one(group *self, float first)
{
    run(self, &first, 1);
    return self->requests[0].item.status;
}

static inline void wait_ready(void)
{
    while (td_engine_health_of(engine) != TD_ENGINE_READY)
        td_clock_sleep_until(td_clock_monotonic_ns() + TD_NS_PER_MS);
}

static inline void assert_answered(const request *asked)
{
    assert_int_equal(asked->item.status, TD_OK);
    assert_int_equal(asked->item.rows, ROWS);
    assert_true(asked->actions[0] == asked->state[0]);
    assert_true(asked->actions[1] == asked->state[1]);
}

static group one, two;

// What it printed, and what was said of it.
static char logged[4096];
static pthread_mutex_t logged_lock = PTHREAD_MUTEX_INITIALIZER;

static inline void on_line(void *user, td_log_level level, const char *line)
{
    (void)user;
    (void)level;
    pthread_mutex_lock(&logged_lock);
    strncat(logged, line, sizeof logged - strlen(logged) - 2);
    strcat(logged, "\n");
    pthread_mutex_unlock(&logged_lock);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define TEST_WITH(test, with)                                                  \
    cmocka_unit_test_setup_teardown(test, with, teardown)

#endif

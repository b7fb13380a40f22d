// SPDX-License-Identifier: Apache-2.0
// Several engines as one: the conformance suite over three functions on threads
// of their own; and that three run at a time, which they can only if they meet.
#include "engine/pool/pool.h"

#include "base/sync/event.h"
#include "engine/callback/callback.h"
#include "engine/conformance.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MEMBERS 3
#define ROWS 5
#define CHANNELS 2

static const td_engine_spec spec = {
    .states = {{{"x", 1}, TD_WIRE_LINEAR}, {{"y", 1}, TD_WIRE_LINEAR}},
    .state_count = 2,
    .actions = {{{"a", 1}, TD_WIRE_LINEAR}, {{"b", 1}, TD_WIRE_HOLD}},
    .action_count = CHANNELS,
    .chunk_rows = ROWS,
    .max_batch = 4,
};

static td_err answer(void *user, td_infer_request *const *requests,
                     uint32_t count, td_errinfo *info)
{
    (void)user;
    (void)info;
    for (uint32_t i = 0; i < count; i++) {
        td_infer_request *r = requests[i];
        for (uint32_t j = 0; j < ROWS * CHANNELS; j++)
            r->actions[j] = r->state_count > 0 ? r->state[0] : 0;
        r->rows = ROWS;
    }
    return TD_OK;
}

static pthread_barrier_t meeting;

// Returns only when as many are in it as there are members.
static td_err meet(void *user, td_infer_request *const *requests,
                   uint32_t count, td_errinfo *info)
{
    (void)pthread_barrier_wait(&meeting);
    return answer(user, requests, count, info);
}

typedef struct submitted {
    td_wire_obs obs;
    float state[2];
    float actions[ROWS * CHANNELS];
    td_errinfo info;
    td_engine_item item;
    td_engine_batch batch;
    td_event done;
} submitted;

static void on_done(void *user, td_engine_batch *batch)
{
    (void)batch;
    td_event_signal(&((submitted *)user)->done);
}

static void make(submitted *s)
{
    s->obs = (td_wire_obs){.state = {.dtype = TD_WIRE_F32,
                                     .rank = 1,
                                     .shape = {2},
                                     .data = s->state,
                                     .size = sizeof s->state}};
    s->item = (td_engine_item){
        .obs = &s->obs, .actions = s->actions, .info = &s->info};
    s->batch = (td_engine_batch){.items = {&s->item}, .count = 1};
    td_event_init(&s->done);
}

static td_engine *open_pool(td_infer_function infer)
{
    const td_engine_callback_settings each = {.spec = &spec, .infer = infer};
    const td_engine_pool_settings settings = {
        .kind = "callback", .settings = &each, .count = MEMBERS};
    const td_engine_config config = {.model_id = "mine",
                                     .model_version = "v1",
                                     .device = "cpu",
                                     .step_period_us = 20000,
                                     .settings = &settings};
    td_engine *engine = NULL;
    td_errinfo info = {.text = ""};
    if (td_engine_open("pool", &config, &engine, &info) != TD_OK)
        fail_msg("%s", info.text);
    return engine;
}

static void as_many_run_at_a_time_as_there_are(void **state)
{
    (void)state;
    static submitted three[MEMBERS + 1];
    assert_int_equal(pthread_barrier_init(&meeting, NULL, MEMBERS), 0);
    td_engine *engine = open_pool(meet);
    assert_int_equal(engine->ops->spec(engine)->most_inflight, MEMBERS);
    assert_true(engine->ops->spec(engine)->parallel);
    for (int round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < MEMBERS; i++) {
            make(&three[i]);
            assert_int_equal(engine->ops->submit(engine, &three[i].batch,
                                                 on_done, &three[i]),
                             TD_OK);
        }
        for (uint32_t i = 0; i < MEMBERS; i++) {
            (void)td_event_wait_until(&three[i].done, INT64_MAX);
            assert_int_equal(three[i].item.status, TD_OK);
        }
    }
    td_engine_close(engine);
    (void)pthread_barrier_destroy(&meeting);
}

static void one_more_than_there_are_is_busy(void **state)
{
    (void)state;
    static submitted four[MEMBERS + 1];
    // One more than run: they wait until the test comes, too.
    assert_int_equal(pthread_barrier_init(&meeting, NULL, MEMBERS + 1), 0);
    td_engine *engine = open_pool(meet);
    for (uint32_t i = 0; i <= MEMBERS; i++) {
        make(&four[i]);
        assert_int_equal(
            engine->ops->submit(engine, &four[i].batch, on_done, &four[i]),
            i < MEMBERS ? TD_OK : TD_ERR_BUSY);
    }
    (void)pthread_barrier_wait(&meeting);
    td_engine_close(engine);
    (void)pthread_barrier_destroy(&meeting);
}

static void what_does_not_open_is_told(void **state)
{
    (void)state;
    const td_engine_callback_settings none = {.spec = &spec};
    const td_engine_pool_settings settings = {
        .kind = "callback", .settings = &none, .count = MEMBERS};
    const td_engine_config config = {.model_id = "mine", .settings = &settings};
    td_engine *engine = NULL;
    td_errinfo info = {.text = ""};
    assert_int_equal(td_engine_open("pool", &config, &engine, &info),
                     TD_ERR_INVALID);
    assert_string_equal(info.text, "model mine: there is no function for it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_run_at_a_time_as_there_are),
        cmocka_unit_test(one_more_than_there_are_is_busy),
        cmocka_unit_test(what_does_not_open_is_told),
    };
    static const td_engine_callback_settings each = {.spec = &spec,
                                                     .infer = answer};
    static const td_engine_pool_settings settings = {
        .kind = "callback", .settings = &each, .count = MEMBERS};
    const td_engine_config config = {.model_id = "mine",
                                     .model_version = "v1",
                                     .device = "cpu",
                                     .step_period_us = 20000,
                                     .settings = &settings};
    int failed = cmocka_run_group_tests_name("engine/pool", tests, NULL, NULL);
    return failed + td_engine_conformance("pool", &config);
}

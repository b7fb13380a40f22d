// SPDX-License-Identifier: Apache-2.0
// The thread of engine/blocking.h, with a model that waits until the test lets
// it go: where run() and `done` happen, what is BUSY and when, batches that are
// submitted from inside `done`, and that free() finishes what was taken.
//
// The model and `done` only note and signal; asserts are on the test's thread.
#include "engine/blocking.h"

#include "base/sync/event.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MAX_BATCH 4

// A model that waits to be let go.
typedef struct model {
    td_event begun, go;
    td_engine_part part;
    pthread_t thread;
} model;

typedef struct outcome {
    td_event event;
    _Atomic int calls;
    td_engine_batch *batch;
    pthread_t thread;
    td_engine_blocking *again; // submit twice more from inside `done`
    td_err first, second;
} outcome;

static model slow;
static outcome out;
static td_engine_batch batch, next;
static td_engine_blocking *blocking;

static void run_slowly(void *user, const td_engine_job *job)
{
    model *self = user;
    self->part = job->part;
    self->thread = pthread_self();
    td_event_signal(&self->begun);
    td_event_wait_until(&self->go, INT64_MAX);
    job->batch->items[0]->status = TD_OK;
}

static void on_done(void *user, td_engine_batch *given)
{
    outcome *self = user;
    self->batch = given;
    self->thread = pthread_self();
    if (self->again) {
        td_engine_blocking *again = self->again;
        self->again = NULL;
        self->first = td_engine_blocking_submit(again, TD_ENGINE_WHOLE, &next,
                                                on_done, self);
        self->second = td_engine_blocking_submit(again, TD_ENGINE_WHOLE, &next,
                                                 on_done, self);
    }
    self->calls++;
    td_event_signal(&self->event);
}

static int open_taking(uint32_t most_inflight)
{
    static td_engine_item item;
    batch = next = (td_engine_batch){.items = {&item}, .count = 1};
    out = (outcome){0};
    td_event_init(&slow.begun);
    td_event_init(&slow.go);
    td_event_init(&out.event);
    td_engine_blocking_config config = {.thread_name = "model",
                                        .max_batch = MAX_BATCH,
                                        .most_inflight = most_inflight,
                                        .run = run_slowly,
                                        .model = &slow};
    return td_engine_blocking_new(&config, &blocking, NULL) == TD_OK ? 0 : -1;
}

static int setup(void **state)
{
    (void)state;
    return open_taking(1);
}

static int setup_two(void **state)
{
    (void)state;
    return open_taking(2);
}

static td_err submit(td_engine_part part, td_engine_batch *given)
{
    return td_engine_blocking_submit(blocking, part, given, on_done, &out);
}

static void finish(void)
{
    td_event_signal(&slow.go);
    td_event_wait_until(&out.event, INT64_MAX);
}

static void a_batch_runs_on_the_wrappers_thread(void **state)
{
    (void)state;
    assert_int_equal(submit(TD_ENGINE_PREFIX, &batch), TD_OK);
    finish();
    assert_int_equal(out.calls, 1);
    assert_ptr_equal(out.batch, &batch);
    assert_int_equal(slow.part, TD_ENGINE_PREFIX);
    assert_true(pthread_equal(out.thread, slow.thread));
    assert_false(pthread_equal(out.thread, pthread_self()));
    assert_true(batch.service_ns > 0);
    td_engine_blocking_free(blocking);
}

static void a_second_batch_is_refused_while_one_runs(void **state)
{
    (void)state;
    assert_int_equal(submit(TD_ENGINE_WHOLE, &batch), TD_OK);
    assert_int_equal(submit(TD_ENGINE_WHOLE, &next), TD_ERR_BUSY);
    td_event_wait_until(&slow.begun, INT64_MAX);
    assert_int_equal(submit(TD_ENGINE_WHOLE, &next), TD_ERR_BUSY);
    finish();
    assert_int_equal(submit(TD_ENGINE_WHOLE, &next), TD_OK);
    finish();
    assert_int_equal(out.calls, 2);
    td_engine_blocking_free(blocking);
}

static void two_in_flight_run_in_turn(void **state)
{
    (void)state;
    assert_int_equal(submit(TD_ENGINE_WHOLE, &batch), TD_OK);
    assert_int_equal(submit(TD_ENGINE_WHOLE, &next), TD_OK);
    assert_int_equal(submit(TD_ENGINE_WHOLE, &batch), TD_ERR_BUSY);
    finish();
    assert_ptr_equal(out.batch, &batch);
    assert_int_equal(submit(TD_ENGINE_WHOLE, &batch), TD_OK);
    assert_int_equal(submit(TD_ENGINE_WHOLE, &next), TD_ERR_BUSY);
    finish();
    assert_ptr_equal(out.batch, &next);
    finish();
    assert_int_equal(out.calls, 3);
    td_engine_blocking_free(blocking);
}

static void a_batch_of_a_wrong_size_is_refused(void **state)
{
    (void)state;
    batch.count = 0;
    assert_int_equal(submit(TD_ENGINE_WHOLE, &batch), TD_ERR_INVALID);
    batch.count = MAX_BATCH + 1;
    assert_int_equal(submit(TD_ENGINE_WHOLE, &batch), TD_ERR_INVALID);
    td_engine_blocking_free(blocking);
    assert_int_equal(out.calls, 0);
}

static void done_may_submit_the_next(void **state)
{
    (void)state;
    out.again = blocking;
    assert_int_equal(submit(TD_ENGINE_WHOLE, &batch), TD_OK);
    finish();
    finish();
    assert_int_equal(out.first, TD_OK);
    assert_int_equal(out.second, TD_ERR_BUSY);
    assert_int_equal(out.calls, 2);
    assert_ptr_equal(out.batch, &next);
    td_engine_blocking_free(blocking);
}

static void freeing_finishes_what_was_taken(void **state)
{
    (void)state;
    assert_int_equal(submit(TD_ENGINE_WHOLE, &batch), TD_OK);
    td_event_signal(&slow.go);
    td_engine_blocking_free(blocking);
    assert_int_equal(out.calls, 1);
}

static void freeing_an_idle_one_returns(void **state)
{
    (void)state;
    td_engine_blocking_free(blocking);
    assert_int_equal(out.calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_batch_runs_on_the_wrappers_thread, setup),
        cmocka_unit_test_setup(a_second_batch_is_refused_while_one_runs, setup),
        cmocka_unit_test_setup(two_in_flight_run_in_turn, setup_two),
        cmocka_unit_test_setup(a_batch_of_a_wrong_size_is_refused, setup),
        cmocka_unit_test_setup(done_may_submit_the_next, setup),
        cmocka_unit_test_setup(freeing_finishes_what_was_taken, setup),
        cmocka_unit_test_setup(freeing_an_idle_one_returns, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

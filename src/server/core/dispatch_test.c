// SPDX-License-Identifier: Apache-2.0
#include "server/core/dispatch.h"

#include "sched/strategy/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS INT64_C(1000000)
#define MODELS 2
#define MEMBERS 8

// Two models; every client is of both.
typedef struct device {
    td_server_dispatch *dispatch;
    td_engine_spec spec;
    uint32_t members[MODELS][MEMBERS];
    td_server_dispatch_batch batch;
    int64_t now_ns;
    uint64_t seq;
} device;

static char payload;

static void open_device(device *d, td_sched_strategy strategy)
{
    td_server_device_settings settings = td_server_device_defaults;
    td_server_model_settings how = td_server_model_defaults;
    settings.policy.strategy = strategy;
    settings.models = MODELS;
    settings.clients = MODELS * MEMBERS;
    how.batch.wait = TD_SCHED_WAIT_NONE;
    assert_int_equal(td_server_dispatch_new(&settings, &d->dispatch, NULL),
                     TD_OK);
    for (uint32_t m = 0; m < MODELS; m++) {
        uint32_t model = 99;
        assert_int_equal(
            td_server_dispatch_add(d->dispatch, &d->spec, &how, &model), TD_OK);
        assert_int_equal(model, m);
        td_server_dispatch_open(d->dispatch, m, true);
        const td_sched_member member = {
            .model = m, .most_urgency = 1, .budget_ns = 50 * MS};
        for (uint32_t i = 0; i < MEMBERS; i++)
            assert_int_equal(td_server_dispatch_join(d->dispatch, &member,
                                                     &d->members[m][i]),
                             TD_OK);
    }
}

static device open_of(uint32_t most_inflight, bool continuous)
{
    device d = {.spec = {.max_batch = 4,
                         .most_inflight = most_inflight,
                         .continuous = continuous}};
    open_device(&d, TD_SCHED_MODEL_DEADLINE);
    return d;
}

static void submit(device *d, uint32_t model, uint32_t client)
{
    td_sched_ended ended;
    const td_sched_item item = {
        .member = d->members[model][client],
        .payload = &payload,
        .seq = ++d->seq,
        .due_ns = TD_SCHED_NEVER_NS,
        .useless_ns = TD_SCHED_NEVER_NS,
        .expected_ns = TD_SCHED_NEVER_NS,
        .steps = TD_SCHED_STEPS_UNSET,
    };
    assert_int_equal(td_sched_submit(td_server_dispatch_sched(d->dispatch),
                                     d->now_ns, &item, &ended),
                     TD_SCHED_WAITING);
}

static uint32_t next(device *d)
{
    return td_server_dispatch_next(d->dispatch, d->now_ns, &d->batch)
               ? d->batch.count
               : 0;
}

static void end(device *d, const td_server_dispatch_batch *batch)
{
    d->now_ns += 10 * MS;
    for (uint32_t i = 0; i < batch->count; i++)
        (void)td_sched_done(td_server_dispatch_sched(d->dispatch), d->now_ns,
                            batch->picks[i].ticket, TD_SCHED_ANSWERED);
    td_server_dispatch_end(d->dispatch, d->now_ns, batch->model, batch->run,
                           batch->count, 10 * MS);
}

static void devices_one_model_runs_at_a_time_and_they_take_turns(void **state)
{
    (void)state;
    device d = open_of(1, false);
    for (uint32_t i = 0; i < 6; i++) {
        submit(&d, 0, i);
        submit(&d, 1, i);
    }
    static const uint32_t models[] = {0, 1, 0, 1}, counts[] = {4, 4, 2, 2};
    for (size_t i = 0; i < TD_COUNT_OF(models); i++) {
        assert_int_equal(next(&d), counts[i]);
        assert_int_equal(d.batch.model, models[i]);
        td_server_dispatch_batch other;
        assert_false(td_server_dispatch_next(d.dispatch, d.now_ns, &other));
        end(&d, &d.batch);
    }
    assert_int_equal(next(&d), 0);
    td_server_dispatch_free(d.dispatch);
}

static void a_second_batch_in_flight_is_a_full_one(void **state)
{
    (void)state;
    device d = open_of(2, false);
    submit(&d, 0, 0);
    assert_int_equal(next(&d), 1);
    td_server_dispatch_batch first = d.batch;
    for (uint32_t i = 1; i <= 3; i++) {
        submit(&d, 0, i);
        assert_int_equal(next(&d), 0); // it would be spoilt by leaving early
    }
    submit(&d, 0, 4);
    assert_int_equal(next(&d), 4);
    td_server_dispatch_batch second = d.batch;
    end(&d, &first);
    end(&d, &second);
    td_server_dispatch_free(d.dispatch);
}

static void no_second_batch_while_another_model_waits(void **state)
{
    (void)state;
    device d = open_of(2, false);
    submit(&d, 0, 0);
    assert_int_equal(next(&d), 1);
    td_server_dispatch_batch first = d.batch;
    for (uint32_t i = 1; i <= 4; i++)
        submit(&d, 0, i);
    submit(&d, 1, 0);
    assert_int_equal(next(&d), 0);
    end(&d, &first);
    assert_int_equal(next(&d), 1);
    assert_int_equal(d.batch.model, 1);
    end(&d, &d.batch);
    td_server_dispatch_free(d.dispatch);
}

static void continuous_ones_join_by_themselves(void **state)
{
    static const td_sched_strategy strategies[] = {TD_SCHED_MODEL_DEADLINE,
                                                   TD_SCHED_BATCH_OPTIMIZED};
    (void)state;
    for (size_t s = 0; s < TD_COUNT_OF(strategies); s++) {
        device d = {.spec = {.max_batch = 4, .continuous = true}};
        open_device(&d, strategies[s]);
        td_server_dispatch_batch batches[4];
        for (uint32_t i = 0; i < 6; i++)
            submit(&d, 0, i);
        for (uint32_t i = 0; i < 4; i++) {
            assert_int_equal(next(&d), 1);
            batches[i] = d.batch;
        }
        assert_int_equal(next(&d), 0);
        end(&d, &batches[2]);
        assert_int_equal(next(&d), 1);
        batches[2] = d.batch;
        for (uint32_t i = 0; i < 4; i++)
            end(&d, &batches[i]);
        td_server_dispatch_free(d.dispatch);
    }
}

static void the_engines_size_bounds_what_is_flushed(void **state)
{
    (void)state;
    device d = {.spec = {.max_batch = 4}};
    open_device(&d, TD_SCHED_BATCH_OPTIMIZED);
    for (uint32_t i = 0; i < 6; i++)
        submit(&d, 0, i);
    assert_int_equal(next(&d), 4);
    end(&d, &d.batch);
    assert_int_equal(next(&d), 2); // they have waited for long enough
    end(&d, &d.batch);
    submit(&d, 0, 0);
    assert_int_equal(next(&d), 0); // it waits for more, for a while
    assert_int_equal(td_server_dispatch_wake_ns(d.dispatch),
                     d.now_ns + 10 * MS);
    d.now_ns += 10 * MS;
    assert_int_equal(next(&d), 1);
    end(&d, &d.batch);
    td_server_dispatch_free(d.dispatch);
}

static void a_model_that_is_not_open_starts_nothing(void **state)
{
    (void)state;
    device d = open_of(1, false);
    submit(&d, 0, 0);
    td_server_dispatch_open(d.dispatch, 0, false);
    assert_int_equal(next(&d), 0);
    assert_int_equal(td_server_dispatch_wake_ns(d.dispatch), TD_SCHED_NEVER_NS);
    td_server_dispatch_open(d.dispatch, 0, true);
    assert_int_equal(next(&d), 1);
    end(&d, &d.batch);
    td_server_dispatch_free(d.dispatch);
}

static void one_alone_goes_when_nothing_runs(void **state)
{
    (void)state;
    device d = open_of(2, false);
    uint32_t run;
    submit(&d, 0, 0);
    assert_int_equal(next(&d), 1);
    assert_false(td_server_dispatch_alone(d.dispatch, 0, 0, &run));
    end(&d, &d.batch);
    assert_true(td_server_dispatch_alone(d.dispatch, d.now_ns, 0, &run));
    td_server_dispatch_end(d.dispatch, d.now_ns, 0, run, 1, 0);
    td_server_dispatch_free(d.dispatch);
}

static void there_is_room_for_as_many_as_was_said(void **state)
{
    (void)state;
    device d = open_of(1, false);
    const td_sched_member member = {.model = 0, .most_urgency = 1};
    uint32_t number;
    assert_int_equal(td_server_dispatch_join(d.dispatch, &member, &number),
                     TD_ERR_FULL);
    td_server_dispatch_leave(d.dispatch, d.members[1][3]);
    assert_int_equal(td_server_dispatch_join(d.dispatch, &member, &number),
                     TD_OK);
    uint32_t model;
    assert_int_equal(td_server_dispatch_add(d.dispatch, &d.spec,
                                            &td_server_model_defaults, &model),
                     TD_ERR_FULL);
    td_server_dispatch_free(d.dispatch);
}

static void a_rule_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    device d = open_of(1, false);
    td_server_model_settings how = td_server_model_defaults;
    how.batch.wait_ns = -1;
    assert_int_equal(td_server_dispatch_set(d.dispatch, 0, &d.spec, &how),
                     TD_ERR_INVALID);
    td_server_dispatch_free(d.dispatch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_one_model_runs_at_a_time_and_they_take_turns),
        cmocka_unit_test(a_second_batch_in_flight_is_a_full_one),
        cmocka_unit_test(no_second_batch_while_another_model_waits),
        cmocka_unit_test(continuous_ones_join_by_themselves),
        cmocka_unit_test(the_engines_size_bounds_what_is_flushed),
        cmocka_unit_test(a_model_that_is_not_open_starts_nothing),
        cmocka_unit_test(one_alone_goes_when_nothing_runs),
        cmocka_unit_test(there_is_room_for_as_many_as_was_said),
        cmocka_unit_test(a_rule_that_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests_name("server/dispatch", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// The worker engine with tests/worker/echo.c, as a worker that works in two
// halves (prefix and decode), gives more than actions and wants to know what is
// expected.
//
// The conformance suite, which then tests both halves; results beside actions;
// prefixes that are dropped, go with their process or were lost by it; who is a
// suspect when the second half ends the process.
#include "engine/conformance.h"
#include "engine/worker/worker_fixture.h"

static int setup_halves(void **state)
{
    (void)state;
    td_event_init(&done_event);
    return open_engine("halves", 60 * TD_NS_PER_S);
}

static void what_it_gives_beside_actions_comes_with_them(void **state)
{
    (void)state;
    td_engine_results results = {0};
    make_group(&one, (float[]){3}, 1);
    one.requests[0].item.results = &results;
    assert_int_equal(engine->ops->submit(engine, &one.batch, on_done, &one),
                     TD_OK);
    wait_done(&one);
    assert_answered(&one.requests[0]);
    assert_int_equal(results.count, 1);
    assert_true(td_wire_text_is(results.named[0].name, "state"));
    assert_memory_equal(results.named[0].tensor.data, one.requests[0].state,
                        sizeof one.requests[0].state);
    assert_true(td_wire_text_is(results.text, "echo"));
    td_engine_results_done(&results);
}

// One half of what is in the group.
static td_err run_half(group *self,
                       td_err (*half)(td_engine *, td_engine_batch *,
                                      td_engine_done, void *))
{
    self->done = false;
    assert_int_equal(half(engine, &self->batch, on_done, self), TD_OK);
    wait_done(self);
    return self->requests[0].item.status;
}

static td_err run_prefix(group *self, float first)
{
    make_group(self, &first, 1);
    return run_half(self, engine->ops->prefix);
}

static td_err run_decode(group *self)
{
    return run_half(self, engine->ops->decode);
}

static void drop_one(const group *self)
{
    engine->ops->drop(engine, self->requests[0].item.prefix);
}

static void one_without_halves_says_so(void **state)
{
    (void)state;
    assert_false(td_engine_splits(engine));
}

static void a_dropped_prefix_is_let_go(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run_prefix(&one, 5), TD_OK);
        assert_int_equal(one.requests[0].item.prefix_bytes, 1);
        assert_int_equal(run_decode(&one), TD_OK);
        assert_answered(&one.requests[0]);
        drop_one(&one);
    }
}

// It has places for 2048.
static void more_drops_than_there_are_places_for_wait(void **state)
{
    (void)state;
    static td_engine_prefix *prefixes[2400];
    const float firsts[MOST] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (size_t i = 0; i < TD_COUNT_OF(prefixes); i += MOST) {
        make_group(&one, firsts, MOST);
        assert_int_equal(run_half(&one, engine->ops->prefix), TD_OK);
        for (size_t k = 0; k < MOST; k++)
            prefixes[i + k] = one.requests[k].item.prefix;
    }
    assert_int_equal(one.requests[MOST - 1].item.prefix_bytes,
                     TD_COUNT_OF(prefixes));
    for (size_t i = 0; i < TD_COUNT_OF(prefixes); i++)
        engine->ops->drop(engine, prefixes[i]);
    do {
        assert_int_equal(run_prefix(&one, 5), TD_OK);
        drop_one(&one);
    } while (one.requests[0].item.prefix_bytes > 1);
}

static void a_prefix_goes_with_its_worker(void **state)
{
    (void)state;
    assert_int_equal(run_prefix(&one, 5), TD_OK);
    assert_int_equal(kill(td_engine_worker_pid(engine), SIGKILL), 0);
    while (td_engine_health_of(engine) == TD_ENGINE_READY)
        td_clock_sleep_until(td_clock_monotonic_ns() + TD_NS_PER_MS);
    wait_ready();
    assert_int_equal(run_prefix(&two, 6), TD_OK); // the first of the next life
    assert_int_equal(two.requests[0].item.prefix_bytes, 1);
    assert_int_equal(run_decode(&one), TD_ERR_NOTFOUND);
    assert_string_equal(one.requests[0].info.text,
                        "its prefix went with a worker pi0/v1 that ended");
    drop_one(&one);
    assert_int_equal(run_decode(&two), TD_OK);
    drop_one(&two);
}

static void a_prefix_that_the_worker_lost_is_not_found(void **state)
{
    (void)state;
    assert_int_equal(run_prefix(&one, LOSES), TD_OK);
    assert_int_equal(run_decode(&one), TD_ERR_NOTFOUND);
    drop_one(&one);
    assert_int_equal(run_prefix(&one, FAILS), TD_ERR_INVALID);
    assert_null(one.requests[0].item.prefix);
}

// Its first half alone is no proof that it is harmless.
static void an_input_that_kills_in_its_second_half_is_refused_too(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run_prefix(&one, DIES_DECODING), TD_OK);
        assert_int_equal(run_decode(&one), TD_ERR_CLOSED);
        drop_one(&one);
        wait_ready();
    }
    assert_int_equal(run_prefix(&one, DIES_DECODING), TD_ERR_DENIED);
}

// Nothing of what it saw is there to be held against it.
static void one_that_only_asks_again_is_no_suspect(void **state)
{
    (void)state;
    const td_wire_obs again = {.client = td_wire_text_of("robot"),
                               .has_again = true};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run_prefix(&one, DIES_DECODING), TD_OK);
        one.requests[0].item.obs = &again;
        assert_int_equal(run_decode(&one), TD_ERR_CLOSED);
        drop_one(&one);
        wait_ready();
    }
    assert_int_equal(run_prefix(&one, 5), TD_OK);
    one.requests[0].item.obs = &again;
    assert_int_equal(run_decode(&one), TD_OK);
    assert_true(one.requests[0].actions[0] == 5);
    drop_one(&one);
}

static bool was_logged(const char *text)
{
    pthread_mutex_lock(&logged_lock);
    bool found = strstr(logged, text) != NULL;
    pthread_mutex_unlock(&logged_lock);
    return found;
}

static void one_that_wants_to_know_is_told_what_is_expected(void **state)
{
    (void)state;
    assert_int_equal(td_log_start_sink(on_line, NULL, TD_LOG_INFO), TD_OK);
    assert_false(was_logged("is awake"));
    while (!was_logged("worker pi0/v1: is awake")) {
        engine->ops->warm(engine);
        td_clock_sleep_until(td_clock_monotonic_ns() + TD_NS_PER_MS);
    }
    td_log_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_without_halves_says_so),
        TEST_WITH(what_it_gives_beside_actions_comes_with_them, setup_halves),
        TEST_WITH(a_dropped_prefix_is_let_go, setup_halves),
        TEST_WITH(more_drops_than_there_are_places_for_wait, setup_halves),
        TEST_WITH(a_prefix_goes_with_its_worker, setup_halves),
        TEST_WITH(a_prefix_that_the_worker_lost_is_not_found, setup_halves),
        TEST_WITH(an_input_that_kills_in_its_second_half_is_refused_too,
                  setup_halves),
        TEST_WITH(one_that_only_asks_again_is_no_suspect, setup_halves),
        TEST_WITH(one_that_wants_to_know_is_told_what_is_expected,
                  setup_halves),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    command[1] = "halves";
    return failed + td_engine_conformance("worker", &config);
}

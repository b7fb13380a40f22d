// SPDX-License-Identifier: Apache-2.0
// The worker engine with tests/worker/echo.c as its process, which answers,
// dies, hangs or lies as the first value of a state orders (worker_orders.h).
//
// The conformance suite, and what only a worker has: who is told what when it
// ends, that it is started again, that an observation which ended it twice is
// refused, garbage in its results, starts that fail, its output in the log, and
// limits of memory.
#include "engine/conformance.h"
#include "engine/worker/worker_fixture.h"

static int setup_together(void **state)
{
    (void)state;
    td_event_init(&done_event);
    return open_engine("together", 60 * TD_NS_PER_S);
}

static int setup_lies(void **state)
{
    (void)state;
    td_event_init(&done_event);
    return open_engine("lies", 60 * TD_NS_PER_S);
}

static int setup_impatient(void **state)
{
    (void)state;
    td_event_init(&done_event);
    return open_engine(NULL, TD_NS_PER_S);
}

static void those_running_are_told_when_it_dies_and_it_comes_back(void **state)
{
    (void)state;
    int pid = td_engine_worker_pid(engine);
    assert_int_equal(run_one(&one, DIES), TD_ERR_CLOSED);
    assert_string_equal(one.requests[0].info.text,
                        "worker pi0/v1 was ended by signal 9 (Killed)");
    wait_ready();
    assert_int_not_equal(td_engine_worker_pid(engine), pid);
    assert_int_equal(run_one(&one, 3), TD_OK);
    assert_answered(&one.requests[0]);
}

static void what_waited_behind_it_is_told_too(void **state)
{
    (void)state;
    const float hangs = HANGS, good = 1;
    assert_int_equal(submit(&one, &hangs, 1), TD_OK);
    assert_int_equal(submit(&two, &good, 1), TD_OK);
    assert_int_equal(kill(td_engine_worker_pid(engine), SIGKILL), 0);
    wait_done(&one);
    wait_done(&two);
    assert_int_equal(one.requests[0].item.status, TD_ERR_CLOSED);
    assert_int_equal(two.requests[0].item.status, TD_ERR_CLOSED);
}

static void what_is_short_is_written_before_submit_returns(void **state)
{
    (void)state;
    const float good = 1;
    make_group(&one, &good, 1);
    one.requests[0].obs.images[0].shape[0]--;
    assert_int_equal(engine->ops->submit(engine, &one.batch, on_done, &one),
                     TD_OK);
    assert_int_equal(one.requests[0].item.status, TD_ERR_MISMATCH);
    wait_done(&one);
    assert_int_equal(run_one(&one, 1), TD_OK);
}

static void while_it_is_away_nothing_is_taken(void **state)
{
    (void)state;
    const float good = 1;
    assert_int_equal(run_one(&one, DIES), TD_ERR_CLOSED);
    // It rests for a while, but who knows how slow this machine is.
    if (submit(&two, &good, 1) == TD_OK) {
        wait_done(&two);
        return;
    }
    assert_int_equal(submit(&two, &good, 1), TD_ERR_CLOSED);
    wait_ready();
    assert_int_equal(run_one(&two, 1), TD_OK);
}

static void one_that_hangs_is_ended(void **state)
{
    (void)state;
    assert_int_equal(run_one(&one, HANGS), TD_ERR_CLOSED);
    assert_string_equal(one.requests[0].info.text,
                        "worker pi0/v1 stood still for 1.0 s (answer_s)");
    wait_ready();
    assert_int_equal(run_one(&one, 1), TD_OK);
}

static void closing_does_not_wait_for_ever(void **state)
{
    (void)state;
    const float hangs = HANGS;
    assert_int_equal(submit(&one, &hangs, 1), TD_OK);
    td_engine_close(engine);
    engine = NULL;
    assert_true(one.done);
    assert_int_equal(one.requests[0].item.status, TD_ERR_CLOSED);
}

static void an_input_that_kills_twice_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run_one(&one, DIES), TD_ERR_CLOSED);
        wait_ready();
    }
    int pid = td_engine_worker_pid(engine);
    assert_int_equal(run_one(&one, DIES), TD_ERR_DENIED);
    assert_string_equal(one.requests[0].info.text,
                        "this observation has ended worker pi0/v1 twice and is "
                        "not run again");
    assert_int_equal(run_one(&one, 2), TD_OK);
    assert_int_equal(td_engine_worker_pid(engine), pid);
}

static void one_that_hangs_twice_is_refused_too(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run_one(&one, HANGS), TD_ERR_CLOSED);
        wait_ready();
    }
    assert_int_equal(run_one(&one, HANGS), TD_ERR_DENIED);
}

static void the_member_it_was_at_is_the_suspect(void **state)
{
    (void)state;
    const float firsts[] = {1, DIES, 3};
    for (int i = 0; i < 2; i++) {
        run(&one, firsts, 3);
        wait_ready();
    }
    run(&one, firsts, 3);
    assert_answered(&one.requests[0]);
    assert_int_equal(one.requests[1].item.status, TD_ERR_DENIED);
    assert_answered(&one.requests[2]);
}

// It does not say which: each runs alone until the offender is found.
static void those_who_shared_a_batch_are_cleared_one_by_one(void **state)
{
    (void)state;
    const float firsts[] = {1, DIES, 3};
    run(&one, firsts, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(one.requests[i].item.status, TD_ERR_CLOSED);
    wait_ready();

    run(&one, firsts, 3);
    assert_answered(&one.requests[0]);
    assert_int_equal(one.requests[1].item.status, TD_ERR_CLOSED);
    assert_int_equal(one.requests[2].item.status, TD_ERR_CLOSED);
    wait_ready();

    run(&one, firsts, 3);
    assert_answered(&one.requests[0]);
    assert_int_equal(one.requests[1].item.status, TD_ERR_DENIED);
    assert_answered(&one.requests[2]);
}

static void garbage_in_the_results_ends_it(void **state)
{
    (void)state;
    assert_int_equal(run_one(&one, GARBAGE), TD_ERR_CLOSED);
    assert_string_equal(one.requests[0].info.text,
                        "worker pi0/v1 answered with nonsense");
    wait_ready();
    assert_int_equal(run_one(&one, 1), TD_OK);
}

static void it_cannot_have_taken_longer_than_it_took(void **state)
{
    (void)state;
    int64_t start_ns = td_clock_monotonic_ns();
    assert_int_equal(run_one(&one, LIES), TD_OK);
    int64_t passed_ns = td_clock_monotonic_ns() - start_ns;
    assert_true(one.batch.service_ns <= passed_ns);
}

static void a_member_that_fails_fails_alone(void **state)
{
    (void)state;
    static const struct {
        float first;
        td_err status;
        const char *text;
    } cases[] = {
        {FAILS, TD_ERR_INVALID, "this one ? cannot be "},
        {NO_ROWS, TD_ERR_FORMAT,
         "the worker gave 4294967295 rows, a chunk has 1 to 5"},
        {NOT_FINITE, TD_ERR_FORMAT,
         "the worker's row 0 is not finite in channel 1"},
        {NO_VALUES, TD_ERR_FORMAT,
         "the worker gave 4294967295 results, at most 32"},
    };
    td_engine_results results = {0};
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        const float firsts[] = {1, cases[i].first, 2};
        make_group(&one, firsts, 3);
        one.requests[1].item.results = &results;
        assert_int_equal(engine->ops->submit(engine, &one.batch, on_done, &one),
                         TD_OK);
        wait_done(&one);
        assert_answered(&one.requests[0]);
        assert_int_equal(one.requests[1].item.status, cases[i].status);
        assert_string_equal(one.requests[1].info.text, cases[i].text);
        assert_answered(&one.requests[2]);
    }
}

static void a_start_that_fails_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        td_err err;
        const char *text;
    } cases[] = {
        {"exits", TD_ERR_CLOSED,
         "worker pi0/v1 ended with code 3: no weights here"},
        {"cannot", TD_ERR_CLOSED, "worker pi0/v1 cannot: no such device"},
        {"sleeps", TD_ERR_TIMEOUT,
         "worker pi0/v1 was not ready for 0.2 s (start_s)"},
        {"garbage", TD_ERR_FORMAT,
         "worker pi0/v1 the worker's camera_count is 4294967295, at most 16"},
        {"other", TD_ERR_MISMATCH,
         "worker pi0/v1 chunk: the manifest says 5, the worker 6"},
        {"/", TD_ERR_CLOSED,
         "worker pi0/v1 ended with code 127: this command cannot be run"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_errinfo info = {""};
        bool sleeps = strcmp(cases[i].how, "sleeps") == 0;
        settings.start_ns = sleeps ? 200 * TD_NS_PER_MS : 60 * TD_NS_PER_S;
        command[0] = cases[i].how[0] == '/' ? "/nowhere" : TD_WORKER_ECHO;
        command[1] = cases[i].how;
        td_err err = td_engine_open("worker", &config, &engine, &info);
        command[0] = TD_WORKER_ECHO;
        assert_string_equal(info.text, cases[i].text);
        assert_int_equal(err, cases[i].err);
        assert_null(engine);
    }
    settings.start_ns = 60 * TD_NS_PER_S;
}

static void what_the_manifest_leaves_open_the_worker_says(void **state)
{
    (void)state;
    td_errinfo info = {""};
    td_worker_spec whole = settings.spec;
    settings.spec.chunk_rows = 0;
    command[1] = "other"; // one more row than is wanted
    td_err err = td_engine_open("worker", &config, &engine, &info);
    settings.spec = whole;
    assert_int_equal(err, TD_OK);
    assert_int_equal(engine->ops->spec(engine)->chunk_rows, 1);
}

static void what_it_prints_is_logged_under_its_name(void **state)
{
    (void)state;
    assert_int_equal(td_log_start_sink(on_line, NULL, TD_LOG_INFO), TD_OK);
    assert_int_equal(run_one(&one, PRINTS), TD_OK);
    td_engine_close(engine);
    engine = NULL;
    td_log_stop();
    assert_non_null(strstr(logged, "worker pi0/v1: one line\n"
                                   "worker pi0/v1: and another\n"));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_ITS_OWN_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_ITS_OWN_MALLOC 1
#endif
#endif
#ifndef HAS_ITS_OWN_MALLOC
#define HAS_ITS_OWN_MALLOC 0
#endif

static void one_that_takes_too_much_memory_starts_again(void **state)
{
    (void)state;
    if (HAS_ITS_OWN_MALLOC) skip(); // which needs more than any limit
    settings.memory_bytes = UINT64_C(256) << 20;
    int opened = open_engine(NULL, 60 * TD_NS_PER_S);
    settings.memory_bytes = 0;
    assert_int_equal(opened, 0);
    assert_int_equal(run_one(&one, GROWS), TD_ERR_CLOSED);
    assert_string_equal(one.requests[0].info.text,
                        "worker pi0/v1 was ended by signal 6 (Aborted)");
    wait_ready();
    assert_int_equal(run_one(&one, 1), TD_OK);
}

// One that leaks never has any again.
static void one_without_memory_three_times_in_a_row_starts_again(void **state)
{
    (void)state;
    int pid = td_engine_worker_pid(engine);
    const float few[] = {STARVES, STARVES, 1, STARVES, STARVES};
    for (size_t i = 0; i < TD_COUNT_OF(few); i++)
        assert_int_equal(run_one(&one, few[i]),
                         few[i] == 1 ? TD_OK : TD_ERR_NOMEM);
    assert_int_equal(td_engine_worker_pid(engine), pid);
    assert_int_equal(run_one(&one, STARVES), TD_ERR_NOMEM);
    while (td_engine_worker_pid(engine) == pid)
        td_clock_sleep_until(td_clock_monotonic_ns() + TD_NS_PER_MS);
    wait_ready();
    assert_int_equal(run_one(&one, 1), TD_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(those_running_are_told_when_it_dies_and_it_comes_back),
        TEST(what_waited_behind_it_is_told_too),
        TEST(what_is_short_is_written_before_submit_returns),
        TEST(while_it_is_away_nothing_is_taken),
        TEST_WITH(one_that_hangs_is_ended, setup_impatient),
        TEST_WITH(closing_does_not_wait_for_ever, setup_impatient),
        TEST(an_input_that_kills_twice_is_refused),
        TEST_WITH(one_that_hangs_twice_is_refused_too, setup_impatient),
        TEST(the_member_it_was_at_is_the_suspect),
        TEST_WITH(those_who_shared_a_batch_are_cleared_one_by_one,
                  setup_together),
        TEST(garbage_in_the_results_ends_it),
        TEST_WITH(it_cannot_have_taken_longer_than_it_took, setup_lies),
        TEST(a_member_that_fails_fails_alone),
        cmocka_unit_test_teardown(a_start_that_fails_says_why, teardown),
        cmocka_unit_test_teardown(what_the_manifest_leaves_open_the_worker_says,
                                  teardown),
        TEST(what_it_prints_is_logged_under_its_name),
        cmocka_unit_test_teardown(one_that_takes_too_much_memory_starts_again,
                                  teardown),
        TEST(one_without_memory_three_times_in_a_row_starts_again),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    command[1] = NULL;
    return failed + td_engine_conformance("worker", &config);
}

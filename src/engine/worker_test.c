// SPDX-License-Identifier: Apache-2.0
// The worker engine with tests/worker/echo.c as its process.
#include "engine/worker/worker.h"

#include "base/clock.h"
#include "base/event.h"
#include "base/log.h"
#include "engine/conformance.h"

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

// What tests/worker/echo.c does for the first value of a state.
enum { DIES = 1001, HANGS, FAILS, GARBAGE, NO_ROWS, NOT_FINITE, PRINTS, LIES };

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

static int open_engine(const char *how, int64_t answer_ns)
{
    command[1] = how;
    settings.answer_ns = answer_ns;
    td_errinfo info = {""};
    if (td_engine_open("worker", &config, &engine, &info) == TD_OK) return 0;
    print_error("%s\n", info.text);
    return -1;
}

static int setup(void **state)
{
    (void)state;
    td_event_init(&done_event);
    settings.start_ns = 60 * TD_NS_PER_S;
    return open_engine(NULL, 60 * TD_NS_PER_S);
}

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

static int teardown(void **state)
{
    (void)state;
    if (engine) td_engine_close(engine);
    engine = NULL;
    return 0;
}

static void on_done(void *user, td_engine_batch *batch)
{
    group *self = user;
    (void)batch;
    self->done = true;
    td_event_signal(&done_event);
}

static void make_request(request *made, float first, float second)
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

// One batch of states that begin with these values.
static td_err submit(group *self, const float *firsts, uint32_t count)
{
    *self = (group){.batch = {.count = count}};
    for (uint32_t i = 0; i < count; i++) {
        make_request(&self->requests[i], firsts[i], (float)i);
        self->batch.items[i] = &self->requests[i].item;
    }
    return engine->ops->submit(engine, &self->batch, on_done, self);
}

static void wait_done(const group *self)
{
    while (!self->done)
        td_event_wait_until(&done_event, INT64_MAX);
}

static void run(group *self, const float *firsts, uint32_t count)
{
    assert_int_equal(submit(self, firsts, count), TD_OK);
    wait_done(self);
}

static td_err run_one(group *self, float first)
{
    run(self, &first, 1);
    return self->requests[0].item.status;
}

static void wait_ready(void)
{
    while (td_engine_health_of(engine) != TD_ENGINE_READY)
        td_clock_sleep_until(td_clock_now_ns(&td_clock_monotonic) +
                             TD_NS_PER_MS);
}

static void assert_answered(const request *asked)
{
    assert_int_equal(asked->item.status, TD_OK);
    assert_int_equal(asked->item.rows, ROWS);
    assert_true(asked->actions[0] == asked->state[0]);
    assert_true(asked->actions[1] == asked->state[1]);
}

static group one, two;

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
    int64_t start_ns = td_clock_now_ns(&td_clock_monotonic);
    assert_int_equal(run_one(&one, LIES), TD_OK);
    int64_t passed_ns = td_clock_now_ns(&td_clock_monotonic) - start_ns;
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
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        const float firsts[] = {1, cases[i].first, 2};
        run(&one, firsts, 3);
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

static char logged[4096];
static pthread_mutex_t logged_lock = PTHREAD_MUTEX_INITIALIZER;

static void on_line(void *user, td_log_level level, const char *line)
{
    (void)user;
    (void)level;
    pthread_mutex_lock(&logged_lock);
    strncat(logged, line, sizeof logged - strlen(logged) - 2);
    strcat(logged, "\n");
    pthread_mutex_unlock(&logged_lock);
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

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define TEST_WITH(test, with)                                                  \
    cmocka_unit_test_setup_teardown(test, with, teardown)
    const struct CMUnitTest tests[] = {
        TEST(those_running_are_told_when_it_dies_and_it_comes_back),
        TEST(what_waited_behind_it_is_told_too),
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
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    command[1] = NULL;
    return failed + td_engine_conformance("worker", &config);
}

// SPDX-License-Identifier: Apache-2.0
// The native engine as a worker of its own on a GPU (child.c), where there is
// one; elsewhere with a backend that stands for one (tests/worker/fake_cuda.c),
// which fails as a GPU can when a file tells it to.
//
// The server's end is the worker engine itself, so that restarts and what
// robots are told are the real ones. Answers are compared with those of the
// golden checkpoint "no-camera".
#include "engine/native/child.h"

#include "base/clock.h"
#include "engine/conformance.h"
#include "engine/native/cuda/library.h"
#include "engine/native/golden.h"
#include "engine/native/native_fixture.h"
#include "engine/native/ops/hashed.h"
#include "engine/probe.h"
#include "engine/worker/worker.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OBSERVATIONS 3
#define COEFFICIENT "0" // all chunks weigh alike

#ifdef TD_FAKE_FOLDER
#define TOLERANCE 1e-4 // of the largest value
#else
#define TOLERANCE 0.03 // bf16
#endif

static td_native_golden golden;
static float *expected; // [OBSERVATIONS][VALUES]
static const char *command[] = {TD_NATIVE_CHILD, NULL, NULL};
static td_engine_worker_settings settings = {
    .spec = {.max_batch = 2},
    .command = command,
    .start_ns = 60 * TD_NS_PER_S,
    .answer_ns = 60 * TD_NS_PER_S,
};
static td_engine_config config = {.model_id = "act",
                                  .model_version = "v1",
                                  .pretrained_path = golden.folder,
                                  .device = "cuda:0",
                                  .step_period_us = 33333,
                                  .settings = &settings};

static void make(request *r, int observation, const char *client,
                 uint64_t cursor)
{
    char name[64];
    make_request(r, client, cursor);
    (void)snprintf(name, sizeof name, "no-camera/%d/observation.state",
                   observation);
    td_native_hashed_floats(name, STATES, r->state);
    (void)snprintf(name, sizeof name,
                   "no-camera/%d/observation.environment_state", observation);
    td_native_hashed_floats(name, ENVIRONMENT, r->environment);
}

static td_engine *open_engine(void)
{
    return open_as("worker", &config);
}

// Until another child than `pid` is ready.
static void wait_for_another(td_engine *engine, int pid)
{
    while (td_engine_worker_pid(engine) == pid ||
           td_engine_worker_pid(engine) == 0 ||
           td_engine_health_of(engine) != TD_ENGINE_READY)
        td_clock_sleep_until(td_clock_monotonic_ns() + TD_NS_PER_MS);
}

static double largest(void)
{
    double most = 0;
    for (int i = 0; i < OBSERVATIONS * VALUES; i++)
        most = fmax(most, fabs((double)expected[i]));
    return most;
}

// Rows [first, first + rows) of an answer are these.
static void assert_rows(const request *r, int first, int rows,
                        const float *want)
{
    const float *got = r->actions + (ptrdiff_t)first * ACTIONS;
    for (int i = 0; i < rows * ACTIONS; i++)
        assert_true(fabs((double)got[i] - (double)want[i]) <=
                    TOLERANCE * largest());
}

static void assert_answers(td_engine *engine)
{
    request r;
    for (int i = 0; i < OBSERVATIONS; i++) {
        make(&r, i, "arm", 0);
        assert_int_equal(ask(engine, &r), TD_OK);
        assert_int_equal(r.item.rows, ROWS);
        assert_rows(&r, 0, ROWS, expected + (ptrdiff_t)i * VALUES);
    }
}

static void answers_are_those_of_lerobot(void **state)
{
    (void)state;
    td_engine *engine = open_engine();
    assert_answers(engine);
    td_engine_close(engine);
}

static void what_it_wants_is_enough_to_warm_it_up(void **state)
{
    (void)state;
    td_errinfo info = {.text = ""};
    td_engine *engine = open_engine();
    assert_int_equal(engine->ops->spec(engine)->environment_count, ENVIRONMENT);
    assert_int_equal(td_engine_probe_warm_up(engine, NULL, &info), TD_OK);
    td_engine_close(engine);
}

static void bad_observation_is_refused_by_name(void **state)
{
    (void)state;
    request r;
    td_engine *engine = open_engine();
    make(&r, 0, "arm", 0);
    r.obs.tensor_count = 0;
    assert_int_equal(ask(engine, &r), TD_ERR_MISMATCH);
    assert_non_null(strstr(r.why.text, "tensors.environment_state"));
    assert_answers(engine);
    td_engine_close(engine);
}

// The second chunk speaks of the steps after the first's first.
static void ask_twice(td_engine *engine, const char *client, request *second)
{
    request first;
    make(&first, 0, client, 0);
    assert_int_equal(ask(engine, &first), TD_OK);
    assert_rows(&first, 0, ROWS, expected);
    make(second, 1, client, 1);
    assert_int_equal(ask(engine, second), TD_OK);
}

static void ensemble_is_kept_for_each_client(void **state)
{
    (void)state;
    request r;
    float mean[VALUES - ACTIONS];
    const float *one = expected + ACTIONS, *other = expected + VALUES;
    for (int i = 0; i < VALUES - ACTIONS; i++)
        mean[i] = (one[i] + other[i]) / 2;
    command[1] = COEFFICIENT;
    td_engine *engine = open_engine();
    ask_twice(engine, "arm", &r);
    assert_rows(&r, 0, ROWS - 1, mean);
    assert_rows(&r, ROWS - 1, 1, other + VALUES - ACTIONS);
    make(&r, 1, "other arm", 1);
    assert_int_equal(ask(engine, &r), TD_OK);
    assert_rows(&r, 0, ROWS, other);
    td_engine_close(engine);
}

static void child_that_is_killed_comes_back(void **state)
{
    (void)state;
    td_engine *engine = open_engine();
    int pid = td_engine_worker_pid(engine);
    assert_int_equal(kill(pid, SIGKILL), 0);
    wait_for_another(engine, pid);
    assert_answers(engine);
    td_engine_close(engine);
}

static void assert_does_not_open(const char *text)
{
    td_engine *engine = NULL;
    td_errinfo info = {.text = ""};
    assert_int_not_equal(td_engine_open("worker", &config, &engine, &info),
                         TD_OK);
    assert_null(engine);
    print_message("%s\n", info.text);
    assert_non_null(strstr(info.text, text));
}

#ifdef TD_FAKE_FOLDER

static char control[300]; // what the fake GPU is told

static void tell(const char *word)
{
    FILE *file = fopen(control, "we");
    if (!file) abort();
    assert_true(fputs(word, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void no_memory_at_load_is_said(void **state)
{
    (void)state;
    tell("load");
    assert_does_not_open("allocating 5 MiB after 6: out of memory, 3 of 9 MiB "
                         "are free; max_batch is 2: take a smaller one, or "
                         "another GPU than cuda:0");
}

static void no_memory_in_service_costs_that_request(void **state)
{
    (void)state;
    request r;
    td_engine *engine = open_engine();
    int pid = td_engine_worker_pid(engine);
    tell("run");
    make(&r, 0, "arm", 0);
    assert_int_equal(ask(engine, &r), TD_ERR_NOMEM);
    assert_non_null(strstr(r.why.text, "out of memory, 0 of 9 MiB are free"));
    tell("");
    assert_answers(engine);
    assert_int_equal(td_engine_worker_pid(engine), pid);
    td_engine_close(engine);
}

static void gpu_that_falls_away_costs_the_child(void **state)
{
    (void)state;
    request r;
    td_engine *engine = open_engine();
    int pid = td_engine_worker_pid(engine);
    tell("lost");
    make(&r, 0, "arm", 0);
    assert_int_equal(ask(engine, &r), TD_ERR_IO);
    assert_non_null(strstr(r.why.text, "the GPU is lost"));
    tell("");
    wait_for_another(engine, pid);
    assert_answers(engine);
    td_engine_close(engine);
}

static void prepare(void)
{
    (void)snprintf(control, sizeof control, "%s/gpu", golden.folder);
    assert_int_equal(
        setenv("TENDON_CUDA_LIBRARY", TD_FAKE_FOLDER "/fake_cuda.so", 1), 0);
    assert_int_equal(setenv("LD_LIBRARY_PATH", TD_FAKE_FOLDER, 1), 0);
    assert_int_equal(setenv("TENDON_FAKE_GPU", control, 1), 0);
}

static int begin(void **state)
{
    (void)state;
    command[1] = NULL;
    tell("");
    return 0;
}

// A policy with halves in a process of its own.
static int policies_that_denoise_keep_the_contract(void)
{
    td_native_golden flow;
    td_native_golden_make("flows", "smolvla-two-cameras", &flow);
    command[1] = "prefixes";
    config.pretrained_path = flow.folder;
    int failed = td_engine_conformance("worker", &config);
    config.pretrained_path = golden.folder;
    td_native_golden_remove(&flow);
    return failed;
}

#else

// Takes all memory of the GPU that can be had.
static td_ops_backend *fill_gpu(const td_ops **ret_ops)
{
    const td_ops_config side_config = {.precision = TD_OPS_BF16, .threads = 1};
    td_ops_backend *backend = NULL;
    td_errinfo info = {.text = ""};
    void *data;
    assert_int_equal(td_native_cuda_library_load(ret_ops, &info), TD_OK);
    assert_int_equal((*ret_ops)->open(&side_config, &backend, &info), TD_OK);
    for (size_t bytes = (size_t)64 << 30; bytes >= (size_t)32 << 20; bytes /= 2)
        while ((*ret_ops)->alloc(backend, bytes, &data, &info) == TD_OK)
            continue;
    return backend;
}

static void no_memory_at_load_is_said(void **state)
{
    (void)state;
    const td_ops *ops = NULL;
    td_ops_backend *backend = fill_gpu(&ops);
    assert_does_not_open("out of memory");
    ops->close(backend);
}

static void memory_that_others_take_does_not_matter_in_service(void **state)
{
    (void)state;
    const td_ops *ops = NULL;
    td_engine *engine = open_engine();
    int pid = td_engine_worker_pid(engine);
    td_ops_backend *backend = fill_gpu(&ops);
    assert_answers(engine);
    assert_int_equal(td_engine_worker_pid(engine), pid);
    ops->close(backend);
    td_engine_close(engine);
}

static void prepare(void)
{
}

static int begin(void **state)
{
    (void)state;
    command[1] = NULL;
    return 0;
}

#endif

int main(void)
{
    td_native_golden_make("act", "no-camera", &golden);
    expected =
        td_native_golden_expected(&golden, (size_t)OBSERVATIONS * VALUES);
    prepare();
#define TEST(test) cmocka_unit_test_setup(test, begin)
    const struct CMUnitTest tests[] = {
        TEST(answers_are_those_of_lerobot),
        TEST(what_it_wants_is_enough_to_warm_it_up),
        TEST(bad_observation_is_refused_by_name),
        TEST(ensemble_is_kept_for_each_client),
        TEST(child_that_is_killed_comes_back),
        TEST(no_memory_at_load_is_said),
#ifdef TD_FAKE_FOLDER
        TEST(no_memory_in_service_costs_that_request),
        TEST(gpu_that_falls_away_costs_the_child),
#else
        TEST(memory_that_others_take_does_not_matter_in_service),
#endif
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
#ifdef TD_FAKE_FOLDER
    failed += policies_that_denoise_keep_the_contract();
#endif
    free(expected);
    td_native_golden_remove(&golden);
    return failed;
}

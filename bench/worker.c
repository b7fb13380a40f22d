// SPDX-License-Identifier: Apache-2.0
// What a model in a process of its own costs beyond the model itself, and how
// soon those who wait hear of its death.
#include "engine/worker/worker.h"

#include "base/clock.h"
#include "base/sync/event.h"
#include "bench/bench.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEIGHT 480
#define WIDTH 640
#define ROWS 50
#define CHANNELS 14
#define WARM_ROUNDS 50
#define MOST_BEYOND_US 150
#define MAX_ANSWERED_MS 100

static const char policy[] = "import numpy as np\n"
                             "\n"
                             "CHUNK = np.zeros((50, 14), np.float32)\n"
                             "\n"
                             "\n"
                             "def infer(obs):\n"
                             "    return CHUNK\n";

typedef struct room {
    td_engine_worker_settings settings;
    uint8_t pixels[HEIGHT * WIDTH * 3];
    float state[CHANNELS];
    float actions[ROWS * CHANNELS];
    td_wire_obs obs;
    td_engine_item item;
    td_engine_batch batch;
    td_event event;
} room;

static void room_free(room *r)
{
    free(r);
}
TD_AUTO_FREE(room, room_free)

static td_wire_image image_of(const room *r, const char *name)
{
    return (td_wire_image){.name = td_wire_text_of(name),
                           .codec = TD_WIRE_RAW,
                           .shape = {HEIGHT, WIDTH, 3},
                           .data = r->pixels,
                           .size = sizeof r->pixels};
}

static room *room_new(void)
{
    room *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    td_worker_spec *spec = &r->settings.spec;
    *spec = (td_worker_spec){
        .camera_count = 2,
        .state_count = CHANNELS,
        .action_count = CHANNELS,
        .chunk_rows = ROWS,
        .max_batch = 1,
        .cameras = {{"top", HEIGHT, WIDTH}, {"wrist", HEIGHT, WIDTH}},
    };
    for (int i = 0; i < CHANNELS; i++) {
        (void)snprintf(spec->states[i].name, 64, "joint_%d", i);
        (void)snprintf(spec->actions[i].name, 64, "joint_%d", i);
    }
    r->settings.start_ns = r->settings.answer_ns = 30 * TD_NS_PER_S;
    r->obs = (td_wire_obs){
        .client = td_wire_text_of("bench"),
        .state = {.rank = 1,
                  .shape = {CHANNELS},
                  .data = r->state,
                  .size = sizeof r->state},
        .images = {image_of(r, "top"), image_of(r, "wrist")},
        .image_count = 2,
    };
    r->item = (td_engine_item){.obs = &r->obs, .actions = r->actions};
    r->batch = (td_engine_batch){.items = {&r->item}, .count = 1};
    td_event_init(&r->event);
    return r;
}

static td_err open_engine(room *r, const char *const *command,
                          td_engine **ret_engine, td_errinfo *info)
{
    r->settings.command = command;
    td_engine_config config = {.model_id = "bench",
                               .model_version = "v1",
                               .step_period_us = 33333,
                               .settings = &r->settings};
    return td_engine_open("worker", &config, ret_engine, info);
}

static void on_done(void *user, td_engine_batch *batch)
{
    (void)batch;
    td_event_signal(user);
}

static td_err run(room *r, td_engine *engine)
{
    TD_TRY(engine->ops->submit(engine, &r->batch, on_done, &r->event));
    (void)td_event_wait_until(&r->event, INT64_MAX);
    return r->item.status;
}

static td_err measure(const td_bench_options *options, const char *name,
                      const char *const *command, td_errinfo *info)
{
    TD_AUTO(room) *r = room_new();
    if (!r) return TD_ERR_NOMEM;
    TD_AUTO(td_engine) *engine = NULL;
    TD_TRY(open_engine(r, command, &engine, info));
    td_hist *before = malloc(sizeof *before);
    td_hist *beyond = malloc(sizeof *beyond);
    if (!before || !beyond) abort();
    td_err err = TD_OK;
    int rounds = WARM_ROUNDS + (options->quick ? 300 : 5000);
    for (int i = 0; i < rounds && err == TD_OK; i++) {
        if (i == WARM_ROUNDS) *before = *td_engine_worker_overhead_ns(engine);
        err = run(r, engine);
    }
    td_hist_since(td_engine_worker_overhead_ns(engine), before, beyond);
    char label[64];
    (void)snprintf(label, sizeof label, "%s/2x480x640/beyond/p50", name);
    const td_bench_row row = {.bench = "worker",
                              .name = label,
                              .value = td_bench_quantile_us(beyond, 0.5),
                              .unit = "us",
                              .limited = TD_BENCH_VALUE,
                              .limit = MOST_BEYOND_US};
    if (err == TD_OK) td_bench_print(options, &row);
    free(before);
    free(beyond);
    return err;
}

static td_err wait_ready(const td_engine *engine)
{
    while (td_engine_health_of(engine) != TD_ENGINE_READY)
        TD_TRY(td_bench_sleep(TD_NS_PER_MS));
    return TD_OK;
}

// Kills it in the middle of a batch: nanoseconds until `done`.
static td_err kill_one(room *r, td_engine *engine, int64_t *ret_ns)
{
    TD_TRY(wait_ready(engine));
    r->state[0] = 1;  // stands still
    r->state[1] += 1; // and is never the same, or it would be refused
    TD_TRY(engine->ops->submit(engine, &r->batch, on_done, &r->event));
    TD_TRY(td_bench_sleep(20 * TD_NS_PER_MS));
    int64_t start_ns = td_clock_monotonic_ns();
    (void)kill(td_engine_worker_pid(engine), SIGKILL);
    (void)td_event_wait_until(&r->event, INT64_MAX);
    *ret_ns = td_clock_monotonic_ns() - start_ns;
    return r->item.status == TD_ERR_CLOSED ? TD_OK : TD_ERR_MISMATCH;
}

static td_err measure_death(const td_bench_options *options,
                            const char *const *command, td_errinfo *info)
{
    TD_AUTO(room) *r = room_new();
    if (!r) return TD_ERR_NOMEM;
    TD_AUTO(td_engine) *engine = NULL;
    TD_TRY(open_engine(r, command, &engine, info));
    int64_t longest_ns = 0;
    for (int i = 0; i < (options->quick ? 2 : 5); i++) {
        int64_t ns = 0;
        TD_TRY(kill_one(r, engine, &ns));
        if (ns > longest_ns) longest_ns = ns;
    }
    const td_bench_row row = {.bench = "worker",
                              .name = "killed/answered/max",
                              .value = (double)longest_ns / TD_NS_PER_MS,
                              .unit = "ms",
                              .limited = TD_BENCH_VALUE,
                              .limit = MAX_ANSWERED_MS};
    td_bench_print(options, &row);
    return TD_OK;
}

static td_err write_policy(char ret_target[TD_BENCH_PATH_BYTES + 8],
                           td_errinfo *info)
{
    char path[TD_BENCH_PATH_BYTES];
    TD_TRY(td_bench_file("py", path, info));
    FILE *file = fopen(path, "we");
    if (!file) return td_fail(info, TD_ERR_IO, "%s: cannot be written", path);
    (void)fputs(policy, file);
    (void)fclose(file);
    (void)snprintf(ret_target, TD_BENCH_PATH_BYTES + 8, "%s:infer", path);
    return TD_OK;
}

// The tests' Python where there is one: it has numpy.
static void find_paths(char ret_self[4096], char ret_python[4200])
{
    ssize_t length = readlink("/proc/self/exe", ret_self, 4095);
    ret_self[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(ret_self, '/');
    (void)snprintf(ret_python, 4200, "%.*s/../venv/bin/python",
                   slash ? (int)(slash - ret_self) : 0, ret_self);
    if (access(ret_python, X_OK) != 0)
        (void)snprintf(ret_python, 4200, "python3");
}

td_err td_bench_worker(const td_bench_options *options, td_errinfo *info)
{
    char self[4096];
    char python[4200];
    char target[TD_BENCH_PATH_BYTES + 8];
    find_paths(self, python);
    TD_TRY(write_policy(target, info));
    const char *in_c[] = {self, "policy", NULL};
    const char *stops[] = {self, "policy", "stops", NULL};
    const char *in_python[] = {python, "-m", "tendon.worker", target, NULL};
    td_bench_progress("worker: a policy in Python");
    td_err err = measure(options, "python", in_python, info);
    if (err == TD_ERR_CLOSED)
        td_bench_say(options, "worker: Python was not measured: %s",
                     info->text);
    else
        TD_TRY(err);
    td_bench_progress("worker: a policy in C");
    TD_TRY(measure(options, "c", in_c, info));
    return measure_death(options, stops, info);
}

static const float *state_of(const td_worker *worker,
                             const td_worker_batch *batch, uint32_t member)
{
    const td_worker_tensor *state = &batch->items[member].state;
    return td_worker_at(worker, state->offset, state->size);
}

static void hold(td_worker *worker, const float *state, uint32_t member)
{
    const td_worker_spec *spec = &td_worker_offered(worker)->spec;
    float *actions = td_worker_actions(worker, member);
    for (uint32_t row = 0; row < spec->chunk_rows; row++)
        memcpy(actions + (size_t)row * spec->action_count, state,
               spec->action_count * sizeof(float));
    td_worker_answer_member(worker, member, TD_OK, spec->chunk_rows, NULL);
}

static void serve(td_worker *worker, bool stops)
{
    const td_worker_batch *batch;
    while (td_worker_next(worker, &batch) == TD_OK) {
        uint32_t count = batch->count;
        for (uint32_t i = 0; i < count; i++) {
            const float *state = state_of(worker, batch, i);
            while (stops && state[0] > 0)
                (void)pause();
            hold(worker, state, i);
        }
        td_worker_done(worker, 0);
    }
}

// The other process: answers at once with the state in every row. As `policy
// stops` it never answers a state that begins with more than 0.
int td_bench_policy(int argc, char **argv)
{
    td_worker *worker = NULL;
    td_errinfo info = {""};
    if (td_worker_open(&worker, &info) != TD_OK ||
        td_worker_describe(worker, NULL, &info) != TD_OK) {
        (void)fprintf(stderr, "%s\n", info.text);
        return 1;
    }
    td_worker_ready(worker, 0);
    serve(worker, argc > 1 && strcmp(argv[1], "stops") == 0);
    td_worker_close(worker);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A SmolVLA, pi0 or pi0.5 checkpoint on a GPU or the processor:
//
//   flow_run time SIDE CHECKPOINT BATCH ROUNDS
//   flow_run answer SIDE CHECKPOINT FRAMES STATES IDS NOISE OUT COUNT
//
// `time` prints how long a chunk takes, in microseconds, with numbers that mean
// nothing; `answer` runs observations from files, for tests/gpu/check_flow.py:
// frames are bytes, states (normalised), noise and what goes to OUT are floats,
// and IDS is a count and then the ids, of each observation.
#include "engine/native/cuda/library.h"
#include "engine/native/model.h"
#include "engine/native/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_ROUNDS 10000
#define MOST_IDS 1024
#define THREADS 8
#define ASKED_IDS 20
#define ASKED_TEXT 48 // tokens

typedef struct world {
    td_native_checkpoint *checkpoint;
    td_native_pipeline *pipeline;
    td_native_model *model;
    td_errinfo info;
} world;

static double now_us(void)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e6 + (double)at.tv_nsec / 1e3;
}

static td_err open_world(const char *side, const char *folder, uint32_t batch,
                         world *w)
{
    const bool is_cuda = strcmp(side, "cuda") == 0;
    TD_TRY(td_native_checkpoint_open(folder, &w->checkpoint, &w->info));
    TD_TRY(td_native_pipeline_new(w->checkpoint, NULL, &w->pipeline, &w->info));
    td_native_model_config config = {
        .checkpoint = w->checkpoint,
        .pipeline = w->pipeline,
        .ops = &td_ops_cpu,
        .backend = {.precision = is_cuda ? TD_OPS_BF16 : TD_OPS_F32,
                    .threads = THREADS},
        .max_batch = batch,
    };
    if (is_cuda) TD_TRY(td_native_cuda_library_load(&config.ops, &w->info));
    return td_native_model_open(&config, &w->model, &w->info);
}

static void close_world(world *w)
{
    if (w->model) td_native_model_close(w->model);
    if (w->pipeline) td_native_pipeline_free(w->pipeline);
    if (w->checkpoint) td_native_checkpoint_close(w->checkpoint);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static td_err observe_nothing(world *w, uint32_t member, uint32_t round)
{
    static const float zeros[TD_WIRE_MAX_CHANNELS];
    uint32_t ids[ASKED_TEXT];
    for (uint32_t i = 0; i < ASKED_TEXT; i++)
        ids[i] = i + 3;
    const td_native_model_input input = {.state = zeros,
                                         .ids = ids,
                                         .id_count =
                                             ASKED_IDS + (member + round) % 8};
    return td_native_model_observe(w->model, member, &input, &w->info);
}

// All from frames in memory to chunks in memory; or one half, of what is there.
static td_err run_once(world *w, td_native_part part, uint32_t batch,
                       uint32_t round)
{
    for (uint32_t i = 0; i < batch && part == TD_NATIVE_WHOLE; i++)
        TD_TRY(observe_nothing(w, i, round));
    return td_native_model_run(w->model, part, batch, &w->info);
}

static td_err take_time(world *w, td_native_part part, const char *name,
                        uint32_t batch, int rounds)
{
    static double times[MOST_ROUNDS];
    for (int i = -3; i < rounds; i++) {
        double begin = now_us();
        TD_TRY(run_once(w, part, batch, (uint32_t)(i + 3)));
        if (i >= 0) times[i] = now_us() - begin;
    }
    qsort(times, (size_t)rounds, sizeof *times, by_size);
    (void)printf("%s: batch %u, p50 %.0f us, p99 %.0f us\n", name, batch,
                 times[rounds / 2], times[rounds * 99 / 100]);
    (void)fflush(stdout);
    return TD_OK;
}

static td_err time_all(world *w, uint32_t batch, int rounds)
{
    TD_TRY(take_time(w, TD_NATIVE_WHOLE, "whole", batch, rounds));
    TD_TRY(take_time(w, TD_NATIVE_PREFIX, "prefix", batch, rounds));
    return take_time(w, TD_NATIVE_DECODE, "decode", batch, rounds);
}

static int time_checkpoint(char **argv)
{
    world w = {0};
    uint32_t batch = (uint32_t)strtoul(argv[2], NULL, 10);
    long rounds = strtol(argv[3], NULL, 10);
    double begin = now_us();
    if (rounds < 1 || rounds > MOST_ROUNDS) return 2;
    td_err err = open_world(argv[0], argv[1], batch, &w);
    if (err == TD_OK) {
        td_ops_info backend;
        td_native_model_info(w.model, &backend);
        (void)printf("ready after %.1f s, %zu MiB\n", (now_us() - begin) / 1e6,
                     backend.bytes >> 20);
        err = time_all(&w, batch, (int)rounds);
    }
    if (err != TD_OK)
        (void)printf("flow_run: %s: %s\n", td_err_text(err), w.info.text);
    close_world(&w);
    return err != TD_OK;
}

enum { FRAMES, STATES, IDS, NOISE, OUT, FILES };

static bool read_all(FILE *from, void *to, size_t bytes)
{
    return fread(to, 1, bytes, from) == bytes;
}

static td_err read_observation(world *w, FILE *const *files)
{
    const td_native_policy *policy = td_native_model_policy(w->model);
    float state[TD_WIRE_MAX_CHANNELS];
    uint32_t ids[MOST_IDS], count = 0;
    for (uint32_t i = 0; i < policy->camera_count; i++) {
        const td_native_camera *of = &policy->cameras[i];
        if (!read_all(files[FRAMES], td_native_model_frame(w->model, 0, i),
                      (size_t)of->height * of->width * 3))
            return TD_ERR_IO;
    }
    if (!read_all(files[STATES], state, policy->state_dim * sizeof *state) ||
        !read_all(files[IDS], &count, sizeof count) || count > MOST_IDS ||
        !read_all(files[IDS], ids, count * sizeof *ids) ||
        !read_all(files[NOISE], td_native_model_noise(w->model, 0),
                  td_native_model_noise_count(w->model) * sizeof(float)))
        return TD_ERR_IO;
    const td_native_model_input input = {
        .state = state, .ids = ids, .id_count = count};
    return td_native_model_observe(w->model, 0, &input, &w->info);
}

static td_err answer_all(world *w, FILE *const *files, long count)
{
    const td_native_policy *policy = td_native_model_policy(w->model);
    size_t values = (size_t)policy->chunk_rows * policy->action_dim;
    float *chunk = malloc(values * sizeof *chunk);
    td_err err = chunk ? TD_OK : TD_ERR_NOMEM;
    for (long i = 0; i < count && err == TD_OK; i++) {
        err = read_observation(w, files);
        if (err == TD_OK)
            err = td_native_model_run(w->model, TD_NATIVE_WHOLE, 1, &w->info);
        if (err != TD_OK) break;
        td_native_model_actions(w->model, 0, chunk);
        if (fwrite(chunk, sizeof *chunk, values, files[OUT]) != values)
            err = TD_ERR_IO;
    }
    free(chunk);
    return err;
}

static int answer_files(char **argv)
{
    FILE *files[FILES] = {NULL};
    world w = {0};
    td_err err = TD_OK;
    for (int i = 0; i < FILES; i++) {
        files[i] = fopen(argv[2 + i], i == OUT ? "wb" : "rb");
        if (!files[i]) err = TD_ERR_IO;
    }
    if (err == TD_OK) err = open_world(argv[0], argv[1], 1, &w);
    if (err == TD_OK)
        err = answer_all(&w, files, strtol(argv[2 + FILES], NULL, 10));
    if (err != TD_OK)
        (void)fprintf(stderr, "flow_run: %s: %s\n", td_err_text(err),
                      w.info.text);
    close_world(&w);
    for (int i = 0; i < FILES; i++)
        if (files[i] && fclose(files[i]) != 0) err = TD_ERR_IO;
    return err != TD_OK;
}

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "time") == 0)
        return time_checkpoint(argv + 2);
    if (argc == 10 && strcmp(argv[1], "answer") == 0)
        return answer_files(argv + 2);
    return 2;
}

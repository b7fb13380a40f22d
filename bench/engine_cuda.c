// SPDX-License-Identifier: Apache-2.0
// A checkpoint on a GPU: from frames in host memory to chunks in it, all of it
// timed, by batch size.
#include "base/clock.h"
#include "bench/bench.h"
#include "engine/native/library.h"
#include "engine/native/model.h"

#include <stdio.h>

#define MAX_BATCH 16
#define ROOFLINE_US 44 // one camera of 480 x 640, an H200's own limits
#define MOST_TAIL 1.15 // p99 of p50

typedef struct world {
    const td_bench_options *options;
    td_native_checkpoint *checkpoint;
    td_native_pipeline *pipeline;
    td_native_model *model;
} world;

static void world_done(world *w)
{
    if (w->model) td_native_model_close(w->model);
    if (w->pipeline) td_native_pipeline_free(w->pipeline);
    if (w->checkpoint) td_native_checkpoint_close(w->checkpoint);
}

static const struct {
    uint32_t batch;
    double most_us; // a chunk; 0: only printed
} sizes[] = {
    {1, 500},
    {4, 250},
    {16, 0},
};

static void print(const world *w, uint32_t batch, const char *what,
                  td_bench_row row)
{
    char label[64];
    (void)snprintf(label, sizeof label, "act/cuda/batch-%u/%s", batch, what);
    row.bench = "engine";
    row.name = label;
    td_bench_print(w->options, &row);
}

// Bytes that are no picture, so that nothing is easier than it is.
static void fill_frames(const world *w)
{
    const td_native_policy *policy = &w->checkpoint->policy;
    for (uint32_t i = 0; i < MAX_BATCH; i++)
        for (uint32_t k = 0; k < policy->camera_count; k++) {
            uint8_t *frame = td_native_model_frame(w->model, i, k);
            size_t bytes = (size_t)policy->cameras[k].height *
                           policy->cameras[k].width * 3;
            for (size_t j = 0; j < bytes; j++)
                frame[j] = (uint8_t)((j + i) * 2654435761u >> 13);
        }
}

static td_err open_model(world *w, const char *folder, td_errinfo *info)
{
    TD_TRY(td_native_checkpoint_open(folder, &w->checkpoint, info));
    TD_TRY(td_native_pipeline_new(w->checkpoint, NULL, &w->pipeline, info));
    td_native_model_config config = {
        .checkpoint = w->checkpoint,
        .pipeline = w->pipeline,
        .side = {.precision = TD_OPS_BF16, .threads = 1},
        .max_batch = MAX_BATCH,
    };
    TD_TRY(td_native_library_load(&config.ops, info));
    return td_native_model_open(&config, &w->model, info);
}

static td_err run_batch(const world *w, size_t i, td_errinfo *info)
{
    const uint32_t batch = sizes[i].batch;
    const int rounds = w->options->quick ? 100 : 2000;
    td_hist took_ns;
    td_hist_init(&took_ns);
    for (int k = -10; k < rounds; k++) {
        int64_t start_ns = td_clock_now_ns(&td_clock_monotonic);
        TD_TRY(td_native_model_run(w->model, batch, info));
        if (k >= 0)
            td_hist_record(&took_ns,
                           td_clock_now_ns(&td_clock_monotonic) - start_ns);
    }
    double p50 = td_bench_quantile_us(&took_ns, 0.5);
    double p99 = td_bench_quantile_us(&took_ns, 0.99);
    print(w, batch, "chunk/p50",
          (td_bench_row){.value = p50 / batch,
                         .unit = "us",
                         .against = "roofline",
                         .ratio = p50 / batch / ROOFLINE_US,
                         .limited = sizes[i].most_us > 0 ? TD_BENCH_VALUE
                                                         : TD_BENCH_NO_LIMIT,
                         .limit = sizes[i].most_us});
    print(w, batch, "run/p99",
          (td_bench_row){.value = p99,
                         .unit = "us",
                         .against = "p50",
                         .ratio = p99 / p50,
                         .limited = TD_BENCH_RATIO,
                         .limit = MOST_TAIL});
    return TD_OK;
}

static td_err run(world *w, const char *folder, td_errinfo *info)
{
    int64_t start_ns = td_clock_now_ns(&td_clock_monotonic);
    td_ops_info side;
    TD_TRY(open_model(w, folder, info));
    fill_frames(w);
    TD_TRY(td_native_model_run(w->model, 1, info));
    double start_s =
        (double)(td_clock_now_ns(&td_clock_monotonic) - start_ns) / TD_NS_PER_S;
    td_native_model_info(w->model, &side);
    print(w, MAX_BATCH, "start",
          (td_bench_row){.value = start_s,
                         .unit = "s",
                         .limited = TD_BENCH_VALUE,
                         .limit = 3});
    print(w, MAX_BATCH, "memory",
          (td_bench_row){.value = (double)(side.bytes >> 20), .unit = "MiB"});
    for (size_t i = 0; i < TD_COUNT_OF(sizes); i++) {
        TD_TRY(run_batch(w, i, info));
        TD_TRY(td_bench_sleep(0));
    }
    return TD_OK;
}

td_err td_bench_engine_cuda(const td_bench_options *options, const char *folder,
                            td_errinfo *info)
{
    world w = {.options = options};
    td_err err = run(&w, folder, info);
    world_done(&w);
    return err;
}

int td_bench_cuda(int argc, char **argv)
{
    const td_bench_options options = {.json = false};
    td_errinfo info = {.text = ""};
    if (argc != 2) return 2;
    td_err err = td_bench_engine_cuda(&options, argv[1], &info);
    if (err == TD_OK) return 0;
    (void)fprintf(stderr, "tendon bench cuda: %s: %s\n", td_err_text(err),
                  info.text);
    return 1;
}

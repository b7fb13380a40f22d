// SPDX-License-Identifier: Apache-2.0
// ACT on a GPU: from frames in host memory to chunks in it, all of it timed, by
// batch size, beside LeRobot on the same GPU with the same weights.
#include "base/clock.h"
#include "bench/bench.h"
#include "engine/native/cuda/library.h"
#include "engine/native/model.h"

#include <stdio.h>

#define MAX_BATCH 16
#define ROOFLINE_US 44 // one camera of 480 x 640, an H200's own limits
#define GRAPH_US 760   // the products alone, by cuBLAS, in one graph there
#define MOST_TAIL 1.15 // p99 of p50

static const struct {
    uint32_t batch;
    double most_us; // a chunk; 0: only printed
    bool compiled;  // LeRobot has it so, too
} sizes[] = {
    {1, 500, true},
    {4, 250, true},
    {16, 0, false},
};

typedef struct world {
    const td_bench_options *options;
    char folder[TD_BENCH_PATH_BYTES];
    td_bench_peer peer;
    double p50_us[TD_COUNT_OF(sizes)];
    td_native_checkpoint *checkpoint;
    td_native_pipeline *pipeline;
    td_native_model *model;
} world;

static void world_done(world *w)
{
    if (w->model) td_native_model_close(w->model);
    if (w->pipeline) td_native_pipeline_free(w->pipeline);
    if (w->checkpoint) td_native_checkpoint_close(w->checkpoint);
    td_bench_child_end(&w->peer.child);
    td_bench_folder_clear(w->folder);
}

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

static td_err open_model(world *w, const td_ops *ops, td_errinfo *info)
{
    TD_TRY(td_native_checkpoint_open(w->folder, &w->checkpoint, info));
    TD_TRY(td_native_pipeline_new(w->checkpoint, NULL, &w->pipeline, info));
    const td_native_model_config config = {
        .checkpoint = w->checkpoint,
        .pipeline = w->pipeline,
        .ops = ops,
        .backend = {.precision = TD_OPS_BF16, .threads = 1},
        .max_batch = MAX_BATCH,
    };
    return td_native_model_open(&config, &w->model, info);
}

// LeRobot makes the checkpoint, and is silent until it is asked.
static td_err start_peer(world *w, td_errinfo *info)
{
    const bool quick = w->options->quick;
    TD_TRY(td_bench_file("act", w->folder, info));
    const char *args[] = {"lerobot_act_cuda.py", w->folder, quick ? "5" : "100",
                          quick ? "0" : "1", NULL};
    return td_bench_peer_start(args, &w->peer, info);
}

static void print_beside(const world *w, size_t i, const char *what,
                         const char *whose, double theirs_us)
{
    const uint32_t batch = sizes[i].batch;
    print(w, batch, what,
          (td_bench_row){.value = w->p50_us[i] / batch,
                         .unit = "us",
                         .against = whose,
                         .ratio = w->p50_us[i] / theirs_us});
}

// Its block: all sizes as it is, then those that it has compiled.
static td_err compare(world *w, td_errinfo *info)
{
    double theirs_us[2 * TD_COUNT_OF(sizes)];
    const size_t all = TD_COUNT_OF(sizes);
    size_t numbers = all;
    for (size_t i = 0; i < all; i++)
        numbers += !w->options->quick && sizes[i].compiled;
    TD_TRY(td_bench_peer_block(&w->peer, theirs_us, numbers, info));
    for (size_t i = 0; i < all; i++)
        print_beside(w, i, "eager/p50", "LeRobot eager", theirs_us[i]);
    for (size_t i = 0, at = all; i < all && at < numbers; i++)
        if (sizes[i].compiled)
            print_beside(w, i, "compiled/p50", "LeRobot compiled",
                         theirs_us[at++]);
    print_beside(w, 0, "products/p50", "cuBLAS in a graph", GRAPH_US);
    return TD_OK;
}

static void print_size(const world *w, size_t i, double p99)
{
    const uint32_t batch = sizes[i].batch;
    const double p50 = w->p50_us[i];
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
}

static td_err run_batch(world *w, size_t i, td_errinfo *info)
{
    const int rounds = w->options->quick ? 100 : 2000;
    td_hist took_ns;
    td_hist_init(&took_ns);
    for (int k = -10; k < rounds; k++) {
        int64_t start_ns = td_clock_monotonic_ns();
        TD_TRY(td_native_model_run(w->model, TD_NATIVE_WHOLE, sizes[i].batch,
                                   info));
        if (k >= 0)
            td_hist_record(&took_ns, td_clock_monotonic_ns() - start_ns);
    }
    w->p50_us[i] = td_bench_quantile_us(&took_ns, 0.5);
    print_size(w, i, td_bench_quantile_us(&took_ns, 0.99));
    return TD_OK;
}

static td_err run(world *w, const td_ops *ops, td_errinfo *info)
{
    td_ops_info backend;
    TD_TRY(start_peer(w, info));
    int64_t start_ns = td_clock_monotonic_ns();
    TD_TRY(open_model(w, ops, info));
    fill_frames(w);
    TD_TRY(td_native_model_run(w->model, TD_NATIVE_WHOLE, 1, info));
    double start_s = (double)(td_clock_monotonic_ns() - start_ns) / TD_NS_PER_S;
    td_native_model_info(w->model, &backend);
    td_bench_say(w->options, "engine: on %s", backend.device);
    print(w, MAX_BATCH, "start",
          (td_bench_row){.value = start_s,
                         .unit = "s",
                         .limited = TD_BENCH_VALUE,
                         .limit = 3});
    print(
        w, MAX_BATCH, "memory",
        (td_bench_row){.value = (double)(backend.bytes >> 20), .unit = "MiB"});
    for (size_t i = 0; i < TD_COUNT_OF(sizes); i++) {
        TD_TRY(run_batch(w, i, info));
        TD_TRY(td_bench_sleep(0));
    }
    return compare(w, info);
}

td_err td_bench_engine_cuda(const td_bench_options *options, td_errinfo *info)
{
    const td_ops *ops = NULL;
    td_errinfo why = {.text = ""};
    if (td_native_cuda_library_load(&ops, &why) != TD_OK) {
        td_bench_say(options, "engine: nothing of a GPU: %s", why.text);
        return TD_OK;
    }
    world w = {.options = options};
    td_err err = run(&w, ops, info);
    world_done(&w);
    return err;
}

// SPDX-License-Identifier: Apache-2.0
// Our own engine beside LeRobot's torch, on two threads of the processor: ACT
// of full size, from a frame in memory to a chunk in memory. LeRobot makes the
// checkpoint, and says what the answer is.
#include "engine/native/native.h"

#include "base/clock.h"
#include "base/sync/event.h"
#include "base/sync/thread.h"
#include "bench/bench.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS 2
#define CHANNELS 14
#define MAX_ROWS 512
#define MOST_START_S 3
#define MOST_MEMORY 1.2
#define MOST_OFF 1e-4

typedef struct size {
    const char *name;
    uint32_t height, width;
    int rounds;   // of a block
    double least; // times as fast as LeRobot's; 0: printed alone
} size;

static const size sizes[] = {
    {"480x640", 480, 640, 10, 1.5},
    {"96x96", 96, 96, 60, 0},
};

typedef struct world {
    const td_bench_options *options;
    const size *of;
    char folder[TD_BENCH_PATH_BYTES];
    td_bench_peer peer;
    td_engine *engine;
    uint8_t *frame;
    float state[CHANNELS];
    float actions[MAX_ROWS * CHANNELS];
    td_wire_obs obs;
    td_engine_item item;
    td_engine_batch batch;
    td_event event;
    td_hist took_ns;
    double start_s, memory_bytes;
} world;

static void world_free(world *w)
{
    if (w->engine) td_engine_close(w->engine);
    td_bench_child_end(&w->peer.child);
    td_bench_folder_clear(w->folder);
    free(w->frame);
    free(w);
}
TD_AUTO_FREE(world, world_free)

static td_err read_beside(const world *w, const char *name, void *ret_data,
                          size_t bytes, td_errinfo *info)
{
    char path[TD_BENCH_PATH_BYTES + 16];
    (void)snprintf(path, sizeof path, "%s/%s", w->folder, name);
    FILE *file = fopen(path, "rbe");
    size_t got = file ? fread(ret_data, 1, bytes, file) : 0;
    if (file) (void)fclose(file);
    if (got == bytes) return TD_OK;
    return td_fail(info, TD_ERR_IO, "%s: not as expected", path);
}

static double weights_bytes(const world *w)
{
    char path[TD_BENCH_PATH_BYTES + 32];
    struct stat seen;
    (void)snprintf(path, sizeof path, "%s/model.safetensors", w->folder);
    return stat(path, &seen) == 0 ? (double)seen.st_size : 0;
}

static td_err start_peer(world *w, td_errinfo *info)
{
    char height[16], width[16], rounds[16], threads[16];
    int count = w->options->quick ? 3 : w->of->rounds;
    (void)snprintf(height, sizeof height, "%u", w->of->height);
    (void)snprintf(width, sizeof width, "%u", w->of->width);
    (void)snprintf(threads, sizeof threads, "%d", THREADS);
    (void)snprintf(rounds, sizeof rounds, "%d", count);
    TD_TRY(td_bench_file("act", w->folder, info));
    const char *args[] = {"lerobot_act.py", w->folder, height, width,
                          threads,          rounds,    NULL};
    return td_bench_peer_start(args, &w->peer, info);
}

// Private memory of this process now.
static double anonymous_bytes(void)
{
    char line[128];
    double kb = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "RssAnon:", 8) == 0) kb = strtod(line + 8, NULL);
    if (file) (void)fclose(file);
    return kb * 1024;
}

// Looks at the memory every millisecond, until it is stopped.
typedef struct watch {
    _Atomic bool stop;
    double most;
} watch;

static void watch_memory(void *user)
{
    watch *self = user;
    while (!self->stop) {
        self->most = fmax(self->most, anonymous_bytes());
        td_clock_sleep_until(td_clock_monotonic_ns() + TD_NS_PER_MS);
    }
}

static void on_done(void *user, td_engine_batch *batch)
{
    (void)batch;
    td_event_signal(user);
}

static td_err ask(world *w)
{
    TD_TRY(w->engine->ops->submit(w->engine, &w->batch, on_done, &w->event));
    (void)td_event_wait_until(&w->event, INT64_MAX);
    return w->item.status;
}

static td_err open_engine(world *w, td_errinfo *info)
{
    td_engine_native_settings *settings = calloc(1, sizeof *settings);
    if (!settings) return TD_ERR_NOMEM;
    settings->max_batch = 1;
    settings->threads = THREADS;
    const td_engine_config config = {.model_id = "act",
                                     .model_version = "v1",
                                     .pretrained_path = w->folder,
                                     .device = "cpu",
                                     .step_period_us = 33333,
                                     .settings = settings};
    td_err err = td_engine_open("native", &config, &w->engine, info);
    free(settings);
    return err;
}

static td_err open_watched(world *w, td_errinfo *info)
{
    watch memory = {.stop = false};
    td_thread *thread = NULL;
    const td_thread_config config = {.name = "td-watch", .cpu = -1};
    double before = anonymous_bytes();
    TD_TRY(td_thread_start(&config, watch_memory, &memory, &thread, info));
    int64_t start_ns = td_clock_monotonic_ns();
    td_err err = open_engine(w, info);
    if (err == TD_OK) err = ask(w);
    int64_t end_ns = td_clock_monotonic_ns();
    memory.stop = true;
    td_thread_join(thread);
    w->start_s = (double)(end_ns - start_ns) / TD_NS_PER_S;
    w->memory_bytes = memory.most - before;
    return err;
}

static td_err prepare(world *w, td_errinfo *info)
{
    size_t pixels = (size_t)w->of->height * w->of->width * 3;
    w->frame = malloc(pixels);
    if (!w->frame) return TD_ERR_NOMEM;
    TD_TRY(read_beside(w, "frame.u8", w->frame, pixels, info));
    TD_TRY(read_beside(w, "state.f32", w->state, sizeof w->state, info));
    w->obs = (td_wire_obs){
        .client = td_wire_text_of("bench"),
        .state = {.dtype = TD_WIRE_F32,
                  .rank = 1,
                  .shape = {CHANNELS},
                  .data = w->state,
                  .size = sizeof w->state},
        .images = {{.name = td_wire_text_of("top"),
                    .codec = TD_WIRE_RAW,
                    .shape = {w->of->height, w->of->width, 3},
                    .data = w->frame,
                    .size = pixels}},
        .image_count = 1,
    };
    w->item =
        (td_engine_item){.obs = &w->obs, .actions = w->actions, .info = info};
    w->batch = (td_engine_batch){.items = {&w->item}, .count = 1};
    td_event_init(&w->event);
    return TD_OK;
}

static void print(const world *w, const char *name, td_bench_row row)
{
    char label[64];
    (void)snprintf(label, sizeof label, "act/%s/cpu/%s", w->of->name, name);
    row.bench = "engine";
    row.name = label;
    td_bench_print(w->options, &row);
}

static td_err print_off(world *w, td_errinfo *info)
{
    const td_engine_spec *spec = w->engine->ops->spec(w->engine);
    size_t count = (size_t)spec->chunk_rows * spec->action_count;
    float *want = calloc(count, sizeof *want);
    double off = 0, most = 0;
    if (!want) return TD_ERR_NOMEM;
    td_err err = read_beside(w, "answer.f32", want, count * sizeof *want, info);
    for (size_t i = 0; i < count && err == TD_OK; i++) {
        off = fmax(off, fabs((double)want[i] - (double)w->actions[i]));
        most = fmax(most, fabs((double)want[i]));
    }
    free(want);
    print(w, "off",
          (td_bench_row){.value = off / most,
                         .unit = "of largest",
                         .limited = TD_BENCH_VALUE,
                         .limit = MOST_OFF});
    return err;
}

static td_err run_block(world *w, int rounds, double *ret_ms)
{
    td_hist_init(&w->took_ns);
    for (int i = 0; i < rounds; i++) {
        int64_t start_ns = td_clock_monotonic_ns();
        TD_TRY(ask(w));
        td_hist_record(&w->took_ns, td_clock_monotonic_ns() - start_ns);
    }
    *ret_ms = td_bench_quantile_us(&w->took_ns, 0.5) / 1e3;
    return TD_OK;
}

static td_err compare(world *w, td_errinfo *info)
{
    td_bench_pairs pairs = {.count = 0};
    int blocks = w->options->quick ? 3 : 9;
    int rounds = w->options->quick ? 3 : w->of->rounds;
    for (int i = 0; i < blocks; i++) {
        double ours = 0, theirs = 0;
        TD_TRY(run_block(w, rounds, &ours));
        TD_TRY(td_bench_peer_block(&w->peer, &theirs, 1, info));
        TD_TRY(td_bench_sleep(0));
        td_bench_pairs_add(&pairs, ours, theirs);
    }
    print(w, "float32/p50",
          (td_bench_row){.value = td_bench_pairs_value(&pairs),
                         .unit = "ms",
                         .against = "LeRobot's torch",
                         .ratio = td_bench_pairs_ratio(&pairs),
                         .limited = w->of->least > 0 ? TD_BENCH_RATIO
                                                     : TD_BENCH_NO_LIMIT,
                         .limit = w->of->least > 0 ? 1 / w->of->least : 0});
    return TD_OK;
}

static td_err run_size(const td_bench_options *options, const size *of,
                       td_errinfo *info)
{
    TD_AUTO(world) *w = calloc(1, sizeof *w);
    if (!w) return TD_ERR_NOMEM;
    w->options = options;
    w->of = of;
    TD_TRY(start_peer(w, info));
    TD_TRY(prepare(w, info));
    TD_TRY(open_watched(w, info));
    print(w, "start",
          (td_bench_row){.value = w->start_s,
                         .unit = "s",
                         .limited = TD_BENCH_VALUE,
                         .limit = MOST_START_S});
    print(w, "memory",
          (td_bench_row){.value = w->memory_bytes / (1 << 20),
                         .unit = "MiB",
                         .against = "the weights",
                         .ratio = w->memory_bytes / weights_bytes(w),
                         .limited = TD_BENCH_RATIO,
                         .limit = MOST_MEMORY});
    TD_TRY(print_off(w, info));
    return compare(w, info);
}

static bool is_wanted(const td_bench_options *options, const char *name)
{
    return !options->only || strstr(name, options->only);
}

td_err td_bench_engine(const td_bench_options *options, td_errinfo *info)
{
    if (!td_bench_peer_can(options, "LeRobot", "lerobot_act.py")) return TD_OK;
    for (size_t i = 0; i < TD_COUNT_OF(sizes); i++)
        if (is_wanted(options, sizes[i].name))
            TD_TRY(run_size(options, &sizes[i], info));
    return is_wanted(options, "cuda") ? td_bench_engine_cuda(options, info)
                                      : TD_OK;
}

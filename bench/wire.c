// SPDX-License-Identifier: Apache-2.0
// Messages to bytes and back beside a memcpy of the same bytes.
#include "wire/wire.h"

#include "base/clock.h"
#include "bench/bench.h"
#include "server/core/answer.h"

#include <dlfcn.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IMAGE_BYTES 50000
#define BUFFER_BYTES (256 << 10)
#define WARM_ROUNDS 200
#define MOST_US_BEYOND_MEMCPY 5

typedef struct tools {
    td_wire_encoder *encoder;
    td_wire_decoder *decoder;
    char *images[2];
    char *bytes; // an encoded message
    char *copy;
    td_wire_obs obs, obs_back;
    td_wire_action action, action_back;
    td_wire_status status, status_back;
    td_hist ours, theirs;
} tools;

static void tools_free(tools *t)
{
    if (t->encoder) td_wire_encoder_free(t->encoder);
    if (t->decoder) td_wire_decoder_free(t->decoder);
    free(t->images[0]);
    free(t->images[1]);
    free(t->bytes);
    free(t->copy);
    free(t);
}
TD_AUTO_FREE(tools, tools_free)

static const float joints[50 * 14];

static td_wire_image image_of(const char *name, const void *data)
{
    return (td_wire_image){.name = td_wire_text_of(name),
                           .codec = TD_WIRE_JPEG,
                           .data = data,
                           .size = IMAGE_BYTES};
}

static void fill_obs(tools *t)
{
    t->obs = (td_wire_obs){
        .ident = {.boot = 1700000000000, .episode = 1, .seq = 1000},
        .client = td_wire_text_of("robot-1"),
        .state = {.rank = 1,
                  .shape = {14},
                  .data = joints,
                  .size = 14 * sizeof(float)},
        .images = {image_of("top", t->images[0]),
                   image_of("wrist", t->images[1])},
        .image_count = 2,
        .task = td_wire_text_of("put the cookie in the box"),
        .cursor = 12345,
        .priority = 1,
        .has_steps_remaining = true,
        .steps_remaining = 25,
        .has_budget = true,
        .budget_us = 833333,
    };
}

static void fill_action(tools *t)
{
    td_engine_item item = {
        .obs = &t->obs, .actions = (float *)(uintptr_t)joints, .rows = 50};
    const td_server_timing timing = {.queue_ns = 1234, .service_ns = 12345};
    td_server_answer("gpu-1", &item, 14, &timing, 1000, &t->action);
}

static void fill_status(tools *t)
{
    t->status = (td_wire_status){
        .model_id = td_wire_text_of("act"),
        .model_version = td_wire_text_of("v1"),
        .server = td_wire_text_of("gpu-1"),
        .state = TD_WIRE_READY,
        .cameras = {{td_wire_text_of("top"), 480, 640},
                    {td_wire_text_of("wrist"), 480, 640}},
        .camera_count = 2,
        .action_dim = 14,
        .max_actions_per_chunk = 50,
        .action_count = 14,
        .state_count = 14,
        .step_period_us = 33333,
        .capacity = 32,
    };
    static char names[14][8];
    for (uint32_t i = 0; i < 14; i++) {
        (void)snprintf(names[i], sizeof names[i], "joint%u", i);
        t->status.actions[i].name = td_wire_text_of(names[i]);
        t->status.states[i].name = td_wire_text_of(names[i]);
    }
}

static td_err tools_new(tools **ret_tools)
{
    TD_AUTO(tools) *t = calloc(1, sizeof *t);
    if (!t) return TD_ERR_NOMEM;
    for (int i = 0; i < 2; i++) {
        t->images[i] = malloc(IMAGE_BYTES);
        if (!t->images[i]) return TD_ERR_NOMEM;
        memset(t->images[i], 42 + i, IMAGE_BYTES);
    }
    t->bytes = malloc(BUFFER_BYTES);
    t->copy = malloc(BUFFER_BYTES);
    if (!t->bytes || !t->copy) return TD_ERR_NOMEM;
    TD_TRY(td_wire_encoder_new(&t->encoder));
    TD_TRY(td_wire_decoder_new(&t->decoder));
    fill_obs(t);
    fill_action(t);
    fill_status(t);
    *ret_tools = TD_TAKE(t);
    return TD_OK;
}

// Encodes, gathers into one buffer as a transport would, and decodes that.
#define ROUND(message)                                                         \
    static td_err message##_round(tools *t, td_errinfo *info)                  \
    {                                                                          \
        TD_TRY(td_wire_##message##_encode(t->encoder, &t->message, info));     \
        td_wire_encoder_join(t->encoder, t->bytes);                            \
        return td_wire_##message##_decode(t->decoder, t->bytes,                \
                                          td_wire_encoder_size(t->encoder),    \
                                          &t->message##_back, info);           \
    }
ROUND(obs)
ROUND(action)
ROUND(status)
#undef ROUND

static td_err run_rounds(tools *t, td_err (*round)(tools *, td_errinfo *),
                         size_t rounds, td_errinfo *info)
{
    td_hist_init(&t->ours);
    td_hist_init(&t->theirs);
    for (size_t i = 0; i < WARM_ROUNDS + rounds; i++) {
        int64_t start_ns = td_clock_monotonic_ns();
        TD_TRY(round(t, info));
        int64_t middle_ns = td_clock_monotonic_ns();
        memcpy(t->copy, t->bytes, td_wire_encoder_size(t->encoder));
        int64_t end_ns = td_clock_monotonic_ns();
        if (i < WARM_ROUNDS) continue;
        td_hist_record(&t->ours, middle_ns - start_ns);
        td_hist_record(&t->theirs, end_ns - middle_ns);
    }
    return td_bench_sleep(0);
}

static void print_round(const td_bench_options *options, const tools *t,
                        const char *name)
{
    double ours_us = td_bench_quantile_us(&t->ours, 0.5);
    const td_bench_row row = {
        .bench = "wire",
        .name = name,
        .value = ours_us,
        .unit = "us",
        .against = "memcpy",
        .ratio = ours_us / td_bench_quantile_us(&t->theirs, 0.5),
    };
    td_bench_print(options, &row);
}

static void print_beyond(const td_bench_options *options, const tools *t)
{
    const td_bench_row row = {
        .bench = "wire",
        .name = "obs/100k/beyond-memcpy/p50",
        .value = td_bench_quantile_us(&t->ours, 0.5) -
                 td_bench_quantile_us(&t->theirs, 0.5),
        .unit = "us",
        .limited = TD_BENCH_VALUE,
        .limit = MOST_US_BEYOND_MEMCPY,
    };
    td_bench_print(options, &row);
}

// Counts how often this thread enters a function, by a hardware breakpoint: it
// sees every caller, msgpack-c's too, and changes nothing. -1 where the system
// does not permit it.
static int watch_calls(const char *function)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_BREAKPOINT,
        .size = sizeof attr,
        .bp_type = HW_BREAKPOINT_X,
        .bp_addr = (uintptr_t)dlsym(RTLD_DEFAULT, function),
        .bp_len = sizeof(long),
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static const char *const allocators[] = {"malloc", "calloc", "realloc",
                                         "aligned_alloc"};
#define ALLOCATORS TD_COUNT_OF(allocators)

static uint64_t calls_so_far(const int counters[ALLOCATORS])
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ALLOCATORS; i++) {
        uint64_t calls;
        if (counters[i] >= 0 && read(counters[i], &calls, sizeof calls) > 0)
            sum += calls;
    }
    return sum;
}

// The counters are trusted only if they see an allocation that is known.
static bool can_count(const int counters[ALLOCATORS])
{
    uint64_t before = calls_so_far(counters);
    void *volatile known = malloc(1);
    free(known);
    return calls_so_far(counters) == before + 1;
}

static td_err print_allocations(const td_bench_options *options, tools *t,
                                size_t rounds, td_errinfo *info)
{
    int counters[ALLOCATORS];
    TD_TRY(obs_round(t, info));
    for (size_t i = 0; i < ALLOCATORS; i++)
        counters[i] = watch_calls(allocators[i]);
    bool counted = can_count(counters);
    uint64_t before = calls_so_far(counters);
    td_err err = TD_OK;
    for (size_t i = 0; err == TD_OK && i < rounds; i++)
        err = td_wire_obs_decode(t->decoder, t->bytes,
                                 td_wire_encoder_size(t->encoder), &t->obs_back,
                                 info);
    uint64_t calls = calls_so_far(counters) - before;
    for (size_t i = 0; i < ALLOCATORS; i++)
        if (counters[i] >= 0) (void)close(counters[i]);
    TD_TRY(err);
    const td_bench_row row = {
        .bench = "wire",
        .name = "obs/100k/decode/allocations",
        .value = (double)calls,
        .unit = "calls",
        .limited = TD_BENCH_VALUE,
    };
    if (counted)
        td_bench_print(options, &row);
    else
        (void)fprintf(stderr, "wire: allocations not counted: perf events are "
                              "not permitted (kernel.perf_event_paranoid)\n");
    return TD_OK;
}

td_err td_bench_wire(const td_bench_options *options, td_errinfo *info)
{
    size_t rounds = options->quick ? 2000 : 50000;
    TD_AUTO(tools) *t = NULL;
    TD_TRY(tools_new(&t));
    td_bench_progress("wire: %zu rounds of each message", rounds);
    TD_TRY(run_rounds(t, obs_round, rounds, info));
    print_round(options, t, "obs/100k/encode-decode/p50");
    print_beyond(options, t);
    TD_TRY(print_allocations(options, t, rounds, info));
    TD_TRY(run_rounds(t, action_round, rounds, info));
    print_round(options, t, "action/50x14/encode-decode/p50");
    TD_TRY(run_rounds(t, status_round, rounds, info));
    print_round(options, t, "status/encode-decode/p50");
    return TD_OK;
}

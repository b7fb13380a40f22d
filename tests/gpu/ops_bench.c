// SPDX-License-Identifier: Apache-2.0
// How long operations take at the sizes of SmolVLA, pi0 and pi0.5, on a GPU:
//
//   ops_bench [NAME]
//
// Each operation is added several times to one graph, with weights of its own
// each time, so that they come from memory; a row says what one takes, in
// microseconds, and what that is of operations and bytes. NAME: only rows that
// begin so.
#include "base/err.h"
#include "engine/native/cuda/library.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RUNS 30
#define FRESH_BYTES 400e6 // of weights in a graph: more than the cache
#define MOST_TIMES 40

typedef enum kind { LINEAR, GATED, RESIDUAL, ATTENTION, NORM, TOKEN } kind;

typedef struct row {
    const char *name;
    kind kind;
    uint32_t batch, rows;
    uint32_t in, out;                   // of a linear or a norm
    uint32_t keys, heads, shared, size; // of attention; and heads that turn
} row;

static const row table[] = {
    {"smolvla/vision/qkv", LINEAR, 2, 1024, 768, 2304, 0, 0, 0, 0},
    {"smolvla/vision/out", RESIDUAL, 2, 1024, 768, 768, 0, 0, 0, 0},
    {"smolvla/vision/up", LINEAR, 2, 1024, 768, 3072, 0, 0, 0, 0},
    {"smolvla/vision/down", RESIDUAL, 2, 1024, 3072, 768, 0, 0, 0, 0},
    {"smolvla/vision/attention", ATTENTION, 2, 1024, 0, 0, 1024, 12, 12, 64},
    {"smolvla/vision/norm", NORM, 2, 1024, 0, 768, 0, 0, 0, 0},
    {"smolvla/join", LINEAR, 2, 64, 12288, 960, 0, 0, 0, 0},
    {"smolvla/prefix/qkv", LINEAR, 1, 177, 960, 1600, 0, 0, 0, 64},
    {"smolvla/prefix/out", RESIDUAL, 1, 177, 960, 960, 0, 0, 0, 0},
    {"smolvla/prefix/up", GATED, 1, 177, 960, 2560, 0, 0, 0, 0},
    {"smolvla/prefix/down", RESIDUAL, 1, 177, 2560, 960, 0, 0, 0, 0},
    {"smolvla/prefix/attention", ATTENTION, 1, 177, 0, 0, 177, 15, 5, 64},
    {"smolvla/expert/in", TOKEN, 1, 50, 32, 720, 0, 0, 0, 0},
    {"smolvla/expert/qkv", LINEAR, 1, 50, 720, 1600, 0, 0, 0, 64},
    {"smolvla/expert/q", LINEAR, 1, 50, 720, 960, 0, 0, 0, 64},
    {"smolvla/expert/out", RESIDUAL, 1, 50, 960, 720, 0, 0, 0, 0},
    {"smolvla/expert/up", GATED, 1, 50, 720, 2048, 0, 0, 0, 0},
    {"smolvla/expert/down", RESIDUAL, 1, 50, 2048, 720, 0, 0, 0, 0},
    {"smolvla/expert/attention", ATTENTION, 1, 50, 0, 0, 227, 15, 5, 64},
    {"smolvla/expert/norm", NORM, 1, 50, 0, 720, 0, 0, 0, 0},
    {"smolvla/expert4/qkv", LINEAR, 4, 50, 720, 1600, 0, 0, 0, 64},
    {"smolvla/expert4/up", GATED, 4, 50, 720, 2048, 0, 0, 0, 0},
    {"smolvla/expert4/down", RESIDUAL, 4, 50, 2048, 720, 0, 0, 0, 0},
    {"smolvla/expert4/attention", ATTENTION, 4, 50, 0, 0, 227, 15, 5, 64},
    {"pi0/vision/qkv", LINEAR, 3, 256, 1152, 3456, 0, 0, 0, 0},
    {"pi0/vision/out", RESIDUAL, 3, 256, 1152, 1152, 0, 0, 0, 0},
    {"pi0/vision/up", LINEAR, 3, 256, 1152, 4304, 0, 0, 0, 0},
    {"pi0/vision/down", RESIDUAL, 3, 256, 4304, 1152, 0, 0, 0, 0},
    {"pi0/vision/attention", ATTENTION, 3, 256, 0, 0, 256, 16, 16, 72},
    {"pi0/vision/norm", NORM, 3, 256, 0, 1152, 0, 0, 0, 0},
    {"pi0/prefix/qkv", LINEAR, 1, 816, 2048, 2560, 0, 0, 0, 256},
    {"pi0/prefix/out", RESIDUAL, 1, 816, 2048, 2048, 0, 0, 0, 0},
    {"pi0/prefix/up", GATED, 1, 816, 2048, 16384, 0, 0, 0, 0},
    {"pi0/prefix/down", RESIDUAL, 1, 816, 16384, 2048, 0, 0, 0, 0},
    {"pi0/prefix/attention", ATTENTION, 1, 816, 0, 0, 816, 8, 1, 256},
    {"pi0/prefix/norm", NORM, 1, 816, 0, 2048, 0, 0, 0, 0},
    {"pi0/prefix4/qkv", LINEAR, 4, 816, 2048, 2560, 0, 0, 0, 256},
    {"pi0/prefix4/up", GATED, 4, 816, 2048, 16384, 0, 0, 0, 0},
    {"pi0/prefix4/down", RESIDUAL, 4, 816, 16384, 2048, 0, 0, 0, 0},
    {"pi0/prefix4/attention", ATTENTION, 4, 816, 0, 0, 816, 8, 1, 256},
    {"pi0/expert/qkv", LINEAR, 1, 51, 1024, 2560, 0, 0, 0, 256},
    {"pi0/expert/out", RESIDUAL, 1, 51, 2048, 1024, 0, 0, 0, 0},
    {"pi0/expert/up", GATED, 1, 51, 1024, 4096, 0, 0, 0, 0},
    {"pi0/expert/down", RESIDUAL, 1, 51, 4096, 1024, 0, 0, 0, 0},
    {"pi0/expert/attention", ATTENTION, 1, 51, 0, 0, 867, 8, 1, 256},
    {"pi0/expert/norm", NORM, 1, 51, 0, 1024, 0, 0, 0, 0},
    {"pi0/expert4/qkv", LINEAR, 4, 51, 1024, 2560, 0, 0, 0, 256},
    {"pi0/expert4/up", GATED, 4, 51, 1024, 4096, 0, 0, 0, 0},
    {"pi0/expert4/down", RESIDUAL, 4, 51, 4096, 1024, 0, 0, 0, 0},
    {"pi0/expert4/attention", ATTENTION, 4, 51, 0, 0, 867, 8, 1, 256},
    {"pi05/prefix/up", GATED, 1, 968, 2048, 16384, 0, 0, 0, 0},
    {"pi05/prefix/down", RESIDUAL, 1, 968, 16384, 2048, 0, 0, 0, 0},
    {"pi05/prefix/attention", ATTENTION, 1, 968, 0, 0, 968, 8, 1, 256},
    {"act/qkv", LINEAR, 1, 302, 512, 1536, 0, 0, 0, 0},
    {"act/out", RESIDUAL, 1, 302, 512, 512, 0, 0, 0, 0},
    {"act/up", LINEAR, 1, 302, 512, 3200, 0, 0, 0, 0},
    {"act/down", RESIDUAL, 1, 302, 3200, 512, 0, 0, 0, 0},
    {"act/attention", ATTENTION, 1, 302, 0, 0, 302, 8, 8, 64},
    {"act16/up", LINEAR, 16, 302, 512, 3200, 0, 0, 0, 0},
    {"act16/down", RESIDUAL, 16, 302, 3200, 512, 0, 0, 0, 0},
};

typedef struct world {
    const td_ops *ops;
    td_ops_backend *backend;
    float *numbers; // as many as the largest weight or input has
    td_ops_view angles, positions;
    td_errinfo info;
} world;

static td_err room(world *w, uint32_t batch, uint32_t rows, uint32_t cols,
                   td_ops_dtype dtype, td_ops_view *ret_view)
{
    void *data = NULL;
    size_t bytes = (size_t)batch * rows * cols * td_ops_bytes(dtype);
    TD_TRY(w->ops->alloc(w->backend, bytes, &data, &w->info));
    *ret_view = td_ops_dense(data, dtype, batch, rows, cols);
    return dtype == TD_OPS_U32
               ? TD_OK
               : w->ops->upload(w->backend, ret_view, w->numbers, &w->info);
}

static double bytes_of(const row *of)
{
    double columns = of->kind == GATED ? 2.0 * of->out : of->out;
    if (of->kind == ATTENTION || of->kind == NORM) return 0;
    return columns * of->in * 2;
}

static double operations_of(const row *of)
{
    double rows = (double)of->batch * of->rows;
    if (of->kind == ATTENTION)
        return 4 * rows * of->keys * of->heads * of->size;
    return rows * bytes_of(of);
}

static td_err add_weight(world *w, const row *of,
                         td_ops_linear_weight **ret_weight)
{
    td_ops_linear_source from = {.weight = {w->numbers, TD_OPS_F32},
                                 .in = of->in,
                                 .out = of->out,
                                 .gated = of->kind == GATED};
    if (from.gated)
        from.more[0] = (td_ops_linear_part){.weight = {w->numbers, TD_OPS_F32},
                                            .out = of->out};
    return w->ops->linear_weight(w->backend, &from, ret_weight, &w->info);
}

static td_err build_linears(world *w, const row *of, uint32_t times)
{
    td_ops_linear_weight *weights[MOST_TIMES];
    td_ops_linear op = {0};
    for (uint32_t i = 0; i < times; i++)
        TD_TRY(add_weight(w, of, &weights[i]));
    TD_TRY(room(w, of->batch, of->rows, of->in,
                of->kind == TOKEN ? TD_OPS_F32 : TD_OPS_BF16, &op.x));
    TD_TRY(room(w, of->batch, of->rows, of->out, TD_OPS_BF16, &op.out));
    if (of->kind == RESIDUAL) op.add = op.out;
    if (of->kind == GATED) op.activation = TD_OPS_GELU_TANH;
    if (of->size)
        op.rotary = (td_ops_rotary){
            td_ops_shared(
                td_ops_cols(td_ops_rows(w->angles, 0, of->rows), 0, of->size),
                of->batch),
            td_ops_shared(td_ops_rows(w->positions, 0, of->rows), of->batch),
            of->out / 2 / of->size * of->size, of->size};
    TD_TRY(w->ops->begin(w->backend, &w->info));
    for (uint32_t i = 0; i < times; i++) {
        op.weight = weights[i];
        TD_TRY(w->ops->linear(w->backend, &op, &w->info));
    }
    return TD_OK;
}

static td_err build_attentions(world *w, const row *of, uint32_t times)
{
    td_ops_attention op = {.heads = of->heads,
                           .kv_heads = of->shared,
                           .scale = 1 / sqrtf((float)of->size)};
    uint32_t cols = of->heads * of->size, shared = of->shared * of->size;
    TD_TRY(room(w, of->batch, of->rows, cols, TD_OPS_BF16, &op.q));
    TD_TRY(room(w, of->batch, of->rows, cols, TD_OPS_BF16, &op.out));
    TD_TRY(room(w, of->batch, of->keys, shared, TD_OPS_BF16, &op.k));
    TD_TRY(room(w, of->batch, of->keys, shared, TD_OPS_BF16, &op.v));
    TD_TRY(w->ops->begin(w->backend, &w->info));
    for (uint32_t i = 0; i < times; i++)
        TD_TRY(w->ops->attention(w->backend, &op, &w->info));
    return TD_OK;
}

static td_err build_norms(world *w, const row *of, uint32_t times)
{
    td_ops_norm *norm = NULL;
    td_ops_view x, out;
    const td_ops_norm_source from = {.weight = {w->numbers, TD_OPS_F32},
                                     .cols = of->out,
                                     .epsilon = 1e-6f,
                                     .kind = TD_OPS_RMS_NORM};
    TD_TRY(w->ops->norm_weight(w->backend, &from, &norm, &w->info));
    TD_TRY(room(w, of->batch, of->rows, of->out, TD_OPS_BF16, &x));
    TD_TRY(room(w, of->batch, of->rows, of->out, TD_OPS_BF16, &out));
    TD_TRY(w->ops->begin(w->backend, &w->info));
    for (uint32_t i = 0; i < times; i++)
        TD_TRY(w->ops->norm(w->backend, norm, &x, &out, &w->info));
    return TD_OK;
}

static double now_us(void)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e6 + (double)at.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The median of several runs.
static td_err take_time(world *w, td_ops_graph *graph, double *ret_us)
{
    double times[RUNS];
    for (int i = -5; i < RUNS; i++) {
        double begin = now_us();
        TD_TRY(w->ops->run(w->backend, graph, &w->info));
        if (i >= 0) times[i] = now_us() - begin;
    }
    qsort(times, RUNS, sizeof *times, by_size);
    *ret_us = times[RUNS / 2];
    return TD_OK;
}

static td_err prepare(world *w)
{
    const td_ops_config config = {.precision = TD_OPS_BF16, .threads = 1};
    td_ops_view table_of_angles;
    TD_TRY(w->ops->open(&config, &w->backend, &w->info));
    TD_TRY(room(w, 1, 1024, 256, TD_OPS_F32, &table_of_angles));
    w->angles = table_of_angles;
    return room(w, 1, 1024, 1, TD_OPS_U32, &w->positions);
}

static td_err measure(world *w, const row *of)
{
    td_ops_graph *graph = NULL, *empty = NULL;
    uint32_t times = MOST_TIMES;
    double all = 0, none = 0;
    if (bytes_of(of) * times > FRESH_BYTES)
        times = (uint32_t)fmax(4, FRESH_BYTES / bytes_of(of));
    TD_TRY(prepare(w));
    TD_TRY(w->ops->begin(w->backend, &w->info));
    TD_TRY(w->ops->end(w->backend, &empty, &w->info));
    if (of->kind == ATTENTION)
        TD_TRY(build_attentions(w, of, times));
    else if (of->kind == NORM)
        TD_TRY(build_norms(w, of, times));
    else
        TD_TRY(build_linears(w, of, times));
    TD_TRY(w->ops->end(w->backend, &graph, &w->info));
    TD_TRY(take_time(w, empty, &none));
    TD_TRY(take_time(w, graph, &all));
    double us = (all - none) / times;
    (void)printf("%-28s %8.2f us %7.1f TFLOP/s %7.1f GB/s\n", of->name, us,
                 operations_of(of) / us / 1e6, bytes_of(of) / us / 1e3);
    (void)fflush(stdout);
    return TD_OK;
}

static float *random_numbers(size_t count)
{
    uint32_t state = 1;
    float *numbers = malloc(count * sizeof *numbers);
    if (!numbers) abort();
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        numbers[i] = ((float)(state >> 8) / (float)(1 << 23) - 1) / 32;
    }
    return numbers;
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    world w = {.numbers = random_numbers((size_t)1 << 26)};
    td_err err = td_native_cuda_library_load(&w.ops, &w.info);
    for (size_t i = 0; i < TD_COUNT_OF(table) && err == TD_OK; i++) {
        if (strncmp(table[i].name, only, strlen(only)) != 0) continue;
        w.backend = NULL;
        err = measure(&w, &table[i]);
        if (w.backend) w.ops->close(w.backend);
    }
    if (err != TD_OK) (void)printf("%s: %s\n", td_err_text(err), w.info.text);
    free(w.numbers);
    return err != TD_OK;
}

// SPDX-License-Identifier: Apache-2.0
// The CUDA backend, where there is a GPU; elsewhere skipped (77).
#include "base/err.h"
#include "engine/native/act/act_cases.h"
#include "engine/native/cuda/library.h"
#include "engine/native/flow/flow_cases.h"
#include "engine/native/ops/ops_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SKIPPED 77
#define ACT_TOLERANCE 0.03  // of the largest value: bf16
#define FLOW_TOLERANCE 0.05 // the same, after all steps of a denoising

static const td_ops_config config = {.precision = TD_OPS_BF16, .threads = 1};
static const td_ops *ops;

static int open_backend(void **state)
{
    td_errinfo info = {.text = ""};
    td_ops_backend *backend = NULL;
    if (ops->open(&config, &backend, &info) != TD_OK) return -1;
    *state = backend;
    return 0;
}

static int close_backend(void **state)
{
    ops->close(*state);
    return 0;
}

static void operations_agree_with_pytorch(void **state)
{
    (void)state;
    assert_int_equal(td_ops_cases(ops, &config, 0.02), 0);
}

static void no_memory_is_said_and_the_rest_goes_on(void **state)
{
    td_errinfo info = {.text = ""};
    void *data = NULL;
    assert_int_equal(ops->alloc(*state, (size_t)1 << 46, &data, &info),
                     TD_ERR_NOMEM);
    assert_null(data);
    print_message("%s\n", info.text);
    assert_non_null(strstr(info.text, "allocating 67108864 MiB after"));
    assert_non_null(strstr(info.text, "MiB are free"));
    assert_int_equal(ops->alloc(*state, 1024, &data, &info), TD_OK);
}

// Numbers go through the device and come back.
static td_err build_copy(td_ops_backend *backend, const td_ops_io *io,
                         td_ops_graph **ret_graph, td_errinfo *info)
{
    TD_TRY(ops->begin(backend, info));
    TD_TRY(ops->copy_in(backend, io, 64, info));
    TD_TRY(ops->copy_out(backend, io, 64, info));
    return ops->end(backend, ret_graph, info);
}

static void graph_that_failed_leaves_room_for_the_next(void **state)
{
    td_errinfo info = {.text = ""};
    td_ops_io io = {NULL, NULL};
    td_ops_norm *norm = NULL;
    td_ops_graph *graph = NULL;
    float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const td_ops_norm_source source = {.weight = {ones, TD_OPS_F32},
                                       .bias = {ones, TD_OPS_F32},
                                       .cols = 8,
                                       .epsilon = 1e-5f};
    assert_int_equal(ops->alloc_io(*state, 64, &io, &info), TD_OK);
    assert_int_equal(ops->norm_weight(*state, &source, &norm, &info), TD_OK);
    const td_ops_view wide = td_ops_dense(io.device, TD_OPS_BF16, 1, 1, 16);
    assert_int_equal(ops->begin(*state, &info), TD_OK);
    assert_int_equal(ops->norm(*state, norm, &wide, &wide, &info),
                     TD_ERR_INVALID);
    assert_int_equal(build_copy(*state, &io, &graph, &info), TD_OK);
    memset(io.host, 7, 64);
    assert_int_equal(ops->run(*state, graph, &info), TD_OK);
    assert_int_equal(((const uint8_t *)io.host)[63], 7);
}

// A linear at a size that takes large tiles, and the same of a few of its rows.
typedef struct large_case {
    const char *name;
    uint32_t batch, rows, out, size; // of heads that are turned
    bool gated;
} large_case;

static const large_case large_cases[] = {
    {"a tile alone", 1, 900, 1024, 0, false},
    {"batches that are apart", 3, 300, 1024, 64, false},
    {"two tiles with the same columns", 1, 2048, 4096, 256, false},
    {"two tiles with the same rows", 1, 816, 8192, 64, false},
    {"gated", 1, 816, 4096, 0, true},
    {"gated, two with the same columns", 1, 1024, 4104, 0, true},
};

#define LARGE_IN 1000
#define LARGE_NUMBERS ((size_t)9 << 20)
#define FEW_ROWS 5

typedef struct large_world {
    td_ops_backend *backend;
    td_ops_linear op;
    td_ops_io out;
    float *numbers;
} large_world;

static float *make_numbers(size_t count)
{
    uint32_t state = 7;
    float *numbers = malloc(count * sizeof *numbers);
    assert_non_null(numbers);
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        numbers[i] = (float)(state >> 8) / (float)(1 << 23) - 1;
    }
    return numbers;
}

static td_ops_view large_room(const large_world *w, td_ops_dtype dtype,
                              uint32_t batch, uint32_t rows, uint32_t cols)
{
    void *data = NULL;
    td_ops_view view = td_ops_dense(NULL, dtype, batch, rows, cols);
    if (batch > 1) view.batch_stride += 8; // apart
    assert_int_equal(ops->alloc(w->backend,
                                batch * view.batch_stride * td_ops_bytes(dtype),
                                &data, NULL),
                     TD_OK);
    view.data = data;
    if (dtype != TD_OPS_U32)
        assert_int_equal(ops->upload(w->backend, &view, w->numbers, NULL),
                         TD_OK);
    return view;
}

static void make_large(large_world *w, const large_case *of)
{
    td_ops_linear_weight *weight = NULL;
    const td_ops_linear_part second = {.weight = {w->numbers + 11, TD_OPS_F32},
                                       .out = of->out};
    td_ops_linear_source from = {.weight = {w->numbers, TD_OPS_F32},
                                 .bias = {w->numbers, TD_OPS_F32},
                                 .in = LARGE_IN,
                                 .out = of->out,
                                 .gated = of->gated};
    if (of->gated) from.more[0] = second;
    assert_int_equal(ops->linear_weight(w->backend, &from, &weight, NULL),
                     TD_OK);
    w->op.weight = weight;
    w->op.activation = TD_OPS_SILU;
    w->op.x = large_room(w, TD_OPS_BF16, of->batch, of->rows, LARGE_IN);
    if (!of->gated)
        w->op.add = large_room(w, TD_OPS_BF16, of->batch, of->rows, of->out);
    if (of->size) {
        w->op.rotary.table = large_room(w, TD_OPS_F32, 1, 1, of->size);
        w->op.rotary.positions =
            td_ops_shared(large_room(w, TD_OPS_U32, 1, of->rows, 1), of->batch);
        w->op.rotary.cols = of->out / 2;
        w->op.rotary.size = of->size;
    }
    assert_int_equal(
        ops->alloc_io(w->backend,
                      sizeof(float) * of->batch * of->rows * of->out, &w->out,
                      NULL),
        TD_OK);
}

// Some rows of the first members, as an operation of their own.
static void run_rows(const large_world *w, uint32_t batch, uint32_t first,
                     uint32_t rows, uint32_t out)
{
    td_ops_graph *graph = NULL;
    td_ops_linear op = w->op;
    td_ops_view *const views[] = {&op.x, &op.add, &op.rotary.positions};
    for (size_t i = 0; i < TD_COUNT_OF(views); i++)
        if (views[i]->data) {
            *views[i] = td_ops_rows(*views[i], first, rows);
            views[i]->batch = batch;
        }
    op.out = td_ops_dense(w->out.device, TD_OPS_F32, batch, rows, out);
    assert_int_equal(ops->begin(w->backend, NULL), TD_OK);
    assert_int_equal(ops->linear(w->backend, &op, NULL), TD_OK);
    assert_int_equal(ops->copy_out(w->backend, &w->out,
                                   sizeof(float) * batch * rows * out, NULL),
                     TD_OK);
    assert_int_equal(ops->end(w->backend, &graph, NULL), TD_OK);
    assert_int_equal(ops->run(w->backend, graph, NULL), TD_OK);
}

static void check_rows(const large_world *w, const large_case *of,
                       const float *all, uint32_t first)
{
    const float *got = w->out.host;
    float most = 0, off = 0;
    run_rows(w, 1, first, FEW_ROWS, of->out);
    for (size_t i = 0; i < (size_t)FEW_ROWS * of->out; i++) {
        float want = all[(size_t)first * of->out + i];
        most = fmaxf(most, fabsf(want));
        off = fmaxf(off, fabsf(got[i] - want));
    }
    if (off > 1e-4f * most || most == 0)
        fail_msg("%s: rows from %u are off by %g of %g", of->name, first,
                 (double)off, (double)most);
}

static void large_results_are_those_of_few_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(large_cases); i++) {
        const large_case *of = &large_cases[i];
        size_t count = (size_t)of->batch * of->rows * of->out;
        large_world w = {.numbers = make_numbers(LARGE_NUMBERS)};
        assert_int_equal(ops->open(&config, &w.backend, NULL), TD_OK);
        make_large(&w, of);
        run_rows(&w, of->batch, 0, of->rows, of->out);
        float *all = malloc(count * sizeof *all);
        assert_non_null(all);
        memcpy(all, w.out.host, count * sizeof *all);
        for (uint32_t first = 0; first + FEW_ROWS <= of->rows; first += 97)
            check_rows(&w, of, all, first);
        check_rows(&w, of, all, of->rows - FEW_ROWS);
        free(all);
        free(w.numbers);
        ops->close(w.backend);
    }
}

static bool has_gpu(void)
{
    td_errinfo info = {.text = ""};
    void *backend = NULL;
    if (td_native_cuda_library_load(&ops, &info) == TD_OK &&
        ops->open(&config, (td_ops_backend **)&backend, &info) == TD_OK) {
        ops->close(backend);
        return true;
    }
    (void)printf("skipped: %s\n", info.text);
    return false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_agree_with_pytorch),
        cmocka_unit_test(large_results_are_those_of_few_rows),
        cmocka_unit_test_setup_teardown(no_memory_is_said_and_the_rest_goes_on,
                                        open_backend, close_backend),
        cmocka_unit_test_setup_teardown(
            graph_that_failed_leaves_room_for_the_next, open_backend,
            close_backend),
    };
    if (!has_gpu()) return SKIPPED;
    const td_native_act_backend backend = {
        .ops = ops, .config = config, .tolerance = ACT_TOLERANCE};
    const td_native_flow_backend flow = {
        .ops = ops, .config = config, .tolerance = FLOW_TOLERANCE};
    return cmocka_run_group_tests(tests, NULL, NULL) +
           td_native_act_cases(&backend) +
           td_native_flow_cases(&flow, "smolvla") +
           td_native_flow_cases(&flow, "pi0") +
           td_native_flow_cases(&flow, "pi05");
}

// SPDX-License-Identifier: Apache-2.0
// The CUDA backend, where there is a GPU; elsewhere skipped (77).
#include "base/err.h"
#include "engine/native/act/act_cases.h"
#include "engine/native/cuda/library.h"
#include "engine/native/ops/ops_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SKIPPED 77
#define ACT_TOLERANCE 0.03 // of the largest value: bf16

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
        cmocka_unit_test_setup_teardown(no_memory_is_said_and_the_rest_goes_on,
                                        open_backend, close_backend),
        cmocka_unit_test_setup_teardown(
            graph_that_failed_leaves_room_for_the_next, open_backend,
            close_backend),
    };
    if (!has_gpu()) return SKIPPED;
    const td_native_act_backend backend = {
        .ops = ops, .config = config, .tolerance = ACT_TOLERANCE};
    return cmocka_run_group_tests(tests, NULL, NULL) +
           td_native_act_cases(&backend);
}

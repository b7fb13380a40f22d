// SPDX-License-Identifier: Apache-2.0
// The operations of the processor's backend.
#include "engine/native/ops/ops_cases.h"

#include "base/err.h"
#include "engine/native/cpu/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define TOLERANCE 1e-5 // of float32, with tiles of Winograd's
#define MOST_KERNELS 8

static const td_native_cpu_kernel *kernel;

static td_err open_with_kernel(const td_ops_config *config,
                               td_ops_backend **ret_backend, td_errinfo *info)
{
    return td_native_cpu_backend_open(kernel, config, ret_backend, info);
}

static void answers_are_those_of_pytorch(void **state)
{
    (void)state;
    const td_native_cpu_kernel *kernels[MOST_KERNELS];
    size_t count = td_native_cpu_kernel_all(kernels, MOST_KERNELS - 1);
    kernels[count++] = &td_native_cpu_kernel_wide;
    for (size_t i = 0; i < count; i++)
        for (uint32_t threads = 1; threads <= 3; threads += 2) {
            const td_ops_config config = {.threads = threads};
            td_ops ops = td_ops_cpu;
            ops.name = kernels[i]->name;
            ops.open = open_with_kernel;
            kernel = kernels[i];
            assert_int_equal(td_ops_cases(&ops, &config, TOLERANCE), 0);
        }
}

// 1.5 and -2, as a checkpoint may hold them.
static void weights_may_have_any_float(void **state)
{
    (void)state;
    static const float single[2] = {1.5f, -2};
    static const uint16_t half[2] = {0x3e00, 0xc000};
    static const uint16_t brain[2] = {0x3fc0, 0xc000};
    static const td_ops_source sources[] = {
        {single, TD_OPS_F32}, {half, TD_OPS_F16}, {brain, TD_OPS_BF16}};
    const td_ops_config config = {.threads = 1};
    for (size_t i = 0; i < TD_COUNT_OF(sources); i++) {
        const td_ops_linear_source source = {
            .weight = sources[i], .bias = sources[i], .in = 1, .out = 2};
        td_ops_backend *backend = NULL;
        td_ops_linear_weight *weight = NULL;
        td_ops_graph *graph = NULL;
        td_ops_io io = {0};
        assert_int_equal(td_ops_cpu.open(&config, &backend, NULL), TD_OK);
        assert_int_equal(
            td_ops_cpu.linear_weight(backend, &source, &weight, NULL), TD_OK);
        assert_int_equal(td_ops_cpu.alloc_io(backend, 64, &io, NULL), TD_OK);
        float *values = io.host;
        values[0] = 3;
        const td_ops_linear op = {
            .weight = weight,
            .x = td_ops_dense(values, TD_OPS_F32, 1, 1, 1),
            .out = td_ops_dense(values + 1, TD_OPS_F32, 1, 1, 2)};
        assert_int_equal(td_ops_cpu.begin(backend, NULL), TD_OK);
        assert_int_equal(td_ops_cpu.linear(backend, &op, NULL), TD_OK);
        assert_int_equal(td_ops_cpu.end(backend, &graph, NULL), TD_OK);
        assert_int_equal(td_ops_cpu.run(backend, graph, NULL), TD_OK);
        assert_true(values[1] == 6 && values[2] == -8);
        td_ops_cpu.close(backend);
    }
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        td_ops_config config;
        td_err err;
    } cases[] = {
        {"bfloat16",
         {.precision = TD_OPS_BF16, .threads = 1},
         TD_ERR_UNSUPPORTED},
        {"no thread", {.threads = 0}, TD_ERR_INVALID},
        {"too many", {.threads = 1000}, TD_ERR_INVALID},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_ops_backend *backend = NULL;
        td_errinfo info = {.text = ""};
        assert_int_equal(td_ops_cpu.open(&cases[i].config, &backend, &info),
                         cases[i].err);
        assert_true(info.text[0] != '\0');
    }
}

static void operations_want_a_program(void **state)
{
    (void)state;
    const td_ops_config config = {.threads = 1};
    const float one[4] = {1, 0, 0, 1};
    const td_ops_linear_source source = {
        .weight = {one, TD_OPS_F32}, .in = 2, .out = 2};
    td_ops_backend *backend = NULL;
    td_ops_linear_weight *weight = NULL;
    td_ops_graph *graph = NULL;
    void *data = NULL;
    assert_int_equal(td_ops_cpu.open(&config, &backend, NULL), TD_OK);
    assert_int_equal(td_ops_cpu.linear_weight(backend, &source, &weight, NULL),
                     TD_OK);
    assert_int_equal(td_ops_cpu.alloc(backend, 64, &data, NULL), TD_OK);
    td_ops_linear op = {.weight = weight,
                        .x = td_ops_dense(data, TD_OPS_F32, 1, 1, 2),
                        .out = td_ops_dense(data, TD_OPS_F32, 1, 1, 2)};
    assert_int_equal(td_ops_cpu.linear(backend, &op, NULL), TD_ERR_INVALID);
    assert_int_equal(td_ops_cpu.end(backend, &graph, NULL), TD_ERR_INVALID);
    assert_int_equal(td_ops_cpu.begin(backend, NULL), TD_OK);
    assert_int_equal(td_ops_cpu.begin(backend, NULL), TD_ERR_INVALID);
    op.x.cols = 3;
    assert_int_equal(td_ops_cpu.linear(backend, &op, NULL), TD_ERR_INVALID);
    assert_int_equal(td_ops_cpu.end(backend, &graph, NULL), TD_OK);
    td_ops_cpu.close(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_those_of_pytorch),
        cmocka_unit_test(weights_may_have_any_float),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(operations_want_a_program),
    };
    return cmocka_run_group_tests_name("ops", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// The AVX-512 loops against the plain ones, and their backend against PyTorch,
// on a processor that has them; elsewhere skipped (77).
#include "engine/native/cpu/backend.h"

#include "base/err.h"
#include "engine/native/ops/hashed.h"
#include "engine/native/ops/ops_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SKIPPED 77
#define MOST_KERNELS 8
#define TOLERANCE 1e-5
#define ROWS 13
#define DEPTH 96
#define COLS TD_NATIVE_CPU_MAX_PANEL
#define CELLS 36 // of the largest tile

static const td_native_cpu_kernel *fast, *plain;

static bool find_kernels(void)
{
    const td_native_cpu_kernel *kernels[MOST_KERNELS];
    size_t count = td_native_cpu_kernel_all(kernels, MOST_KERNELS);
    fast = kernels[0];
    plain = kernels[count - 1];
    return !strcmp(fast->name, "AVX-512") && !strcmp(plain->name, "plain");
}

static void assert_near(const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_true(fabsf(a[i] - b[i]) <= TOLERANCE * fmaxf(1, fabsf(b[i])));
}

// All columns of a product, a panel of the kernel's at a time.
static void multiply(const td_native_cpu_kernel *kernel, uint32_t rows,
                     uint32_t cols, float *ret_c)
{
    static _Alignas(64) float a[ROWS * DEPTH], b[DEPTH * COLS];
    static _Alignas(64) float panel[DEPTH * COLS];
    const size_t start = 0;
    td_native_hashed_floats("a", ROWS * DEPTH, a);
    td_native_hashed_floats("b", DEPTH * COLS, b);
    td_native_hashed_floats("c", ROWS * COLS, ret_c);
    for (uint32_t first = 0; first < cols; first += kernel->panel) {
        uint32_t wide =
            cols - first < kernel->panel ? cols - first : kernel->panel;
        memset(panel, 0, sizeof panel);
        for (size_t k = 0; k < DEPTH; k++)
            memcpy(panel + k * kernel->panel, b + k * COLS + first,
                   wide * sizeof *panel);
        kernel->multiply(&(td_native_cpu_product){
            .a = a,
            .a_stride = DEPTH,
            .starts = &start,
            .runs = 1,
            .depth = DEPTH,
            .panel = panel,
            .c = ret_c + first,
            .c_stride = COLS,
            .rows = rows,
            .cols = wide,
        });
    }
}

static void products_are_those_of_the_plain_loops(void **state)
{
    (void)state;
    static float mine[ROWS * COLS], theirs[ROWS * COLS];
    for (uint32_t rows = 1; rows <= ROWS; rows++)
        for (uint32_t cols = 1; cols <= COLS; cols++) {
            multiply(fast, rows, cols, mine);
            multiply(plain, rows, cols, theirs);
            assert_near(mine, theirs, (size_t)ROWS * COLS);
        }
}

static void rows_are_those_of_the_plain_loops(void **state)
{
    (void)state;
    float row[DEPTH], weight[DEPTH], bias[DEPTH], mine[DEPTH], theirs[DEPTH];
    td_native_hashed_floats("row", DEPTH, row);
    td_native_hashed_floats("weight", DEPTH, weight);
    td_native_hashed_floats("bias", DEPTH, bias);
    for (uint32_t count = 1; count <= DEPTH; count++) {
        memcpy(mine, row, sizeof mine);
        memcpy(theirs, row, sizeof theirs);
        fast->softmax(mine, count, 9);
        plain->softmax(theirs, count, 9);
        assert_near(mine, theirs, DEPTH);
        fast->norm(row, weight, bias, count, 1e-5f, mine);
        plain->norm(row, weight, bias, count, 1e-5f, theirs);
        assert_near(mine, theirs, count);
    }
}

// Into the space of Winograd and back, the last pixel outside the picture.
static void tile(const td_native_cpu_kernel *kernel, uint32_t side, int relu,
                 float *ret_in, float *ret_out)
{
    float picture[CELLS * COLS], bias[COLS];
    const float *pixels[CELLS];
    float *out[CELLS] = {NULL};
    uint32_t wide = side - 2;
    td_native_hashed_floats("picture", (size_t)CELLS * COLS, picture);
    td_native_hashed_floats("bias", COLS, bias);
    for (size_t i = 0; i < (size_t)side * side; i++)
        pixels[i] = picture + i * COLS;
    for (size_t i = 0; i + 1 < (size_t)wide * wide; i++)
        out[i] = ret_out + i * COLS;
    const td_native_cpu_tile space = {side, COLS, COLS};
    kernel->tile_in(&space, pixels, ret_in);
    kernel->tile_out(&space, ret_in, bias, relu ? pixels : NULL, relu, out);
}

static void tiles_are_those_of_the_plain_loops(void **state)
{
    (void)state;
    for (uint32_t side = 4; side <= 6; side += 2)
        for (int relu = 0; relu <= 1; relu++) {
            float mine[2][CELLS * COLS] = {{0}},
                                  theirs[2][CELLS * COLS] = {{0}};
            tile(fast, side, relu, mine[0], mine[1]);
            tile(plain, side, relu, theirs[0], theirs[1]);
            assert_near(mine[0], theirs[0], (size_t)CELLS * COLS);
            assert_near(mine[1], theirs[1], (size_t)CELLS * COLS);
        }
}

static td_err open_fast(const td_ops_config *config,
                        td_ops_backend **ret_backend, td_errinfo *info)
{
    return td_native_cpu_backend_open(fast, config, ret_backend, info);
}

static void operations_are_those_of_pytorch(void **state)
{
    (void)state;
    const td_ops_config config = {.threads = 2};
    td_ops ops = td_ops_cpu;
    ops.open = open_fast;
    assert_int_equal(td_ops_cases(&ops, &config, TOLERANCE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_those_of_the_plain_loops),
        cmocka_unit_test(rows_are_those_of_the_plain_loops),
        cmocka_unit_test(tiles_are_those_of_the_plain_loops),
        cmocka_unit_test(operations_are_those_of_pytorch),
    };
    if (!find_kernels()) {
        (void)printf("skipped: this processor has no AVX-512\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests_name("avx512", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Every kernel that this processor has, against plain loops in double.
#include "engine/native/cpu/kernel.h"

#include "base/err.h"
#include "engine/native/ops/hashed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST 8
#define ROOM 4096

static const td_native_cpu_kernel *kernels[MOST];
static size_t kernel_count;
static _Alignas(64) float a[ROOM], b[ROOM], c[ROOM], before[ROOM];

static int find_kernels(void **state)
{
    (void)state;
    kernel_count = td_native_cpu_kernel_all(kernels, MOST - 1);
    assert_ptr_equal(kernels[0], td_native_cpu_kernel_best());
    kernels[kernel_count++] = &td_native_cpu_kernel_wide;
    return 0;
}

static void check_product(const td_native_cpu_product *p, uint32_t panel)
{
    for (uint32_t row = 0; row < p->rows; row++)
        for (uint32_t col = 0; col < p->cols; col++) {
            size_t at = row * p->c_stride + col;
            double sum = before[at];
            for (uint32_t k = 0; k < p->runs * p->depth; k++)
                sum += (double)p->a[row * p->a_stride +
                                    p->starts[k / p->depth] + k % p->depth] *
                       p->panel[(size_t)k * panel + col];
            assert_true(fabs(p->c[at] - sum) < 1e-4);
        }
}

static void products_are_right_for_all_rows_and_columns(void **state)
{
    (void)state;
    const size_t starts[2] = {0, 20};
    td_native_hashed_floats("a", ROOM, a);
    td_native_hashed_floats("b", ROOM, b);
    td_native_hashed_floats("c", ROOM, before);
    for (size_t i = 0; i < kernel_count; i++)
        for (uint32_t rows = 1; rows <= 13; rows++)
            for (uint32_t cols = 1; cols <= kernels[i]->panel; cols++) {
                memcpy(c, before, sizeof c);
                const td_native_cpu_product product = {
                    .a = a,
                    .a_stride = 41,
                    .starts = starts,
                    .runs = 2,
                    .depth = 11,
                    .panel = b,
                    .c = c,
                    .c_stride = 50,
                    .rows = rows,
                    .cols = cols,
                };
                kernels[i]->multiply(&product);
                check_product(&product, kernels[i]->panel);
                size_t beyond = (rows - 1) * product.c_stride + cols;
                assert_memory_equal(c + beyond, before + beyond,
                                    (ROOM - beyond) * sizeof *c);
            }
}

static void softmax_sums_to_one_in_the_right_parts(void **state)
{
    (void)state;
    for (size_t i = 0; i < kernel_count; i++)
        for (uint32_t count = 1; count < 70; count++) {
            double sum = 0;
            td_native_hashed_floats("row", count, a);
            for (uint32_t k = 0; k < count; k++) {
                a[k] *= 300; // far beyond what a float's exponential can hold
                before[k] = a[k];
            }
            kernels[i]->softmax(a, count, 0.5f);
            double most = -INFINITY;
            for (uint32_t k = 0; k < count; k++)
                most = fmax(most, 0.5 * before[k]);
            for (uint32_t k = 0; k < count; k++)
                sum += exp(0.5 * before[k] - most);
            for (uint32_t k = 0; k < count; k++)
                assert_true(fabs(a[k] - exp(0.5 * before[k] - most) / sum) <
                            1e-6);
        }
}

static void a_norm_has_no_mean_and_one_deviation(void **state)
{
    (void)state;
    for (size_t i = 0; i < kernel_count; i++)
        for (uint32_t count = 2; count < 70; count++) {
            double mean = 0, square = 0;
            td_native_hashed_floats("row", count, a);
            for (uint32_t k = 0; k < count; k++) {
                a[k] += 5;
                b[k] = 1;
                before[k] = 0;
            }
            kernels[i]->norm(a, b, before, count, 0, c);
            for (uint32_t k = 0; k < count; k++) {
                mean += (double)c[k] / count;
                square += (double)c[k] * c[k] / count;
            }
            assert_true(fabs(mean) < 1e-5 && fabs(square - 1) < 1e-4);
        }
}

static void an_rms_norm_has_a_square_of_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < kernel_count; i++)
        for (uint32_t count = 1; count < 70; count++) {
            double square = 0;
            td_native_hashed_floats("row", count, a);
            for (uint32_t k = 0; k < count; k++) {
                a[k] += 3;
                b[k] = 0;
                before[k] = 2;
            }
            kernels[i]->rms(a, b, NULL, 1, count, 0, c);
            for (uint32_t k = 0; k < count; k++)
                square += (double)c[k] * c[k] / count;
            assert_true(fabs(square - 1) < 1e-5);
            kernels[i]->rms(a, b, before, 1, count, 0, a);
            for (uint32_t k = 0; k < count; k++)
                assert_true(a[k] == c[k] + 2);
        }
}

static double gate_of(double x, bool tanh)
{
    double z = tanh ? 2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x) : x;
    return x / (1 + exp(-z));
}

static void gates_are_right_from_end_to_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < kernel_count; i++)
        for (uint32_t count = 1; count < 70; count++)
            for (int tanh = 0; tanh < 2; tanh++) {
                td_native_hashed_floats("row", count, a);
                for (uint32_t k = 0; k < count; k++) {
                    a[k] *= k % 7 == 6 ? 1e4f : 6; // some beyond any gate
                    before[k] = a[k];
                }
                kernels[i]->sigmoid(a, count, tanh);
                for (uint32_t k = 0; k < count; k++) {
                    double want = gate_of(before[k], tanh);
                    assert_true(fabs(a[k] - want) < 1e-6 * fmax(1, fabs(want)));
                }
            }
}

// A window of ones through both spaces: each result is the sum of its nine.
static void tiles_there_and_back_are_a_convolution(void **state)
{
    (void)state;
    static const float ones[2][6] = {
        {1, 1.5f, 0.5f, 1}, {0.25f, -0.5f, -1.0f / 6, 7.0f / 24, 1.0f / 8, 1}};
    for (size_t i = 0; i < kernel_count; i++)
        for (uint32_t side = 4; side <= 6; side += 2) {
            uint32_t channels = kernels[i]->panel, wide = side - 2;
            const td_native_cpu_tile tile = {side, channels, channels};
            const float *in[36];
            float *out[16];
            td_native_hashed_floats("tile", (size_t)36 * channels, a);
            memset(before, 0, sizeof before);
            for (uint32_t k = 0; k < side * side; k++)
                in[k] = a + (size_t)k * channels;
            for (uint32_t k = 0; k < wide * wide; k++)
                out[k] = c + (size_t)k * channels;
            kernels[i]->tile_in(&tile, in, b);
            for (uint32_t k = 0; k < side * side * channels; k++)
                b[k] *= ones[side == 6][k / channels / side] *
                        ones[side == 6][k / channels % side];
            kernels[i]->tile_out(&tile, b, before, NULL, 0, out);
            for (uint32_t k = 0; k < wide * wide; k++) {
                double sum = 0;
                for (uint32_t n = 0; n < 9; n++)
                    sum += in[(k / wide + n / 3) * side + k % wide + n % 3][3];
                assert_true(fabs(out[k][3] - sum) < 1e-4);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right_for_all_rows_and_columns),
        cmocka_unit_test(softmax_sums_to_one_in_the_right_parts),
        cmocka_unit_test(a_norm_has_no_mean_and_one_deviation),
        cmocka_unit_test(an_rms_norm_has_a_square_of_one),
        cmocka_unit_test(gates_are_right_from_end_to_end),
        cmocka_unit_test(tiles_there_and_back_are_a_convolution),
    };
    return cmocka_run_group_tests_name("kernel", tests, find_kernels, NULL);
}

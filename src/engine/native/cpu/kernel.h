// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CPU_KERNEL_H
#define TD_ENGINE_NATIVE_CPU_KERNEL_H

// The innermost loops, one source (kernel_loops.h) compiled for each set of
// vector instructions, and the best that this processor has.
//
// What a row of an answer is depends on that row alone, never on how many are
// computed with it or on which thread: that is why answers are the same bit for
// bit in every batch. Any thread; nothing here allocates or fails.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Most columns that are computed together, of all kernels.
#define TD_NATIVE_CPU_MAX_PANEL 32

// c += a * panel, or c = a * panel. A row of `a` is `runs` pieces of `depth`
// numbers each, which begin `starts` apart: a convolution's window lies so in
// its picture, and is not copied.
typedef struct td_native_cpu_product {
    const float *a;
    size_t a_stride; // from row to row
    const size_t *starts;
    uint32_t runs, depth;
    const float *panel; // [runs x depth][panel], aligned, zeros beyond `cols`
    float *c;
    size_t c_stride;
    uint32_t rows, cols;
    bool fresh; // what `c` held does not count
} td_native_cpu_product;

// A tile of a convolution in the space of Winograd: `side` squared numbers for
// each channel, of which the convolution gives side - 2 squared.
typedef struct td_native_cpu_tile {
    uint32_t side;     // 4 or 6
    uint32_t channels; // a multiple of the panel
    size_t step;       // from one of its numbers to the next, for a channel
} td_native_cpu_tile;

typedef struct td_native_cpu_kernel {
    const char *name; // "AVX2"
    uint32_t panel;   // columns that are computed together

    void (*multiply)(const td_native_cpu_product *product);

    // In place: softmax of row x scale.
    void (*softmax)(float *row, uint32_t count, float scale);

    // LayerNorm of a row; `out` may be `row`.
    void (*norm)(const float *row, const float *weight, const float *bias,
                 uint32_t count, float epsilon, float *out);

    // RMS norm of a row: row / deviation * (base + weight) + bias, which may be
    // NULL; `out` may be `row`.
    void (*rms)(const float *row, const float *weight, const float *bias,
                float base, uint32_t count, float epsilon, float *out);

    // In place: x / (1 + e^-z). SiLU with z = x, and with `tanh` GELU by its
    // hyperbolic tangent, z = 1.5957691 (x + 0.044715 x^3).
    void (*sigmoid)(float *row, uint32_t count, bool tanh);

    // Pixels, row by row, into the space of Winograd.
    void (*tile_in)(const td_native_cpu_tile *tile, const float *const *pixels,
                    float *to);

    // And back: out = relu(tile + bias + add). A pixel that is NULL is outside
    // the picture. `adds` is NULL, or holds one pointer for each pixel.
    void (*tile_out)(const td_native_cpu_tile *tile, const float *from,
                     const float *bias, const float *const *adds, int relu,
                     float *const *pixels);
} td_native_cpu_kernel;

// The best one for this processor. Any thread.
const td_native_cpu_kernel *td_native_cpu_kernel_best(void);

// The loops of AVX-512 in instructions that every processor has. Linked into
// tests only.
extern const td_native_cpu_kernel td_native_cpu_kernel_wide;

// All that this processor has, for tests: how many, the best one first.
size_t td_native_cpu_kernel_all(const td_native_cpu_kernel **ret_kernels,
                                size_t most);

#endif

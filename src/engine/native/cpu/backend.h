// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CPU_BACKEND_H
#define TD_ENGINE_NATIVE_CPU_BACKEND_H

// What the files of the CPU's backend share: weights, and graphs, which are
// lists of steps in order. A step is a number of tasks that the threads of a
// pool share; each task has scratch memory of its thread's, as much as the
// largest asks.

#include "engine/native/cpu/kernel.h"
#include "engine/native/cpu/pool.h"
#include "engine/native/ops/ops.h"

#define TD_NATIVE_CPU_MAX_RUNS 64 // pieces of a window: 7 x 7 and less

struct td_ops_linear_weight {
    td_ops_linear_source source;
    float *bias;   // [rows], or NULL
    uint32_t rows; // of all parts
    size_t stride; // elements from row to row of a part
    td_ops_linear_part parts[1 + TD_OPS_MORE_PARTS];
};

struct td_ops_norm {
    float *weight, *bias; // [cols], or NULL
    uint32_t cols;
    float epsilon, base;
    td_ops_norm_kind kind;
};

struct td_ops_embedding {
    td_ops_embedding_source source;
};

// Packed for its algorithm when it is first added to a graph.
struct td_ops_conv_weight {
    td_ops_conv_source source;
    float *scale, *bias; // [out]; scale may be NULL
    float *zeros;        // [in]: a pixel outside the picture
    float *direct;       // [panels][kernel x kernel x in][panel]
    float *tiles[2];     // [side x side][panels][in][panel], of side 4 and 6
};

typedef struct td_native_cpu_step td_native_cpu_step;

typedef struct td_native_cpu_direct {
    td_ops_conv op;
    td_ops_pixels pixels;
    uint32_t out_height, out_width; // before pooling
    uint32_t band, bands;           // rows of the output a task, tasks a member
    uint32_t runs, depth;
    size_t starts[TD_NATIVE_CPU_MAX_RUNS];
} td_native_cpu_direct;

typedef struct td_native_cpu_winograd {
    td_ops_conv op;
    const float *weight;
    uint32_t side;         // of a tile
    uint32_t across, down; // tiles of a picture
    uint32_t block;        // tiles a task
} td_native_cpu_winograd;

struct td_native_cpu_step {
    const td_native_cpu_kernel *kernel;
    uint32_t tasks;
    void (*task)(const td_native_cpu_step *step, uint32_t task, float *scratch);
    union {
        td_ops_linear linear;
        td_ops_attention attention;
        td_native_cpu_direct direct;
        td_native_cpu_winograd winograd;
        struct {
            const td_ops_norm *norm;
            td_ops_modulation modulation;
            td_ops_view x, out;
        } norm;
        struct {
            td_ops_rotary rotary;
            td_ops_view out, rest;
        } rotary;
        struct {
            const td_ops_embedding *embedding;
            td_ops_view ids, out;
        } embed;
        td_ops_blocks blocks;
        td_ops_step step;
    } as;
};

// Opens a backend with this kernel; the table's own open() takes the best one.
// As that.
TD_NODISCARD td_err td_native_cpu_backend_open(
    const td_native_cpu_kernel *kernel, const td_ops_config *config,
    td_ops_backend **ret_backend, td_errinfo *info);

// Adds a step to the graph that is being built, whose tasks want so many floats
// of scratch. INVALID outside begin and end, NOMEM.
TD_NODISCARD td_err td_native_cpu_backend_add(td_ops_backend *backend,
                                              const td_native_cpu_step *step,
                                              size_t scratch_floats,
                                              td_errinfo *info);

// Memory that lives as long as the backend: zeros, aligned for any vector.
// NOMEM.
TD_NODISCARD td_err td_native_cpu_backend_alloc(td_ops_backend *backend,
                                                size_t bytes, void **ret_data,
                                                td_errinfo *info);

// A step with the backend's kernel and nothing else.
td_native_cpu_step td_native_cpu_backend_step(const td_ops_backend *backend);
td_native_cpu_pool *td_native_cpu_backend_pool(const td_ops_backend *backend);
uint32_t td_native_cpu_backend_threads(const td_ops_backend *backend);

// The operations, as the table has them.
TD_NODISCARD td_err td_native_cpu_linear(td_ops_backend *backend,
                                         const td_ops_linear *op,
                                         td_errinfo *info);
TD_NODISCARD td_err td_native_cpu_norm(td_ops_backend *backend,
                                       const td_ops_norm *norm,
                                       const td_ops_view *x,
                                       const td_ops_view *out,
                                       td_errinfo *info);
TD_NODISCARD td_err td_native_cpu_modulate(td_ops_backend *backend,
                                           const td_ops_norm *norm,
                                           const td_ops_modulation *modulation,
                                           const td_ops_view *x,
                                           const td_ops_view *out,
                                           td_errinfo *info);
TD_NODISCARD td_err td_native_cpu_attention(td_ops_backend *backend,
                                            const td_ops_attention *op,
                                            td_errinfo *info);
TD_NODISCARD td_err td_native_cpu_conv(td_ops_backend *backend,
                                       const td_ops_conv *op, td_errinfo *info);

TD_NODISCARD td_err td_native_cpu_embed(td_ops_backend *backend,
                                        const td_ops_embedding *embedding,
                                        const td_ops_view *ids,
                                        const td_ops_view *out,
                                        td_errinfo *info);
TD_NODISCARD td_err td_native_cpu_blocks(td_ops_backend *backend,
                                         const td_ops_blocks *op,
                                         td_errinfo *info);
TD_NODISCARD td_err td_native_cpu_step_add(td_ops_backend *backend,
                                           const td_ops_step *op,
                                           td_errinfo *info);
// Turns columns of out, and of `rest` beside it, once a linear has made them.
TD_NODISCARD td_err td_native_cpu_rotary(td_ops_backend *backend,
                                         const td_ops_rotary *rotary,
                                         const td_ops_view *out,
                                         const td_ops_view *rest,
                                         td_errinfo *info);

// The second algorithm of a convolution, for those of 3 x 3 with stride 1 whose
// channels are whole panels: Winograd's, with a quarter of the work.
bool td_native_cpu_winograd_can(const td_native_cpu_kernel *kernel,
                                const td_ops_conv *op);
TD_NODISCARD td_err td_native_cpu_winograd_add(td_ops_backend *backend,
                                               const td_ops_conv *op,
                                               td_errinfo *info);

// One number of a source.
static inline float td_native_cpu_number(const td_ops_source *from, size_t at)
{
    uint32_t bits = 0;
    float value = 0;
    switch (from->dtype) {
    case TD_OPS_F32:
        return ((const float *)from->data)[at];
    case TD_OPS_F16:
        return (float)((const _Float16 *)from->data)[at];
    case TD_OPS_BF16:
        bits = (uint32_t)((const uint16_t *)from->data)[at] << 16;
        break;
    case TD_OPS_U8:
    case TD_OPS_U32:
        break;
    }
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t td_native_cpu_ceil(size_t count, size_t of)
{
    return (uint32_t)((count + of - 1) / of);
}

// As many tasks, or a few more, so that threads have the same number of them.
static inline uint32_t td_native_cpu_even(uint32_t tasks, uint32_t threads)
{
    return td_native_cpu_ceil(tasks, threads) * threads;
}

// Of a view of U32, a single column.
static inline uint32_t td_native_cpu_whole(const td_ops_view *view,
                                           uint32_t member, uint32_t row)
{
    return ((const uint32_t *)view
                ->data)[member * view->batch_stride + row * view->row_stride];
}

static inline bool td_native_cpu_same_rows(const td_ops_view *a,
                                           const td_ops_view *b)
{
    return a->batch == b->batch && a->rows == b->rows;
}

// Whether rows of `to` can be modulated so.
bool td_native_cpu_modulation_fits(const td_ops_modulation *of,
                                   const td_ops_view *to);

// Which row of a modulation's table a row takes.
static inline const float *td_native_cpu_modulation(const td_ops_modulation *of,
                                                    uint32_t member,
                                                    uint32_t row)
{
    uint32_t choice =
        of->choice.data ? td_native_cpu_whole(&of->choice, member, row) : 0;
    return (const float *)of->table.data + choice * of->table.row_stride;
}

static inline float *td_native_cpu_row(const td_ops_view *view, uint32_t member,
                                       uint32_t row)
{
    return (float *)view->data + member * view->batch_stride +
           row * view->row_stride;
}

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_OPS_OPS_H
#define TD_ENGINE_NATIVE_OPS_OPS_H

// The operations that policies are made of, as one table with several backends:
// the CPU's (cpu/), and CUDA's, which is a library of its own (cuda/).
//
// A policy speaks to a backend in three phases, always from one thread:
//
//   load    weights are given once and prepared: folded, repacked, uploaded.
//           Buffers are allocated for the largest batch.
//   build   begin, operations in order, end: a graph for one batch size. An
//           operation that is added chooses its algorithm and runs nothing.
//   run     the graph, as often as wanted, over the same buffers: inputs are
//           read from, and outputs left in, host memory of the backend's.
//
// Everything that can fail for lack of memory or support fails in the first
// two, so that run() only computes. CUDA captures a graph between begin and
// end; the CPU keeps a list.
//
// To add a policy: a folder beside act/ that reads its tensors from the
// checkpoint, gives them to the backend and builds graphs of this table; its
// row in model.c. To add an operation: a struct and a row here, its file in
// cpu/ and in cuda/, and its cases in tests/golden/make_ops.py, which hold
// every backend against PyTorch. The table takes fused operations and no
// others: what a backend cannot fuse it runs in two steps.
//
// What the larger policies will need fits these rules: RMS norms and gates are
// further kinds of td_ops_norm and td_ops_activation, a kept prefix is rows of
// a buffer before those that a step writes (a view of both is one K or V),
// grouped queries are fewer heads in k and v than in q, a rotary table is an
// operand of the linear that makes q and k, the embedding of a step's time is
// known at load and so a table that is added, and an Euler step is a linear
// whose `add` is its own output.

#include "tendon/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TD_OPS_VERSION 1 // of this table, which a library is asked for

typedef enum td_ops_dtype {
    TD_OPS_F32,
    TD_OPS_BF16,
    TD_OPS_F16, // weights of a checkpoint only
    TD_OPS_U8,  // pictures only
} td_ops_dtype;

static inline size_t td_ops_bytes(td_ops_dtype dtype)
{
    if (dtype == TD_OPS_F32) return 4;
    return dtype == TD_OPS_U8 ? 1 : 2;
}

// Rows of numbers, for each member of a batch. Memory is the backend's; a
// policy never reads it. Strides count elements; elements of a row are
// contiguous. A batch_stride of 0 is one block that all members share. Feature
// maps are views of height x width rows of channels (NHWC).
typedef struct td_ops_view {
    void *data;
    td_ops_dtype dtype;
    uint32_t batch, rows, cols;
    size_t batch_stride, row_stride;
} td_ops_view;

// A dense view.
static inline td_ops_view td_ops_dense(void *data, td_ops_dtype dtype,
                                       uint32_t batch, uint32_t rows,
                                       uint32_t cols)
{
    td_ops_view view = {data, dtype, batch, rows, cols, (size_t)rows * cols,
                        cols};
    return view;
}

// A part of each member: some rows, or some columns of all rows.
static inline td_ops_view td_ops_rows(td_ops_view view, uint32_t first,
                                      uint32_t rows)
{
    view.data =
        (char *)view.data + first * view.row_stride * td_ops_bytes(view.dtype);
    view.rows = rows;
    return view;
}

static inline td_ops_view td_ops_cols(td_ops_view view, uint32_t first,
                                      uint32_t cols)
{
    view.data = (char *)view.data + first * td_ops_bytes(view.dtype);
    view.cols = cols;
    return view;
}

// The first members of a view.
static inline td_ops_view td_ops_members(td_ops_view view, uint32_t batch)
{
    view.batch = batch;
    return view;
}

// What all of `batch` members share: the first of the view.
static inline td_ops_view td_ops_shared(td_ops_view view, uint32_t batch)
{
    view.batch = batch;
    view.batch_stride = 0;
    return view;
}

// Numbers in host memory, dense, as a checkpoint holds them. Borrowed until the
// backend is closed: a mapped file is used in place where that is possible.
typedef struct td_ops_source {
    const void *data; // NULL: none
    td_ops_dtype dtype;
} td_ops_source;

// Memory of both machines: the engine writes or reads `host`, a graph moves
// it. On the CPU the two are one.
typedef struct td_ops_io {
    void *host;
    void *device;
} td_ops_io;

typedef enum td_ops_activation {
    TD_OPS_NO_ACTIVATION,
    TD_OPS_RELU,
    TD_OPS_GELU, // exact, with erf
} td_ops_activation;

typedef struct td_ops_backend td_ops_backend;
typedef struct td_ops_graph td_ops_graph;
typedef struct td_ops_linear_weight td_ops_linear_weight;
typedef struct td_ops_conv_weight td_ops_conv_weight;
typedef struct td_ops_norm td_ops_norm;

// y = x W^T + b.
typedef struct td_ops_linear_source {
    td_ops_source weight; // [out][in]
    td_ops_source bias;   // [out], or none
    uint32_t in, out;
} td_ops_linear_source;

// A convolution, with the normalisation of its output folded in: channel o of
// the weight is multiplied by scale[o].
typedef struct td_ops_conv_source {
    td_ops_source weight; // [out][in][kernel][kernel]
    const float *scale;   // [out], or NULL; copied
    const float *bias;    // [out]; copied
    uint32_t in, out, kernel, stride, pad, dilation;
} td_ops_conv_source;

// LayerNorm over the columns.
typedef struct td_ops_norm_source {
    td_ops_source weight, bias; // [cols]
    uint32_t cols;
    float epsilon;
} td_ops_norm_source;

// out = act(x W^T + b + add); normed = norm(out), where a norm is given. `out`
// may then be absent (data NULL), and `add` may be. x is F32 where it is an
// input, out F32 where it is an output, both of any width; elsewhere they have
// the backend's own type and widths that are multiples of 8. `add` is a
// residual, or a table that the members share; it may be `out` itself. Views
// may lie apart in larger buffers. One of inputs (x F32) need not wait for what
// was added before it: nothing there uses its `out`.
typedef struct td_ops_linear {
    const td_ops_linear_weight *weight;
    td_ops_view x, add, out;
    td_ops_activation activation;
    const td_ops_norm *norm;
    td_ops_view normed;
} td_ops_linear;

// Pictures as they come: channel c of a pixel is byte * scale[c] + shift[c];
// what is outside the picture is 0 after that.
typedef struct td_ops_pixels {
    float scale[3], shift[3];
} td_ops_pixels;

// out = act(conv(x) + b + add + conv(shortcut)). Maps are dense. x is U8 with
// three channels where `pixels` is given, which is copied. `shortcut` is
// absent, or the projection around a block: 1 x 1, with a stride and a bias of
// its own. With `pool`, and pixels, `out` is the largest of 3 x 3 of what the
// rest would give, for every second pixel, with a border of nothing.
typedef struct td_ops_conv {
    td_ops_conv_weight *weight;
    const td_ops_pixels *pixels;
    uint32_t height, width; // of x
    td_ops_view x, add, out;
    td_ops_activation activation;
    td_ops_conv_weight *shortcut_weight;
    uint32_t shortcut_height, shortcut_width;
    td_ops_view shortcut;
    bool pool;
} td_ops_conv;

// Pixels along one side of what a convolution, or the pooling after it, gives.
static inline uint32_t td_ops_conv_size(uint32_t size, uint32_t kernel,
                                        uint32_t stride, uint32_t pad,
                                        uint32_t dilation)
{
    return (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
}

// out = softmax(q k^T * scale) v in each head; columns are heads x size.
typedef struct td_ops_attention {
    td_ops_view q, k, v, out;
    uint32_t heads;
    float scale;
} td_ops_attention;

typedef struct td_ops_config {
    td_ops_dtype precision; // F32 or BF16: of weights and activations
    uint32_t threads;       // of the CPU backend; 1 or more
    uint32_t device;        // which GPU
} td_ops_config;

// What a backend says of itself.
typedef struct td_ops_info {
    char device[96];    // "NVIDIA H200", "2 threads, AVX2"
    td_ops_dtype dtype; // of activations
    bool exact_batches; // a graph for each batch size; else powers of two
    float tolerance;    // largest difference of an answer across batch sizes,
                        // of the largest value in it
    size_t bytes;       // of memory taken so far, weights and buffers
} td_ops_info;

typedef struct td_ops {
    const char *name; // "cpu", "cuda"

    // Blocks. Owned by the caller. UNSUPPORTED (precision, device), NOMEM.
    td_err (*open)(const td_ops_config *config, td_ops_backend **ret_backend,
                   td_errinfo *info);
    // Frees the backend and all that it gave.
    void (*close)(td_ops_backend *backend);
    void (*info)(const td_ops_backend *backend, td_ops_info *ret_info);

    // Load. What they give lives as long as the backend. NOMEM, UNSUPPORTED.
    td_err (*alloc)(td_ops_backend *backend, size_t bytes, void **ret_data,
                    td_errinfo *info); // zeros
    td_err (*alloc_io)(td_ops_backend *backend, size_t bytes, td_ops_io *ret_io,
                       td_errinfo *info); // zeros
    td_err (*linear_weight)(td_ops_backend *backend,
                            const td_ops_linear_source *source,
                            td_ops_linear_weight **ret_weight,
                            td_errinfo *info);
    td_err (*conv_weight)(td_ops_backend *backend,
                          const td_ops_conv_source *source,
                          td_ops_conv_weight **ret_weight, td_errinfo *info);
    td_err (*norm_weight)(td_ops_backend *backend,
                          const td_ops_norm_source *source,
                          td_ops_norm **ret_norm, td_errinfo *info);
    // Writes numbers, dense and [batch][rows][cols] (one block where the view
    // is shared), converted to the view's type. Blocks.
    td_err (*upload)(td_ops_backend *backend, const td_ops_view *to,
                     const float *from, td_errinfo *info);

    // Build. One graph at a time; operations between begin and end only.
    // INVALID for shapes that do not fit, UNSUPPORTED, NOMEM.
    td_err (*begin)(td_ops_backend *backend, td_errinfo *info);
    // Bytes [0, bytes) of an io: host to device, and device to host.
    td_err (*copy_in)(td_ops_backend *backend, const td_ops_io *io,
                      size_t bytes, td_errinfo *info);
    td_err (*copy_out)(td_ops_backend *backend, const td_ops_io *io,
                       size_t bytes, td_errinfo *info);
    td_err (*linear)(td_ops_backend *backend, const td_ops_linear *op,
                     td_errinfo *info);
    td_err (*conv)(td_ops_backend *backend, const td_ops_conv *op,
                   td_errinfo *info);
    // x and out alike; they may be the same.
    td_err (*norm)(td_ops_backend *backend, const td_ops_norm *norm,
                   const td_ops_view *x, const td_ops_view *out,
                   td_errinfo *info);
    td_err (*attention)(td_ops_backend *backend, const td_ops_attention *op,
                        td_errinfo *info);
    // Ends the graph, which lives as long as the backend.
    td_err (*end)(td_ops_backend *backend, td_ops_graph **ret_graph,
                  td_errinfo *info);

    // Run. Blocks until the outputs are in host memory. IO when the device
    // failed: then the backend is lost.
    td_err (*run)(td_ops_backend *backend, td_ops_graph *graph,
                  td_errinfo *info);
} td_ops;

// The backend of this machine's processor.
extern const td_ops td_ops_cpu;

// What a library of a backend exports; NULL for another version than its own.
typedef const td_ops *(*td_ops_library)(uint32_t version);

#endif

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
// What differs from one request to the next is data, never another graph: how
// long a text is (`lengths`), where a row stands (`positions`), what is guided
// and how much (td_ops_step). It is U32 or F32 and comes with copy_in().
//
// What every backend promises, and the cases do not all show:
//  - A member's answer depends on that member alone: bit for bit where
//    `tolerance` is 0, within it elsewhere. What another member holds, and what
//    lies beyond a member's length, does not count whatever it is, NaN too.
//  - The same graph over the same inputs gives the same bits each time.
//  - What an operation writes can be read by all that are added after it, by
//    the next graph that runs and by copy().
//  - Sums, norms, softmax, rotary angles, modulations and all of td_ops_step
//    are in float32 at least; what is stored has the type of its view.
//
// Operations that only some policies use are marked optional: a backend without
// one leaves it NULL, and refuses with UNSUPPORTED the fields it does not know
// of an operation that it has. Such a policy is then refused at load.

#include "tendon/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TD_OPS_VERSION 2 // of this table, which a library is asked for

typedef enum td_ops_dtype {
    TD_OPS_F32,
    TD_OPS_BF16,
    TD_OPS_F16, // weights of a checkpoint only
    TD_OPS_U8,  // pictures only
    TD_OPS_U32, // ids, positions, lengths and choices only
} td_ops_dtype;

static inline size_t td_ops_bytes(td_ops_dtype dtype)
{
    if (dtype == TD_OPS_F32 || dtype == TD_OPS_U32) return 4;
    return dtype == TD_OPS_U8 ? 1 : 2;
}

// Rows of numbers, for each member of a batch. Memory is the backend's; a
// policy never reads it. Strides count elements; elements of a row are
// contiguous. A batch_stride of 0 is one block that all members share, a
// row_stride of 0 (of `add` alone) one row that all rows share. Feature
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
    TD_OPS_GELU_TANH,
    TD_OPS_SILU,
} td_ops_activation;

typedef struct td_ops_backend td_ops_backend;
typedef struct td_ops_graph td_ops_graph;
typedef struct td_ops_linear_weight td_ops_linear_weight;
typedef struct td_ops_conv_weight td_ops_conv_weight;
typedef struct td_ops_norm td_ops_norm;
typedef struct td_ops_embedding td_ops_embedding;

// Further rows of a weight, which a checkpoint keeps as a tensor of its own.
typedef struct td_ops_linear_part {
    td_ops_source weight; // [out][in], rows as far apart as the first part's
    td_ops_source bias;   // [out], or none
    uint32_t out;
} td_ops_linear_part;

#define TD_OPS_MORE_PARTS 2

// y = x W^T + b. W is the parts one below the other: q, k and v are one
// product. Gated, it has two parts of the same size, and
// y = act(x W0^T + b0) * (x W1^T + b1), of `out` columns.
typedef struct td_ops_linear_source {
    td_ops_source weight; // [out][in]
    td_ops_source bias;   // [out], or none
    uint32_t in, out;
    uint32_t stride; // elements from row to row of the weight; 0: `in`
    td_ops_linear_part more[TD_OPS_MORE_PARTS]; // those with an `out`
    bool gated;
} td_ops_linear_source;

// A convolution, with the normalisation of its output folded in: channel o of
// the weight is multiplied by scale[o].
typedef struct td_ops_conv_source {
    td_ops_source weight; // [out][in][kernel][kernel]
    const float *scale;   // [out], or NULL; copied
    const float *bias;    // [out]; copied
    uint32_t in, out, kernel, stride, pad, dilation;
} td_ops_conv_source;

typedef enum td_ops_norm_kind {
    TD_OPS_LAYER_NORM,
    TD_OPS_RMS_NORM, // no mean is taken off
} td_ops_norm_kind;

// LayerNorm or RMS norm over the columns: x / deviation * (base + weight) +
// bias. Weight and bias may be absent (an RMS norm has no bias): then they are
// those of the modulation with which it is used, or nothing.
typedef struct td_ops_norm_source {
    td_ops_source weight, bias; // [cols]
    uint32_t cols;
    float epsilon;
    td_ops_norm_kind kind;
    float base; // 1 for Gemma, whose weights are what is added to 1
} td_ops_norm_source;

// A table of what a norm is scaled and shifted by and a product multiplied by
// (AdaRMS): F32 [rows][3 x cols], of each row first scales, then shifts, then
// gates. `choice` is U32 [batch][rows][1], which row of the table a row takes;
// absent: the first. {0} is none.
//   normed = x / deviation * (1 + scale) + shift
typedef struct td_ops_modulation {
    td_ops_view table, choice;
} td_ops_modulation;

// Rotary positions of the first `cols` columns, in heads of `size`: numbers i
// and i + size / 2 of a head are turned by the angle i of the row's position.
// `table` is F32 [positions][size], cosines and then sines of size / 2 angles.
// `positions` is U32 [batch][rows][1], or shared. {0} is none.
typedef struct td_ops_rotary {
    td_ops_view table, positions;
    uint32_t cols, size;
} td_ops_rotary;

// Rows by their number: those of a text's tokens.
typedef struct td_ops_embedding_source {
    td_ops_source weight; // [rows][cols]
    uint32_t rows, cols;
    float scale; // of each number; in float32
} td_ops_embedding_source;

// out = act(x W^T + b + add); normed = norm(out), where a norm is given. `out`
// may then be absent (data NULL), and `add` may be. x is F32 where it is an
// input, out F32 where it is an output, both of any width; elsewhere they have
// the backend's own type and row strides that are multiples of 8. `add` is a
// residual, or a table that the members share; it may be `out` itself. Views
// may lie apart in larger buffers. One of inputs (x F32 that only copy_in()
// writes) need not wait for what was added before it: nothing there uses its
// `out`.
//
// With a scale (0: none), or a gate: out = add + scale * gate * (x W^T + b),
// and no activation. `rest` takes the columns that `out` has no room for (k and
// v beside q); turned are columns of the two side by side. With `rest`, a gated
// weight or a rotary there is no norm.
typedef struct td_ops_linear {
    const td_ops_linear_weight *weight;
    td_ops_view x, add, out;
    td_ops_activation activation;
    const td_ops_norm *norm;
    td_ops_view normed;
    td_ops_view rest;
    td_ops_rotary rotary;
    float scale;
    td_ops_modulation gate;       // of the product
    td_ops_modulation modulation; // of the norm
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

// Which rows of k and v the rows of q see.
typedef enum td_ops_mask {
    TD_OPS_SEES_ALL,
    TD_OPS_SEES_EARLIER,    // row i sees rows 0 to i
    TD_OPS_FIRST_SEES_SELF, // row 0 sees itself alone, the others all
    TD_OPS_FIRST_UNSEEN,    // row 0 sees all, the others all but row 0
} td_ops_mask;

// out = softmax(q k^T * scale) v in each head; columns of q are heads x size,
// of k and v kv_heads x size (0: as many), where heads / kv_heads in a row
// share one. `past_k` and `past_v` are rows before those of k and v that all
// see; of them, or of k and v where there is no past, a member has `lengths`
// (U32 [batch][1][1], 1 and more; absent: all) and the rest is not there. k and
// v may then be absent. FIRST_UNSEEN has no past.
typedef struct td_ops_attention {
    td_ops_view q, k, v, out;
    uint32_t heads;
    float scale;
    uint32_t kv_heads;
    td_ops_mask mask;
    td_ops_view past_k, past_v, lengths;
} td_ops_attention;

// A map of height x width pixels cut into blocks of side x side: a row of out
// is one block, its pixels row by row, each with all its channels, as number *
// scale + shift. x is dense, and F32 where it is an input.
typedef struct td_ops_blocks {
    uint32_t height, width, side; // multiples of side
    float scale, shift;
    td_ops_view x, out;
} td_ops_blocks;

// One step of a denoising, in place, for each number of a row:
//   v' = v - guidance * (tail - (x - time * v)) * weight
//   x = x + dt * v'
// x, v and tail are F32 [batch][rows][cols], weight F32 [batch][rows][1], of
// which 0 guides nothing, to the bit. `kept` is U32 [batch][rows][1]: rows in
// which it is not 0 stay as they are. tail and weight, and kept, may be absent.
typedef struct td_ops_step {
    td_ops_view x, v, tail, weight, kept;
    float time, dt, guidance;
} td_ops_step;

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
    bool apart;         // pictures gain nothing from a pass that they share
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

    // (optional, all of these) Load.
    td_err (*embedding)(td_ops_backend *backend,
                        const td_ops_embedding_source *source,
                        td_ops_embedding **ret_embedding, td_errinfo *info);
    // Build. A row of out for each of ids, which are U32 [batch][rows][1] and
    // below the embedding's rows: whoever writes them has checked that.
    td_err (*embed)(td_ops_backend *backend, const td_ops_embedding *embedding,
                    const td_ops_view *ids, const td_ops_view *out,
                    td_errinfo *info);
    // As norm, with a modulation.
    td_err (*modulate)(td_ops_backend *backend, const td_ops_norm *norm,
                       const td_ops_modulation *modulation,
                       const td_ops_view *x, const td_ops_view *out,
                       td_errinfo *info);
    td_err (*blocks)(td_ops_backend *backend, const td_ops_blocks *op,
                     td_errinfo *info);
    td_err (*step)(td_ops_backend *backend, const td_ops_step *op,
                   td_errinfo *info);
    // Between graphs: from one place in the backend's memory to another, after
    // what ran before and before what runs next. IO as run().
    td_err (*copy)(td_ops_backend *backend, void *to, const void *from,
                   size_t bytes, td_errinfo *info);
} td_ops;

// Whether a backend has all that is optional.
static inline bool td_ops_is_whole(const td_ops *ops)
{
    return ops->embedding && ops->embed && ops->modulate && ops->blocks &&
           ops->step && ops->copy;
}

// The backend of this machine's processor.
extern const td_ops td_ops_cpu;

// What a library of a backend exports; NULL for another version than its own.
typedef const td_ops *(*td_ops_library)(uint32_t version);

#endif

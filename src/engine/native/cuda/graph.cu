// SPDX-License-Identifier: Apache-2.0
// From an operation of the table to its kernels, while a graph is captured:
// copies and pictures (graph_tokens.cu has the rest).
//
// Each function checks that the views fit what the kernels can do (bf16, rows
// at multiples of 16 bytes, widths that are multiples of 8), fills in the
// kernel's arguments and enqueues it; nothing runs before the whole graph does.
// A convolution is one kernel (conv.cu), with bias, addition and ReLU in it;
// GELU is one of its own after it.
//
// A frame that is alone is fetched by a kernel (move.cu) piece by piece, and
// the first layers (stem.cu) begin while it arrives; of several, each is copied
// while the one before is worked on.
#include "engine/native/cuda/backend.h"

#define FEW_BYTES ((size_t)128 << 10) // that leave by a kernel

td_native_cuda_rows td_native_cuda_graph_rows(const td_ops_view *view)
{
    const td_native_cuda_rows rows = {(__nv_bfloat16 *)view->data,
                                      (int64_t)view->batch_stride,
                                      (int32_t)view->row_stride};
    return rows;
}

td_err td_native_cuda_graph_added(cudaError_t error, const char *what,
                                  td_errinfo *info)
{
    return error == cudaSuccess
               ? TD_OK
               : td_native_cuda_backend_fail(info, error, what);
}

// Vectors of 16 bytes need a place at a multiple of 16.
static bool is_even(const td_ops_view *view)
{
    return (uintptr_t)view->data % 16 == 0 && view->row_stride % 8 == 0 &&
           view->batch_stride % 8 == 0;
}

td_err td_native_cuda_graph_check(const td_ops_view *view, const char *what,
                                  td_errinfo *info)
{
    if (view->dtype == TD_OPS_BF16 && is_even(view)) return TD_OK;
    return td_fail(info, TD_ERR_UNSUPPORTED,
                   "CUDA: %s is not bf16, or does not begin at multiples of 8",
                   what);
}

td_err td_native_cuda_graph_copy_out(td_ops_backend *backend,
                                     const td_ops_io *io, size_t bytes,
                                     td_errinfo *info)
{
    const td_native_cuda_order order = td_native_cuda_backend_order(backend);
    if (bytes <= FEW_BYTES && bytes % sizeof(float) == 0) {
        const td_native_cuda_leave leave = {(const float *)io->device,
                                            (float *)io->host,
                                            (int32_t)(bytes / sizeof(float))};
        return td_native_cuda_graph_added(
            td_native_cuda_leave_run(&leave, order), "adding a copy", info);
    }
    backend->is_alone = true;
    return td_native_cuda_graph_added(
        cudaMemcpyAsync(io->host, io->device, bytes, cudaMemcpyDeviceToHost,
                        order.stream),
        "adding a copy", info);
}

td_err td_native_cuda_graph_gelu(td_ops_backend *backend, const td_ops_view *x,
                                 td_errinfo *info)
{
    TD_TRY(td_native_cuda_graph_check(x, "what goes through GELU", info));
    td_native_cuda_gelu gelu = {};
    gelu.x = td_native_cuda_graph_rows(x);
    gelu.batches = (int32_t)x->batch;
    gelu.rows = (int32_t)x->rows;
    gelu.width = (int32_t)x->cols;
    return td_native_cuda_graph_added(
        td_native_cuda_gelu_run(&gelu, td_native_cuda_backend_order(backend)),
        "adding GELU", info);
}

static size_t pieces_of(int64_t bytes)
{
    return (size_t)((bytes + TD_NATIVE_CUDA_PIECE - 1) / TD_NATIVE_CUDA_PIECE);
}

// A frame that is still with the host, and words for its pieces: its first
// layers begin while it arrives.
static td_err build_arriving(td_ops_backend *backend, td_native_cuda_stem stem,
                             const void *from, uint32_t *there,
                             td_errinfo *info)
{
    td_native_cuda_arrival arrival = {};
    arrival.from = from;
    arrival.to = (void *)(uintptr_t)stem.x;
    arrival.bytes = (int64_t)stem.height * stem.width * 3;
    arrival.there = there;
    stem.there = there;
    TD_TRY(td_native_cuda_graph_added(
        td_native_cuda_arrival_run(&arrival,
                                   td_native_cuda_backend_order(backend)),
        "adding a copy", info));
    TD_TRY(td_native_cuda_graph_added(
        td_native_cuda_stem_run(&stem, td_native_cuda_backend_order(backend)),
        "adding the first layers", info));
    return td_native_cuda_backend_clear(backend, there,
                                        pieces_of(arrival.bytes), info);
}

// A frame after the other: while one is worked on the next is on its way.
static td_err build_frames(td_ops_backend *backend, td_native_cuda_stem stem,
                           uint32_t batch, size_t out_values, td_errinfo *info)
{
    const size_t bytes = (size_t)stem.height * stem.width * 3;
    const void *from = td_native_cuda_backend_waits(backend, stem.x, bytes);
    uint32_t *there = NULL;
    if (batch == 1 && from)
        there = td_native_cuda_backend_take_words(backend,
                                                  pieces_of((int64_t)bytes));
    stem.batches = 1;
    if (there) return build_arriving(backend, stem, from, there, info);
    for (uint32_t i = 0; i < batch; i++) {
        TD_TRY(td_native_cuda_backend_fetch_part(backend, stem.x, bytes, info));
        TD_TRY(td_native_cuda_graph_added(
            td_native_cuda_stem_run(&stem,
                                    td_native_cuda_backend_order(backend)),
            "adding the first layers", info));
        stem.x += bytes;
        stem.out += out_values;
    }
    return TD_OK;
}

static td_err build_stem(td_ops_backend *backend, const td_ops_conv *op,
                         td_errinfo *info)
{
    if (!op->weight->is_stem || !op->pool || op->activation != TD_OPS_RELU ||
        op->add.data || op->shortcut_weight)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "CUDA: pixels go through the first layers of a ResNet "
                       "only");
    td_native_cuda_stem stem = {};
    stem.x = (const uint8_t *)op->x.data;
    stem.height = (int32_t)op->height;
    stem.width = (int32_t)op->width;
    for (int i = 0; i < 3; i++) {
        stem.scale[i] = op->pixels->scale[i];
        stem.shift[i] = op->pixels->shift[i];
    }
    stem.weight = op->weight->filter.weight;
    stem.bias = op->weight->filter.bias;
    stem.out = (__nv_bfloat16 *)op->out.data;
    return build_frames(backend, stem, op->x.batch,
                        (size_t)op->out.rows * op->out.cols, info);
}

static td_native_cuda_map map_of(const td_ops_view *view, uint32_t height,
                                 uint32_t width,
                                 const td_ops_conv_weight *weight)
{
    const td_native_cuda_map map = {td_native_cuda_graph_rows(view),
                                    (int32_t)height, (int32_t)width,
                                    weight->filter};
    return map;
}

static int32_t size_of(uint32_t size, const td_native_cuda_filter *of)
{
    return (int32_t)td_ops_conv_size(size, (uint32_t)of->kernel,
                                     (uint32_t)of->step, (uint32_t)of->pad,
                                     (uint32_t)of->dilation);
}

td_err td_native_cuda_graph_conv(td_ops_backend *backend, const td_ops_conv *op,
                                 td_errinfo *info)
{
    if (op->pixels) return build_stem(backend, op, info);
    td_native_cuda_conv conv = {};
    TD_TRY(
        td_native_cuda_graph_check(&op->x, "what a convolution reads", info));
    TD_TRY(
        td_native_cuda_graph_check(&op->out, "what a convolution gives", info));
    conv.x = map_of(&op->x, op->height, op->width, op->weight);
    if (op->shortcut_weight) {
        TD_TRY(td_native_cuda_graph_check(&op->shortcut,
                                          "what joins a convolution", info));
        conv.shortcut = map_of(&op->shortcut, op->shortcut_height,
                               op->shortcut_width, op->shortcut_weight);
    }
    if (op->add.data) {
        TD_TRY(td_native_cuda_graph_check(&op->add, "what a convolution adds",
                                          info));
        conv.add = td_native_cuda_graph_rows(&op->add);
    }
    conv.out = td_native_cuda_graph_rows(&op->out);
    conv.batches = (int32_t)op->x.batch;
    conv.out_height = size_of(op->height, &op->weight->filter);
    conv.out_width = size_of(op->width, &op->weight->filter);
    conv.relu = op->activation == TD_OPS_RELU;
    if (op->pool || op->weight->is_stem ||
        (uint32_t)(conv.out_height * conv.out_width) != op->out.rows)
        return td_fail(info, TD_ERR_INVALID,
                       "a convolution of %u x %u gives %d x %d, not %u pixels",
                       op->height, op->width, conv.out_height, conv.out_width,
                       op->out.rows);
    TD_TRY(td_native_cuda_graph_added(
        td_native_cuda_conv_run(&conv, td_native_cuda_backend_order(backend)),
        "adding a convolution", info));
    return op->activation == TD_OPS_GELU
               ? td_native_cuda_graph_gelu(backend, &op->out, info)
               : TD_OK;
}

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CUDA_BACKEND_H
#define TD_ENGINE_NATIVE_CUDA_BACKEND_H

// The CUDA backend of ops.h, between its files: one GPU, bf16.
//
// Memory comes in large blocks that are never given back before close(). A
// graph is a CUDA graph, captured between begin() and end().

#include "engine/native/cuda/kernels.h"
#include "engine/native/ops/ops.h"

// Returns the error of `call`, if any, to the caller.
#define TD_TRY(call)                                                           \
    do {                                                                       \
        td_err td_try_err_ = (call);                                           \
        if (td_try_err_ != TD_OK) return td_try_err_;                          \
    } while (0)

struct td_ops_linear_weight {
    td_native_cuda_filter filter;
    int32_t second; // row at which the other half of a gated one begins; else 0
};

struct td_ops_embedding {
    const __nv_bfloat16 *weight;
    uint32_t cols;
    float scale;
};

struct td_ops_conv_weight {
    td_native_cuda_filter filter;
    bool is_stem; // 7 x 7 over RGB: [64][192], as td_native_cuda_stem has it
};

struct td_ops_norm {
    const float *weight, *bias;
    int32_t width;
    float epsilon, base;
    bool rms;
};

struct td_ops_graph {
    cudaGraphExec_t exec;
    td_ops_graph *next;
};

// What close() has to free; begins what it is about.
typedef struct td_native_cuda_backend_held {
    struct td_native_cuda_backend_held *next;
    void *device, *host, *heap;
} td_native_cuda_backend_held;

#define TD_NATIVE_CUDA_BACKEND_WAITING 16

#define TD_NATIVE_CUDA_BACKEND_WORDS 8192

// Frames that a graph fetches: their copies are added where they are used,
// so that one frame is on its way while another is worked on.
typedef struct td_native_cuda_backend_fetch {
    td_ops_io io;
    size_t bytes;
    size_t begun; // how many of them, from the first, are on their way
} td_native_cuda_backend_fetch;

struct td_ops_backend {
    int device;
    char name[96];
    cudaStream_t stream, aside; // copies and what needs nothing else go aside
    cudaEvent_t event;          // for those two to wait for each other
    td_native_cuda_backend_fetch waiting[TD_NATIVE_CUDA_BACKEND_WAITING];
    uint32_t waiting_count;
    td_native_cuda_backend_held *held;
    td_ops_graph *graphs;
    char *block; // what is left of the last one
    size_t block_left;
    size_t bytes;
    uint32_t *words; // zeros, for kernels that talk to each other
    uint32_t words_used;
    void *staged; // weights on their way
    bool is_building;
    bool is_split;   // something went aside that the stream must still wait for
    bool is_alone;   // so that the next kernel must not start early
    bool has_floats; // the graph itself writes floats, which may be inputs too
};

// What CUDA said, in words. NOMEM or IO.
td_err td_native_cuda_backend_fail(td_errinfo *info, cudaError_t error,
                                   const char *doing);

// Zeroed memory of the device, at a multiple of 1024; and of the host, for the
// small structs that weights are. Both live as long as the backend.
td_err td_native_cuda_backend_alloc(td_ops_backend *backend, size_t bytes,
                                    void **ret_data, td_errinfo *info);
td_err td_native_cuda_backend_alloc_io(td_ops_backend *backend, size_t bytes,
                                       td_ops_io *ret_io, td_errinfo *info);
td_err td_native_cuda_backend_keep(td_ops_backend *backend, size_t bytes,
                                   void **ret_data, td_errinfo *info);

// Adds the copy of what of a fetch that waits is at `data`: `bytes`, which the
// next kernel will read; nothing when it is there already. IO.
td_err td_native_cuda_backend_fetch_part(td_ops_backend *backend,
                                         const void *data, size_t bytes,
                                         td_errinfo *info);

// Where in the host's memory a fetch that waits has these bytes; NULL: nowhere.
const void *td_native_cuda_backend_waits(const td_ops_backend *backend,
                                         const void *data, size_t bytes);

// So many words of this graph's own; NULL: there are none left. They are
// zeros again when what was added before clear is over. IO.
uint32_t *td_native_cuda_backend_take_words(td_ops_backend *backend,
                                            size_t count);
td_err td_native_cuda_backend_clear(td_ops_backend *backend, uint32_t *words,
                                    size_t count, td_errinfo *info);

// Where the next kernel goes: after all before it, or aside.
td_native_cuda_order td_native_cuda_backend_order(td_ops_backend *backend);
td_native_cuda_order
td_native_cuda_backend_order_aside(td_ops_backend *backend);

// For graphs: rows of a view; whether a view is fit for the kernels,
// UNSUPPORTED otherwise; what CUDA says of a kernel that was added.
td_native_cuda_rows td_native_cuda_graph_rows(const td_ops_view *view);
td_err td_native_cuda_graph_check(const td_ops_view *view, const char *what,
                                  td_errinfo *info);
td_err td_native_cuda_graph_added(cudaError_t error, const char *what,
                                  td_errinfo *info);

// GELU in place, after what made it.
td_err td_native_cuda_graph_gelu(td_ops_backend *backend, const td_ops_view *x,
                                 td_errinfo *info);

// Operations of the table, in weights.cu, graph.cu and graph_tokens.cu.
td_err td_native_cuda_weights_linear(td_ops_backend *backend,
                                     const td_ops_linear_source *source,
                                     td_ops_linear_weight **ret_weight,
                                     td_errinfo *info);
td_err td_native_cuda_weights_conv(td_ops_backend *backend,
                                   const td_ops_conv_source *source,
                                   td_ops_conv_weight **ret_weight,
                                   td_errinfo *info);
td_err td_native_cuda_weights_norm(td_ops_backend *backend,
                                   const td_ops_norm_source *source,
                                   td_ops_norm **ret_norm, td_errinfo *info);
td_err td_native_cuda_weights_embedding(td_ops_backend *backend,
                                        const td_ops_embedding_source *source,
                                        td_ops_embedding **ret_embedding,
                                        td_errinfo *info);
td_err td_native_cuda_weights_upload(td_ops_backend *backend,
                                     const td_ops_view *to, const float *from,
                                     td_errinfo *info);
td_err td_native_cuda_graph_copy_out(td_ops_backend *backend,
                                     const td_ops_io *io, size_t bytes,
                                     td_errinfo *info);
td_err td_native_cuda_graph_linear(td_ops_backend *backend,
                                   const td_ops_linear *op, td_errinfo *info);
td_err td_native_cuda_graph_conv(td_ops_backend *backend, const td_ops_conv *op,
                                 td_errinfo *info);
td_err td_native_cuda_graph_norm(td_ops_backend *backend,
                                 const td_ops_norm *norm, const td_ops_view *x,
                                 const td_ops_view *out, td_errinfo *info);
td_err td_native_cuda_graph_attention(td_ops_backend *backend,
                                      const td_ops_attention *op,
                                      td_errinfo *info);
td_err td_native_cuda_graph_embed(td_ops_backend *backend,
                                  const td_ops_embedding *embedding,
                                  const td_ops_view *ids,
                                  const td_ops_view *out, td_errinfo *info);
td_err td_native_cuda_graph_modulate(td_ops_backend *backend,
                                     const td_ops_norm *norm,
                                     const td_ops_modulation *modulation,
                                     const td_ops_view *x,
                                     const td_ops_view *out, td_errinfo *info);
td_err td_native_cuda_graph_blocks(td_ops_backend *backend,
                                   const td_ops_blocks *op, td_errinfo *info);
td_err td_native_cuda_graph_step(td_ops_backend *backend, const td_ops_step *op,
                                 td_errinfo *info);

#endif

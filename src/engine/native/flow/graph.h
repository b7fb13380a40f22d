// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_FLOW_GRAPH_H
#define TD_ENGINE_NATIVE_FLOW_GRAPH_H

// One graph of a policy that denoises, while it is built: what its parts
// (pictures, towers, steps) need to add operations.

#include "engine/native/architecture.h"

typedef struct td_native_graph {
    const td_ops *ops;
    td_ops_backend *backend;
    td_ops_dtype dtype; // of activations
    uint32_t batch;
    td_errinfo *info;
} td_native_graph;

static inline td_native_graph td_native_graph_of(const td_native_model *model,
                                                 uint32_t batch,
                                                 td_errinfo *info)
{
    td_ops_info backend;
    model->ops->info(model->backend, &backend);
    return (td_native_graph){model->ops, model->backend, backend.dtype, batch,
                             info};
}

static inline td_ops_view td_native_graph_room(const td_native_graph *graph,
                                               void *data, uint32_t rows,
                                               uint32_t cols)
{
    return td_ops_dense(data, graph->dtype, graph->batch, rows, cols);
}

static inline td_ops_view td_native_graph_input(const td_native_graph *graph,
                                                const td_ops_io *io,
                                                td_ops_dtype dtype,
                                                uint32_t rows, uint32_t cols)
{
    return td_ops_dense(io->device, dtype, graph->batch, rows, cols);
}

static inline td_ops_view td_native_graph_shared(const td_native_graph *graph,
                                                 td_ops_view table)
{
    return td_ops_shared(table, graph->batch);
}

// One row that all rows share.
static inline td_ops_view td_native_graph_repeated(const td_native_graph *graph,
                                                   td_ops_view row,
                                                   uint32_t rows)
{
    row.rows = rows;
    row.row_stride = 0;
    return td_ops_shared(row, graph->batch);
}

TD_NODISCARD static inline td_err
td_native_graph_linear(const td_native_graph *graph, const td_ops_linear *op)
{
    return graph->ops->linear(graph->backend, op, graph->info);
}

#endif

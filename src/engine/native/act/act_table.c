// SPDX-License-Identifier: Apache-2.0
#include "engine/native/act/act_load.h"

#include <stdlib.h>
#include <string.h>

td_err td_native_act_table_new(const td_native_act_loading *load, uint32_t rows,
                               uint32_t cols, td_ops_view *ret_view)
{
    td_native_model *model = load->model;
    td_ops_dtype dtype = load->act->dtype;
    void *data = NULL;
    TD_TRY(model->ops->alloc(model->backend,
                             (size_t)rows * cols * td_ops_bytes(dtype), &data,
                             load->info));
    *ret_view = td_ops_dense(data, dtype, 1, rows, cols);
    return TD_OK;
}

td_err td_native_act_table_fill(const td_native_act_loading *load,
                                td_ops_view to, const float *from)
{
    return load->model->ops->upload(load->model->backend, &to, from,
                                    load->info);
}

td_err td_native_act_table_repeat(const td_native_act_loading *load,
                                  td_ops_view to, const float *row)
{
    size_t rows = (size_t)to.batch * to.rows;
    float *all = malloc(rows * to.cols * sizeof *all);
    if (!all) return TD_ERR_NOMEM;
    for (size_t i = 0; i < rows; i++)
        memcpy(all + i * to.cols, row, to.cols * sizeof *all);
    td_err err = td_native_act_table_fill(load, to, all);
    free(all);
    return err;
}

td_err td_native_act_table_make(const td_native_act_loading *load,
                                const td_ops_linear_weight *weight,
                                td_ops_view x, const float *bias, uint32_t cols,
                                uint32_t placed, td_ops_view *ret_table)
{
    const td_ops *ops = load->model->ops;
    td_ops_backend *backend = load->model->backend;
    td_ops_graph *graph = NULL;
    td_ops_view table = {0};
    TD_TRY(td_native_act_table_new(load, x.rows, cols, &table));
    TD_TRY(td_native_act_table_repeat(load, table, bias));
    const td_ops_linear op = {
        .weight = weight, .x = x, .add = table, .out = table};
    TD_TRY(ops->begin(backend, load->info));
    TD_TRY(ops->linear(backend, &op, load->info));
    TD_TRY(ops->end(backend, &graph, load->info));
    TD_TRY(ops->run(backend, graph, load->info));
    if (placed < cols)
        TD_TRY(td_native_act_table_repeat(
            load, td_ops_cols(table, placed, cols - placed), bias + placed));
    *ret_table = table;
    return TD_OK;
}

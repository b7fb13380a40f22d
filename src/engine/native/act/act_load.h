// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_ACT_ACT_LOAD_H
#define TD_ENGINE_NATIVE_ACT_ACT_LOAD_H

// How ACT is loaded: act_load.c sees to inputs and memory, act_layers.c to the
// layers and to what is computed once, at the start.

#include "engine/native/act/act.h"

// What td_native_act_loading needs and running does not.
typedef struct td_native_act_loading {
    td_native_model *model;
    td_native_act_network *act;
    float *positions; // [T][d], of the encoder's tokens
    float *steps;     // [chunk][d], of the decoder's
    td_ops_view positions_view, steps_view;
    td_errinfo *info;
} td_native_act_loading;

// Memory of the backend's for a table that all members share. NOMEM.
TD_NODISCARD td_err td_native_act_table_new(const td_native_act_loading *load,
                                            uint32_t rows, uint32_t cols,
                                            td_ops_view *ret_table);

// Writes all of a view; and the same row into every row of one. NOMEM, IO.
TD_NODISCARD td_err td_native_act_table_fill(const td_native_act_loading *load,
                                             td_ops_view to, const float *from);
TD_NODISCARD td_err td_native_act_table_repeat(
    const td_native_act_loading *load, td_ops_view to, const float *row);

// A new table, x W + bias, of which only the first `placed` columns have x. As
// the backend's operations.
TD_NODISCARD td_err td_native_act_table_make(const td_native_act_loading *load,
                                             const td_ops_linear_weight *weight,
                                             td_ops_view x, const float *bias,
                                             uint32_t cols, uint32_t placed,
                                             td_ops_view *ret_table);

// The layers, when positions and steps are there. As td_native_params_tensor.
TD_NODISCARD td_err
td_native_act_layers_load(const td_native_act_loading *load);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_FLOW_TOWER_H
#define TD_ENGINE_NATIVE_FLOW_TOWER_H

// A tower of decoder layers as Llama and Gemma have them: an RMS norm,
// attention with rotary positions, a sum, an RMS norm, a gated product, a sum.
// The language model of a policy is one, and its action expert another that
// attends to what the first one left.

#include "engine/native/flow/graph.h"
#include "engine/native/params.h"

typedef struct td_native_tower_layer {
    td_ops_norm *norms[2];
    td_ops_linear_weight *qkv; // or q alone
    td_ops_linear_weight *kv;  // of a layer of which no more is wanted
    td_ops_linear_weight *out, *gated, *down;
} td_native_tower_layer;

typedef struct td_native_tower {
    uint32_t width, hidden, layers;
    uint32_t heads, kv_heads, size; // of a head
    td_ops_activation activation;   // of the gates
    td_native_tower_layer *each;
    td_ops_norm *last; // or NULL

    // Memory of all layers, for `rows`.
    uint32_t rows;
    void *sums, *normed, *queries, *attended, *raised;
} td_native_tower;

typedef struct td_native_tower_config {
    const char *prefix; // of its layers, "....layers"
    const char *last;   // of the norm after them, or NULL
    uint32_t layers, size, rows;
    td_ops_activation activation;
    td_native_params_norm_kind norm; // cols are the tower's
    // The modulation of the norms is data of the graph (AdaRMS).
    bool modulated;
    // Whether layer `i` has keys and values that come from elsewhere. NULL:
    // none
    bool (*is_cross)(const void *user, uint32_t layer);
    const void *user;
    bool ends_with_kv; // nothing is wanted of the last layer but k and v
} td_native_tower_config;

// Reads its sizes, gives the backend its weights and takes its memory. To be
// ended with td_native_tower_done() also when this fails.
TD_NODISCARD td_err td_native_tower_load(td_native_model *model,
                                         const td_native_tower_config *config,
                                         td_native_tower *tower,
                                         td_errinfo *info);
void td_native_tower_done(td_native_tower *tower);

// What differs from layer to layer, and what one layer attends to.
typedef struct td_native_tower_step {
    uint32_t rows;
    td_ops_view kv; // where k and v beside each other go; absent: nowhere
    td_ops_rotary
        rotary; // table and positions; of q alone where there is no kv
    td_ops_attention attention;       // all but q, out, heads and scale
    td_ops_modulation modulations[3]; // of the two norms, and of the next one
} td_native_tower_step;

// The sum that layers add to, [rows][width] of each member, and its norm, which
// the layer before made; before the first, td_native_tower_begin() does.
td_ops_view td_native_tower_sums(const td_native_tower *tower,
                                 const td_native_graph *graph, uint32_t rows);
td_ops_view td_native_tower_normed(const td_native_tower *tower,
                                   const td_native_graph *graph, uint32_t rows);

// Adds the first layer's norm of the sums.
TD_NODISCARD td_err td_native_tower_begin(const td_native_tower *tower,
                                          const td_native_graph *graph,
                                          uint32_t rows,
                                          const td_ops_modulation *modulation);

// Adds one layer.
TD_NODISCARD td_err td_native_tower_build(const td_native_tower *tower,
                                          const td_native_graph *graph,
                                          uint32_t layer,
                                          const td_native_tower_step *step);

#endif

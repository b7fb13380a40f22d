// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_SMOLVLA_SMOLVLA_H
#define TD_ENGINE_NATIVE_SMOLVLA_SMOLVLA_H

// SmolVLA between its files: smolvla_load.c fills this in, smolvla.c builds
// graphs of it.
//
// The language model's layers and the expert's go side by side. In a layer that
// is no cross layer the expert attends to the keys and values of the prefix and
// to its own; in a cross layer to the prefix alone, through projections of its
// own, which are applied once and kept in the place of the prefix's.

#include "engine/native/flow/flow.h"
#include "engine/native/flow/siglip.h"
#include "engine/native/flow/tables.h"
#include "engine/native/flow/tower.h"

typedef struct td_native_smolvla_options {
    bool cross;         // has cross layers at all
    uint32_t self_each; // every so many a layer is none; 0: all are
    uint32_t steps;
    uint32_t layers;
    uint32_t state_width, action_width;
    double least_period, most_period;
    td_native_guide guide;
} td_native_smolvla_options;

typedef struct td_native_smolvla_network {
    td_native_flow flow;
    td_native_smolvla_options options;
    td_native_siglip *siglip;
    uint32_t shuffle; // patches a side that become one row
    uint32_t picture_rows;
    td_ops_linear_weight *connector;
    float picture_scale; // of what it gives
    td_ops_embedding *embedding;
    td_ops_linear_weight *state_proj;
    td_native_tower text, expert;
    td_ops_linear_weight **cross_k, **cross_v; // by layer; NULL: none
    td_ops_linear_weight *action_in, *action_out, *time_in, *time_out;
    td_ops_view times;  // [steps][expert]: of the time, what time_in adds
    td_ops_view angles; // rotary, [positions][head]

    void *shuffled; // [pictures][rows][...]
    void *kv;       // of a layer, before projections or of the suffix
    void *embedded, *mixed, *v; // of the suffix
} td_native_smolvla_network;

// As td_native_architecture_ops; the network is the model's.
TD_NODISCARD td_err td_native_smolvla_check(const td_native_checkpoint *of,
                                            td_errinfo *info);
TD_NODISCARD td_err td_native_smolvla_load(td_native_model *model,
                                           td_errinfo *info);
void td_native_smolvla_free(void *network);

// Whether the expert's layer attends to the prefix alone.
bool td_native_smolvla_is_cross(const td_native_smolvla_options *options,
                                uint32_t layer);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_PI0_PI0_H
#define TD_ENGINE_NATIVE_PI0_PI0_H

// pi0 and pi0.5 between their files: pi0_load.c fills this in, pi0.c builds
// graphs of it.
//
// pi0 shows the robot's state to its expert as a row before the actions, and
// mixes the time of a step into each action. pi0.5 writes the state into the
// text, and lets the time modulate every norm of the expert.

#include "engine/native/flow/flow.h"
#include "engine/native/flow/siglip.h"
#include "engine/native/flow/tables.h"
#include "engine/native/flow/tower.h"

typedef struct td_native_pi0_options {
    bool modulated; // pi0.5
    uint32_t steps;
    uint32_t state_width, action_width;
    double least_period, most_period;
    td_native_guide guide;
} td_native_pi0_options;

typedef struct td_native_pi0_network {
    td_native_flow flow;
    td_native_pi0_options options;
    td_native_siglip *siglip;
    td_ops_linear_weight *projector;
    td_ops_embedding *embedding;
    td_native_tower text, expert;
    td_ops_linear_weight *action_in, *action_out;
    td_ops_view angles; // rotary, [positions][head]

    // pi0's.
    td_ops_linear_weight *state_proj, *time_in, *time_out;
    td_ops_view times; // [steps][expert]: of the time, what time_in adds

    // pi0.5's: of norm n (two a layer, and the last), [steps][2][3 expert]: of
    // the step's time, and of rows that are clean already.
    td_ops_view *modulations;

    void *kv;                   // of a layer of the suffix
    void *embedded, *mixed, *v; // of the suffix
} td_native_pi0_network;

// As td_native_architecture_ops; the network is the model's.
TD_NODISCARD td_err td_native_pi0_check(const td_native_checkpoint *of,
                                        td_errinfo *info);
TD_NODISCARD td_err td_native_pi0_load(td_native_model *model,
                                       td_errinfo *info);
void td_native_pi0_free(void *network);

#endif

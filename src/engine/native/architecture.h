// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_ARCHITECTURE_H
#define TD_ENGINE_NATIVE_ARCHITECTURE_H

// What a kind of policy (ACT, SmolVLA, ...) is to model.c: a table of functions
// that read its options, load its weights and build its graphs.
//
// To add one: a folder beside act/ with a td_native_architecture_ops, and its
// row in model.c.

#include "engine/native/model.h"
#include "tendon/engine.h"

typedef struct td_native_architecture_ops {
    td_native_policy_type type;

    // UNSUPPORTED, FORMAT, LIMIT for an option. Reads no weights.
    td_err (*check)(const td_native_checkpoint *of, td_errinfo *info);

    // Gives the backend its weights, allocates for max_batch and fills in the
    // model's inputs and outputs. `network` is freed also when this fails.
    td_err (*load)(td_native_model *model, td_errinfo *info);

    // Builds the graph of one batch size, between begin and end. Runs nothing.
    td_err (*build)(td_native_model *model, uint32_t batch, td_errinfo *info);

    void (*free)(void *network);
} td_native_architecture_ops;

extern const td_native_architecture_ops td_native_act;

// The frames of one camera: of the first member, and bytes to the next.
typedef struct td_native_frames {
    uint8_t *host;
    size_t stride;
} td_native_frames;

struct td_native_model {
    const td_native_architecture_ops *architecture;
    const td_native_checkpoint *checkpoint;
    const td_native_pipeline *pipeline;
    const td_ops *ops;
    td_ops_backend *backend;
    uint32_t max_batch;
    void *network; // what load() made: the architecture's own
    td_native_frames frames[TD_WIRE_MAX_IMAGES];
    float *state, *env, *actions; // of the first member; the next are behind
    td_ops_graph *graphs[TD_ENGINE_MAX_BATCH + 1]; // by batch size
};

// A view of new memory of the backend's own type, for all members. NOMEM.
TD_NODISCARD td_err td_native_model_buffer(td_native_model *model,
                                           uint32_t rows, uint32_t cols,
                                           td_ops_view *ret_view,
                                           td_errinfo *info);

#endif

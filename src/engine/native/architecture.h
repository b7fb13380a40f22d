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

// What one graph is of. A policy without halves has TD_NATIVE_WHOLE alone.
typedef struct td_native_build {
    td_native_part part;
    uint32_t batch;
    uint32_t text_rows; // of a prefix: most tokens of a text; 0: no text
} td_native_build;

typedef struct td_native_flow td_native_flow;

typedef struct td_native_architecture_ops {
    td_native_policy_type type;

    // UNSUPPORTED, FORMAT, LIMIT for an option. Reads no weights.
    td_err (*check)(const td_native_checkpoint *of, td_errinfo *info);

    // Gives the backend its weights, allocates for max_batch and fills in the
    // model's inputs and outputs. `network` is freed also when this fails.
    td_err (*load)(td_native_model *model, td_errinfo *info);

    // Builds one graph, between begin and end. Runs nothing.
    td_err (*build)(td_native_model *model, const td_native_build *of,
                    td_errinfo *info);

    void (*free)(void *network);

    // Whether it uses operations that a backend may lack.
    bool wants_whole;
} td_native_architecture_ops;

extern const td_native_architecture_ops td_native_act;
extern const td_native_architecture_ops td_native_smolvla;
extern const td_native_architecture_ops td_native_pi0;
extern const td_native_architecture_ops td_native_pi05;

#define TD_NATIVE_MOST_BUCKETS 4

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
    // Of the first member; the next are behind. A policy with halves takes its
    // numbers in another way.
    float *state, *env;
    float *actions;
    uint32_t action_stride; // from row to row
    td_native_flow *flow;   // of a policy with halves, and part of its network
    uint64_t kept_bytes;    // of prefixes
    uint32_t buckets[TD_NATIVE_MOST_BUCKETS]; // text rows; {0}: no text
    uint32_t bucket_count;
    uint32_t members_text[TD_ENGINE_MAX_BATCH]; // tokens of each
    // By text rows and batch size; of decode by batch size.
    td_ops_graph *graphs[TD_NATIVE_MOST_BUCKETS][TD_ENGINE_MAX_BATCH + 2];
    td_ops_graph *decodes[TD_ENGINE_MAX_BATCH + 2];
};

// A view of new memory of the backend's own type, for all members. NOMEM.
TD_NODISCARD td_err td_native_model_buffer(td_native_model *model,
                                           uint32_t rows, uint32_t cols,
                                           td_ops_view *ret_view,
                                           td_errinfo *info);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_FLOW_SIGLIP_H
#define TD_ENGINE_NATIVE_FLOW_SIGLIP_H

// SigLIP's picture tower: a square picture cut into patches, a transformer over
// them, a norm. SmolVLA, pi0 and pi0.5 look through one.

#include "engine/native/flow/graph.h"

typedef struct td_native_siglip td_native_siglip;

typedef struct td_native_siglip_config {
    const char *prefix; // of its tensors, "...vision_model"
    uint32_t heads;
    float epsilon;     // of its norms
    uint32_t side;     // pixels of a picture
    uint32_t pictures; // most in a pass
    bool spreads;      // its positions over pictures of another side
} td_native_siglip_config;

// What comes out, for each patch: its width, and patches along a side.
typedef struct td_native_siglip_shape {
    uint32_t width, across;
} td_native_siglip_shape;

// Gives the backend its weights and takes its memory. Owned by the caller; it
// must live until the backend is closed. As td_native_model_open.
TD_NODISCARD td_err td_native_siglip_load(td_native_model *model,
                                          const td_native_siglip_config *config,
                                          td_native_siglip **ret_siglip,
                                          td_errinfo *info);
void td_native_siglip_free(td_native_siglip *siglip);

td_native_siglip_shape td_native_siglip_shape_of(const td_native_siglip *of);

// Adds its operations: `pictures` are F32, a member each, of side x side rows
// of red, green and blue from 0 to 1. What it gives is its own memory, which
// the next pass uses again.
TD_NODISCARD td_err td_native_siglip_build(const td_native_siglip *siglip,
                                           const td_native_graph *graph,
                                           td_ops_view pictures,
                                           td_ops_view *ret_features);

#endif

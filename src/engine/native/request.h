// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_REQUEST_H
#define TD_ENGINE_NATIVE_REQUEST_H

// Between an observation of the wire and a native model: what the model is
// called and takes, and one observation into its inputs.

#include "engine/native/model.h"
#include "engine/native/native.h"
#include "engine/picture.h"

// The tensor of an observation that a policy's environment state is.
#define TD_NATIVE_ENVIRONMENT "environment_state"

// Memory of the names in a spec. Owned: free().
typedef struct td_native_names td_native_names;

// Cameras, channels and sizes into the spec: channels are named by the
// settings, else by the checkpoint, else they have numbers. MISMATCH when the
// settings name another number of them than there are, LIMIT, NOMEM.
TD_NODISCARD td_err td_native_names_fill(
    const td_native_checkpoint *from, const td_engine_native_settings *settings,
    td_engine_spec *spec, td_native_names **ret_names, td_errinfo *info);

// Borrowed.
typedef struct td_native_request {
    const td_engine_spec *spec;
    td_engine_picture_reader *pictures;
    const td_native_pipeline *pipeline;
    td_native_model *model;
} td_native_request;

// One observation into member `slot` of the model. MISMATCH for what does not
// fit; as td_engine_picture_decode and td_native_pipeline_preprocess.
TD_NODISCARD td_err td_native_request_prepare(
    const td_native_request *request, const td_wire_obs *obs, uint32_t slot,
    td_native_pipeline_prepared *ret_prepared, td_errinfo *info);

// What was prepared into member `slot`, when its frames are there. As
// td_native_model_observe.
TD_NODISCARD td_err td_native_request_observe(
    td_native_model *model, uint32_t slot,
    const td_native_pipeline_prepared *prepared, td_errinfo *info);

// What a chunk is made from beside an observation. Borrowed.
typedef struct td_native_request_chance {
    uint64_t seed;              // of all noise
    const td_wire_tensor *left; // rows that the robot has promised, or NULL
    uint32_t delay;             // how many of them will have been played
    const float *base;          // as td_native_pipeline_prepared
    float *room;                // for chunk_rows x action_dim numbers
} td_native_request_chance;

// That of member `slot`, before each run of decode. MISMATCH, INVALID for rows
// that do not fit.
TD_NODISCARD td_err td_native_request_sample(
    td_native_model *model, const td_native_pipeline *pipeline,
    const td_native_request_chance *chance, uint32_t slot, td_errinfo *info);

#endif

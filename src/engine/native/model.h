// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_MODEL_H
#define TD_ENGINE_NATIVE_MODEL_H

// A checkpoint's policy on one backend (ops.h), ready to run: numbers of each
// member of a batch in, a chunk for each out, both as the policy has them. What
// a robot's units are is the pipeline's affair.
//
// One thread at a time.

#include "engine/native/ops/ops.h"
#include "engine/native/pipeline/pipeline.h"

typedef struct td_native_model td_native_model;

typedef struct td_native_model_config {
    const td_native_checkpoint *checkpoint; // these three are borrowed
    const td_native_pipeline *pipeline;
    const td_ops *ops;
    td_ops_config backend;
    uint32_t max_batch; // 1 to TD_ENGINE_MAX_BATCH
} td_native_model_config;

// Whether there is a native policy for this checkpoint; reads no weights. Any
// thread. UNSUPPORTED with its type, or the option that it does not have.
TD_NODISCARD td_err td_native_model_check(const td_native_checkpoint *of,
                                          td_errinfo *info);

// Loads weights and makes a graph for each batch size. Owned by the caller.
// Blocks. As td_native_model_check; NOTFOUND and MISMATCH for a tensor, FORMAT
// for one that is not finite, NOMEM, and what the backend's open() gives.
TD_NODISCARD td_err td_native_model_open(const td_native_model_config *config,
                                         td_native_model **ret_model,
                                         td_errinfo *info);
void td_native_model_close(td_native_model *model);
TD_AUTO_FREE(td_native_model, td_native_model_close)

// Where the inputs of a member go: RGB of a camera, height x width x 3; and the
// normalised state and environment, NULL where the policy has none.
uint8_t *td_native_model_frame(const td_native_model *model, uint32_t member,
                               uint32_t camera);
float *td_native_model_state(const td_native_model *model, uint32_t member);
float *td_native_model_env(const td_native_model *model, uint32_t member);

// Runs the first `count` members. Blocks. INVALID for a count that is 0 or
// above max_batch; IO when the device failed.
TD_NODISCARD td_err td_native_model_run(td_native_model *model, uint32_t count,
                                        td_errinfo *info);

// What the last run gave a member: chunk_rows x action_dim, normalised.
const float *td_native_model_actions(const td_native_model *model,
                                     uint32_t member);

// What the backend says of itself.
void td_native_model_info(const td_native_model *model, td_ops_info *ret_info);

#endif

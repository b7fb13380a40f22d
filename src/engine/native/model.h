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
    uint32_t max_batch;  // 1 to TD_ENGINE_MAX_BATCH
    uint64_t kept_bytes; // of prefixes; 0: none is kept
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

// Borrowed.
const td_native_policy *td_native_model_policy(const td_native_model *model);

// Whether prefix and decode can run apart, and the bytes of one prefix that is
// kept; 0: they cannot.
size_t td_native_model_prefix_bytes(const td_native_model *model);

// How many prefixes there is room for.
uint32_t td_native_model_slots(const td_native_model *model);

// Where RGB of a member's camera goes, height x width x 3.
uint8_t *td_native_model_frame(const td_native_model *model, uint32_t member,
                               uint32_t camera);

// The rest of a member's inputs, when its frames are there: numbers normalised,
// the ids of a text. Borrowed for the call.
typedef struct td_native_model_input {
    const float *state, *env;
    const uint32_t *ids;
    uint32_t id_count;
} td_native_model_input;

// INVALID for an id that the policy does not know, LIMIT.
TD_NODISCARD td_err td_native_model_observe(td_native_model *model,
                                            uint32_t member,
                                            const td_native_model_input *input,
                                            td_errinfo *info);

// How many numbers a member's chunk begins as; 0: there is no chance in it.
// They are written before each run of decode, which uses them up.
uint32_t td_native_model_noise_count(const td_native_model *model);
float *td_native_model_noise(const td_native_model *model, uint32_t member);

// What is left of a member's chunk before, for real-time chunking: rows of
// action_dim normalised numbers, of which `delay` will have been played. A
// horizon of 0 is the policy's own.
typedef struct td_native_model_left {
    const float *rows;
    uint32_t count, delay, horizon;
} td_native_model_left;

// Whether it can do that; guides the member's next decode, or with NULL does
// not. To be called before each, after the noise is there. INVALID for rows
// that the policy was not trained for.
bool td_native_model_can_guide(const td_native_model *model);
TD_NODISCARD td_err td_native_model_guide(td_native_model *model,
                                          uint32_t member,
                                          const td_native_model_left *left,
                                          td_errinfo *info);

typedef enum td_native_part {
    TD_NATIVE_WHOLE,
    TD_NATIVE_PREFIX, // of policies with halves
    TD_NATIVE_DECODE,
} td_native_part;

// Runs the first `count` members. Blocks. INVALID for a count that is 0 or
// above max_batch; IO when the device failed.
TD_NODISCARD td_err td_native_model_run(td_native_model *model,
                                        td_native_part part, uint32_t count,
                                        td_errinfo *info);

// Between runs: the prefix of a member to a slot below
// td_native_model_slots(), and from there to any member. IO.
TD_NODISCARD td_err td_native_model_keep(td_native_model *model,
                                         uint32_t member, uint32_t slot,
                                         td_errinfo *info);
TD_NODISCARD td_err td_native_model_restore(td_native_model *model,
                                            uint32_t slot, uint32_t member,
                                            td_errinfo *info);

// What the last run gave a member: chunk_rows x action_dim, normalised.
void td_native_model_actions(const td_native_model *model, uint32_t member,
                             float *ret_actions);

// What the backend says of itself.
void td_native_model_info(const td_native_model *model, td_ops_info *ret_info);

#endif

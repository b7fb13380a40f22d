// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_PIPELINE_PIPELINE_H
#define TD_ENGINE_NATIVE_PIPELINE_PIPELINE_H

// A checkpoint's steps at work on one request: numbers and text as a robot has
// them into what the policy takes, and actions back. Pictures are not touched
// here: what is done to their values is a scale and a bias for each colour,
// which whoever reads the bytes can do in passing.

#include "engine/native/checkpoint/checkpoint.h"

typedef struct td_native_pipeline td_native_pipeline;

// Borrows the checkpoint. `tokenizer` is the path of a tokenizer.json, or NULL:
// where td_native_checkpoint_tokenizer() finds it; it is opened if there is a
// step that wants it. Owned by the caller. Blocks. NOTFOUND when there is no
// tokenizer and one is wanted, INVALID for one that no step wants; IO, FORMAT,
// MISMATCH, NOMEM.
TD_NODISCARD td_err td_native_pipeline_new(const td_native_checkpoint *from,
                                           const char *tokenizer,
                                           td_native_pipeline **ret_pipeline,
                                           td_errinfo *info);
void td_native_pipeline_free(td_native_pipeline *pipeline);
TD_AUTO_FREE(td_native_pipeline, td_native_pipeline_free)

// What a colour of a pixel is to the policy: byte * scale + bias, of red, green
// and blue. In it are LeRobot's 1/255 and the normaliser.
typedef struct td_native_colours {
    float scale[3], bias[3];
} td_native_colours;

// Of a camera of the policy's. Any thread.
td_native_colours td_native_pipeline_colours(const td_native_pipeline *pipeline,
                                             uint32_t camera);

// What a robot gives. Borrowed.
typedef struct td_native_pipeline_input {
    const float *state; // [state_dim], in the robot's units
    const float *env;   // [env_dim]
    td_wire_text task;
} td_native_pipeline_input;

// What the policy takes, and what is needed to give its actions back.
typedef struct td_native_pipeline_prepared {
    float state[TD_WIRE_MAX_CHANNELS];
    float env[TD_WIRE_MAX_CHANNELS];
    float base[TD_WIRE_MAX_CHANNELS]; // what relative actions are relative to
    uint32_t ids[TD_NATIVE_MAX_TOKENS];
    uint32_t id_count; // not padded: what pads is masked and has any id
} td_native_pipeline_prepared;

// Any thread; never blocks. INVALID (a state that is not finite, a text that is
// no UTF-8), LIMIT (a text that is too long), INTERNAL (the tokenizer), NOMEM.
TD_NODISCARD td_err td_native_pipeline_preprocess(
    const td_native_pipeline *pipeline, const td_native_pipeline_input *input,
    td_native_pipeline_prepared *ret_prepared, td_errinfo *info);

// Rows of action_dim values, in place: the policy's to the robot's units. Any
// thread; never blocks.
void td_native_pipeline_postprocess(const td_native_pipeline *pipeline,
                                    const td_native_pipeline_prepared *prepared,
                                    uint32_t rows, float *actions);

// The way back, of actions that a robot has: the robot's units to the policy's.
// `base` is as in td_native_pipeline_prepared.
void td_native_pipeline_renormalize(const td_native_pipeline *pipeline,
                                    const float *base, uint32_t rows,
                                    float *actions);

#endif

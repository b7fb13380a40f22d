// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CHECKPOINT_STEP_H
#define TD_ENGINE_NATIVE_CHECKPOINT_STEP_H

// One step of LeRobot's before or after a policy, with its numbers.
//
// To add one: a row in TD_NATIVE_STEPS, how it is read in step.c, and what it
// does in native/pipeline/pipeline.c.

#include "engine/native/checkpoint/norms.h"

#define TD_NATIVE_MAX_TOKENS 512

typedef enum td_native_step_place {
    TD_NATIVE_BEFORE = 1,
    TD_NATIVE_AFTER = 2,
    TD_NATIVE_EITHER = TD_NATIVE_BEFORE | TD_NATIVE_AFTER,
} td_native_step_place;

// its name in the file, where it may stand
#define TD_NATIVE_STEPS(X)                                                     \
    X(RENAME, "rename_observations_processor", BEFORE)                         \
    X(TO_BATCH, "to_batch_processor", BEFORE)                                  \
    X(DEVICE, "device_processor", EITHER)                                      \
    X(NORMALIZE, "normalizer_processor", BEFORE)                               \
    X(NEW_LINE, "smolvla_new_line_processor", BEFORE)                          \
    X(PI0_NEW_LINE, "pi0_new_line_processor", BEFORE)                          \
    X(TOKENIZE, "tokenizer_processor", BEFORE)                                 \
    X(STATE_TO_TEXT, "pi05_prepare_state_tokenizer_processor_step", BEFORE)    \
    X(RELATIVE, "relative_actions_processor", BEFORE)                          \
    X(UNNORMALIZE, "unnormalizer_processor", AFTER)                            \
    X(ABSOLUTE, "absolute_actions_processor", AFTER)

typedef enum td_native_step_kind {
#define TD_NATIVE_STEP_ENUM(id, name, place) TD_NATIVE_STEP_##id,
    TD_NATIVE_STEPS(TD_NATIVE_STEP_ENUM)
#undef TD_NATIVE_STEP_ENUM
        TD_NATIVE_STEP_COUNT
} td_native_step_kind;

// What each holds beside its kind is 0 where another kind is named.
typedef struct td_native_step {
    td_native_step_kind kind;
    bool enabled;           // RELATIVE, ABSOLUTE; the others always are
    json_t *renames;        // RENAME: {the robot's key: the policy's}
    td_native_norms *norms; // NORMALIZE, UNNORMALIZE
    const char *tokenizer;  // TOKENIZE: its name on the hub, or NULL
    uint32_t most_tokens;   // more are cut off at the right
    bool pads;              // to that many, or to the longest of a batch
    bool *mask; // RELATIVE: [action_dim], to the state or as they are
} td_native_step;

// Its name in the file.
const char *td_native_step_name(td_native_step_kind kind);

// Which one it is, and may stand on this place. UNSUPPORTED by name.
TD_NODISCARD td_err td_native_step_kind_of(const td_json_at *entry,
                                           td_native_step_place place,
                                           td_native_step_kind *ret_kind,
                                           td_errinfo *info);

// Reads what a step of this kind holds, and the state file that it names, into
// `step`, of which td_native_step_done() must be called in any case. Blocks. As
// td_native_checkpoint_open.
TD_NODISCARD td_err td_native_step_read(const char *folder,
                                        const td_native_policy *policy,
                                        const td_json_at *entry,
                                        td_native_step *step, td_errinfo *info);
void td_native_step_done(td_native_step *step);

#endif

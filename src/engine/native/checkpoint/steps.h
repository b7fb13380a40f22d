// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CHECKPOINT_STEPS_H
#define TD_ENGINE_NATIVE_CHECKPOINT_STEPS_H

// What LeRobot does with an observation before the policy sees it, and with
// actions after: the steps of policy_preprocessor.json and
// policy_postprocessor.json in their order, with their numbers.

#include "engine/native/checkpoint/step.h"

#define TD_NATIVE_MAX_STEPS 32

// Everything is its own.
typedef struct td_native_steps {
    char *file;
    json_t *config; // all of it
    uint32_t count;
    td_native_step each[TD_NATIVE_MAX_STEPS];
} td_native_steps;

// Reads the file of one place, BEFORE or AFTER, and the state files that it
// names. Owned: td_native_steps_done(). Blocks. As td_native_checkpoint_open.
TD_NODISCARD td_err td_native_steps_init(const char *folder,
                                         const td_native_policy *policy,
                                         td_native_step_place place,
                                         td_native_steps *ret_steps,
                                         td_errinfo *info);

// The same of a file that is read already, which is consumed; `file` is what
// errors call it.
TD_NODISCARD td_err td_native_steps_init_from(json_t *config, const char *file,
                                              const char *folder,
                                              const td_native_policy *policy,
                                              td_native_step_place place,
                                              td_native_steps *ret_steps,
                                              td_errinfo *info);
void td_native_steps_done(td_native_steps *steps);

// The first of this kind, or NULL.
const td_native_step *td_native_steps_find(const td_native_steps *steps,
                                           td_native_step_kind kind);

#endif

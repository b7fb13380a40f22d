// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CHECKPOINT_CHECKPOINT_H
#define TD_ENGINE_NATIVE_CHECKPOINT_CHECKPOINT_H

// A LeRobot checkpoint folder: its configuration, its weights (mapped) and the
// steps before and after the policy, in the order of its files. What is not
// understood is refused here, by name, and never met later.

#include "engine/native/checkpoint/path.h"
#include "engine/native/checkpoint/policy.h"
#include "engine/native/checkpoint/steps.h"
#include "engine/native/checkpoint/weights.h"

typedef struct td_native_checkpoint {
    char *folder;
    td_native_policy policy;
    td_native_weights *weights;
    td_native_steps before; // policy_preprocessor.json
    td_native_steps after;  // policy_postprocessor.json
} td_native_checkpoint;

// Opens a folder. Owned by the caller. Blocks; reads no weights. NOTFOUND, IO,
// FORMAT, LIMIT, UNSUPPORTED, MISMATCH (statistics of another size than the
// policy's), NOMEM, each with the file's path in `info`.
TD_NODISCARD td_err td_native_checkpoint_open(
    const char *folder, td_native_checkpoint **ret_checkpoint,
    td_errinfo *info);
void td_native_checkpoint_close(td_native_checkpoint *checkpoint);
TD_AUTO_FREE(td_native_checkpoint, td_native_checkpoint_close)

// Where a checkpoint is: `folder` if that holds one, else the repository `name`
// of the hub in its local cache. NOTFOUND with the line that gets it, LIMIT.
TD_NODISCARD td_err td_native_checkpoint_find(
    const char *folder, const char *name, char ret_folder[TD_NATIVE_MAX_PATH],
    td_errinfo *info);

// Where the tokenizer.json of its tokenizer_processor is: in the folder, in the
// folder "tokenizer" in there, where LeRobot from 0.6.2 on puts it, or in the
// hub's local cache; where none is, where it should be. LIMIT.
TD_NODISCARD td_err td_native_checkpoint_tokenizer(
    const td_native_checkpoint *from, char ret_path[TD_NATIVE_MAX_PATH],
    td_errinfo *info);

// What a robot's observation calls a feature of the policy's: of
// "observation.images.top" "top", or what the steps rename to it. Borrowed. Any
// thread.
const char *td_native_checkpoint_name(const td_native_checkpoint *from,
                                      const char *key);

#endif

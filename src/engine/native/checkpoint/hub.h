// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CHECKPOINT_HUB_H
#define TD_ENGINE_NATIVE_CHECKPOINT_HUB_H

// Files of the Hugging Face hub that are on this machine already: in a folder,
// or in the hub's local cache, where LeRobot and `hf download` leave them.
// Nothing is fetched.

#include "engine/native/checkpoint/path.h"

// Whether this could be a repository's, "owner/name".
bool td_native_hub_is_name(const char *name);

// The path of `file` of a repository "owner/name", or of a folder by its path.
// Of a repository the revision that "main" was last, or the only one that there
// is. Blocks. NOTFOUND, LIMIT; INVALID for what is no name of a repository.
TD_NODISCARD td_err td_native_hub_find(const char *name, const char *file,
                                       char ret_path[TD_NATIVE_MAX_PATH],
                                       td_errinfo *info);

#endif

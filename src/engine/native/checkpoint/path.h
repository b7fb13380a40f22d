// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CHECKPOINT_PATH_H
#define TD_ENGINE_NATIVE_CHECKPOINT_PATH_H

#include "base/err.h"

#include <stdbool.h>

#define TD_NATIVE_MAX_PATH 4096
#define TD_NATIVE_MAX_JSON_BYTES (16u << 20) // of a file

// "FOLDER/NAME". LIMIT when it is too long.
TD_NODISCARD td_err td_native_path_join(const char *folder, const char *name,
                                        char ret_path[TD_NATIVE_MAX_PATH],
                                        td_errinfo *info);

// Whether a name out of a file can only be one in the same folder.
bool td_native_path_is_plain(const char *name);

#endif

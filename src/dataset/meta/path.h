// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_META_PATH_H
#define TD_DATASET_META_PATH_H

// Paths inside a dataset's folder. What a file says about paths is not trusted:
// none leads out of the folder (links that are there are followed: the hub's
// cache is made of them).

#include "base/err.h"

#include <stdbool.h>

#define TD_DATASET_MAX_PATH 1024

// Whether it is relative, has a name in every part, and none of them is "..".
bool td_dataset_path_is_inside(const char *path);

// Fills in a template of info.json: {chunk_index}, {file_index}, {video_key},
// with ":03d" or without; `video_key` may be NULL where there is none. FORMAT
// (another field, a path that leads out of the folder), LIMIT.
TD_NODISCARD td_err td_dataset_path_fill(const char *pattern,
                                         const char *video_key, uint32_t chunk,
                                         uint32_t file,
                                         char ret_path[TD_DATASET_MAX_PATH],
                                         td_errinfo *info);

#endif

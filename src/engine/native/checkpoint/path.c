// SPDX-License-Identifier: Apache-2.0
#include "engine/native/checkpoint/path.h"

#include <stdio.h>
#include <string.h>

td_err td_native_path_join(const char *folder, const char *name,
                           char ret_path[TD_NATIVE_MAX_PATH], td_errinfo *info)
{
    int size = snprintf(ret_path, TD_NATIVE_MAX_PATH, "%s/%s", folder, name);
    if (size >= TD_NATIVE_MAX_PATH)
        return td_fail(info, TD_ERR_LIMIT, "%.100s...: the path is too long",
                       folder);
    return TD_OK;
}

bool td_native_path_is_plain(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && !strchr(name, '/');
}

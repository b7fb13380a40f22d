// SPDX-License-Identifier: Apache-2.0
#include "media/size.h"

td_err td_media_size_check(uint32_t height, uint32_t width, td_errinfo *info)
{
    if (height >= 1 && height <= TD_MEDIA_MAX_SIDE && width >= 1 &&
        width <= TD_MEDIA_MAX_SIDE && height * width <= TD_MEDIA_MAX_PIXELS)
        return TD_OK;
    return td_fail(info, TD_ERR_LIMIT,
                   "a picture of %u x %u, at most %d a side and %u pixels",
                   height, width, TD_MEDIA_MAX_SIDE, TD_MEDIA_MAX_PIXELS);
}

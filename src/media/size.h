// SPDX-License-Identifier: Apache-2.0
#ifndef TD_MEDIA_SIZE_H
#define TD_MEDIA_SIZE_H

// How large a picture may be, whatever its codec. Held against its header,
// before anything is decoded or allocated.

#include "base/err.h"

#define TD_MEDIA_MAX_SIDE 8192
#define TD_MEDIA_MAX_PIXELS (16u << 20)

// LIMIT for a side that is 0, or beyond the limits.
TD_NODISCARD td_err td_media_size_check(uint32_t height, uint32_t width,
                                        td_errinfo *info);

#endif

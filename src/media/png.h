// SPDX-License-Identifier: Apache-2.0
#ifndef TD_MEDIA_PNG_H
#define TD_MEDIA_PNG_H

// PNG in, as RGB of eight bits, rows without padding.
//
// Grey and palettes become colours, transparency is left out and no gamma is
// applied: the values are those that are stored, as Pillow's convert("RGB") has
// them. Sixteen bits a channel are refused. One beyond the limits of
// media/size.h is refused by its header. Any thread.

#include "base/err.h"

// Height and width from the header alone; nothing is allocated. FORMAT (not a
// PNG), LIMIT, UNSUPPORTED (sixteen bits).
TD_NODISCARD td_err td_media_png_size(td_slice png, uint32_t *ret_height,
                                      uint32_t *ret_width, td_errinfo *info);

// Decodes into height x width x 3 bytes of the caller's. As td_media_png_size;
// FORMAT also for one that is damaged or cut short (the buffer may hold a
// part), MISMATCH for another size than asked for (the buffer is untouched),
// NOMEM.
TD_NODISCARD td_err td_media_png_decode(td_slice png, uint32_t height,
                                        uint32_t width, uint8_t *ret_rgb,
                                        td_errinfo *info);

#endif

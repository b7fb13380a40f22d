// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_PICTURE_H
#define TD_ENGINE_PICTURE_H

// An image of the wire, of any codec, into the RGB that a model's camera wants:
// height x width x 3 bytes, rows without padding.
//
// A reader is used again and again by one thread at a time.

#include "base/err.h"
#include "tendon/wire.h"

typedef struct td_engine_picture_reader td_engine_picture_reader;

// Owned by the caller. NOMEM.
TD_NODISCARD td_err
td_engine_picture_reader_new(td_engine_picture_reader **ret_reader);
void td_engine_picture_reader_free(td_engine_picture_reader *reader);
TD_AUTO_FREE(td_engine_picture_reader, td_engine_picture_reader_free)

// Bytes of its RGB.
size_t td_engine_picture_bytes(const td_wire_camera *camera);

// Whether the image's header, or its shape where it is raw, says what the
// camera wants. Any thread; takes less than a microsecond. FORMAT, LIMIT,
// UNSUPPORTED (a kind of PNG), MISMATCH, each with "images.NAME: ..." in
// `info`.
TD_NODISCARD td_err td_engine_picture_check(const td_wire_image *image,
                                            const td_wire_camera *camera,
                                            td_errinfo *info);

// Writes td_engine_picture_bytes() into the caller's buffer, each once: decoded
// straight into it, or copied where the image is raw. As td_engine_picture_
// check; FORMAT also for one that is damaged, of which a part may be written.
TD_NODISCARD td_err td_engine_picture_decode(td_engine_picture_reader *reader,
                                             const td_wire_image *image,
                                             const td_wire_camera *camera,
                                             uint8_t *ret_rgb,
                                             td_errinfo *info);

#endif

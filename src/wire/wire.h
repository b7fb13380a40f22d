// SPDX-License-Identifier: Apache-2.0
#ifndef TD_WIRE_WIRE_H
#define TD_WIRE_WIRE_H

// The public messages, with scope cleanup for code inside Tendon.

#include "base/err.h"
#include "tendon/wire.h" // IWYU pragma: export

TD_AUTO_FREE(td_wire_decoder, td_wire_decoder_free)
TD_AUTO_FREE(td_wire_encoder, td_wire_encoder_free)

// The first image of that name, or NULL. Borrowed.
const td_wire_image *td_wire_image_find(const td_wire_image *among,
                                        uint32_t count, td_wire_text name);

// What a tensor of this dtype and shape needs. A side of 0 makes 0, whatever
// the others are; SIZE_MAX when it is beyond that.
size_t td_wire_tensor_bytes(const td_wire_tensor *tensor);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_WIRE_MSGPACK_ENCODER_H
#define TD_WIRE_MSGPACK_ENCODER_H

// How the writers of table.h put a message together: plain values through
// msgpack-c's packer, binaries through td_wire_encoder_bytes().

#include "base/err.h"
#include "tendon/wire.h"

#include <msgpack.h>

// Each image and tensor of an observation, the largest message, with what
// stands before it; and the end.
#define TD_WIRE_MAX_PARTS                                                      \
    (2 * (TD_WIRE_MAX_IMAGES + TD_WIRE_MAX_TENSORS + 2) + 1)

struct td_wire_encoder {
    msgpack_packer packer; // writes into `head`
    char *head;            // owned; grows, never shrinks
    size_t head_size, head_room;
    td_slice parts[TD_WIRE_MAX_PARTS]; // those in `head` have no data until
                                       // the end, since it may move
    size_t part_count;
    size_t size;
    td_err err; // the first failure of the packer, which cannot pass one on
};

void td_wire_encoder_begin(td_wire_encoder *encoder);
void td_wire_encoder_text(td_wire_encoder *encoder, td_wire_text text);

// Borrows `data` if it is large, copies it if not.
void td_wire_encoder_bytes(td_wire_encoder *encoder, const void *data,
                           size_t size);

// Borrows `data` and does not look at it. `size` is not 0.
void td_wire_encoder_borrow(td_wire_encoder *encoder, const void *data,
                            size_t size);

// NOMEM if the head could not grow.
TD_NODISCARD td_err td_wire_encoder_end(td_wire_encoder *encoder);

#endif

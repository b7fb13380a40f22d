// SPDX-License-Identifier: Apache-2.0
#ifndef TD_WIRE_MSGPACK_TENSOR_H
#define TD_WIRE_MSGPACK_TENSOR_H

#include "tendon/wire.h"

// What a tensor of this dtype and shape needs. A side of 0 makes 0, whatever
// the others are; SIZE_MAX when it is beyond that.
size_t td_wire_tensor_bytes(const td_wire_tensor *tensor);

#endif

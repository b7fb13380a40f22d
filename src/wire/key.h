// SPDX-License-Identifier: Apache-2.0
#ifndef TD_WIRE_KEY_H
#define TD_WIRE_KEY_H

#include "wire/msgpack/fail.h"

// td_wire_key_check() for an id inside a message. FORMAT, LIMIT.
TD_NODISCARD td_err td_wire_key_check_id(const td_wire_at *at, td_wire_text id);

#endif

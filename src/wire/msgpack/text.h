// SPDX-License-Identifier: Apache-2.0
#ifndef TD_WIRE_MSGPACK_TEXT_H
#define TD_WIRE_MSGPACK_TEXT_H

#include "wire/msgpack/fail.h"

// Names of an enum's values, in order; NULL after the last.
extern const char *const td_wire_dtype_names[];
extern const char *const td_wire_codec_names[];
extern const char *const td_wire_action_kind_names[];
extern const char *const td_wire_channel_kind_names[];
extern const char *const td_wire_server_state_names[];

bool td_wire_text_same(td_wire_text a, td_wire_text b);

// What any text must be: valid UTF-8 of at most TD_WIRE_MAX_TEXT bytes. FORMAT,
// LIMIT.
TD_NODISCARD td_err td_wire_text_check(const td_wire_at *at, td_wire_text text);

// What a name must be: text of 1 to TD_WIRE_MAX_NAME bytes with no control
// characters, so that it can be printed. FORMAT, LIMIT.
TD_NODISCARD td_err td_wire_text_check_name(const td_wire_at *at,
                                            td_wire_text name);

#endif

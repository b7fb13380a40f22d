// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_CORE_ANSWER_H
#define TD_SERVER_CORE_ANSWER_H

// What an answer says. Pure; everything is borrowed.

#include "base/err.h"
#include "tendon/engine.h"

typedef struct td_server_timing {
    int64_t queue_ns;
    int64_t service_ns;
} td_server_timing;

// A chunk from what the engine left in `item`, or the error that it left there.
void td_server_answer(const char *server, const td_engine_item *item,
                      uint32_t channels, const td_server_timing *timing,
                      uint64_t chunk_id, td_wire_action *ret_action);

// An error without the engine.
void td_server_answer_error(const char *server, const td_wire_ident *ident,
                            td_err code, const char *text,
                            td_wire_action *ret_action);

#endif

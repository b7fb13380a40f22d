// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_LOAD_DUPLICATE_H
#define TD_SERVER_LOAD_DUPLICATE_H

// A server that runs already is not started a second time: its liveliness
// token, ".../status/alive/SERVER/BOOT", would tell robots two stories.

#include "net/net.h"
#include "tendon/wire.h"

// Looks for another start of this server. One that has just died may take
// `patience_ns` to disappear. EXISTS with its name and what to do. Blocks.
TD_NODISCARD td_err td_server_duplicate_refuse(td_net *net,
                                               const td_wire_route *route,
                                               const char *server_id,
                                               int64_t patience_ns,
                                               td_errinfo *info);

#endif

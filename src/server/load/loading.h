// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_LOAD_LOADING_H
#define TD_SERVER_LOAD_LOADING_H

// Stands in for a server whose model is being loaded: its status says warming,
// whoever wants to attach is refused by that word, and its token says that it
// is alive, so that it is not started a second time.

#include "net/net.h"
#include "tendon/wire.h"

// What it could not answer so far.
typedef struct td_server_loading_counts {
    _Atomic uint64_t bad_queries; // could not be read
    _Atomic uint64_t dropped;     // found no room
} td_server_loading_counts;

typedef struct td_server_loading_config {
    td_wire_route route; // texts are borrowed while it is open
    const char *server_id;
    uint64_t boot;
    uint32_t capacity;
    td_server_loading_counts *counts; // borrowed while it is open
} td_server_loading_config;

typedef struct td_server_loading td_server_loading;

// Owned by the caller; borrows the session. Blocks for the network.
TD_NODISCARD td_err
td_server_loading_open(td_net *net, const td_server_loading_config *config,
                       td_server_loading **ret_loading, td_errinfo *info);

// Before the server itself opens its doors. Blocks.
void td_server_loading_close(td_server_loading *loading);
TD_AUTO_FREE(td_server_loading, td_server_loading_close)

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLIENT_CLIENT_H
#define TD_CLIENT_CLIENT_H

// What the files of the C API share, and what its tests look at.

#include "base/sync/thread.h"
#include "client/blend.h"
#include "edge/assembly.h"
#include "tendon/edge.h"

#include <stdatomic.h>

struct td_client {
    td_client_driver driver; // zeros where the user's is of an older version
    td_config_robot *config;
    td_client_blend *blend; // NULL: the driver has none
    td_edge_assembly parts;
    _Atomic bool ran;  // td_client_run() or td_client_start() was called
    td_thread *runner; // td_client_start()'s
    td_err result;     // of the runner, once it is joined
    td_errinfo why;
};

// client.c: opens on a network of the caller's, which is borrowed; NULL: on
// the one that `config` asks for. Consumes `config`, on failure too.
TD_NODISCARD td_err td_client_open_on(td_net *net, td_config_robot *config,
                                      const td_client_driver *driver,
                                      td_client **ret_client, td_errinfo *info);

// log.c: the log runs while any client is open. Any thread.
void td_client_log_hold(void);
void td_client_log_release(void);

#endif

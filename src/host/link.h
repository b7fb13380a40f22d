// SPDX-License-Identifier: Apache-2.0
#ifndef TD_HOST_LINK_H
#define TD_HOST_LINK_H

// Says in the log when a link comes or goes, and whether it has shared memory.

#include "net/net.h"

// `endpoint` is where one is expected, or NULL; while there is none, that is
// said once.
TD_NODISCARD td_err td_host_link_watch(td_net *net, const char *endpoint,
                                       td_net_decl **ret_decl,
                                       td_errinfo *info);

#endif

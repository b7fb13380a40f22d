// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_PROCESS_LINK_H
#define TD_SERVER_PROCESS_LINK_H

// Says in the log when a link comes or goes, and whether it has shared memory;
// and at which addresses nobody answers.

#include "net/net.h"

typedef struct td_server_link td_server_link;

// `endpoints` are those that the session dials: each that has no link after a
// second, which is time for a dial behind our back, is said once. Their texts
// are borrowed. Owned by the caller.
TD_NODISCARD td_err td_server_link_watch(td_net *net,
                                         const char *const *endpoints,
                                         size_t count,
                                         td_server_link **ret_link,
                                         td_errinfo *info);

// Before the session is closed. Warns if its transport ever panicked. Blocks.
void td_server_link_end(td_server_link *link);
TD_AUTO_FREE(td_server_link, td_server_link_end)

// Whether a link whose far end is at `address` may come of dialling `endpoint`.
// A host's name is not looked up: any at this port will do.
bool td_server_link_leads_to(const char *address, const char *endpoint);

#endif

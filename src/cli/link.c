// SPDX-License-Identifier: Apache-2.0
#include "cli/link.h"

#include "base/log.h"

// Transport's thread; the log never blocks.
static void on_link(void *user, const td_net_link *link)
{
    (void)user;
    td_log_text(TD_LOG_INFO, "net: link %s: %s%s", link->up ? "up" : "down",
                link->address, link->shared_memory ? " (shared memory)" : "");
}

td_err td_cli_link_watch(td_net *net, td_net_decl **ret_decl, td_errinfo *info)
{
    return td_net_links(net, on_link, NULL, ret_decl, info);
}

// SPDX-License-Identifier: Apache-2.0
#include "host/link.h"

#include "base/log.h"

#include <stdatomic.h>

static _Atomic uint64_t ups; // links that came, of all sessions

// Transport's thread; the log never blocks.
static void on_link(void *user, const td_net_link *link)
{
    (void)user;
    if (link->up) atomic_fetch_add(&ups, 1);
    td_log_text(TD_LOG_INFO, "net: link %s: %s%s", link->up ? "up" : "down",
                link->address, link->shared_memory ? " (shared memory)" : "");
}

// The links that are up are told before td_net_links() returns.
td_err td_host_link_watch(td_net *net, const char *endpoint,
                          td_net_decl **ret_decl, td_errinfo *info)
{
    uint64_t before = atomic_load(&ups);
    TD_TRY(td_net_links(net, on_link, NULL, ret_decl, info));
    if (endpoint && atomic_load(&ups) == before)
        td_log_text(TD_LOG_WARN,
                    "net: nobody answers at %s yet; going on trying", endpoint);
    return TD_OK;
}

// SPDX-License-Identifier: Apache-2.0
// Says once which of the addresses that a session dials does not answer.
//
// The transport reports links as they come, on its threads; each marks the
// endpoints that it may be of. A thread of its own waits out the second, which
// is time for a dial behind our back, logs those that are not marked, and ends.
// `answered` is atomic; there is no lock.
//
// Shutdown: the thread is joined, then the last callback has been.
#include "server/process/link.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/sync/event.h"
#include "base/sync/thread.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS TD_NS_PER_S

typedef struct dialled {
    const char *endpoint;
    _Atomic bool answered;
} dialled;

struct td_server_link {
    td_net *net;
    td_net_decl *decl;
    td_thread *thread; // NULL: nothing is dialled
    td_event stop;
    size_t count;
    dialled dialled[];
};

// Where the port of "tcp/host:7447" begins; its end if there is none.
static const char *port_of(const char *endpoint)
{
    const char *colon = strrchr(endpoint, ':');
    return colon ? colon : endpoint + strlen(endpoint);
}

static bool is_number(const char *host, size_t size)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr address;
    if (size >= sizeof text) return false;
    memcpy(text, host, size);
    text[size] = 0;
    return inet_pton(AF_INET, text, &address) == 1;
}

bool td_server_link_leads_to(const char *address, const char *endpoint)
{
    size_t size = strcspn(endpoint, "?#"); // then come options
    if (strlen(address) == size && strncmp(address, endpoint, size) == 0)
        return true;
    const char *slash = strchr(endpoint, '/'), *port = port_of(endpoint);
    if (!slash || !*port || port < slash) return false;
    if (is_number(slash + 1, (size_t)(port - slash) - 1)) return false;
    size_t protocol = (size_t)(slash - endpoint) + 1;
    size_t port_size = size - (size_t)(port - endpoint);
    const char *other = port_of(address);
    return strncmp(address, endpoint, protocol) == 0 &&
           strlen(other) == port_size && strncmp(other, port, port_size) == 0;
}

static void note_answer(td_server_link *link, const char *address)
{
    static const char arrow[] = " -> ";
    const char *far = strstr(address, arrow);
    if (!far) return;
    for (size_t i = 0; i < link->count; i++)
        if (td_server_link_leads_to(far + sizeof arrow - 1,
                                    link->dialled[i].endpoint))
            atomic_store(&link->dialled[i].answered, true);
}

// Transport's thread; the log never blocks.
static void on_link(void *user, const td_net_link *link)
{
    if (link->up) note_answer(user, link->address);
    td_log_text(TD_LOG_INFO, "net: link %s: %s%s", link->up ? "up" : "down",
                link->address, link->shared_memory ? " (shared memory)" : "");
}

static void run(void *user)
{
    td_server_link *link = user;
    int64_t until_ns = td_clock_monotonic_ns() + PATIENCE_NS;
    if (td_event_wait_until(&link->stop, until_ns)) return;
    for (size_t i = 0; i < link->count; i++)
        if (!atomic_load(&link->dialled[i].answered))
            td_log_text(TD_LOG_WARN,
                        "net: nobody answers at %s yet; going on trying",
                        link->dialled[i].endpoint);
}

td_err td_server_link_watch(td_net *net, const char *const *endpoints,
                            size_t count, td_server_link **ret_link,
                            td_errinfo *info)
{
    const td_thread_config thread = {.name = "td-link", .cpu = -1};
    TD_AUTO(td_server_link) *link =
        calloc(1, sizeof *link + count * sizeof *link->dialled);
    if (!link) return TD_ERR_NOMEM;
    link->net = net;
    link->count = count;
    td_event_init(&link->stop);
    for (size_t i = 0; i < count; i++)
        link->dialled[i].endpoint = endpoints[i];
    TD_TRY(td_net_links(net, on_link, link, &link->decl, info));
    if (count > 0)
        TD_TRY(td_thread_start(&thread, run, link, &link->thread, info));
    *ret_link = TD_TAKE(link);
    return TD_OK;
}

void td_server_link_end(td_server_link *link)
{
    td_event_signal(&link->stop);
    if (link->thread) td_thread_join(link->thread);
    if (link->decl) (void)td_net_undeclare(link->decl);
    uint64_t panics = td_net_counts_get(link->net).panics;
    if (panics > 0)
        td_log_text(TD_LOG_WARN,
                    "net: the transport panicked %llu times: please report it",
                    (unsigned long long)panics);
    free(link);
}

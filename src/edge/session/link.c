// SPDX-License-Identifier: Apache-2.0
// What session, publisher and merger know in common about the present server.
//
// Lock: one, and it guards the name and the wanted sizes here and, in the core,
// the ring of what is on its way with all that the merge thread measures and
// counts. It is held for microseconds: nobody waits for the network, encodes or
// runs a user's function under it. An answer takes it twice, before and after
// its rows are joined; the core keeps the timeline that is being joined alive
// between the two. Whoever holds it takes no other lock.
//
// The number of the connection, the count of namings and the time of the last
// merge are atomics beside it, so that the tick, the publisher and the
// session's watchdog can read them without waiting. Each changes after
// everything else is in place: a tick that sees the number may ask the new
// server at once.
//
// End: a plain value; it is freed when no thread is left that knows it.
#include "edge/session/link.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct td_edge_link {
    td_edge_core *core;
    _Atomic uint64_t connection; // 0: none
    _Atomic uint64_t namings;    // of servers, so far
    _Atomic int64_t merged_ns;
    uint64_t connections; // so far; session's thread's own

    pthread_mutex_t lock; // guards what follows, and the core as said above
    char server[TD_WIRE_MAX_NAME + 1];
    td_media_size wanted[TD_WIRE_MAX_IMAGES];
};

td_err td_edge_link_new(td_edge_core *core, td_edge_link **ret_link)
{
    td_edge_link *link = calloc(1, sizeof *link);
    if (!link) return TD_ERR_NOMEM;
    link->core = core;
    pthread_mutex_init(&link->lock, NULL);
    *ret_link = link;
    return TD_OK;
}

void td_edge_link_free(td_edge_link *link)
{
    pthread_mutex_destroy(&link->lock);
    free(link);
}

void td_edge_link_name_server(td_edge_link *link, const td_edge_server *server)
{
    pthread_mutex_lock(&link->lock);
    memcpy(link->server, server->id, sizeof link->server);
    memcpy(link->wanted, server->wanted, sizeof link->wanted);
    atomic_fetch_add_explicit(&link->namings, 1, memory_order_release);
    pthread_mutex_unlock(&link->lock);
}

void td_edge_link_connect(td_edge_link *link)
{
    pthread_mutex_lock(&link->lock);
    td_edge_core_connected(link->core);
    pthread_mutex_unlock(&link->lock);
    atomic_store(&link->connection, ++link->connections);
}

void td_edge_link_disconnect(td_edge_link *link)
{
    atomic_store(&link->connection, 0);
}

uint64_t td_edge_link_connection(const td_edge_link *link)
{
    return atomic_load_explicit(&link->connection, memory_order_acquire);
}

void td_edge_link_server(td_edge_link *link, char ret_id[TD_WIRE_MAX_NAME + 1])
{
    pthread_mutex_lock(&link->lock);
    memcpy(ret_id, link->server, sizeof link->server);
    pthread_mutex_unlock(&link->lock);
}

void td_edge_link_wanted(td_edge_link *link, td_edge_link_sizes *wanted)
{
    uint64_t namings =
        atomic_load_explicit(&link->namings, memory_order_acquire);
    if (namings == wanted->namings) return;
    wanted->namings = namings;
    pthread_mutex_lock(&link->lock);
    memcpy(wanted->sizes, link->wanted, sizeof link->wanted);
    pthread_mutex_unlock(&link->lock);
}

bool td_edge_link_sent(td_edge_link *link, const td_edge_sent *sent)
{
    pthread_mutex_lock(&link->lock);
    bool current = td_edge_core_sent(link->core, sent);
    pthread_mutex_unlock(&link->lock);
    return current;
}

void td_edge_link_unsent(td_edge_link *link, uint64_t seq)
{
    pthread_mutex_lock(&link->lock);
    td_edge_core_unsent(link->core, seq);
    pthread_mutex_unlock(&link->lock);
}

uint64_t td_edge_link_skipped(td_edge_link *link, uint64_t seq,
                              td_edge_skip why)
{
    td_edge_counts counts;
    pthread_mutex_lock(&link->lock);
    td_edge_core_skipped(link->core, seq, why);
    td_edge_core_counts(link->core, &counts);
    pthread_mutex_unlock(&link->lock);
    return counts.skipped[why];
}

td_err td_edge_link_answer(td_edge_link *link, int64_t now_ns,
                           const td_wire_action *action,
                           td_edge_answer *ret_answer)
{
    td_edge_merge_job job;
    pthread_mutex_lock(&link->lock);
    td_edge_core_answer_begin(link->core, now_ns, link->server, action, &job);
    pthread_mutex_unlock(&link->lock);
    TD_TRY(td_edge_core_answer_blend(link->core, &job));
    pthread_mutex_lock(&link->lock);
    *ret_answer = td_edge_core_answer_end(link->core, &job);
    pthread_mutex_unlock(&link->lock);
    return TD_OK;
}

void td_edge_link_malformed(td_edge_link *link)
{
    pthread_mutex_lock(&link->lock);
    td_edge_core_malformed(link->core);
    pthread_mutex_unlock(&link->lock);
}

void td_edge_link_note_merged(td_edge_link *link, int64_t now_ns)
{
    atomic_store(&link->merged_ns, now_ns);
}

int64_t td_edge_link_merged_ns(const td_edge_link *link)
{
    return atomic_load(&link->merged_ns);
}

td_err td_edge_link_reset(td_edge_link *link)
{
    pthread_mutex_lock(&link->lock);
    td_err err = td_edge_core_reset(link->core);
    pthread_mutex_unlock(&link->lock);
    return err;
}

void td_edge_link_counts(td_edge_link *link, td_edge_counts *ret_counts)
{
    pthread_mutex_lock(&link->lock);
    td_edge_core_counts(link->core, ret_counts);
    pthread_mutex_unlock(&link->lock);
}

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_SESSION_LINK_H
#define TD_EDGE_SESSION_LINK_H

// The link between a robot and its present server: who that is, which sizes of
// pictures it wants, and what is on its way to it and back.
//
// The session says who the server is; the publisher enters what it sends; the
// merger brings the answers. They meet here under one lock, which is this
// file's own. It is also the lock of those functions of the core that say
// "under the lock": nobody else calls them. The tick never comes here but for
// td_edge_link_connection(), which takes no lock.

#include "edge/core/core.h"
#include "edge/session/finder.h"

typedef struct td_edge_link td_edge_link;

// Borrows the core. Owned by the caller. NOMEM.
TD_NODISCARD td_err td_edge_link_new(td_edge_core *core,
                                     td_edge_link **ret_link);
void td_edge_link_free(td_edge_link *link);
TD_AUTO_FREE(td_edge_link, td_edge_link_free)

// Session's thread. The server is named before it is asked to take the robot,
// so that its first answer is not a stranger's; then it has the robot; then it
// has it no more. None blocks for long.
void td_edge_link_name_server(td_edge_link *link, const td_edge_server *server);
void td_edge_link_connect(td_edge_link *link);
void td_edge_link_disconnect(td_edge_link *link);

// Another number for each connection; 0: there is none. Any thread, the tick's
// too; never blocks.
uint64_t td_edge_link_connection(const td_edge_link *link);

// The server's name; "" before the first. Any thread but the tick's.
void td_edge_link_server(td_edge_link *link, char ret_id[TD_WIRE_MAX_NAME + 1]);

// The sizes that it wants, by camera; height 0: it does not want that one. {0}
// before the first.
typedef struct td_edge_link_sizes {
    uint64_t namings; // that it knows of
    td_media_size sizes[TD_WIRE_MAX_IMAGES];
} td_edge_link_sizes;

// Makes `wanted` those of the present server. Takes no lock unless one was
// named since. Publisher's thread.
void td_edge_link_wanted(td_edge_link *link, td_edge_link_sizes *wanted);

// As td_edge_core_sent(), td_edge_core_unsent() and td_edge_core_skipped(); the
// last says how many were skipped for that reason so far. Publisher's thread.
TD_NODISCARD bool td_edge_link_sent(td_edge_link *link,
                                    const td_edge_sent *sent);
void td_edge_link_unsent(td_edge_link *link, uint64_t seq);
uint64_t td_edge_link_skipped(td_edge_link *link, uint64_t seq,
                              td_edge_skip why);

// An answer came. Runs the user's aggregation, without the lock, so that one
// which takes long delays nobody. NOMEM. Merge thread.
TD_NODISCARD td_err td_edge_link_answer(td_edge_link *link, int64_t now_ns,
                                        const td_wire_action *action,
                                        td_edge_answer *ret_answer);

// Counts an answer that could not be decoded. Merge thread.
void td_edge_link_malformed(td_edge_link *link);

// When a chunk was last merged; 0: never. Merge thread; any thread.
void td_edge_link_note_merged(td_edge_link *link, int64_t now_ns);
int64_t td_edge_link_merged_ns(const td_edge_link *link);

// As td_edge_core_reset() and td_edge_core_counts(). Any thread but the tick's.
TD_NODISCARD td_err td_edge_link_reset(td_edge_link *link);
void td_edge_link_counts(td_edge_link *link, td_edge_counts *ret_counts);

#endif

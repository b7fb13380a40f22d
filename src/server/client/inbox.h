// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_CLIENT_INBOX_H
#define TD_SERVER_CLIENT_INBOX_H

// What came from one client for the loop since it looked last.
//
// It keeps the newest observation only: one that a newer one displaces is freed
// at once, and its seq is remembered so that the robot can be notified. With
// `every` it keeps all, in the order in which they came.

#include "net/net.h"
#include "tendon/wire.h"

#include <pthread.h>

typedef struct td_server_mail {
    td_net_msg *msg; // the newest observation; NULL: none
    int64_t arrived_ns;
    bool has_seq;
    uint64_t seq;
    uint64_t skipped[TD_WIRE_MAX_SUPERSEDED]; // displaced, the newest of them
    uint32_t skipped_count;
    uint64_t skipped_unlisted; // displaced before those
    uint64_t skipped_unnamed;  // displaced, and their seq is not known
    td_net_msg *reset;         // NULL: none
} td_server_mail;

#define TD_SERVER_INBOX_LETTERS 1024 // beside the first

typedef struct td_server_letter td_server_letter;

typedef struct td_server_inbox {
    bool every;           // constant
    pthread_mutex_t lock; // guards what follows; held for a copy, never with
                          // another
    td_server_mail mail;
    td_server_letter *first, *last; // that wait behind `mail`, with `every`
    uint32_t letter_count;
} td_server_inbox;

void td_server_inbox_init(td_server_inbox *inbox, bool every);
// Frees what is left in it.
void td_server_inbox_done(td_server_inbox *inbox);

// Leaves an observation for the loop; `head` is its first piece. Consumes it.
// False: there was no room for one more. Any thread; never blocks.
bool td_server_inbox_put(td_server_inbox *inbox, td_net_msg *msg, td_slice head,
                         int64_t arrived_ns);
// Leaves a reset. Consumes it; returns the one that nobody has read, or NULL.
// Any thread; never blocks.
td_net_msg *td_server_inbox_put_reset(td_server_inbox *inbox, td_net_msg *msg);

bool td_server_inbox_has_any(td_server_inbox *inbox);
// Takes everything out, of letters the first; both messages are the caller's.
td_server_mail td_server_inbox_take(td_server_inbox *inbox);

// How many observations are in it, those displaced included. Nobody puts.
uint64_t td_server_inbox_count(const td_server_inbox *inbox);

#endif

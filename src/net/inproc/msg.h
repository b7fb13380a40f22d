// SPDX-License-Identifier: Apache-2.0
#ifndef TD_NET_INPROC_MSG_H
#define TD_NET_INPROC_MSG_H

// A key and its payload, written once and then shared by count between all
// deliveries of it and all who keep it.

#include "net/net.h"

#include <stdalign.h>
#include <stdatomic.h>

// As a socket brings messages.
#define TD_INPROC_PIECE_BYTES ((size_t)64 * 1024)

typedef struct td_inproc_pieces td_inproc_pieces;

typedef struct td_inproc_msg {
    td_net_msg base;
    _Atomic uint32_t refs;
    _Atomic(td_inproc_pieces *) pieces; // once somebody asked for them
    size_t size;
    const char *key; // behind the payload
    alignas(64) unsigned char bytes[];
} td_inproc_msg;

// A payload of `size` bytes that are still to be written. One reference, owned
// by the caller. NOMEM.
TD_NODISCARD td_err td_inproc_msg_new_blank(const td_net_ops *ops,
                                            const char *key, size_t size,
                                            td_inproc_msg **ret_msg);

// Joins the parts. One reference, owned by the caller. NOMEM.
TD_NODISCARD td_err td_inproc_msg_new(const td_net_ops *ops, const char *key,
                                      const td_slice *parts, size_t count,
                                      td_inproc_msg **ret_msg);

// The payload cut up, with other bytes between the pieces, so that who reads
// beyond one is found out. Any thread. NOMEM.
TD_NODISCARD td_err td_inproc_msg_pieces(td_inproc_msg *msg,
                                         const td_slice **ret_pieces,
                                         size_t *ret_count);

// Any thread. Either may be given NULL.
td_inproc_msg *td_inproc_msg_ref(td_inproc_msg *msg);
void td_inproc_msg_unref(td_inproc_msg *msg);
TD_AUTO_FREE(td_inproc_msg, td_inproc_msg_unref)

#endif

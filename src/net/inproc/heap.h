// SPDX-License-Identifier: Apache-2.0
#ifndef TD_NET_INPROC_HEAP_H
#define TD_NET_INPROC_HEAP_H

// What is on the way, soonest first; what is due together leaves in the order
// in which it was pushed. Not synchronised.

#include "base/err.h"
#include "net/inproc/msg.h"

typedef enum td_inproc_what {
    TD_INPROC_SAMPLE,
    TD_INPROC_ALIVE,
    TD_INPROC_LINK,
    TD_INPROC_REQUEST,
    TD_INPROC_REPLY,
    TD_INPROC_FINAL, // a server's last word on a request
    TD_INPROC_END,   // of a query: its time is up or nobody is left
} td_inproc_what;

typedef struct td_inproc_decl td_inproc_decl;

typedef struct td_inproc_delivery {
    int64_t due_ns;
    uint64_t order; // given by push
    td_inproc_what what;
    bool up;              // ALIVE, LINK
    uint64_t from, to;    // ids of sessions
    td_inproc_decl *decl; // borrowed, NULL for what concerns a query
    uint64_t query, request;
    td_inproc_msg *msg; // one reference, owned; NULL for FINAL and END
} td_inproc_delivery;

typedef struct td_inproc_heap {
    td_inproc_delivery *items;
    size_t count;
    size_t capacity;
    uint64_t last_order;
} td_inproc_heap;

// NOMEM.
TD_NODISCARD td_err td_inproc_heap_push(td_inproc_heap *heap,
                                        const td_inproc_delivery *delivery);

// Removes the soonest; the heap must not be empty.
td_inproc_delivery td_inproc_heap_pop(td_inproc_heap *heap);

// Makes a heap again of items that were removed from the middle.
void td_inproc_heap_restore(td_inproc_heap *heap);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_CORE_REQUEST_H
#define TD_SERVER_CORE_REQUEST_H

// An observation on its way through the server, from arrival to answer: one
// record, which nobody copies. Whoever holds the pointer holds the request:
// the intake while it is decoded and checked, the scheduler while it waits, a
// run while the engine works on it, its client while its chunk is kept.
//
// It is written by one thread at a time. Its owner changes under the device's
// lock, but for the engine, which has its `item` between submit and done.

#include "base/err.h"
#include "tendon/engine.h"
#include "wire/outline.h"

struct td_net_msg;
typedef struct td_server_client td_server_client;
typedef struct td_server_request td_server_request;

struct td_server_request {
    td_server_client *client; // whose it is

    // As it came.
    struct td_net_msg *msg;  // owns the bytes that obs looks into; NULL: given
                             // back
    td_wire_outline outline; // and those that had to be joined
    td_wire_obs obs; // of one that asks `again`, ident.seq becomes what it
                     // asks for
    size_t size;     // bytes
    int64_t arrived_ns;

    // While it waits and runs.
    uint64_t mix;             // what it may share a batch with
    uint64_t ticket;          // the scheduler's, of one that runs
    td_engine_prefix *prefix; // kept, in use; NULL: none
    uint64_t asker;           // anew: the seq that asked, whose noise it has
    bool whole;               // in one: its prefix was lost
    int64_t started_ns;
    int64_t answered_ns;

    // What the engine makes of it.
    td_engine_item item;
    td_engine_results results;
    td_errinfo why;    // it failed
    uint64_t chunk_id; // of its answer
    float *actions;    // [chunk_rows x action_count]

    td_server_request *next;     // free, to be notified of, or to run alone
    struct td_server_runs *runs; // of the last
};

// Requests in the order in which they were added.
typedef struct td_server_request_list {
    td_server_request *first, *last;
} td_server_request_list;

static inline void td_server_request_append(td_server_request_list *list,
                                            td_server_request *request)
{
    request->next = NULL;
    if (list->first)
        list->last->next = request;
    else
        list->first = request;
    list->last = request;
}

#endif

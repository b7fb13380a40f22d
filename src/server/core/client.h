// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_CORE_CLIENT_H
#define TD_SERVER_CORE_CLIENT_H

// A client of one model: one record from its first attach until it has left,
// owned by whoever attaches it. Its parts belong to different owners, who alone
// write them; what the core has is guarded by the device's lock.

#include "server/core/request.h"
#include "tendon/wire.h"

typedef struct td_server_core td_server_core;
typedef struct td_server_topics td_server_topics;

typedef enum td_server_presence {
    TD_SERVER_LEFT,     // or not here yet
    TD_SERVER_ATTACHED, // it has a place in the core
    TD_SERVER_SILENT,   // its place is given up, but it is alive: what it sends
                        // brings it back
} td_server_presence;

struct td_server_client {
    char id[TD_WIRE_MAX_NAME + 1]; // constant; set before it is attached

    // The core's.
    td_server_presence presence;
    uint32_t number; // its place in the core; of one that left, the last
    uint32_t member; // of the scheduler, which knows what of it waits
    uint64_t boot;
    uint64_t route; // of its attach
    uint64_t episode;
    uint64_t seq;  // the newest that came
    bool has_sent; // something since it attached
    bool heard;    // has sent what went no further, since it was looked at
    bool every;    // wants every observation answered: they queue
    td_server_core *core;       // its
    uint32_t running_count;     // requests; without `every` 1 at most
    td_server_request *running; // without `every`
    td_server_request *unasked; // waits until it is asked for
    td_server_request *chunk;   // the one answered last, kept
    uint64_t superseded[TD_WIRE_MAX_SUPERSEDED];
    uint32_t superseded_count; // will be named in its next answer

    // What the server has declared for it (client/topics.h). NULL in virtual
    // time.
    td_server_topics *topics;

    // The registry's, on the loop's thread only.
    bool leaving; // as soon as its last request has ended
    td_server_client *next;
};

#endif

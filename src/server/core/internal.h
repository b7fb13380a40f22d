// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_CORE_INTERNAL_H
#define TD_SERVER_CORE_INTERNAL_H

// What the files of the server's core share. Private to them.

#include "server/core/core.h"

typedef struct td_server_core_client {
    bool attached;
    bool came;    // has sent something since it attached
    bool heard;   // has sent what went no further, since it was looked at
    bool waiting; // in the scheduler
    bool running;
    char id[TD_WIRE_MAX_NAME + 1];
    uint32_t member; // of the scheduler
    uint64_t boot;
    uint64_t route; // of its attach
    uint64_t episode;
    uint64_t seq; // the newest that came
    uint64_t waiting_seq;
    uint64_t ticket; // of what runs
    uint64_t running_boot, running_episode, running_seq;
    uint64_t superseded[TD_WIRE_MAX_SUPERSEDED];
    uint32_t superseded_count; // still to be told
    td_sched_request unasked;  // kept until it is asked for
    uint64_t unasked_mix;
    td_sched_request chunk; // the one answered last, kept
} td_server_core_client;

struct td_server_core {
    td_server_settings settings;
    td_server_core_model model;
    const td_engine_spec *spec;
    td_sched *sched;
    td_wire_server_state state;
    td_sched_cadence *cadence;
    td_sched_prefixes *prefixes;    // NULL: none is kept
    td_server_core_client *clients; // [capacity]
    uint32_t client_count;
    td_server_counts counts;
};

// clients.c

// What those of this name are allowed; NULL: nothing.
const td_server_allowance *
td_server_core_find_allowed(const td_server_core *core, td_wire_text id);

// observe.c

// Will never be answered; the robot is told so with its next answer.
void td_server_core_remember(td_server_core_client *client, uint64_t seq);

// Forgets everything about what a client sent, except what it must be told.
void td_server_core_start_anew(td_server_core *core, uint32_t number,
                               uint64_t boot, uint64_t episode,
                               td_server_core_dropped *ret_dropped);

// The client leaves what waits or is kept for it.
void td_server_core_let_go(td_server_core *core, uint32_t number,
                           td_server_core_dropped *dropped);

// What may share a batch; `decode`: from a kept prefix.
uint64_t td_server_core_mix(const td_wire_obs *obs, bool decode);

// Whether the observation is one to be looked at, and not an OLD one. It counts
// as the client's newest from then on.
td_server_outcome td_server_core_arrive(td_server_core *core, uint32_t number,
                                        int64_t now_ns,
                                        const td_wire_ident *ident,
                                        td_server_core_dropped *dropped);

// What waits for the scheduler's turn.
typedef struct td_server_core_item {
    const td_wire_obs *obs; // what it claims
    uint64_t seq;
    uint64_t mix;
    void *payload;
} td_server_core_item;

// Into the scheduler, which may displace an older one. WAITING or REFUSED.
td_server_outcome td_server_core_submit(td_server_core *core, uint32_t number,
                                        int64_t now_ns,
                                        const td_server_core_item *item,
                                        td_server_core_dropped *dropped);

void td_server_core_drop(td_server_core_dropped *dropped,
                         td_sched_request request);

// What waited has ended under this name.
void td_server_core_end_waiting(td_server_core *core,
                                td_server_outcome outcome);

// Whether what runs, or ran last, is of the client's present start and episode.
bool td_server_core_is_present(const td_server_core_client *client);

#endif

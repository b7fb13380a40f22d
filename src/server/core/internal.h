// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_CORE_INTERNAL_H
#define TD_SERVER_CORE_INTERNAL_H

// What the files of the server's core share. Private to them.

#include "server/core/core.h"

struct td_server_core {
    td_server_settings settings;
    td_server_core_model model;
    const td_engine_spec *spec;
    td_sched *sched;
    td_wire_server_state state;
    td_sched_cadence *cadence;
    td_sched_prefixes *prefixes; // NULL: none is kept
    td_server_client **clients;  // [capacity], by number; NULL: a free place
    uint32_t client_count;
    td_server_counts counts;
};

// clients.c

// What those of this name are allowed; NULL: nothing.
const td_server_allowance *
td_server_core_find_allowed(const td_server_core *core, td_wire_text id);

// observe.c

// Will never be answered; the next answer says so.
void td_server_core_remember(td_server_client *client, uint64_t seq);

// Forgets everything about what a client sent, except what it must be told.
void td_server_core_start_anew(td_server_core *core, td_server_client *client,
                               uint64_t boot, uint64_t episode,
                               td_server_core_dropped *ret_dropped);

// The client leaves what waits or is kept for it; `remembers` it, too.
void td_server_core_let_go(td_server_core *core, td_server_client *client,
                           bool remembers, td_server_core_dropped *dropped);

// Of one that has a queue: all that waits in it.
void td_server_core_empty_queue(td_server_core *core, td_server_client *client,
                                bool remembers,
                                td_server_core_dropped *dropped);

// What may share a batch; `decode`: from a kept prefix.
uint64_t td_server_core_mix(const td_wire_obs *obs, bool decode);

// Whether the observation is one to be looked at, and not an OLD one. It counts
// as the client's newest from then on.
td_server_outcome td_server_core_arrive(td_server_core *core,
                                        td_server_client *client,
                                        int64_t now_ns,
                                        const td_wire_ident *ident,
                                        td_server_core_dropped *dropped);

// Into the scheduler, which may displace an older one, with what `claims` says
// of its budget and urgency. WAITING or REFUSED.
td_server_outcome td_server_core_submit(td_server_core *core, int64_t now_ns,
                                        td_server_request *request,
                                        const td_wire_obs *claims,
                                        td_server_core_dropped *dropped);

void td_server_core_drop(td_server_core_dropped *dropped,
                         td_server_request *request);

// What waited has ended under this name.
void td_server_core_end_waiting(td_server_core *core,
                                td_server_outcome outcome);

// Whether the client has something in the scheduler.
bool td_server_core_waits(const td_server_core *core,
                          const td_server_client *client);

// Whether the request is of its client's present start and episode.
bool td_server_core_is_present(const td_server_request *request);

#endif

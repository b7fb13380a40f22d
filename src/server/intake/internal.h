// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_INTAKE_INTERNAL_H
#define TD_SERVER_INTAKE_INTERNAL_H

// What the files of this room share: intake.c and later.c the intake,
// registry.c, silent.c and attach.c the registry.

#include "base/sync/queue.h"
#include "server/intake/intake.h"
#include "server/intake/registry.h"
#include "server/intake/tokens.h"

struct td_server_intake {
    const td_server_context *ctx;
    td_server_device *device;
    td_server_pool *pool;
    td_server_notify *notify;
    const td_server_health *health;
    _Atomic(td_wire_decoder *) decoder; // the transport's threads'; NULL: out
    td_wire_decoder *loop_decoder;      // the loop's
    int64_t silence_ns; // when the loop looks; guarded by the device's lock
};

// intake.c: the steps that both ways have.

// A request with this message, which stays the caller's if there is no memory
// (NULL). Any thread.
td_server_request *td_server_intake_request(td_server_intake *intake,
                                            td_server_client *client,
                                            td_net_msg *msg,
                                            int64_t arrived_ns);
TD_NODISCARD td_err td_server_intake_decode(td_wire_decoder *decoder,
                                            td_server_request *request,
                                            td_errinfo *info);
// Whether it says that it is of the client on whose key it came. MISMATCH.
TD_NODISCARD td_err td_server_intake_check_client(
    const td_server_client *client, td_wire_text id, td_errinfo *info);
// That, and whether it fits the model.
TD_NODISCARD td_err td_server_intake_check(const td_server_intake *intake,
                                           const td_server_request *request,
                                           td_errinfo *info);
// Counts one that goes no further.
void td_server_intake_end_locked(const td_server_intake *intake,
                                 td_server_client *client,
                                 td_server_outcome outcome, uint64_t seq);
// Into the core, where it waits, and which may hand older ones back. What the
// core does not take is given back, or its robot is notified.
void td_server_intake_wait_locked(td_server_intake *intake,
                                  td_server_request *request);
// Counts one that nobody reads. Consumes it. Any thread.
void td_server_intake_drop_reset(const td_server_context *ctx, td_net_msg *msg);

#define TD_SERVER_REGISTRY_REFUSALS 64

// A token that came or went.
typedef struct td_server_sighting {
    td_server_token token;
    bool alive;
} td_server_sighting;

struct td_server_registry {
    td_server_registry_parts parts;
    const td_server_context *ctx; // the parts'
    td_net_decl *status, *watch, *token;
    td_queue *queries;   // td_net_request *; from any thread
    td_queue *sightings; // td_server_sighting; no flood of queries fills it
    _Atomic bool blind;  // for some token that came or went
    bool changed;        // who may stay; guarded by the device's lock

    // The loop's own. Those that are attached are in the core.
    td_server_client *silent; // alive, but without a place
    td_server_tokens tokens;
    int64_t watched_ns; // declared anew; 0: never
    bool recounts;      // who is silent: whether they are among the tokens
    uint64_t refusals[TD_SERVER_REGISTRY_REFUSALS];
    td_wire_decoder *decoder;
    td_wire_encoder *encoder;
};

// registry.c

// Gives the client a place, if it has none, and its numbers start. DENIED.
TD_NODISCARD td_err td_server_registry_enter(td_server_registry *registry,
                                             const td_wire_attach *attach,
                                             td_server_client *client,
                                             td_errinfo *info);
// Closes its topics and frees the record.
void td_server_registry_free_client(td_server_client *client);
// The start of the client that is known last, and whether it is said to be
// alive.
uint64_t td_server_registry_boot(const td_server_registry *registry,
                                 const td_server_client *client);
bool td_server_registry_is_alive(const td_server_registry *registry,
                                 const td_server_client *client);
// Out of the core. False: its last request still runs, and the engine's thread
// wakes the loop when that is done.
bool td_server_registry_detach(td_server_registry *registry,
                               td_server_client *client,
                               td_server_presence then);
// That start of the client leaves.
void td_server_registry_leave(td_server_registry *registry, td_wire_text id,
                              uint64_t boot);

// silent.c

// The place in the list of a silent client, by its name; else of its end.
td_server_client **td_server_silent_find(td_server_registry *registry,
                                         td_wire_text id);
// A silent client has its place back.
void td_server_silent_came_back(td_server_registry *registry,
                                td_server_client **at);
// Gives those that send again their places back.
void td_server_silent_look(td_server_registry *registry);

// attach.c: what is asked on the status key.
void td_server_attach_answer(td_server_registry *registry,
                             td_net_request *query);

#endif

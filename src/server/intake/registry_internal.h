// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_INTAKE_REGISTRY_INTERNAL_H
#define TD_SERVER_INTAKE_REGISTRY_INTERNAL_H

// What registry.c, silent.c and attach.c share.

#include "base/sync/queue.h"
#include "server/intake/registry.h"
#include "server/intake/tokens.h"

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

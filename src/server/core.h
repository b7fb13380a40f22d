// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_CORE_H
#define TD_SERVER_CORE_H

// What a server of one model decides: whom it takes, which observation runs
// next, what it says of itself. Pure: no clock, thread, network or model.
//
// A client's payloads (observations that the shell holds) come in with
// td_server_core_observe() and go out again exactly once: displaced by a newer
// one, handed out to run, or dropped when the client leaves or starts anew.
// Every observation that came in ends under one name of TD_SERVER_OUTCOMES.

#include "engine/engine.h"
#include "sched/slots.h"
#include "tendon/wire.h"

#define TD_SERVER_OUTCOMES(X)                                                  \
    X(WAITING, "waiting")                                                      \
    X(RUNNING, "running")                                                      \
    X(ANSWERED, "answered")                                                    \
    X(FAILED, "failed")         /* the engine failed; the robot was told */    \
    X(SUPERSEDED, "superseded") /* by a newer one of the same client */        \
    X(REFUSED, "refused")       /* does not fit the model; told */             \
    X(MALFORMED, "malformed")   /* could not be decoded */                     \
    X(OLD_BOOT, "old_boot")                                                    \
    X(OLD_EPISODE, "old_episode")                                              \
    X(OLD_SEQ, "old_seq")                                                      \
    X(DEPARTED, "departed") /* its client left or began anew */

typedef enum td_server_outcome {
#define TD_SERVER_OUTCOME_ENUM(name, text) TD_SERVER_##name,
    TD_SERVER_OUTCOMES(TD_SERVER_OUTCOME_ENUM)
#undef TD_SERVER_OUTCOME_ENUM
        TD_SERVER_OUTCOME_COUNT
} td_server_outcome;

const char *td_server_outcome_name(td_server_outcome outcome);

// What a client is allowed: it may claim less than its share, and no more.
typedef struct td_server_client {
    const char *id;         // NULL in `unknown`
    int64_t budget_ns;      // of latency, for the age in the score
    uint32_t best_priority; // the highest that counts: 0 is all
    float most_urgency;     // the highest that counts: 1 is all
} td_server_client;

// 50 ms, and whatever it claims.
extern const td_server_client td_server_client_defaults;

typedef struct td_server_settings {
    const char *server_id;
    uint64_t boot;
    const td_server_client *clients; // allowed by name
    uint32_t client_count;
    td_server_client unknown; // what those not listed are allowed
    bool accept_unknown;
    uint32_t capacity; // clients at a time
} td_server_settings;

typedef struct td_server_counts {
    uint64_t received; // sum of outcomes
    uint64_t outcomes[TD_SERVER_OUTCOME_COUNT];
    uint64_t attached, refused_attach, departed; // clients
} td_server_counts;

typedef struct td_server_core td_server_core;

// Borrows the settings' texts and the spec. Owned by the caller.
TD_NODISCARD td_err td_server_core_new(const td_server_settings *settings,
                                       const td_engine_spec *spec,
                                       td_server_core **ret_core);
void td_server_core_free(td_server_core *core);
TD_AUTO_FREE(td_server_core, td_server_core_free)

// Whom it takes from now on, and what they are allowed; the rest of the
// settings stays as it was. Borrows as before.
void td_server_core_use(td_server_core *core,
                        const td_server_settings *settings);

void td_server_core_set_state(td_server_core *core, td_wire_server_state state);

// What a `status` query is answered with; borrows from the core.
void td_server_core_status(const td_server_core *core,
                           td_wire_status *ret_status);

// Whether the server takes this client, and under which number. DENIED with the
// reason for the robot in `info`: not listed, full, not ready, or a newer start
// of the same client is attached. Asking again with the same boot is fine.
// A newer boot takes the client over; what waited is handed back in
// ret_dropped.
TD_NODISCARD td_err td_server_core_attach(td_server_core *core,
                                          const td_wire_attach *attach,
                                          uint32_t *ret_client,
                                          td_sched_request *ret_dropped,
                                          td_errinfo *info);

// Counts a client that was refused before it came this far.
void td_server_core_refused(td_server_core *core);

// The client's start `boot` is gone. BUSY while it runs: ask again after done.
// NOTFOUND if it is not that start that is attached.
TD_NODISCARD td_err td_server_core_detach(td_server_core *core, const char *id,
                                          uint64_t boot, uint32_t *ret_client,
                                          td_sched_request *ret_dropped);

// Whether an observation fits the model. MISMATCH with field, what came and
// what is wanted; UNSUPPORTED with the field that this server cannot serve.
TD_NODISCARD td_err td_server_core_fits(const td_server_core *core,
                                        const td_wire_obs *obs,
                                        td_errinfo *info);

// A decoded observation of an attached client came. With WAITING the core holds
// the payload and the one it displaced is handed back (NULL: none). With any
// other outcome the caller keeps it.
td_server_outcome td_server_core_observe(td_server_core *core, uint32_t number,
                                         int64_t now_ns,
                                         const td_wire_ident *ident,
                                         void *payload,
                                         td_sched_request *ret_displaced);

// Counts an observation that ended before it came this far: MALFORMED, REFUSED,
// or SUPERSEDED with its seq.
void td_server_core_ended(td_server_core *core, uint32_t number,
                          td_server_outcome outcome, uint64_t seq);

// The client's present boot, route and episode, with the seq that came last.
td_wire_ident td_server_core_present(const td_server_core *core,
                                     uint32_t number);

// A new episode: what waited is handed back.
void td_server_core_reset(td_server_core *core, uint32_t number,
                          const td_wire_reset *reset,
                          td_sched_request *ret_dropped);

// Starts the next batch of at most `most`. Returns how many.
uint32_t td_server_core_next(td_server_core *core, uint32_t most,
                             uint32_t *ret_clients,
                             td_sched_request *ret_requests);

// Takes the seqs of this client that will never be answered, to be told with
// its next answer; returns how many.
uint32_t
td_server_core_superseded(td_server_core *core, uint32_t number,
                          uint64_t ret_superseded[TD_WIRE_MAX_SUPERSEDED]);

// A running request has ended, ANSWERED or FAILED.
void td_server_core_done(td_server_core *core, uint32_t number,
                         td_server_outcome outcome);

uint32_t td_server_core_clients(const td_server_core *core);
void td_server_core_counts(const td_server_core *core,
                           td_server_counts *ret_counts);

#endif

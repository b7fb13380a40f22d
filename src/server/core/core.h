// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_CORE_CORE_H
#define TD_SERVER_CORE_CORE_H

// What a server of one model decides: which clients it takes, what waits for
// the device, what is kept for each, what it says of itself. Pure: no clock,
// thread, network or model.
//
// Requests come in with td_server_core_observe() and go out again exactly once:
// displaced by a newer one, handed out to run, or dropped when the client
// leaves or restarts. Every observation that came in ends under one name of
// TD_SERVER_OUTCOMES. What waits is known to the scheduler alone.

#include "engine/engine.h"
#include "sched/prefixes.h"
#include "sched/strategy/cadence.h"
#include "server/core/client.h"
#include "server/core/dispatch.h"
#include "tendon/wire.h"

#define TD_SERVER_OUTCOMES(X)                                                  \
    X(WAITING, "waiting")                                                      \
    X(RUNNING, "running")                                                      \
    X(ANSWERED, "answered")                                                    \
    X(FAILED, "failed")         /* the engine failed; notified */              \
    X(UNREADY, "unready")       /* the engine is not there; notified */        \
    X(SUPERSEDED, "superseded") /* by a newer one of the same client */        \
    X(REFUSED, "refused")       /* does not fit the model; notified */         \
    X(STALE, "stale")           /* of values that are too old; notified */     \
    X(MALFORMED, "malformed")   /* could not be decoded */                     \
    X(OLD_BOOT, "old_boot")                                                    \
    X(OLD_EPISODE, "old_episode")                                              \
    X(OLD_SEQ, "old_seq")                                                      \
    X(DEPARTED, "departed")     /* its client left or restarted */             \
    X(EXPIRED, "expired")       /* queued for too long; notified */            \
    X(OVERFLOWED, "overflowed") /* the queue was full; notified */

typedef enum td_server_outcome {
#define TD_SERVER_OUTCOME_ENUM(name, text) TD_SERVER_##name,
    TD_SERVER_OUTCOMES(TD_SERVER_OUTCOME_ENUM)
#undef TD_SERVER_OUTCOME_ENUM
        TD_SERVER_OUTCOME_COUNT
} td_server_outcome;

const char *td_server_outcome_name(td_server_outcome outcome);

// What else is counted, and what it is (docs/metrics.md).
#define TD_SERVER_COUNTERS(X)                                                  \
    X(attached, "attached", "clients taken")                                   \
    X(refused_attach, "refused_attach", "clients refused")                     \
    X(departed, "clients_departed", "clients that are here no more")           \
    X(gone, "clients_gone", "of those, clients that were silent for too long") \
    X(expected, "expected", "observations that the model was warmed up for")   \
    X(rerun, "rerun_alone", "members of failed batches that ran again, alone") \
    X(offenders, "offenders", "of those, members that failed alone, too")      \
    X(misaligned, "misaligned", "observations of values too far apart")        \
    X(kept_chunk_hits, "kept_chunk_hits", "missed answers sent once more")     \
    X(prefix_hits, "prefix_hits", "missed answers made from a kept prefix")    \
    X(again_misses, "again_misses", "missed answers of which nothing is kept") \
    X(prefix_lost, "prefix_lost",                                              \
      "prefixes that the engine did not have any "                             \
      "more when they were needed")

// What a client is allowed: it may claim less than its share, and no more.
typedef struct td_server_allowance {
    const char *id;         // NULL in `unknown`
    int64_t budget_ns;      // of latency, for the age in the score
    uint32_t best_priority; // the highest that counts: 0 is all
    float most_urgency;     // the highest that counts: 1 is all
} td_server_allowance;

// 50 ms, and whatever it claims.
extern const td_server_allowance td_server_allowance_defaults;

typedef struct td_server_settings {
    const char *server_id;
    uint64_t boot;
    const td_server_allowance *clients; // allowed by name
    uint32_t client_count;
    td_server_allowance unknown; // what those not listed are allowed
    bool accept_unknown;
    uint32_t capacity; // clients at a time
} td_server_settings;

// What it decides about. The spec and the dispatch are borrowed.
typedef struct td_server_core_model {
    const td_engine_spec *spec;
    td_server_dispatch *dispatch;
    uint32_t number; // in the dispatch
    td_sched_cadence_settings cadence;
    bool precompute;
    uint64_t prefix_bytes; // 0: none is kept
    int64_t prefix_age_ns;
    td_server_fit_limits inputs;
} td_server_core_model;

typedef struct td_server_counts {
    uint64_t received; // sum of outcomes
    uint64_t outcomes[TD_SERVER_OUTCOME_COUNT];
#define TD_SERVER_COUNTER_FIELD(name, text, help) uint64_t name;
    TD_SERVER_COUNTERS(TD_SERVER_COUNTER_FIELD)
#undef TD_SERVER_COUNTER_FIELD
    td_sched_prefixes_counts prefixes;
} td_server_counts;

// What a client leaves behind when it restarts or leaves: the observation that
// waited, the one that was kept until it is asked for, the chunk that was kept,
// and the prefix, which is the engine's to drop.
typedef struct td_server_core_dropped {
    uint32_t count;
    td_server_request *requests[3];
    td_server_request_list queued; // likewise, of one that has a queue
    td_server_request *overflowed; // to make room for another's; to be notified
    td_engine_prefix *prefix;      // NULL: none
} td_server_core_dropped;

// Borrows the settings' texts. Owned by the caller. INVALID, NOMEM.
TD_NODISCARD td_err td_server_core_new(const td_server_settings *settings,
                                       const td_server_core_model *model,
                                       td_server_core **ret_core);
void td_server_core_free(td_server_core *core);
TD_AUTO_FREE(td_server_core, td_server_core_free)

// Whom it takes from now on, what they are allowed, whether it computes ahead
// and how old values may be; the rest stays as it was. Borrows as before.
void td_server_core_use(td_server_core *core,
                        const td_server_settings *settings,
                        const td_server_model_settings *model);

// What its clients' cadence means from now on. INVALID.
TD_NODISCARD td_err td_server_core_pace(
    td_server_core *core, const td_sched_cadence_settings *cadence);

void td_server_core_set_state(td_server_core *core, td_wire_server_state state);
td_wire_server_state td_server_core_state(const td_server_core *core);

// What a `status` query is answered with; borrows from the core.
void td_server_core_status(const td_server_core *core,
                           td_wire_status *ret_status);

// The client of that name that is attached; NULL: none.
td_server_client *td_server_core_find(const td_server_core *core,
                                      td_wire_text id);

// The client that has this number; NULL: none.
td_server_client *td_server_core_at(const td_server_core *core,
                                    uint32_t number);

// Whether the server takes this client. `client` is the record that
// td_server_core_find() has of it, or one that has no place; then it is the
// core's, too, until it is detached. DENIED with the reason for the robot in
// `info`: not listed, full, not ready, or a newer start of the same client is
// attached. Asking again with the same boot is fine. A newer boot takes the
// client over; what it leaves is handed back.
TD_NODISCARD td_err td_server_core_attach(td_server_core *core, int64_t now_ns,
                                          const td_wire_attach *attach,
                                          td_server_client *client,
                                          td_server_core_dropped *ret_dropped,
                                          td_errinfo *info);

// Counts a client that was refused before it came this far.
void td_server_core_refused(td_server_core *core);

// The client's start `boot` is gone: LEFT. BUSY while it runs: ask again after
// done; what it has in a queue is handed back at once. NOTFOUND if it is not
// that start that is attached.
TD_NODISCARD td_err td_server_core_detach(td_server_core *core,
                                          td_server_client *client,
                                          uint64_t boot,
                                          td_server_core_dropped *ret_dropped);

// Whether the client would be taken today, after td_server_core_use().
bool td_server_core_allows(const td_server_core *core,
                           const td_server_client *client);

// What the clients' cadences say at this moment, an event a call: one is about
// to send, or was silent for too long. One that waits or runs is not silent,
// nor is one that sends what goes no further.
// False: nothing.
bool td_server_core_cadence(td_server_core *core, int64_t now_ns,
                            td_sched_cadence_event *ret_event);
// When to ask again; NEVER.
int64_t td_server_core_wake_ns(const td_server_core *core);

// Whether an observation fits the model. MISMATCH with field, what came and
// what is wanted; UNSUPPORTED with the field that this server cannot serve.
TD_NODISCARD td_err td_server_core_fits(const td_server_core *core,
                                        const td_wire_obs *obs,
                                        td_errinfo *info);

// Each camera's picture, where there is one, by its header: whole enough to
// have one, of the size that the model wants, so that a bad one never meets a
// good one in a batch. FORMAT, LIMIT, UNSUPPORTED, MISMATCH with "images.NAME:
// ..." in `info`. Takes microseconds; any thread.
TD_NODISCARD td_err td_server_core_fits_pictures(const td_server_core *core,
                                                 const td_wire_obs *obs,
                                                 td_errinfo *info);

// Whether an observation's values are young enough. LIMIT with whose is not,
// how old it is and how old it may be.
TD_NODISCARD td_err td_server_core_fresh(const td_server_core *core,
                                         const td_wire_obs *obs,
                                         td_errinfo *info);

// A decoded observation of an attached client came. With WAITING the request is
// the core's, which hands back what it displaced. With any other outcome it
// stays the caller's; REFUSED: too many kinds of batches wait.
td_server_outcome td_server_core_observe(td_server_core *core, int64_t now_ns,
                                         td_server_request *request,
                                         td_server_core_dropped *ret_dropped);

// How an answer that was missed is given again.
typedef enum td_server_found {
    TD_SERVER_FOUND_NOTHING, // see the outcome: too old itself, or REFUSED
    TD_SERVER_FOUND_COMING,  // it, or a newer one, is on its way
    TD_SERVER_FOUND_CHUNK,   // kept: to be sent again
    TD_SERVER_FOUND_OBS,     // was kept until asked for, and waits now
    TD_SERVER_FOUND_PREFIX,  // kept: the asking one waits to be decoded from it
} td_server_found;

typedef struct td_server_again {
    td_server_found found;
    td_server_outcome outcome; // of the observation that asks
    td_server_request *chunk;  // the caller's until td_server_core_keep()
} td_server_again;

// A client asks for the answer to obs.again, which it missed. Only with PREFIX
// is the request the core's: it has the prefix, in use until
// td_server_core_release(), and the seq that was asked for. The one that asks
// is named as superseded.
td_server_again td_server_core_again(td_server_core *core, int64_t now_ns,
                                     td_server_request *request,
                                     td_server_core_dropped *ret_dropped);

// Keeps the request, which was answered. What comes back is no longer kept: the
// one before it, or it itself where its episode has ended or a newer one is.
void td_server_core_keep(td_server_request *request,
                         td_server_core_dropped *ret_dropped);

// Whether prefixes are kept. Any thread.
bool td_server_core_keeps_prefixes(const td_server_core *core);

// What must be dropped before so many bytes more are kept; call until NULL.
td_engine_prefix *td_server_core_evict(td_server_core *core, int64_t now_ns,
                                       size_t bytes);

// Keeps the prefix of what runs. Returns the one that must be dropped now: the
// client's older one, this one if there is no room or its episode has ended, or
// NULL.
td_engine_prefix *td_server_core_keep_prefix(td_server_core *core,
                                             int64_t now_ns,
                                             const td_server_request *request,
                                             td_engine_prefix *prefix,
                                             size_t bytes);

// The engine has lost them: takes one prefix out, to be dropped. NULL: none.
td_engine_prefix *td_server_core_forget(td_server_core *core);

// The engine did not have a prefix of the client's: the one in use, or one that
// was not kept yet.
void td_server_core_lost_prefix(td_server_core *core,
                                const td_server_client *client, bool in_use);

// The client's prefix is no longer in use. Returns it if it must be dropped.
td_engine_prefix *td_server_core_release(td_server_core *core,
                                         const td_server_client *client,
                                         int64_t now_ns);

// Counts an observation that ended before it came this far: MALFORMED, REFUSED,
// STALE, UNREADY, or SUPERSEDED with its seq.
void td_server_core_ended(td_server_core *core, td_server_client *client,
                          td_server_outcome outcome, uint64_t seq);

// The same of somebody who has no place here any more: nobody's silence ends.
void td_server_core_stray(td_server_core *core, td_server_outcome outcome);

// The client's present boot, route and episode, with the seq that came last.
td_wire_ident td_server_core_present(const td_server_client *client);

// A new episode: what the client leaves is handed back.
void td_server_core_reset(td_server_core *core, td_server_client *client,
                          const td_wire_reset *reset,
                          td_server_core_dropped *ret_dropped);

// How many wait to run; what is kept until it is asked for does not.
uint32_t td_server_core_waiting(const td_server_core *core);

// The engine is not there: hands back one that waits, as UNREADY. NULL: none
// does. What queues stays if it `comes_back` and what failed is run again.
td_server_request *td_server_core_give_up(td_server_core *core,
                                          bool comes_back);

// A request of td_server_dispatch_next() runs, under the ticket it came with.
void td_server_core_started(td_server_core *core, td_server_request *request,
                            uint64_t ticket);

// Names the client's seqs that will never be answered, each once, in an answer
// that is of its present start and episode: it would not read another.
void td_server_core_add_superseded(td_server_client *client,
                                   td_wire_action *action);

// A running request has ended, ANSWERED or FAILED. Returns what became of it: a
// failed one that is tried again is WAITING and stays the core's; one whose
// episode has ended is DEPARTED.
td_server_outcome td_server_core_done(td_server_core *core, int64_t now_ns,
                                      td_server_request *request,
                                      td_server_outcome outcome);

// Of a batch that failed: one more that runs again alone.
void td_server_core_rerun(td_server_core *core);
void td_server_core_offended(td_server_core *core);

// What the scheduler has dropped: it waited longer than its time to live.
void td_server_core_expired(td_server_request *request);

// Its model's, in the dispatch.
uint32_t td_server_core_number(const td_server_core *core);

uint32_t td_server_core_clients(const td_server_core *core);
uint64_t td_server_core_depth(const td_server_core *core); // that wait
void td_server_core_counts(const td_server_core *core,
                           td_server_counts *ret_counts);

#endif

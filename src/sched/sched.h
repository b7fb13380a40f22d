// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SCHED_SCHED_H
#define TD_SCHED_SCHED_H

// The scheduler: what waits for the models of one device, and what runs next.
//
// A member is a (client, model). Members of our own protocol have a slot: one
// waits, one runs, a newer one takes the waiting place and inherits the time
// since when that client has waited. Members of request-and-reply protocols
// queue instead. Every request ends under exactly one name of
// TD_SCHED_OUTCOMES, and the counts add up.
//
// Pure: no clock, no thread, no lock; room is made once, a decision allocates
// nothing. Times are nanoseconds of one clock; one that goes back is taken as
// standing still. Payloads are borrowed and handed back when they end.

#include "sched/batch.h"
#include "sched/queue.h"
#include "sched/strategy/strategy.h"

#define TD_SCHED_OUTCOMES(X)                                                   \
    X(WAITING, "waiting")                                                      \
    X(RUNNING, "running")                                                      \
    X(ANSWERED, "answered")                                                    \
    X(FAILED, "failed")         /* the engine did, and no retry was left */    \
    X(SUPERSEDED, "superseded") /* by a newer one of the same member */        \
    X(REFUSED, "refused")       /* the queue was full: reject_newest */        \
    X(OVERFLOWED, "overflowed") /* the queue was full: drop_oldest */          \
    X(EXPIRED, "expired")       /* waited longer than its time to live */      \
    X(USELESS, "useless")       /* nothing of its answer would be used */      \
    X(DEPARTED, "departed")     /* taken back: its client left or began anew */

typedef enum td_sched_outcome {
#define TD_SCHED_OUTCOME_ENUM(name, text) TD_SCHED_##name,
    TD_SCHED_OUTCOMES(TD_SCHED_OUTCOME_ENUM)
#undef TD_SCHED_OUTCOME_ENUM
        TD_SCHED_OUTCOME_COUNT
} td_sched_outcome;

const char *td_sched_outcome_name(td_sched_outcome outcome);

#define TD_SCHED_MAX_MODELS 64
#define TD_SCHED_MAX_LANES 64 // mixes x tiers
#define TD_SCHED_ALL_MODELS UINT64_MAX

typedef struct td_sched_settings {
    td_sched_policy policy; // its tiers are the most there can be
    td_sched_queue_settings queue;
    td_sched_batch_rule batch; // of each model, until set
    td_sched_batch_rule flush; // of BATCH_OPTIMIZED: at 8 or after 10 ms
    uint32_t members;
    uint32_t models;  // 1 to MAX_MODELS
    uint32_t mixes;   // kinds of batches that wait at a time
    uint32_t running; // queued requests that run at a time
} td_sched_settings;

// For one model and 64 members; model_deadline.
extern const td_sched_settings td_sched_defaults;

typedef struct td_sched_member {
    const char *client, *model_id; // names for scores; borrowed while it is in
    uint32_t model;
    bool queued;            // request and reply; else a slot
    uint32_t best_priority; // the highest that counts: 0 is all
    float most_urgency;     // the highest that counts: 1 is all
    int64_t budget_ns;      // of latency, for the age in the score: 50 ms
} td_sched_member;

typedef struct td_sched_item {
    uint32_t member;
    void *payload; // not NULL
    uint64_t seq;
    uint64_t mix;        // version, shapes, steps, mode: what may share a batch
    int64_t due_ns;      // its robot runs dry; NEVER: not known
    int64_t useless_ns;  // an answer from then on is; NEVER
    int64_t expected_ns; // its client's next (see cadence.h); NEVER
    uint32_t priority;   // 0 is the highest
    float urgency;       // 0 to 1
    uint32_t steps;      // remaining, or TD_SCHED_STEPS_UNSET
} td_sched_item;

// A request on its way out.
typedef struct td_sched_request {
    void *payload; // NULL: none
    uint64_t seq;
    int64_t arrived_ns;
    int64_t waiting_since_ns; // of the member, inherited
} td_sched_request;

// A request that has ended other than by done.
typedef struct td_sched_ended {
    td_sched_outcome outcome;
    uint32_t member;
    td_sched_request request; // its payload is NULL if nothing ended
} td_sched_ended;

// A request that runs; `ticket` says so when it is done.
typedef struct td_sched_pick {
    uint64_t ticket;
    uint32_t member;
    td_sched_request request;
    int64_t due_ns;
} td_sched_pick;

typedef struct td_sched_counts {
    uint64_t submitted; // sum of outcomes
    uint64_t outcomes[TD_SCHED_OUTCOME_COUNT];
    uint64_t retried;
} td_sched_counts;

typedef struct td_sched td_sched;

// Owned by the caller. INVALID with the setting that makes no sense; NOMEM.
TD_NODISCARD td_err td_sched_new(const td_sched_settings *settings,
                                 td_sched **ret_sched, td_errinfo *info);
void td_sched_free(td_sched *sched);
TD_AUTO_FREE(td_sched, td_sched_free)

// FULL if there is no member left to give.
TD_NODISCARD td_err td_sched_join(td_sched *sched,
                                  const td_sched_member *member,
                                  uint32_t *ret_member);

// What counts of what the member claims, from its next request on; its client
// and model stay.
void td_sched_allow(td_sched *sched, uint32_t member,
                    const td_sched_member *allowed);

// Takes the member back. BUSY while any of its requests waits or runs.
TD_NODISCARD td_err td_sched_leave(td_sched *sched, uint32_t member);

// With WAITING the scheduler holds the payload, and hands back the one that it
// put an end to (superseded or overflowed). With REFUSED the caller keeps it.
td_sched_outcome td_sched_submit(td_sched *sched, int64_t now_ns,
                                 const td_sched_item *item,
                                 td_sched_ended *ret_ended);

// Hands back one request that is not worth running any more: expired or
// useless. False: there is none. Ask until then before td_sched_next().
bool td_sched_drop(td_sched *sched, int64_t now_ns, td_sched_ended *ret_ended);

// Hands back one that waits of this member, as departed: a reset, or it leaves.
// False: there is none.
bool td_sched_clear(td_sched *sched, uint32_t member,
                    td_sched_ended *ret_ended);

// Starts the next batch of one of `models` (a bit each), of at most `most`
// (never above MAX_BATCH). Returns how many; 0 if nothing can run, or if what
// can had better wait: see td_sched_wake_ns().
uint32_t td_sched_next(td_sched *sched, int64_t now_ns, uint64_t models,
                       uint32_t most, td_sched_pick *ret_picks);

// As td_sched_next(), but starts none that is not as full as its rule lets it.
uint32_t td_sched_next_full(td_sched *sched, int64_t now_ns, uint64_t models,
                            uint32_t most, td_sched_pick *ret_picks);

// The models, a bit each, of which something waits that could run.
uint64_t td_sched_models_waiting(const td_sched *sched);

// When to ask again even if nothing comes; NEVER. As of the last next.
int64_t td_sched_wake_ns(const td_sched *sched);

// When td_sched_drop() will have something; NEVER.
int64_t td_sched_drop_ns(const td_sched *sched);

// A running request has ended, ANSWERED or FAILED. Returns what became of it: a
// failed one with retries left is WAITING, and its payload stays with the
// scheduler.
td_sched_outcome td_sched_done(td_sched *sched, int64_t now_ns, uint64_t ticket,
                               td_sched_outcome outcome);

// A batch of n took this long; at the start, what the engine expects.
void td_sched_measured(td_sched *sched, int64_t now_ns, uint32_t model,
                       uint32_t n, int64_t took_ns);

// What batches of the model took. Borrowed.
const td_sched_batch_times *td_sched_times(const td_sched *sched,
                                           uint32_t model);

// Changes how it decides, from now on; nothing that waits is lost. INVALID for
// more tiers than it was made with, or none.
TD_NODISCARD td_err td_sched_use(td_sched *sched, int64_t now_ns,
                                 const td_sched_policy *policy);

// Changes how requests queue, all but how many, and when BATCH_OPTIMIZED starts
// a batch. For those that wait, too. INVALID.
TD_NODISCARD td_err td_sched_rules(td_sched *sched, int64_t now_ns,
                                   const td_sched_queue_settings *queue,
                                   const td_sched_batch_rule *flush);

// Changes the model's batches. INVALID.
TD_NODISCARD td_err td_sched_batching(td_sched *sched, uint32_t model,
                                      const td_sched_batch_rule *rule);

// Whether a request that failed is run again.
bool td_sched_retries(const td_sched *sched);

// Whether something of this member waits, not counting what runs.
bool td_sched_waits(const td_sched *sched, uint32_t member);

uint32_t td_sched_waiting(const td_sched *sched);
void td_sched_count(const td_sched *sched, td_sched_counts *ret_counts);

#endif

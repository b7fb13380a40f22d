// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_CORE_DISPATCH_H
#define TD_SERVER_CORE_DISPATCH_H

// What runs next on a device: one scheduler and one arbiter over all of its
// models, and the numbers by which they know a client that has several.
//
// Pure: no clock, thread or lock.

#include "sched/arbiter.h"
#include "sched/sched.h"
#include "sched/strategy/cadence.h"
#include "server/core/fit.h"
#include "tendon/engine.h"

typedef struct td_server_device_settings {
    td_sched_policy policy;
    td_sched_queue_settings queue;
    td_sched_batch_rule flush; // of BATCH_OPTIMIZED
    td_sched_cadence_settings cadence;
    uint32_t models;   // that it has room for
    uint32_t clients;  // of all its models: the sum of their capacities
    bool side_by_side; // its models run at the same time; else one does
} td_server_device_settings;

// One model, 64 clients, model_deadline.
extern const td_server_device_settings td_server_device_defaults;

// How one model is run.
typedef struct td_server_model_settings {
    td_sched_batch_rule batch; // most 0: the engine's
    uint32_t max_inflight;     // batches at a time, where the engine takes them
    bool precompute;           // run what comes; else only what is asked for
    uint64_t prefix_bytes;     // that may be kept; 0: none is
    int64_t prefix_age_ns;     // one that was not used for so long may go
    td_server_fit_limits inputs;
} td_server_model_settings;

// Batches by slack, 2 in flight, precompute, no prefixes.
extern const td_server_model_settings td_server_model_defaults;

typedef struct td_server_dispatch td_server_dispatch;

// Owned by the caller. INVALID with the setting that makes no sense; NOMEM.
TD_NODISCARD td_err
td_server_dispatch_new(const td_server_device_settings *settings,
                       td_server_dispatch **ret_dispatch, td_errinfo *info);
void td_server_dispatch_free(td_server_dispatch *dispatch);
TD_AUTO_FREE(td_server_dispatch, td_server_dispatch_free)

// What waits and runs: to submit to, and to clear.
td_sched *td_server_dispatch_sched(td_server_dispatch *dispatch);

// Room for one more model. FULL; INVALID for a rule that makes no sense.
TD_NODISCARD td_err td_server_dispatch_add(td_server_dispatch *dispatch,
                                           const td_engine_spec *spec,
                                           const td_server_model_settings *how,
                                           uint32_t *ret_model);

// Changes how a model is run. INVALID.
TD_NODISCARD td_err td_server_dispatch_set(td_server_dispatch *dispatch,
                                           uint32_t model,
                                           const td_engine_spec *spec,
                                           const td_server_model_settings *how);

// Whether batches of the model are started.
void td_server_dispatch_open(td_server_dispatch *dispatch, uint32_t model,
                             bool open);

// The model's number may be given to another. Nothing of it waits or runs.
void td_server_dispatch_remove(td_server_dispatch *dispatch, uint32_t model);

// A client of a model. FULL.
TD_NODISCARD td_err td_server_dispatch_join(td_server_dispatch *dispatch,
                                            const td_sched_member *member,
                                            uint32_t *ret_member);
// Nothing of it waits or runs.
void td_server_dispatch_leave(td_server_dispatch *dispatch, uint32_t member);

// A batch that starts.
typedef struct td_server_dispatch_batch {
    uint32_t model;
    uint32_t run; // says so when it has ended
    uint32_t count;
    td_sched_pick picks[TD_SCHED_MAX_BATCH];
} td_server_dispatch_batch;

// Starts the next batch of those models that may. False: none.
bool td_server_dispatch_next(td_server_dispatch *dispatch, int64_t now_ns,
                             td_server_dispatch_batch *ret_batch);

// Starts a batch of one that is not the scheduler's. False: not now.
bool td_server_dispatch_alone(td_server_dispatch *dispatch, int64_t now_ns,
                              uint32_t model, uint32_t *ret_run);

// A batch of n has ended; `took_ns` is the model's own time, 0: it failed.
void td_server_dispatch_end(td_server_dispatch *dispatch, int64_t now_ns,
                            uint32_t model, uint32_t run, uint32_t n,
                            int64_t took_ns);

// How busy the device was over the last second or so, 0 to 1.
double td_server_dispatch_busy(td_server_dispatch *dispatch, int64_t now_ns);

// When to ask for the next even if nothing comes and nothing ends; NEVER.
int64_t td_server_dispatch_wake_ns(const td_server_dispatch *dispatch);

#endif

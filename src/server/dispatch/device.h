// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_DISPATCH_DEVICE_H
#define TD_SERVER_DISPATCH_DEVICE_H

// A device and the models on it: one scheduler, one arbiter, one run at a time.
//
// The servers of the device's models wait, run and answer under its one lock.
// It has no thread of its own: a batch starts on the thread of whoever brings
// the request that completes it, or ends the one before it, and the loop of one
// of its servers looks after what starts by time.

#include "engine/engine.h"
#include "sched/sched.h"
#include "sched/strategy/cadence.h"
#include "server/core/align.h"

typedef struct td_server_device_settings {
    td_sched_policy policy;
    td_sched_queue_settings queue;
    td_sched_batch_rule flush; // of BATCH_OPTIMIZED
    td_sched_cadence_settings cadence;
    uint32_t models;  // that it has room for
    uint32_t clients; // of all its models: the sum of their capacities
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
    td_server_align_settings inputs;
} td_server_model_settings;

// Batches by slack, 2 in flight, precompute, no prefixes.
extern const td_server_model_settings td_server_model_defaults;

typedef struct td_server_device td_server_device;

// Owned by the caller. INVALID with the setting that makes no sense; NOMEM.
TD_NODISCARD td_err
td_server_device_open(const td_server_device_settings *settings,
                      td_server_device **ret_device, td_errinfo *info);

// After the last of its servers was closed.
void td_server_device_close(td_server_device *device);
TD_AUTO_FREE(td_server_device, td_server_device_close)

// Changes how it decides, from now on; nothing that waits is lost. Its room and
// the size of its queues stay. INVALID for more tiers than it was opened with,
// or what makes no sense; then nothing, or only a part, was changed. Any
// thread.
TD_NODISCARD td_err td_server_device_use(
    td_server_device *device, const td_server_device_settings *settings);

// What became of the requests of all its models. Any thread.
void td_server_device_counts(td_server_device *device,
                             td_sched_counts *ret_counts);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_DISPATCH_DEVICE_H
#define TD_SERVER_DISPATCH_DEVICE_H

// A device and the models on it: one scheduler, one arbiter, one run at a time.
//
// The requests of its models wait, run and are answered under its one lock. It
// has no thread of its own: a batch starts on the thread of whoever brings the
// request that completes it, or ends the one before it, and the loop of one of
// its models, the keeper, looks after what starts by time.

#include "server/context.h"
#include "server/core/dispatch.h"

typedef struct td_server_device td_server_device;

// Owned by the caller. INVALID with the setting that makes no sense; NOMEM.
TD_NODISCARD td_err
td_server_device_open(const td_server_device_settings *settings,
                      td_server_device **ret_device, td_errinfo *info);

// After the last of its models was closed.
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

// The rest is for the parts of a model. Its runs (run.h) are how a device knows
// it.
typedef struct td_server_runs td_server_runs;

// What a context's `lock` is.
pthread_mutex_t *td_server_device_lock(td_server_device *device);

// Room for one more model. FULL; INVALID.
TD_NODISCARD td_err td_server_device_add(td_server_device *device,
                                         td_server_runs *runs,
                                         const td_server_model_settings *how,
                                         td_errinfo *info);
// Makes the core of a model that was added, and sets it in its context; READY.
// Free it with td_server_core_free(). INVALID, NOMEM.
TD_NODISCARD td_err td_server_device_new_core(
    td_server_device *device, td_server_runs *runs,
    const td_server_settings *settings, const td_server_model_settings *how);
// Changes how the model is run. INVALID. With the device's lock held.
TD_NODISCARD td_err td_server_device_set_model_locked(
    td_server_device *device, const td_server_runs *runs,
    const td_server_model_settings *how);
// No further batch of the model is formed; nothing if it was not added.
void td_server_device_stop(td_server_device *device, td_server_runs *runs);
// Nothing of it waits or runs any more; nothing if it was not added.
void td_server_device_remove(td_server_device *device, td_server_runs *runs);

// What holds for the clients of a model on this engine.
td_sched_cadence_settings td_server_device_cadence(td_server_device *device,
                                                   const td_engine *engine);
// When this model's loop has to look after the device; INT64_MAX.
int64_t td_server_device_plan_ns(td_server_device *device,
                                 const td_server_runs *runs);
// How busy it was over the last second or so, 0 to 1. With its lock held.
double td_server_device_load_locked(td_server_device *device);

#endif

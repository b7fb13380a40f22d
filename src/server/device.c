// SPDX-License-Identifier: Apache-2.0
#include "server/device.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>

const td_server_device_settings td_server_device_defaults = {
    .policy = {.strategy = TD_SCHED_MODEL_DEADLINE,
               .weights = TD_SCHED_WEIGHTS_PUBLISHED,
               .tiers = 4},
    .queue = TD_SCHED_QUEUE_DEFAULTS,
    .flush = {.wait = TD_SCHED_WAIT_FIXED,
              .most = 8,
              .wait_ns = 10 * TD_NS_PER_MS},
    .cadence = {.alpha = 0.3,
                .overdue = 1.5,
                .gone_ns = 10 * TD_NS_PER_S,
                .wake_ahead_ns = 5 * TD_NS_PER_MS,
                .wake_samples = 5},
    .models = 1,
    .clients = 64,
};

const td_server_model_settings td_server_model_defaults = {
    .batch = {.wait = TD_SCHED_WAIT_SLACK},
    .max_inflight = 2,
    .precompute = true,
    .prefix_age_ns = 60 * TD_NS_PER_S,
};

struct td_server_device {
    pthread_mutex_t lock; // guards everything below
    td_sched *sched;
};

static td_sched_settings sched_settings(const td_server_device_settings *s)
{
    td_sched_settings sched = td_sched_defaults;
    sched.policy = s->policy;
    sched.queue = s->queue;
    sched.flush = s->flush;
    sched.clients = s->clients;
    sched.members = s->clients;
    sched.models = s->models;
    if (s->policy.tiers > 0)
        sched.mixes = TD_SCHED_MAX_LANES / s->policy.tiers;
    return sched;
}

td_err td_server_device_open(const td_server_device_settings *settings,
                             td_server_device **ret_device, td_errinfo *info)
{
    td_sched_settings sched = sched_settings(settings);
    td_server_device *device = calloc(1, sizeof *device);
    if (!device) return TD_ERR_NOMEM;
    pthread_mutex_init(&device->lock, NULL);
    td_err err = td_sched_new(&sched, &device->sched, info);
    if (err != TD_OK) {
        td_server_device_close(device);
        return err;
    }
    *ret_device = device;
    return TD_OK;
}

void td_server_device_close(td_server_device *device)
{
    if (device->sched) td_sched_free(device->sched);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

td_err td_server_device_use(td_server_device *device,
                            const td_sched_policy *policy)
{
    pthread_mutex_lock(&device->lock);
    td_err err = td_sched_use(device->sched,
                              td_clock_now_ns(&td_clock_monotonic), policy);
    pthread_mutex_unlock(&device->lock);
    return err;
}

void td_server_device_counts(td_server_device *device,
                             td_sched_counts *ret_counts)
{
    pthread_mutex_lock(&device->lock);
    td_sched_count(device->sched, ret_counts);
    pthread_mutex_unlock(&device->lock);
}

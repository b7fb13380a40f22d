// SPDX-License-Identifier: Apache-2.0
// A device: its lock, its dispatch, the models on it, who keeps its time.
//
// Models come and go while others run: add() gives one a number in the
// dispatch, stop() forms no more of its batches, remove() gives the number
// back. A device needs no thread: the keeper, the loop of one of its models,
// asks plan_ns() when it has to look, and run.c wakes it if that became
// earlier. When the keeper's model stops, another's loop takes over.
//
// `lock` guards everything in here and, of each of its models, the core, the
// clients, the requests and the runs. It is the context's `lock` of all of
// them. A score function of the user's runs under it, and has nanoseconds.
#include "server/dispatch/device.h"

#include "base/clock.h"
#include "server/dispatch/internal.h"

#include <assert.h>
#include <stdlib.h>

td_err td_server_device_open(const td_server_device_settings *settings,
                             td_server_device **ret_device, td_errinfo *info)
{
    td_server_device *device = calloc(1, sizeof *device);
    if (!device) return TD_ERR_NOMEM;
    pthread_mutex_init(&device->lock, NULL);
    device->cadence = settings->cadence;
    device->planned_ns = INT64_MAX;
    td_server_device_settings own = *settings;
    device->score = &device->scores[0];
    td_server_score_wrap(device->score, &own.policy);
    td_err err = td_server_dispatch_new(&own, &device->dispatch, info);
    if (err != TD_OK) {
        td_server_device_close(device);
        return err;
    }
    *ret_device = device;
    return TD_OK;
}

void td_server_device_close(td_server_device *device)
{
    assert(!device->keeper);
    if (device->dispatch) td_server_dispatch_free(device->dispatch);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

// Nothing is woken for an engine that cannot be warmed.
static td_sched_cadence_settings cadence_for(const td_server_device *device,
                                             const td_engine *engine)
{
    td_sched_cadence_settings cadence = device->cadence;
    if (!engine->ops->warm) cadence.wake_samples = UINT32_MAX;
    return cadence;
}

// The policy before may still ask its own score while what waits is moved.
static td_err use_policy_locked(td_server_device *device, int64_t now_ns,
                                td_sched_policy policy)
{
    bool first = device->score == &device->scores[0];
    td_server_score *next = &device->scores[first];
    *next = *device->score;
    td_server_score_wrap(next, &policy);
    TD_TRY(td_sched_use(td_server_dispatch_sched(device->dispatch), now_ns,
                        &policy));
    device->score = next;
    return TD_OK;
}

static td_err use_locked(td_server_device *device,
                         const td_server_device_settings *settings)
{
    td_sched *sched = td_server_dispatch_sched(device->dispatch);
    int64_t now_ns = td_clock_monotonic_ns();
    TD_TRY(use_policy_locked(device, now_ns, settings->policy));
    TD_TRY(td_sched_rules(sched, now_ns, &settings->queue, &settings->flush));
    device->cadence = settings->cadence;
    for (uint32_t i = 0; i < TD_SCHED_MAX_MODELS; i++) {
        const td_server_runs *runs = device->models[i];
        if (!runs || !runs->ctx->core) continue;
        const td_sched_cadence_settings cadence =
            cadence_for(device, runs->ctx->engine);
        TD_TRY(td_server_core_pace(runs->ctx->core, &cadence));
    }
    return TD_OK;
}

td_err td_server_device_use(td_server_device *device,
                            const td_server_device_settings *settings)
{
    pthread_mutex_lock(&device->lock);
    td_err err = use_locked(device, settings);
    // What waited may run now, or by another time.
    for (uint32_t i = 0; i < TD_SCHED_MAX_MODELS; i++)
        if (device->models[i]) td_event_signal(device->models[i]->ctx->wake);
    pthread_mutex_unlock(&device->lock);
    return err;
}

td_sched_cadence_settings td_server_device_cadence(td_server_device *device,
                                                   const td_engine *engine)
{
    pthread_mutex_lock(&device->lock);
    td_sched_cadence_settings cadence = cadence_for(device, engine);
    pthread_mutex_unlock(&device->lock);
    return cadence;
}

void td_server_device_counts(td_server_device *device,
                             td_sched_counts *ret_counts)
{
    pthread_mutex_lock(&device->lock);
    td_sched_count(td_server_dispatch_sched(device->dispatch), ret_counts);
    pthread_mutex_unlock(&device->lock);
}

// What the engine expects, until it was measured.
static void enter_estimates(td_server_device *device,
                            const td_server_runs *runs)
{
    const td_engine *engine = runs->ctx->engine;
    td_sched *sched = td_server_dispatch_sched(device->dispatch);
    int64_t now_ns = td_clock_monotonic_ns();
    if (!engine->ops->estimate) return;
    for (uint32_t n = 1; n <= runs->ctx->spec->max_batch; n++) {
        int64_t took_ns;
        if (engine->ops->estimate(engine, n, &took_ns) == TD_OK)
            td_sched_measured(sched, now_ns, runs->number, n, took_ns);
    }
}

td_err td_server_device_add(td_server_device *device, td_server_runs *runs,
                            const td_server_model_settings *how,
                            td_errinfo *info)
{
    pthread_mutex_lock(&device->lock);
    td_err err = td_server_dispatch_add(device->dispatch, runs->ctx->spec, how,
                                        &runs->number);
    if (err == TD_OK) {
        device->models[runs->number] = runs;
        runs->added = true;
        td_server_dispatch_open(device->dispatch, runs->number, true);
        if (!device->keeper) device->keeper = runs;
        enter_estimates(device, runs);
    }
    pthread_mutex_unlock(&device->lock);
    if (err == TD_OK) return TD_OK;
    return td_fail(info, err, "%s",
                   err == TD_ERR_FULL ? "the device has all its models"
                                      : "batch: makes no sense");
}

td_err td_server_device_new_core(td_server_device *device, td_server_runs *runs,
                                 const td_server_settings *settings,
                                 const td_server_model_settings *how)
{
    const td_engine *engine = runs->ctx->engine;
    td_server_core_model model = {
        .spec = runs->ctx->spec,
        .dispatch = device->dispatch,
        .number = runs->number,
        .cadence = td_server_device_cadence(device, engine),
        .precompute = how->precompute,
        .prefix_age_ns = how->prefix_age_ns,
        .inputs = how->inputs,
    };
    if (td_engine_splits(engine)) model.prefix_bytes = how->prefix_bytes;
    td_server_core *core;
    TD_TRY(td_server_core_new(settings, &model, &core));
    td_server_core_set_state(core, TD_WIRE_READY);
    pthread_mutex_lock(&device->lock);
    runs->ctx->core = core;
    pthread_mutex_unlock(&device->lock);
    return TD_OK;
}

td_err td_server_device_set_model_locked(td_server_device *device,
                                         const td_server_runs *runs,
                                         const td_server_model_settings *how)
{
    td_err err = td_server_dispatch_set(device->dispatch, runs->number,
                                        runs->ctx->spec, how);
    if (err == TD_OK && device->keeper)
        td_event_signal(device->keeper->ctx->wake);
    return err;
}

// The next of its models that goes on keeps the time.
static void pass_on(td_server_device *device)
{
    device->keeper = NULL;
    device->planned_ns = INT64_MAX;
    for (uint32_t i = 0; i < TD_SCHED_MAX_MODELS && !device->keeper; i++)
        if (device->models[i] && !device->models[i]->stopping)
            device->keeper = device->models[i];
    if (device->keeper) td_event_signal(device->keeper->ctx->wake);
}

void td_server_device_stop(td_server_device *device, td_server_runs *runs)
{
    if (!runs->added) return;
    pthread_mutex_lock(&device->lock);
    runs->stopping = true;
    td_server_dispatch_open(device->dispatch, runs->number, false);
    if (device->keeper == runs) pass_on(device);
    pthread_mutex_unlock(&device->lock);
}

void td_server_device_remove(td_server_device *device, td_server_runs *runs)
{
    if (!runs->added) return;
    pthread_mutex_lock(&device->lock);
    td_server_dispatch_remove(device->dispatch, runs->number);
    device->models[runs->number] = NULL;
    pthread_mutex_unlock(&device->lock);
}

int64_t td_server_device_plan_ns(td_server_device *device,
                                 const td_server_runs *runs)
{
    int64_t plan_ns = INT64_MAX;
    pthread_mutex_lock(&device->lock);
    if (device->keeper == runs)
        plan_ns = device->planned_ns =
            td_server_dispatch_wake_ns(device->dispatch);
    pthread_mutex_unlock(&device->lock);
    return plan_ns;
}

double td_server_device_load_locked(td_server_device *device)
{
    return td_server_dispatch_busy(device->dispatch, td_clock_monotonic_ns());
}

pthread_mutex_t *td_server_device_lock(td_server_device *device)
{
    return &device->lock;
}

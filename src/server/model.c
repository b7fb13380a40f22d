// SPDX-License-Identifier: Apache-2.0
// One model at work: creates its parts, joins them, runs its loop, ends them.
//
// Parts, each with its own state behind its own header:
//   intake/    what clients send, from the network into the core, and who
//              attaches, is silent, leaves
//   core/      what is decided: who is taken, what waits, what is kept
//   client/    clients' topics, their requests, what robots are notified of
//   dispatch/  the device and its scheduler, runs, the engine's health
//   report/    numbers, events, metrics
// They share nothing but the context (context.h), which is constant once open.
//
// Threads: a transport's callback takes a good observation all the way to the
// engine; all else it leaves for the loop (intake.c decides). The engine's
// thread answers, and starts the next batch (run.c). The loop, `td-server`,
// does everything else; it alone attaches clients, lets them go, and notifies
// robots.
//
// Locks, in the order in which they may be taken together: none. Each is held
// alone and for a short time: the device's lock (the cores, clients, requests
// and runs of all its models), an inbox's (its mail). Nobody holds one while
// waiting for the network or inside an engine's submit. Stats, queues and the
// wake-up event take no lock; events have one of their own, a leaf, which is
// the only one that is taken inside the device's.
//
// Life: the parts are made in the order of new_parts(), since each borrows
// those before it; the registry is the last, because it lets clients in. The
// end is the reverse, on the loop's thread (shut_down): the registry undeclares
// what brings new clients, the device forms no further batch, what runs is
// waited for, robots are notified, clients are closed. Then everything is
// freed.
#include "server/model.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/sync/thread.h"
#include "server/dispatch/run.h"
#include "server/intake/registry.h"
#include "server/report/telemetry.h"

#include <assert.h>
#include <stdlib.h>

#define LOOP_NS TD_NS_PER_S           // between looks, at most
#define HEALTH_NS (50 * TD_NS_PER_MS) // between looks at the engine's

struct td_server_model {
    td_server_context ctx;
    td_server_device *device;
    bool owns_device;
    td_event wake;
    td_thread *thread;
    _Atomic bool stop;
    _Atomic int64_t looped_ns;
    td_server_model_settings how; // it is run; guarded by the device's lock

    td_server_pool *pool;
    td_server_notify *notify;
    td_server_health *health;
    td_server_runs *runs;
    td_server_intake *intake;
    td_server_telemetry *telemetry;
    td_server_registry *registry;
};

static int64_t earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

// Once a second at least, so that the loop is seen to run.
static void wait_until(td_server_model *model, int64_t due_ns)
{
    int64_t now_ns = td_clock_monotonic_ns();
    atomic_store_explicit(&model->looped_ns, now_ns, memory_order_relaxed);
    (void)td_event_wait_until(&model->wake, earlier(due_ns, now_ns + LOOP_NS));
}

static bool is_busy(const td_server_model *model)
{
    pthread_mutex_lock(model->ctx.lock);
    bool busy = td_server_run_is_busy_locked(model->runs);
    pthread_mutex_unlock(model->ctx.lock);
    return busy;
}

static void deliver_events(const td_server_model *model)
{
    if (model->ctx.events) td_server_events_deliver(model->ctx.events);
}

static void shut_down(td_server_model *model)
{
    td_server_health_stop(model->health);
    td_server_device_stop(model->device, model->runs);
    td_server_registry_shut(model->registry);
    while (is_busy(model))
        wait_until(model, INT64_MAX);
    td_server_notify_send(model->notify);
    td_server_registry_let_all_go(model->registry);
    deliver_events(model);
}

// Everything that there is to do. Returns when there is more, if nothing comes.
static int64_t look(td_server_model *model)
{
    td_server_health_look(model->health);
    td_server_registry_look_events(model->registry);
    td_server_registry_look_clients(model->registry);
    td_server_run_look(model->device);
    td_server_notify_send(model->notify);
    int64_t now_ns = td_clock_monotonic_ns();
    int64_t due_ns = td_server_registry_look_silence(model->registry, now_ns);
    due_ns =
        earlier(due_ns, td_server_telemetry_look(model->telemetry, now_ns));
    deliver_events(model);
    if (model->ctx.engine->ops->health)
        due_ns = earlier(due_ns, now_ns + HEALTH_NS);
    return earlier(due_ns,
                   td_server_device_plan_ns(model->device, model->runs));
}

static void loop(void *user)
{
    td_server_model *model = user;
    int64_t due_ns = 0;
    td_server_health_report_start(model->health);
    while (!atomic_load(&model->stop)) {
        wait_until(model, due_ns);
        due_ns = look(model);
    }
    shut_down(model);
}

static void carry_count(td_server_stats *stats, td_server_counter_id counter,
                        uint64_t from)
{
    if (from > 0) td_server_stats_count(stats, counter, TD_SERVER_NOBODY, from);
}

static td_err new_stats(td_server_model *model,
                        const td_server_model_config *config)
{
    TD_TRY(td_server_stats_new(model->ctx.capacity, &model->ctx.stats));
    td_server_stats *stats = model->ctx.stats;
    td_server_stats_tap(stats, &config->tap);
    carry_count(stats, TD_SERVER_COUNT_BAD_QUERIES, config->bad_queries);
    carry_count(stats, TD_SERVER_COUNT_EVENTS_DROPPED, config->events_dropped);
    return TD_OK;
}

static td_err open_registry(td_server_model *model, td_errinfo *info)
{
    const td_server_registry_parts parts = {
        .ctx = &model->ctx,
        .device = model->device,
        .runs = model->runs,
        .pool = model->pool,
        .notify = model->notify,
        .health = model->health,
        .intake = model->intake,
    };
    return td_server_registry_open(&parts, &model->registry, info);
}

static td_err new_parts(td_server_model *model,
                        const td_server_model_config *config, td_errinfo *info)
{
    td_server_context *ctx = &model->ctx;
    TD_TRY(new_stats(model, config));
    TD_TRY(td_server_pool_new(ctx, &model->pool));
    TD_TRY(td_server_notify_new(ctx, model->pool, &model->notify));
    TD_TRY(td_server_health_new(ctx, model->notify, &model->health));
    TD_TRY(td_server_run_new(ctx, model->device, model->pool, model->notify,
                             model->health, &model->runs));
    TD_TRY(
        td_server_device_add(model->device, model->runs, &config->model, info));
    TD_TRY(td_server_device_new_core(model->device, model->runs,
                                     &config->settings, &config->model));
    TD_TRY(td_server_intake_new(ctx, model->device, model->pool, model->notify,
                                model->health, &model->intake));
    TD_TRY(td_server_telemetry_open(ctx, config->metrics_period_ns,
                                    &model->telemetry, info));
    return open_registry(model, info);
}

// In the reverse order; nothing runs and nobody is attached.
static void free_parts(td_server_model *model)
{
    if (model->registry) td_server_registry_free(model->registry);
    if (model->telemetry) td_server_telemetry_close(model->telemetry);
    if (model->intake) td_server_intake_free(model->intake);
    if (model->ctx.core) td_server_core_free(model->ctx.core);
    if (model->runs) {
        td_server_device_remove(model->device, model->runs);
        td_server_run_free(model->runs);
    }
    if (model->owns_device) td_server_device_close(model->device);
    if (model->health) td_server_health_free(model->health);
    if (model->notify) td_server_notify_free(model->notify);
    if (model->pool) td_server_pool_free(model->pool);
    if (model->ctx.stats) td_server_stats_free(model->ctx.stats);
    free(model);
}

static td_err open_device(td_server_model *model,
                          const td_server_model_config *config,
                          td_errinfo *info)
{
    model->device = config->device;
    if (!model->device) {
        td_server_device_settings settings = td_server_device_defaults;
        settings.clients = config->settings.capacity;
        TD_TRY(td_server_device_open(&settings, &model->device, info));
        model->owns_device = true;
    }
    model->ctx.lock = td_server_device_lock(model->device);
    return TD_OK;
}

static td_err start(td_server_model *model,
                    const td_server_model_config *config, td_errinfo *info)
{
    TD_TRY(open_device(model, config, info));
    TD_TRY(new_parts(model, config, info));
    td_thread_config thread = {.name = "td-server", .cpu = -1};
    return td_thread_start(&thread, loop, model, &model->thread, info);
}

td_err td_server_model_open(td_net *net, td_engine *engine,
                            const td_server_model_config *config,
                            td_server_model **ret_model, td_errinfo *info)
{
    td_server_model *model = calloc(1, sizeof *model);
    if (!model) return TD_ERR_NOMEM;
    td_event_init(&model->wake);
    model->how = config->model;
    model->ctx = (td_server_context){
        .id = config->settings.server_id,
        .boot = config->settings.boot,
        .route = config->route,
        .capacity = config->settings.capacity,
        .opened_ns = td_clock_monotonic_ns(),
        .net = net,
        .engine = engine,
        .spec = engine->ops->spec(engine),
        .events = config->events,
        .wake = &model->wake,
    };
    atomic_init(&model->looped_ns, model->ctx.opened_ns);
    td_err err = start(model, config, info);
    if (err != TD_OK) {
        if (model->runs) td_server_device_stop(model->device, model->runs);
        free_parts(model);
        return err;
    }
    *ret_model = model;
    return TD_OK;
}

void td_server_model_close(td_server_model *model)
{
    atomic_store(&model->stop, true);
    td_event_signal(&model->wake);
    td_thread_join(model->thread);
    free_parts(model);
}

td_err td_server_model_use(td_server_model *model,
                           const td_server_settings *settings,
                           const td_server_model_settings *how)
{
    pthread_mutex_lock(model->ctx.lock);
    td_err err =
        td_server_device_set_model_locked(model->device, model->runs, how);
    if (err == TD_OK) {
        td_server_core_use(model->ctx.core, settings, how);
        model->how = *how;
        td_server_registry_recheck_locked(model->registry);
        td_event_signal(&model->wake);
    }
    pthread_mutex_unlock(model->ctx.lock);
    return err;
}

void td_server_model_drain(td_server_model *model)
{
    pthread_mutex_lock(model->ctx.lock);
    td_server_health_drain_locked(model->health);
    td_server_model_settings how = model->how;
    how.batch.wait = TD_SCHED_WAIT_NONE;
    td_err err =
        td_server_device_set_model_locked(model->device, model->runs, &how);
    assert(err == TD_OK); // as it was, but for the wait
    (void)err;
    pthread_mutex_unlock(model->ctx.lock);
    td_server_telemetry_event(&model->ctx, TD_SERVER_EVENT_STATE, NULL,
                              "draining");
}

bool td_server_model_drained(td_server_model *model)
{
    pthread_mutex_lock(model->ctx.lock);
    bool drained = !td_server_run_is_busy_locked(model->runs) &&
                   !td_server_notify_has_any_locked(model->notify) &&
                   td_server_core_waiting(model->ctx.core) == 0;
    pthread_mutex_unlock(model->ctx.lock);
    return drained;
}

void td_server_model_report_get(td_server_model *model,
                                td_server_model_report *ret_report)
{
    const td_server_context *ctx = &model->ctx;
    pthread_mutex_lock(ctx->lock);
    td_server_core_counts(ctx->core, &ret_report->counts);
    ret_report->clients = td_server_core_clients(ctx->core);
    pthread_mutex_unlock(ctx->lock);
    ret_report->events_dropped =
        td_server_stats_counter(ctx->stats, TD_SERVER_COUNT_EVENTS_DROPPED);
    ret_report->puts_failed =
        td_server_stats_counter(ctx->stats, TD_SERVER_COUNT_PUTS_FAILED);
}

td_err td_server_model_view(td_server_model *model, int64_t now_ns,
                            int64_t window_ns, const char *client,
                            td_server_view *view)
{
    return td_server_telemetry_view(&model->ctx, now_ns, window_ns, client,
                                    view);
}

const td_server_stats *td_server_model_stats(const td_server_model *model)
{
    return model->ctx.stats;
}

int64_t td_server_model_looped_ns(const td_server_model *model)
{
    return atomic_load_explicit(&model->looped_ns, memory_order_relaxed);
}

// SPDX-License-Identifier: Apache-2.0
// Whether the engine is there, and what follows.
//
// An engine says of itself that it is READY, WARMING or BROKEN. The core's
// state, which the status tells, follows that, unless the server drains or
// stops, which holds until the end. While the engine is not there new
// observations are refused at once (check), and those that wait end with the
// reason instead of growing old (give_up); so do the prefixes that it kept,
// since they went with it. Both happen at each end of a batch and at each look
// of the loop, so that robots know within a tenth of a second.
//
// The loop alone compares with its last look and reports what changed.
//
// Locks: none of its own; `draining` is an atomic because observations are
// checked without the device's lock, which guards the rest.
#include "server/dispatch/health.h"

#include "base/log.h"
#include "server/report/telemetry.h"

#include <stdlib.h>

struct td_server_health {
    const td_server_context *ctx;
    td_server_notify *notify;
    _Atomic bool draining; // nobody and nothing more is taken
    bool stopping;         // guarded by the device's lock
    // The loop's.
    td_engine_health last; // as of the last look
    bool was_ready;
};

td_err td_server_health_new(const td_server_context *ctx,
                            td_server_notify *notify,
                            td_server_health **ret_health)
{
    td_server_health *health = calloc(1, sizeof *health);
    if (!health) return TD_ERR_NOMEM;
    health->ctx = ctx;
    health->notify = notify;
    *ret_health = health;
    return TD_OK;
}

void td_server_health_free(td_server_health *health)
{
    free(health);
}

static td_wire_server_state state_of(td_engine_health health)
{
    static const td_wire_server_state states[] = {
        [TD_ENGINE_READY] = TD_WIRE_READY,
        [TD_ENGINE_WARMING] = TD_WIRE_WARMING,
        [TD_ENGINE_BROKEN] = TD_WIRE_DEGRADED,
    };
    return states[health];
}

td_engine_health td_server_health_update_locked(td_server_health *health)
{
    const td_server_context *ctx = health->ctx;
    td_engine_health now = td_engine_health_of(ctx->engine);
    if (!atomic_load(&health->draining) && !health->stopping)
        td_server_core_set_state(ctx->core, state_of(now));
    return now;
}

static const char *health_text(td_engine_health health)
{
    return health == TD_ENGINE_BROKEN
               ? "the model hangs or has failed too often, "
                 "and is tried again now and then"
               : "the model is being started again";
}

td_err td_server_health_check(const td_server_health *health, td_errinfo *info)
{
    const td_server_context *ctx = health->ctx;
    td_engine_health now = td_engine_health_of(ctx->engine);
    if (atomic_load(&health->draining))
        return td_fail(info, TD_ERR_CLOSED, "server %s is draining", ctx->id);
    if (now == TD_ENGINE_READY) return TD_OK;
    return td_fail(info, TD_ERR_CLOSED, "%s", health_text(now));
}

void td_server_health_give_up_locked(td_server_health *health)
{
    const td_server_context *ctx = health->ctx;
    td_engine_health now = td_engine_health_of(ctx->engine);
    if (now == TD_ENGINE_READY) return;
    td_server_request *waiting;
    bool comes_back = now == TD_ENGINE_WARMING;
    while ((waiting = td_server_core_give_up(ctx->core, comes_back)))
        td_server_notify_add_locked(health->notify, waiting, TD_ERR_CLOSED,
                                    health_text(now));
    td_engine_prefix *prefix; // the model has lost what was kept there
    while ((prefix = td_server_core_forget(ctx->core)))
        ctx->engine->ops->drop(ctx->engine, prefix);
}

// The state is an event.
static void report(const td_server_health *health, td_wire_server_state state)
{
    td_server_telemetry_event(health->ctx, TD_SERVER_EVENT_STATE, NULL, "%s",
                              td_wire_server_state_name(state));
}

void td_server_health_drain_locked(td_server_health *health)
{
    atomic_store(&health->draining, true);
    td_server_core_set_state(health->ctx->core, TD_WIRE_DRAINING);
}

void td_server_health_stop(td_server_health *health)
{
    pthread_mutex_lock(health->ctx->lock);
    health->stopping = true;
    td_server_core_set_state(health->ctx->core, TD_WIRE_DRAINING);
    pthread_mutex_unlock(health->ctx->lock);
    if (!atomic_load(&health->draining)) report(health, TD_WIRE_DRAINING);
}

void td_server_health_report_start(td_server_health *health)
{
    if (td_engine_health_of(health->ctx->engine) == TD_ENGINE_READY)
        report(health, TD_WIRE_READY); // else the first look says what it is
}

// Of an engine that was there before, that it died or was started again.
static void report_change(const td_server_health *health, td_engine_health now)
{
    const td_server_context *ctx = health->ctx;
    const char *engine = ctx->engine->ops->name;
    report(health, state_of(now));
    if (health->was_ready && now != TD_ENGINE_READY &&
        health->last == TD_ENGINE_READY)
        td_server_telemetry_event(ctx, TD_SERVER_EVENT_ENGINE_DIED, NULL, "%s",
                                  engine);
    if (health->was_ready && now == TD_ENGINE_READY)
        td_server_telemetry_event(ctx, TD_SERVER_EVENT_ENGINE_RESTARTED, NULL,
                                  "%s", engine);
}

void td_server_health_look(td_server_health *health)
{
    const td_server_context *ctx = health->ctx;
    pthread_mutex_lock(ctx->lock);
    td_engine_health now = td_server_health_update_locked(health);
    td_server_health_give_up_locked(health);
    pthread_mutex_unlock(ctx->lock);
    bool changed = now != health->last;
    if (changed) report_change(health, now);
    health->was_ready |= now == TD_ENGINE_READY;
    health->last = now;
    if (!changed) return;
    td_log_text(now == TD_ENGINE_READY ? TD_LOG_INFO : TD_LOG_WARN,
                "server: %s is %s", ctx->id,
                td_wire_server_state_name(state_of(now)));
}

// SPDX-License-Identifier: Apache-2.0
// Whether the engine is there, and what follows from it: the state that the
// server says of itself, and that nobody waits for a model that is away.
#include "base/log.h"
#include "server/shell.h"

static td_wire_server_state state_of(td_engine_health health)
{
    static const td_wire_server_state states[] = {
        [TD_ENGINE_READY] = TD_WIRE_READY,
        [TD_ENGINE_WARMING] = TD_WIRE_WARMING,
        [TD_ENGINE_BROKEN] = TD_WIRE_DEGRADED,
    };
    return states[health];
}

td_engine_health td_server_health_locked(td_server_model *server)
{
    td_engine_health health = td_engine_health_of(server->engine);
    if (!atomic_load(&server->draining) && !server->stopping)
        td_server_core_set_state(server->core, state_of(health));
    return health;
}

static const char *health_text(td_engine_health health)
{
    return health == TD_ENGINE_BROKEN ? "the model has failed too often, and "
                                        "is tried again now and then"
                                      : "the model is being started again";
}

td_err td_server_health_check(const td_server_model *server, td_errinfo *info)
{
    td_engine_health health = td_engine_health_of(server->engine);
    if (atomic_load(&server->draining))
        return td_fail(info, TD_ERR_CLOSED, "server %s is draining",
                       server->id);
    if (health == TD_ENGINE_READY) return TD_OK;
    return td_fail(info, TD_ERR_CLOSED, "%s", health_text(health));
}

void td_server_health_give_up_locked(td_server_model *server)
{
    td_engine_health health = td_engine_health_of(server->engine);
    uint32_t client;
    td_sched_request waiting;
    if (health == TD_ENGINE_READY) return;
    while (td_server_core_give_up(server->core, &client, &waiting))
        td_server_request_told_locked(server, waiting.payload, TD_ERR_CLOSED,
                                      health_text(health));
    td_engine_prefix *prefix; // the model has lost what was kept there
    while ((prefix = td_server_core_forget(server->core)))
        server->engine->ops->drop(server->engine, prefix);
}

void td_server_health_say(td_server_model *server, td_wire_server_state state)
{
    td_server_telemetry_event(server, TD_SERVER_EVENT_STATE, NULL, "%s",
                              td_wire_server_state_name(state));
}

// Of an engine that was there before, that it died or was started again.
static void say_health(td_server_model *server, td_engine_health health,
                       td_wire_server_state state)
{
    td_server_health_say(server, state);
    if (server->was_ready && health != TD_ENGINE_READY &&
        server->health == TD_ENGINE_READY)
        td_server_telemetry_event(server, TD_SERVER_EVENT_ENGINE_DIED, NULL,
                                  "%s", server->engine->ops->name);
    if (server->was_ready && health == TD_ENGINE_READY)
        td_server_telemetry_event(server, TD_SERVER_EVENT_ENGINE_RESTARTED,
                                  NULL, "%s", server->engine->ops->name);
}

void td_server_health_look(td_server_model *server)
{
    pthread_mutex_lock(&server->device->lock);
    td_engine_health health = td_server_health_locked(server);
    td_server_health_give_up_locked(server);
    pthread_mutex_unlock(&server->device->lock);
    td_wire_server_state state = state_of(health);
    bool changed = health != server->health;
    if (changed) say_health(server, health, state);
    server->was_ready |= health == TD_ENGINE_READY;
    server->health = health;
    if (!changed) return;
    td_log_text(health == TD_ENGINE_READY ? TD_LOG_INFO : TD_LOG_WARN,
                "server: %s is %s", server->id,
                td_wire_server_state_name(state));
}

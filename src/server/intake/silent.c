// SPDX-License-Identifier: Apache-2.0
// Clients that send nothing.
//
// The core's cadence says when one has been silent for too long, or is about to
// send, for which an engine may be warmed. A client that is silent and whose
// token is gone leaves. One whose token is there may only have nothing to ask:
// its place in the core and what was kept for it are given up, its topics stay
// open, and it waits in the registry's list. What it sends goes into its inbox
// (intake.c), and the loop finds it there at its next look and gives it a place
// again, if there is one; else what it sent is refused with the reason.
//
// On the loop's thread only, which owns the list. The device's lock is taken
// for the core, a moment at a time.
#include "base/clock.h"
#include "base/log.h"
#include "server/intake/registry_internal.h"
#include "server/report/telemetry.h"
#include "wire/msgpack/text.h"

td_server_client **td_server_silent_find(td_server_registry *registry,
                                         td_wire_text id)
{
    td_server_client **at = &registry->silent;
    while (*at && !td_wire_text_is(id, (*at)->id))
        at = &(*at)->next;
    return at;
}

void td_server_silent_came_back(td_server_registry *registry,
                                td_server_client **at)
{
    td_server_client *client = *at;
    *at = client->next;
    client->leaving = false;
    td_log_text(TD_LOG_INFO, "server: %s is back", client->id);
    td_server_telemetry_event(registry->ctx, TD_SERVER_EVENT_ATTACHED,
                              client->id, "sends again");
}

// It sends nothing. If it is alive it may be without anything to ask.
static void end_silent(td_server_registry *registry, td_server_client *client)
{
    const td_server_context *ctx = registry->ctx;
    int64_t gone_ns =
        td_server_device_cadence(registry->parts.device, ctx->engine).gone_ns;
    double gone_s = (double)gone_ns / TD_NS_PER_S;
    td_log_text(TD_LOG_INFO, "server: %s is gone: silent for %.0f s",
                client->id, gone_s);
    td_server_telemetry_event(ctx, TD_SERVER_EVENT_GONE, client->id,
                              "silent for %.0f s", gone_s);
    if (!td_server_registry_is_alive(registry, client) ||
        !td_server_registry_detach(registry, client, TD_SERVER_SILENT)) {
        client->leaving = true;
        return;
    }
    client->next = registry->silent;
    registry->silent = client;
}

// The core's events, one a call. False: none.
static bool take_event(td_server_registry *registry, int64_t now_ns,
                       td_sched_cadence_event *ret_event, int64_t *ret_next_ns)
{
    const td_server_context *ctx = registry->ctx;
    pthread_mutex_lock(ctx->lock);
    bool any = td_server_core_cadence(ctx->core, now_ns, ret_event);
    *ret_next_ns = td_server_core_wake_ns(ctx->core);
    td_server_intake_set_silence_locked(registry->parts.intake, *ret_next_ns);
    pthread_mutex_unlock(ctx->lock);
    return any;
}

int64_t td_server_registry_look_silence(td_server_registry *registry,
                                        int64_t now_ns)
{
    const td_server_context *ctx = registry->ctx;
    td_sched_cadence_event event;
    int64_t next_ns;
    while (take_event(registry, now_ns, &event, &next_ns)) {
        if (event.kind == TD_SCHED_CADENCE_GONE)
            end_silent(registry, td_server_core_at(ctx->core, event.client));
        else if (ctx->engine->ops->warm)
            ctx->engine->ops->warm(ctx->engine);
    }
    return next_ns;
}

// It sends again: it has its place back, if there still is one.
static void revive(td_server_registry *registry, td_server_client **at)
{
    td_server_client *client = *at;
    const td_wire_attach attach = {
        .client = td_wire_text_of(client->id),
        .every = client->every,
        .boot = td_server_registry_boot(registry, client),
        .route = client->route};
    td_errinfo info = {.text = ""};
    td_err err = td_server_registry_enter(registry, &attach, client, &info);
    if (err == TD_OK)
        td_server_silent_came_back(registry, at);
    else
        td_server_intake_refuse_inbox(registry->parts.intake, client, err,
                                      info.text);
}

void td_server_silent_look(td_server_registry *registry)
{
    for (td_server_client **at = &registry->silent; *at;) {
        td_server_client *client = *at;
        if (td_server_inbox_has_any(&client->topics->inbox))
            revive(registry, at);
        if (*at == client) at = &client->next;
    }
}

// SPDX-License-Identifier: Apache-2.0
// Whom the server takes, and for how long.
#include "sched/strategy/heap.h"
#include "server/core/internal.h"
#include "wire/msgpack/text.h"

#include <assert.h>
#include <string.h>

typedef td_server_client client;

const td_server_allowance *
td_server_core_find_allowed(const td_server_core *core, td_wire_text id)
{
    const td_server_settings *s = &core->settings;
    for (uint32_t i = 0; i < s->client_count; i++)
        if (td_wire_text_is(id, s->clients[i].id)) return &s->clients[i];
    return s->accept_unknown ? &s->unknown : NULL;
}

bool td_server_core_allows(const td_server_core *core, const client *c)
{
    return td_server_core_find_allowed(core, td_wire_text_of(c->id)) != NULL;
}

static td_sched_member member_of(const td_server_core *core, const client *c,
                                 const td_server_allowance *allowed)
{
    return (td_sched_member){
        .client = c->id,
        .queued = c->every,
        .model_id = core->spec->model_id,
        .model = core->model.number,
        .best_priority = allowed->best_priority,
        .most_urgency = allowed->most_urgency,
        .budget_ns = allowed->budget_ns,
    };
}

void td_server_core_use(td_server_core *core,
                        const td_server_settings *settings,
                        const td_server_model_settings *model)
{
    core->settings.clients = settings->clients;
    core->settings.client_count = settings->client_count;
    core->settings.unknown = settings->unknown;
    core->settings.accept_unknown = settings->accept_unknown;
    core->model.precompute = model->precompute;
    core->model.inputs = model->inputs;
    for (uint32_t i = 0; i < core->settings.capacity; i++) {
        const client *c = core->clients[i];
        if (!c) continue;
        const td_server_allowance *allowed =
            td_server_core_find_allowed(core, td_wire_text_of(c->id));
        if (!allowed) continue;
        td_sched_member member = member_of(core, c, allowed);
        td_sched_allow(core->sched, c->member, &member);
    }
}

client *td_server_core_find(const td_server_core *core, td_wire_text id)
{
    for (uint32_t i = 0; i < core->settings.capacity; i++)
        if (core->clients[i] && td_wire_text_is(id, core->clients[i]->id))
            return core->clients[i];
    return NULL;
}

client *td_server_core_at(const td_server_core *core, uint32_t number)
{
    return core->clients[number];
}

static td_err take_over(td_server_core *core, client *c,
                        const td_wire_attach *attach,
                        td_server_core_dropped *ret_dropped, td_errinfo *info)
{
    if (attach->boot < c->boot)
        return td_fail(info, TD_ERR_DENIED,
                       "a newer start of client %s (boot %llu) is attached; "
                       "this one has boot %llu",
                       c->id, (unsigned long long)c->boot,
                       (unsigned long long)attach->boot);
    if (attach->boot > c->boot)
        td_server_core_start_anew(core, c, attach->boot, 0, ret_dropped);
    c->route = attach->route;
    return TD_OK;
}

static uint32_t free_place(const td_server_core *core)
{
    uint32_t number = 0;
    while (number < core->settings.capacity && core->clients[number])
        number++;
    return number;
}

// Everything that the core has in the record starts afresh.
static void enter(td_server_core *core, client *c, uint32_t number,
                  uint32_t member, const td_wire_attach *attach)
{
    c->presence = TD_SERVER_ATTACHED;
    c->number = number;
    c->member = member;
    c->boot = attach->boot;
    c->route = attach->route;
    c->episode = c->seq = 0;
    c->has_sent = c->heard = false;
    c->core = core;
    c->running_count = 0;
    c->running = c->unasked = c->chunk = NULL;
    c->superseded_count = 0;
    core->clients[number] = c;
}

static td_err add(td_server_core *core, int64_t now_ns,
                  const td_wire_attach *attach,
                  const td_server_allowance *allowed, client *c,
                  td_errinfo *info)
{
    uint32_t member, number = free_place(core);
    c->every = attach->every;
    td_sched_member joining = member_of(core, c, allowed);
    if (number == core->settings.capacity ||
        td_server_dispatch_join(core->model.dispatch, &joining, &member) !=
            TD_OK)
        return td_fail(info, TD_ERR_DENIED,
                       "server %s has its %u clients and takes no more",
                       core->settings.server_id, core->settings.capacity);
    enter(core, c, number, member, attach);
    core->client_count++;
    core->counts.attached++;
    td_sched_cadence_arrived(core->cadence, number, now_ns);
    return TD_OK;
}

static td_err attach_checked(td_server_core *core, int64_t now_ns,
                             const td_wire_attach *attach, client *c,
                             td_server_core_dropped *ret_dropped,
                             td_errinfo *info)
{
    td_wire_text id = attach->client;
    if (core->state != TD_WIRE_READY && core->state != TD_WIRE_DEGRADED)
        return td_fail(info, TD_ERR_DENIED, "server %s is %s",
                       core->settings.server_id,
                       td_wire_server_state_name(core->state));
    if (id.size > TD_WIRE_MAX_NAME)
        return td_fail(info, TD_ERR_DENIED, "client_uuid is too long");
    const td_server_allowance *allowed = td_server_core_find_allowed(core, id);
    if (!allowed)
        return td_fail(info, TD_ERR_DENIED,
                       "client %.*s is not in the manifest of server %s: list "
                       "it under clients, or set accept_unknown",
                       (int)id.size, id.data, core->settings.server_id);
    if (c->presence != TD_SERVER_LEFT && attach->every != c->every)
        return td_fail(info, TD_ERR_DENIED,
                       "a start of client %s that asks otherwise (every) is "
                       "still here",
                       c->id);
    if (c->presence != TD_SERVER_ATTACHED)
        return add(core, now_ns, attach, allowed, c, info);
    return take_over(core, c, attach, ret_dropped, info);
}

td_err td_server_core_attach(td_server_core *core, int64_t now_ns,
                             const td_wire_attach *attach, client *c,
                             td_server_core_dropped *ret_dropped,
                             td_errinfo *info)
{
    *ret_dropped = (td_server_core_dropped){0};
    td_err err = attach_checked(core, now_ns, attach, c, ret_dropped, info);
    if (err != TD_OK) td_server_core_refused(core);
    return err;
}

void td_server_core_refused(td_server_core *core)
{
    core->counts.refused_attach++;
}

td_err td_server_core_detach(td_server_core *core, client *c, uint64_t boot,
                             td_server_core_dropped *ret_dropped)
{
    if (c->presence != TD_SERVER_ATTACHED || c->boot != boot)
        return TD_ERR_NOTFOUND;
    *ret_dropped = (td_server_core_dropped){0};
    if (c->running_count > 0) {
        if (c->every) td_server_core_empty_queue(core, c, false, ret_dropped);
        return TD_ERR_BUSY;
    }
    td_server_core_let_go(core, c, false, ret_dropped);
    td_server_dispatch_leave(core->model.dispatch, c->member);
    td_sched_cadence_forget(core->cadence, c->number);
    c->presence = TD_SERVER_LEFT;
    core->clients[c->number] = NULL;
    core->client_count--;
    core->counts.departed++;
    return TD_OK;
}

bool td_server_core_cadence(td_server_core *core, int64_t now_ns,
                            td_sched_cadence_event *ret_event)
{
    while (td_sched_cadence_next(core->cadence, now_ns, ret_event)) {
        client *c = core->clients[ret_event->client];
        if (ret_event->kind == TD_SCHED_CADENCE_WAKE) {
            core->counts.expected++;
            return true;
        }
        if (!td_server_core_waits(core, c) && c->running_count == 0 &&
            !c->heard) {
            core->counts.gone++;
            return true;
        }
        c->heard = false;
        td_sched_cadence_arrived(core->cadence, ret_event->client, now_ns);
    }
    return false;
}

int64_t td_server_core_wake_ns(const td_server_core *core)
{
    return td_sched_cadence_wake_ns(core->cadence);
}

// SPDX-License-Identifier: Apache-2.0
#include "server/core.h"

#include "wire/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct client {
    bool attached;
    char id[TD_WIRE_MAX_NAME + 1];
    uint64_t boot;
    uint64_t route; // of its attach
    uint64_t episode;
    uint64_t seq; // the newest that came
    uint64_t running_boot, running_episode;
    uint64_t superseded[TD_WIRE_MAX_SUPERSEDED];
    uint32_t superseded_count; // still to be told
} client;

struct td_server_core {
    td_server_settings settings;
    const td_engine_spec *spec;
    td_wire_server_state state;
    td_sched_slots *slots;
    client *clients; // [capacity], by the slots' numbers
    uint32_t client_count;
    td_server_counts counts;
};

const td_server_client td_server_client_defaults = {
    .budget_ns = 50000000,
    .most_urgency = 1,
};

const char *td_server_outcome_name(td_server_outcome outcome)
{
    static const char *const names[] = {
#define TD_SERVER_OUTCOME_NAME(name, text) text,
        TD_SERVER_OUTCOMES(TD_SERVER_OUTCOME_NAME)
#undef TD_SERVER_OUTCOME_NAME
    };
    return names[outcome];
}

td_err td_server_core_new(const td_server_settings *settings,
                          const td_engine_spec *spec, td_server_core **ret_core)
{
    TD_AUTO(td_server_core) *core = calloc(1, sizeof *core);
    if (!core) return TD_ERR_NOMEM;
    core->settings = *settings;
    core->spec = spec;
    TD_TRY(td_sched_slots_new(settings->capacity, &core->slots));
    core->clients = calloc(settings->capacity, sizeof *core->clients);
    if (!core->clients) return TD_ERR_NOMEM;
    *ret_core = TD_TAKE(core);
    return TD_OK;
}

void td_server_core_free(td_server_core *core)
{
    if (core->slots) td_sched_slots_free(core->slots);
    free(core->clients);
    free(core);
}

void td_server_core_use(td_server_core *core,
                        const td_server_settings *settings)
{
    core->settings.clients = settings->clients;
    core->settings.client_count = settings->client_count;
    core->settings.unknown = settings->unknown;
    core->settings.accept_unknown = settings->accept_unknown;
}

void td_server_core_set_state(td_server_core *core, td_wire_server_state state)
{
    core->state = state;
}

static void describe_model(const td_engine_spec *spec, td_wire_status *status)
{
    status->model_id = td_wire_text_of(spec->model_id);
    status->model_version = td_wire_text_of(spec->model_version);
    memcpy(status->cameras, spec->cameras, sizeof status->cameras);
    status->camera_count = spec->camera_count;
    memcpy(status->actions, spec->actions, sizeof status->actions);
    status->action_count = spec->action_count;
    memcpy(status->states, spec->states, sizeof status->states);
    status->state_count = spec->state_count;
    status->action_dim = spec->action_count;
    status->max_actions_per_chunk = spec->chunk_rows;
    status->step_period_us = spec->step_period_us;
    status->rtc = spec->rtc;
}

static void describe_features(const td_engine_spec *spec,
                              td_wire_status *status)
{
    status->features[0] = (td_wire_feature){
        .name = td_wire_text_of("state"),
        .dtype = TD_WIRE_F32,
        .rank = 1,
        .shape = {spec->state_count},
    };
    for (uint32_t i = 0; i < spec->camera_count; i++)
        status->features[i + 1] = (td_wire_feature){
            .name = spec->cameras[i].name,
            .dtype = TD_WIRE_U8,
            .rank = 3,
            .shape = {spec->cameras[i].height, spec->cameras[i].width, 3},
        };
    status->feature_count = spec->camera_count + 1;
}

void td_server_core_status(const td_server_core *core,
                           td_wire_status *ret_status)
{
    td_wire_status *status = ret_status;
    *status = (td_wire_status){
        .server = td_wire_text_of(core->settings.server_id),
        .server_boot = core->settings.boot,
        .state = core->state,
        .capacity = core->settings.capacity,
        .clients = core->client_count,
        .load = (float)core->client_count / (float)core->settings.capacity,
    };
    describe_model(core->spec, status);
    describe_features(core->spec, status);
}

static bool is_listed(const td_server_core *core, td_wire_text id)
{
    for (uint32_t i = 0; i < core->settings.client_count; i++)
        if (td_wire_text_is(id, core->settings.clients[i].id)) return true;
    return false;
}

static td_err find(const td_server_core *core, td_wire_text id,
                   uint32_t *ret_client)
{
    for (uint32_t i = 0; i < core->settings.capacity; i++) {
        const client *c = &core->clients[i];
        if (!c->attached || !td_wire_text_is(id, c->id)) continue;
        *ret_client = i;
        return TD_OK;
    }
    return TD_ERR_NOTFOUND;
}

static void remember_superseded(client *c, uint64_t seq)
{
    if (c->superseded_count == TD_WIRE_MAX_SUPERSEDED) {
        memmove(c->superseded, c->superseded + 1,
                (TD_WIRE_MAX_SUPERSEDED - 1) * sizeof c->superseded[0]);
        c->superseded_count--;
    }
    c->superseded[c->superseded_count++] = seq;
}

// Forgets everything about what a client sent, except what it must be told.
static void start_anew(td_server_core *core, uint32_t number, uint64_t boot,
                       uint64_t episode, td_sched_request *ret_dropped)
{
    client *c = &core->clients[number];
    bool same_start = boot == c->boot;
    if (!same_start) {
        c->seq = 0;
        c->superseded_count = 0;
    }
    c->boot = boot;
    c->episode = episode;
    td_sched_slots_clear(core->slots, number, ret_dropped);
    if (!ret_dropped->payload) return;
    if (same_start) remember_superseded(c, ret_dropped->seq);
    core->counts.outcomes[TD_SERVER_WAITING]--;
    core->counts.outcomes[TD_SERVER_DEPARTED]++;
}

static td_err take_over(td_server_core *core, uint32_t number,
                        const td_wire_attach *attach,
                        td_sched_request *ret_dropped, td_errinfo *info)
{
    client *c = &core->clients[number];
    if (attach->boot < c->boot)
        return td_fail(info, TD_ERR_DENIED,
                       "a newer start of client %s (boot %llu) is attached; "
                       "this one has boot %llu",
                       c->id, (unsigned long long)c->boot,
                       (unsigned long long)attach->boot);
    if (attach->boot > c->boot)
        start_anew(core, number, attach->boot, 0, ret_dropped);
    c->route = attach->route;
    return TD_OK;
}

static td_err refuse_stranger(const td_server_core *core, td_wire_text id,
                              td_errinfo *info)
{
    if (core->settings.accept_unknown || is_listed(core, id)) return TD_OK;
    return td_fail(info, TD_ERR_DENIED,
                   "client %.*s is not in the manifest of server %s: list it "
                   "under clients, or set accept_unknown",
                   (int)id.size, id.data, core->settings.server_id);
}

static td_err add(td_server_core *core, const td_wire_attach *attach,
                  uint32_t *ret_client, td_errinfo *info)
{
    uint32_t number;
    if (td_sched_slots_add(core->slots, &number) != TD_OK)
        return td_fail(info, TD_ERR_DENIED,
                       "server %s has its %u clients and takes no more",
                       core->settings.server_id, core->settings.capacity);
    client *c = &core->clients[number];
    *c = (client){
        .attached = true, .boot = attach->boot, .route = attach->route};
    memcpy(c->id, attach->client.data, attach->client.size);
    core->client_count++;
    core->counts.attached++;
    *ret_client = number;
    return TD_OK;
}

static td_err attach_checked(td_server_core *core, const td_wire_attach *attach,
                             uint32_t *ret_client,
                             td_sched_request *ret_dropped, td_errinfo *info)
{
    if (core->state != TD_WIRE_READY && core->state != TD_WIRE_DEGRADED)
        return td_fail(info, TD_ERR_DENIED, "server %s is %s",
                       core->settings.server_id,
                       td_wire_server_state_name(core->state));
    if (attach->client.size > TD_WIRE_MAX_NAME)
        return td_fail(info, TD_ERR_DENIED, "client_uuid is too long");
    TD_TRY(refuse_stranger(core, attach->client, info));
    uint32_t number;
    if (find(core, attach->client, &number) != TD_OK)
        return add(core, attach, ret_client, info);
    TD_TRY(take_over(core, number, attach, ret_dropped, info));
    *ret_client = number;
    return TD_OK;
}

td_err td_server_core_attach(td_server_core *core, const td_wire_attach *attach,
                             uint32_t *ret_client,
                             td_sched_request *ret_dropped, td_errinfo *info)
{
    *ret_dropped = (td_sched_request){0};
    td_err err = attach_checked(core, attach, ret_client, ret_dropped, info);
    if (err != TD_OK) td_server_core_refused(core);
    return err;
}

void td_server_core_refused(td_server_core *core)
{
    core->counts.refused_attach++;
}

td_err td_server_core_detach(td_server_core *core, const char *id,
                             uint64_t boot, uint32_t *ret_client,
                             td_sched_request *ret_dropped)
{
    uint32_t number;
    TD_TRY(find(core, td_wire_text_of(id), &number));
    if (core->clients[number].boot != boot) return TD_ERR_NOTFOUND;
    TD_TRY(td_sched_slots_remove(core->slots, number, ret_dropped));
    if (ret_dropped->payload) {
        core->counts.outcomes[TD_SERVER_WAITING]--;
        core->counts.outcomes[TD_SERVER_DEPARTED]++;
    }
    core->clients[number].attached = false;
    core->client_count--;
    core->counts.departed++;
    *ret_client = number;
    return TD_OK;
}

static const td_wire_image *find_image(const td_wire_obs *obs,
                                       td_wire_text name)
{
    for (uint32_t i = 0; i < obs->image_count; i++)
        if (td_wire_text_same(obs->images[i].name, name))
            return &obs->images[i];
    return NULL;
}

static td_err fits_camera(const td_wire_obs *obs, const td_wire_camera *camera,
                          td_errinfo *info)
{
    const td_wire_image *image = find_image(obs, camera->name);
    int size = (int)camera->name.size;
    const char *name = camera->name.data;
    if (!image)
        return td_fail(info, TD_ERR_MISMATCH,
                       "images.%.*s: missing, the model wants %ux%u", size,
                       name, camera->height, camera->width);
    const uint32_t *shape = image->shape;
    if (shape[0] == 0 && image->codec != TD_WIRE_RAW)
        return TD_OK; // its codec tells
    if (shape[0] == camera->height && shape[1] == camera->width &&
        shape[2] == 3)
        return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH,
                   "images.%.*s: is %ux%ux%u, the model wants %ux%ux3", size,
                   name, shape[0], shape[1], shape[2], camera->height,
                   camera->width);
}

td_err td_server_core_fits(const td_server_core *core, const td_wire_obs *obs,
                           td_errinfo *info)
{
    const td_engine_spec *spec = core->spec;
    if (obs->has_again)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "again: this server keeps no chunk to send again");
    if (obs->has_rtc && !spec->rtc)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "rtc: model %s cannot do real-time chunking",
                       spec->model_id);
    const td_wire_tensor *state = &obs->state;
    if (state->dtype != TD_WIRE_F32 || state->rank != 1 ||
        state->shape[0] != spec->state_count)
        return td_fail(info, TD_ERR_MISMATCH,
                       "state: is rank %u, %u x %s, the model wants %u x <f4",
                       state->rank, state->shape[0],
                       td_wire_dtype_name(state->dtype), spec->state_count);
    for (uint32_t i = 0; i < spec->camera_count; i++)
        TD_TRY(fits_camera(obs, &spec->cameras[i], info));
    return TD_OK;
}

void td_server_core_ended(td_server_core *core, uint32_t number,
                          td_server_outcome outcome, uint64_t seq)
{
    core->counts.received++;
    core->counts.outcomes[outcome]++;
    if (outcome == TD_SERVER_SUPERSEDED)
        remember_superseded(&core->clients[number], seq);
}

static td_server_outcome classify(const client *c, const td_wire_ident *ident)
{
    if (ident->boot < c->boot) return TD_SERVER_OLD_BOOT;
    if (ident->boot > c->boot) return TD_SERVER_WAITING;
    if (ident->episode < c->episode) return TD_SERVER_OLD_EPISODE;
    if (ident->seq <= c->seq) return TD_SERVER_OLD_SEQ;
    return TD_SERVER_WAITING;
}

td_server_outcome td_server_core_observe(td_server_core *core, uint32_t number,
                                         int64_t now_ns,
                                         const td_wire_ident *ident,
                                         void *payload,
                                         td_sched_request *ret_displaced)
{
    client *c = &core->clients[number];
    *ret_displaced = (td_sched_request){0};
    td_server_outcome outcome = classify(c, ident);
    core->counts.received++;
    core->counts.outcomes[outcome]++;
    if (outcome != TD_SERVER_WAITING) return outcome;

    // Only one of the two can hand something back: a new episode empties the
    // place that the offer takes.
    td_sched_request dropped = {0};
    if (ident->boot != c->boot || ident->episode != c->episode)
        start_anew(core, number, ident->boot, ident->episode, &dropped);
    c->seq = ident->seq;
    td_sched_slots_offer(core->slots, number, now_ns, ident->seq, payload,
                         ret_displaced);
    if (ret_displaced->payload) {
        core->counts.outcomes[TD_SERVER_WAITING]--;
        core->counts.outcomes[TD_SERVER_SUPERSEDED]++;
        remember_superseded(c, ret_displaced->seq);
    } else {
        *ret_displaced = dropped;
    }
    return outcome;
}

td_wire_ident td_server_core_present(const td_server_core *core,
                                     uint32_t number)
{
    const client *c = &core->clients[number];
    return (td_wire_ident){c->boot, c->route, c->episode, c->seq};
}

void td_server_core_reset(td_server_core *core, uint32_t number,
                          const td_wire_reset *reset,
                          td_sched_request *ret_dropped)
{
    const client *c = &core->clients[number];
    *ret_dropped = (td_sched_request){0};
    if (reset->boot != c->boot || reset->episode <= c->episode) return;
    start_anew(core, number, reset->boot, reset->episode, ret_dropped);
}

uint32_t td_server_core_next(td_server_core *core, uint32_t most,
                             uint32_t *ret_clients,
                             td_sched_request *ret_requests)
{
    uint32_t count =
        td_sched_slots_next(core->slots, most, ret_clients, ret_requests);
    for (uint32_t i = 0; i < count; i++) {
        client *c = &core->clients[ret_clients[i]];
        c->running_boot = c->boot;
        c->running_episode = c->episode;
    }
    core->counts.outcomes[TD_SERVER_WAITING] -= count;
    core->counts.outcomes[TD_SERVER_RUNNING] += count;
    return count;
}

uint32_t
td_server_core_superseded(td_server_core *core, uint32_t number,
                          uint64_t ret_superseded[TD_WIRE_MAX_SUPERSEDED])
{
    client *c = &core->clients[number];
    // A robot drops the answer to an earlier start or episode of its own, and
    // what such an answer tells; the next one will tell it.
    if (c->running_boot != c->boot || c->running_episode != c->episode)
        return 0;
    uint32_t count = c->superseded_count;
    memcpy(ret_superseded, c->superseded, count * sizeof c->superseded[0]);
    c->superseded_count = 0;
    return count;
}

void td_server_core_done(td_server_core *core, uint32_t number,
                         td_server_outcome outcome)
{
    td_sched_slots_done(core->slots, number);
    core->counts.outcomes[TD_SERVER_RUNNING]--;
    core->counts.outcomes[outcome]++;
}

uint32_t td_server_core_clients(const td_server_core *core)
{
    return core->client_count;
}

void td_server_core_counts(const td_server_core *core,
                           td_server_counts *ret_counts)
{
    *ret_counts = core->counts;
}

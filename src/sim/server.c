// SPDX-License-Identifier: Apache-2.0
// A server of the simulation: the real core and the real dispatch, without
// threads.
//
// It does by hand what the real server's threads do. Messages that arrived wait
// in the mailbox of each client, status queries in a list; act() takes them
// all, then ends the batch that runs if its time is over, then begins the next:
//
//   queries   answered with the core's status; one with a payload attaches
//   mailbox   decoded, checked, given to the core, which says what becomes of
//   it finish    each member is answered, the core and the dispatch learn of it
//   begin     the dispatch forms a batch, the synthetic model answers at once
//
// One batch runs at a time. The answers are computed when a batch begins and
// sent when its time, drawn from the model's latency, has passed.
//
// A request is one block of memory with its message, its observation and room
// for its answer. It belongs to whoever the core says: waiting, running, kept
// for an answer again, or dropped. Whatever the core drops is freed by drop().
// At the end free_all() resets every client, so that the core drops what it
// still holds.
//
// Randomness comes from two forks of the seed: one for latencies, one for the
// noise of chunks, which depends on client and seq alone.
#include "server/core/answer.h"
#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_QUERIES (4 * TD_SIM_MAX_ROBOTS)

typedef td_server_request request;

typedef struct client { // by its number in the core: nobody leaves
    td_server_client record;
    td_net_pub *action;
    td_net_decl *obs;
    td_sim_mailbox mailbox;
} client;

struct td_sim_server {
    td_sim_world *world;
    const td_engine_spec *spec;
    td_net *net;
    td_net_decl *status;
    td_server_dispatch *dispatch;
    uint32_t model; // number in the dispatch
    td_server_core *core;
    td_rand rand;                          // of latencies
    td_rand seed;                          // of chunks
    client clients[TD_SIM_MAX_ROBOTS + 1]; // one may be refused
    td_net_request *queries[MAX_QUERIES];
    uint32_t query_count;
    td_server_dispatch_batch batch; // the batch that runs
    int64_t service_ns;
    int64_t done_ns; // INT64_MAX: idle
    uint64_t chunk_id;
};

static const char server_id[] = "server0";
static const td_net_qos action_qos = {
    .priority = TD_NET_INTERACTIVE_HIGH, .reliable = true, .express = true};

static void on_query(void *user, td_net_request *query)
{
    td_sim_server *server = user;
    if (server->query_count < MAX_QUERIES)
        server->queries[server->query_count++] = query;
    else
        td_net_request_free(query);
}

static td_err put_action(td_sim_server *server, uint32_t number,
                         const td_wire_action *action, td_errinfo *info)
{
    td_wire_encoder *encoder = server->world->encoder;
    TD_TRY(td_wire_action_encode(encoder, action, info));
    size_t count;
    const td_slice *parts = td_wire_encoder_parts(encoder, &count);
    return td_net_put(server->clients[number].action, parts, count, NULL, NULL);
}

static void request_free(request *held)
{
    td_net_msg_free(held->msg);
    free(held);
}

static void drop(const td_server_core_dropped *dropped)
{
    for (uint32_t i = 0; i < dropped->count; i++)
        request_free(dropped->requests[i]);
}

static td_err open_client(td_sim_server *server, uint32_t number,
                          const char *id, td_errinfo *info)
{
    td_sim_world *world = server->world;
    client *c = &server->clients[number];
    char key[TD_WIRE_MAX_KEY];
    if (c->obs) return TD_OK;
    td_sim_mailbox_init(&c->mailbox);
    TD_TRY(td_wire_key(&world->route, id, "action", key, info));
    TD_TRY(td_net_publish(server->net, key, &action_qos, &c->action, info));
    TD_TRY(td_wire_key(&world->route, id, "obs", key, info));
    return td_net_subscribe(server->net, key, td_sim_mailbox_add, &c->mailbox,
                            &c->obs, info);
}

// The record of that name, or that of the place that the core will give it.
static td_server_client *find_client(td_sim_server *server, td_wire_text id)
{
    td_server_client *record = td_server_core_find(server->core, id);
    if (record) return record;
    record = &server->clients[td_server_core_clients(server->core)].record;
    (void)snprintf(record->id, sizeof record->id, "%.*s", (int)id.size,
                   id.data);
    return record;
}

static td_err attach(td_sim_server *server, td_slice payload,
                     td_wire_status *status, td_errinfo *info)
{
    td_wire_attach message;
    TD_TRY(td_wire_attach_decode(server->world->decoder, payload.data,
                                 payload.size, &message, info));
    td_server_core_dropped dropped;
    td_server_client *record = find_client(server, message.client);
    td_err err = td_server_core_attach(
        server->core, td_clock_now_ns(&server->world->clock.clock), &message,
        record, &dropped, info);
    if (err == TD_OK) {
        TD_TRY(open_client(server, record->number, record->id, info));
        drop(&dropped);
    }
    status->has_attach = true;
    status->attached = err == TD_OK;
    return TD_OK;
}

static td_err answer_query(td_sim_server *server, td_net_request *query,
                           td_errinfo *info)
{
    td_sim_world *world = server->world;
    td_wire_status status;
    char key[TD_WIRE_MAX_KEY];
    td_server_core_status(server->core, &status);
    td_slice payload = td_net_request_payload(query);
    if (payload.size > 0) TD_TRY(attach(server, payload, &status, info));
    TD_TRY(td_wire_key(&world->route, NULL, "status", key, info));
    TD_TRY(td_wire_status_encode(world->encoder, &status, info));
    size_t count;
    const td_slice *parts = td_wire_encoder_parts(world->encoder, &count);
    return td_net_reply(query, key, parts, count);
}

static td_err answer_queries(td_sim_server *server, td_errinfo *info)
{
    td_err err = TD_OK;
    for (uint32_t i = 0; i < server->query_count; i++) {
        if (err == TD_OK) err = answer_query(server, server->queries[i], info);
        td_net_request_free(server->queries[i]);
    }
    server->query_count = 0;
    return err;
}

static void keep(request *held)
{
    td_server_core_dropped dropped;
    td_server_core_keep(held, &dropped);
    drop(&dropped);
}

static td_err put_chunk(td_sim_server *server, const request *held,
                        const td_server_timing *timing, td_errinfo *info)
{
    td_wire_action action;
    td_server_answer(server_id, &held->item, server->spec->action_count, timing,
                     held->chunk_id, &action);
    td_server_core_add_superseded(held->client, &action);
    return put_action(server, held->client->number, &action, info);
}

static td_err put_nothing_kept(td_sim_server *server, const request *held,
                               td_errinfo *info)
{
    td_wire_action action;
    td_server_answer_error(server_id, &held->obs.ident, TD_ERR_NOTFOUND,
                           "again: nothing of that seq is kept", &action);
    td_server_core_add_superseded(held->client, &action);
    return put_action(server, held->client->number, &action, info);
}

// A robot missed an answer. There are no prefixes here.
static td_err find_again(td_sim_server *server, int64_t now_ns, request *held,
                         td_server_outcome *ret_outcome, td_errinfo *info)
{
    td_server_core_dropped dropped;
    const td_server_timing at_once = {0};
    td_server_again again =
        td_server_core_again(server->core, now_ns, held, &dropped);
    drop(&dropped);
    *ret_outcome = again.outcome;
    if (!again.chunk)
        return again.outcome == TD_SERVER_REFUSED
                   ? put_nothing_kept(server, held, info)
                   : TD_OK;
    td_err err = put_chunk(server, again.chunk, &at_once, info);
    keep(again.chunk);
    return err;
}

static td_err observe(td_sim_server *server, int64_t now_ns, request *held,
                      td_server_outcome *ret_outcome)
{
    td_server_core_dropped dropped;
    *ret_outcome = td_server_core_observe(server->core, now_ns, held, &dropped);
    drop(&dropped);
    return TD_OK;
}

static td_err read_obs(const td_sim_server *server, request *held,
                       td_errinfo *info)
{
    td_slice bytes;
    TD_TRY(td_net_msg_bytes(held->msg, &bytes));
    TD_TRY(td_wire_obs_decode(server->world->decoder, bytes.data, bytes.size,
                              &held->obs, info));
    return td_server_core_fits(server->core, &held->obs, info);
}

// Consumes `held`.
static td_err admit(td_sim_server *server, int64_t now_ns, request *held,
                    td_errinfo *info)
{
    td_server_outcome outcome = TD_SERVER_MALFORMED;
    uint32_t number = held->client->number;
    td_err err = read_obs(server, held, info);
    uint64_t seq = held->obs.ident.seq;
    if (err == TD_OK)
        err = held->obs.has_again
                  ? find_again(server, now_ns, held, &outcome, info)
                  : observe(server, now_ns, held, &outcome);
    if (outcome != TD_SERVER_WAITING) request_free(held);
    td_sim_trace_line(&server->world->trace, now_ns, "server client %u %llu %s",
                      number, (unsigned long long)seq,
                      td_server_outcome_name(outcome));
    return err;
}

static td_err take_messages(td_sim_server *server, uint32_t number,
                            int64_t now_ns, td_errinfo *info)
{
    client *c = &server->clients[number];
    td_net_msg *msg;
    while (c->obs && (msg = td_sim_mailbox_take(&c->mailbox))) {
        size_t cells =
            (size_t)server->spec->chunk_rows * server->spec->action_count;
        request *held = calloc(1, sizeof *held + cells * sizeof(float));
        if (!held) {
            td_net_msg_free(msg);
            return TD_ERR_NOMEM;
        }
        held->msg = msg;
        held->client = &c->record;
        held->actions = (float *)(held + 1);
        held->arrived_ns = now_ns;
        TD_TRY(admit(server, now_ns, held, info));
    }
    return TD_OK;
}

static td_err finish_one(td_sim_server *server, int64_t now_ns, request *held,
                         td_errinfo *info)
{
    const td_server_timing timing = {held->started_ns - held->arrived_ns,
                                     server->service_ns};
    held->chunk_id = ++server->chunk_id;
    td_err err = put_chunk(server, held, &timing, info);
    (void)td_server_core_done(server->core, now_ns, held, TD_SERVER_ANSWERED);
    keep(held);
    return err;
}

static td_err finish(td_sim_server *server, int64_t now_ns, td_errinfo *info)
{
    td_err err = TD_OK;
    const td_server_dispatch_batch *batch = &server->batch;
    for (uint32_t i = 0; i < batch->count; i++) {
        td_err one =
            finish_one(server, now_ns, batch->picks[i].request.payload, info);
        if (err == TD_OK) err = one;
    }
    td_server_dispatch_end(server->dispatch, now_ns, server->model, batch->run,
                           batch->count, server->service_ns);
    td_sim_trace_line(&server->world->trace, now_ns, "server answers %u",
                      batch->count);
    server->batch.count = 0;
    server->done_ns = INT64_MAX;
    return err;
}

// The noise is of the client and the observation: asked again, it is the same.
static void leave_path(const td_sim_server *server, uint32_t number,
                       const td_wire_obs *obs, float *state)
{
    td_rand own, rand;
    double noise = server->world->config->chunk_noise;
    td_rand_fork(&server->seed, number, &own);
    td_rand_fork(&own, obs->ident.seq, &rand);
    td_engine_synthetic_model_path(server->world->model, obs->cursor, state);
    for (uint32_t i = 0; i < server->spec->state_count; i++)
        state[i] += (float)(noise * td_rand_normal(&rand));
}

static void infer(const td_sim_server *server, request *held)
{
    const td_engine_synthetic_model *model = server->world->model;
    float state[TD_WIRE_MAX_CHANNELS];
    held->item.status =
        td_engine_synthetic_model_state(model, &held->obs, state);
    if (held->item.status != TD_OK) return;
    if (server->world->config->chunk_noise > 0)
        leave_path(server, held->client->number, &held->obs, state);
    td_engine_synthetic_model_answer(model, state, held->obs.cursor,
                                     held->actions);
}

static void begin(td_sim_server *server, int64_t now_ns)
{
    td_server_dispatch_batch *batch = &server->batch;
    if (!td_server_dispatch_next(server->dispatch, now_ns, batch)) return;
    for (uint32_t i = 0; i < batch->count; i++) {
        request *held = batch->picks[i].request.payload;
        td_server_core_started(server->core, held, batch->picks[i].ticket);
        held->started_ns = now_ns;
        held->item = (td_engine_item){.obs = &held->obs,
                                      .actions = held->actions,
                                      .rows = server->spec->chunk_rows};
        infer(server, held);
    }
    server->service_ns = td_engine_synthetic_model_latency_ns(
        server->world->model, &server->rand, batch->count);
    server->done_ns = now_ns + server->service_ns;
}

// What a batch waits for, or the end of the one that runs.
static int64_t due_ns(const td_sim_server *server)
{
    int64_t wake_ns = td_server_dispatch_wake_ns(server->dispatch);
    return wake_ns < server->done_ns ? wake_ns : server->done_ns;
}

td_err td_sim_server_act(td_sim_server *server, int64_t now_ns,
                         int64_t *ret_due_ns, td_errinfo *info)
{
    TD_TRY(answer_queries(server, info));
    for (uint32_t i = 0; i < server->world->config->robots; i++)
        TD_TRY(take_messages(server, i, now_ns, info));
    if (now_ns >= server->done_ns) TD_TRY(finish(server, now_ns, info));
    if (server->batch.count == 0) begin(server, now_ns);
    *ret_due_ns = due_ns(server);
    return TD_OK;
}

static td_err make_dispatch(td_sim_server *server, td_errinfo *info)
{
    td_server_device_settings settings = td_server_device_defaults;
    settings.clients = server->world->config->robots;
    TD_TRY(td_server_dispatch_new(&settings, &server->dispatch, info));
    TD_TRY(td_server_dispatch_add(server->dispatch, server->spec,
                                  &td_server_model_defaults, &server->model));
    td_server_dispatch_open(server->dispatch, server->model, true);
    for (uint32_t n = 1; n <= server->spec->max_batch; n++)
        td_sched_measured(
            td_server_dispatch_sched(server->dispatch), 0, server->model, n,
            td_engine_synthetic_model_estimate_ns(server->world->model, n));
    return TD_OK;
}

static td_err server_init(td_sim_server *server, td_errinfo *info)
{
    td_sim_world *world = server->world;
    td_server_settings settings = {
        .server_id = server_id,
        .boot = 1,
        .unknown = td_server_allowance_defaults,
        .accept_unknown = true,
        .capacity = world->config->robots,
    };
    char key[TD_WIRE_MAX_KEY];
    server->done_ns = INT64_MAX;
    server->spec = td_engine_synthetic_model_spec(world->model);
    td_rand_init(&server->rand, world->config->seed ^ 0x5e74e75U);
    td_rand_init(&server->seed, world->config->seed);
    TD_TRY(make_dispatch(server, info));
    td_server_core_model model = {
        .spec = server->spec,
        .dispatch = server->dispatch,
        .number = server->model,
        .cadence = TD_SCHED_CADENCE_DEFAULTS,
        .precompute = true,
        .inputs = TD_SERVER_FIT_LIMITS,
    };
    TD_TRY(td_server_core_new(&settings, &model, &server->core));
    td_server_core_set_state(server->core, TD_WIRE_READY);
    TD_TRY(td_net_inproc_open(world->hub, server_id, &server->net, info));
    TD_TRY(td_wire_key(&world->route, NULL, "status", key, info));
    return td_net_serve(server->net, key, on_query, server, &server->status,
                        info);
}

td_err td_sim_server_new(td_sim_world *world, td_sim_server **ret_server,
                         td_errinfo *info)
{
    td_sim_server *server = calloc(1, sizeof *server);
    if (!server) return TD_ERR_NOMEM;
    server->world = world;
    *ret_server = server; // the world frees it, made whole or not
    return server_init(server, info);
}

static void client_close(td_sim_server *server, uint32_t number)
{
    client *c = &server->clients[number];
    if (!c->obs) return;
    (void)td_net_undeclare(c->obs);
    td_net_unpublish(c->action);
    td_net_msg *msg;
    while ((msg = td_sim_mailbox_take(&c->mailbox)))
        td_net_msg_free(msg);
}

// What runs; and, as at the end of all episodes, what waits or is kept.
static void free_all(td_sim_server *server)
{
    for (uint32_t i = 0; i < server->batch.count; i++)
        request_free(server->batch.picks[i].request.payload);
    for (uint32_t i = 0; i < server->world->config->robots; i++) {
        td_server_client *record = td_server_core_at(server->core, i);
        if (!record) continue;
        const td_wire_reset last = {
            .boot = record->boot,
            .episode = UINT64_MAX,
        };
        td_server_core_dropped dropped;
        td_server_core_reset(server->core, record, &last, &dropped);
        drop(&dropped);
    }
}

void td_sim_server_free(td_sim_server *server)
{
    if (server->status) (void)td_net_undeclare(server->status);
    for (uint32_t i = 0; i < server->query_count; i++)
        td_net_request_free(server->queries[i]);
    for (uint32_t i = 0; i < TD_SIM_MAX_ROBOTS; i++)
        client_close(server, i);
    if (server->core) free_all(server);
    if (server->net) td_net_close(server->net);
    if (server->core) td_server_core_free(server->core);
    if (server->dispatch) td_server_dispatch_free(server->dispatch);
    free(server);
}

void td_sim_server_counts(const td_sim_server *server,
                          td_server_counts *ret_counts)
{
    td_server_core_counts(server->core, ret_counts);
}

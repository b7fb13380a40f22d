// SPDX-License-Identifier: Apache-2.0
#include "server/answer.h"
#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_QUERIES (4 * TD_SIM_MAX_ROBOTS)

typedef struct request {
    td_net_msg *msg;
    td_wire_obs obs;
    td_engine_item item;
    int64_t arrived_ns, started_ns;
    float actions[];
} request;

typedef struct client {
    td_net_pub *action;
    td_net_decl *obs;
    td_sim_letters letters;
} client;

struct td_sim_server {
    td_sim_world *world;
    const td_engine_spec *spec;
    td_net *net;
    td_net_decl *status;
    td_server_core *core;
    td_rand rand; // of latencies
    td_rand seed; // of chunks
    client clients[TD_SIM_MAX_ROBOTS];
    td_net_request *queries[MAX_QUERIES];
    uint32_t query_count;
    uint32_t running[TD_ENGINE_MAX_BATCH]; // clients
    request *batch[TD_ENGINE_MAX_BATCH];
    uint32_t batch_count;
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

static td_err open_client(td_sim_server *server, uint32_t number,
                          const char *id, td_errinfo *info)
{
    td_sim_world *world = server->world;
    client *c = &server->clients[number];
    char key[TD_WIRE_MAX_KEY];
    if (c->obs) return TD_OK;
    td_sim_letters_init(&c->letters);
    TD_TRY(td_wire_key(&world->route, id, "action", key, info));
    TD_TRY(td_net_publish(server->net, key, &action_qos, &c->action, info));
    TD_TRY(td_wire_key(&world->route, id, "obs", key, info));
    return td_net_subscribe(server->net, key, td_sim_letters_add, &c->letters,
                            &c->obs, info);
}

static td_err attach(td_sim_server *server, td_slice payload,
                     td_wire_status *status, td_errinfo *info)
{
    td_wire_attach message;
    TD_TRY(td_wire_attach_decode(server->world->decoder, payload.data,
                                 payload.size, &message, info));
    uint32_t number;
    td_sched_request dropped;
    td_err err =
        td_server_core_attach(server->core, &message, &number, &dropped, info);
    if (err == TD_OK) {
        char id[TD_WIRE_MAX_NAME + 1] = {0};
        memcpy(id, message.client.data, message.client.size);
        TD_TRY(open_client(server, number, id, info));
        if (dropped.payload) request_free(dropped.payload);
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

static td_err admit(td_sim_server *server, uint32_t number, int64_t now_ns,
                    request *held, td_errinfo *info)
{
    td_slice bytes;
    td_sched_request displaced;
    TD_TRY(td_net_msg_bytes(held->msg, &bytes));
    TD_TRY(td_wire_obs_decode(server->world->decoder, bytes.data, bytes.size,
                              &held->obs, info));
    TD_TRY(td_server_core_fits(server->core, &held->obs, info));
    uint64_t seq = held->obs.ident.seq;
    td_server_outcome outcome = td_server_core_observe(
        server->core, number, now_ns, &held->obs.ident, held, &displaced);
    if (displaced.payload) request_free(displaced.payload);
    if (outcome != TD_SERVER_WAITING) request_free(held);
    td_sim_trace_line(&server->world->trace, now_ns, "server client %u %llu %s",
                      number, (unsigned long long)seq,
                      td_server_outcome_name(outcome));
    return TD_OK;
}

static td_err take_letters(td_sim_server *server, uint32_t number,
                           int64_t now_ns, td_errinfo *info)
{
    client *c = &server->clients[number];
    td_net_msg *msg;
    while (c->obs && (msg = td_sim_letters_take(&c->letters))) {
        size_t cells =
            (size_t)server->spec->chunk_rows * server->spec->action_count;
        request *held = calloc(1, sizeof *held + cells * sizeof(float));
        if (!held) {
            td_net_msg_free(msg);
            return TD_ERR_NOMEM;
        }
        held->msg = msg;
        held->arrived_ns = now_ns;
        td_err err = admit(server, number, now_ns, held, info);
        if (err != TD_OK) request_free(held);
        TD_TRY(err);
    }
    return TD_OK;
}

static td_err finish_one(td_sim_server *server, uint32_t number, request *held,
                         td_errinfo *info)
{
    td_server_timing timing = {held->started_ns - held->arrived_ns,
                               server->service_ns};
    td_wire_action action;
    td_server_answer(server_id, &held->item, server->spec->action_count,
                     &timing, ++server->chunk_id, &action);
    action.superseded_count =
        td_server_core_superseded(server->core, number, action.superseded);
    td_err err = put_action(server, number, &action, info);
    td_server_core_done(server->core, number, TD_SERVER_ANSWERED);
    request_free(held);
    return err;
}

static td_err finish(td_sim_server *server, int64_t now_ns, td_errinfo *info)
{
    td_err err = TD_OK;
    for (uint32_t i = 0; i < server->batch_count; i++) {
        td_err one =
            finish_one(server, server->running[i], server->batch[i], info);
        if (err == TD_OK) err = one;
    }
    td_sim_trace_line(&server->world->trace, now_ns, "server answers %u",
                      server->batch_count);
    server->batch_count = 0;
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

static void infer(const td_sim_server *server, uint32_t number, request *held)
{
    const td_engine_synthetic_model *model = server->world->model;
    float state[TD_WIRE_MAX_CHANNELS];
    held->item.status =
        td_engine_synthetic_model_state(model, &held->obs, state);
    if (held->item.status != TD_OK) return;
    if (server->world->config->chunk_noise > 0)
        leave_path(server, number, &held->obs, state);
    td_engine_synthetic_model_answer(model, state, held->obs.cursor,
                                     held->actions);
}

static td_err begin(td_sim_server *server, int64_t now_ns)
{
    td_sched_request requests[TD_ENGINE_MAX_BATCH];
    uint32_t count = td_server_core_next(server->core, server->spec->max_batch,
                                         server->running, requests);
    if (count == 0) return TD_OK;
    for (uint32_t i = 0; i < count; i++) {
        request *held = requests[i].payload;
        held->started_ns = now_ns;
        held->item = (td_engine_item){.obs = &held->obs,
                                      .actions = held->actions,
                                      .rows = server->spec->chunk_rows};
        infer(server, server->running[i], held);
        server->batch[i] = held;
    }
    server->batch_count = count;
    server->service_ns = td_engine_synthetic_model_latency_ns(
        server->world->model, &server->rand, count);
    server->done_ns = now_ns + server->service_ns;
    return TD_OK;
}

td_err td_sim_server_act(td_sim_server *server, int64_t now_ns,
                         int64_t *ret_due_ns, td_errinfo *info)
{
    TD_TRY(answer_queries(server, info));
    for (uint32_t i = 0; i < server->world->config->robots; i++)
        TD_TRY(take_letters(server, i, now_ns, info));
    if (now_ns >= server->done_ns) TD_TRY(finish(server, now_ns, info));
    if (server->done_ns == INT64_MAX) TD_TRY(begin(server, now_ns));
    *ret_due_ns = server->done_ns;
    return TD_OK;
}

static td_err server_init(td_sim_server *server, td_errinfo *info)
{
    td_sim_world *world = server->world;
    td_server_settings settings = {
        .server_id = server_id,
        .boot = 1,
        .accept_unknown = true,
        .capacity = world->config->robots,
    };
    char key[TD_WIRE_MAX_KEY];
    server->done_ns = INT64_MAX;
    server->spec = td_engine_synthetic_model_spec(world->model);
    td_rand_init(&server->rand, world->config->seed ^ 0x5e74e75U);
    td_rand_init(&server->seed, world->config->seed);
    TD_TRY(td_server_core_new(&settings, server->spec, &server->core));
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
    while ((msg = td_sim_letters_take(&c->letters)))
        td_net_msg_free(msg);
}

// What waits behind what runs comes out when that has ended.
static void let_go(td_sim_server *server)
{
    uint32_t numbers[TD_ENGINE_MAX_BATCH];
    td_sched_request waiting[TD_ENGINE_MAX_BATCH];
    uint32_t count;
    for (uint32_t i = 0; i < server->batch_count; i++) {
        td_server_core_done(server->core, server->running[i],
                            TD_SERVER_DEPARTED);
        request_free(server->batch[i]);
    }
    while ((count = td_server_core_next(server->core, TD_ENGINE_MAX_BATCH,
                                        numbers, waiting)) > 0)
        for (uint32_t i = 0; i < count; i++)
            request_free(waiting[i].payload);
}

void td_sim_server_free(td_sim_server *server)
{
    if (server->status) (void)td_net_undeclare(server->status);
    for (uint32_t i = 0; i < server->query_count; i++)
        td_net_request_free(server->queries[i]);
    for (uint32_t i = 0; i < TD_SIM_MAX_ROBOTS; i++)
        client_close(server, i);
    if (server->core) let_go(server);
    if (server->net) td_net_close(server->net);
    if (server->core) td_server_core_free(server->core);
    free(server);
}

void td_sim_server_counts(const td_sim_server *server,
                          td_server_counts *ret_counts)
{
    td_server_core_counts(server->core, ret_counts);
}

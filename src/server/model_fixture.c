// SPDX-License-Identifier: Apache-2.0
#include "server/model_fixture.h"

#include "media/jpeg.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT_NS (30 * TD_NS_PER_S)
#define LOOK_NS TD_NS_PER_MS
#define LETTERS 4096

static const td_net_qos reliable = {.priority = TD_NET_DATA, .reliable = true};

static int64_t now(void)
{
    return td_clock_now_ns(&td_clock_monotonic);
}

static const td_engine_spec *gate_spec(const td_engine *engine)
{
    return ((const gate *)engine)->spec;
}

static td_err gate_submit(td_engine *engine, td_engine_batch *batch,
                          td_engine_done done, void *user)
{
    gate *g = (gate *)engine;
    if (atomic_load(&g->refuses) || atomic_load(&g->batch)) return TD_ERR_BUSY;
    g->done = done;
    g->user = user;
    atomic_store(&g->batch, batch);
    td_event_signal(g->wake);
    return TD_OK;
}

static td_engine_health gate_health(const td_engine *engine)
{
    const gate *g = (const gate *)engine;
    return (td_engine_health)atomic_load(&g->health);
}

static void gate_warm(td_engine *engine)
{
    gate *g = (gate *)engine;
    atomic_fetch_add(&g->warmed, 1);
    td_event_signal(g->wake);
}

static const td_engine_ops gate_ops = {
    .name = "gate", .spec = gate_spec, .submit = gate_submit};
static const td_engine_ops telling_gate_ops = {.name = "gate",
                                               .spec = gate_spec,
                                               .submit = gate_submit,
                                               .health = gate_health,
                                               .warm = gate_warm};

// NULL: all clients.
static void finish(gate *g, const char *id, td_err status)
{
    td_engine_batch *batch = atomic_exchange(&g->batch, NULL);
    td_engine_done done = g->done;
    assert_non_null(batch);
    for (uint32_t i = 0; i < batch->count; i++) {
        td_engine_item *item = batch->items[i];
        memset(item->actions, 0, ROWS * ACTIONS * sizeof(float));
        item->rows = ROWS;
        bool meant = !id || td_wire_text_is(item->obs->client, id);
        item->status = meant ? status : TD_OK;
    }
    if (status != TD_OK) batch->service_ns = batch->count * TD_NS_PER_MS;
    done(g->user, batch);
}

void gate_finish(gate *g, td_err status)
{
    finish(g, NULL, status);
}

void gate_finish_one(gate *g, const char *id, td_err status)
{
    finish(g, id, status);
}

uint32_t gate_batch_size(gate *g)
{
    const td_engine_batch *batch = atomic_load(&g->batch);
    return batch ? batch->count : 0;
}

void gate_open(world *w, gate *g)
{
    g->base.ops = g->tells ? &telling_gate_ops : &gate_ops;
    g->spec = td_engine_synthetic_model_spec(w->model);
    g->wake = &w->wake;
}

static void fill_model(td_engine_synthetic_settings *settings)
{
    *settings = (td_engine_synthetic_settings){
        .actions = {{td_wire_text_of("lift"), TD_WIRE_LINEAR},
                    {td_wire_text_of("turn"), TD_WIRE_ANGLE},
                    {td_wire_text_of("grip"), TD_WIRE_HOLD}},
        .action_count = ACTIONS,
        .states = {{td_wire_text_of("lift"), TD_WIRE_LINEAR},
                   {td_wire_text_of("turn"), TD_WIRE_ANGLE}},
        .state_count = STATES,
        .cameras = {{td_wire_text_of("top"), 48, 64}},
        .camera_count = 1,
        .chunk_rows = ROWS,
        .max_batch = 4,
        .halves = true,
    };
}

static void fill_config(td_server_model_config *config)
{
    *config = (td_server_model_config){
        .route = {"lab", "trial", "act", "v1", "demo"},
        .settings = {.server_id = "gpu-1",
                     .boot = 3,
                     .unknown = td_server_allowance_defaults,
                     .accept_unknown = true,
                     .capacity = MAX_CLIENTS},
        .model = td_server_model_defaults,
    };
}

int world_setup(void **state)
{
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    td_event_init(&w->wake);
    fill_model(&w->settings);
    fill_config(&w->config);
    assert_int_equal(td_net_hub_new_threaded(1, &w->hub), TD_OK);
    assert_int_equal(td_net_inproc_open(w->hub, "server", &w->net, NULL),
                     TD_OK);
    assert_int_equal(td_wire_encoder_new(&w->encoder), TD_OK);
    assert_int_equal(td_wire_decoder_new(&w->decoder), TD_OK);
    assert_int_equal(td_queue_new(LETTERS, sizeof(void *), &w->replies), TD_OK);
    *state = w;
    return 0;
}

static void free_all(td_queue *letters)
{
    td_net_msg *msg;
    while (td_queue_pop(letters, &msg) == TD_OK)
        td_net_msg_free(msg);
    td_queue_free(letters);
}

int world_teardown(void **state)
{
    world *w = *state;
    atomic_store(&w->gate.refuses, true); // a failed test left it shut
    if (is_running_one(w)) gate_finish(&w->gate, TD_OK);
    if (w->server) world_close(w);
    for (size_t i = 0; i < MAX_CLIENTS; i++)
        if (w->clients[i].net) client_close(&w->clients[i]);
    td_net_close(w->net);
    if (w->reply) td_net_msg_free(w->reply);
    free_all(w->replies);
    td_net_hub_free(w->hub);
    if (w->engine) td_engine_close(w->engine);
    if (w->model) td_engine_synthetic_model_free(w->model);
    td_wire_encoder_free(w->encoder);
    td_wire_decoder_free(w->decoder);
    free(w);
    return 0;
}

static td_engine_config engine_config(const world *w)
{
    return (td_engine_config){.model_id = "act",
                              .model_version = "v1",
                              .step_period_us = 33333,
                              .settings = &w->settings};
}

void world_open_with(world *w, td_engine *engine)
{
    td_errinfo info = {.text = ""};
    if (td_server_model_open(w->net, engine, &w->config, &w->server, &info) !=
        TD_OK)
        fail_msg("%s", info.text);
}

static void make_model(world *w)
{
    const td_engine_config config = engine_config(w);
    if (w->model) return;
    assert_int_equal(td_engine_synthetic_model_new(&config, &w->model, NULL),
                     TD_OK);
}

void world_open(world *w)
{
    const td_engine_config config = engine_config(w);
    make_model(w);
    if (!w->engine)
        assert_int_equal(td_engine_open("synthetic", &config, &w->engine, NULL),
                         TD_OK);
    world_open_with(w, w->engine);
}

void world_open_gated(world *w)
{
    make_model(w);
    gate_open(w, &w->gate);
    world_open_with(w, &w->gate.base);
}

void world_close(world *w)
{
    td_server_model_close(TD_TAKE(w->server));
}

void world_until_named(world *w, bool (*is_so)(world *w), const char *name)
{
    int64_t until_ns = now() + WAIT_NS;
    for (;;) {
        if (w->server) td_server_model_report_get(w->server, &w->report);
        if (is_so(w)) return;
        if (now() > until_ns) fail_msg("waited in vain: %s", name);
        (void)td_event_wait_until(&w->wake, now() + LOOK_NS);
    }
}

bool is_running_one(world *w)
{
    return atomic_load(&w->gate.batch) != NULL;
}

bool is_idle(world *w)
{
    return w->report.counts.outcomes[TD_SERVER_WAITING] == 0 &&
           w->report.counts.outcomes[TD_SERVER_RUNNING] == 0;
}

bool is_without_clients(world *w)
{
    return w->report.clients == 0;
}

td_server_counts world_counts(world *w)
{
    uint64_t sum = 0;
    td_server_model_report_get(w->server, &w->report);
    for (int i = 0; i < TD_SERVER_OUTCOME_COUNT; i++)
        sum += w->report.counts.outcomes[i];
    assert_int_equal(sum, w->report.counts.received);
    return w->report.counts;
}

static void key_of(const world *w, const char *id, const char *topic,
                   char ret_key[TD_WIRE_MAX_KEY])
{
    assert_int_equal(td_wire_key(&w->config.route, id, topic, ret_key, NULL),
                     TD_OK);
}

static void leave(world *w, td_queue *letters, const td_net_sample *sample)
{
    td_net_msg *msg = NULL;
    if (td_net_keep(sample, &msg) != TD_OK) return;
    if (td_queue_push(letters, &msg) != TD_OK) td_net_msg_free(msg);
    td_event_signal(&w->wake);
}

// Transport's thread.
static void on_action(void *user, const td_net_sample *sample)
{
    client *c = user;
    leave(c->world, c->heard, sample);
}

// Transport's thread.
static void on_reply(void *user, const td_net_sample *sample)
{
    world *w = user;
    leave(w, w->replies, sample);
}

// Transport's thread.
static void on_done(void *user)
{
    world *w = user;
    atomic_store(&w->answered, true);
    td_event_signal(&w->wake);
}

client *client_open(world *w, size_t index, const char *id, uint64_t boot)
{
    client *c = &w->clients[index];
    char key[TD_WIRE_MAX_KEY];
    char name[128];
    *c = (client){.world = w, .id = id, .boot = boot, .state = {0.5f, -0.25f}};
    (void)snprintf(name, sizeof name, "%s.%llu", id, (unsigned long long)boot);
    assert_int_equal(td_net_inproc_open(w->hub, name, &c->net, NULL), TD_OK);
    assert_int_equal(td_queue_new(LETTERS, sizeof(void *), &c->heard), TD_OK);
    key_of(w, id, "action", key);
    assert_int_equal(
        td_net_subscribe(c->net, key, on_action, c, &c->actions, NULL), TD_OK);
    key_of(w, id, "obs", key);
    assert_int_equal(td_net_publish(c->net, key, &reliable, &c->obs, NULL),
                     TD_OK);
    key_of(w, id, "reset", key);
    assert_int_equal(td_net_publish(c->net, key, &reliable, &c->reset, NULL),
                     TD_OK);
    key_of(w, id, "alive", key);
    (void)snprintf(key + strlen(key), sizeof key - strlen(key), "/%llu",
                   (unsigned long long)boot);
    assert_int_equal(td_net_token(c->net, key, &c->token, NULL), TD_OK);
    return c;
}

void client_close(client *c)
{
    (void)td_net_undeclare(c->token);
    (void)td_net_undeclare(c->actions);
    td_net_unpublish(c->obs);
    td_net_unpublish(c->reset);
    td_net_close(TD_TAKE(c->net));
    if (c->msg) td_net_msg_free(c->msg);
    free_all(c->heard);
}

static bool is_answered(world *w)
{
    return atomic_load(&w->answered);
}

static void take_replies(world *w)
{
    td_slice bytes;
    td_net_msg *msg;
    w->reply_count = 0;
    while (td_queue_pop(w->replies, &msg) == TD_OK) {
        if (w->reply) td_net_msg_free(w->reply);
        w->reply = msg;
        w->reply_count++;
        assert_int_equal(td_net_msg_bytes(msg, &bytes), TD_OK);
        assert_int_equal(td_wire_status_decode(w->decoder, bytes.data,
                                               bytes.size, &w->status, NULL),
                         TD_OK);
    }
}

void client_query(client *c, const void *bytes, size_t size)
{
    world *w = c->world;
    char key[TD_WIRE_MAX_KEY];
    key_of(w, NULL, "status", key);
    atomic_store(&w->answered, false);
    assert_int_equal(td_net_query(c->net, key, (td_slice){bytes, size},
                                  2 * WAIT_NS, on_reply, on_done, w, NULL),
                     TD_OK);
    world_until(w, is_answered);
    take_replies(w);
}

static bool ask_server(client *c, const char *server, bool leave)
{
    world *w = c->world;
    size_t count;
    const td_wire_attach attach = {.client = td_wire_text_of(c->id),
                                   .server = td_wire_text_of(server),
                                   .boot = c->boot,
                                   .leave = leave};
    assert_int_equal(td_wire_attach_encode(w->encoder, &attach, NULL), TD_OK);
    const td_slice *parts = td_wire_encoder_parts(w->encoder, &count);
    assert_int_equal(count, 1);
    client_query(c, parts[0].data, parts[0].size);
    assert_int_equal(w->reply_count, 1);
    assert_true(w->status.has_attach);
    assert_true(td_wire_text_is(w->status.server, server));
    return w->status.attached;
}

bool client_attach(client *c, const char *server)
{
    return ask_server(c, server, false);
}

bool client_leave(client *c, const char *server)
{
    return ask_server(c, server, true);
}

client *client_attached(world *w)
{
    client *c = client_open(w, 0, "arm-0", 1);
    assert_true(client_attach(c, "gpu-1"));
    return c;
}

bool client_matched(client *c)
{
    bool matched = false;
    assert_int_equal(td_net_matched(c->obs, &matched), TD_OK);
    return matched;
}

static td_slice picture(void)
{
    static uint8_t rgb[48 * 64 * 3];
    static uint8_t bytes[sizeof rgb];
    static size_t size;
    if (size > 0) return (td_slice){bytes, size};
    td_slice jpeg;
    td_media_jpeg_encoder *encoder = NULL;
    assert_int_equal(
        td_media_jpeg_encoder_new(80, TD_MEDIA_CHROMA_420, &encoder), TD_OK);
    assert_int_equal(td_media_jpeg_encode(encoder, rgb, 48, 64, &jpeg, NULL),
                     TD_OK);
    assert_true(jpeg.size <= sizeof bytes);
    memcpy(bytes, jpeg.data, jpeg.size);
    size = jpeg.size;
    td_media_jpeg_encoder_free(encoder);
    return (td_slice){bytes, size};
}

td_wire_obs client_obs(client *c, uint64_t seq)
{
    td_slice jpeg = picture();
    return (td_wire_obs){
        .ident = {.boot = c->boot, .episode = 1, .seq = seq},
        .client = td_wire_text_of(c->id),
        .state = {.dtype = TD_WIRE_F32,
                  .rank = 1,
                  .shape = {STATES},
                  .data = c->state,
                  .size = sizeof c->state},
        .images = {{.name = td_wire_text_of("top"),
                    .codec = TD_WIRE_JPEG,
                    .data = jpeg.data,
                    .size = jpeg.size}},
        .image_count = 1,
        .cursor = 7 * seq,
        .priority = 1,
    };
}

void client_send(client *c, const td_wire_obs *obs)
{
    size_t count;
    td_errinfo info = {.text = ""};
    if (td_wire_obs_encode(c->world->encoder, obs, &info) != TD_OK)
        fail_msg("%s", info.text);
    const td_slice *parts = td_wire_encoder_parts(c->world->encoder, &count);
    assert_int_equal(td_net_put(c->obs, parts, count, NULL, NULL), TD_OK);
}

void client_send_seq(client *c, uint64_t seq)
{
    const td_wire_obs obs = client_obs(c, seq);
    client_send(c, &obs);
}

void client_send_bytes(td_net_pub *pub, const void *bytes, size_t size)
{
    const td_slice part = {bytes, size};
    assert_int_equal(td_net_put(pub, &part, 1, NULL, NULL), TD_OK);
}

bool client_has_heard(client *c)
{
    td_slice bytes;
    td_net_msg *msg;
    if (td_queue_pop(c->heard, &msg) != TD_OK) return false;
    if (c->msg) td_net_msg_free(c->msg);
    c->msg = msg;
    assert_int_equal(td_net_msg_bytes(msg, &bytes), TD_OK);
    assert_int_equal(td_wire_action_decode(c->world->decoder, bytes.data,
                                           bytes.size, &c->answer, NULL),
                     TD_OK);
    return true;
}

client *client_running_one(world *w)
{
    world_open_gated(w);
    client *c = client_attached(w);
    client_send_seq(c, 1);
    world_until(w, is_running_one);
    return c;
}

const td_wire_action *client_hear(client *c)
{
    int64_t until_ns = now() + WAIT_NS;
    while (!client_has_heard(c)) {
        if (now() > until_ns) fail_msg("%s: no answer", c->id);
        (void)td_event_wait_until(&c->world->wake, now() + LOOK_NS);
    }
    return &c->answer;
}

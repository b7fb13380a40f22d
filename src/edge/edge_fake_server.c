// SPDX-License-Identifier: Apache-2.0
#include "edge/edge_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#define LETTERS 4096

static const td_net_qos reliable = {.priority = TD_NET_DATA, .reliable = true};

// Transport's thread.
static void on_query(void *user, td_net_request *request)
{
    fake_server *p = user;
    if (td_queue_push(p->asked, &request) == TD_OK)
        td_event_signal(&p->world->wake);
    else
        td_net_request_free(request);
}

// Transport's thread.
static void on_obs(void *user, const td_net_sample *sample)
{
    fake_server *p = user;
    td_net_msg *msg = NULL;
    if (td_net_keep(sample, &msg) != TD_OK) return;
    if (td_queue_push(p->heard, &msg) == TD_OK)
        td_event_signal(&p->world->wake);
    else
        td_net_msg_free(msg);
}

static void leave(fake_server *p, td_wire_status *status)
{
    p->left++;
    status->attached = true;
    if (p->obs) (void)td_net_undeclare(TD_TAKE(p->obs));
}

// The session waits for the reply: its state is what it is.
static void note_attach(fake_server *p)
{
    td_edge_report report;
    td_edge_report_get(p->world->edge, &report);
    p->attached++;
    p->attached_in[report.state]++;
    if (p->wakes) p->answers_left = UINT64_MAX;
}

static void attach(fake_server *p, td_slice payload, td_wire_status *status)
{
    char key[TD_WIRE_MAX_KEY];
    td_wire_attach asked;
    assert_int_equal(td_wire_attach_decode(p->world->decoder, payload.data,
                                           payload.size, &asked, NULL),
                     TD_OK);
    if (!td_wire_text_is(asked.server, p->id)) {
        p->left_others += asked.leave;
        return;
    }
    assert_true(td_wire_text_is(asked.client, p->world->config.client));
    assert_int_equal(asked.boot, p->world->config.core.boot);
    status->has_attach = true;
    if (asked.leave) {
        leave(p, status);
        return;
    }
    status->attached = !p->denies;
    if (p->denies) {
        p->denied++;
        status->attach_reason = td_wire_text_of(p->denies);
        return;
    }
    note_attach(p);
    if (p->obs) return;
    world_key(p->world, p->world->config.client, "obs", key);
    assert_int_equal(td_net_subscribe(p->net, key, on_obs, p, &p->obs, NULL),
                     TD_OK);
}

static void describe(const fake_server *p, td_wire_status *ret_status)
{
    const td_edge_profile *profile = &p->world->config.profile;
    *ret_status = (td_wire_status){
        .model_id = td_wire_text_of("act"),
        .model_version = td_wire_text_of("v1"),
        .server = td_wire_text_of(p->id),
        .server_boot = p->boot,
        .state = p->state,
        .load = p->load,
        .cameras = {{td_wire_text_of("hand"), 96, 128}},
        .camera_count = 1,
        .action_dim = CHANNELS,
        .action_count = CHANNELS,
        .state_count = profile->state_count,
        .max_actions_per_chunk = ROWS,
        .step_period_us = profile->step_period_us,
        .capacity = 1,
    };
    memcpy(ret_status->actions, profile->actions, sizeof ret_status->actions);
    memcpy(ret_status->states, profile->states, sizeof ret_status->states);
    if (p->edit_status) p->edit_status(ret_status);
}

// The schema is the first field that is written.
static void make_newer(unsigned char *bytes, size_t size)
{
    static const char field[] = "\xa6schema\x01";
    unsigned char *at = memmem(bytes, size, field, sizeof field - 1);
    assert_non_null(at);
    at[sizeof field - 2] = TD_WIRE_SCHEMA + 1;
}

static void reply(fake_server *p, td_net_request *request)
{
    world *w = p->world;
    char key[TD_WIRE_MAX_KEY];
    td_wire_status status;
    td_slice payload = td_net_request_payload(request);
    p->queries++;
    describe(p, &status);
    if (payload.size > 0) attach(p, payload, &status);
    assert_int_equal(td_wire_status_encode(w->encoder, &status, NULL), TD_OK);
    td_slice whole = {.size = td_wire_encoder_size(w->encoder)};
    unsigned char *bytes = malloc(whole.size);
    assert_non_null(bytes);
    td_wire_encoder_join(w->encoder, bytes);
    if (p->newer_schema) make_newer(bytes, whole.size);
    if (p->sends_garbage) bytes[0] = 0xc1; // means nothing
    whole.data = bytes;
    world_key(w, NULL, "status", key);
    assert_int_equal(td_net_reply(request, key, &whole, 1), TD_OK);
    free(bytes);
}

static void look_at(fake_server *p, const td_wire_obs *obs)
{
    p->observations++;
    p->images = obs->image_count;
    (void)snprintf(p->task, sizeof p->task, "%.*s", (int)obs->task.size,
                   obs->task.data);
    if (p->note_obs) p->note_obs(p->world, obs);
}

static void answer(fake_server *p, const td_wire_obs *obs)
{
    float rows[ROWS][CHANNELS];
    for (size_t k = 0; k < ROWS; k++) {
        rows[k][0] = (float)(obs->cursor + k);
        rows[k][1] = -rows[k][0];
    }
    td_wire_action action = {
        .ident = obs->ident,
        .server = td_wire_text_of(p->id),
        .actions =
            {
                .dtype = TD_WIRE_F32,
                .rank = 2,
                .shape = {ROWS, CHANNELS},
                .data = rows,
                .size = sizeof rows,
            },
    };
    p->promised = obs->cursor + ROWS;
    if (p->edit_answer) p->edit_answer(&action);
    assert_int_equal(td_wire_action_encode(p->world->encoder, &action, NULL),
                     TD_OK);
    world_put(p->action, p->world->encoder);
}

static void receive(fake_server *p, td_net_msg *msg)
{
    td_slice bytes;
    td_wire_obs obs;
    assert_int_equal(td_net_msg_bytes(msg, &bytes), TD_OK);
    assert_int_equal(td_wire_obs_decode(p->world->decoder, bytes.data,
                                        bytes.size, &obs, NULL),
                     TD_OK);
    look_at(p, &obs);
    if (p->answers_left > 0) {
        p->answers_left--;
        answer(p, &obs);
    }
}

void fake_server_work(fake_server *p)
{
    td_net_request *request;
    while (!p->mute && td_queue_pop(p->asked, &request) == TD_OK) {
        reply(p, request);
        td_net_request_free(request);
    }
    td_net_msg *msg;
    while (td_queue_pop(p->heard, &msg) == TD_OK) {
        receive(p, msg);
        td_net_msg_free(msg);
    }
}

void fake_server_reopen(fake_server *p)
{
    world *w = p->world;
    char key[TD_WIRE_MAX_KEY];
    char token[2 * TD_WIRE_MAX_KEY];
    p->boot++;
    assert_int_equal(td_queue_new(LETTERS, sizeof(void *), &p->asked), TD_OK);
    assert_int_equal(td_queue_new(LETTERS, sizeof(void *), &p->heard), TD_OK);
    assert_int_equal(td_net_inproc_open(w->hub, p->id, &p->net, NULL), TD_OK);
    world_key(w, w->config.client, "action", key);
    assert_int_equal(td_net_publish(p->net, key, &reliable, &p->action, NULL),
                     TD_OK);
    world_key(w, NULL, "status", key);
    assert_int_equal(td_net_serve(p->net, key, on_query, p, &p->status, NULL),
                     TD_OK);
    (void)snprintf(token, sizeof token, "%s/alive/%s/%llu", key, p->id,
                   (unsigned long long)p->boot);
    assert_int_equal(td_net_token(p->net, token, &p->token, NULL), TD_OK);
}

fake_server *fake_server_open(world *w, size_t index, const char *id)
{
    fake_server *p = &w->fake_servers[index];
    *p = (fake_server){
        .world = w,
        .id = id,
        .state = TD_WIRE_READY,
        .answers_left = UINT64_MAX,
    };
    fake_server_reopen(p);
    return p;
}

void fake_server_close(fake_server *p)
{
    td_net_request *request;
    td_net_msg *msg;
    if (p->obs) (void)td_net_undeclare(TD_TAKE(p->obs));
    (void)td_net_undeclare(p->token); // first: that it went is what counts
    (void)td_net_undeclare(p->status);
    td_net_unpublish(p->action);
    while (td_queue_pop(p->asked, &request) == TD_OK)
        td_net_request_free(request);
    while (td_queue_pop(p->heard, &msg) == TD_OK)
        td_net_msg_free(msg);
    td_queue_free(p->asked);
    td_queue_free(p->heard);
    td_net_close(TD_TAKE(p->net));
}

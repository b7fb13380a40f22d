// SPDX-License-Identifier: Apache-2.0
// A server of no good manners.
#include "lab.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CELLS ((size_t)LAB_MAX_ROWS * LAB_MAX_CHANNELS)
#define SEQUENTIAL_ROWS 50
#define SEQUENTIAL_NS (5 * TD_NS_PER_S / 2)

struct lab_server {
    const lab_options *options;
    td_rand *rand;
    const td_edge_core_settings *settings;
    td_net *net;
    td_net_pub *actions;
    td_net_decl *obs;
    lab_inbox inbox;
    td_wire_decoder *decoder;
    td_wire_encoder *encoder;
    uint32_t number;
    uint64_t serial; // of chunks; their first channel says it
    int64_t done_ns; // sequential: of the inference; INT64_MAX: none
    td_wire_ident asked;
    uint64_t let_go[8]; // taken and not answered, to be reported
    uint32_t let_go_count;
    double cells[CELLS]; // a misshapen one is of doubles
    float values[CELLS];
    float last[LAB_MAX_CHANNELS];
    unsigned char bytes[sizeof(double) * CELLS + 4096];
};

const char *lab_server_name(uint32_t number)
{
    static const char *const names[LAB_SERVERS] = {"gpu-1", "gpu-2"};
    return names[number];
}

void lab_server_be(lab_server *server, uint32_t number)
{
    server->number = number;
}

static float odd_value(td_rand *rand)
{
    static const float values[] = {0.0F,    -0.0F,        1e30F,       -1e30F,
                                   FLT_MIN, FLT_TRUE_MIN, 16777217.0F, 0.1F};
    return values[lab_below(rand, TD_COUNT_OF(values))];
}

static void fill_number(lab_server *server, uint32_t channel, uint32_t rows)
{
    td_rand *rand = server->rand;
    bool angle = server->settings->kinds[channel] == TD_WIRE_ANGLE;
    double value = lab_between(rand, -4, 4);
    double slope = lab_between(rand, -0.1, 0.1);
    if (lab_one_in(rand, 4)) value = server->last[channel];
    for (uint32_t k = 0; k < rows; k++) {
        float *cell = &server->values[k * server->settings->channels + channel];
        *cell = (float)(value + slope * k);
        if (!angle && lab_one_in(rand, 300)) *cell = odd_value(rand);
        if (angle && lab_one_in(rand, 20)) *cell += (float)(2 * M_PI);
        server->last[channel] = (float)value;
    }
}

static void fill_quaternion(lab_server *server, uint32_t channel, uint32_t rows)
{
    td_rand *rand = server->rand;
    double at[4], size = lab_one_in(rand, 2) ? 1 : lab_between(rand, 0.1, 3);
    for (int i = 0; i < 4; i++)
        at[i] = td_rand_normal(rand);
    for (uint32_t k = 0; k < rows; k++) {
        float *cell = &server->values[k * server->settings->channels + channel];
        if (lab_one_in(rand, 30)) size = -size;
        double now = lab_one_in(rand, 200) ? 0 : size;
        for (int i = 0; i < 4; i++) {
            at[i] += 0.05 * td_rand_normal(rand);
            cell[i] = (float)(now * at[i]);
        }
    }
}

static void fill_hold(lab_server *server, uint32_t channel, uint32_t rows)
{
    for (uint32_t k = 0; k < rows; k++)
        server->values[k * server->settings->channels + channel] =
            channel == 0 ? (float)server->serial
                         : (float)lab_between(server->rand, 0, 1);
}

static void fill_chunk(lab_server *server, uint32_t rows)
{
    const td_edge_core_settings *settings = server->settings;
    server->serial++;
    for (uint32_t i = 0; i < settings->channels; i++) {
        if (settings->kinds[i] == TD_WIRE_HOLD) {
            fill_hold(server, i, rows);
        } else if (settings->kinds[i] == TD_WIRE_QUATERNION) {
            fill_quaternion(server, i, rows);
            i += 3;
        } else {
            fill_number(server, i, rows);
        }
    }
}

static void add_chunk(lab_server *server, td_wire_action *action)
{
    bool sequential = server->options->sequential;
    uint32_t rows = sequential ? SEQUENTIAL_ROWS
                               : 1 + lab_below(server->rand, LAB_MAX_ROWS);
    uint32_t channels = server->settings->channels;
    fill_chunk(server, rows);
    action->actions = (td_wire_tensor){
        .dtype = TD_WIRE_F32,
        .rank = 2,
        .shape = {rows, channels},
        .data = server->values,
        .size = (size_t)rows * channels * sizeof(float),
    };
}

static void misshape(lab_server *server, td_wire_tensor *actions)
{
    if (lab_one_in(server->rand, 2)) {
        actions->shape[1] += lab_one_in(server->rand, 2) ? 1 : -1;
        if (actions->shape[1] == 0) actions->shape[1] = 2;
        actions->size =
            (size_t)actions->shape[0] * actions->shape[1] * sizeof(float);
    } else {
        actions->dtype = TD_WIRE_F64;
        actions->data = server->cells;
        actions->size *= 2;
    }
}

static void refuse(td_wire_action *action)
{
    action->actions = (td_wire_tensor){0};
    action->error_code = td_wire_text_of("busy");
}

// One answer in six is not what it should be.
static void spoil(lab_server *server, td_wire_action *action)
{
    td_rand *rand = server->rand;
    td_wire_ident *ident = &action->ident;
    switch (lab_below(rand, 50)) {
    case 0:
        ident->boot += lab_one_in(rand, 2) ? 1 : -1;
        break;
    case 1:
        ident->route += lab_one_in(rand, 2) ? 1 : -1;
        break;
    case 2:
        ident->episode += lab_one_in(rand, 2) ? 1 : -1;
        break;
    case 3:
        ident->seq = lab_below(rand, 2 * (uint32_t)ident->seq + 1);
        break;
    case 4:
        action->server = td_wire_text_of(lab_server_name(1 - server->number));
        break;
    case 5:
    case 6:
        refuse(action);
        break;
    case 7:
        misshape(server, &action->actions);
        break;
    default:
        break;
    }
}

// What no encoder writes.
static size_t damage(lab_server *server, const td_wire_action *action,
                     size_t size)
{
    if (!lab_one_in(server->rand, 50) || !action->actions.data) return size;
    unsigned char *at =
        memmem(server->bytes, size, action->actions.data, action->actions.size);
    if (lab_one_in(server->rand, 2) || !at)
        return size - 1 - lab_below(server->rand, (uint32_t)size / 2);
    const float bad = lab_one_in(server->rand, 2) ? NAN : -INFINITY;
    size_t floats = action->actions.size / sizeof bad;
    memcpy(at + lab_below(server->rand, (uint32_t)floats) * sizeof bad, &bad,
           sizeof bad);
    return size;
}

static void put_action(lab_server *server, const td_wire_action *action)
{
    td_errinfo info = {.text = ""};
    lab_check(td_wire_action_encode(server->encoder, action, &info), &info);
    size_t size = td_wire_encoder_size(server->encoder);
    td_wire_encoder_join(server->encoder, server->bytes);
    if (!server->options->sequential) size = damage(server, action, size);
    const td_slice part = {server->bytes, size};
    lab_check(td_net_put(server->actions, &part, 1, NULL, NULL), NULL);
}

static void answer(lab_server *server, const td_wire_ident *asked)
{
    td_wire_action action = {
        .ident = *asked,
        .server = td_wire_text_of(lab_server_name(server->number)),
        .superseded_count = server->let_go_count,
    };
    memcpy(action.superseded, server->let_go, sizeof server->let_go);
    server->let_go_count = 0;
    add_chunk(server, &action);
    if (!server->options->sequential) spoil(server, &action);
    put_action(server, &action);
}

static void take(lab_server *server, const td_wire_ident *asked, int64_t now_ns)
{
    bool full = server->let_go_count == TD_COUNT_OF(server->let_go);
    if (server->options->sequential) {
        server->asked = *asked;
        server->done_ns = now_ns + SEQUENTIAL_NS;
    } else if (lab_one_in(server->rand, 12) && !full) {
        server->let_go[server->let_go_count++] = asked->seq;
    } else {
        answer(server, asked);
    }
}

int64_t lab_server_act(lab_server *server, int64_t now_ns)
{
    td_net_msg *msg;
    while ((msg = lab_inbox_take(&server->inbox))) {
        td_errinfo info = {.text = ""};
        td_slice bytes;
        td_wire_obs obs;
        lab_check(td_net_msg_bytes(msg, &bytes), NULL);
        lab_check(td_wire_obs_decode(server->decoder, bytes.data, bytes.size,
                                     &obs, &info),
                  &info);
        take(server, &obs.ident, now_ns);
        td_net_msg_free(msg);
    }
    if (server->done_ns <= now_ns) {
        server->done_ns = INT64_MAX;
        answer(server, &server->asked);
    }
    return server->done_ns;
}

lab_server *lab_server_new(const lab_options *options, td_rand *rand,
                           td_net_hub *hub,
                           const td_edge_core_settings *settings)
{
    static const td_net_qos qos = {.priority = TD_NET_INTERACTIVE_HIGH};
    lab_server *server = lab_calloc(sizeof *server);
    server->options = options;
    server->rand = rand;
    server->settings = settings;
    server->done_ns = INT64_MAX;
    lab_check(td_wire_decoder_new(&server->decoder), NULL);
    lab_check(td_wire_encoder_new(&server->encoder), NULL);
    lab_check(td_net_inproc_open(hub, "server", &server->net, NULL), NULL);
    lab_check(
        td_net_publish(server->net, "action", &qos, &server->actions, NULL),
        NULL);
    lab_check(td_net_subscribe(server->net, "obs", lab_inbox_add,
                               &server->inbox, &server->obs, NULL),
              NULL);
    return server;
}

void lab_server_free(lab_server *server)
{
    td_net_msg *msg;
    lab_check(td_net_undeclare(server->obs), NULL);
    td_net_unpublish(server->actions);
    while ((msg = lab_inbox_take(&server->inbox)))
        td_net_msg_free(msg);
    td_net_close(server->net);
    td_wire_encoder_free(server->encoder);
    td_wire_decoder_free(server->decoder);
    free(server);
}

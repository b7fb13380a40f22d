// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_MODEL_FIXTURE_H
#define TD_SERVER_MODEL_FIXTURE_H

// For tests of the server's shell: a network in this process, a server of a
// small synthetic model, and clients that the test's own thread moves.
//
// Everything here is for the test's thread, and asserts.

#include "base/clock.h"
#include "base/sync/event.h"
#include "base/sync/queue.h"
#include "engine/synthetic/synthetic.h"
#include "net/inproc/inproc.h"
#include "server/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 10
#define ACTIONS 3
#define STATES 2
#define MAX_CLIENTS 4

typedef struct world world;

typedef struct client {
    world *world;
    const char *id;
    uint64_t boot;
    td_net *net;
    td_net_decl *token, *actions;
    td_net_pub *obs, *reset;
    td_queue *heard; // td_net_msg *
    float state[STATES];
    td_net_msg *msg;       // what `answer` looks into
    td_wire_action answer; // the newest
} client;

// An engine that holds each batch until the test lets it go.
typedef struct gate {
    td_engine base;
    const td_engine_spec *spec;
    td_event *wake;
    bool tells;           // its health, and takes hints
    _Atomic bool refuses; // BUSY, whatever comes
    _Atomic int health;
    _Atomic uint32_t warmed; // hints that it was given
    _Atomic(td_engine_batch *) batch;
    td_engine_done done;
    void *user;
} gate;

struct world {
    td_engine_synthetic_settings settings;
    td_server_model_config config;
    td_net_hub *hub;
    td_net *net; // the server's
    td_engine *engine;
    td_engine_synthetic_model *model;
    gate gate;
    td_server_model *server;
    td_server_model_report report; // as of the last look of world_until()
    td_event wake;
    td_wire_encoder *encoder;
    td_wire_decoder *decoder;
    client clients[MAX_CLIENTS];

    td_queue *replies; // td_net_msg *
    _Atomic bool answered;
    td_net_msg *reply;     // what `status` looks into
    td_wire_status status; // the newest
    uint32_t reply_count;  // to the newest query
};

int world_setup(void **state);
int world_teardown(void **state);

#define WORLD_TEST(test)                                                       \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

// Opens the server with world.config, over the synthetic engine or the gate.
void world_open(world *w);
void world_open_gated(world *w);
// Over this engine, which is borrowed until it is closed.
void world_open_with(world *w, td_engine *engine);
void world_close(world *w);

// Waits until `is_so`, at most 30 s.
#define world_until(w, is_so) world_until_named((w), (is_so), #is_so)
void world_until_named(world *w, bool (*is_so)(world *w), const char *name);
bool is_running_one(world *w);
bool is_idle(world *w); // nothing waits or runs
bool is_without_clients(world *w);

// Fresh counts, checked: every observation received has exactly one outcome.
td_server_counts world_counts(world *w);

// Runs the gate's batch to its end. All its members end with `status`.
void gate_finish(gate *g, td_err status);
// Only the member of this client does, the others with OK.
void gate_finish_one(gate *g, const char *id, td_err status);
uint32_t gate_batch_size(gate *g); // 0: none runs
void gate_open(world *w, gate *g);

// A client with its token, not attached.
client *client_open(world *w, size_t index, const char *id, uint64_t boot);
void client_close(client *c);

// Asks the status key with these bytes; the last reply is in world.status.
void client_query(client *c, const void *bytes, size_t size);

// Whether `server` took the client; why not is in world.status.
bool client_attach(client *c, const char *server);
bool client_leave(client *c, const char *server); // likewise
client *client_attached(world *w);                // the first, as "arm-0"
// Opens the server over the gate, which then runs this client's first.
client *client_running_one(world *w);
bool client_matched(client *c);

// An observation that fits, with a picture; borrows from the client.
td_wire_obs client_obs(client *c, uint64_t seq);
void client_send(client *c, const td_wire_obs *obs);
void client_send_seq(client *c, uint64_t seq);
void client_send_bytes(td_net_pub *pub, const void *bytes, size_t size);

// Waits for the next answer.
const td_wire_action *client_hear(client *c);
bool client_has_heard(client *c); // an answer; then it is in `answer`

#endif

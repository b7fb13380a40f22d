// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_EDGE_FIXTURE_H
#define TD_EDGE_EDGE_FIXTURE_H

// For tests of the edge at work: a network in this process, a robot that
// remembers its commands, and fake servers: the test's own thread
// works them while it waits. td_edge_run() has a thread of its own.
//
// Everything here is for the test's thread, and asserts.

#include "base/clock.h"
#include "base/sync/event.h"
#include "base/sync/queue.h"
#include "base/sync/thread.h"
#include "edge/edge.h"
#include "net/inproc/inproc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define CHANNELS 2
#define ROWS 20
#define MAX_COMMANDS 16384
#define MAX_FAKE_SERVERS 2

typedef struct world world;

// A server. What it does is set before it is opened, or between two waits.
typedef struct fake_server {
    world *world;
    const char *id;
    uint64_t boot;
    float load;
    td_wire_server_state state;
    bool newer_schema;                           // of its status
    bool sends_garbage;                          // in place of its status
    bool mute;                                   // leaves queries alone
    const char *denies;                          // why; NULL: it attaches
    void (*edit_status)(td_wire_status *status); // NULL: it fits
    void (*edit_answer)(td_wire_action *action); // NULL: a good chunk
    void (*note_obs)(world *w, const td_wire_obs *obs); // NULL: it only counts
    uint64_t answers_left;                              // then it is silent
    bool wakes;                                         // when asked to attach
    uint64_t queries, attached, observations;           // that came
    uint64_t attached_in[TD_EDGE_STATE_COUNT];          // by the robot's
    uint64_t denied;                                    // how often it did
    uint64_t left;        // how often the robot did
    uint64_t left_others; // how often it heard the robot leave others
    uint32_t images;      // of the newest one
    char task[16];        // likewise
    uint64_t promised;    // steps, by the newest answer
    td_net *net;
    td_net_decl *status, *token, *obs;
    td_net_pub *action;
    td_queue *asked; // td_net_request *
    td_queue *heard; // td_net_msg *
} fake_server;

struct world {
    td_edge_config config;
    td_net_hub *hub;
    td_net *net, *stranger;
    td_net_pub *injected; // a stranger's, on the robot's action key
    td_robot_hardware *robot;
    td_edge *edge;
    td_edge_report report; // as of the last look of world_until()
    td_event wake;
    td_wire_encoder *encoder;
    td_wire_decoder *decoder;
    fake_server fake_servers[MAX_FAKE_SERVERS];

    td_thread *runner;
    _Atomic bool returned;
    td_err result; // of td_edge_run(), once it has returned
    td_errinfo why;
};

// A world for one test, with a network and a robot in it.
int world_setup(void **state);
int world_teardown(void **state);

#define WORLD_TEST(test)                                                       \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

// Opens the edge with world.config; runs it; both, until it streams.
void world_open(world *w);
void world_run(world *w);
void world_stream(world *w);

// Stops the edge and waits for td_edge_run(); closes it.
void world_stop(world *w);
void world_close(world *w);

// Works the fake servers until `is_so`, at most 30 s.
#define world_until(w, is_so) world_until_named((w), (is_so), #is_so)
void world_until_named(world *w, bool (*is_so)(world *w), const char *name);
bool is_streaming(world *w);
bool is_reconnecting(world *w);
bool has_returned(world *w);
bool has_asked(world *w); // the first fake server, for its status
bool has_merged_twenty(world *w);

uint64_t world_outcome(const world *w, td_edge_outcome outcome);

void world_key(const world *w, const char *client, const char *topic,
               char ret_key[TD_WIRE_MAX_KEY]);
void world_put(td_net_pub *pub, const td_wire_encoder *encoder);

// What "gpu-1" would answer to the second observation; borrows ROWS rows.
td_wire_action world_stray(const float *rows);

// A stranger sends to the robot.
void world_inject(world *w, const td_wire_action *action);
void world_inject_bytes(world *w, const void *bytes, size_t size);

// What the robot was commanded, each change once: [*ret_count][CHANNELS].
// Borrowed; the edge must be closed, or be holding.
const float *world_commands(world *w, size_t *ret_count);

// Makes this camera fail or block from now on; -1: none does.
void world_break_camera(world *w, int camera);
void world_block_camera(world *w, int camera);

// Its cameras give JPEG from now on, with a mark at the end of each.
#define JPEG_MARK "spy"
void world_compress(world *w);

// Makes reading its joints fail while `broken`, or block while `blocked`.
void world_break_driver(world *w, bool broken);
void world_block_driver(world *w, bool blocked);
bool is_blocked(world *w); // the driver, and the camera that is to be

// A server that fits, ready and willing. Row k of a chunk that answers cursor c
// is {c + k, -(c + k)}.
fake_server *fake_server_open(world *w, size_t index, const char *id);
void fake_server_reopen(fake_server *p);
void fake_server_close(fake_server *p);

// Replies to the queries and answers the observations that came.
void fake_server_work(fake_server *p);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BENCH_RIG_H
#define TD_BENCH_RIG_H

// A real server in a process of its own, and real robots in this one: what rt,
// tick and soak measure. The model costs nothing, unless the setup says what,
// and answers with 50 x 14.

#include "bench/bench.h"
#include "edge/edge.h"

#define TD_BENCH_JOINTS 14
#define TD_BENCH_ROWS 50

typedef enum td_bench_link {
    TD_BENCH_TCP,
    TD_BENCH_UNIX,
    TD_BENCH_SHM, // over TCP
} td_bench_link;

typedef struct td_bench_setup {
    td_bench_link link;
    int64_t fps;
    int64_t control_hz; // 0: as fps
    uint32_t cameras, height, width;
    bool raw;            // frames, else JPEG
    int jpeg_quality;    // 0: as in a robot's file
    int own_cpu;         // of the tick, plus 1; 0: any
    bool eager;          // asks again as soon as it was answered
    bool worker;         // the model has a process of its own
    const char *listen;  // the server's endpoint; NULL: one that is free
    const char *meeting; // where it and its robots connect; NULL: at itself
    int64_t capacity;    // of the server; 0: 256
    int64_t max_batch;   // 0: 8
    double batch_ms;     // that a batch of one takes
    double member_ms;    // more for each further one
    const char *record;  // a dataset's folder; NULL: nothing is recorded
} td_bench_setup;

// "tcp/127.0.0.1:PORT" or a socket in the folder, free at the moment.
#define TD_BENCH_ENDPOINT_BYTES 128
TD_NODISCARD td_err td_bench_endpoint(td_bench_link link,
                                      char ret[TD_BENCH_ENDPOINT_BYTES],
                                      td_errinfo *info);

typedef struct td_bench_server {
    td_bench_child child;
    char endpoint[TD_BENCH_ENDPOINT_BYTES];
} td_bench_server;

// `tendon serve` of a manifest made for the setup. Robots wait for it.
TD_NODISCARD td_err td_bench_server_start(const td_bench_setup *setup,
                                          td_bench_server *ret_server,
                                          td_errinfo *info);

// A session of a robot's, as `tendon robot` opens it. Owned by the caller.
TD_NODISCARD td_err td_bench_net_open(const td_bench_setup *setup,
                                      const td_bench_server *server,
                                      td_net **ret_net, td_errinfo *info);

// What the cameras of a robot that stands still see: noise, or a JPEG of it
// unless the setup wants raw frames.
#define TD_BENCH_FRAME_BYTES (480 * 640 * 3 + TD_ROBOT_JPEG_MORE)
TD_NODISCARD td_err td_bench_still_picture(const td_bench_setup *setup,
                                           td_robot_picture *picture);

// A robot that stands still; its frames are copied from memory. Owned by the
// caller, td_robot_hardware_close().
TD_NODISCARD td_err td_bench_still_open(const td_bench_setup *setup,
                                        td_robot_hardware **ret_robot);

// From now on the calls to its first camera, or to its joints, do not return
// before something else is said. An edge is closed after NOTHING was.
typedef enum td_bench_block {
    TD_BENCH_BLOCK_NOTHING,
    TD_BENCH_BLOCK_CAMERA,
    TD_BENCH_BLOCK_DRIVER,
} td_bench_block;

void td_bench_still_block(td_robot_hardware *robot, td_bench_block what);

// The synthetic robot of the setup.
TD_NODISCARD td_err td_bench_synthetic_open(const td_bench_setup *setup,
                                            td_robot_hardware **ret_robot,
                                            td_errinfo *info);

// What the robot of the setup records into. Owned by the caller, who closes it.
TD_NODISCARD td_err td_bench_record_open(const td_bench_setup *setup,
                                         td_edge_episode_sink *ret_sink,
                                         td_errinfo *info);

// An edge at work: opened with the defaults of a robot's file and a client id
// of its own, its session on a thread, attached.
typedef struct td_bench_edge td_bench_edge;

TD_NODISCARD td_err td_bench_edge_open(const td_bench_setup *setup, td_net *net,
                                       td_robot_hardware *robot,
                                       td_bench_edge **ret_edge,
                                       td_errinfo *info);
td_edge *td_bench_edge_get(const td_bench_edge *edge);
const td_edge_config *td_bench_edge_config(const td_bench_edge *edge);

// It asks no more; answers still come.
void td_bench_edge_stop(td_bench_edge *edge);
void td_bench_edge_close(td_bench_edge *edge);
TD_AUTO_FREE(td_bench_edge, td_bench_edge_close)

// Where the edge that is opened next gets its answers.
void td_bench_next_action_key(char ret_key[TD_WIRE_MAX_KEY]);

// Waits until the edge streams. TIMEOUT after 20 s, CANCELLED, or why the
// session ended.
TD_NODISCARD td_err td_bench_edge_wait(td_bench_edge *edge, td_errinfo *info);

#endif

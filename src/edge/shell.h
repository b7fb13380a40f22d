// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_SHELL_H
#define TD_EDGE_SHELL_H

// What the files of the edge's shell share. Private to edge/.

#include "base/clock.h"
#include "base/sync/event.h"
#include "base/sync/queue.h"
#include "base/sync/slot.h"
#include "base/sync/thread.h"
#include "edge/edge.h"
#include "edge/observe/camera.h"
#include "edge/observe/observe.h"
#include "edge/session/finder.h"

#include <pthread.h>

// Tick to driver: what to do.
typedef struct td_edge_command {
    float values[TD_WIRE_MAX_CHANNELS];
} td_edge_command;

// Driver to tick: where the robot is.
typedef struct td_edge_reading {
    float values[TD_WIRE_MAX_CHANNELS];
    float policy_state[TD_WIRE_MAX_CHANNELS]; // where it is recorded, likewise:
    bool has_policy_state;
    int64_t read_ns;
} td_edge_reading;

// Callback to merge.
typedef struct td_edge_received {
    td_net_msg *msg;
    int64_t received_ns;
} td_edge_received;

#define TD_EDGE_CAMERA_COUNTERS 3

typedef struct td_edge_publisher td_edge_publisher;
typedef struct td_edge_session td_edge_session;

struct td_edge {
    td_net *net;
    td_robot_hardware *robot;
    td_edge_config config;
    td_edge_core *core;
    int64_t opened_ns;

    td_slot *commands; // tick to driver, td_edge_command
    td_slot *requests; // tick to driver, td_edge_request
    td_slot *readings; // driver to tick, td_edge_reading
    td_slot *outbox;   // driver to publisher, td_edge_outgoing
    td_event driver_wake, publisher_wake, merge_wake, session_wake;
    td_queue *received; // td_edge_received
    _Atomic bool stop_threads, stop_session;
    _Atomic uint64_t connection; // another for each attach; 0: none
    _Atomic int state;           // td_edge_state
    _Atomic uint64_t asked_seq;  // the newest, from tick to publisher
    _Atomic int64_t merged_ns;   // when the last chunk was merged
    _Atomic int64_t driven_ns;   // when the driver last did all it should
    int64_t pulled_ns;           // td_edge_pull()'s caller's; 0: not yet
    td_edge_request request;     // waits for a reading; driver's own; seq 0: no
    uint32_t skipped_ticks;      // since the last one; tick's own
    td_edge_recorder *recorder;  // NULL: nothing is recorded
    td_thread *tick, *driver, *publisher_thread, *merge;
    td_edge_camera *cameras[TD_WIRE_MAX_IMAGES];
    char camera_counters[TD_WIRE_MAX_IMAGES][TD_EDGE_CAMERA_COUNTERS]
                        [TD_WIRE_MAX_NAME + 1]; // their names

    // Guards the core's in-flight ring (publisher and merge), `server` and
    // `wanted` (session, publisher and merge), and `task`. Never the tick's.
    pthread_mutex_t lock;
    char server[TD_WIRE_MAX_NAME + 1];
    td_media_size wanted[TD_WIRE_MAX_IMAGES]; // by the server; 0: not
    char task[TD_WIRE_MAX_TEXT + 1];

    td_net_pub *resets;
    td_net_decl *orders; // to the recorder, on:
    char orders_key[TD_WIRE_MAX_KEY];
    td_edge_publisher *publisher; // publisher's thread's own
    td_wire_decoder *decoder;     // merge's own
    td_edge_session *session;     // session's own

    td_hist lateness_ns, age_ns;        // written by tick
    td_hist control_ns;                 // written by driver
    td_hist transport_ns, installed_ns; // written by merge
    td_hist skew_ns;                    // written by publisher
    _Atomic uint64_t outbox_replaced, metrics_failed, inbox_full, missed_ticks,
        driver_failed, resets_failed;
    _Atomic uint64_t stale[TD_WIRE_MAX_IMAGES]; // by camera
    _Atomic uint64_t entered[TD_EDGE_STATE_COUNT];
    _Atomic uint64_t replies[TD_EDGE_REPLY_COUNT];
};

// tick.c
int64_t td_edge_control_period_ns(const td_edge *edge);
void td_edge_tick_run(void *user);

// driver.c
void td_edge_driver_run(void *user);

// Takes a state that was read elsewhere as the driver's reading. False: it is
// not finite, which is counted. As the tick: never blocks.
bool td_edge_driver_take(td_edge *edge, const float *state, int64_t now_ns,
                         td_edge_outgoing *ret_reading);

// What the policy is told at this reading, where it is recorded. Driver's
// thread, or the one that calls td_edge_pull(); as the user's function.
void td_edge_driver_tell(td_edge *edge, td_edge_outgoing *reading);

// An observation is asked for: it goes with the next good reading, handed to
// the publisher. Driver's thread, or the one that calls td_edge_pull(); never
// blocks.
void td_edge_driver_ask(td_edge *edge, const td_edge_request *request);
void td_edge_driver_observe(td_edge *edge, const td_edge_outgoing *reading);

// reset.c
TD_NODISCARD td_err td_edge_reset_open(td_edge *edge, td_errinfo *info);

// episode.c: the recorder, where there is something to record into. After the
// cameras.
TD_NODISCARD td_err td_edge_episode_open(td_edge *edge, td_errinfo *info);
void td_edge_episode_close(td_edge *edge); // after the tick

// publisher.c
TD_NODISCARD td_err td_edge_publisher_new(td_edge *edge,
                                          td_edge_publisher **ret_publisher,
                                          td_errinfo *info);
void td_edge_publisher_free(td_edge_publisher *publisher);
void td_edge_publisher_run(void *user);

// merger.c
void td_edge_merger_on_action(void *user, const td_net_sample *sample);
void td_edge_merger_run(void *user);

// session.c
TD_NODISCARD td_err td_edge_session_new(td_edge *edge,
                                        td_edge_session **ret_session,
                                        td_errinfo *info);
void td_edge_session_free(td_edge_session *session);

// telemetry.c
void td_edge_telemetry_open(td_edge *edge); // before the rest
void td_edge_telemetry_put(td_edge *edge, td_net_pub *pub,
                           td_wire_encoder *encoder, int64_t now_ns);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_LOOP_DRIVER_H
#define TD_EDGE_LOOP_DRIVER_H

// Talks to the robot's hardware, which may block: a thread of its own writes
// the newest command and reads the state, once a control tick.
//
// The tick exchanges slots with it and waits for nothing. A host that owns its
// loop has no such thread: it brings the state itself, and calls the functions
// that say so on its own thread.

#include "base/hist.h"
#include "edge/observe/publisher.h"
#include "robot/hardware.h"

// A user's own fast controller, between timeline and robot: makes what is
// written to the robot out of the gated command and the state just read, or
// NULL where that could not be read. `ret_out` holds the command. Driver's
// thread, once a control tick from the first command on; may block as the robot
// does. When it fails or gives a value that is not finite, nothing is written.
typedef td_err (*td_edge_control_fn)(void *user, const float *command,
                                     const float *state, uint32_t channels,
                                     float *ret_out);

// The state that the policy is shown, where that is not the joints'. Driver's
// thread, or the host's that pulls, when an observation is asked for, and in
// every tick where it is recorded; may block as the robot does. Every value
// must be set. When it fails the observation waits for the next tick.
typedef td_err (*td_edge_state_fn)(void *user, float *ret_state,
                                   uint32_t channels);

typedef struct td_edge_driver_config {
    td_robot_hardware *robot; // this and all else is borrowed
    const td_edge_core *core;
    td_edge_publisher *publisher;
    uint32_t channels;
    uint32_t policy_states;     // 0: the policy sees the joints
    int64_t period_ns;          // of a control tick
    int64_t limit_ns;           // blocks or fails longer: it is down
    td_edge_control_fn control; // NULL: commands are written as they are
    void *control_user;
    td_edge_state_fn observe_state; // with policy_states
    void *observe_state_user;
    bool records; // the policy's state is wanted in every tick
    bool pull;    // there is no thread: a host brings the states
} td_edge_driver_config;

// Where the robot is.
typedef struct td_edge_reading {
    float values[TD_WIRE_MAX_CHANNELS];
    float policy_state[TD_WIRE_MAX_CHANNELS]; // where it is recorded, likewise:
    bool has_policy_state;
    int64_t read_ns; // 0: never
} td_edge_reading;

typedef struct td_edge_driver td_edge_driver;

// Owned by the caller. NOMEM.
TD_NODISCARD td_err td_edge_driver_new(const td_edge_driver_config *config,
                                       td_edge_driver **ret_driver);

// Starts the thread, td-driver. As td_thread_start().
TD_NODISCARD td_err td_edge_driver_start(td_edge_driver *driver,
                                         int realtime_priority,
                                         td_errinfo *info);

// Tells the thread to end. Never blocks.
void td_edge_driver_stop(td_edge_driver *driver);

// Waits for it until `until_ns` at most: the robot's functions may never
// return. False: they have not. Blocks.
TD_NODISCARD bool td_edge_driver_end(td_edge_driver *driver, int64_t until_ns);

// After the thread has ended.
void td_edge_driver_free(td_edge_driver *driver);
TD_AUTO_FREE(td_edge_driver, td_edge_driver_free)

// Tick's thread; never block. What to do, [channels]; that an observation is to
// be sent with the next good reading; that the tick is over, which wakes it.
void td_edge_driver_command(td_edge_driver *driver, const float *values);
void td_edge_driver_request(td_edge_driver *driver,
                            const td_edge_request *request);
void td_edge_driver_wake(td_edge_driver *driver);

// The newest reading, borrowed until the next call. Tick's thread; never
// blocks.
const td_edge_reading *td_edge_driver_newest(td_edge_driver *driver);

// Whether it has not done all that it should for too long. Any thread; never
// blocks.
bool td_edge_driver_is_down(const td_edge_driver *driver, int64_t now_ns);

// For a host's thread; never block but in the user's functions. Takes a state
// as the reading of now, with the policy's own where that is recorded; false:
// it is not finite, which is counted. Then a request, if there is one. Then
// what was asked for goes out with that reading.
bool td_edge_driver_take_state(td_edge_driver *driver, const float *state,
                               int64_t now_ns, td_edge_outgoing *ret_reading);
void td_edge_driver_take_request(td_edge_driver *driver,
                                 const td_edge_request *request);
void td_edge_driver_observe(td_edge_driver *driver, td_edge_outgoing *reading);

typedef struct td_edge_driver_stats {
    uint64_t failed;   // calls of the robot's or the user's functions
    uint64_t replaced; // observations by newer ones, before they were sent
    const td_hist *control_ns; // the user's own controller; borrowed
} td_edge_driver_stats;

// Any thread.
td_edge_driver_stats td_edge_driver_stats_get(const td_edge_driver *driver);

#endif

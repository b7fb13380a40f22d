// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_ROBOT_H
#define TENDON_ROBOT_H

// Your own robot on a remote policy: the C API of libtendon.
//
// You give the robot's file (YAML, `robot: {kind: callback}`) and functions
// that read and write your hardware. The robot finds a server for the policy,
// asks it for actions and plays them at the file's rate, within the file's
// limits, whatever the network does. There are two ways to run it:
//
//   callback  the robot owns the loop: its control thread decides, its driver
//             thread calls your read() and write(). A call that blocks delays
//             itself alone; one that blocks beyond `driver_limit_s`, fails or
//             lies (values that are not finite) makes the fail-safe act.
//   pull      you own the loop: leave read() and write() NULL and call
//             td_robot_step() once a control period. It never waits.
//
// Threads: unless a function says otherwise, call it on any thread, but never
// inside a callback; td_robot_stop() may be called anywhere. A callback must
// not throw. docs/c-api.md has two examples and what is promised to stay.

#include "tendon/err.h"
#include "tendon/library.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct td_robot td_robot;

// Policy steps in a row that are known from the chunk before and from the new
// one.
typedef struct td_robot_overlap {
    uint64_t first; // the number of the first of them
    uint32_t rows;
    uint32_t count;                   // joints
    const float *old_rows, *new_rows; // [rows x count], borrowed for the call
} td_robot_overlap;

// Your hardware. Begin with zeros and set `size`. In every function but
// observe_state() `count` is the number of the file's joints, and values are in
// their order. Return TD_OK, or what went wrong (TD_ERR_IO, TD_ERR_TIMEOUT): it
// is counted. Functions that share data with one another see to it themselves:
// only those of one thread are never called at the same time.
typedef struct td_robot_driver {
    size_t size; // sizeof(td_robot_driver), so that it can grow
    void *user;  // given back to each function

    // Where the joints are. Driver thread; may block. Every value must be set.
    td_err (*read)(void *user, float *ret_state, uint32_t count);

    // Moves the joints: a command within the file's limits, once a control
    // period from the first chunk on. Driver thread; may block.
    td_err (*write)(void *user, const float *command, uint32_t count);

    // (where the file has cameras, this or picture) The newest frame of a
    // camera, by its number in the file: height x width x RGB. A thread of each
    // camera's own; may block until there is one.
    td_err (*frame)(void *user, uint32_t camera, uint8_t *ret_rgb,
                    uint32_t height, uint32_t width);

    // (optional, not with pull) Your own fast controller: makes what write() is
    // given, in units of your own, out of the command and the state that was
    // just read; `state` is NULL if that failed. `ret_out` begins as the
    // command. Driver thread, once a control period (`control_hz`, up to 1000)
    // from the first command on; its time is measured (`control_ms`). The
    // file's limits hold for the command and not for what this makes of it.
    td_err (*control)(void *user, const float *command, const float *state,
                      uint32_t count, float *ret_out);

    // (optional) Your own blend of a step that is known from the chunk before
    // and from the new one, instead of the file's `aggregate_fn_name`. Merge
    // thread. A row that it leaves with a value that is not finite is refused
    // and counted, and the new one stands.
    void (*aggregate)(void *user, uint64_t step, const float *old_row,
                      const float *new_row, uint32_t count, float *ret_row);

    // (optional, instead of aggregate) The same for all such steps at once, on
    // a thread of its own: may block. A chunk waits for it for `blend_limit_s`
    // at most; when it is late or fails, the new rows stand and it is counted
    // (`aggregate_late`, `aggregate_failed`). Every value must be set.
    td_err (*blend)(void *user, const td_robot_overlap *overlap,
                    float *ret_rows);
    double blend_limit_s; // 0: half a policy step

    // (needed where the file has `states`, and only there) What the policy is
    // told of the robot where that is not where its joints are: `count` is the
    // number of the file's states, in their order. Driver thread, after read();
    // with pull inside td_robot_step(). When an observation is due, and in
    // every control period where the run is recorded; may block as read() may.
    // Every value must be set. When it fails it is counted as read() is, and
    // asked again in the next control period.
    td_err (*observe_state)(void *user, float *ret_state, uint32_t count);

    // (instead of frame) The same for cameras that compress: either height x
    // width x RGB, or a JPEG of that size, of at most `room` bytes, with their
    // number in `ret_jpeg`, which begins as 0. A JPEG is sent and recorded as
    // it is; it is decoded only where the server wants it smaller or raw, or
    // `similarity` looks at it. One of another size is counted as failed.
    td_err (*picture)(void *user, uint32_t camera, uint8_t *ret_bytes,
                      size_t room, uint32_t height, uint32_t width,
                      size_t *ret_jpeg);
} td_robot_driver;

// Opens a robot from its file, or from the same YAML as text. The functions and
// what `user` points to are borrowed until it is closed, and read() and
// frame() are called from here on; nothing moves before td_robot_run() or
// td_robot_start() has found a server. Blocks for a moment. Owned by the
// caller. IO, FORMAT, INVALID (with the file's line and field, or what is wrong
// with the driver), VERSION (a driver with functions that this library does not
// know), NOMEM.
TD_NODISCARD td_err td_robot_open(const char *path,
                                  const td_robot_driver *driver,
                                  td_robot **ret_client, td_errinfo *info);
TD_NODISCARD td_err td_robot_open_text(const char *yaml,
                                       const td_robot_driver *driver,
                                       td_robot **ret_client, td_errinfo *info);

// Runs until td_robot_stop(): finds a server, waiting for one as long as it
// takes, and holds on to it. Blocks. Once for each robot: EXISTS. Refuses to
// start on a server that does not fit: MISMATCH (the field, what this side has,
// what the server has), VERSION, DENIED.
TD_NODISCARD td_err td_robot_run(td_robot *robot, td_errinfo *info);

// The same on a thread of the robot's own. td_robot_wait() blocks until that
// has ended, and returns what td_robot_run() would have; EMPTY if it was never
// started. One thread waits.
TD_NODISCARD td_err td_robot_start(td_robot *robot, td_errinfo *info);
TD_NODISCARD td_err td_robot_wait(td_robot *robot, td_errinfo *info);

// Makes them return. The robot holds where it is until it is closed. Any
// thread, callbacks and signal handlers too; never blocks.
void td_robot_stop(td_robot *robot);

// Stops, leaves the robot where it stands, saves what is recorded and frees. No
// call may be running but one of td_robot_start()'s own. Blocks until the
// functions have returned, after all else is done; one that has not for two
// seconds is named in the log.
void td_robot_close(td_robot *robot);

typedef enum td_robot_doing {
    TD_ROBOT_IDLE,     // no command yet: leave the robot be
    TD_ROBOT_FRESH,    // plays the policy
    TD_ROBOT_STARVED,  // nothing left to play: the fail-safe's command
    TD_ROBOT_FAILSAFE, // limits hit too often, or bad states: the same
} td_robot_doing;

// What came of a step. Set `size` before.
typedef struct td_robot_result {
    size_t size; // sizeof(td_robot_result)
    td_robot_doing doing;
    bool limited;   // the command is not what was wanted: a limit was kept
    uint32_t left;  // actions left to play
    int64_t age_us; // FRESH: since the observation that it answers
} td_robot_result;

// Pull mode: one control period (1 / `control_hz`) of a program that owns
// its loop, on the program's thread. Takes the state that it has just read and
// gives the command to write now; with IDLE `ret_command` is untouched. A state
// that is not finite is counted and not used; when that lasts, or when the
// program pauses, longer than `driver_limit_s`, the fail-safe acts.
// `ret_result` may be NULL. One thread at a time; never blocks, allocates or
// takes a lock. UNSUPPORTED for a robot with read() and write().
TD_NODISCARD td_err td_robot_step(td_robot *robot, const float *state,
                                  float *ret_command,
                                  td_robot_result *ret_result);

// How many joints the file has: the length of a state and of a command.
uint32_t td_robot_joints(const td_robot *robot);

// Begins a new episode: what was to come is forgotten, the robot holds, and the
// server is told, with the reason for a person ("" for none). Waits at most
// milliseconds. FORMAT and LIMIT (the reason), NOMEM.
TD_NODISCARD td_err td_robot_reset(td_robot *robot, const char *reason,
                                   td_errinfo *info);

// Tells the policy something else to do, from the next observation on. Waits at
// most milliseconds. FORMAT (not UTF-8), LIMIT (beyond 8192 bytes).
TD_NODISCARD td_err td_robot_set_task(td_robot *robot, const char *task,
                                      td_errinfo *info);

// Where the run is recorded (`dataset_repo_id` or `record` in the file): begins
// an episode of what is played from now on; ends it, kept or thrown away. The
// file says whether the first begins by itself; td_robot_reset() ends one and
// begins the next, and td_robot_close() keeps the one under way. Blocks until
// it is so on the disk. EXISTS (one is under way), EMPTY (none is), UNSUPPORTED
// (nothing is recorded), or why recording has stopped: IO, FULL.
TD_NODISCARD td_err td_robot_episode_begin(td_robot *robot, td_errinfo *info);
TD_NODISCARD td_err td_robot_episode_end(td_robot *robot, bool keep,
                                         td_errinfo *info);

// "CONNECTING", "STREAMING", "DEGRADED", "STALLED", "RECONNECTING", "STOPPED".
// Never blocks, never NULL.
const char *td_robot_state(const td_robot *robot);

// Every number of the robot by its name, as on its metrics topic: counters
// ("fresh", "driver_failed"), gauges, and of each histogram "NAME/count",
// "NAME/mean", "NAME/p50", "NAME/p99", "NAME/p999" and "NAME/max". Later
// versions have more names. `each` runs on the calling thread. NOMEM.
typedef void (*td_robot_number_fn)(void *user, const char *name, double value);
TD_NODISCARD td_err td_robot_report(td_robot *robot, td_robot_number_fn each,
                                    void *user);

// One of them. NOTFOUND, NOMEM.
TD_NODISCARD td_err td_robot_number(td_robot *robot, const char *name,
                                    double *ret_value);

#ifdef __cplusplus
}
#endif

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_EDGE_H
#define TD_EDGE_EDGE_H

// The edge at work: one robot, played by threads around the deciding core.
//
//   tick       plays one row a period; real-time; exchanges slots, waits for
//              nobody, allocates nothing
//   driver     talks to the robot, which may block
//   cameras    one each; takes frames at its own pace, keeps the newest
//   publisher  encodes and sends observations
//   merge      decodes answers and builds timelines
//   record     writes what was seen and done, where that is asked for
//
// The caller's thread runs the session: find a server, check that it fits,
// attach, watch over it.
//
// A host that owns its loop pulls instead: there is neither tick nor driver,
// and td_edge_pull() does the work of both on the host's thread.

#include "edge/loop/driver.h"
#include "edge/record/recorder.h"
#include "edge/report/report.h"
#include "edge/report/trace.h"
#include "edge/session/check.h"

typedef struct td_edge_config {
    td_wire_route route; // texts are borrowed while the edge is open
    const char *client;
    const char *task;
    td_edge_profile profile;
    td_edge_core_settings core;
    int64_t camera_period_ns[TD_WIRE_MAX_IMAGES]; // of the profile's cameras
    td_edge_codec codec;
    int jpeg_quality;
    td_media_chroma jpeg_chroma;
    td_edge_similar_settings similar;
    int realtime_priority; // of the tick; the driver has one less; 0: ordinary
    int cpu;               // of the tick; -1: any
    int64_t metrics_period_ns;  // 0: no metrics
    int64_t refused_for_ns;     // by a server, before a start is given up
    int64_t watchdog_ns;        // without a chunk, before the server is asked
                                // again
    int64_t driver_limit_ns;    // the robot blocks longer: the fail-safe acts
    td_edge_trace *trace;       // of every tick and merge; borrowed; NULL: none
    td_edge_control_fn control; // NULL: commands are written as they are
    void *control_user;
    td_edge_state_fn observe_state; // with policy states of their own
    void *observe_state_user;
    bool pull; // no tick and no driver: td_edge_pull() is called
    td_edge_episode_sink record; // consumed; close NULL: nothing is recorded
    bool record_begin;           // the first episode, at once
} td_edge_config;

typedef struct td_edge td_edge;

// Starts the threads; the robot holds still until there is a server. Borrows
// the session and the robot until it is closed. Owned by the caller. The
// sink of `record` is closed on failure too.
TD_NODISCARD td_err td_edge_open(td_net *net, td_robot_hardware *robot,
                                 const td_edge_config *config,
                                 td_edge **ret_edge, td_errinfo *info);

// Runs until td_edge_stop(). Waits for a server as long as it takes, but
// refuses to start on one that does not fit: MISMATCH (field, own value, the
// server's), VERSION, DENIED (it does not take this robot). Blocks.
TD_NODISCARD td_err td_edge_run(td_edge *edge, td_errinfo *info);

// Makes td_edge_run() return. Any thread, signal handlers too.
void td_edge_stop(td_edge *edge);

// One control tick for a host that owns its loop, with the state that it has
// just read. What is returned borrows until the next call. A pause longer than
// driver_limit_ns, or states that are not finite for as long, count as a driver
// that is down. One thread at a time; never blocks. Only with `pull`.
td_edge_step td_edge_pull(td_edge *edge, const float *state);

// Begins the next episode: the robot holds, what was to come is forgotten, and
// the server is told, with the reason ("" for none). Any thread but a
// callback's; waits at most milliseconds. NOMEM, FORMAT and LIMIT (the reason);
// a message that could not be sent is no failure, as the next observation says
// the same.
TD_NODISCARD td_err td_edge_reset(td_edge *edge, const char *reason,
                                  td_errinfo *info);

// Gives the policy another task, from the next observation on. Any thread but a
// callback's; never blocks for long. FORMAT (not UTF-8), LIMIT (longer than
// TD_WIRE_MAX_TEXT).
TD_NODISCARD td_err td_edge_set_task(td_edge *edge, const char *task,
                                     td_errinfo *info);

// Begins or ends an episode of the recording; another program may do so by a
// query (docs/wire.md). Any thread but a callback's; blocks until it is so on
// the disk. UNSUPPORTED where nothing is recorded, and as
// td_edge_recorder_execute().
TD_NODISCARD td_err td_edge_episode(td_edge *edge,
                                    td_edge_episode_command command,
                                    td_errinfo *info);

// Stops the threads, saves the episode that is being recorded, leaves the robot
// where it stands and the network; then waits for the robot's and the user's
// own functions, at most `limit_ns` (INT64_MAX: no limit). False, with a line
// in the log: one has not returned, and what it uses must stay. After this only
// it again, or td_edge_close(). Blocks.
bool td_edge_end(td_edge *edge, int64_t limit_ns);

// The same without a limit, and frees. Blocks.
void td_edge_close(td_edge *edge);
TD_AUTO_FREE(td_edge, td_edge_close)

// What happened so far. Any thread.
td_edge_state td_edge_state_get(const td_edge *edge);
void td_edge_report_get(td_edge *edge, td_edge_report *ret_report);

// The same by name, as on the metrics topic. Any thread.
void td_edge_metrics_get(td_edge *edge, int64_t now_ns,
                         td_wire_metrics *ret_metrics);

// Borrowed while the edge is open; safe to read while it runs.
td_edge_times td_edge_times_get(const td_edge *edge);

#endif

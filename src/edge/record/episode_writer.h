// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_RECORD_EPISODE_WRITER_H
#define TD_EDGE_RECORD_EPISODE_WRITER_H

// What is recorded of a run: rows and pictures become the frames of episodes.
//
// An episode lies between a begin and an end, and starts with the first action
// that is played. A new episode of the robot (a reset) ends one and begins the
// next. Every row of it is a frame: what could not be taken along is repeated
// and marked, counted and said. When nothing more can be written the recording
// stops, and only that.
//
// No thread and no clock of its own: td_edge_recorder calls it, and tests do.

#include "base/clock.h"
#include "dataset/write/writer.h"
#include "edge/record/pictures.h"
#include "edge/record/rows.h"

// Where frames go: what td_dataset_writer's functions do.
typedef struct td_edge_episode_sink {
    void *user;
    td_err (*begin)(void *user, td_errinfo *info);
    td_err (*add)(void *user, const td_dataset_frame *frame, td_errinfo *info);
    td_err (*end)(void *user, uint32_t *ret_episode, td_errinfo *info);
    td_err (*discard)(void *user, td_errinfo *info);
    td_dataset_writer_state (*look)(void *user);
    void (*close)(void *user);
} td_edge_episode_sink;

typedef struct td_edge_episode_writer_config {
    uint32_t states, channels;
    int64_t period_ns; // of a row
    uint32_t camera_count;
    td_wire_text camera_names[TD_WIRE_MAX_IMAGES]; // for the log; borrowed
    int64_t camera_period_ns[TD_WIRE_MAX_IMAGES];
    size_t camera_bytes[TD_WIRE_MAX_IMAGES]; // of a picture
    td_edge_picture_source cameras[TD_WIRE_MAX_IMAGES];
    td_edge_episode_sink sink; // consumed
    const td_clock *clock;     // borrowed
} td_edge_episode_writer_config;

#define TD_EDGE_RECORD_STATES(X)                                               \
    X(OFF, "off")                                                              \
    X(WAITING, "waiting") /* for an episode to begin */                        \
    X(RECORDING, "recording")                                                  \
    X(STOPPED, "stopped") /* nothing more can be written */

typedef enum td_edge_record_state {
#define TD_EDGE_RECORD_ENUM(name, text) TD_EDGE_RECORD_##name,
    TD_EDGE_RECORD_STATES(TD_EDGE_RECORD_ENUM)
#undef TD_EDGE_RECORD_ENUM
        TD_EDGE_RECORD_STATE_COUNT
} td_edge_record_state;

const char *td_edge_record_state_name(td_edge_record_state state);

typedef struct td_edge_record_status {
    td_edge_record_state state;
    uint64_t episodes; // saved in this run
    uint64_t frames;   // of the episode under way
    uint64_t lost;     // frames whose row was lost, so far
    uint64_t between;  // played while one episode was saved or the next begun
    uint64_t missing[TD_WIRE_MAX_IMAGES]; // pictures, so far
    double room_s; // how long the disk lasts as it goes; -1: not known yet
} td_edge_record_status;

typedef struct td_edge_episode_writer td_edge_episode_writer;

// Owned by the caller. NOMEM; then the sink is closed.
TD_NODISCARD td_err
td_edge_episode_writer_new(const td_edge_episode_writer_config *config,
                           td_edge_episode_writer **ret_recording);

// Saves the episode under way first. Blocks.
void td_edge_episode_writer_free(td_edge_episode_writer *writer);
TD_AUTO_FREE(td_edge_episode_writer, td_edge_episode_writer_free)

// EXISTS while an episode is under way; why it stopped, when it has. Blocks.
TD_NODISCARD td_err td_edge_episode_writer_begin(td_edge_episode_writer *writer,
                                                 td_errinfo *info);

// Saves the episode, or throws it away. One in which nothing was played is
// gone. EMPTY if none is under way; why it stopped, when it has. Blocks.
TD_NODISCARD td_err td_edge_episode_writer_end(td_edge_episode_writer *writer,
                                               bool keep, td_errinfo *info);

// The next row, with the robot's task. Blocks.
void td_edge_episode_writer_row(td_edge_episode_writer *writer,
                                const td_edge_row *row, const char *task);

// No row until `at_ns` is wanted any more: pictures of then are given back.
void td_edge_episode_writer_pass(td_edge_episode_writer *writer, int64_t at_ns);

td_edge_record_status
td_edge_episode_writer_status(const td_edge_episode_writer *writer);

#endif

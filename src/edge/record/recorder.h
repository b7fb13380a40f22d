// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_RECORD_RECORDER_H
#define TD_EDGE_RECORD_RECORDER_H

// The recorder at work: a thread of its own, of ordinary priority, between the
// tick that makes rows and a recording that may wait for the disk.
//
// The tick leaves rows in a ring and never waits: when there is no room it
// counts the row as lost and goes on.

#include "edge/record/episode_writer.h"

typedef struct td_edge_recorder_config {
    td_edge_episode_writer_config writer;
    uint32_t substeps; // control ticks in a row
    bool begin;        // an episode, at once
    // The robot's present task, into `ret_task`. Recorder's thread.
    void (*task)(void *user, char ret_task[TD_DATASET_MAX_TASK]);
    void *user;
} td_edge_recorder_config;

typedef struct td_edge_recorder td_edge_recorder;

// Starts the thread, td-record. Owned by the caller. INVALID, NOMEM, LIMIT, and
// as the sink's begin; then the sink is closed.
TD_NODISCARD td_err td_edge_recorder_open(const td_edge_recorder_config *config,
                                          td_edge_recorder **ret_recorder,
                                          td_errinfo *info);

// Saves the episode under way, and frees. After the last tick; before the
// cameras close. Blocks as long as the disk and the encoder do: no time is so
// long that an episode were better lost. Who cannot wait ends the process, and
// it is saved by `repair`.
void td_edge_recorder_close(td_edge_recorder *recorder);
TD_AUTO_FREE(td_edge_recorder, td_edge_recorder_close)

// One control tick. Tick's thread; never blocks or allocates.
void td_edge_recorder_tick(td_edge_recorder *recorder,
                           const td_edge_rows_tick *tick);

// What somebody may want of it, as of now: rows that were seen until then are
// those of before.
#define TD_EDGE_EPISODE_COMMANDS(X)                                            \
    X(BEGIN, "begin")                                                          \
    X(END, "end")         /* and keep it */                                    \
    X(DISCARD, "discard") /* end and throw it away */                          \
    X(NEXT, "next")       /* end, if one is under way, and begin */            \
    X(AGAIN, "again")     /* discard, likewise, and begin */

typedef enum td_edge_episode_command {
#define TD_EDGE_EPISODE_ENUM(name, text) TD_EDGE_EPISODE_##name,
    TD_EDGE_EPISODE_COMMANDS(TD_EDGE_EPISODE_ENUM)
#undef TD_EDGE_EPISODE_ENUM
        TD_EDGE_EPISODE_COUNT
} td_edge_episode_command;

// What the query for one is answered, or else what went wrong.
#define TD_EDGE_EPISODE_OK "ok"

// COUNT for another word.
td_edge_episode_command td_edge_episode_command_find(const char *word,
                                                     size_t size);

// What came of it. Recorder's thread; must not wait.
typedef void (*td_edge_episode_done)(void *user, td_err err,
                                     const td_errinfo *why);

// Has it done, and `done` called once. Any thread, callbacks too; never blocks.
// FULL: then it is not.
TD_NODISCARD td_err td_edge_recorder_submit(td_edge_recorder *recorder,
                                            td_edge_episode_command command,
                                            td_edge_episode_done done,
                                            void *user);

// The same, waiting until it is so on the disk. Any thread but a callback's;
// blocks. As td_edge_episode_writer_begin() and _end(); BUSY.
TD_NODISCARD td_err td_edge_recorder_execute(td_edge_recorder *recorder,
                                             td_edge_episode_command command,
                                             td_errinfo *info);

// Any thread; never blocks for long.
td_edge_record_status td_edge_recorder_status(td_edge_recorder *recorder);

#endif

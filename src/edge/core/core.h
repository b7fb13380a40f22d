// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_CORE_CORE_H
#define TD_EDGE_CORE_CORE_H

// What a robot decides: which command to play, when to ask, what to do with an
// answer. Pure: the time comes in as an argument, and there is no thread, clock
// or I/O, so that the same code runs on a robot and in the simulator.
//
// Two threads meet in it. The tick thread plays: it owns the cursor, allocates
// nothing and takes no lock. The merge thread builds timelines and publishes
// each with one atomic store; it frees an old one after the tick has moved past
// it. Each function says whose it is. Those "under the lock" share what is on
// its way, and are called under one lock of the caller's (session/link.c has
// it), or by a single thread.

#include "edge/core/inflight.h"
#include "edge/core/timeline.h"
#include "edge/pacing/ask.h"
#include "edge/safety/failsafe.h"

#include <stdatomic.h>

typedef enum td_edge_trim {
    TD_EDGE_TRIM_STEPS, // rows below the cursor are past
    TD_EDGE_TRIM_TIME,  // round trip / period rows are past
} td_edge_trim;

typedef struct td_edge_core_settings {
    uint32_t channels;
    uint32_t policy_states; // numbers that the policy sees; 0: where the
                            // joints are
    td_wire_channel_kind kinds[TD_WIRE_MAX_CHANNELS];
    td_edge_gate_channel limits[TD_WIRE_MAX_CHANNELS]; // by control tick
    td_edge_failsafe_channel failsafe[TD_WIRE_MAX_CHANNELS];
    uint32_t max_limit_hits; // policy steps in a row; then it is the fail-safe
    int64_t period_ns;       // of a policy step
    uint32_t substeps;       // control ticks in it, at least 1
    int64_t start_ns;        // the time at the start
    uint32_t actions_per_chunk; // rows of a chunk that are used
    td_edge_aggregate aggregate;
    td_edge_blend_fn blend;         // of a CUSTOM aggregate
    td_edge_blend_all_fn blend_all; // of one, instead
    void *blend_user;
    td_edge_trim trim;
    td_edge_ask_settings ask;   // its period is the step's
    double rate_hz, rate_phase; // hz 0: no limit
    uint32_t priority;          // 0 is the highest
    float urgency;              // 0 to 1
    int64_t max_action_age_ns;
    uint32_t warn_after_empty_ticks;
    uint64_t boot;
    uint64_t route;
    uint64_t episode; // the first
} td_edge_core_settings;

// Every channel linear and without limits, holding when there is nothing to
// play; asks at half a chunk. For tests and simulations to begin with.
void td_edge_core_settings_plain(uint32_t channels, int64_t period_ns,
                                 td_edge_core_settings *ret_settings);

// Answers that belong to no observation on its way, by why they were dropped.
#define TD_EDGE_STRAYS(X)                                                      \
    X(SERVER, "foreign_server")                                                \
    X(BOOT, "foreign_boot")                                                    \
    X(ROUTE, "foreign_route")                                                  \
    X(EPISODE, "foreign_episode")                                              \
    X(SEQ, "unknown_seq") /* answered before, or never sent */                 \
    X(MALFORMED, "malformed")

typedef enum td_edge_stray {
#define TD_EDGE_STRAY_ENUM(name, text) TD_EDGE_STRAY_##name,
    TD_EDGE_STRAYS(TD_EDGE_STRAY_ENUM)
#undef TD_EDGE_STRAY_ENUM
        TD_EDGE_STRAY_COUNT
} td_edge_stray;

const char *td_edge_stray_name(td_edge_stray stray);

// Observations asked for and never handed to the transport, by why.
#define TD_EDGE_SKIPS(X)                                                       \
    X(STALE, "frame_stale")   /* a camera has no new frame */                  \
    X(FAILED, "frame_failed") /* it could not be written */                    \
    X(SIMILAR, "similar")     /* to the last one sent */

typedef enum td_edge_skip {
#define TD_EDGE_SKIP_ENUM(name, text) TD_EDGE_SKIP_##name,
    TD_EDGE_SKIPS(TD_EDGE_SKIP_ENUM)
#undef TD_EDGE_SKIP_ENUM
        TD_EDGE_SKIP_COUNT
} td_edge_skip;

const char *td_edge_skip_name(td_edge_skip skip);

// What a tick sees.
typedef struct td_edge_core_input {
    int64_t now_ns;
    // Another number for each server that is found, so that a quick change is
    // seen; 0: there is none to ask.
    uint64_t connection;
    const float *reading; // the robot's newest state; NULL: none yet
    int64_t read_ns;      // when it was read
    bool driver_down;     // it blocks or fails
} td_edge_core_input;

// What a tick decided.
typedef struct td_edge_step {
    const float *command; // [channels], borrowed until the next tick; or NULL:
                          // nothing was ever commanded, leave the robot be
    const float *wanted;  // the same before the gate
    const td_edge_gate_hits *hits;    // as long; what the gate changed
    td_edge_failsafe_reason failsafe; // NONE: it plays the policy
    bool fresh;                       // plays the policy
    int64_t age_ns;     // fresh: since its observation was captured
    uint32_t substep;   // fresh: which tick of the policy step, from 1
    uint64_t chunk;     // fresh: the seq whose answer the step is of
    uint64_t chunk_row; // fresh: and which row of that answer
    bool starved;       // held though the robot had begun to move
    uint32_t left;      // rows left after this one
    bool ask;           // send an observation
    uint64_t seq;       // its number
    uint64_t again;     // it asks for this one's answer once more; 0: observe
    bool must_go;       // nothing is left, or it is sent again
} td_edge_step;

// What came of an answer.
typedef struct td_edge_answer {
    bool stray;
    td_edge_stray why_stray;
    td_edge_outcome outcome; // when not stray
    td_edge_sent sent;       // when not stray
    uint64_t first;          // when merged: the step of the first row to come
    uint32_t rows;           // from there on
    uint32_t overlap_rows;   // of those, known before
} td_edge_answer;

typedef struct td_edge_core td_edge_core;

// Owned by the caller. INVALID for settings that make no sense, with which.
TD_NODISCARD td_err td_edge_core_new(const td_edge_core_settings *settings,
                                     td_edge_core **ret_core, td_errinfo *info);
void td_edge_core_free(td_edge_core *core);
TD_AUTO_FREE(td_edge_core, td_edge_core_free)

// One control tick. Tick thread; never blocks or allocates.
td_edge_step td_edge_core_tick(td_edge_core *core,
                               const td_edge_core_input *seen);

// Policy steps executed, and the present episode. Any thread.
uint64_t td_edge_core_cursor(const td_edge_core *core);
uint64_t td_edge_core_episode(const td_edge_core *core);

// A server was found: what was measured before was of another. Under the
// lock.
void td_edge_core_connected(td_edge_core *core);

// An observation is about to be handed to the transport. False: its episode is
// over, and it is not to be sent. Under the lock.
TD_NODISCARD bool td_edge_core_sent(td_edge_core *core,
                                    const td_edge_sent *sent);

// An observation that was asked for is not sent: another may be asked for in
// the next step. One that failed counts as a refusal too. Whoever shares the
// lock.
void td_edge_core_skipped(td_edge_core *core, uint64_t seq, td_edge_skip why);

// The transport did not take it after all: it may be asked for again. Under
// the lock.
void td_edge_core_unsent(td_edge_core *core, uint64_t seq);

// Begins the next episode: the robot holds, what was to come is forgotten and
// what is on its way with it. Under the lock. NOMEM.
TD_NODISCARD td_err td_edge_core_reset(td_edge_core *core);

// An answer in the making; borrows the action.
typedef struct td_edge_merge_job {
    const td_wire_action *action;
    int64_t now_ns;
    td_edge_answer answer; // so far
    bool useful;           // it has rows to be joined
    td_edge_chunk chunk;   // those; their data are gone
    td_edge_timeline *next;
} td_edge_merge_job;

// An answer came. `server` is the one that this robot is attached to. Begin and
// end are short, and under the lock that td_edge_core_sent() is called under.
// Between them rows are joined, which runs the user's function: without that
// lock, so that one which takes long delays nobody. Blend fails with NOMEM
// alone; then there is no end. Merge thread.
void td_edge_core_answer_begin(td_edge_core *core, int64_t now_ns,
                               const char *server, const td_wire_action *action,
                               td_edge_merge_job *ret_job);
TD_NODISCARD td_err td_edge_core_answer_blend(const td_edge_core *core,
                                              td_edge_merge_job *job);
td_edge_answer td_edge_core_answer_end(td_edge_core *core,
                                       td_edge_merge_job *job);

// The three in one, for whoever has one thread.
TD_NODISCARD td_err td_edge_core_answer(td_edge_core *core, int64_t now_ns,
                                        const char *server,
                                        const td_wire_action *action,
                                        td_edge_answer *ret_answer);

// Counts an answer that could not even be decoded. Merge thread.
void td_edge_core_malformed(td_edge_core *core);

// Counts, for people and for metrics. The tick's are read with relaxed loads;
// the others under the lock.
typedef struct td_edge_counts {
    uint64_t ticks;
    uint64_t fresh;
    uint64_t starved;
    uint64_t warnings; // starved for warn_after_empty_ticks in a row
    uint64_t failsafes[TD_EDGE_FAILSAFE_REASON_COUNT]; // ticks, by reason
    uint64_t limited[TD_EDGE_GATE_LIMIT_COUNT];        // ticks, by limit
    uint64_t blends_refused;   // rows of the user's function
    uint64_t aggregate_late;   // chunks that it was too late for
    uint64_t aggregate_failed; // and for which it failed
    uint64_t asked;
    uint64_t asked_again; // of those, for an answer once more
    uint64_t skipped[TD_EDGE_SKIP_COUNT];
    uint64_t sent;
    uint64_t outcomes[TD_EDGE_OUTCOME_COUNT];
    uint64_t strays[TD_EDGE_STRAY_COUNT];
    uint32_t left;
    bool warned; // and still starved
} td_edge_counts;

void td_edge_core_counts(const td_edge_core *core, td_edge_counts *ret_counts);

#endif

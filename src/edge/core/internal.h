// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_CORE_INTERNAL_H
#define TD_EDGE_CORE_INTERNAL_H

// What the files of the edge's core share. Private to edge/core/.

#include "base/sync/cacheline.h"
#include "edge/core/core.h"

// The tick's own; others only read the atomics.
typedef struct td_edge_core_tick_state {
    const td_edge_timeline *timeline; // seen last; NULL: none yet
    td_edge_gate gate;
    td_edge_failsafe failsafe;
    td_edge_ask ask;
    td_edge_gate_hits hits;
    float from[TD_WIRE_MAX_CHANNELS];    // the policy's rows: the last one
    float to[TD_WIRE_MAX_CHANNELS];      // and the one under way
    float wanted[TD_WIRE_MAX_CHANNELS];  // before the gate
    float command[TD_WIRE_MAX_CHANNELS]; // after it
    bool began;                          // a row was played
    uint32_t substep;                    // of the row under way; substeps: done
    uint64_t chunk, chunk_row;           // that row's
    td_edge_failsafe_reason reason;
    bool step_limited;           // a limit acted in the step under way
    uint32_t limited_steps;      // in a row
    uint64_t limited_generation; // LIMITS: of the timeline that was too much
    int64_t down_ns;             // the driver was last seen down; 0: never
    bool restart;                // the gate, from a reading after that
    uint32_t empty_ticks;        // in a row
    _Atomic uint64_t asked;
    _Atomic uint64_t cursor;
    _Atomic uint64_t generation; // timelines before this one are done with
    _Atomic uint64_t ticks, fresh, starved, warnings, asked_again;
    _Atomic bool warned;
    _Atomic uint64_t failsafes[TD_EDGE_FAILSAFE_REASON_COUNT];
    _Atomic uint64_t limited[TD_EDGE_GATE_LIMIT_COUNT];
    _Atomic uint32_t left;
} td_edge_core_tick_state;

typedef struct td_edge_core_merge_state {
    td_edge_timeline *current;
    td_edge_timeline *retired; // list, newest first; the tick may be on one
    const td_edge_timeline *blending; // kept for an answer in the making
    td_edge_inflight inflight;
    uint64_t merged_seq; // 0: none yet
    uint32_t chunk_rows; // of the last chunk
    td_edge_latency waits, trips;
    int64_t answered_ns; // when the last answer came
    bool serial;         // the server runs one of ours at a time
    uint64_t blends_refused, aggregate_late, aggregate_failed;
    uint64_t skipped[TD_EDGE_SKIP_COUNT];
    uint64_t strays[TD_EDGE_STRAY_COUNT];
} td_edge_core_merge_state;

struct td_edge_core {
    td_edge_core_settings settings;
    td_edge_blend blend;
    TD_CACHELINE_ALIGNED td_edge_core_tick_state tick;
    TD_CACHELINE_ALIGNED td_edge_core_merge_state merge;
    // From merge to tick.
    TD_CACHELINE_ALIGNED _Atomic(const td_edge_timeline *) published;
    _Atomic uint64_t ended_seq;   // the newest seq that has ended, however
    _Atomic uint64_t skipped_seq; // the newest that was not sent, or in vain
    _Atomic uint32_t refusals;    // in a row
    _Atomic uint32_t below_rows, most_unanswered;
    _Atomic int64_t apart_ns, resend_after_ns;
    _Atomic uint64_t episode;
};

// merge.c: turns what was measured into advice for the tick.
void td_edge_core_advise(td_edge_core *core);

#endif

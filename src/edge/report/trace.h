// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_REPORT_TRACE_H
#define TD_EDGE_REPORT_TRACE_H

// What every tick and every merge did, kept for charts (edge/report/plot.h).
//
// The tick and the merge thread each push into a ring of their own and never
// wait; the session's thread drains both into arrays that grow up to a limit.
// What found no room is counted, so that a chart can say what it does not show.

#include "base/err.h"

#include <stdbool.h>

enum {
    TD_EDGE_TRACE_CHANNELS = 8, // whose values are kept
    TD_EDGE_TRACE_NAME_BYTES = 65,
};

typedef struct td_edge_traced_tick {
    int64_t now_ns;      // when it ran; any clock that only rises
    int64_t lateness_ns; // after it was due
    int64_t select_ns;   // how long choosing the action took
    uint64_t cursor;     // steps executed
    uint64_t asked_seq;  // the observation asked for, where `asked`
    uint32_t left;       // rows left in the queue
    uint8_t limited;     // bit k: channel k was limited
    bool clamped;        // any channel was
    bool asked;
    bool fresh;   // a new row
    bool held;    // the last command again
    bool starved; // held though the robot had begun to move
    float wanted[TD_EDGE_TRACE_CHANNELS];    // NaN: nothing
    float commanded[TD_EDGE_TRACE_CHANNELS]; // read where fresh or held
} td_edge_traced_tick;

typedef struct td_edge_traced_merge {
    int64_t installed_ns; // on the ticks' clock
    uint64_t seq;
    uint64_t first;        // step of the first row that was not past
    uint32_t rows;         // from there on
    uint32_t overlap_rows; // of those, known before: the first ones
    int64_t round_trip_ns; // put -> callback
    int64_t felt_ns;       // capture -> installed
} td_edge_traced_merge;

typedef struct td_edge_trace_config {
    size_t ring_ticks; // room between two drains
    size_t ring_merges;
    size_t max_ticks; // kept: the first so many
    size_t max_merges;
    uint32_t channels; // of the robot
    // [channels], copied and cut to fit; NULL: numbers
    const char *const *names;
} td_edge_trace_config;

// Twenty minutes at 100 Hz: 14 MB.
extern const td_edge_trace_config td_edge_trace_defaults;

typedef struct td_edge_trace td_edge_trace;

// Owned by the caller. INVALID for a ring without room.
TD_NODISCARD td_err td_edge_trace_new(const td_edge_trace_config *config,
                                      td_edge_trace **ret_trace);
void td_edge_trace_free(td_edge_trace *trace);
TD_AUTO_FREE(td_edge_trace, td_edge_trace_free)

// Tick thread only; never blocks or allocates.
void td_edge_trace_tick(td_edge_trace *trace, const td_edge_traced_tick *tick);

// Merge thread only; never blocks or allocates.
void td_edge_trace_merge(td_edge_trace *trace,
                         const td_edge_traced_merge *merge);

// Takes over what was pushed. Session's thread only; allocates.
void td_edge_trace_drain(td_edge_trace *trace);

// What was drained, in order. Borrowed until the next drain.
typedef struct td_edge_traced {
    const td_edge_traced_tick *ticks;
    size_t tick_count;
    const td_edge_traced_merge *merges;
    size_t merge_count;
    uint64_t ticks_dropped; // the ring was full
    uint64_t merges_dropped;
    uint64_t ticks_past_max; // or no memory was left to keep them
    uint64_t merges_past_max;
    uint32_t robot_channels;
    uint32_t channels; // of those, kept: at most TD_EDGE_TRACE_CHANNELS
    const char (*names)[TD_EDGE_TRACE_NAME_BYTES]; // [channels]
} td_edge_traced;

// Session's thread only.
td_edge_traced td_edge_trace_read(const td_edge_trace *trace);

#endif

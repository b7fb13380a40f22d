// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_CORE_TIMELINE_H
#define TD_EDGE_CORE_TIMELINE_H

// The future of one robot: a row of commands for each policy step to come.
//
// A timeline is immutable. Its rows are numbered by the cursor, the count of
// steps that the robot has really executed: row k of a chunk that answers an
// observation taken at cursor c is meant for step c + k. A merge builds the
// next timeline out of the present one and a chunk; where both know a step, the
// two are blended, each channel by its kind.

#include "edge/core/blend.h"

typedef struct td_edge_chunk {
    uint64_t first; // the step of row 0
    uint32_t rows;
    uint32_t past;     // rows before row 0 that the answer had
    const float *data; // [rows x channels], borrowed
} td_edge_chunk;

typedef struct td_edge_timeline td_edge_timeline;
struct td_edge_timeline {
    td_edge_timeline *retired; // next in the list of those to be freed
    uint64_t generation;       // one more than the timeline before
    uint64_t first;            // the step of row 0
    uint32_t rows;
    uint32_t channels;
    int64_t captured_ns;  // the observation of its newest chunk; the core's
    uint64_t seq;         // likewise, its number
    uint64_t chunk_first; // and the step of that answer's first row, mod 2^64
    uint32_t refused;     // rows whose user's function was refused
    td_err blended; // what the user's function of all rows said; TIMEOUT: late
    float data[];
};

// Builds what follows `old` (NULL: nothing yet) from step `cursor` on, which
// neither starts after. Runs the user's function, if there is one. Owned by the
// caller; free with free(). EMPTY if nothing of the chunk lies ahead.
TD_NODISCARD td_err td_edge_timeline_merge(const td_edge_timeline *old,
                                           const td_edge_chunk *chunk,
                                           uint64_t cursor,
                                           const td_edge_blend *blend,
                                           td_edge_timeline **ret_timeline);

// The row of step `cursor`, or NULL. Never blocks. `timeline` may be NULL.
const float *td_edge_timeline_row(const td_edge_timeline *timeline,
                                  uint64_t cursor);

// How many rows are left from step `cursor` on.
uint32_t td_edge_timeline_left(const td_edge_timeline *timeline,
                               uint64_t cursor);

// Frees a list of retired ones; NULL is an empty one.
void td_edge_timeline_free_list(td_edge_timeline *timeline);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_RECORD_ROWS_H
#define TD_EDGE_RECORD_ROWS_H

// Which rows of a recording the control ticks make: one a policy period,
// however many ticks that has.
//
// A policy step that was played is one row: what was seen when it began, and
// the command with which it ended. Ticks that played none make a row for each
// period's worth of them. So no step is in two rows or in none, and rows keep
// to the clock within one period.
//
// Pure, and for the control tick: never blocks, allocates nothing after the
// start.

#include "edge/core/core.h"

// What a tick saw and did.
typedef struct td_edge_rows_tick {
    int64_t now_ns;
    uint32_t missed; // ticks before it that were never run
    uint64_t episode;
    const float *state; // what the policy sees; NULL: not known now
    const td_edge_step *step;
} td_edge_rows_tick;

typedef struct td_edge_row {
    int64_t seen_ns; // its state; its pictures are those that were there
    uint64_t episode;
    uint64_t lost;  // rows before it that are not there
    uint64_t chunk; // the number of the observation that it answers
    uint64_t step;  // and which of its actions this is, from 0
    int64_t age_ns; // since that observation
    bool held;      // no action was played: the three above say nothing
    bool clamped;   // the gate changed what was wanted
    bool failsafe;  // held by the fail-safe, for its limits or its driver
    float values[]; // the state, then the command
} td_edge_row;

typedef struct td_edge_rows td_edge_rows;

// `states` numbers are seen, `channels` are commanded, `substeps` ticks are a
// period. Owned by the caller. INVALID if one is 0, NOMEM.
TD_NODISCARD td_err td_edge_rows_new(uint32_t states, uint32_t channels,
                                     uint32_t substeps,
                                     td_edge_rows **ret_rows);
void td_edge_rows_free(td_edge_rows *rows);
TD_AUTO_FREE(td_edge_rows, td_edge_rows_free)

// Of every row.
size_t td_edge_rows_bytes(const td_edge_rows *rows);

// Takes a tick in. The row that it ends, borrowed until the next call, or NULL.
// Before the first command there is none.
const td_edge_row *td_edge_rows_add(td_edge_rows *rows,
                                    const td_edge_rows_tick *tick);

// There was no room for the row that came last: the next one says so.
void td_edge_rows_lose(td_edge_rows *rows, const td_edge_row *row);

#endif

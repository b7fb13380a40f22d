// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_CORE_BLEND_H
#define TD_EDGE_CORE_BLEND_H

// How two rows of commands become one: where an old and a new chunk both know a
// step, and on the way from one step to the next.
//
// Each channel goes by its kind. All is computed in double, in the order that
// docs/merge.md gives, and rounded to float once, at the end, so that another
// implementation finds the same bits.

#include "base/err.h"
#include "tendon/wire.h"

#include <stdbool.h>

typedef enum td_edge_aggregate {
    TD_EDGE_WEIGHTED_AVERAGE, // 0.3 old + 0.7 new
    TD_EDGE_LATEST_ONLY,      // new
    TD_EDGE_AVERAGE,          // 0.5 old + 0.5 new
    TD_EDGE_CONSERVATIVE,     // 0.7 old + 0.3 new
    TD_EDGE_TEMPORAL,         // from old to new over the overlap
    TD_EDGE_CUSTOM,           // a user's function
} td_edge_aggregate;

// A user's own blend of one step that both chunks know. Rows are [channels],
// borrowed for the call. Called on the merge thread, never on the tick. A row
// that it leaves with a value that is not finite, or with a quaternion of
// length 0, is refused.
typedef void (*td_edge_blend_fn)(void *user, uint64_t step,
                                 const float *old_row, const float *new_row,
                                 uint32_t channels, float *ret_row);

// Steps in a row that both chunks know.
typedef struct td_edge_overlap {
    uint64_t first; // the first step's number
    uint32_t rows;
    uint32_t channels;
    const float *old_rows, *new_rows; // [rows x channels], borrowed
} td_edge_overlap;

// The same for all such steps at once. Called as the other is. Rows are refused
// one by one; when it fails, with TIMEOUT for one that was late, the new rows
// stand.
typedef td_err (*td_edge_blend_all_fn)(void *user,
                                       const td_edge_overlap *overlap,
                                       float *ret_rows);

typedef struct td_edge_blend {
    td_edge_aggregate aggregate;
    uint32_t channels;
    const td_wire_channel_kind *kinds; // [channels], borrowed
    td_edge_blend_fn fn;               // CUSTOM only
    td_edge_blend_all_fn all;          // CUSTOM only, instead of fn
    void *user;                        // for either, borrowed
} td_edge_blend;

// A step among those that both chunks know.
typedef struct td_edge_place {
    uint64_t step;
    uint32_t index;   // from the nearest, 0
    uint32_t overlap; // how many they are
} td_edge_place;

// The share of the new row, 0 to 1. A CUSTOM one's is that of its fallback.
double td_edge_blend_share(td_edge_aggregate aggregate, uint32_t index,
                           uint32_t overlap);

// The row of a step that both chunks know. Quaternions come out with length 1.
// False: the user's function was refused, and the new row stands.
bool td_edge_blend_row(const td_edge_blend *blend, const td_edge_place *place,
                       const float *old_row, const float *new_row,
                       float *ret_row);

// A row that a user's function made. False: it was refused, and is now the new
// one.
bool td_edge_blend_accept(const td_edge_blend *blend, const float *new_row,
                          float *row);

// The row of a step that the new chunk alone knows: the same values, but
// quaternions come out with length 1.
void td_edge_blend_alone(const td_edge_blend *blend, const float *new_row,
                         float *ret_row);

// Substep `i`, 1 to `n`, of the way between two rows; the last is `to`, bit for
// bit. A hold channel is at `to` from the first on. `ret_row` is neither `from`
// nor `to`. Any thread; never blocks.
void td_edge_blend_between(const td_wire_channel_kind *kinds, uint32_t channels,
                           const float *from, const float *to, uint32_t i,
                           uint32_t n, float *ret_row);

#endif

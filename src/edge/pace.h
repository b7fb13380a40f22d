// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_PACE_H
#define TD_EDGE_PACE_H

// How fast answers are read that nobody waits for: what a flood may cost.
//
// Each message takes the next place of a line with one place every 1/hz
// seconds. Whoever is early is told to wait for its place; places that nobody
// took are kept, for at most `burst_ns`.
//
// Pure. Any threads; never blocks or allocates, O(1).

#include <stdatomic.h>
#include <stdint.h>

typedef struct td_edge_pace {
    int64_t interval_ns;
    int64_t burst_ns;
    _Atomic int64_t next_ns; // the place of the next one
} td_edge_pace;

void td_edge_pace_init(td_edge_pace *pace, int64_t hz, int64_t burst_ns);

// The place of a message that came at `now_ns`: in the past, or to be waited
// for before the next one is read.
int64_t td_edge_pace_take(td_edge_pace *pace, int64_t now_ns);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_WORKER_RING_SEGMENTS_H
#define TD_ENGINE_WORKER_RING_SEGMENTS_H

// Files of shared memory in which robots' frames lie, so that a worker can read
// them there (tendon/worker.h).
//
// The transport maps and unmaps those files as robots come and go, and says
// nothing of it: that an address still belongs to the file to which it once did
// is asked of the kernel for every observation. What it does not confirm is
// copied, and looked for.

#include "tendon/wire.h"
#include "tendon/worker.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef struct td_engine_worker_segment {
    uintptr_t begin, end; // in our own memory
    td_worker_segment file;
} td_engine_worker_segment;

// {0} knows none.
typedef struct td_engine_worker_segments {
    td_engine_worker_segment known[TD_WORKER_SEGMENTS]; // number 0: none
    uint64_t numbers;                                   // given so far
    _Atomic uintptr_t wanted; // a frame that lay in none; 0: there was none
} td_engine_worker_segments;

typedef struct td_engine_worker_segments_change {
    uint32_t gone; // bit i: known[i]
    td_engine_worker_segment found;
    bool has_found;
} td_engine_worker_segments_change;

// Where the worker can see each image of `obs` (may be NULL) as item.images has
// it; 0: nowhere. True while the observation's message lives. Not beside
// apply() or forget().
void td_engine_worker_segments_place(td_engine_worker_segments *segments,
                                     const td_worker_hello *hello,
                                     const td_wire_obs *obs,
                                     uint64_t ret_places[TD_WIRE_MAX_IMAGES]);

// Looks for what was wanted, and checks what is known. May take a tenth of a
// millisecond. Not beside apply() or forget().
void td_engine_worker_segments_scan(
    td_engine_worker_segments *segments,
    td_engine_worker_segments_change *ret_change);

// Takes a change over and shows it to the worker. False when there is none.
bool td_engine_worker_segments_apply(
    td_engine_worker_segments *segments,
    const td_engine_worker_segments_change *change, td_worker_offer *offer);

// Another worker: it has mapped nothing.
void td_engine_worker_segments_forget(td_engine_worker_segments *segments);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_WORKER_SUSPECTS_H
#define TD_ENGINE_WORKER_SUSPECTS_H

// Observations that were running when a worker ended, known by their content.
// Pure.
//
// After the first time one is a suspect and runs alone; answered, it is
// cleared, so that those who only shared a batch with the offender are free
// again. After the second time it is guilty and runs no more. The longest
// unseen is forgotten when there are too many.

#include "tendon/wire.h"

#define TD_ENGINE_WORKER_SUSPECTS 64

typedef enum td_engine_worker_standing {
    TD_ENGINE_WORKER_INNOCENT,
    TD_ENGINE_WORKER_SUSPECT,
    TD_ENGINE_WORKER_GUILTY,
} td_engine_worker_standing;

typedef struct td_engine_worker_suspects {
    struct {
        uint64_t hash;
        uint64_t seen; // in order of time; 0: free
        uint32_t strikes;
    } entries[TD_ENGINE_WORKER_SUSPECTS];
    uint64_t now; // counts what was seen
    uint32_t count;
} td_engine_worker_suspects;

// Of all that a model sees: state, pictures, tensors, task and metadata. Not of
// who sent it or when.
uint64_t td_engine_worker_suspects_hash(const td_wire_obs *obs);

td_engine_worker_standing
td_engine_worker_suspects_find(td_engine_worker_suspects *suspects,
                               uint64_t hash);
void td_engine_worker_suspects_strike(td_engine_worker_suspects *suspects,
                                      uint64_t hash);
void td_engine_worker_suspects_clear(td_engine_worker_suspects *suspects,
                                     uint64_t hash);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_WORKER_PREFIX_H
#define TD_ENGINE_WORKER_PREFIX_H

// Prefixes: numbers that stand for what the process keeps of an observation.
//
// Dropping one takes no place among the batches and waits for nobody: its
// number goes into the offer, and the process lets it go when it looks for its
// next batch. Only one that is idle is woken for it, now and then.
//
// With the engine's lock, but for new().

#include "tendon/engine.h"
#include "tendon/worker.h"

#include <stdbool.h>

// Kept by one process, with which it dies.
struct td_engine_prefix {
    uint64_t number;
    uint64_t life;          // whose
    td_engine_prefix *next; // to be dropped
};

// {0} has none.
typedef struct td_engine_worker_prefixes {
    uint64_t numbers;       // given so far; of who fills, without the lock
    uint64_t life;          // counts the processes
    td_engine_prefix *drop; // of this life, and not yet handed to it
    uint64_t dropped;       // handed to it
} td_engine_worker_prefixes;

// One that the process is about to make, for a batch of this life. Owned:
// free(), or prefix_drop(). NULL: no memory. One thread at a time.
td_engine_prefix *
td_engine_worker_prefix_new(td_engine_worker_prefixes *prefixes, uint64_t life);

// Consumes it. `offer` and `hello` are the process' that runs; NULL: none does.
void td_engine_worker_prefix_drop(td_engine_worker_prefixes *prefixes,
                                  td_engine_prefix *prefix,
                                  td_worker_offer *offer,
                                  const td_worker_hello *hello);

// Hands over what is to be dropped, as much as there is room for. Returns
// whether the process has anything left to drop.
bool td_engine_worker_prefix_hand_over(td_engine_worker_prefixes *prefixes,
                                       td_worker_offer *offer,
                                       const td_worker_hello *hello);

// Another process: what the last one kept is gone.
void td_engine_worker_prefix_forget(td_engine_worker_prefixes *prefixes);

#endif

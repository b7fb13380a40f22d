// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_WORKER_SLOTS_H
#define TD_ENGINE_WORKER_SLOTS_H

// The batches on their way, one in each slot of the ring: FREE, WAITING,
// FILLING, RUNNING, and OVER, or WAITING once more for another round.
//
// Who takes a slot further owns it until then: the submitter fills in what is
// asked, whoever fills writes the members, the supervisor reads answers and
// completes. `state` is changed, and these functions are called, with the
// engine's lock.

#include "engine/worker/prefix.h"

#include <stdatomic.h>

typedef enum td_engine_worker_slot_state {
    TD_ENGINE_WORKER_FREE,
    TD_ENGINE_WORKER_WAITING, // for the filler
    TD_ENGINE_WORKER_FILLING,
    TD_ENGINE_WORKER_RUNNING,
    TD_ENGINE_WORKER_OVER, // for the supervisor to complete
} td_engine_worker_slot_state;

// It runs in rounds: those who are no suspects together, then each suspect
// alone.
typedef struct td_engine_worker_slot {
    td_engine_worker_slot_state state;
    td_worker_operation operation;
    uint64_t life;  // of the process that it is written for
    uint64_t order; // of submission
    td_engine_batch *batch;
    td_engine_done done;
    void *user;
    bool has_suspects; // there were some when its filling began
    uint32_t round, rounds;
    uint32_t round_of[TD_ENGINE_MAX_BATCH];
    uint64_t hashes[TD_ENGINE_MAX_BATCH];        // of suspects
    bool pending[TD_ENGINE_MAX_BATCH];           // has no outcome yet
    td_engine_prefix *made[TD_ENGINE_MAX_BATCH]; // until the worker has them
    uint32_t members[TD_ENGINE_MAX_BATCH]; // of the batch, that are in the ring
    uint32_t count;                        // of those
    uint64_t generation;
    int64_t rung_ns;
    bool found_idle;   // nothing else ran then
    _Atomic bool lost; // the process ended while it was being filled
} td_engine_worker_slot;

// {0}: all are free.
typedef struct td_engine_worker_slots {
    td_engine_worker_slot each[TD_WORKER_SLOTS];
    uint64_t submissions; // so far
    uint64_t generation;  // of the newest batch that ran
} td_engine_worker_slots;

// A free one with this batch in it, WAITING; NULL: none is free.
td_engine_worker_slot *td_engine_worker_slots_take(
    td_engine_worker_slots *slots, td_worker_operation operation,
    td_engine_batch *batch, td_engine_done done, void *user);

// The oldest that waits to be filled; NULL: none does.
td_engine_worker_slot *
td_engine_worker_slots_waiting(td_engine_worker_slots *slots);

// Whether any is in use, but for `except`, which may be NULL.
bool td_engine_worker_slots_busy(const td_engine_worker_slots *slots,
                                 const td_engine_worker_slot *except);

// The batch that the process was at when it ended: the one that it said it
// runs, else the oldest; NULL: none ran.
const td_engine_worker_slot *
td_engine_worker_slots_accused(const td_engine_worker_slots *slots,
                               uint64_t running);

// The process is lost: whoever fills a slot is shown it, and those that wait or
// run are OVER, for the caller to complete. Returns how many these are.
size_t
td_engine_worker_slots_lose(td_engine_worker_slots *slots,
                            td_engine_worker_slot *ret_lost[TD_WORKER_SLOTS]);

// Another process is up.
void td_engine_worker_slots_begin(td_engine_worker_slots *slots);

#endif

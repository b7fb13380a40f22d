// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SCHED_SLOTS_H
#define TD_SCHED_SLOTS_H

// Newest-only slots: for each client one request waiting and one running.
//
// A newer observation takes the waiting place of the older one and inherits the
// time since when that client has waited, so that a fast publisher gains
// nothing and a slow one does not starve. Turns go round-robin.
//
// Pure: no clock, no thread, no lock. Payloads are borrowed and handed back
// when they are displaced, run or removed.

#include "base/err.h"

typedef struct td_sched_slots td_sched_slots;

// A request on its way into or out of a slot.
typedef struct td_sched_request {
    void *payload; // NULL: none
    uint64_t seq;
    int64_t arrived_ns;
    int64_t waiting_since_ns; // of the client, inherited
} td_sched_request;

// Room for `capacity` clients. Owned by the caller. INVALID if 0.
TD_NODISCARD td_err td_sched_slots_new(uint32_t capacity,
                                       td_sched_slots **ret_slots);
void td_sched_slots_free(td_sched_slots *slots);
TD_AUTO_FREE(td_sched_slots, td_sched_slots_free)

// Gives a client a slot. FULL if there is none left.
TD_NODISCARD td_err td_sched_slots_add(td_sched_slots *slots,
                                       uint32_t *ret_client);

// Takes the slot back; what waited is handed back (its payload may be NULL).
// The client must not be running: BUSY.
TD_NODISCARD td_err td_sched_slots_remove(td_sched_slots *slots,
                                          uint32_t client,
                                          td_sched_request *ret_waiting);

// Puts a request into the client's waiting place; what waited there before is
// handed back (its payload is NULL if nothing did).
void td_sched_slots_offer(td_sched_slots *slots, uint32_t client,
                          int64_t now_ns, uint64_t seq, void *payload,
                          td_sched_request *ret_displaced);

// Takes what waits, if anything, without running it: for a reset.
void td_sched_slots_clear(td_sched_slots *slots, uint32_t client,
                          td_sched_request *ret_waiting);

// Starts up to `most` waiting requests of clients that have none running, in
// turn. Returns how many.
uint32_t td_sched_slots_next(td_sched_slots *slots, uint32_t most,
                             uint32_t *ret_clients,
                             td_sched_request *ret_requests);

// The client's running request has ended.
void td_sched_slots_done(td_sched_slots *slots, uint32_t client);

uint32_t td_sched_slots_waiting(const td_sched_slots *slots);

#endif

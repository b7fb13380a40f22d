// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SCHED_STRATEGY_ORDER_H
#define TD_SCHED_STRATEGY_ORDER_H

// Waiting requests of one lane, the best first, at any moment.
//
// A kinetic tournament: each match remembers until when its result holds, and
// as time passes only those that may have turned are played again, with those
// above them whose winner is another now or has another rank. So a
// score that grows with age and cadence costs a decision a logarithm, not a
// walk over everybody. Where nothing is scored, a heap is enough.
//
// Pure; room is made once. The time must not go back, and the policy's strategy
// must not change while anybody is in.

#include "sched/strategy/heap.h"
#include "sched/strategy/strategy.h"

#define TD_SCHED_NOBODY UINT32_MAX

// A leaf is one request; a match is the better of the two below, with where it
// ranks, so that a match is played by looking at two neighbours alone.
typedef struct td_sched_order_match {
    _Alignas(64) td_sched_rank rank; // the winner's, but until nothing turns
    int64_t turn_ns;                 // until when this does not, by their ranks
    uint32_t winner;                 // number, or NOBODY
    uint32_t leaf;                   // the winner's
} td_sched_order_match;

typedef struct td_sched_order {
    const td_sched_policy *policy; // borrowed
    const td_sched_facts *facts;   // borrowed, by number
    int64_t run_ns;                // what the engine takes, as the bands see it
    uint32_t capacity;
    uint32_t count;
    uint32_t width;       // leaves in use now, a power of two
    uint32_t leaves_used; // leaves that were ever given out
    uint32_t free_count;
    td_sched_order_match *matches; // [2 * capacity]: root at 1, leaves at width
    uint32_t *free_leaves;         // [capacity]
    td_sched_heap fixed;           // instead, where nothing is scored
    td_sched_rank first;           // there, of the best
} td_sched_order;

// For at most `capacity` numbers. NOMEM.
TD_NODISCARD td_err td_sched_order_init(td_sched_order *order,
                                        uint32_t capacity,
                                        const td_sched_policy *policy,
                                        const td_sched_facts *facts);
void td_sched_order_done(td_sched_order *order);

// Puts a number in; returns its leaf, by which it is changed and taken out.
uint32_t td_sched_order_put(td_sched_order *order, uint32_t number,
                            int64_t now_ns);

// The facts of the request at that leaf have changed.
void td_sched_order_changed(td_sched_order *order, uint32_t leaf,
                            int64_t now_ns);

// What has changed makes no difference before that time.
void td_sched_order_changes(td_sched_order *order, uint32_t leaf,
                            int64_t at_ns);

void td_sched_order_take(td_sched_order *order, uint32_t leaf, int64_t now_ns);

// The best number at this moment; NOBODY if empty.
uint32_t td_sched_order_best(td_sched_order *order, int64_t now_ns);

// The rank of that one; right after td_sched_order_best() found somebody.
const td_sched_rank *td_sched_order_best_rank(const td_sched_order *order);

// Plays everything again: policy, run_ns or many facts have changed.
void td_sched_order_again(td_sched_order *order, int64_t now_ns);

#endif

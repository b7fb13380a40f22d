// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SCHED_INTERNAL_H
#define TD_SCHED_INTERNAL_H

// What a scheduler is made of; only its own files (sched, submit, next, done,
// ready, lane) include this.
//
// A request that waits is in one place: READY in the order of its lane; HELD
// while its slot runs another or, with ROUND_ROBIN, behind an older one of its
// member; BACKOFF before a retry; PICKED while a batch is formed. A lane is
// what may share a batch, in a tier.

#include "sched/sched.h"
#include "sched/strategy/heap.h"
#include "sched/strategy/order.h"

typedef enum td_sched_place {
    TD_SCHED_FREE,
    TD_SCHED_READY,
    TD_SCHED_HELD,
    TD_SCHED_BACKOFF,
    TD_SCHED_PICKED,
    TD_SCHED_STARTED,
} td_sched_place;

typedef struct td_sched_entry {
    td_sched_place place;
    td_sched_request request;
    td_sched_item item;       // as it came
    uint32_t mix, tier, lane; // while it waits or runs
    uint32_t leaf;            // READY
    uint32_t before, after;   // in its member's list or, FREE, in the free list
    uint32_t generation;      // of its ticket
    uint32_t attempts;
    int64_t patient_ns; // its place's: then its member starves
} td_sched_entry;

typedef struct td_sched_slot { // of a member
    td_sched_member member;
    bool used;
    uint32_t mix; // of its last
    uint32_t running;
    uint32_t oldest, newest; // that wait
    int64_t expected_ns;     // its client's next, by its cadence
    int64_t answered_ns;     // with nothing left to do; NEVER
    int64_t return_ns;       // from then to its next, on average; 0: not known
    int64_t return_off_ns;   // by which that was off, on average
    uint32_t starves_in;     // a tier; TD_SCHED_MAX_TIERS: it does not
    uint64_t turn;           // when one of its was last started, or it joined
} td_sched_slot;

typedef struct td_sched_mix {
    uint64_t mix;
    uint32_t model;
    uint32_t waiting; // 0: may be given to another
} td_sched_mix;

typedef struct td_sched_lane {
    td_sched_order order;
    uint32_t model;
    uint32_t tier;
    uint32_t due; // of those in the order, how many have a deadline
} td_sched_lane;

typedef struct td_sched_model {
    td_sched_batch_rule rule;
    td_sched_batch_times times;
    int64_t run_ns;         // of one, as the orders see it
    uint64_t turn;          // of its last batch
    td_sched_heap arriving; // members that do not wait, by their next
} td_sched_model;

struct td_sched {
    td_sched_settings settings;
    td_sched_policy policy;
    int64_t now_ns;
    int64_t batch_wake_ns; // a batch that waits for more starts
    int64_t expiry_ns;     // nothing that queues expires before
    uint64_t last_order, last_start, last_turn, last_round;
    double credit;  // of who starves; 1 is a run
    uint32_t tiers; // lanes of each mix
    uint32_t capacity, first_free;
    uint64_t lanes_in_use; // a bit for each that has READY ones
    td_sched_counts counts;
    td_sched_entry *entries; // [capacity]
    td_sched_facts *facts;   // [capacity]
    uint32_t *sorted;        // [capacity], for td_sched_use
    td_sched_slot *slots;    // [members]
    td_sched_model *models;  // [models]
    td_sched_mix *mixes;     // [mixes]
    td_sched_lane *lanes;    // [tiers x mixes], the first tier's first
    td_sched_heap patient;   // members whose oldest can run, by patient_ns
    // Those for whom it is over, by their turns, in the tier of that one.
    td_sched_heap starving[TD_SCHED_MAX_TIERS];
    td_sched_heap useless_at;  // what waits, by when it will be useless
    td_sched_heap backing_off; // by the time of the retry
    td_sched_queue *queue;     // queued ones that wait, by tier
};

// Time only goes forward.
int64_t td_sched_ready_now(td_sched *sched, int64_t now_ns);

// The tier that an item would wait in.
uint32_t td_sched_ready_tier_for(const td_sched *sched,
                                 const td_sched_item *item);

// When the member's next is expected now.
void td_sched_ready_expect(td_sched *sched, uint32_t member,
                           int64_t expected_ns);

// The member's next has arrived; or all of its are done, and the next is
// expected to have arrived as long after as those before did, and their spread.
void td_sched_ready_arrived(td_sched *sched, uint32_t member);
void td_sched_ready_answered(td_sched *sched, uint32_t member);

// Begins to wait: into its member's list, the queue, the expiry. Its item,
// request and order are set; what follows from them is set here.
void td_sched_ready_wait(td_sched *sched, uint32_t number);
// Out of all of them. A retry that it waits for stays set.
void td_sched_ready_stop_waiting(td_sched *sched, uint32_t number);

// Puts what waits where it belongs: READY or HELD.
void td_sched_ready_place(td_sched *sched, uint32_t number);

// Out of the order, to be started or put back. With ROUND_ROBIN whoever it held
// is let go meanwhile.
void td_sched_ready_pick(td_sched *sched, uint32_t number);
void td_sched_ready_unpick(td_sched *sched, uint32_t number);

// Finds or makes the member's kind of batch; NOBODY if there is no room for
// another.
uint32_t td_sched_ready_mix(td_sched *sched, uint32_t member, uint64_t mix);

// What waits ends under this name; its number is free again.
void td_sched_ready_end(td_sched *sched, uint32_t number,
                        td_sched_outcome outcome, td_sched_ended *ret_ended);
void td_sched_ready_free(td_sched *sched, uint32_t number);

// Into the order of its lane: READY; and out of it, to be HELD or PICKED.
void td_sched_lane_put(td_sched *sched, uint32_t number);
void td_sched_lane_take(td_sched *sched, uint32_t number, td_sched_place place);

// Whose patience is over starves from now on.
void td_sched_lane_find_starving(td_sched *sched);

// Of those in these lanes, of one tier, the oldest request of the member that
// starves and was served longest ago; NOBODY.
uint32_t td_sched_lane_starving(const td_sched *sched, uint64_t lanes);

// The member's oldest is another, or has moved.
void td_sched_lane_watch(td_sched *sched, uint32_t member);

#endif

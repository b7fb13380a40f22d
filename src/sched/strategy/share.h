// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SCHED_STRATEGY_SHARE_H
#define TD_SCHED_STRATEGY_SHARE_H

// Fair shares of the device among the clients of a tier.
//
// Each client has a tag: the device time that it was given. One may be ahead of
// the least served that waits by a few runs, so that deadlines decide from one
// moment to the next; further ahead it has to let the others go first, so that
// in the long run everybody who waits gets the same. Who comes back after a
// pause starts level with the least served: time not used is not saved up.
//
// Pure; room is made once.

#include "sched/strategy/heap.h"

#define TD_SCHED_MAX_TIERS 8

typedef struct td_sched_share {
    uint32_t clients;
    uint32_t tiers;
    uint32_t runs;       // that one may be ahead; 0: shares do not count
    int64_t mean_run_ns; // what a request costs, as a moving average
    int64_t floors_ns[TD_SCHED_MAX_TIERS];     // the least served that waits
    td_sched_heap waiting[TD_SCHED_MAX_TIERS]; // clients by tag
    int64_t *tags_ns;                          // [tiers][clients]
    uint32_t *counts;                          // [tiers][clients] that wait
} td_sched_share;

// NOMEM.
TD_NODISCARD td_err td_sched_share_init(td_sched_share *share, uint32_t clients,
                                        uint32_t tiers, uint32_t runs);
void td_sched_share_done(td_sched_share *share);

// One more request of the client can run, or one less.
void td_sched_share_waits(td_sched_share *share, uint32_t tier,
                          uint32_t client);
void td_sched_share_leaves(td_sched_share *share, uint32_t tier,
                           uint32_t client);

// The client was given device time; negative to give some back.
void td_sched_share_charge(td_sched_share *share, uint32_t tier,
                           uint32_t client, int64_t device_ns);

// What the client was given until now does not put it ahead: nobody was kept
// waiting by it.
void td_sched_share_forgive(td_sched_share *share, uint32_t tier,
                            uint32_t client);

// What one request really cost.
void td_sched_share_measured(td_sched_share *share, int64_t device_ns);

// The client is gone; its number may be given to another.
void td_sched_share_forget(td_sched_share *share, uint32_t client);

static inline int64_t td_sched_share_tag_ns(const td_sched_share *share,
                                            uint32_t tier, uint32_t who)
{
    return share->tags_ns[(size_t)tier * share->clients + who];
}

// How far a tag may go at this moment.
int64_t td_sched_share_limit_ns(td_sched_share *share, uint32_t tier);

// Whether the client is further than that. The limit that is known can only
// have risen, so that it is seldom looked for.
static inline bool td_sched_share_ahead(td_sched_share *share, uint32_t tier,
                                        uint32_t who)
{
    int64_t tag_ns = td_sched_share_tag_ns(share, tier, who);
    int64_t most_ns = share->runs * share->mean_run_ns;
    return tag_ns > share->floors_ns[tier] + most_ns &&
           tag_ns > td_sched_share_limit_ns(share, tier);
}

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SCHED_QUEUE_H
#define TD_SCHED_QUEUE_H

// The rules of request and reply, where every request is answered or told why
// not: how many wait, for how long, who goes when there is no room, how often
// a failed one is tried again.
//
// Keeps requests, by number, in the order of their arrival within each tier;
// it does not decide who runs. Pure; room is made once.

#include "base/err.h"

#include <stdbool.h>

#define TD_SCHED_OVERFLOWS(X)                                                  \
    X(DROP_OLDEST, "drop_oldest") /* of the lowest tier, where tiered */       \
    X(REJECT_NEWEST, "reject_newest")

typedef enum td_sched_overflow {
#define TD_SCHED_OVERFLOW_ENUM(name, text) TD_SCHED_##name,
    TD_SCHED_OVERFLOWS(TD_SCHED_OVERFLOW_ENUM)
#undef TD_SCHED_OVERFLOW_ENUM
        TD_SCHED_OVERFLOW_COUNT
} td_sched_overflow;

const char *td_sched_queue_overflow_name(td_sched_overflow overflow);

// NOTFOUND.
TD_NODISCARD td_err
td_sched_queue_overflow_find(const char *name, td_sched_overflow *ret_overflow);

typedef struct td_sched_queue_settings {
    uint32_t size;  // that wait: 1000
    int64_t ttl_ns; // since they came: 5 s
    td_sched_overflow overflow;
    uint32_t retries;   // 0
    int64_t backoff_ns; // before the first, doubled for each more: 10 ms
} td_sched_queue_settings;

#define TD_SCHED_QUEUE_DEFAULTS                                                \
    {.size = 1000,                                                             \
     .ttl_ns = 5000000000,                                                     \
     .overflow = TD_SCHED_DROP_OLDEST,                                         \
     .retries = 0,                                                             \
     .backoff_ns = 10000000}

// How long the n-th retry (from 1) waits.
int64_t td_sched_queue_backoff_ns(const td_sched_queue_settings *settings,
                                  uint32_t attempt);

typedef struct td_sched_queue_links {
    uint32_t before, after; // NOBODY at the ends
    uint64_t order;
} td_sched_queue_links;

typedef struct td_sched_queue {
    uint32_t tiers;
    uint32_t count;
    td_sched_queue_links *links; // by number
    struct {
        uint32_t oldest, newest;
    } ends[]; // by tier
} td_sched_queue;

// For the numbers below `capacity`. Owned by the caller. NOMEM.
TD_NODISCARD td_err td_sched_queue_new(uint32_t capacity, uint32_t tiers,
                                       td_sched_queue **ret_queue);
void td_sched_queue_free(td_sched_queue *queue);
TD_AUTO_FREE(td_sched_queue, td_sched_queue_free)

// By order of arrival: a request that is tried again takes its old place.
void td_sched_queue_put(td_sched_queue *queue, uint32_t number, uint32_t tier,
                        uint64_t order);
void td_sched_queue_take(td_sched_queue *queue, uint32_t number, uint32_t tier);

// Who goes to make room for a newcomer of this tier: the oldest of the lowest
// tier. NOBODY if all that wait are of a higher tier than the newcomer.
uint32_t td_sched_queue_victim(const td_sched_queue *queue, uint32_t tier);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SCHED_PREFIXES_H
#define TD_SCHED_PREFIXES_H

// Which prefixes an engine keeps: one for each (client, model), within bounded
// bytes, and served only for the very observation that it was made from.
//
// Accounting alone: a handle is opaque and borrowed. Each that was kept comes
// out of the book exactly once, and who takes it out frees it. One that is in
// use stays in memory until it is released.
//
// Pure: no clock, no thread, no lock; room is made once.

#include "base/err.h"

#include <stdbool.h>

// What a prefix was made from.
typedef struct td_sched_prefix_ident {
    uint64_t version; // of the policy
    uint64_t boot, episode, seq;
} td_sched_prefix_ident;

// Why one came out of the book.
#define TD_SCHED_PREFIX_ENDS(X)                                                \
    X(REPLACED, "replaced") /* by a newer one of the same member */            \
    X(AGED, "aged")         /* not used for too long */                        \
    X(EVICTED, "evicted")   /* its bytes were needed */                        \
    X(RESET, "reset")       /* its episode or its client ended */

typedef enum td_sched_prefix_end {
#define TD_SCHED_PREFIX_END_ENUM(name, text) TD_SCHED_PREFIX_##name,
    TD_SCHED_PREFIX_ENDS(TD_SCHED_PREFIX_END_ENUM)
#undef TD_SCHED_PREFIX_END_ENUM
        TD_SCHED_PREFIX_END_COUNT
} td_sched_prefix_end;

const char *td_sched_prefixes_end_name(td_sched_prefix_end end);

typedef struct td_sched_prefixes_counts {
    uint64_t kept, ends[TD_SCHED_PREFIX_END_COUNT]; // kept = present + ends
    uint64_t hits, misses;
    uint64_t refused; // too large, or everything else was in use
    uint64_t present, bytes;
} td_sched_prefixes_counts;

typedef struct td_sched_prefixes td_sched_prefixes;

// For the members below `capacity`, together at most `most_bytes`; one that was
// not used for `age_ns` may go. Owned by the caller. INVALID if any is 0.
TD_NODISCARD td_err td_sched_prefixes_new(uint32_t capacity,
                                          uint64_t most_bytes, int64_t age_ns,
                                          td_sched_prefixes **ret_prefixes);
void td_sched_prefixes_free(td_sched_prefixes *prefixes);
TD_AUTO_FREE(td_sched_prefixes, td_sched_prefixes_free)

// Takes out what must be freed before `bytes` more fit: what is too old, then
// what was used longest ago. NULL: nothing is left to take; call until then.
void *td_sched_prefixes_evict(td_sched_prefixes *prefixes, int64_t now_ns,
                              uint64_t bytes);

// Enters a prefix; the member's older one comes out in ret_replaced (NULL:
// none, or it is in use and comes out when released). LIMIT if it does not fit
// (evict first): it stays the caller's.
TD_NODISCARD td_err td_sched_prefixes_keep(td_sched_prefixes *prefixes,
                                           uint32_t number, int64_t now_ns,
                                           const td_sched_prefix_ident *ident,
                                           void *handle, uint64_t bytes,
                                           void **ret_replaced);

// The member's prefix, in use from now on: release it after. NULL: none of that
// version, boot, episode and seq, or it is in use already.
void *td_sched_prefixes_use(td_sched_prefixes *prefixes, uint32_t number,
                            const td_sched_prefix_ident *ident);

// No longer in use. Returns the handle if it has to be freed now, else NULL.
void *td_sched_prefixes_release(td_sched_prefixes *prefixes, uint32_t number,
                                int64_t now_ns);

// Takes the member's prefix out: a new episode or boot, or it left. NULL: none,
// or it is in use and comes out when released.
void *td_sched_prefixes_reset(td_sched_prefixes *prefixes, uint32_t number);

void td_sched_prefixes_count(const td_sched_prefixes *prefixes,
                             td_sched_prefixes_counts *ret_counts);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_CORE_INFLIGHT_H
#define TD_EDGE_CORE_INFLIGHT_H

// What was sent and how each of it ended.
//
// A bounded ring of observations on their way. Each ends in exactly one named
// outcome; an entry that a later one overwrites before it ended is
// `unanswered`. Answers may come in any order, and each keeps its own round
// trip.
//
// Pure. The publisher and the merge thread share it under the link's lock.

#include "base/err.h"

#include <stdbool.h>

#define TD_EDGE_INFLIGHT_MAX 256

// The ends of an observation that was sent. PENDING: it has not ended yet.
#define TD_EDGE_OUTCOMES(X)                                                    \
    X(PENDING, "pending")                                                      \
    X(MERGED, "merged")                                                        \
    X(SUPERSEDED, "superseded") /* the server took a newer one */              \
    X(REFUSED, "refused")       /* the server answered with an error */        \
    X(TOO_OLD, "too_old")       /* beyond max_action_age */                    \
    X(EXPIRED, "expired")       /* every row was past */                       \
    X(MISSHAPEN, "misshapen")   /* not rows x this robot's channels */         \
    X(NOT_FINITE, "not_finite") /* a value that is not a number */             \
    X(OVERTAKEN, "overtaken")   /* a newer answer was merged before */         \
    X(RESET, "reset")           /* its episode is over */                      \
    X(UNSENT, "unsent")         /* the transport took it not */                \
    X(UNANSWERED, "unanswered") /* fell out of the ring */

typedef enum td_edge_outcome {
#define TD_EDGE_OUTCOME_ENUM(name, text) TD_EDGE_##name,
    TD_EDGE_OUTCOMES(TD_EDGE_OUTCOME_ENUM)
#undef TD_EDGE_OUTCOME_ENUM
        TD_EDGE_OUTCOME_COUNT
} td_edge_outcome;

const char *td_edge_outcome_name(td_edge_outcome outcome);

typedef struct td_edge_sent {
    uint64_t seq;
    uint64_t episode;
    uint64_t cursor;     // when the state was read
    int64_t captured_ns; // when the state was read
    int64_t put_ns;      // when it was handed to the transport
    uint64_t again;      // it only asks for this one's answer; 0: it observes
    bool repeated;       // its answer was asked for again
} td_edge_sent;

typedef struct td_edge_inflight {
    td_edge_sent entries[TD_EDGE_INFLIGHT_MAX]; // by seq, 0: free
    uint64_t sent;
    uint64_t outcomes[TD_EDGE_OUTCOME_COUNT]; // sum = sent
} td_edge_inflight;

// Seqs start at 1 and grow. The one that it asks for again is `repeated`.
void td_edge_inflight_send(td_edge_inflight *inflight,
                           const td_edge_sent *sent);

// Whether `seq` is on its way, and what was sent.
bool td_edge_inflight_find(const td_edge_inflight *inflight, uint64_t seq,
                           td_edge_sent *ret_sent);

// `seq` has ended so; nothing happens if it is not on its way.
void td_edge_inflight_end(td_edge_inflight *inflight, uint64_t seq,
                          td_edge_outcome outcome);
void td_edge_inflight_end_all(td_edge_inflight *inflight,
                              td_edge_outcome outcome);

// When the oldest on its way was captured of those after seq `after` up to
// `upto`; `otherwise_ns` if there is none.
int64_t td_edge_inflight_oldest(const td_edge_inflight *inflight,
                                uint64_t after, uint64_t upto,
                                int64_t otherwise_ns);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_PACING_RATE_H
#define TD_EDGE_PACING_RATE_H

// The token clock that keeps a granted rate on average.
//
// One token is one observation published, a resent one too, so that overload
// cannot feed itself. The next token is there at TAT; taking one sets
//     TAT = max(TAT, now - tolerance) + 1/rate
// so that any window of length W holds at most 1 + (W + tolerance) * rate
// tokens. A tolerance of at least one control period keeps the average at the
// rate though tokens are only taken at ticks. Without it every take rounds up.
//
// Pure. One thread; never blocks or allocates, O(1). Times lie within 2^61 ns.

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct td_edge_rate {
    int64_t interval_ns; // 1/rate; 0: unlimited
    int64_t tolerance_ns;
    int64_t tat_ns;   // when the next token is there
    int64_t taken_ns; // when the last one was taken
    double hz, phase;
} td_edge_rate;

// `hz` 0 is unlimited. `phase` is 0 to 1, the part of 1/hz after `now_ns` at
// which the first token is there: robots that share a server get one each. A
// rate below one in 2^60 ns counts as that. INVALID.
TD_NODISCARD td_err td_edge_rate_init(td_edge_rate *rate, double hz,
                                      double phase, int64_t tolerance_ns,
                                      int64_t now_ns);

// A new grant. The same one again changes nothing; another begins at its phase,
// no sooner than 1/hz after the last token, whatever was saved up. INVALID, and
// the old one stays.
TD_NODISCARD td_err td_edge_rate_set(td_edge_rate *rate, double hz,
                                     double phase, int64_t now_ns);

bool td_edge_rate_allows(const td_edge_rate *rate, int64_t now_ns);

// Only when td_edge_rate_allows().
void td_edge_rate_take(td_edge_rate *rate, int64_t now_ns);

#endif

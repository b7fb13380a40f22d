// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_PACING_LATENCY_H
#define TD_EDGE_PACING_LATENCY_H

// How long answers take: the distribution over a sliding window.
//
// Two are measured and never mixed: put -> callback (the transport) and
// capture -> installed (what the robot feels). The first answer of each
// connection is a cold start (a model that compiles, a route that is set up)
// and stays out of every estimate.
//
// A rare quantile cannot be read from a window: 0.1 % of 1,024 samples is one.
// td_edge_latency_bound() takes the largest twentieth (at least 4) and fits an
// exponential tail to it, with the tail's scale at its upper confidence bound:
//     u + s (1 + 1/sqrt(k)) ln(k / (n miss))
// where u is the largest sample below the tail's k, s their mean excess over u
// and n the samples there are. It is at most as far beyond the largest sample
// as that tail says of n samples, s (1 + 1/sqrt(k)) ln(1 / (n miss)), so that
// two humps are not taken for a long tail; and never below the largest of the
// last 16, so that one slow answer is enough to believe in slow ones. Of fewer
// than 8 samples it is 1 + 8/n times the largest.
//
// Pure. One thread (the merge's), or under its lock; never allocates,
// O(window).

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define TD_EDGE_LATENCY_WINDOW 1024

typedef struct td_edge_latency {
    bool warm;       // an answer came on this connection
    int64_t cold_ns; // what it took; 0: none came
    uint32_t size;   // samples in the window
    uint32_t next;   // where the next one goes
    int64_t samples[TD_EDGE_LATENCY_WINDOW]; // by arrival, a ring
    int64_t sorted[TD_EDGE_LATENCY_WINDOW];  // the same, smallest first
    int64_t late_ns; // the longest of late: falls by a sixteenth a sample
} td_edge_latency;

void td_edge_latency_init(td_edge_latency *latency);

// Another connection: what was measured was of another server or another way to
// it. The next sample is a cold start.
void td_edge_latency_reconnect(td_edge_latency *latency);

// Whether it entered the estimates; false: it was a cold start.
bool td_edge_latency_add(td_edge_latency *latency, int64_t took_ns);

// The sample at `quantile` (0 to 1) of the window, by nearest rank; 0 when
// empty.
int64_t td_edge_latency_quantile(const td_edge_latency *latency,
                                 double quantile);

// Of the window, each sample cut at four times the median, so that one long
// silence does not make it; 0 when empty.
int64_t td_edge_latency_mean(const td_edge_latency *latency);

// What an answer exceeds with a probability of at most `miss` (above 0), as far
// as the window tells. Samples and result are cut at `cap_ns`; 0 when empty.
int64_t td_edge_latency_bound(const td_edge_latency *latency, double miss,
                              int64_t cap_ns);

// The delay of real-time chunking in steps: those that began while `took_ns`
// went by, but not more than were really executed.
uint32_t td_edge_latency_steps(int64_t took_ns, int64_t period_ns,
                               uint64_t executed);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_NET_INPROC_INPROC_H
#define TD_NET_INPROC_INPROC_H

// A deterministic transport inside one process.
//
// A hub is the network; each session on it is a machine. What is put is
// delivered later, in order of (due time, order of sending), by whoever drives
// the hub: td_net_hub_run_until() on a virtual clock, where the same seed gives
// the same run to the byte, or a thread of the hub's own on the real clock,
// where ThreadSanitizer can look at the shells that use it.

#include "base/clock.h"
#include "net/net.h"

typedef struct td_net_hub td_net_hub;

// What one direction between two sessions does to messages. Probabilities are 0
// to 1 and drawn from the hub's seed. A reliable message is delayed but never
// lost, doubled or reordered, as on a link that retransmits.
typedef struct td_net_faults {
    int64_t delay_ns;
    int64_t jitter_ns; // uniform, added to delay_ns
    double loss;
    double duplicate;
    double reorder; // chance that a message takes one jitter more, or 1 ms
} td_net_faults;

// A hub driven by run_until. Borrows the clock.
TD_NODISCARD td_err td_net_hub_new(td_clock_virtual *clock, uint64_t seed,
                                   td_net_hub **ret_hub);

// A hub with a delivering thread of its own, on CLOCK_MONOTONIC.
TD_NODISCARD td_err td_net_hub_new_threaded(uint64_t seed,
                                            td_net_hub **ret_hub);

// All its sessions must be closed.
void td_net_hub_free(td_net_hub *hub);
TD_AUTO_FREE(td_net_hub, td_net_hub_free)

// Opens a session named `name`, unique in the hub (EXISTS). Owned by the
// caller; close with td_net_close().
TD_NODISCARD td_err td_net_inproc_open(td_net_hub *hub, const char *name,
                                       td_net **ret_net, td_errinfo *info);

// Sets what happens from one session to another, NULL meaning any. Later
// settings win. Any thread. INVALID for what cannot be.
TD_NODISCARD td_err td_net_hub_faults(td_net_hub *hub, const char *from,
                                      const char *to,
                                      const td_net_faults *faults);

// Cuts two sessions off from each other, or joins them again. A cut is a link
// going down: what was on the way is lost and tokens of the far side go; it
// lasts until either closes. Any thread. NOTFOUND if one is not open.
TD_NODISCARD td_err td_net_hub_partition(td_net_hub *hub, const char *a,
                                         const char *b, bool cut);

// When the next delivery is due; false if there is none. Virtual hubs only.
bool td_net_hub_next_due(const td_net_hub *hub, int64_t *ret_at_ns);

// Delivers everything due up to `at_ns`, advancing the clock to each delivery's
// time and at the end to `at_ns`. Virtual hubs only; calls callbacks.
void td_net_hub_run_until(td_net_hub *hub, int64_t at_ns);

typedef struct td_net_hub_stats {
    uint64_t put;       // copies made, one for each subscriber
    uint64_t delivered; // put + duplicated = delivered + lost + cut + waiting
    uint64_t lost;
    uint64_t duplicated;
    uint64_t cut; // on the way, or sent, while partitioned or undeclared
    uint64_t waiting;
} td_net_hub_stats;

void td_net_hub_stats_get(const td_net_hub *hub, td_net_hub_stats *ret_stats);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_NET_CONFORMANCE_CONFORMANCE_H
#define TD_NET_CONFORMANCE_CONFORMANCE_H

// The suite that every transport passes. A transport's test program fills in a
// td_net_fixture and calls td_net_conformance(); the suite knows it by nothing
// else, and asserts on the calling thread only.

#include "net/net.h"

typedef struct td_net_fixture {
    const char *name; // of the group, as printed
    void *state;      // handed to each of the functions below

    // Opens two sessions that reach each other directly, for one test.
    td_err (*open_pair)(void *state, td_net **ret_a, td_net **ret_b);

    // (optional) Called after the suite has closed both.
    void (*close_pair)(void *state);

    // Lets messages travel until predicate(user) holds; true if it came to
    // hold. Calls the predicate on the calling thread, over and over, and gives
    // up only after a time in which a working transport cannot fail.
    bool (*until)(void *state, bool (*predicate)(void *user), void *user);

    // (optional) Whether this session lends places for large messages to the
    // other. Without it, none does.
    bool (*lends)(const td_net *net);
} td_net_fixture;

// An `until` for transports that move by themselves: polls for ten seconds.
bool td_net_conformance_poll(void *state, bool (*predicate)(void *user),
                             void *user);

// Runs the suite as one cmocka group; returns how many tests failed.
int td_net_conformance(const td_net_fixture *fixture);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_NET_ZENOH_TESTING_H
#define TD_NET_ZENOH_TESTING_H

// What the tests of the Zenoh transport share: endpoints that are free,
// sessions, and messages sent and checked. All of it asserts, on the test's
// thread.

#include "net/zenoh/zenoh.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>

#include <cmocka.h>

#define TD_ZTEST_KEY "test/zenoh/obs"

typedef struct td_ztest_endpoint {
    char text[128];
    const char *list[1]; // of itself, as a configuration takes it
} td_ztest_endpoint;

typedef struct td_ztest_unix {
    td_ztest_endpoint at;
    char dir[32];
    char socket[64];
    char lock[80];
} td_ztest_unix;

// What a subscriber has got: how many, and the newest.
typedef struct td_ztest_inbox {
    td_net_decl *decl;
    _Atomic(td_net_msg *) msg;
    atomic_int count;
    atomic_bool whole;
} td_ztest_inbox;

bool td_ztest_until(bool (*predicate)(void *user), void *user);

// A port that was free a moment ago.
void td_ztest_tcp(td_ztest_endpoint *ret_endpoint);

// A socket's path in a directory of its own.
void td_ztest_unix_init(td_ztest_unix *dir);
void td_ztest_unix_done(td_ztest_unix *dir);

td_net_zenoh_config td_ztest_listening(td_net_zenoh_mode mode,
                                       td_ztest_endpoint *at);
td_net_zenoh_config td_ztest_connecting(td_net_zenoh_mode mode,
                                        td_ztest_endpoint *at);
td_net *td_ztest_open(td_net_zenoh_config config);

td_net_pub *td_ztest_publish(td_net *net);
void td_ztest_inbox_open(td_ztest_inbox *box, td_net *net);
void td_ztest_inbox_close(td_ztest_inbox *box);

// Predicates: of a td_net_pub, and of an atomic_int that is not 0.
bool td_ztest_is_matched(void *user);
bool td_ztest_is_set(void *user);

// `size` bytes that depend on where they stand. Freed by the caller.
uint8_t *td_ztest_pattern(size_t size);

// Sends `size` bytes (21 at least) in three parts and checks what comes out.
void td_ztest_send(td_net_pub *pub, td_ztest_inbox *box, size_t size);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_NET_CONFORMANCE_WORLD_H
#define TD_NET_CONFORMANCE_WORLD_H

// What the tests of the suite share: two open sessions, a recorder that
// callbacks write into from any thread, and ways to wait for it. Everything
// here but the callbacks is for the test's own thread, and asserts.

#include "net/conformance/conformance.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
// clang-format off: cmocka wants the four before it
#include <cmocka.h>
// clang-format on

typedef void (*td_conf_test)(void **state);

typedef struct td_conf_world {
    const td_net_fixture *fixture;
    td_net *a, *b; // NULL once a test has closed one
    td_conf_test test;
    bool passed; // or skipped; a failed test leaves its sessions as they are
} td_conf_world;

// One test with a world of its own, as a row of a cmocka group.
#define TD_CONF_TEST(name, test)                                               \
    {name, td_conf_run, td_conf_setup, td_conf_teardown, (void *)(test)}

int td_conf_setup(void **state);
void td_conf_run(void **state);
int td_conf_teardown(void **state);

// Ends a test that does not concern this transport; it has left nothing
// declared. Does not return.
void td_conf_skip(td_conf_world *world);

// Which transport the tests that follow are for.
void td_conf_use(const td_net_fixture *fixture);

// Closes both sessions, if they are open, and what is behind them.
void td_conf_world_close(td_conf_world *world);
TD_NODISCARD td_err td_conf_world_open(td_conf_world *world);

typedef struct td_conf_event {
    char key[64];   // or a link's peer
    char text[64];  // the beginning of the payload, NUL-terminated
    size_t size;    // of the whole payload
    size_t head;    // of what was at hand
    bool whole, up; // up: also alive
} td_conf_event;

#define TD_CONF_MAX_EVENTS 256
#define TD_CONF_MAX_HELD 8

typedef struct td_conf_recorder {
    int64_t slow_ns; // how long on_sample takes; set before it is used
    bool keep;       // on_sample keeps messages; likewise

    pthread_mutex_t lock; // guards everything below
    td_conf_event events[TD_CONF_MAX_EVENTS];
    size_t count;         // of all events, those that found no room too
    size_t entered, left; // callbacks
    size_t done;
    size_t released;
    td_net_msg *kept[TD_CONF_MAX_HELD];
    size_t kept_count;
    td_net_request *requests[TD_CONF_MAX_HELD];
    size_t request_count;
    td_net_decl *decl; // what on_sample tries to undeclare
    td_err undeclared; // how that ended
} td_conf_recorder;

void td_conf_recorder_init(td_conf_recorder *rec);

// Frees what was kept; nothing may call into the recorder any more.
void td_conf_recorder_done(td_conf_recorder *rec);

// Callbacks; `user` is the recorder.
void td_conf_on_sample(void *user, const td_net_sample *sample);
void td_conf_on_request(void *user, td_net_request *request);
void td_conf_on_done(void *user);
void td_conf_on_alive(void *user, const char *key, bool alive);
void td_conf_on_link(void *user, const td_net_link *link);
void td_conf_on_release(void *user);

size_t td_conf_count(td_conf_recorder *rec);
size_t td_conf_done(td_conf_recorder *rec);
td_conf_event td_conf_at(td_conf_recorder *rec, size_t index);

// The oldest request that was recorded, now the caller's; NULL if none.
td_net_request *td_conf_take_request(td_conf_recorder *rec);

// A reliable publisher, and a put of text.
td_net_pub *td_conf_publish(td_net *net, const char *key);
void td_conf_put(td_net_pub *pub, const char *text);
td_net_decl *td_conf_subscribe(td_net *net, const char *keyexpr,
                               td_conf_recorder *rec);

void td_conf_until(td_conf_world *world, bool (*predicate)(void *user),
                   void *user);
void td_conf_until_count(td_conf_world *world, td_conf_recorder *rec,
                         size_t count);
void td_conf_until_released(td_conf_world *world, td_conf_recorder *rec,
                            size_t count);
void td_conf_until_done(td_conf_world *world, td_conf_recorder *rec);
void td_conf_until_matched(td_conf_world *world, td_net_pub *pub, bool matched);

// Waits for an event with this key and state.
void td_conf_until_notified(td_conf_world *world, td_conf_recorder *rec,
                            const char *key, bool up);

// Returns when what was sent before has arrived: sends a message after it, on
// the key `flush`, and waits for that. No subscriber of the sender's own may
// match the key: it would be taken for the far one.
void td_conf_flush_one_way(td_conf_world *world, td_net *from, td_net *to);
void td_conf_flush(td_conf_world *world); // both ways

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_REPORT_EVENTS_H
#define TD_SERVER_REPORT_EVENTS_H

// What happened in the servers of one process: who came and went, what broke.
//
// The last TD_SERVER_EVENTS_KEPT are kept, each with a number that grows by
// one. Whoever reads names the last number that it has; what it missed because
// it came too late is counted for it. Nobody waits for a reader.

#include "base/err.h"
#include "tendon/wire.h"

#include <stdbool.h>

#define TD_SERVER_EVENTS_KEPT 1024
#define TD_SERVER_EVENT_TEXT 160 // the rest of a longer one is cut

#define TD_SERVER_EVENT_KINDS(X)                                               \
    X(STATE, "state")       /* of a server: warming, ready, ... */             \
    X(ATTACHED, "attached") /* a client was taken */                           \
    X(REFUSED, "refused")   /* a client was not */                             \
    X(LEFT, "left")         /* it said so, or its token went */                \
    X(GONE, "gone")         /* silent for too long */                          \
    X(ENGINE_DIED, "engine_died")                                              \
    X(ENGINE_RESTARTED, "engine_restarted")                                    \
    X(QUARANTINED, "quarantined") /* an input that broke the engine twice */   \
    X(RELOADED, "reloaded")       /* the manifest */                           \
    X(RELOAD_FAILED, "reload_failed") /* it is broken; nothing was changed */  \
    X(OVERFLOW, "overflow")           /* there was no room for something */

typedef enum td_server_event_kind {
#define TD_SERVER_EVENT_ENUM(name, text) TD_SERVER_EVENT_##name,
    TD_SERVER_EVENT_KINDS(TD_SERVER_EVENT_ENUM)
#undef TD_SERVER_EVENT_ENUM
        TD_SERVER_EVENT_COUNT
} td_server_event_kind;

const char *td_server_event_name(td_server_event_kind kind);

typedef struct td_server_events_item {
    uint64_t number; // from 1
    int64_t at_ns;
    td_server_event_kind kind;
    char server[TD_WIRE_MAX_NAME + 1]; // empty: all of them
    char client[TD_WIRE_MAX_NAME + 1]; // empty: none in particular
    char text[TD_SERVER_EVENT_TEXT + 1];
} td_server_events_item;

// Called in order, each event once, on the thread of
// td_server_events_deliver(). It must not block: that thread is a server's
// loop.
typedef void (*td_server_events_fn)(void *user,
                                    const td_server_events_item *event);

typedef struct td_server_events td_server_events;

// Owned by the caller. NOMEM.
TD_NODISCARD td_err td_server_events_new(td_server_events **ret_events);
void td_server_events_free(td_server_events *events);
TD_AUTO_FREE(td_server_events, td_server_events_free)

// Whom to notify of what comes from now on. Any thread but those being
// notified. FULL.
TD_NODISCARD td_err td_server_events_subscribe(td_server_events *events,
                                               td_server_events_fn notify,
                                               void *user);

// `server` and `client` may be NULL; `fmt` is printf's. Any thread; waits for
// nobody but another one that adds or copies an event.
void td_server_events_add(td_server_events *events, int64_t now_ns,
                          td_server_event_kind kind, const char *server,
                          const char *client, const char *fmt, ...)
    TD_PRINTF(6, 7);

// Tells the subscribers what was added since the last time. A server's loop.
void td_server_events_deliver(td_server_events *events);

// The first event after `after`, with how many before it are lost. False if
// there is none yet. Any thread.
bool td_server_events_next(td_server_events *events, uint64_t after,
                           td_server_events_item *ret_event,
                           uint64_t *ret_lost);

// The number of the newest; 0: there is none. Any thread.
uint64_t td_server_events_newest(td_server_events *events);

#endif

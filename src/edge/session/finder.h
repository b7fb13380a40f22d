// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_SESSION_FINDER_H
#define TD_EDGE_SESSION_FINDER_H

// Asking servers: who serves this model, and whether one takes this client. A
// robot's session and the C API's connections find theirs here.
//
// One thread at a time; each question blocks for a second at most.

#include "base/err.h"
#include "media/resize.h"
#include "net/net.h"
#include "tendon/wire.h"

#include <stdatomic.h>

// A server that fits.
typedef struct td_edge_server {
    char id[TD_WIRE_MAX_NAME + 1]; // empty: none
    uint64_t boot;
    float load;
    bool degraded;
    td_media_size wanted[TD_WIRE_MAX_IMAGES]; // of the cameras; 0: not
} td_edge_server;

bool td_edge_server_same(const td_edge_server *a, const td_edge_server *b);

// What became of those who were asked: each reply that was of no use, and each
// question that had none. The first four are reasons not to choose a server; of
// several the first is reported, as the one most worth waiting for.
#define TD_EDGE_REPLIES(X)                                                     \
    X(NOT_READY, "not_ready")   /* it warms up or drains */                    \
    X(MISMATCH, "mismatch")     /* it does not fit */                          \
    X(NEWER, "newer")           /* its schema is of a newer major version */   \
    X(UNREADABLE, "unreadable") /* no status at all */                         \
    X(FAILED, "failed")         /* an error instead */                         \
    X(UNKEPT, "unkept")         /* found no room */                            \
    X(UNASKED, "unasked")       /* another server than the one asked */        \
    X(REFUSED, "refused")       /* the server does not take the client */      \
    X(NOBODY, "nobody")         /* a question without an answer */
typedef enum td_edge_reply {
#define TD_EDGE_REPLY_ENUM(name, text) TD_EDGE_REPLY_##name,
    TD_EDGE_REPLIES(TD_EDGE_REPLY_ENUM)
#undef TD_EDGE_REPLY_ENUM
} td_edge_reply;
#define TD_EDGE_REPLY_COUNT (TD_EDGE_REPLY_NOBODY + 1)

const char *td_edge_reply_name(td_edge_reply reply);    // "newer"
const char *td_edge_reply_counter(td_edge_reply reply); // "status_newer"

// Who asks, and for what. All is borrowed while the finder lives.
typedef struct td_edge_finder_config {
    td_net *net;
    td_wire_route route;
    const char *client;
    uint64_t boot;
    uint64_t generation; // of the client's route
    bool every;          // it wants every observation answered

    // Whether this server fits, which is not warming or draining; it may note
    // what that wants. NULL: every one does. MISMATCH.
    td_err (*fits)(void *user, const td_wire_status *status,
                   td_edge_server *server, td_errinfo *info);
    void *user;
    _Atomic uint64_t *replies; // counts them: [TD_EDGE_REPLY_COUNT]
} td_edge_finder_config;

typedef struct td_edge_finder td_edge_finder;

// Owned by the caller. NOMEM.
TD_NODISCARD td_err td_edge_finder_new(const td_edge_finder_config *config,
                                       td_edge_finder **ret_finder);
void td_edge_finder_free(td_edge_finder *finder);
TD_AUTO_FREE(td_edge_finder, td_edge_finder_free)

// The least loaded server that is ready and fits; `only` this start of this one
// or NULL, and `last` only if there is no other. NOTFOUND, or why none that
// answered was chosen: MISMATCH, VERSION, or what makes a status unreadable.
TD_NODISCARD td_err td_edge_finder_find(td_edge_finder *finder,
                                        const td_edge_server *only,
                                        const td_edge_server *last,
                                        td_edge_server *ret_server,
                                        td_errinfo *info);

// Asks the server to take the client. DENIED with its reason, or NOTFOUND.
TD_NODISCARD td_err td_edge_finder_attach(td_edge_finder *finder,
                                          const td_edge_server *server,
                                          td_errinfo *info);

// Tells the server that the client has another now, or is gone.
void td_edge_finder_leave(td_edge_finder *finder, const td_edge_server *server);

#endif

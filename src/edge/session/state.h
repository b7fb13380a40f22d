// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_SESSION_STATE_H
#define TD_EDGE_SESSION_STATE_H

// The states of a robot's session with its servers, and the one table of what
// leads from each to the next. Pure: the time and the chance are arguments.
//
//   CONNECTING    never attached: looks for a first server
//   STREAMING     attached, all well
//   DEGRADED      attached, but it holds, or its fail-safe acts
//   STALLED       no chunk in time: the server is asked for its status again
//   RECONNECTING  holds, and looks for any server
//   STOPPED       final
//
// What goes wrong before the first attach ends the start; whoever has moved
// holds and keeps trying.

#include "base/rand.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Name, and the counter of how often it was entered.
#define TD_EDGE_STATES(X)                                                      \
    X(CONNECTING, "entered_connecting")                                        \
    X(STREAMING, "entered_streaming")                                          \
    X(DEGRADED, "entered_degraded")                                            \
    X(STALLED, "entered_stalled")                                              \
    X(RECONNECTING, "entered_reconnecting")                                    \
    X(STOPPED, "entered_stopped")

typedef enum td_edge_state {
#define TD_EDGE_STATE_ENUM(name, counter) TD_EDGE_##name,
    TD_EDGE_STATES(TD_EDGE_STATE_ENUM)
#undef TD_EDGE_STATE_ENUM
        TD_EDGE_STATE_COUNT
} td_edge_state;

#define TD_EDGE_EVENTS(X)                                                      \
    X(ATTACHED)    /* a server took the robot */                               \
    X(CHUNK)       /* a chunk was merged */                                    \
    X(STARVED)     /* it holds for want of an action */                        \
    X(LIMITS)      /* its limits made the fail-safe act */                     \
    X(DRIVER)      /* its driver did */                                        \
    X(RECOVERED)   /* none of these, any more */                               \
    X(OVERDUE)     /* no chunk for as long as the watchdog allows */           \
    X(SILENT)      /* the same again, since the server was asked again */      \
    X(STILL_THERE) /* the same server answered, fits and took it again */      \
    X(GONE)        /* its token went, or it does not answer */                 \
    X(REFUSED)     /* a server does not take the robot */                      \
    X(TURNED_AWAY) /* it was refused for too long */                           \
    X(MISMATCH)    /* a server does not fit the robot */                       \
    X(STOP)        /* somebody wants it to stop */

typedef enum td_edge_event {
#define TD_EDGE_EVENT_ENUM(name) TD_EDGE_EVENT_##name,
    TD_EDGE_EVENTS(TD_EDGE_EVENT_ENUM)
#undef TD_EDGE_EVENT_ENUM
        TD_EDGE_EVENT_COUNT
} td_edge_event;

typedef struct td_edge_transition {
    td_edge_state from;
    td_edge_event event;
    td_edge_state to;
    const char *meaning; // for a person; '@' stands for the server's name
} td_edge_transition;

// What the event does in that state. NULL: nothing, the state stays.
const td_edge_transition *td_edge_state_next(td_edge_state state,
                                             td_edge_event event);

// Whether a server has the robot, so that observations are worth sending.
bool td_edge_state_is_attached(td_edge_state state);

const char *td_edge_state_name(td_edge_state state);    // "STREAMING"
const char *td_edge_state_counter(td_edge_state state); // "entered_streaming"

// The meaning with the server's name in it, cut to `size`.
void td_edge_state_describe(const td_edge_transition *transition,
                            const char *server, char *ret_text, size_t size);

// The watchdog: whether a robot with `left` rows has waited too long since the
// last chunk, or since it was attached if that is later.
bool td_edge_state_overdue(int64_t now_ns, int64_t since_ns, uint32_t left,
                           int64_t watchdog_ns);

#define TD_EDGE_RETRY_MIN_NS INT64_C(100000000)
#define TD_EDGE_RETRY_MAX_NS INT64_C(2000000000)

// How long to wait after failed attempt number `attempt`, the first being 0:
// anything up to a bound that doubles, so that a hundred robots that lost one
// server do not come back in step.
int64_t td_edge_state_retry_ns(uint32_t attempt, td_rand *rand);

#endif

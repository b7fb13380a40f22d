// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_WORKER_WATCH_H
#define TD_ENGINE_WORKER_WATCH_H

// When a worker is started, given up on and started again. Pure: the time comes
// in, decisions go out.
//
// It hangs when a batch runs and nothing has gone forward for longer than the
// limit, or than ten times its own p99 if that is longer. It rests before each
// new start, twice as long as before the last one, until it has stayed up. It
// is never given up for good: after five failures in a row it counts as broken,
// and is still tried, at the longest rest.

#include "base/hist.h"
#include "tendon/engine.h"

typedef struct td_engine_worker_limits {
    int64_t start_ns;  // from start to ready
    int64_t answer_ns; // least time before it hangs
} td_engine_worker_limits;

#define TD_ENGINE_WORKER_REST_NS INT64_C(100000000)
#define TD_ENGINE_WORKER_LONGEST_REST_NS INT64_C(30000000000)
#define TD_ENGINE_WORKER_STEADY_NS INT64_C(10000000000)
#define TD_ENGINE_WORKER_PATIENCE 10 // times its own p99
#define TD_ENGINE_WORKER_HOPELESS 5  // failures in a row

typedef enum td_engine_worker_phase {
    TD_ENGINE_WORKER_RESTING,
    TD_ENGINE_WORKER_STARTING,
    TD_ENGINE_WORKER_UP,
} td_engine_worker_phase;

typedef struct td_engine_worker_watch {
    td_engine_worker_limits limits;
    td_engine_worker_phase phase;
    int64_t since_ns;  // of this phase
    uint32_t failures; // in a row
    uint32_t running;  // batches
    int64_t moved_ns;  // when a batch last went forward
    uint64_t beat;
    td_hist answer_ns; // what batches took, by the worker's own clock
} td_engine_worker_watch;

typedef enum td_engine_worker_verdict {
    TD_ENGINE_WORKER_WAIT,
    TD_ENGINE_WORKER_START,
    TD_ENGINE_WORKER_TOO_LATE, // it does not become ready: end it
    TD_ENGINE_WORKER_HANGS,    // end it
} td_engine_worker_verdict;

void td_engine_worker_watch_init(td_engine_worker_watch *watch,
                                 const td_engine_worker_limits *limits,
                                 int64_t now_ns);

// What happened.
void td_engine_worker_watch_started(td_engine_worker_watch *watch,
                                    int64_t now_ns);
void td_engine_worker_watch_came_up(td_engine_worker_watch *watch,
                                    int64_t now_ns, int64_t warm_ns);
void td_engine_worker_watch_submitted(td_engine_worker_watch *watch,
                                      int64_t now_ns);
void td_engine_worker_watch_answered(td_engine_worker_watch *watch,
                                     int64_t now_ns, int64_t took_ns);
void td_engine_worker_watch_ended(td_engine_worker_watch *watch,
                                  int64_t now_ns);

// What to do now, and when to ask again at the latest. `beat` is the worker's.
td_engine_worker_verdict
td_engine_worker_watch_decide(td_engine_worker_watch *watch, int64_t now_ns,
                              uint64_t beat, int64_t *ret_until_ns);

// How long a batch may stand still.
int64_t td_engine_worker_watch_hang_ns(const td_engine_worker_watch *watch);

// How long it rests before the next start.
int64_t td_engine_worker_watch_rest_ns(const td_engine_worker_watch *watch);

td_engine_health
td_engine_worker_watch_health(const td_engine_worker_watch *watch);

#endif

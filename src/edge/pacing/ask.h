// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_PACING_ASK_H
#define TD_EDGE_PACING_ASK_H

// When to observe.
//
// Every mode comes down to a number of rows: ask when no more are left.
//     threshold  g x chunk; 0 is sequential, 1 asks at every step
//     time       those that last less than buffer_time
//     auto       those that last as long as td_edge_latency_bound() says an
//                answer may take, at the probability of starving that is
//                allowed: the latest, hence fewest, asks that keep it
// `auto` starts as g = 0.5. Where no ask keeps the target it makes the robot
// wait least; when answers take about max_unanswered chunks or more that is to
// be sequential. Loss is in what it measures: see `waits` below. It asks one at
// a time of a server that runs its observations one after the other: the next
// would only grow old there.
//
// An observation is unanswered until it or a newer one has ended, or until it
// is given up: after three times the usual round trip, within resend_min and
// resend_max, before the first round trip after the longer one. (The first of a
// connection counts here until there is another.) Then the newest observation
// goes instead of it; or, with `again` and while rows are left, a word that
// asks for the same answer once more: that costs next to nothing where only the
// answer got lost, and a round trip where the observation did. It is done once:
// whatever becomes of it, what follows is an observation. While some are
// unanswered the next one waits until it brings new rows, and so that
// max_unanswered of them are spread over a round trip: two that leave together
// come back together, and help once.
//
// One that was skipped, that is not sent after all, is not unanswered; the next
// may go in the next step. So is one that asked again where nothing was kept.
//
// Each ask takes a token of the rate, a resent or skipped one too. A server
// that refuses is asked again after resend_min, twice as much for each refusal
// in a row, at most resend_max.
//
// Two threads, as in the core. The merge thread turns what it measured into
// advice. The tick thread decides: it never blocks or allocates, and is
// O(max_unanswered).

#include "edge/pacing/latency.h"
#include "edge/pacing/rate.h"

#define TD_EDGE_ASK_MAX_UNANSWERED 64

typedef enum td_edge_ask_mode {
    TD_EDGE_ASK_THRESHOLD,
    TD_EDGE_ASK_TIME,
    TD_EDGE_ASK_AUTO,
} td_edge_ask_mode;

typedef struct td_edge_ask_settings {
    td_edge_ask_mode mode;
    double threshold;       // g, 0 to 1
    int64_t buffer_time_ns; // for `time`
    double starve_target;   // for `auto`: the share of asks, 0.001
    uint32_t max_unanswered;
    bool again; // ask for a missed answer before a new observation is sent
    int64_t resend_min_ns, resend_max_ns;
    int64_t period_ns;
} td_edge_ask_settings;

// INVALID for settings that make no sense.
TD_NODISCARD td_err td_edge_ask_check(const td_edge_ask_settings *settings);

// From the merge thread to the tick. Each field may be an atomic of its own,
// read relaxed: they need not be of one moment.
typedef struct td_edge_ask_advice {
    uint32_t below_rows;     // ask when no more are left
    uint32_t most;           // unanswered at a time
    int64_t apart_ns;        // between asks while some are unanswered
    int64_t resend_after_ns; // then an observation is given up
} td_edge_ask_advice;

// To be taken at the start, when a connection begins and after each answer.
// `chunk_rows` is what the last chunk had, or what the server promised.
// `trips` is put -> callback. `waits` is what `auto` guards against: for each
// chunk installed, the time since the capture of the oldest observation that
// was still on its way, newer than the last one merged and no newer than the
// one that this chunk answers. That is capture -> installed where nothing was
// lost, and has the resends in it where something was; but not the time behind
// an observation of its own. `serial`: one has waited so. Merge thread.
typedef struct td_edge_ask_measured {
    uint32_t chunk_rows;
    const td_edge_latency *waits, *trips;
    bool serial;
} td_edge_ask_measured;

td_edge_ask_advice td_edge_ask_advise(const td_edge_ask_settings *settings,
                                      const td_edge_ask_measured *measured);

// The tick thread's own.
typedef struct td_edge_ask {
    td_edge_ask_settings settings;
    td_edge_rate rate;
    uint64_t connection; // at the tick before
    uint64_t asked;      // the newest seq
    uint64_t settled;    // it and those before are no longer unanswered
    uint64_t given_up;   // the newest that was, on this connection
    uint64_t again;      // the newest that asked for another's answer
    uint64_t began;      // the newest asked before this connection
    // By seq, rings.
    int64_t asked_ns[TD_EDGE_ASK_MAX_UNANSWERED];
    bool skipped[TD_EDGE_ASK_MAX_UNANSWERED];
} td_edge_ask;

// Seqs start at 1. The rate is unlimited until td_edge_rate_set(&ask->rate, …),
// on the tick thread. INVALID.
TD_NODISCARD td_err td_edge_ask_init(td_edge_ask *ask,
                                     const td_edge_ask_settings *settings,
                                     int64_t now_ns);

// What the tick sees, beside the advice.
typedef struct td_edge_ask_input {
    int64_t now_ns;
    uint64_t connection;  // another number for each server found; 0: none
    uint32_t left;        // rows, after the one just played
    uint64_t ended_seq;   // the newest that ended, however; read before the
                          // timeline that `left` was counted on
    uint64_t skipped_seq; // the newest that was not sent, or asked again in
                          // vain
    uint32_t refusals;    // in a row, since the connection began and since a
                          // chunk was merged (refused, misshapen or unsent)
} td_edge_ask_input;

typedef struct td_edge_ask_decision {
    bool ask;
    bool must_go; // nothing is left
    bool resend;  // an earlier one was given up; not to be filtered either
    uint64_t seq;
    uint64_t again; // whose answer to ask for instead of observing; 0: observe
} td_edge_ask_decision;

// A new connection forgets what was asked before. Tick thread.
td_edge_ask_decision td_edge_ask_decide(td_edge_ask *ask,
                                        const td_edge_ask_input *seen,
                                        const td_edge_ask_advice *advice);

#endif

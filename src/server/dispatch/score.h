// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_DISPATCH_SCORE_H
#define TD_SERVER_DISPATCH_SCORE_H

// A score function that is not ours, a plug-in's or the program's, with what it
// costs. It is asked under the device's lock, so that all of its robots wait
// for it.

#include "sched/strategy/strategy.h"
#include "server/report/stats.h"

typedef struct td_server_score {
    double (*ask)(void *user, const td_score_request *request); // NULL: none
    void *user;
    // Since they were recorded last.
    uint64_t calls, not_finite;
    int64_t took_ns;
    bool was_slow, was_not_finite; // and was warned of
} td_server_score;

// Takes the policy's function, if it has one, and stands in its place. Warns
// again of one that `score` did not have before.
void td_server_score_wrap(td_server_score *score, td_sched_policy *policy);

// What choosing a batch has cost since the last one. As
// td_server_stats_record().
void td_server_score_record(td_server_score *score, td_server_stats *stats,
                            int64_t now_ns);

#endif

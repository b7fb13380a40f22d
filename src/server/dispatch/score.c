// SPDX-License-Identifier: Apache-2.0
#include "server/dispatch/score.h"

#include "base/clock.h"
#include "base/log.h"

#include <math.h>

#define SLOW_NS TD_NS_PER_MS

static void warn_slow(td_server_score *score, int64_t took_ns)
{
    if (score->was_slow || took_ns < SLOW_NS) return;
    score->was_slow = true;
    td_log_text(TD_LOG_WARN,
                "server: the score function took %.1f ms for one request, and "
                "every robot waits for it meanwhile (score_ms)",
                (double)took_ns / (double)TD_NS_PER_MS);
}

static void warn_not_finite(td_server_score *score)
{
    if (score->was_not_finite) return;
    score->was_not_finite = true;
    td_log_text(TD_LOG_WARN,
                "server: the score function gave a number that is not finite: "
                "such requests go last (score_not_finite)");
}

static double ask(void *user, const td_score_request *request)
{
    td_server_score *score = user;
    int64_t before_ns = td_clock_monotonic_ns();
    double value = score->ask(score->user, request);
    int64_t took_ns = td_clock_monotonic_ns() - before_ns;
    score->calls++;
    score->took_ns += took_ns;
    warn_slow(score, took_ns);
    if (!isfinite(value)) {
        score->not_finite++;
        warn_not_finite(score);
    }
    return value;
}

void td_server_score_wrap(td_server_score *score, td_sched_policy *policy)
{
    if (score->ask != policy->score || score->user != policy->score_user)
        *score =
            (td_server_score){.ask = policy->score, .user = policy->score_user};
    if (!policy->score) return;
    policy->score = ask;
    policy->score_user = score;
}

void td_server_score_record(td_server_score *score, td_server_stats *stats,
                            int64_t now_ns)
{
    if (score->calls == 0) return;
    td_server_stats_record(stats, TD_SERVER_SPREAD_SCORE, TD_SERVER_NOBODY,
                           now_ns, score->took_ns / TD_NS_PER_US);
    td_server_stats_count(stats, TD_SERVER_COUNT_SCORE_CALLS, TD_SERVER_NOBODY,
                          score->calls);
    if (score->not_finite > 0)
        td_server_stats_count(stats, TD_SERVER_COUNT_SCORE_NOT_FINITE,
                              TD_SERVER_NOBODY, score->not_finite);
    score->calls = score->not_finite = 0;
    score->took_ns = 0;
}

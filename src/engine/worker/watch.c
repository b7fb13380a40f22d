// SPDX-License-Identifier: Apache-2.0
#include "engine/worker/watch.h"

void td_engine_worker_watch_init(td_engine_worker_watch *watch,
                                 const td_engine_worker_limits *limits,
                                 int64_t now_ns)
{
    *watch = (td_engine_worker_watch){.limits = *limits, .since_ns = now_ns};
    td_hist_init(&watch->answer_ns);
}

static void enter(td_engine_worker_watch *watch, td_engine_worker_phase phase,
                  int64_t now_ns)
{
    watch->phase = phase;
    watch->since_ns = now_ns;
    watch->running = 0;
}

void td_engine_worker_watch_started(td_engine_worker_watch *watch,
                                    int64_t now_ns)
{
    enter(watch, TD_ENGINE_WORKER_STARTING, now_ns);
}

void td_engine_worker_watch_came_up(td_engine_worker_watch *watch,
                                    int64_t now_ns, int64_t warm_ns)
{
    enter(watch, TD_ENGINE_WORKER_UP, now_ns);
    if (warm_ns > 0) td_hist_record(&watch->answer_ns, warm_ns);
}

void td_engine_worker_watch_submitted(td_engine_worker_watch *watch,
                                      int64_t now_ns)
{
    if (watch->running++ == 0) watch->moved_ns = now_ns;
}

void td_engine_worker_watch_answered(td_engine_worker_watch *watch,
                                     int64_t now_ns, int64_t took_ns)
{
    watch->running--;
    watch->moved_ns = now_ns;
    td_hist_record(&watch->answer_ns, took_ns);
}

void td_engine_worker_watch_ended(td_engine_worker_watch *watch, int64_t now_ns)
{
    bool steady = watch->phase == TD_ENGINE_WORKER_UP &&
                  now_ns - watch->since_ns >= TD_ENGINE_WORKER_STEADY_NS;
    watch->failures = steady ? 1 : watch->failures + 1;
    enter(watch, TD_ENGINE_WORKER_RESTING, now_ns);
}

int64_t td_engine_worker_watch_hang_ns(const td_engine_worker_watch *watch)
{
    int64_t own_ns =
        TD_ENGINE_WORKER_PATIENCE * td_hist_quantile(&watch->answer_ns, 0.99);
    return own_ns > watch->limits.answer_ns ? own_ns : watch->limits.answer_ns;
}

int64_t td_engine_worker_watch_rest_ns(const td_engine_worker_watch *watch)
{
    if (watch->failures == 0) return 0;
    int64_t rest_ns = TD_ENGINE_WORKER_REST_NS;
    for (uint32_t i = 1;
         i < watch->failures && rest_ns < TD_ENGINE_WORKER_LONGEST_REST_NS; i++)
        rest_ns *= 2;
    return rest_ns < TD_ENGINE_WORKER_LONGEST_REST_NS
               ? rest_ns
               : TD_ENGINE_WORKER_LONGEST_REST_NS;
}

static td_engine_worker_verdict when_due(int64_t now_ns, int64_t due_ns,
                                         td_engine_worker_verdict verdict,
                                         int64_t *ret_until_ns)
{
    *ret_until_ns = due_ns;
    return now_ns >= due_ns ? verdict : TD_ENGINE_WORKER_WAIT;
}

td_engine_worker_verdict
td_engine_worker_watch_decide(td_engine_worker_watch *watch, int64_t now_ns,
                              uint64_t beat, int64_t *ret_until_ns)
{
    if (beat != watch->beat) watch->moved_ns = now_ns;
    watch->beat = beat;
    if (watch->phase == TD_ENGINE_WORKER_RESTING)
        return when_due(now_ns,
                        watch->since_ns + td_engine_worker_watch_rest_ns(watch),
                        TD_ENGINE_WORKER_START, ret_until_ns);
    if (watch->phase == TD_ENGINE_WORKER_STARTING)
        return when_due(now_ns, watch->since_ns + watch->limits.start_ns,
                        TD_ENGINE_WORKER_TOO_LATE, ret_until_ns);
    if (watch->running == 0)
        return when_due(now_ns, INT64_MAX, TD_ENGINE_WORKER_WAIT, ret_until_ns);
    return when_due(now_ns,
                    watch->moved_ns + td_engine_worker_watch_hang_ns(watch),
                    TD_ENGINE_WORKER_HANGS, ret_until_ns);
}

td_engine_health
td_engine_worker_watch_health(const td_engine_worker_watch *watch)
{
    if (watch->phase == TD_ENGINE_WORKER_UP) return TD_ENGINE_READY;
    return watch->failures < TD_ENGINE_WORKER_HOPELESS ? TD_ENGINE_WARMING
                                                       : TD_ENGINE_BROKEN;
}

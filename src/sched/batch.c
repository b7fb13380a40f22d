// SPDX-License-Identifier: Apache-2.0
#include "sched/batch.h"

#include "sched/strategy/heap.h"

#include <assert.h>
#include <string.h>

#define WAKE_NS 100000  // about what a sleep is late by
#define NEWEST_WEIGHT 5 // a fifth of each new time

static const char *const wait_names[] = {
#define TD_SCHED_BATCH_WAIT_NAME(name, text) text,
    TD_SCHED_BATCH_WAITS(TD_SCHED_BATCH_WAIT_NAME)
#undef TD_SCHED_BATCH_WAIT_NAME
};

const char *td_sched_batch_wait_name(td_sched_batch_wait wait)
{
    return wait_names[wait];
}

td_err td_sched_batch_wait_find(const char *name, td_sched_batch_wait *ret_wait)
{
    for (uint32_t i = 0; i < TD_SCHED_WAIT_COUNT; i++) {
        if (strcmp(name, wait_names[i]) != 0) continue;
        *ret_wait = (td_sched_batch_wait)i;
        return TD_OK;
    }
    return TD_ERR_NOTFOUND;
}

void td_sched_batch_measured(td_sched_batch_times *times, uint32_t n,
                             int64_t took_ns)
{
    assert(n >= 1 && n <= TD_SCHED_MAX_BATCH);
    int64_t *known = &times->ns[n];
    if (took_ns < 1) took_ns = 1;
    if (*known == 0)
        *known = took_ns;
    else
        *known += (took_ns - *known) / NEWEST_WEIGHT;
}

int64_t td_sched_batch_time_ns(const td_sched_batch_times *times, uint32_t n)
{
    assert(n >= 1 && n <= TD_SCHED_MAX_BATCH);
    const int64_t *ns = times->ns;
    uint32_t below = n, above = n;
    while (below > 0 && ns[below] == 0)
        below--;
    while (above <= TD_SCHED_MAX_BATCH && ns[above] == 0)
        above++;
    if (above > TD_SCHED_MAX_BATCH) return below ? ns[below] * n / below : 0;
    if (below == above || below == 0) return ns[above];
    return ns[below] + (ns[above] - ns[below]) * (int64_t)(n - below) /
                           (int64_t)(above - below);
}

// What all of them together gain by it, if those who are here wait for `more`.
//
// It delays `count` by the wait, with its sleep and wake-up, and by what more
// cost; who comes would else wait for the whole batch and run after it, and who
// of the batch comes again meanwhile would wait for them.
static int64_t gain_ns(const td_sched_batch_times *times,
                       const td_sched_batch_state *state, uint32_t more,
                       int64_t wait_ns)
{
    int64_t now_takes_ns = td_sched_batch_time_ns(times, state->count);
    int64_t all_take_ns = td_sched_batch_time_ns(times, state->count + more);
    int64_t after_ns = td_sched_batch_time_ns(times, more);
    wait_ns += WAKE_NS;
    int64_t cost_ns = wait_ns + all_take_ns - now_takes_ns;
    int64_t saved_ns = now_takes_ns + after_ns - wait_ns - all_take_ns;
    int64_t again_ns = after_ns - state->return_ns;
    if (again_ns < 0) again_ns = 0;
    return saved_ns * more + again_ns * state->returning -
           cost_ns * state->count;
}

static int64_t slack_start_ns(const td_sched_batch_times *times,
                              const td_sched_batch_state *state, int64_t now_ns)
{
    int64_t start_ns = now_ns, most_ns = 0;
    for (uint32_t more = 1; more <= state->arriving; more++) {
        int64_t all_here_ns = state->arriving_ns[more - 1];
        int64_t all_take_ns =
            td_sched_batch_time_ns(times, state->count + more);
        bool in_time = state->due_ns == TD_SCHED_NEVER_NS ||
                       all_here_ns <= state->due_ns - all_take_ns;
        int64_t ns = gain_ns(times, state, more, all_here_ns - now_ns);
        if (all_here_ns <= now_ns || !in_time || ns <= most_ns) continue;
        start_ns = all_here_ns;
        most_ns = ns;
    }
    return start_ns;
}

int64_t td_sched_batch_start_ns(const td_sched_batch_rule *rule,
                                const td_sched_batch_times *times,
                                const td_sched_batch_state *state,
                                int64_t now_ns)
{
    assert(state->count >= 1);
    if (state->count >= rule->most) return now_ns;
    switch (rule->wait) {
    case TD_SCHED_WAIT_SLACK:
        return slack_start_ns(times, state, now_ns);
    case TD_SCHED_WAIT_FIXED:
        return state->oldest_ns + rule->wait_ns;
    case TD_SCHED_WAIT_FULL:
        return TD_SCHED_NEVER_NS;
    default:
        return now_ns;
    }
}

bool td_sched_batch_grows(const td_sched_batch_times *times, uint32_t count,
                          int64_t due_ns, int64_t now_ns)
{
    if (due_ns == TD_SCHED_NEVER_NS || count == 0) return true;
    if (count >= TD_SCHED_MAX_BATCH) return false;
    return now_ns + td_sched_batch_time_ns(times, count + 1) <= due_ns ||
           now_ns + td_sched_batch_time_ns(times, count) > due_ns;
}

bool td_sched_batch_joins(const td_sched_batch_rule *rule,
                          const td_sched_batch_times *times,
                          const td_sched_batch_running *running, int64_t now_ns)
{
    uint32_t count = running->count;
    if (count >= rule->most) return false;
    if (count == 0 || running->due_ns == TD_SCHED_NEVER_NS) return true;
    double as_is_ns =
        running->left * (double)td_sched_batch_time_ns(times, count);
    double shared_ns =
        running->left * (double)td_sched_batch_time_ns(times, count + 1);
    double slack_ns = (double)(running->due_ns - now_ns);
    return shared_ns <= slack_ns || as_is_ns > slack_ns;
}

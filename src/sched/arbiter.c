// SPDX-License-Identifier: Apache-2.0
#include "sched/arbiter.h"

#include "sched/strategy/heap.h"

#include <assert.h>
#include <math.h>

#define BUSY_NS 1e9 // how far back its share of time looks

void td_sched_arbiter_set(td_sched_arbiter *arbiter, uint32_t model,
                          const td_sched_arbiter_model *how)
{
    assert(model < TD_SCHED_ARBITER_MODELS && how->most_inflight >= 1);
    arbiter->models[model] = *how;
}

// What runs has got on since the last look: all of a model share its engine
// alike, unless that runs them in parallel.
static void advance_runs(td_sched_arbiter *arbiter, double passed_ns)
{
    for (uint32_t i = 0; i < TD_SCHED_ARBITER_RUNS; i++) {
        td_sched_arbiter_run *run = &arbiter->runs[i];
        if (!run->used) continue;
        const td_sched_arbiter_model *m = &arbiter->models[run->model];
        uint32_t beside = arbiter->uses[run->model].running;
        int64_t whole_ns =
            td_sched_batch_time_ns(m->times, m->parallel ? 1 : beside);
        double done = whole_ns > 0 ? passed_ns / (double)whole_ns : 0;
        run->left = run->left > done ? run->left - done : 0;
    }
    for (uint32_t i = 0; i < TD_SCHED_ARBITER_MODELS; i++)
        arbiter->uses[i].area_ns += passed_ns * arbiter->uses[i].running;
}

static void advance(td_sched_arbiter *arbiter, int64_t now_ns)
{
    if (now_ns <= arbiter->now_ns) return;
    if (arbiter->running > 0)
        advance_runs(arbiter, (double)(now_ns - arbiter->now_ns));
    double fades = exp((double)(arbiter->now_ns - now_ns) / BUSY_NS);
    double now_busy = arbiter->running > 0 ? 1 : 0;
    arbiter->busy = now_busy + (arbiter->busy - now_busy) * fades;
    arbiter->now_ns = now_ns;
}

// Of those of a model that run and would be on time, the one with the least to
// spare.
static td_sched_batch_running tightest(const td_sched_arbiter *arbiter,
                                       uint32_t model)
{
    const td_sched_arbiter_model *m = &arbiter->models[model];
    uint32_t running = arbiter->uses[model].running;
    double whole_ns = (double)td_sched_batch_time_ns(m->times, running);
    td_sched_batch_running least = {running, 0, TD_SCHED_NEVER_NS};
    double least_ns = 0;
    for (uint32_t i = 0; i < TD_SCHED_ARBITER_RUNS; i++) {
        const td_sched_arbiter_run *run = &arbiter->runs[i];
        if (!run->used || run->model != model ||
            run->due_ns == TD_SCHED_NEVER_NS)
            continue;
        double spare_ns =
            (double)(run->due_ns - arbiter->now_ns) - run->left * whole_ns;
        bool less = least.due_ns == TD_SCHED_NEVER_NS || spare_ns < least_ns;
        if (spare_ns < 0 || !less) continue;
        least.left = run->left;
        least.due_ns = run->due_ns;
        least_ns = spare_ns;
    }
    return least;
}

static bool may_join(const td_sched_arbiter *arbiter, uint32_t model)
{
    const td_sched_arbiter_model *m = &arbiter->models[model];
    td_sched_batch_running running = tightest(arbiter, model);
    return td_sched_batch_joins(&m->rule, m->times, &running, arbiter->now_ns);
}

bool td_sched_arbiter_is_free(const td_sched_arbiter *arbiter, uint32_t model)
{
    if (arbiter->running == TD_SCHED_ARBITER_RUNS) return false;
    bool alone = arbiter->side_by_side || arbiter->models[model].parallel;
    return (alone ? arbiter->uses[model].running : arbiter->exclusive) == 0;
}

// Beside batches of its own that run; `alone`: nobody waits whom it would keep
// waiting.
static td_sched_grant grant_more(const td_sched_arbiter *arbiter,
                                 uint32_t model, bool alone)
{
    const td_sched_arbiter_model *m = &arbiter->models[model];
    uint32_t running = arbiter->uses[model].running;
    uint64_t bit = UINT64_C(1) << model;
    if (running == 0 || arbiter->running == TD_SCHED_ARBITER_RUNS)
        return (td_sched_grant){0};
    if (m->continuous)
        return (td_sched_grant){alone && may_join(arbiter, model) ? bit : 0, 0};
    if (running >= m->most_inflight) return (td_sched_grant){0};
    if (m->parallel) return (td_sched_grant){bit, 0};
    return (td_sched_grant){0, alone ? bit : 0};
}

td_sched_grant td_sched_arbiter_grant(td_sched_arbiter *arbiter, int64_t now_ns,
                                      uint64_t waiting)
{
    td_sched_grant all = {0};
    advance(arbiter, now_ns);
    for (uint64_t left = waiting; left; left &= left - 1) {
        uint32_t model = (uint32_t)__builtin_ctzll(left);
        uint64_t bit = left & -left;
        if (td_sched_arbiter_is_free(arbiter, model)) {
            all.models |= bit;
            continue;
        }
        bool alone = arbiter->side_by_side || waiting == bit;
        td_sched_grant more = grant_more(arbiter, model, alone);
        all.models |= more.models;
        all.full |= more.full;
    }
    return all;
}

uint32_t td_sched_arbiter_start(td_sched_arbiter *arbiter, int64_t now_ns,
                                uint32_t model, int64_t due_ns)
{
    advance(arbiter, now_ns);
    td_sched_arbiter_use *use = &arbiter->uses[model];
    uint32_t number = 0;
    while (arbiter->runs[number].used)
        number++;
    arbiter->runs[number] = (td_sched_arbiter_run){
        true, model, due_ns, arbiter->now_ns, 1, use->area_ns};
    use->running++;
    arbiter->running++;
    arbiter->exclusive += !arbiter->models[model].parallel;
    return number;
}

uint32_t td_sched_arbiter_end(td_sched_arbiter *arbiter, int64_t now_ns,
                              uint32_t run)
{
    advance(arbiter, now_ns);
    td_sched_arbiter_run *ended = &arbiter->runs[run];
    td_sched_arbiter_use *use = &arbiter->uses[ended->model];
    assert(ended->used && use->running > 0);
    double took_ns = (double)(arbiter->now_ns - ended->started_ns);
    double beside =
        took_ns > 0 ? (use->area_ns - ended->area_ns) / took_ns : use->running;
    ended->used = false;
    use->running--;
    arbiter->running--;
    arbiter->exclusive -= !arbiter->models[ended->model].parallel;
    if (use->running == 0) use->area_ns = 0; // keeps it exact
    return beside < 1 ? 1 : (uint32_t)(beside + 0.5);
}

double td_sched_arbiter_busy(td_sched_arbiter *arbiter, int64_t now_ns)
{
    advance(arbiter, now_ns);
    return arbiter->busy;
}

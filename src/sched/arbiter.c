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

// What runs has got on since the last look: all share the engine alike.
static void advance(td_sched_arbiter *arbiter, int64_t now_ns)
{
    if (arbiter->running > 0 && now_ns > arbiter->now_ns) {
        double passed_ns = (double)(now_ns - arbiter->now_ns);
        const td_sched_arbiter_model *m = &arbiter->models[arbiter->model];
        int64_t whole_ns = td_sched_batch_time_ns(m->times, arbiter->running);
        double done = whole_ns > 0 ? passed_ns / (double)whole_ns : 0;
        for (uint32_t i = 0; i < TD_SCHED_ARBITER_RUNS; i++) {
            td_sched_arbiter_run *run = &arbiter->runs[i];
            if (run->used) run->left = run->left > done ? run->left - done : 0;
        }
        arbiter->area_ns += passed_ns * arbiter->running;
    }
    if (now_ns <= arbiter->now_ns) return;
    double fades = exp((double)(arbiter->now_ns - now_ns) / BUSY_NS);
    double now_busy = arbiter->running > 0 ? 1 : 0;
    arbiter->busy = now_busy + (arbiter->busy - now_busy) * fades;
    arbiter->now_ns = now_ns;
}

// Of those that run and would be on time, the one with the least to spare.
static td_sched_batch_running tightest(const td_sched_arbiter *arbiter)
{
    const td_sched_arbiter_model *m = &arbiter->models[arbiter->model];
    double whole_ns =
        (double)td_sched_batch_time_ns(m->times, arbiter->running);
    td_sched_batch_running least = {arbiter->running, 0, TD_SCHED_NEVER_NS};
    double least_ns = 0;
    for (uint32_t i = 0; i < TD_SCHED_ARBITER_RUNS; i++) {
        const td_sched_arbiter_run *run = &arbiter->runs[i];
        if (!run->used || run->due_ns == TD_SCHED_NEVER_NS) continue;
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

static bool may_join(const td_sched_arbiter *arbiter)
{
    const td_sched_arbiter_model *m = &arbiter->models[arbiter->model];
    td_sched_batch_running running = tightest(arbiter);
    return td_sched_batch_joins(&m->rule, m->times, &running, arbiter->now_ns);
}

td_sched_grant td_sched_arbiter_grant(td_sched_arbiter *arbiter, int64_t now_ns,
                                      uint64_t waiting)
{
    advance(arbiter, now_ns);
    if (arbiter->running == 0) return (td_sched_grant){waiting, false};
    const td_sched_arbiter_model *m = &arbiter->models[arbiter->model];
    bool alone = waiting == UINT64_C(1) << arbiter->model;
    if (!alone || arbiter->running == TD_SCHED_ARBITER_RUNS)
        return (td_sched_grant){0};
    if (m->continuous)
        return (td_sched_grant){may_join(arbiter) ? waiting : 0, false};
    bool room = arbiter->running < m->most_inflight;
    return (td_sched_grant){room ? waiting : 0, true};
}

uint32_t td_sched_arbiter_start(td_sched_arbiter *arbiter, int64_t now_ns,
                                uint32_t model, int64_t due_ns)
{
    advance(arbiter, now_ns);
    assert(arbiter->running == 0 || model == arbiter->model);
    uint32_t number = 0;
    while (arbiter->runs[number].used)
        number++;
    arbiter->runs[number] = (td_sched_arbiter_run){
        true, due_ns, arbiter->now_ns, 1, arbiter->area_ns};
    arbiter->running++;
    arbiter->model = model;
    return number;
}

uint32_t td_sched_arbiter_end(td_sched_arbiter *arbiter, int64_t now_ns,
                              uint32_t run)
{
    advance(arbiter, now_ns);
    td_sched_arbiter_run *ended = &arbiter->runs[run];
    assert(ended->used && arbiter->running > 0);
    double took_ns = (double)(arbiter->now_ns - ended->started_ns);
    double beside = took_ns > 0 ? (arbiter->area_ns - ended->area_ns) / took_ns
                                : arbiter->running;
    ended->used = false;
    arbiter->running--;
    if (arbiter->running == 0) arbiter->area_ns = 0; // keeps it exact
    return beside < 1 ? 1 : (uint32_t)(beside + 0.5);
}

double td_sched_arbiter_busy(td_sched_arbiter *arbiter, int64_t now_ns)
{
    advance(arbiter, now_ns);
    return arbiter->busy;
}

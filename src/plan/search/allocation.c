// SPDX-License-Identifier: Apache-2.0
#include "plan/search/allocation.h"

#include <math.h>
#include <string.h>

// How many streams of a need are in a allocation.
static uint32_t streams_in(const td_plan_allocation *allocation, uint32_t start,
                           const td_plan_need *need)
{
    uint32_t from = allocation->from > start ? allocation->from : start;
    uint32_t to = allocation->from + allocation->streams;
    if (to > start + need->streams) to = start + need->streams;
    return to > from ? to - from : 0;
}

// What an allocation is asked when all of its streams have the rate of the
// fastest, so that phases stay apart. INFINITY when a robot's loop cannot keep
// up with that.
static double levelled_hz(const td_plan_evaluator *evaluator,
                          const td_plan_allocation *allocation,
                          const double *rates_hz)
{
    const td_plan_problem *problem = evaluator->problem;
    const td_plan_pool *pool = &problem->pools[allocation->pool];
    double fastest = 0;
    double bound = INFINITY;
    double obliged = 0;
    uint32_t goals = 0;
    uint32_t start = 0;
    for (size_t i = 0; i < pool->need_count; i++) {
        const td_plan_need *need = &pool->needs[i];
        uint32_t streams = streams_in(allocation, start, need);
        start += need->streams;
        if (need->per_action == 0) obliged += streams * need->rate_hz;
        if (streams == 0 || need->per_action == 0) continue;
        goals += streams;
        fastest = fmax(fastest, td_plan_need_hz(need, rates_hz));
        bound = fmin(bound, need->per_action * evaluator->best_hz[need->task]);
    }
    if (fastest > bound * (1 + 1e-9)) return INFINITY;
    return obliged + goals * fastest;
}

double td_plan_allocation_hz(const td_plan_evaluator *evaluator,
                             const td_plan_allocation *allocation,
                             const double *rates_hz)
{
    const td_plan_pool *pool = &evaluator->problem->pools[allocation->pool];
    double sum = 0;
    uint32_t start = 0;
    for (size_t i = 0; i < pool->need_count; i++) {
        const td_plan_need *need = &pool->needs[i];
        sum += streams_in(allocation, start, need) *
               td_plan_need_hz(need, rates_hz);
        start += need->streams;
    }
    return sum;
}

bool td_plan_allocation_unlike(const td_plan_evaluator *evaluator,
                               const td_plan_allocation *allocation,
                               const double *rates_hz, td_plan_point *ret_point)
{
    const td_plan_pool *pool = &evaluator->problem->pools[allocation->pool];
    td_plan_point own;
    if (!pool->curves[allocation->type]) return false;
    bool level = td_plan_curve_at(pool->curves[allocation->type],
                                  levelled_hz(evaluator, allocation, rates_hz),
                                  ret_point);
    if (!td_plan_curve_at(
            pool->unlike[allocation->type],
            td_plan_allocation_hz(evaluator, allocation, rates_hz), &own))
        return level;
    if (!level || own.mean_ms < ret_point->mean_ms) *ret_point = own;
    return true;
}

bool td_plan_allocation_point(const td_plan_evaluator *evaluator, size_t index,
                              const double *rates_hz, td_plan_point *ret_point)
{
    const td_plan_problem *problem = evaluator->problem;
    const td_plan_allocation *allocation = &evaluator->allocations[index];
    const td_plan_pool *pool = &problem->pools[allocation->pool];
    size_t host =
        allocation->joined == TD_PLAN_NONE ? index : allocation->joined;
    double sum_hz = 0;
    uint32_t streams = 0;
    if (pool->unlike[allocation->type])
        return td_plan_allocation_unlike(evaluator, allocation, rates_hz,
                                         ret_point);
    for (size_t i = 0; i < evaluator->allocation_count; i++) {
        if (i != host && evaluator->allocations[i].joined != host) continue;
        sum_hz += td_plan_allocation_hz(evaluator, &evaluator->allocations[i],
                                        rates_hz);
        streams += evaluator->allocations[i].streams;
    }
    return td_plan_problem_estimate(
        problem, pool, allocation->type, streams, sum_hz,
        td_plan_evaluate_slowest_hz(pool, rates_hz), ret_point);
}

static uint32_t servers_of(const td_plan_allocation *allocations, size_t count,
                           size_t pool, size_t type)
{
    uint32_t servers = 0;
    for (size_t i = 0; i < count; i++)
        servers += allocations[i].pool == pool && allocations[i].type == type &&
                   allocations[i].joined == TD_PLAN_NONE;
    return servers;
}

uint32_t td_plan_allocation_loads(const td_plan_problem *problem,
                                  const td_plan_allocation *allocations,
                                  size_t count)
{
    uint32_t loads = 0;
    for (size_t i = 0; i < problem->pool_count; i++)
        for (size_t type = 0; type < problem->type_count; type++) {
            uint32_t servers = servers_of(allocations, count, i, type);
            uint32_t loaded = problem->pools[i].loaded[type];
            loads += servers > loaded ? servers - loaded : 0;
        }
    return loads;
}

// Adds the slowest server of each goal-coupled need to its task's latency.
static void add_latencies(const td_plan_evaluator *evaluator, uint32_t index,
                          const double *rates_hz, double *latencies_ms)
{
    const td_plan_problem *problem = evaluator->problem;
    const td_plan_pool *pool = &problem->pools[index];
    uint32_t start = 0;
    for (size_t i = 0; i < pool->need_count; i++) {
        uint32_t end = start + pool->needs[i].streams;
        double worst_ms = 0;
        for (size_t j = 0; j < evaluator->allocation_count; j++) {
            const td_plan_allocation *allocation = &evaluator->allocations[j];
            td_plan_point point;
            if (allocation->pool != index || allocation->from >= end ||
                allocation->from + allocation->streams <= start)
                continue;
            if (td_plan_allocation_point(evaluator, j, rates_hz, &point))
                worst_ms =
                    fmax(worst_ms, td_plan_problem_loop_ms(problem, &point));
            else
                worst_ms = INFINITY;
        }
        latencies_ms[pool->needs[i].task] +=
            pool->needs[i].per_action > 0 ? pool->needs[i].per_action * worst_ms
                                          : 0;
        start = end;
    }
}

void td_plan_allocation_loops(td_plan_evaluator *evaluator,
                              const double *rates_hz)
{
    const td_plan_problem *problem = evaluator->problem;
    size_t tasks = problem->factory->task_count;
    double *loops = evaluator->loops_hz;
    memset(loops, 0, tasks * sizeof *loops);
    for (uint32_t i = 0; i < problem->pool_count; i++)
        add_latencies(evaluator, i, rates_hz, loops);
    for (size_t i = 0; i < tasks; i++)
        loops[i] = td_plan_problem_loop_hz(problem, i, loops[i]);
}

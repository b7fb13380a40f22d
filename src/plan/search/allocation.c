// SPDX-License-Identifier: Apache-2.0
// What the servers of a packing are asked, and what they give.
//
// An allocation is one server's part of a pool: the streams `from` and those
// behind it. All of them may be asked at one rate, that of the fastest, so that
// their phases stay apart; or each at its own, and then they come as they
// come. td_plan_allocation_unlike() takes whichever is quicker. The latencies
// that follow give the rate at which each class's control loop can run
// (td_plan_allocation_loops).
//
// Compaction (td_plan_compact) is the last resort when a packing needs more
// GPUs than there are: it merges the server with the least load into the one
// with the most of the same model and component that still holds every
// deadline, until what is left fits. A merged allocation keeps its place in the
// list, and `joined` names the one that serves it.
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

// What all that is on a server's GPU asks, and how many they are.
static double joined_hz(const td_plan_evaluator *evaluator, size_t index,
                        const double *rates_hz, uint32_t *ret_streams)
{
    double sum = 0;
    *ret_streams = 0;
    for (size_t i = 0; i < evaluator->allocation_count; i++) {
        const td_plan_allocation *allocation = &evaluator->allocations[i];
        if (i != index && allocation->joined != index) continue;
        sum += td_plan_allocation_hz(evaluator, allocation, rates_hz);
        *ret_streams += allocation->streams;
    }
    return sum;
}

static bool is_alike(const td_plan_pool *a, const td_plan_pool *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->name, b->name) == 0;
}

// Whether a server still holds its deadlines with another's streams too.
static bool may_join(const td_plan_evaluator *evaluator, size_t from, size_t to,
                     const double *rates_hz)
{
    const td_plan_problem *problem = evaluator->problem;
    const td_plan_pool *own = &problem->pools[evaluator->allocations[to].pool];
    const td_plan_pool *other =
        &problem->pools[evaluator->allocations[from].pool];
    uint32_t here, there;
    td_plan_point point;
    if (from == to || evaluator->allocations[to].joined != TD_PLAN_NONE ||
        !is_alike(own, other))
        return false;
    double sum_hz = joined_hz(evaluator, from, rates_hz, &here) +
                    joined_hz(evaluator, to, rates_hz, &there);
    double slowest_hz = fmin(td_plan_evaluate_slowest_hz(own, rates_hz),
                             td_plan_evaluate_slowest_hz(other, rates_hz));
    const td_plan_pool *strict =
        own->deadline_ms <= other->deadline_ms ? own : other;
    return td_plan_problem_estimate(problem, strict,
                                    evaluator->allocations[to].type,
                                    here + there, sum_hz, slowest_hz, &point);
}

static void join(td_plan_evaluator *evaluator, size_t from, size_t to)
{
    for (size_t i = 0; i < evaluator->allocation_count; i++)
        if (i == from || evaluator->allocations[i].joined == from)
            evaluator->allocations[i].joined = (uint32_t)to;
}

// Merges the server with the least load into the one with the most that still
// takes it. False when no two can.
static bool merge_one(td_plan_evaluator *evaluator, const double *rates_hz)
{
    size_t best_from = SIZE_MAX;
    size_t best_to = SIZE_MAX;
    double least = INFINITY;
    double most = -1;
    uint32_t streams;
    for (size_t from = 0; from < evaluator->allocation_count; from++) {
        if (evaluator->allocations[from].joined != TD_PLAN_NONE) continue;
        double load = joined_hz(evaluator, from, rates_hz, &streams);
        for (size_t to = 0; to < evaluator->allocation_count; to++) {
            double other = joined_hz(evaluator, to, rates_hz, &streams);
            if (load > least || (load == least && other <= most) ||
                !may_join(evaluator, from, to, rates_hz))
                continue;
            least = load;
            most = other;
            best_from = from;
            best_to = to;
        }
    }
    if (best_from == SIZE_MAX) return false;
    join(evaluator, best_from, best_to);
    return true;
}

bool td_plan_compact(td_plan_evaluator *evaluator, const double *rates_hz)
{
    size_t gpus = evaluator->allocation_count;
    while (gpus > evaluator->problem->gpus && merge_one(evaluator, rates_hz))
        gpus--;
    return gpus <= evaluator->problem->gpus;
}

// SPDX-License-Identifier: Apache-2.0
#include "plan/search/search.h"

#include <math.h>
#include <string.h>

static void split_equally(td_plan_problem *problem)
{
    size_t count = problem->pool_count;
    for (size_t i = 0; i < count; i++)
        problem->pools[i].servers = (uint32_t)(problem->gpus * (i + 1) / count -
                                               problem->gpus * i / count);
}

// What is left after rounding down goes to those who lost most by it.
static void split_by_size(td_plan_problem *problem)
{
    double total_gb = 0;
    uint32_t left = problem->gpus;
    for (size_t i = 0; i < problem->pool_count; i++)
        total_gb += problem->pools[i].size_gb;
    for (size_t i = 0; i < problem->pool_count; i++) {
        td_plan_pool *pool = &problem->pools[i];
        pool->servers = (uint32_t)(problem->gpus * pool->size_gb / total_gb);
        left -= pool->servers;
    }
    for (; left > 0; left--) {
        td_plan_pool *next = NULL;
        double most = -INFINITY;
        for (size_t i = 0; i < problem->pool_count; i++) {
            td_plan_pool *pool = &problem->pools[i];
            double lost =
                problem->gpus * pool->size_gb / total_gb - pool->servers;
            if (lost <= most) continue;
            most = lost;
            next = pool;
        }
        if (next) next->servers++;
    }
}

td_err td_plan_baseline_split(td_plan_problem *problem, td_errinfo *info)
{
    if (problem->options.split == TD_PLAN_SPLIT_EQUAL)
        split_equally(problem);
    else
        split_by_size(problem);
    for (size_t i = 0; i < problem->pool_count; i++)
        if (problem->pools[i].servers == 0)
            return td_fail(info, TD_ERR_LIMIT,
                           "%u GPUs split this way leave none for %s of %s; "
                           "add GPUs",
                           problem->gpus, problem->pools[i].name,
                           problem->pools[i].model);
    return TD_OK;
}

static td_err new_found(const td_plan_problem *problem, size_t allocations,
                        td_plan_solution *found)
{
    size_t tasks = problem->factory->task_count;
    *found = (td_plan_solution){
        .rates_hz = td_arena_alloc(problem->arena, tasks, sizeof(double)),
        .loops_hz = td_arena_alloc(problem->arena, tasks, sizeof(double)),
        .bounds_hz = td_arena_alloc(problem->arena, tasks, sizeof(double)),
        .by_loop = td_arena_alloc(problem->arena, tasks, sizeof(bool)),
        .allocations = td_arena_alloc(problem->arena, allocations,
                                      sizeof(td_plan_allocation)),
    };
    return found->rates_hz && found->loops_hz && found->bounds_hz &&
                   found->by_loop && found->allocations
               ? TD_OK
               : TD_ERR_NOMEM;
}

static void add_share(td_plan_solution *found, uint32_t pool, uint32_t type,
                      uint32_t from, uint32_t streams, uint32_t joined)
{
    found->allocations[found->allocation_count++] = (td_plan_allocation){
        .pool = pool,
        .type = type,
        .from = from,
        .streams = streams,
        .joined = joined,
    };
}

// A type of GPU that the model runs on and of which there are some left.
static uint32_t take_gpu(const td_plan_problem *problem,
                         const td_plan_pool *pool, uint32_t *left)
{
    for (uint32_t i = 0; i < problem->type_count; i++)
        if (pool->curves[i] && left[i] > 0) {
            left[i]--;
            return i;
        }
    return TD_PLAN_NONE;
}

static void spread(const td_plan_problem *problem, uint32_t index,
                   uint32_t *left, td_plan_solution *found)
{
    const td_plan_pool *pool = &problem->pools[index];
    uint32_t count =
        pool->servers < pool->streams ? pool->servers : pool->streams;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = (uint32_t)((uint64_t)pool->streams * i / count);
        uint32_t to = (uint32_t)((uint64_t)pool->streams * (i + 1) / count);
        uint32_t type = take_gpu(problem, pool, left);
        if (type != TD_PLAN_NONE)
            add_share(found, index, type, from, to - from, TD_PLAN_NONE);
    }
}

// Where a component of the n-th robot of a task stands.
static uint32_t place_of(const td_plan_problem *problem, uint32_t task,
                         uint32_t component, uint32_t nth, uint32_t *ret_pool)
{
    for (uint32_t i = 0; i < problem->pool_count; i++) {
        const td_plan_pool *pool = &problem->pools[i];
        uint32_t start = 0;
        for (size_t j = 0; j < pool->need_count; j++) {
            if (pool->needs[j].task == task &&
                pool->needs[j].component == component) {
                *ret_pool = i;
                return start + nth;
            }
            start += pool->needs[j].streams;
        }
    }
    *ret_pool = 0;
    return 0;
}

// GPUs of its own for one robot. False when there are not enough.
static bool give_robot(const td_plan_problem *problem, uint32_t task,
                       uint32_t nth, uint32_t *left, td_plan_solution *found)
{
    const td_config_factory_task *at = &problem->factory->tasks[task];
    bool one = problem->options.split == TD_PLAN_SPLIT_ROBOT;
    size_t first = found->allocation_count;
    uint32_t before[TD_PLAN_MAX_TYPES];
    memcpy(before, left, sizeof before);
    for (uint32_t i = 0; i < at->component_count; i++) {
        uint32_t pool;
        uint32_t from = place_of(problem, task, i, nth, &pool);
        bool joins = one && i > 0;
        uint32_t type = joins ? found->allocations[first].type
                              : take_gpu(problem, &problem->pools[pool], left);
        if (type == TD_PLAN_NONE || !problem->pools[pool].curves[type]) {
            memcpy(left, before, sizeof before);
            found->allocation_count = first;
            return false;
        }
        add_share(found, pool, type, from, 1,
                  joins ? (uint32_t)first : TD_PLAN_NONE);
    }
    return true;
}

// One robot of each task in turn, so that none has them all.
static void give_robots(const td_plan_problem *problem, uint32_t *left,
                        td_plan_solution *found)
{
    bool more = true;
    for (uint32_t nth = 0; more; nth++) {
        more = false;
        for (uint32_t task = 0; task < problem->factory->task_count; task++)
            if (nth < problem->factory->tasks[task].robot_count &&
                give_robot(problem, task, nth, left, found))
                more = true;
    }
}

td_err td_plan_baseline_allocate(const td_plan_problem *problem,
                                 td_plan_solution *ret_found)
{
    uint32_t left[TD_PLAN_MAX_TYPES] = {0};
    for (size_t i = 0; i < problem->type_count; i++)
        left[i] = problem->types[i].gpus;
    TD_TRY(new_found(problem, problem->gpus * (problem->most_needs + 1),
                     ret_found));
    if (problem->options.split == TD_PLAN_SPLIT_MODEL_A_ROBOT ||
        problem->options.split == TD_PLAN_SPLIT_ROBOT) {
        give_robots(problem, left, ret_found);
        return TD_OK;
    }
    for (uint32_t i = 0; i < problem->pool_count; i++)
        spread(problem, i, left, ret_found);
    return TD_OK;
}

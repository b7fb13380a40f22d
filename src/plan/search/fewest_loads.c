// SPDX-License-Identifier: Apache-2.0
// How few models a plan can load: a GPU that serves a kind of stream as before
// loads none, so what counts is how many more servers of each kind there are on
// each type of GPU. The packing has the fewest for any rates, and what holds
// with some loads holds with more, so bisection finds the fewest of all.
#include "plan/search/search.h"

#include "plan/search/allocation.h"

#include <string.h>

#define AS_GOOD 0.99 // of the best: then what is there already stays

// The type of a GPU that is there still, and no standby; false: it is not.
static bool find_type(const td_plan_problem *problem,
                      const td_plan_server *server, size_t *ret_type)
{
    const td_config_factory_cluster *cluster =
        &problem->factory->server_cluster;
    for (size_t i = 0; i < cluster->node_count; i++) {
        if (strcmp(cluster->nodes[i].name, server->node) != 0) continue;
        *ret_type = td_plan_problem_type(problem, i);
        return server->gpu + problem->kept[i] < cluster->nodes[i].gpus;
    }
    return false;
}

// Whether a stream of the previous plan is of this pool's kind.
static bool is_of(const td_plan_problem *problem, const td_plan_pool *pool,
                  const td_plan_stream *stream)
{
    const td_plan *previous = problem->options.previous;
    const char *task =
        previous->classes[previous->robots[stream->robot].task].task;
    for (size_t i = 0; i < pool->need_count; i++)
        if (pool->needs[i].component == stream->component &&
            strcmp(problem->factory->tasks[pool->needs[i].task].name, task) ==
                0)
            return true;
    return false;
}

// Whether a server of the previous plan has the pool's model, and such streams.
static bool serves(const td_plan_problem *problem, const td_plan_pool *pool,
                   uint32_t server)
{
    const td_plan *previous = problem->options.previous;
    if (strcmp(previous->servers[server].model, pool->model) != 0) return false;
    for (size_t i = 0; i < previous->stream_count; i++)
        if (previous->streams[i].server == server &&
            is_of(problem, pool, &previous->streams[i]))
            return true;
    return false;
}

static void count_loaded(td_plan_problem *problem)
{
    const td_plan *previous = problem->options.previous;
    for (uint32_t i = 0; i < previous->server_count; i++) {
        size_t type;
        if (!find_type(problem, &previous->servers[i], &type)) continue;
        for (size_t j = 0; j < problem->pool_count; j++)
            problem->pools[j].loaded[type] +=
                serves(problem, &problem->pools[j], i);
    }
}

td_err td_plan_fewest_loads(td_plan_problem *problem, td_plan_solution *found)
{
    count_loaded(problem);
    double least_hz = AS_GOOD * found->value_hz;
    uint32_t low = 0;
    uint32_t high = td_plan_allocation_loads(problem, found->allocations,
                                             found->allocation_count);
    while (low < high) {
        td_plan_solution fewer = {.value_hz = 0};
        problem->most_loads = low + (high - low) / 2;
        td_err err = td_plan_search(problem, &fewer, NULL);
        if (err != TD_OK && err != TD_ERR_LIMIT) return err;
        if (err == TD_OK && fewer.value_hz >= least_hz) {
            high = problem->most_loads;
            *found = fewer;
        } else {
            low = problem->most_loads + 1;
        }
    }
    problem->most_loads = TD_PLAN_NONE;
    return TD_OK;
}

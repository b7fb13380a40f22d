// SPDX-License-Identifier: Apache-2.0
// How few models a plan can load: a GPU that serves a kind of stream as before
// loads none, so what counts is how many more servers of each kind there are.
#include "plan/prefer.h"

#include <string.h>

#define AS_GOOD 0.99    // of the best: then what is there already stays
#define MOST_RELOADS 12 // tried one by one before the best is taken as it is

// How many servers of the previous plan serve streams of this pool.
static uint32_t servers_before(const td_plan *previous,
                               const td_plan_problem *problem,
                               const td_plan_pool *pool)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < previous->server_count; i++) {
        bool found = false;
        for (size_t j = 0; j < previous->stream_count && !found; j++) {
            const td_plan_stream *stream = &previous->streams[j];
            if (stream->server != i) continue;
            const char *task =
                previous->classes[previous->robots[stream->robot].task].task;
            for (size_t k = 0; k < pool->need_count && !found; k++)
                found =
                    pool->needs[k].component == stream->component &&
                    strcmp(problem->factory->tasks[pool->needs[k].task].name,
                           task) == 0;
        }
        count += found;
    }
    return count;
}

static uint32_t servers_found(const td_plan_found *found, uint32_t pool)
{
    uint32_t count = 0;
    for (size_t i = 0; i < found->share_count; i++)
        count += found->shares[i].pool == pool &&
                 found->shares[i].joined == TD_PLAN_NONE;
    return count;
}

// The pool that lacks most of what it has in the best plan gets one server
// more. False when none lacks any.
static bool allow_more(td_plan_problem *problem, const td_plan_found *best)
{
    td_plan_pool *next = NULL;
    uint32_t most = 0;
    for (uint32_t i = 0; i < problem->pool_count; i++) {
        td_plan_pool *pool = &problem->pools[i];
        uint32_t count = servers_found(best, i);
        if (count <= pool->servers || count - pool->servers <= most) continue;
        most = count - pool->servers;
        next = pool;
    }
    if (next) next->servers++;
    return next;
}

// Whether there is a plan nearly as good as the best with as many servers as
// the pools may have now.
static td_err try_servers(const td_plan_problem *problem,
                          const td_plan_found *best, td_plan_found *ret_found,
                          bool *ret_good)
{
    td_err err = td_plan_search(problem, ret_found, NULL);
    if (err != TD_OK && err != TD_ERR_LIMIT) return err;
    *ret_good = err == TD_OK && ret_found->value_hz >= AS_GOOD * best->value_hz;
    return TD_OK;
}

// The fewest servers of one pool with which a plan is nearly as good when the
// others may have any number: no plan that is does with fewer.
static td_err find_least(td_plan_problem *problem, const td_plan_found *best,
                         uint32_t index, uint32_t before, uint32_t *ret_least)
{
    td_plan_found stable = {.value_hz = 0};
    uint32_t low = before > 0 ? before : 1;
    uint32_t high = servers_found(best, index);
    for (size_t i = 0; i < problem->pool_count; i++)
        problem->pools[i].servers = 0;
    while (low < high) {
        bool good;
        uint32_t middle = low + (high - low) / 2;
        problem->pools[index].servers = middle;
        TD_TRY(try_servers(problem, best, &stable, &good));
        if (good)
            high = middle;
        else
            low = middle + 1;
    }
    *ret_least = high;
    return TD_OK;
}

// Raises what each pool may have to the fewest that it needs in any case.
static td_err raise_to_least(td_plan_problem *problem,
                             const td_plan_found *best, uint32_t *servers)
{
    for (uint32_t i = 0; i < problem->pool_count; i++)
        if (servers_found(best, i) > servers[i])
            TD_TRY(find_least(problem, best, i, servers[i], &servers[i]));
    return TD_OK;
}

static void allow(td_plan_problem *problem, const td_plan_found *best,
                  const uint32_t *servers)
{
    for (uint32_t i = 0; i < problem->pool_count; i++)
        problem->pools[i].servers =
            servers[i] > 0 ? servers[i] : servers_found(best, i);
}

// With as many servers of each kind as before no GPU loads another model. Where
// that is too little, each kind gets what it needs however many the others
// have: if that is enough, fewer loads are not. Else one more after the other,
// until it is nearly as good as the best.
td_err td_plan_prefer(td_plan_problem *problem, td_plan_found *found)
{
    td_plan_found stable = {.value_hz = 0};
    bool good;
    uint32_t *servers = td_config_arena_alloc(
        problem->arena, problem->pool_count, sizeof *servers);
    if (!servers) return TD_ERR_NOMEM;
    for (size_t i = 0; i < problem->pool_count; i++)
        servers[i] = servers_before(problem->options.previous, problem,
                                    &problem->pools[i]);
    allow(problem, found, servers);
    TD_TRY(try_servers(problem, found, &stable, &good));
    if (!good) {
        TD_TRY(raise_to_least(problem, found, servers));
        allow(problem, found, servers);
        TD_TRY(try_servers(problem, found, &stable, &good));
    }
    for (int i = 0; i < MOST_RELOADS && !good; i++) {
        if (!allow_more(problem, found)) return TD_OK;
        TD_TRY(try_servers(problem, found, &stable, &good));
    }
    if (good) *found = stable;
    return TD_OK;
}

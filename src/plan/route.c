// SPDX-License-Identifier: Apache-2.0
// Which robot stands where in the lines of the pools, and so who asks whom.
// Robots that had a server before stand in its order, so that a plan with the
// same servers moves nobody.
#include "plan/assemble.h"

#include <stdlib.h>
#include <string.h>

typedef struct place {
    uint32_t robot;
    uint32_t before; // its server in the previous plan; NONE
} place;

static uint32_t server_before(const td_plan *previous, const char *robot,
                              uint32_t component)
{
    for (size_t i = 0; previous && i < previous->robot_count; i++) {
        const td_plan_robot *at = &previous->robots[i];
        if (strcmp(at->name, robot) != 0 || component >= at->stream_count)
            continue;
        return previous->streams[at->first_stream + component].server;
    }
    return TD_PLAN_NONE;
}

static int by_server(const void *left, const void *right)
{
    const place *a = left;
    const place *b = right;
    if (a->before != b->before) return a->before < b->before ? -1 : 1;
    return a->robot < b->robot ? -1 : a->robot > b->robot;
}

static void line_up(const td_plan_draft *draft, const td_plan_need *need,
                    place *places)
{
    const td_config_factory *factory = draft->problem->factory;
    const td_plan *previous = draft->problem->options.previous;
    size_t count = 0;
    for (uint32_t i = 0; i < factory->robot_count; i++)
        if (factory->robots[i].task == need->task)
            places[count++] =
                (place){i, server_before(previous, factory->robots[i].name,
                                         need->component)};
    if (previous) qsort(places, count, sizeof *places, by_server);
}

// The server of a place in a pool's line; NONE when no share has it.
static uint32_t server_at(const td_plan_draft *draft, size_t pool, uint32_t at)
{
    for (size_t i = 0; i < draft->found->share_count; i++) {
        const td_plan_share *share = &draft->found->shares[i];
        if (share->pool == pool && at >= share->from &&
            at < share->from + share->streams)
            return draft->share_server[i];
    }
    return TD_PLAN_NONE;
}

static void route_need(td_plan_draft *draft, size_t pool_index,
                       const td_plan_need *need, uint32_t start, place *places)
{
    td_plan *plan = draft->plan;
    const td_config_factory_component *part =
        &draft->problem->factory->tasks[need->task].components[need->component];
    line_up(draft, need, places);
    for (uint32_t i = 0; i < need->streams; i++) {
        td_plan_robot *robot = &plan->robots[places[i].robot];
        td_plan_stream *stream =
            &plan->streams[robot->first_stream + need->component];
        *stream = (td_plan_stream){
            .robot = places[i].robot,
            .component = need->component,
            .name = part->name,
            .server = server_at(draft, pool_index, start + i),
            .standby = TD_PLAN_NONE,
            .rate_hz = need->rate_hz,
            .every = need->per_action > 0 && need->component > 0
                         ? (uint32_t)(1 / need->per_action + 0.5)
                         : 0,
            .deadline_ms = part->slo_ms,
        };
        if (stream->server == TD_PLAN_NONE)
            robot->stream_count = 0;
        else
            draft->streams_of[stream->server]++;
    }
}

// A standby with the server's model, on another node if there is one.
static uint32_t standby_of(const td_plan *plan, const td_plan_server *server)
{
    uint32_t best = TD_PLAN_NONE;
    for (uint32_t i = 0; i < plan->server_count; i++) {
        const td_plan_server *other = &plan->servers[i];
        if (!other->standby || strcmp(other->model, server->model) != 0)
            continue;
        if (strcmp(other->node, server->node) != 0) return i;
        best = i;
    }
    return best;
}

static td_err list_robots(td_plan_draft *draft)
{
    const td_config_factory *factory = draft->problem->factory;
    td_plan *plan = draft->plan;
    plan->robots = td_config_arena_alloc(draft->arena, factory->robot_count + 1,
                                         sizeof *plan->robots);
    draft->rates_hz = td_config_arena_alloc(
        draft->arena, factory->robot_count + 1, sizeof(double));
    if (!plan->robots || !draft->rates_hz) return TD_ERR_NOMEM;
    plan->robot_count = factory->robot_count;
    for (size_t i = 0; i < factory->robot_count; i++) {
        size_t task = factory->robots[i].task;
        plan->robots[i] = (td_plan_robot){
            .name = factory->robots[i].name,
            .key = factory->robots[i].key,
            .task = (uint32_t)task,
            .first_stream = (uint32_t)plan->stream_count,
            .stream_count = (uint32_t)factory->tasks[task].component_count,
        };
        plan->stream_count += factory->tasks[task].component_count;
        draft->rates_hz[i] = draft->found->rates_hz[task];
    }
    plan->streams = td_config_arena_alloc(draft->arena, plan->stream_count + 1,
                                          sizeof *plan->streams);
    return plan->streams ? TD_OK : TD_ERR_NOMEM;
}

td_err td_plan_route(td_plan_draft *draft)
{
    const td_plan_problem *problem = draft->problem;
    TD_TRY(list_robots(draft));
    place *places = calloc(problem->factory->robot_count + 1, sizeof *places);
    if (!places) return TD_ERR_NOMEM;
    for (size_t i = 0; i < problem->pool_count; i++) {
        const td_plan_pool *pool = &problem->pools[i];
        uint32_t start = 0;
        for (size_t j = 0; j < pool->need_count; j++) {
            route_need(draft, i, &pool->needs[j], start, places);
            start += pool->needs[j].streams;
        }
    }
    free(places);
    for (size_t i = 0; i < draft->plan->stream_count; i++) {
        td_plan_stream *stream = &draft->plan->streams[i];
        if (stream->server != TD_PLAN_NONE)
            stream->standby =
                standby_of(draft->plan, &draft->plan->servers[stream->server]);
    }
    return TD_OK;
}

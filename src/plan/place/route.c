// SPDX-License-Identifier: Apache-2.0
// Which place each robot has in its pools' lines, and so which server it asks.
// Whoever can stay at a server of the previous plan does; the others take the
// places that are left, in their order.
#include "plan/place/assemble.h"

#include "plan/place/keep.h"

#include <stdlib.h>
#include <string.h>

// A place in a line.
typedef struct place {
    uint32_t server; // NONE: no allocation has it
    uint32_t robot;  // NONE: free
} place;

// The server of a place in a pool's line; NONE when no allocation has it.
static uint32_t server_at(const td_plan_draft *draft, size_t pool, uint32_t at)
{
    for (size_t i = 0; i < draft->found->allocation_count; i++) {
        const td_plan_allocation *allocation = &draft->found->allocations[i];
        if (allocation->pool == pool && at >= allocation->from &&
            at < allocation->from + allocation->streams)
            return draft->allocation_server[i];
    }
    return TD_PLAN_NONE;
}

static bool take_place(place *places, uint32_t count, uint32_t server,
                       uint32_t robot)
{
    for (uint32_t i = 0; i < count; i++) {
        if (places[i].robot != TD_PLAN_NONE || places[i].server != server)
            continue;
        places[i].robot = robot;
        return true;
    }
    return false;
}

// `placed` is of each robot of the factory.
static void line_up(const td_plan_draft *draft, const td_plan_need *need,
                    place *places, bool *placed)
{
    const td_config_factory *factory = draft->problem->factory;
    uint32_t next = 0;
    for (uint32_t i = 0; i < factory->robot_count; i++) {
        placed[i] = factory->robots[i].task != need->task;
        if (placed[i] || !draft->was) continue;
        uint32_t server = td_plan_keep_server(draft, i, need->component);
        if (server != TD_PLAN_NONE)
            placed[i] = take_place(places, need->streams, server, i);
    }
    for (uint32_t i = 0; i < factory->robot_count; i++) {
        if (placed[i]) continue;
        while (places[next].robot != TD_PLAN_NONE)
            next++;
        places[next].robot = i;
    }
}

static void connect(td_plan_draft *draft, const td_plan_need *need,
                    const place *at)
{
    td_plan *plan = draft->plan;
    const td_config_factory_component *part =
        &draft->problem->factory->tasks[need->task].components[need->component];
    td_plan_robot *robot = &plan->robots[at->robot];
    plan->streams[robot->first_stream + need->component] = (td_plan_stream){
        .robot = at->robot,
        .component = need->component,
        .name = part->name,
        .server = at->server,
        .standby = TD_PLAN_NONE,
        .rate_hz = need->rate_hz,
        .every = need->per_action > 0 && need->component > 0
                     ? (uint32_t)(1 / need->per_action + 0.5)
                     : 0,
        .deadline_ms = part->slo_ms,
    };
    if (at->server == TD_PLAN_NONE)
        robot->stream_count = 0;
    else
        draft->streams_of[at->server]++;
}

static td_err route_need(td_plan_draft *draft, size_t pool,
                         const td_plan_need *need, uint32_t start)
{
    size_t robots = draft->problem->factory->robot_count;
    place *places = calloc(need->streams + 1, sizeof *places);
    bool *placed = calloc(robots + 1, sizeof *placed);
    for (uint32_t i = 0; places && i < need->streams; i++)
        places[i] = (place){server_at(draft, pool, start + i), TD_PLAN_NONE};
    if (places && placed) line_up(draft, need, places, placed);
    for (uint32_t i = 0; places && placed && i < need->streams; i++)
        connect(draft, need, &places[i]);
    td_err err = places && placed ? TD_OK : TD_ERR_NOMEM;
    free(places);
    free(placed);
    return err;
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
    plan->robots = td_arena_alloc(draft->arena, factory->robot_count + 1,
                                  sizeof *plan->robots);
    draft->rates_hz =
        td_arena_alloc(draft->arena, factory->robot_count + 1, sizeof(double));
    draft->saved_hz =
        td_arena_alloc(draft->arena, factory->robot_count + 1, sizeof(double));
    if (!plan->robots || !draft->rates_hz || !draft->saved_hz)
        return TD_ERR_NOMEM;
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
    plan->streams = td_arena_alloc(draft->arena, plan->stream_count + 1,
                                   sizeof *plan->streams);
    return plan->streams ? TD_OK : TD_ERR_NOMEM;
}

td_err td_plan_route(td_plan_draft *draft)
{
    const td_plan_problem *problem = draft->problem;
    TD_TRY(list_robots(draft));
    for (size_t i = 0; i < problem->pool_count; i++) {
        const td_plan_pool *pool = &problem->pools[i];
        uint32_t start = 0;
        for (size_t j = 0; j < pool->need_count; j++) {
            TD_TRY(route_need(draft, i, &pool->needs[j], start));
            start += pool->needs[j].streams;
        }
    }
    for (size_t i = 0; i < draft->plan->stream_count; i++) {
        td_plan_stream *stream = &draft->plan->streams[i];
        if (stream->server != TD_PLAN_NONE)
            stream->standby =
                standby_of(draft->plan, &draft->plan->servers[stream->server]);
    }
    return TD_OK;
}

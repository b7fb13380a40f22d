// SPDX-License-Identifier: Apache-2.0
#include "plan/place/keep.h"

#include <string.h>

static uint32_t robot_of(const td_plan *plan, const char *name)
{
    for (uint32_t i = 0; i < plan->robot_count; i++)
        if (strcmp(plan->robots[i].name, name) == 0) return i;
    return TD_PLAN_NONE;
}

td_err td_plan_keep_find(td_plan_draft *draft)
{
    const td_plan *previous = draft->problem->options.previous;
    const td_config_factory *factory = draft->problem->factory;
    if (!previous) return TD_OK;
    draft->was =
        td_arena_alloc(draft->arena, factory->robot_count, sizeof *draft->was);
    if (!draft->was) return TD_ERR_NOMEM;
    for (size_t i = 0; i < factory->robot_count; i++)
        draft->was[i] = robot_of(previous, factory->robots[i].name);
    return TD_OK;
}

static bool is_at(const td_plan_server *server, const char *node, uint32_t gpu,
                  const char *model)
{
    return !server->standby && server->gpu == gpu &&
           strcmp(server->node, node) == 0 && strcmp(server->model, model) == 0;
}

bool td_plan_keep_had_model(const td_plan_draft *draft, const char *node,
                            uint32_t gpu, const char *model)
{
    const td_plan *previous = draft->problem->options.previous;
    for (size_t i = 0; previous && i < previous->server_count; i++)
        if (is_at(&previous->servers[i], node, gpu, model)) return true;
    return false;
}

// The server that a robot asked for a component; NULL: none.
static const td_plan_server *server_before(const td_plan_draft *draft,
                                           uint32_t robot, uint32_t component)
{
    const td_plan *previous = draft->problem->options.previous;
    if (!previous || draft->was[robot] == TD_PLAN_NONE) return NULL;
    const td_plan_robot *was = &previous->robots[draft->was[robot]];
    if (component >= was->stream_count) return NULL;
    return &previous->servers[previous->streams[was->first_stream + component]
                                  .server];
}

// How many streams of a need an allocation has room for.
static uint32_t room_of(const td_plan_allocation *allocation, uint32_t start,
                        uint32_t end)
{
    uint32_t from = allocation->from > start ? allocation->from : start;
    uint32_t to = allocation->from + allocation->streams;
    if (to > end) to = end;
    return to > from ? to - from : 0;
}

static uint32_t count_before(const td_plan_draft *draft,
                             const td_plan_need *need, const char *node,
                             uint32_t gpu, const char *model)
{
    const td_config_factory *factory = draft->problem->factory;
    uint32_t count = 0;
    for (uint32_t i = 0; i < factory->robot_count; i++) {
        if (factory->robots[i].task != need->task) continue;
        const td_plan_server *was = server_before(draft, i, need->component);
        count += was && is_at(was, node, gpu, model);
    }
    return count;
}

uint32_t td_plan_keep_streams(const td_plan_draft *draft,
                              const td_plan_allocation *allocation,
                              const char *node, uint32_t gpu)
{
    const td_plan_pool *pool = &draft->problem->pools[allocation->pool];
    uint32_t sum = 0;
    uint32_t start = 0;
    for (size_t i = 0; i < pool->need_count; i++) {
        const td_plan_need *need = &pool->needs[i];
        uint32_t room = room_of(allocation, start, start + need->streams);
        start += need->streams;
        if (room == 0) continue;
        uint32_t were = count_before(draft, need, node, gpu, pool->model);
        sum += were < room ? were : room;
    }
    return sum;
}

uint32_t td_plan_keep_server(const td_plan_draft *draft, uint32_t robot,
                             uint32_t component)
{
    const td_plan_server *was = server_before(draft, robot, component);
    for (uint32_t i = 0; was && i < draft->plan->server_count; i++)
        if (is_at(&draft->plan->servers[i], was->node, was->gpu, was->model))
            return i;
    return TD_PLAN_NONE;
}

static bool is_new(const td_plan_server *now, const td_plan *previous)
{
    for (size_t i = 0; i < previous->server_count; i++) {
        const td_plan_server *was = &previous->servers[i];
        if (now->gpu == was->gpu && strcmp(now->node, was->node) == 0 &&
            strcmp(now->model, was->model) == 0)
            return false;
    }
    return true;
}

void td_plan_keep_count_changes(td_plan *plan, const td_plan *previous)
{
    for (size_t i = 0; i < plan->server_count; i++)
        plan->reloaded +=
            !plan->servers[i].standby && is_new(&plan->servers[i], previous);
    for (size_t i = 0; i < plan->stream_count; i++) {
        const td_plan_stream *now = &plan->streams[i];
        const td_plan_server *server = &plan->servers[now->server];
        uint32_t robot = robot_of(previous, plan->robots[now->robot].name);
        if (robot == TD_PLAN_NONE) continue;
        const td_plan_robot *was = &previous->robots[robot];
        if (now->component >= was->stream_count) continue;
        const td_plan_server *before =
            &previous->servers
                 [previous->streams[was->first_stream + now->component].server];
        plan->rerouted +=
            !is_at(before, server->node, server->gpu, server->model);
    }
}

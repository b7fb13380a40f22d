// SPDX-License-Identifier: Apache-2.0
#include "plan/admit/desk.h"

#include "plan/file/own.h"

#include <stdlib.h>
#include <string.h>

const td_plan_pool *td_plan_desk_pool(const td_plan_problem *problem,
                                      uint32_t task, uint32_t component)
{
    for (size_t i = 0; i < problem->pool_count; i++)
        for (size_t j = 0; j < problem->pools[i].need_count; j++)
            if (problem->pools[i].needs[j].task == task &&
                problem->pools[i].needs[j].component == component)
                return &problem->pools[i];
    return NULL;
}

static td_err find_types(td_plan_desk *desk)
{
    const td_config_factory_cluster *cluster =
        &desk->problem->factory->server_cluster;
    for (size_t i = 0; i < desk->plan->server_count; i++) {
        size_t node = 0;
        while (node < cluster->node_count &&
               strcmp(cluster->nodes[node].name, desk->plan->servers[i].node) !=
                   0)
            node++;
        if (node == cluster->node_count) return TD_ERR_MISMATCH;
        desk->types[i] = td_plan_problem_type(desk->problem, node);
    }
    return TD_OK;
}

static td_err find_pools(td_plan_desk *desk)
{
    const td_plan *plan = desk->plan;
    const td_config_factory *factory = desk->problem->factory;
    for (size_t i = 0; i < plan->stream_count; i++) {
        const td_plan_stream *stream = &plan->streams[i];
        uint32_t task = plan->robots[stream->robot].task;
        if (task >= factory->task_count ||
            strcmp(factory->tasks[task].name, plan->classes[task].task) != 0 ||
            stream->component >= factory->tasks[task].component_count)
            return TD_ERR_MISMATCH;
        const td_plan_pool *pool =
            td_plan_desk_pool(desk->problem, task, stream->component);
        if (!pool || !pool->curves[desk->types[stream->server]])
            return TD_ERR_MISMATCH;
        desk->pools[stream->server] = pool;
        desk->streams_of[stream->server]++;
    }
    return TD_OK;
}

static td_err fill(td_plan_desk *desk, const td_plan *plan)
{
    td_plan *own;
    TD_TRY(td_plan_copy(plan, &own, &desk->arena));
    desk->plan = own;
    desk->robot_room = own->robot_count;
    desk->stream_room = own->stream_count;
    desk->pools =
        td_arena_alloc(desk->arena, own->server_count + 1, sizeof *desk->pools);
    desk->types =
        td_arena_alloc(desk->arena, own->server_count + 1, sizeof *desk->types);
    desk->streams_of = td_arena_alloc(desk->arena, own->server_count + 1,
                                      sizeof *desk->streams_of);
    if (!desk->pools || !desk->types || !desk->streams_of) return TD_ERR_NOMEM;
    TD_TRY(find_types(desk));
    return find_pools(desk);
}

td_err td_plan_desk_new(const td_config_factory *factory,
                        const td_config_profiles *profiles, const td_plan *plan,
                        td_plan_desk **ret_desk, td_errinfo *info)
{
    TD_AUTO(td_plan_desk) *desk = calloc(1, sizeof *desk);
    td_plan_options options = td_plan_options_of(plan->planner);
    if (!desk) return TD_ERR_NOMEM;
    TD_TRY(
        td_plan_problem_new(factory, profiles, &options, &desk->problem, info));
    if (!options.capped || plan->class_count != factory->task_count)
        return td_fail(info, TD_ERR_MISMATCH,
                       "this plan is not of this factory, or gives no rates");
    td_err err = fill(desk, plan);
    if (err == TD_ERR_MISMATCH)
        return td_fail(info, err, "this plan is not of this factory");
    TD_TRY(err);
    *ret_desk = TD_TAKE(desk);
    return TD_OK;
}

void td_plan_desk_free(td_plan_desk *desk)
{
    if (desk->plan) td_plan_free(desk->plan);
    if (desk->problem) td_plan_problem_free(desk->problem);
    free(desk);
}

const td_plan *td_plan_desk_plan(const td_plan_desk *desk)
{
    return desk->plan;
}

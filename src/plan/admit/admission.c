// SPDX-License-Identifier: Apache-2.0
#include "plan/admit/admission.h"

#include "plan/memory.h"

#include <stdlib.h>
#include <string.h>

const td_plan_pool *td_plan_admission_pool(const td_plan_problem *problem,
                                           uint32_t task, uint32_t component)
{
    for (size_t i = 0; i < problem->pool_count; i++)
        for (size_t j = 0; j < problem->pools[i].need_count; j++)
            if (problem->pools[i].needs[j].task == task &&
                problem->pools[i].needs[j].component == component)
                return &problem->pools[i];
    return NULL;
}

static td_err find_types(td_plan_admission *admission)
{
    const td_config_factory_cluster *cluster =
        &admission->problem->factory->server_cluster;
    for (size_t i = 0; i < admission->plan->server_count; i++) {
        size_t node = 0;
        while (node < cluster->node_count &&
               strcmp(cluster->nodes[node].name,
                      admission->plan->servers[i].node) != 0)
            node++;
        if (node == cluster->node_count) return TD_ERR_MISMATCH;
        admission->types[i] = td_plan_problem_type(admission->problem, node);
    }
    return TD_OK;
}

static td_err find_pools(td_plan_admission *admission)
{
    const td_plan *plan = admission->plan;
    const td_config_factory *factory = admission->problem->factory;
    for (size_t i = 0; i < plan->stream_count; i++) {
        const td_plan_stream *stream = &plan->streams[i];
        uint32_t task = plan->robots[stream->robot].task;
        if (task >= factory->task_count ||
            strcmp(factory->tasks[task].name, plan->classes[task].task) != 0 ||
            stream->component >= factory->tasks[task].component_count)
            return TD_ERR_MISMATCH;
        const td_plan_pool *pool =
            td_plan_admission_pool(admission->problem, task, stream->component);
        if (!pool || !pool->curves[admission->types[stream->server]])
            return TD_ERR_MISMATCH;
        admission->pools[stream->server] = pool;
        admission->streams_of[stream->server]++;
    }
    return TD_OK;
}

static td_err fill(td_plan_admission *admission, const td_plan *plan)
{
    td_plan *copy;
    TD_TRY(td_plan_copy(plan, &copy, &admission->arena));
    admission->plan = copy;
    admission->robot_room = copy->robot_count;
    admission->stream_room = copy->stream_count;
    admission->pools = td_arena_alloc(admission->arena, copy->server_count + 1,
                                      sizeof *admission->pools);
    admission->types = td_arena_alloc(admission->arena, copy->server_count + 1,
                                      sizeof *admission->types);
    admission->streams_of =
        td_arena_alloc(admission->arena, copy->server_count + 1,
                       sizeof *admission->streams_of);
    if (!admission->pools || !admission->types || !admission->streams_of)
        return TD_ERR_NOMEM;
    TD_TRY(find_types(admission));
    return find_pools(admission);
}

td_err td_plan_admission_new(const td_config_factory *factory,
                             const td_config_profiles *profiles,
                             const td_plan *plan,
                             td_plan_admission **ret_admission,
                             td_errinfo *info)
{
    TD_AUTO(td_plan_admission) *admission = calloc(1, sizeof *admission);
    td_plan_options options = td_plan_options_of(plan->planner);
    if (!admission) return TD_ERR_NOMEM;
    TD_TRY(td_plan_problem_new(factory, profiles, &options, &admission->problem,
                               info));
    if (!options.capped || plan->class_count != factory->task_count)
        return td_fail(info, TD_ERR_MISMATCH,
                       "this plan is not of this factory, or gives no rates");
    td_err err = fill(admission, plan);
    if (err == TD_ERR_MISMATCH)
        return td_fail(info, err, "this plan is not of this factory");
    TD_TRY(err);
    *ret_admission = TD_TAKE(admission);
    return TD_OK;
}

void td_plan_admission_free(td_plan_admission *admission)
{
    if (admission->plan) td_plan_free(admission->plan);
    if (admission->problem) td_plan_problem_free(admission->problem);
    free(admission);
}

const td_plan *td_plan_admission_plan(const td_plan_admission *admission)
{
    return admission->plan;
}

// SPDX-License-Identifier: Apache-2.0
#include "plan/place/assemble.h"

#include "plan/capacity/rosa.h"
#include "plan/memory.h"
#include "plan/place/keep.h"

#include <math.h>
#include <string.h>

#define AT_LOOP 0.995 // of what a loop allows: then it is what binds

// Servers with the batch limit for what they are asked.
static void set_servers(td_plan_draft *draft)
{
    for (uint32_t i = 0; i < draft->plan->server_count; i++) {
        td_plan_server *server = &draft->plan->servers[i];
        const td_plan_pool *pool = draft->pools[i];
        td_plan_point point;
        if (!pool) continue;
        const td_plan_curve *curve = pool->curves[draft->types[i]];
        bool continuous = td_config_profile_continuous(curve->profile);
        server->rate_hz = draft->loads_hz[i];
        if (continuous) server->wait = TD_CONFIG_WAIT_NONE;
        if (continuous || !draft->problem->options.capped) continue;
        if (!draft->problem->options.staggered) {
            server->batch_most = td_plan_rosa_batch(curve, draft->streams_of[i],
                                                    draft->loads_hz[i]);
            server->capacity_hz =
                td_plan_rosa_batch_hz(curve, server->batch_most);
        } else if (td_plan_draft_point(draft, i, draft->loads_hz[i], &point)) {
            td_plan_point_use(&point, server);
        }
    }
}

static void set_latencies(td_plan_draft *draft)
{
    td_plan *plan = draft->plan;
    for (size_t i = 0; i < plan->stream_count; i++) {
        td_plan_stream *stream = &plan->streams[i];
        td_plan_point point;
        if (stream->server == TD_PLAN_NONE ||
            !td_plan_draft_point(draft, stream->server,
                                 draft->loads_hz[stream->server], &point))
            continue;
        stream->mean_ms = point.mean_ms;
        stream->tail_ms = point.tail_ms;
    }
}

// What a robot's loop takes, from its streams.
static double robot_loop_hz(const td_plan_draft *draft, uint32_t index)
{
    const td_plan_robot *robot = &draft->plan->robots[index];
    const td_config_factory_task *task =
        &draft->problem->factory->tasks[robot->task];
    double latency_ms = 0;
    for (uint32_t i = 0; i < robot->stream_count; i++) {
        const td_plan_stream *stream =
            &draft->plan->streams[robot->first_stream + i];
        const td_plan_point point = {.mean_ms = stream->mean_ms,
                                     .tail_ms = stream->tail_ms};
        latency_ms += task->components[i].per_action *
                      td_plan_problem_loop_ms(draft->problem, &point);
    }
    return td_plan_problem_loop_hz(draft->problem, robot->task, latency_ms);
}

// The component whose servers are nearest to their limit.
static uint32_t tightest(const td_plan_draft *draft, uint32_t task,
                         double *ret_load)
{
    const td_plan *plan = draft->plan;
    uint32_t best = TD_PLAN_NONE;
    *ret_load = 0;
    for (size_t i = 0; i < plan->stream_count; i++) {
        const td_plan_stream *stream = &plan->streams[i];
        if (plan->robots[stream->robot].task != task ||
            stream->server == TD_PLAN_NONE)
            continue;
        const td_plan_server *server = &plan->servers[stream->server];
        double load = server->rate_hz / server->capacity_hz;
        if (load <= *ret_load) continue;
        *ret_load = load;
        best = stream->component;
    }
    return best;
}

// Whether a deadline keeps a component's servers below what they could do.
static bool is_by_deadline(const td_plan_draft *draft, uint32_t task,
                           uint32_t component)
{
    const td_plan *plan = draft->plan;
    for (size_t i = 0; i < plan->stream_count; i++) {
        const td_plan_stream *stream = &plan->streams[i];
        if (plan->robots[stream->robot].task != task ||
            stream->component != component || stream->server == TD_PLAN_NONE)
            continue;
        const td_plan_curve *curve =
            draft->pools[stream->server]->curves[draft->types[stream->server]];
        return curve->capacity_hz < 0.9 * curve->step_hz * TD_PLAN_CURVE_STEPS;
    }
    return false;
}

static void set_binds(td_plan_draft *draft, uint32_t task)
{
    td_plan_class *class = &draft->plan->classes[task];
    double load;
    class->bound = tightest(draft, task, &load);
    if (!draft->problem->options.capped) {
        class->binds = TD_PLAN_BINDS_NOTHING;
        class->bound = TD_PLAN_NONE;
    } else if (draft->found->by_loop[task] ||
               class->rate_hz >= AT_LOOP * class->loop_hz) {
        class->binds = TD_PLAN_BINDS_LOOP;
        class->bound = 0;
    } else if (load > 0.8 && is_by_deadline(draft, task, class->bound)) {
        class->binds = TD_PLAN_BINDS_DEADLINE;
    } else {
        class->binds = TD_PLAN_BINDS_GPUS;
    }
}

static void count_robot(td_plan_draft *draft, uint32_t index)
{
    td_plan *plan = draft->plan;
    const td_plan_robot *robot = &plan->robots[index];
    td_plan_class *class = &plan->classes[robot->task];
    if (robot->stream_count == 0) {
        class->refused++;
        return;
    }
    class->robots++;
    if (!draft->problem->options.capped) return;
    double granted_hz = plan->streams[robot->first_stream].rate_hz;
    double loop_hz = robot_loop_hz(draft, index);
    class->rate_hz += fmin(granted_hz, loop_hz);
    if (class->loop_hz == 0 || loop_hz < class->loop_hz)
        class->loop_hz = loop_hz;
}

static td_err set_classes(td_plan_draft *draft)
{
    const td_config_factory *factory = draft->problem->factory;
    td_plan *plan = draft->plan;
    plan->classes = td_arena_alloc(draft->arena, factory->task_count,
                                   sizeof *plan->classes);
    if (!plan->classes) return TD_ERR_NOMEM;
    plan->class_count = factory->task_count;
    for (uint32_t i = 0; i < plan->robot_count; i++)
        count_robot(draft, i);
    for (uint32_t i = 0; i < plan->class_count; i++) {
        td_plan_class *class = &plan->classes[i];
        class->task = factory->tasks[i].name;
        class->value = factory->tasks[i].value;
        class->most_hz = draft->found->bounds_hz[i];
        plan->actions_hz += class->rate_hz;
        plan->value_hz += class->value * class->rate_hz;
        if (class->robots) class->rate_hz /= class->robots;
        set_binds(draft, i);
    }
    return TD_OK;
}

// Streams of robots that were refused leave.
static void close_ranks(td_plan *plan)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->robot_count; i++) {
        td_plan_robot *robot = &plan->robots[i];
        memmove(&plan->streams[count], &plan->streams[robot->first_stream],
                robot->stream_count * sizeof *plan->streams);
        robot->first_stream = (uint32_t)count;
        count += robot->stream_count;
    }
    plan->stream_count = count;
}

static td_err assemble(td_plan_draft *draft)
{
    TD_TRY(td_plan_keep_find(draft));
    TD_TRY(td_plan_place(draft));
    TD_TRY(td_plan_route(draft));
    td_plan_robot_rates(draft);
    set_servers(draft);
    td_plan_robot_phases(draft);
    set_latencies(draft);
    TD_TRY(set_classes(draft));
    close_ranks(draft->plan);
    return td_plan_memory_copy_names(draft->plan, draft->arena);
}

td_err td_plan_assemble(const td_plan_problem *problem,
                        const td_plan_solution *found, td_plan **ret_plan)
{
    TD_AUTO(td_plan) *plan = NULL;
    td_plan_draft draft = {.problem = problem, .found = found};
    TD_TRY(td_plan_new(&plan, &draft.arena));
    draft.plan = plan;
    plan->planner = problem->options.planner;
    plan->points = found->points;
    TD_TRY(assemble(&draft));
    *ret_plan = TD_TAKE(plan);
    return TD_OK;
}

// SPDX-License-Identifier: Apache-2.0
#include "sim/factory.h"

#include "sim/factory/world.h"

#include <stdlib.h>

const td_sim_factory_options td_sim_factory_defaults = {
    .seed = 1,
    .runs = 1,
    .duration_ns = 80 * TD_NS_PER_S,
    .warmup_ns = 20 * TD_NS_PER_S,
    .action_jitter = 0.05,
    .network_jitter_ns = 3 * TD_NS_PER_MS,
    .interference = 1,
};

static td_err check_options(const td_sim_factory_options *options,
                            td_errinfo *info)
{
    const char *bad = NULL;
    if (options->runs == 0) bad = "runs: at least 1";
    if (options->warmup_ns < 0 || options->duration_ns <= options->warmup_ns)
        bad = "duration: must be longer than the warm-up";
    if (!(options->action_jitter >= 0 && options->action_jitter <= 1))
        bad = "action jitter: 0 to 1";
    if (options->network_jitter_ns < 0) bad = "network jitter: not below 0";
    if (!(options->interference >= 0)) bad = "interference: not below 0";
    if (!(options->unsafe >= 0 && options->unsafe <= 1)) bad = "unsafe: 0 to 1";
    if (!(options->failing >= 0 && options->failing <= 1))
        bad = "failing: 0 to 1";
    return bad ? td_fail(info, TD_ERR_INVALID, "%s", bad) : TD_OK;
}

// Robots are of the plan's file, tasks of the factory's: they must be one.
static td_err check_robot(const td_config_factory *factory, const td_plan *plan,
                          size_t number, td_errinfo *info)
{
    const td_plan_robot *robot = &plan->robots[number];
    bool known = robot->task < factory->task_count;
    size_t components = known ? factory->tasks[robot->task].component_count : 0;
    bool fits = robot->stream_count == 0 || robot->stream_count == components;
    if (!known || !fits || components > TD_WIRE_MAX_COMPONENTS ||
        robot->first_stream + robot->stream_count > plan->stream_count)
        return td_fail(info, TD_ERR_INVALID,
                       "the plan is not of this factory: robot %s has another "
                       "task there",
                       robot->name);
    for (uint32_t i = 0; i < robot->stream_count; i++) {
        const td_plan_stream *stream = &plan->streams[robot->first_stream + i];
        if (stream->component != i || stream->robot != number ||
            stream->server >= plan->server_count)
            return td_fail(info, TD_ERR_INVALID,
                           "the plan is damaged: robot %s, component %u",
                           robot->name, i);
    }
    return TD_OK;
}

static td_err check(const td_config_factory *factory, const td_plan *plan,
                    const td_sim_factory_options *options, td_errinfo *info)
{
    TD_TRY(check_options(options, info));
    if (plan->class_count != factory->task_count ||
        plan->robot_count != factory->robot_count || plan->server_count == 0)
        return td_fail(info, TD_ERR_INVALID,
                       "the plan is not of this factory: %zu tasks and %zu "
                       "robots there, %zu and %zu here",
                       plan->class_count, plan->robot_count,
                       factory->task_count, factory->robot_count);
    for (size_t i = 0; i < plan->robot_count; i++)
        TD_TRY(check_robot(factory, plan, i, info));
    return TD_OK;
}

static void happen(const td_sim_factory_event *event)
{
    int64_t now_ns = event->at_ns;
    td_sim_factory_gpu *gpu = event->subject;
    switch ((td_sim_factory_kind)event->kind) {
    case TD_SIM_FACTORY_ASK:
        td_sim_factory_robot_ask(event->subject, now_ns);
        break;
    case TD_SIM_FACTORY_CHECK:
        td_sim_factory_robot_check(event->subject, now_ns);
        break;
    case TD_SIM_FACTORY_ACTED:
        td_sim_factory_robot_acted(event->subject, now_ns);
        break;
    case TD_SIM_FACTORY_BACK:
        td_sim_factory_robot_back(event->subject, now_ns);
        break;
    case TD_SIM_FACTORY_LATE:
        td_sim_factory_robot_late(event->subject, now_ns, event->tag);
        break;
    case TD_SIM_FACTORY_ARRIVES:
        td_sim_factory_server_arrives(event->subject, now_ns);
        break;
    case TD_SIM_FACTORY_ANSWERED:
        td_sim_factory_robot_answered(event->subject, now_ns);
        break;
    case TD_SIM_FACTORY_RAN:
        if (gpu->generation == event->tag) td_sim_factory_gpu_ran(gpu, now_ns);
        break;
    case TD_SIM_FACTORY_WAKE:
        td_sim_factory_server_schedule(event->subject, now_ns);
        break;
    }
}

static td_err run_world(td_sim_factory_world *world)
{
    td_sim_factory_event event;
    while (td_sim_factory_events_take(&world->events, &event) &&
           event.at_ns < world->options->duration_ns)
        happen(&event);
    for (uint32_t i = 0; i < world->gpu_count; i++)
        td_sim_factory_gpu_advance(&world->gpus[i],
                                   world->options->duration_ns);
    world->sums->events += world->events.taken;
    if (world->events.err != TD_OK) return world->events.err;
    return world->err != TD_OK ? world->err : world->trace->err;
}

static td_err run_all(td_sim_factory_world *common, td_errinfo *info)
{
    for (uint32_t i = 0; i < common->options->runs; i++) {
        td_sim_factory_world world = *common;
        td_err err =
            td_sim_factory_world_init(&world, world.options->seed + i, info);
        if (err == TD_OK) err = run_world(&world);
        td_sim_factory_world_done(&world);
        TD_TRY(err);
    }
    return TD_OK;
}

td_err td_sim_factory_run(const td_config_factory *factory,
                          const td_config_profiles *profiles,
                          const td_plan *plan,
                          const td_sim_factory_options *options,
                          td_sim_factory_result *ret_result, td_errinfo *info)
{
    TD_TRY(check(factory, plan, options, info));
    td_sim_factory_sums sums;
    td_sim_trace trace = {.keep = options->trace, .hash = TD_SIM_TRACE_SEED};
    td_sim_factory_world common = {.factory = factory,
                                   .profiles = profiles,
                                   .plan = plan,
                                   .options = options,
                                   .sums = &sums,
                                   .trace = &trace};
    td_err err = td_sim_factory_sums_init(&sums, plan);
    if (err == TD_OK) err = run_all(&common, info);
    if (err == TD_OK)
        err = td_sim_factory_sums_result(&sums, plan, options, ret_result);
    if (err == TD_OK && options->trace) {
        ret_result->trace_size = trace.size;
        ret_result->trace_hash = trace.hash;
        ret_result->trace = TD_TAKE(trace.text);
    }
    free(trace.text);
    td_sim_factory_sums_done(&sums);
    return err;
}

void td_sim_factory_result_done(td_sim_factory_result *result)
{
    free(result->classes);
    free(result->streams);
    free(result->servers);
    free(result->trace);
    *result = (td_sim_factory_result){0};
}

// The part of its answers that must be on time.
static double wanted_of(const td_config_factory *factory, const td_plan *plan,
                        size_t stream)
{
    const td_plan_stream *s = &plan->streams[stream];
    const td_config_factory_task *task =
        &factory->tasks[plan->robots[s->robot].task];
    return task->components[s->component].slo_percentile / 100;
}

// Whether no robot was stopped by what came in a row.
static td_err nobody_stopped(const td_plan *plan,
                             const td_sim_factory_result *result,
                             td_errinfo *info)
{
    for (size_t i = 0; i < result->class_count; i++)
        if (result->classes[i].stopped > 0)
            return td_fail(info, TD_ERR_MISMATCH,
                           "%s: %llu times a robot was stopped for good by "
                           "what went wrong in a row",
                           plan->classes[i].task,
                           (unsigned long long)result->classes[i].stopped);
    return TD_OK;
}

td_err td_sim_factory_holds(const td_config_factory *factory,
                            const td_plan *plan,
                            const td_sim_factory_result *result,
                            td_errinfo *info)
{
    size_t worst = result->stream_count;
    double most_short = 0;
    for (size_t i = 0; i < result->stream_count; i++) {
        double wanted = wanted_of(factory, plan, i);
        double short_by = wanted - td_sim_factory_met(&result->streams[i]);
        if (short_by <= most_short) continue;
        worst = i;
        most_short = short_by;
    }
    if (worst == result->stream_count)
        return nobody_stopped(plan, result, info);
    const td_plan_stream *stream = &plan->streams[worst];
    return td_fail(info, TD_ERR_MISMATCH,
                   "robot %s: %.1f %% of the answers of %s were on time, %.4g "
                   "%% are wanted",
                   plan->robots[stream->robot].name,
                   100 * td_sim_factory_met(&result->streams[worst]),
                   stream->name, 100 * wanted_of(factory, plan, worst));
}

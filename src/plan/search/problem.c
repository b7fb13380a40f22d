// SPDX-License-Identifier: Apache-2.0
// Turns a factory, its profiles and the planner's options into the planner's
// own terms: types of GPUs, and pools of streams that may share servers.
//
// A stream is one component (a model) of one robot; the streams of one
// component of one task are a need; needs with the same model, engine and
// deadline form a pool where the options let tasks share, and else a pool each.
// Within a pool the needs lie in order of their periods, because neighbours
// share servers and like periods keep their phases apart.
//
// GPUs for standbys are set aside first, from the last nodes in turn. What is
// left is counted by type. For each pool and type a curve says what a server
// gives at any load (capacity/curve.c): one for streams in phases of their own,
// one for streams of unlike rates, and one for each size of batch where robots
// are answered in step. A pool that no type of GPU can serve within its
// deadline is refused here, with the reason in words.
//
// td_plan_problem_estimate() is what everything after this asks: the latency
// that a server gives so many streams at such a rate. With the options of the
// Rosa paper it answers as the paper's own scheduler does (capacity/rosa.c).
//
// The problem borrows the factory and the profiles. All else is in its arena
// and goes with it.
#include "plan/search/problem.h"

#include "plan/capacity/rosa.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OBLIGED 1e-9 // the worth of a millisecond that no action waits for

static bool is_shared(const td_plan_problem *problem, const td_plan_pool *pool,
                      const td_config_factory_component *part)
{
    if (strcmp(pool->model, part->model) != 0 ||
        strcmp(pool->engine, part->engine) != 0)
        return false;
    if (problem->options.split != TD_PLAN_SPLIT_BEST)
        return strcmp(pool->name, part->name) == 0;
    return problem->options.shared && !problem->by_columns &&
           pool->deadline_ms == part->slo_ms &&
           pool->percentile == part->slo_percentile;
}

static td_plan_pool *find_pool(td_plan_problem *problem,
                               const td_config_factory_component *part)
{
    for (size_t i = 0; i < problem->pool_count; i++)
        if (is_shared(problem, &problem->pools[i], part))
            return &problem->pools[i];
    td_plan_pool *pool = &problem->pools[problem->pool_count++];
    *pool = (td_plan_pool){
        .model = part->model,
        .engine = part->engine,
        .name = part->name,
        .deadline_ms = part->slo_ms,
        .percentile = part->slo_percentile,
        .needs = td_arena_alloc(problem->arena, problem->most_needs,
                                sizeof *pool->needs),
    };
    return pool;
}

static void add_need(td_plan_pool *pool, const td_config_factory_task *task,
                     uint32_t task_index, uint32_t component)
{
    const td_config_factory_component *part = &task->components[component];
    pool->needs[pool->need_count++] = (td_plan_need){
        .task = task_index,
        .component = component,
        .streams = (uint32_t)task->robot_count,
        .per_action = part->per_action,
        .rate_hz = part->rate_hz,
        .worth =
            part->per_action > 0 ? task->value * part->per_action : OBLIGED,
    };
    pool->streams += (uint32_t)task->robot_count;
    pool->deadline_ms = fmin(pool->deadline_ms, part->slo_ms);
    pool->percentile = fmax(pool->percentile, part->slo_percentile);
}

static td_err add_task(td_plan_problem *problem, uint32_t index)
{
    const td_config_factory_task *task = &problem->factory->tasks[index];
    for (uint32_t i = 0; i < task->component_count; i++) {
        td_plan_pool *pool = find_pool(problem, &task->components[i]);
        if (!pool->needs) return TD_ERR_NOMEM;
        add_need(pool, task, index, i);
    }
    return TD_OK;
}

static td_err add_type(td_plan_problem *problem,
                       const td_config_factory_node *node, td_errinfo *info)
{
    for (size_t i = 0; i < problem->type_count; i++) {
        td_plan_type *type = &problem->types[i];
        if (strcmp(type->name, node->gpu_type) != 0 ||
            type->memory_gb != node->gpu_memory_gb)
            continue;
        type->gpus += (uint32_t)node->gpus;
        return TD_OK;
    }
    if (problem->type_count == TD_PLAN_MAX_TYPES)
        return td_fail(info, TD_ERR_LIMIT,
                       "server_cluster: at most %d types of GPU are planned "
                       "together; plan the others as a factory of their own",
                       TD_PLAN_MAX_TYPES);
    problem->types[problem->type_count++] = (td_plan_type){
        node->gpu_type, node->gpu_memory_gb, (uint32_t)node->gpus};
    return TD_OK;
}

size_t td_plan_problem_type(const td_plan_problem *problem, size_t node)
{
    const td_config_factory_node *at =
        &problem->factory->server_cluster.nodes[node];
    size_t i = 0;
    while (i + 1 < problem->type_count &&
           (strcmp(problem->types[i].name, at->gpu_type) != 0 ||
            problem->types[i].memory_gb != at->gpu_memory_gb))
        i++;
    return i;
}

// Standbys come from the last nodes, one of each in turn, so that no one node
// has them all.
static td_err keep_standbys(td_plan_problem *problem, td_errinfo *info)
{
    const td_config_factory_cluster *cluster =
        &problem->factory->server_cluster;
    size_t node = cluster->node_count;
    if (cluster->standby == 0) return TD_OK;
    if (cluster->standby >= cluster->num_servers)
        return td_fail(info, TD_ERR_INVALID,
                       "server_cluster: standby: %lld of %lld GPUs leave none "
                       "for the robots; keep fewer",
                       (long long)cluster->standby,
                       (long long)cluster->num_servers);
    while (problem->standbys < cluster->standby) {
        node = node == 0 ? cluster->node_count - 1 : node - 1;
        if (problem->kept[node] >= cluster->nodes[node].gpus) continue;
        problem->kept[node]++;
        problem->standbys++;
        problem->types[td_plan_problem_type(problem, node)].gpus--;
    }
    return TD_OK;
}

static td_err add_types(td_plan_problem *problem, td_errinfo *info)
{
    const td_config_factory_cluster *cluster =
        &problem->factory->server_cluster;
    problem->kept = td_arena_alloc(problem->arena, cluster->node_count,
                                   sizeof *problem->kept);
    if (!problem->kept) return TD_ERR_NOMEM;
    for (size_t i = 0; i < cluster->node_count; i++)
        TD_TRY(add_type(problem, &cluster->nodes[i], info));
    TD_TRY(keep_standbys(problem, info));
    uint32_t gpus[TD_PLAN_MAX_TYPES];
    for (size_t i = 0; i < problem->type_count; i++) {
        problem->gpus += problem->types[i].gpus;
        gpus[i] = problem->types[i].gpus;
        if (problem->options.compact) gpus[i] += (uint32_t)problem->most_needs;
    }
    problem->by_columns = td_plan_pack_by_columns(gpus, problem->type_count);
    return TD_OK;
}

// How many fit at once into the memory of a GPU. 0: not even the model.
static uint32_t most_that_fit(const td_plan_problem *problem,
                              const td_config_profile *profile, size_t type)
{
    uint32_t most = td_config_profile_max_batch(profile);
    double memory_gb = problem->types[type].memory_gb;
    if (memory_gb == 0) memory_gb = profile->gpu_memory_gb;
    if (!td_config_profile_continuous(profile) && problem->options.batch_most &&
        most > problem->options.batch_most)
        most = problem->options.batch_most;
    while (most > 0 && memory_gb > 0 &&
           td_config_profile_memory_gb(profile, most) > memory_gb)
        most--;
    return most;
}

static double jitter_ms(const td_plan_problem *problem,
                        const td_plan_pool *pool)
{
    double most = 0;
    for (size_t i = 0; i < pool->need_count; i++) {
        const td_config_factory_task *task =
            &problem->factory->tasks[pool->needs[i].task];
        if (pool->needs[i].per_action > 0)
            most = fmax(most, task->pipeline.action_period_ms *
                                  problem->options.action_jitter);
    }
    return hypot(most, problem->options.network_jitter_ms);
}

// Whether robots that are answered together ask together again: they wait for
// nothing else before an action, and are of one class.
static bool keeps_step(const td_plan_problem *problem, const td_plan_pool *pool)
{
    const td_config_factory_task *task =
        &problem->factory->tasks[pool->needs[0].task];
    uint32_t goals = 0;
    for (size_t i = 0; i < task->component_count; i++)
        goals += task->components[i].per_action > 0;
    return pool->need_count == 1 && pool->needs[0].per_action == 1 &&
           goals == 1 && task->execution == TD_CONFIG_SYNC;
}

static td_err add_steps(td_plan_problem *problem, td_plan_pool *pool,
                        td_plan_curve_settings settings, size_t type)
{
    const td_config_profile *profile = pool->curves[type]->profile;
    td_plan_curve *curves = td_arena_alloc(
        problem->arena, profile->service_count + 1, sizeof *curves);
    if (!curves) return TD_ERR_NOMEM;
    pool->in_step[type] = curves;
    for (size_t i = 0; i < profile->service_count; i++) {
        settings.together = (uint32_t)profile->service[i].batch;
        if (settings.together > settings.most ||
            settings.together > pool->streams)
            break;
        if (settings.together > 1)
            td_plan_curve_init(&curves[pool->in_step_count[type]++], profile,
                               &settings);
    }
    return TD_OK;
}

static td_err add_curve(td_plan_problem *problem, td_plan_pool *pool,
                        const td_config_profile *profile, size_t type)
{
    td_plan_curve_settings settings = {
        .deadline_ms = pool->deadline_ms * (1 - problem->options.slack),
        .percentile = pool->percentile,
        .overhead_ms = problem->factory->server_cluster.overhead_ms,
        .jitter_ms = jitter_ms(problem, pool),
        .most = most_that_fit(problem, profile, type),
    };
    if (settings.most == 0) return TD_OK;
    td_plan_curve *curves = td_arena_alloc(problem->arena, 2, sizeof *curves);
    if (!curves) return TD_ERR_NOMEM;
    td_plan_curve_init(&curves[0], profile, &settings);
    pool->curves[type] = &curves[0];
    pool->size_gb = profile->memory_gb;
    if (!problem->options.staggered || td_config_profile_continuous(profile))
        return TD_OK;
    if (keeps_step(problem, pool))
        return add_steps(problem, pool, settings, type);
    if (pool->need_count == 1) return TD_OK;
    settings.random = true;
    td_plan_curve_init(&curves[1], profile, &settings);
    pool->unlike[type] = &curves[1];
    return TD_OK;
}

static td_err no_curve(const td_plan_problem *problem, const td_plan_pool *pool,
                       const td_config_profile *profile, td_errinfo *info)
{
    const td_config_factory_task *task =
        &problem->factory->tasks[pool->needs[0].task];
    double need_gb = td_config_profile_memory_gb(profile, 1);
    return td_fail(info, TD_ERR_INVALID,
                   "%s: components: %s: %s takes %.3g GB and fits on no GPU of "
                   "server_cluster; use a smaller model or GPUs with more "
                   "memory",
                   task->name, pool->name, pool->model, need_gb);
}

static td_err too_slow(const td_plan_problem *problem, const td_plan_pool *pool,
                       td_errinfo *info)
{
    const td_config_factory_task *task =
        &problem->factory->tasks[pool->needs[0].task];
    double alone_ms = INFINITY;
    for (size_t i = 0; i < problem->type_count; i++)
        if (pool->curves[i])
            alone_ms = fmin(alone_ms, pool->curves[i]->alone_ms);
    return td_fail(info, TD_ERR_INVALID,
                   "%s: components: %s: slo_ms: %.4g cannot be met: one "
                   "request alone takes %.4g ms, network and all; allow at "
                   "least %.4g, or use a faster model or GPU",
                   task->name, pool->name, pool->deadline_ms, alone_ms,
                   ceil(alone_ms / (1 - problem->options.slack)));
}

static td_err add_curves(td_plan_problem *problem, td_plan_pool *pool,
                         td_errinfo *info)
{
    const td_config_factory_component *part =
        &problem->factory->tasks[pool->needs[0].task]
             .components[pool->needs[0].component];
    const td_config_profile *profile = NULL;
    bool fits = false;
    bool holds = false;
    td_err err = TD_OK;
    for (size_t i = 0; i < problem->type_count; i++) {
        td_err found = td_config_profiles_find(
            problem->profiles, part->model, part->engine,
            problem->types[i].name, &profile, info);
        if (found != TD_OK) {
            err = found;
            continue;
        }
        TD_TRY(add_curve(problem, pool, profile, i));
        fits = fits || pool->curves[i];
        holds = holds || (pool->curves[i] && pool->curves[i]->capacity_hz > 0);
    }
    if (!profile) return err;
    if (!fits) return no_curve(problem, pool, profile, info);
    if (!holds && problem->options.capped) return too_slow(problem, pool, info);
    return TD_OK;
}

// Classes with like periods next to each other, since neighbours share servers.
static void sort_needs(const td_plan_problem *problem, td_plan_pool *pool)
{
    const td_config_factory_task *tasks = problem->factory->tasks;
    for (size_t i = 1; i < pool->need_count; i++) {
        td_plan_need need = pool->needs[i];
        double period_ms = tasks[need.task].pipeline.action_period_ms;
        size_t at = i;
        for (; at > 0 &&
               tasks[pool->needs[at - 1].task].pipeline.action_period_ms >
                   period_ms;
             at--)
            pool->needs[at] = pool->needs[at - 1];
        pool->needs[at] = need;
    }
}

static td_err build(td_plan_problem *problem, td_errinfo *info)
{
    const td_config_factory *factory = problem->factory;
    for (size_t i = 0; i < factory->task_count; i++)
        problem->most_needs += factory->tasks[i].component_count;
    TD_TRY(add_types(problem, info));
    problem->pools = td_arena_alloc(problem->arena, problem->most_needs,
                                    sizeof *problem->pools);
    if (!problem->pools) return TD_ERR_NOMEM;
    for (uint32_t i = 0; i < factory->task_count; i++)
        TD_TRY(add_task(problem, i));
    for (size_t i = 0; i < problem->pool_count; i++) {
        sort_needs(problem, &problem->pools[i]);
        TD_TRY(add_curves(problem, &problem->pools[i], info));
    }
    return TD_OK;
}

td_err td_plan_problem_new(const td_config_factory *factory,
                           const td_config_profiles *profiles,
                           const td_plan_options *options,
                           td_plan_problem **ret_problem, td_errinfo *info)
{
    TD_AUTO(td_plan_problem) *problem = calloc(1, sizeof *problem);
    if (!problem) return TD_ERR_NOMEM;
    problem->factory = factory;
    problem->profiles = profiles;
    problem->options = *options;
    problem->most_loads = TD_PLAN_NONE;
    TD_TRY(td_arena_new(&problem->arena));
    TD_TRY(build(problem, info));
    *ret_problem = TD_TAKE(problem);
    return TD_OK;
}

void td_plan_problem_free(td_plan_problem *problem)
{
    if (problem->arena) td_arena_free(problem->arena);
    free(problem);
}

double td_plan_need_hz(const td_plan_need *need, const double *rates_hz)
{
    if (need->per_action == 0) return need->rate_hz;
    return need->per_action * rates_hz[need->task];
}

double td_plan_problem_most_hz(const td_plan_problem *problem, size_t task)
{
    return 1000 / problem->factory->tasks[task].pipeline.action_period_ms;
}

double td_plan_problem_loop_hz(const td_plan_problem *problem, size_t task,
                               double latency_ms)
{
    const td_config_factory_task *at = &problem->factory->tasks[task];
    double action_ms = at->pipeline.action_period_ms;
    if (at->execution == TD_CONFIG_ASYNC)
        return 1000 / fmax(action_ms, latency_ms);
    return 1000 / (action_ms + latency_ms);
}

static bool estimate_staggered(const td_plan_pool *pool, size_t type,
                               uint32_t streams, double rate_hz,
                               td_plan_point *ret_point)
{
    bool found = td_plan_curve_at(pool->curves[type], rate_hz, ret_point);
    for (size_t i = 0; i < pool->in_step_count[type]; i++) {
        const td_plan_curve *curve = &pool->in_step[type][i];
        td_plan_point point;
        if (streams % curve->settings.together != 0 ||
            !td_plan_curve_at(curve, rate_hz, &point) ||
            (found && point.mean_ms >= ret_point->mean_ms))
            continue;
        *ret_point = point;
        found = true;
    }
    return found;
}

bool td_plan_problem_estimate(const td_plan_problem *problem,
                              const td_plan_pool *pool, size_t type,
                              uint32_t streams, double rate_hz, double least_hz,
                              td_plan_point *ret_point)
{
    const td_plan_curve *curve = pool->curves[type];
    if (!curve) return false;
    if (problem->options.staggered)
        return estimate_staggered(pool, type, streams, rate_hz, ret_point);
    return td_plan_rosa_estimate(curve, streams, rate_hz, least_hz, ret_point);
}

double td_plan_problem_capacity_hz(const td_plan_problem *problem,
                                   const td_plan_pool *pool, size_t type)
{
    const td_plan_curve *curve = pool->curves[type];
    if (!curve) return 0;
    return problem->options.staggered ? curve->capacity_hz
                                      : td_plan_rosa_capacity_hz(curve);
}

void td_plan_point_use(const td_plan_point *point, td_plan_server *server)
{
    server->batch_most = point->batch;
    server->wait =
        point->wait_ms > 0 ? TD_CONFIG_WAIT_FIXED : TD_CONFIG_WAIT_NONE;
    server->wait_ms = point->wait_ms;
}

double td_plan_problem_loop_ms(const td_plan_problem *problem,
                               const td_plan_point *point)
{
    return problem->options.loop == TD_PLAN_LOOP_TAIL ? point->tail_ms
                                                      : point->mean_ms;
}

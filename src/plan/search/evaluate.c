// SPDX-License-Identifier: Apache-2.0
// Answers the one question that the search asks: can the robots of each task
// act at these rates, and on which servers?
//
// The answer comes in stages, the cheap ones first. is_too_fast(): would a
// robot's own loop be too slow even if it had every server for itself?
// is_hopeless(): do the loads alone need more GPUs than there are? Only then
// the streams are packed onto servers.
//
// Packing sees each pool of streams as a line, cut into units of a few streams
// so that long lines stay short (MOST_UNITS). For every stretch of a line and
// every type of GPU, cost() says what a server that takes the stretch costs:
// the streams' latency, weighed by what a millisecond is worth to them, or
// INFINITY where a deadline or a robot's loop would not hold. Where all streams
// of a line are alike, a stretch costs the same wherever it begins, and one row
// of costs is enough (stride 0). td_plan_pack() then finds the cheapest cover.
//
// Where that fails and the options allow it, servers are packed as tightly as
// possible with more GPUs than there are, and merged until they fit
// (search/compact.c).
//
// A packing that holds leaves its allocations and the rates that each loop
// reaches in the evaluator, valid until the next call. Everything grows as
// rates grow, so whatever holds at some rates holds below them; the search
// relies on it.
//
// Pure. All memory is taken by td_plan_evaluator_init() but for the table of
// costs, which grows with the largest problem seen.
#include "plan/search/evaluate.h"

#include "plan/search/allocation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_UNITS 48    // of one server: coarser units make long lines short
#define SERVER_COST 1e-4 // so that of two equal packings the smaller is taken
#define MERGE_COST 1e6   // so that the fewest servers go before all else

static void *many(size_t count, size_t bytes)
{
    return calloc(count ? count : 1, bytes);
}

static uint32_t longest_line(const td_plan_problem *problem)
{
    uint32_t longest = 0;
    for (size_t i = 0; i < problem->pool_count; i++)
        if (problem->pools[i].streams > longest)
            longest = problem->pools[i].streams;
    return longest;
}

static td_err add_packers(td_plan_evaluator *evaluator)
{
    const td_plan_problem *problem = evaluator->problem;
    uint32_t gpus[TD_PLAN_MAX_TYPES] = {0};
    for (size_t i = 0; i < problem->type_count; i++)
        gpus[i] = problem->types[i].gpus;
    TD_TRY(td_plan_packer_new(gpus, problem->type_count, &evaluator->packer));
    if (!problem->options.compact) return TD_OK;
    for (size_t i = 0; i < problem->type_count; i++)
        gpus[i] += (uint32_t)problem->pool_count;
    return td_plan_packer_new(gpus, problem->type_count, &evaluator->wide);
}

td_err td_plan_evaluator_init(td_plan_evaluator *evaluator,
                              const td_plan_problem *problem)
{
    size_t line = (size_t)longest_line(problem) + 1;
    *evaluator = (td_plan_evaluator){.problem = problem};
    evaluator->most_allocations =
        problem->gpus + problem->pool_count * problem->type_count + 1;
    evaluator->rows = many(problem->pool_count, sizeof *evaluator->rows);
    evaluator->units = many(problem->pool_count, sizeof *evaluator->units);
    evaluator->loads = many(line, sizeof(double));
    evaluator->worths = many(line, sizeof(double));
    evaluator->need_at = many(line, sizeof(uint32_t));
    evaluator->allowed_ms = many(problem->most_needs, sizeof(double));
    evaluator->allocations =
        many(evaluator->most_allocations, sizeof *evaluator->allocations);
    evaluator->loops_hz = many(problem->factory->task_count, sizeof(double));
    evaluator->best_hz = many(problem->factory->task_count, sizeof(double));
    td_err err = add_packers(evaluator);
    if (err == TD_OK &&
        (!evaluator->rows || !evaluator->units || !evaluator->loads ||
         !evaluator->worths || !evaluator->need_at || !evaluator->allowed_ms ||
         !evaluator->allocations || !evaluator->loops_hz ||
         !evaluator->best_hz))
        err = TD_ERR_NOMEM;
    return err;
}

void td_plan_evaluator_done(td_plan_evaluator *evaluator)
{
    if (evaluator->packer) td_plan_packer_free(evaluator->packer);
    if (evaluator->wide) td_plan_packer_free(evaluator->wide);
    free(evaluator->rows);
    free(evaluator->units);
    free(evaluator->costs);
    free(evaluator->loads);
    free(evaluator->worths);
    free(evaluator->need_at);
    free(evaluator->allowed_ms);
    free(evaluator->allocations);
    free(evaluator->loops_hz);
    free(evaluator->best_hz);
}

static double pool_load_hz(const td_plan_pool *pool, const double *rates_hz)
{
    double sum = 0;
    for (size_t i = 0; i < pool->need_count; i++)
        sum +=
            pool->needs[i].streams * td_plan_need_hz(&pool->needs[i], rates_hz);
    return sum;
}

static double best_capacity_hz(const td_plan_problem *problem,
                               const td_plan_pool *pool)
{
    double best = 0;
    for (size_t i = 0; i < problem->type_count; i++)
        best = fmax(best, td_plan_problem_capacity_hz(problem, pool, i));
    return best;
}

uint32_t td_plan_evaluate_least(const td_plan_problem *problem,
                                const td_plan_pool *pool,
                                const double *rates_hz)
{
    double capacity_hz = best_capacity_hz(problem, pool);
    double load_hz = pool_load_hz(pool, rates_hz);
    if (capacity_hz <= 0) return UINT32_MAX;
    return (uint32_t)fmin(ceil(load_hz / capacity_hz - 1e-9), 1e6);
}

// Whether the loads alone are too much: spares the packing.
static bool is_hopeless(const td_plan_problem *problem, const double *rates_hz)
{
    uint64_t least = 0;
    if (problem->options.compact) return false; // merging needs fewer
    for (size_t i = 0; i < problem->pool_count; i++)
        least += td_plan_evaluate_least(problem, &problem->pools[i], rates_hz);
    return least > problem->gpus;
}

double td_plan_evaluate_slowest_hz(const td_plan_pool *pool,
                                   const double *rates_hz)
{
    double least = INFINITY;
    for (size_t i = 0; i < pool->need_count; i++)
        least = fmin(least, td_plan_need_hz(&pool->needs[i], rates_hz));
    return least;
}

// What a request of this component takes a robot's loop at best.
static double alone_ms(const td_plan_problem *problem, uint32_t task,
                       uint32_t component)
{
    double best = INFINITY;
    for (size_t i = 0; i < problem->pool_count; i++) {
        const td_plan_pool *pool = &problem->pools[i];
        for (size_t j = 0; j < pool->need_count; j++)
            for (size_t type = 0; type < problem->type_count; type++)
                if (pool->needs[j].task == task &&
                    pool->needs[j].component == component && pool->curves[type])
                    best = fmin(best,
                                td_plan_problem_loop_ms(
                                    problem, &pool->curves[type]->points[0]));
    }
    return best;
}

// How long a request of a need may take so that the robot's loop still keeps
// its rate, with all else at its best.
static double allowance_ms(const td_plan_problem *problem,
                           const td_plan_need *need, const double *rates_hz)
{
    const td_config_factory_task *task = &problem->factory->tasks[need->task];
    double left_ms = 1000 / rates_hz[need->task];
    if (need->per_action == 0) return INFINITY;
    if (task->execution == TD_CONFIG_SYNC)
        left_ms -= task->pipeline.action_period_ms;
    for (uint32_t i = 0; i < task->component_count; i++)
        if (i != need->component && task->components[i].per_action > 0)
            left_ms -= task->components[i].per_action *
                       alone_ms(problem, need->task, i);
    return left_ms / need->per_action * (1 + 1e-9);
}

// Whether all streams of a pool are alike.
static bool is_even(const td_plan_problem *problem, const td_plan_pool *pool,
                    const double *rates_hz)
{
    const td_plan_need *first = &pool->needs[0];
    for (size_t i = 1; i < pool->need_count; i++) {
        const td_plan_need *need = &pool->needs[i];
        if (td_plan_need_hz(need, rates_hz) !=
                td_plan_need_hz(first, rates_hz) ||
            need->worth != first->worth ||
            allowance_ms(problem, need, rates_hz) !=
                allowance_ms(problem, first, rates_hz))
            return false;
    }
    return true;
}

static void measure_line(td_plan_evaluator *evaluator, const td_plan_pool *pool,
                         const double *rates_hz)
{
    size_t at = 0;
    evaluator->loads[0] = evaluator->worths[0] = 0;
    for (size_t i = 0; i < pool->need_count; i++) {
        evaluator->allowed_ms[i] =
            allowance_ms(evaluator->problem, &pool->needs[i], rates_hz);
        for (uint32_t j = 0; j < pool->needs[i].streams; j++, at++) {
            evaluator->need_at[at] = (uint32_t)i;
            evaluator->loads[at + 1] =
                evaluator->loads[at] +
                td_plan_need_hz(&pool->needs[i], rates_hz);
            evaluator->worths[at + 1] =
                evaluator->worths[at] + pool->needs[i].worth;
        }
    }
}

// Whether the loops of all streams in a stretch of the line take it.
static bool is_allowed(const td_plan_evaluator *evaluator, uint32_t from,
                       uint32_t to, double took_ms)
{
    for (uint32_t i = evaluator->need_at[from]; i <= evaluator->need_at[to - 1];
         i++)
        if (took_ms > evaluator->allowed_ms[i]) return false;
    return true;
}

// What a server gives a stretch of the line.
static bool estimate(const td_plan_evaluator *evaluator,
                     const td_plan_pool *pool, size_t type, uint32_t from,
                     uint32_t to, const double *rates_hz, double slowest_hz,
                     td_plan_point *ret_point)
{
    const td_plan_allocation stretch = {
        .pool = (uint32_t)(pool - evaluator->problem->pools),
        .type = (uint32_t)type,
        .from = from,
        .streams = to - from};
    if (pool->unlike[type] &&
        evaluator->need_at[from] != evaluator->need_at[to - 1])
        return td_plan_allocation_unlike(evaluator, &stretch, rates_hz,
                                         ret_point);
    return td_plan_problem_estimate(
        evaluator->problem, pool, type, to - from,
        evaluator->loads[to] - evaluator->loads[from], slowest_hz, ret_point);
}

// Of a server that takes the units from a place on.
static double cost(const td_plan_evaluator *evaluator, const td_plan_pool *pool,
                   uint32_t unit, size_t type, uint32_t place, uint32_t units,
                   const double *rates_hz, double slowest_hz)
{
    td_plan_point point;
    uint32_t from = place * unit;
    uint32_t to = (place + units) * unit;
    if (to > pool->streams) to = pool->streams;
    if (!estimate(evaluator, pool, type, from, to, rates_hz, slowest_hz,
                  &point) ||
        !is_allowed(evaluator, from, to,
                    td_plan_problem_loop_ms(evaluator->problem, &point)))
        return INFINITY;
    // A few full ones and a remainder merge best.
    if (evaluator->fewest) return MERGE_COST - (double)units * units;
    return (evaluator->worths[to] - evaluator->worths[from]) * point.mean_ms +
           SERVER_COST;
}

static void fill_costs(const td_plan_evaluator *evaluator, size_t index,
                       size_t type, const double *rates_hz, double *out)
{
    const td_plan_pool *pool = &evaluator->problem->pools[index];
    const td_plan_pack_row *row = &evaluator->rows[index];
    double slowest_hz = td_plan_evaluate_slowest_hz(pool, rates_hz);
    uint32_t places = row->stride ? row->demand : 1;
    for (uint32_t place = 0; place < places; place++)
        for (uint32_t units = 1; units <= row->most; units++)
            out[place * row->stride + units - 1] =
                place + units > row->demand
                    ? INFINITY
                    : cost(evaluator, pool, evaluator->units[index], type,
                           place, units, rates_hz, slowest_hz);
}

// How many costs a row has for each type.
static size_t cost_cells(const td_plan_pack_row *row)
{
    return (row->stride ? (size_t)row->demand : 1) * row->most;
}

// How long the line is, in units, and how many a server could take.
static void size_row(td_plan_evaluator *evaluator, size_t index,
                     const double *rates_hz)
{
    const td_plan_problem *problem = evaluator->problem;
    const td_plan_pool *pool = &problem->pools[index];
    double most = best_capacity_hz(problem, pool) /
                  td_plan_evaluate_slowest_hz(pool, rates_hz);
    uint32_t streams =
        most < pool->streams ? (uint32_t)(most + 1e-9) : pool->streams;
    if (streams == 0) streams = 1;
    uint32_t unit =
        problem->by_columns ? 1 : (streams + MOST_UNITS - 1) / MOST_UNITS;
    bool even = is_even(problem, pool, rates_hz) && pool->streams % unit == 0;
    evaluator->units[index] = unit;
    evaluator->rows[index] = (td_plan_pack_row){
        .demand = (pool->streams + unit - 1) / unit,
        .most = (streams + unit - 1) / unit,
        .servers = pool->servers,
        .loaded = problem->most_loads == TD_PLAN_NONE ? NULL : pool->loaded,
        .stride = even ? 0 : (streams + unit - 1) / unit,
    };
}

static td_err build_rows(td_plan_evaluator *evaluator, const double *rates_hz)
{
    const td_plan_problem *problem = evaluator->problem;
    size_t cells = 0;
    for (size_t i = 0; i < problem->pool_count; i++) {
        size_row(evaluator, i, rates_hz);
        cells += cost_cells(&evaluator->rows[i]) * problem->type_count;
    }
    if (cells > evaluator->cost_room) {
        free(evaluator->costs);
        evaluator->cost_room = 0;
        evaluator->costs = malloc(cells * sizeof(double));
        if (!evaluator->costs) return TD_ERR_NOMEM;
        evaluator->cost_room = cells;
    }
    double *at = evaluator->costs;
    for (size_t i = 0; i < problem->pool_count; i++) {
        td_plan_pack_row *row = &evaluator->rows[i];
        measure_line(evaluator, &problem->pools[i], rates_hz);
        for (size_t type = 0; type < problem->type_count; type++) {
            row->cost[type] = at;
            fill_costs(evaluator, i, type, rates_hz, at);
            at += cost_cells(row);
        }
    }
    return TD_OK;
}

static void take_allocations(td_plan_evaluator *evaluator,
                             const td_plan_pack_server *servers, size_t count)
{
    evaluator->allocation_count = count;
    for (size_t i = 0; i < count; i++) {
        uint32_t unit = evaluator->units[servers[i].row];
        uint32_t streams = evaluator->problem->pools[servers[i].row].streams;
        uint32_t from = servers[i].from * unit;
        uint32_t to = from + servers[i].units * unit;
        evaluator->allocations[i] = (td_plan_allocation){
            .pool = servers[i].row,
            .type = servers[i].type,
            .from = from,
            .streams = (to < streams ? to : streams) - from,
            .joined = TD_PLAN_NONE,
        };
    }
}

static td_err pack(td_plan_evaluator *evaluator, bool wide, bool *ret_packed)
{
    const td_plan_pack_server *servers;
    size_t count;
    double total;
    td_err err = td_plan_pack(wide ? evaluator->wide : evaluator->packer,
                              evaluator->rows, evaluator->problem->pool_count,
                              &servers, &count, &total);
    *ret_packed = err == TD_OK;
    if (err == TD_ERR_EMPTY) return TD_OK;
    TD_TRY(err);
    take_allocations(evaluator, servers, count);
    return TD_OK;
}

static td_err compact(td_plan_evaluator *evaluator, const double *rates_hz,
                      bool *ret_packed)
{
    evaluator->fewest = true;
    td_err err = build_rows(evaluator, rates_hz);
    evaluator->fewest = false;
    TD_TRY(err);
    TD_TRY(pack(evaluator, true, ret_packed));
    if (!*ret_packed) return TD_OK;
    *ret_packed = td_plan_compact(evaluator, rates_hz);
    return TD_OK;
}

// Whether a robot's loop is too slow however many GPUs there are.
static bool is_too_fast(td_plan_evaluator *evaluator, const double *rates_hz)
{
    const td_plan_problem *problem = evaluator->problem;
    for (uint32_t i = 0; i < problem->factory->task_count; i++) {
        const td_config_factory_task *task = &problem->factory->tasks[i];
        double latency_ms = 0;
        for (uint32_t j = 0; j < task->component_count; j++)
            if (task->components[j].per_action > 0)
                latency_ms +=
                    task->components[j].per_action * alone_ms(problem, i, j);
        evaluator->loops_hz[i] = evaluator->best_hz[i] =
            td_plan_problem_loop_hz(problem, i, latency_ms);
        evaluator->short_task = i;
        if (rates_hz[i] > evaluator->best_hz[i] * (1 + 1e-9)) return true;
    }
    return false;
}

td_err td_plan_evaluate(td_plan_evaluator *evaluator, const double *rates_hz,
                        td_plan_answer *ret_answer)
{
    const td_plan_problem *problem = evaluator->problem;
    bool packed = false;
    evaluator->points++;
    *ret_answer = TD_PLAN_NO_LOOP;
    if (is_too_fast(evaluator, rates_hz)) return TD_OK;
    *ret_answer = TD_PLAN_NO_GPUS;
    if (is_hopeless(problem, rates_hz)) return TD_OK;
    TD_TRY(build_rows(evaluator, rates_hz));
    TD_TRY(pack(evaluator, false, &packed));
    if (!packed && problem->options.compact)
        TD_TRY(compact(evaluator, rates_hz, &packed));
    if (!packed) return TD_OK;
    if (td_plan_allocation_loads(problem, evaluator->allocations,
                                 evaluator->allocation_count) >
        problem->most_loads)
        return TD_OK;
    td_plan_allocation_loops(evaluator, rates_hz);
    *ret_answer = TD_PLAN_HOLDS;
    for (uint32_t i = 0; i < problem->factory->task_count; i++)
        if (rates_hz[i] > evaluator->loops_hz[i] * (1 + 1e-9)) {
            evaluator->short_task = i;
            *ret_answer = TD_PLAN_NO_LOOP;
        }
    return TD_OK;
}

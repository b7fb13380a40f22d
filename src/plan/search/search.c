// SPDX-License-Identifier: Apache-2.0
// Finds the rates of the classes: as many weighted actions a second as the GPUs
// allow.
//
// One climb starts at rates that hold and raises one class at a time. Each
// class has a bound, the lowest rate that is known not to hold beside the
// others' rates; the class with the most to gain is tried halfway to its bound,
// and either its rate or its bound moves. Rates lie on a grid of rate_steps.
// Because feasibility is monotone a bound stays true as other rates rise, so no
// rate vector above one that failed is ever tried. The climb ends when what is
// left to gain is below the tolerance, or when the points or the caller's time
// are spent.
//
// For one class this is bisection. For several it is the adaptive frontier
// search of the Rosa paper, which may end in a local optimum. Unless the
// options say that the paper's search is wanted, two more climbs follow, one
// that chooses by gain per GPU and one that starts with all classes raised
// together; then exchanges, which take some of one class's rate, let the others
// climb, and give it back what is left.
//
// The best rates ever seen are kept with their allocations. The least rates are
// tried first: if these do not hold there is no plan, and search/infeasible.c
// says why. Memory is the problem's; a search leaves nothing behind but its
// solution.
#include "plan/search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct climber {
    const td_plan_problem *problem;
    td_plan_evaluator evaluator;
    size_t tasks;
    double *rates_hz;  // hold, and the best has their servers
    double *bounds_hz; // do not, beside the others' rates
    bool *by_loop;
    double *least_hz;  // where it starts
    double *finest_hz; // steps below it are not tried
    double *trial_hz;
    double *start_hz;
    size_t frozen; // a class that stays as it is; SIZE_MAX: none
    td_plan_solution best;
} climber;

// By what a class is chosen to be faster next.
typedef enum choice {
    BY_GAIN,   // of the whole step: the paper's
    BY_RETURN, // of the gain for what it costs in GPUs
} choice;

static double *numbers(const td_plan_problem *problem, size_t count)
{
    return td_arena_alloc(problem->arena, count, sizeof(double));
}

static double value_of(const climber *search, const double *rates_hz)
{
    double sum = 0;
    for (size_t i = 0; i < search->tasks; i++) {
        const td_config_factory_task *task =
            &search->problem->factory->tasks[i];
        sum += task->value * (double)task->robot_count * rates_hz[i];
    }
    return sum;
}

static td_err init(climber *search)
{
    const td_plan_problem *problem = search->problem;
    size_t tasks = search->tasks = problem->factory->task_count;
    TD_TRY(td_plan_evaluator_init(&search->evaluator, problem));
    search->rates_hz = numbers(problem, tasks);
    search->bounds_hz = numbers(problem, tasks);
    search->least_hz = numbers(problem, tasks);
    search->finest_hz = numbers(problem, tasks);
    search->trial_hz = numbers(problem, tasks);
    search->start_hz = numbers(problem, tasks);
    search->frozen = SIZE_MAX;
    search->by_loop = td_arena_alloc(problem->arena, tasks, sizeof(bool));
    search->best = (td_plan_solution){
        .rates_hz = numbers(problem, tasks),
        .loops_hz = numbers(problem, tasks),
        .bounds_hz = numbers(problem, tasks),
        .by_loop = td_arena_alloc(problem->arena, tasks, sizeof(bool)),
        .allocations =
            td_arena_alloc(problem->arena, search->evaluator.most_allocations,
                           sizeof(td_plan_allocation)),
        .value_hz = -1,
    };
    const td_plan_solution *best = &search->best;
    return search->rates_hz && search->bounds_hz && search->least_hz &&
                   search->finest_hz && search->trial_hz && search->start_hz &&
                   search->by_loop && best->rates_hz && best->loops_hz &&
                   best->bounds_hz && best->by_loop && best->allocations
               ? TD_OK
               : TD_ERR_NOMEM;
}

static void keep(climber *search, const double *rates_hz)
{
    const td_plan_evaluator *evaluator = &search->evaluator;
    td_plan_solution *best = &search->best;
    size_t bytes = search->tasks * sizeof(double);
    double value_hz = value_of(search, rates_hz);
    if (value_hz <= best->value_hz) return;
    best->value_hz = value_hz;
    best->allocation_count = evaluator->allocation_count;
    memcpy(best->rates_hz, rates_hz, bytes);
    memcpy(best->loops_hz, evaluator->loops_hz, bytes);
    memcpy(best->allocations, evaluator->allocations,
           evaluator->allocation_count * sizeof *best->allocations);
}

static td_err attempt(climber *search, const double *rates_hz,
                      td_plan_answer *ret_answer)
{
    TD_TRY(td_plan_evaluate(&search->evaluator, rates_hz, ret_answer));
    if (*ret_answer == TD_PLAN_HOLDS) keep(search, rates_hz);
    return TD_OK;
}

static bool is_spent(const climber *search)
{
    const td_plan_options *options = &search->problem->options;
    uint32_t points = search->evaluator.points;
    return points >= options->most_points ||
           (options->is_over && options->is_over(options->context, points));
}

static double gain(const climber *search, size_t task)
{
    const td_config_factory_task *at = &search->problem->factory->tasks[task];
    double room = search->bounds_hz[task] - search->rates_hz[task];
    if (task == search->frozen || room <= search->finest_hz[task] * (1 + 1e-9))
        return 0;
    return at->value * (double)at->robot_count * room;
}

// GPUs that one more action a second of this class would take, on the best
// type.
static double price(const td_plan_problem *problem, size_t task)
{
    double sum = 0;
    for (size_t i = 0; i < problem->pool_count; i++) {
        const td_plan_pool *pool = &problem->pools[i];
        double best = 0;
        for (size_t type = 0; type < problem->type_count; type++)
            best = fmax(best, td_plan_problem_capacity_hz(problem, pool, type));
        for (size_t j = 0; j < pool->need_count; j++)
            if (pool->needs[j].task == task && best > 0)
                sum += pool->needs[j].per_action / best;
    }
    return sum;
}

static size_t next_task(const climber *search, choice rule)
{
    size_t best = SIZE_MAX;
    double most = 0;
    for (size_t i = 0; i < search->tasks; i++) {
        const td_config_factory_task *task =
            &search->problem->factory->tasks[i];
        double score = gain(search, i);
        if (score > 0 && rule == BY_RETURN)
            score = task->value / price(search->problem, i);
        if (score <= most) continue;
        most = score;
        best = i;
    }
    return best;
}

static double room_left(const climber *search)
{
    double sum = 0;
    for (size_t i = 0; i < search->tasks; i++)
        sum += gain(search, i);
    return sum;
}

// A rate between two on the grid of steps.
static double halfway(const climber *search, size_t task)
{
    double finest = search->finest_hz[task];
    double least = search->least_hz[task];
    double middle = (search->rates_hz[task] + search->bounds_hz[task]) / 2;
    double rate = least + finest * floor((middle - least) / finest + 1e-9);
    return fmax(rate, search->rates_hz[task] + finest);
}

static td_err step(climber *search, size_t task)
{
    td_plan_answer answer;
    double rate_hz = halfway(search, task);
    memcpy(search->trial_hz, search->rates_hz, search->tasks * sizeof(double));
    search->trial_hz[task] = rate_hz;
    TD_TRY(attempt(search, search->trial_hz, &answer));
    if (answer == TD_PLAN_HOLDS) {
        search->rates_hz[task] = rate_hz;
        return TD_OK;
    }
    search->bounds_hz[task] = rate_hz;
    search->by_loop[task] = answer == TD_PLAN_NO_LOOP;
    return TD_OK;
}

// From rates that hold, upwards.
static td_err climb(climber *search, choice rule)
{
    const td_plan_options *options = &search->problem->options;
    for (size_t i = 0; i < search->tasks; i++) {
        search->bounds_hz[i] =
            td_plan_problem_most_hz(search->problem, i) + search->finest_hz[i];
        search->by_loop[i] = true;
    }
    while (!is_spent(search)) {
        size_t task = next_task(search, rule);
        if (task == SIZE_MAX) break;
        if (room_left(search) <
            options->tolerance * value_of(search, search->rates_hz))
            break;
        TD_TRY(step(search, task));
    }
    return TD_OK;
}

static void note_bounds(climber *search)
{
    td_plan_solution *best = &search->best;
    size_t bytes = search->tasks * sizeof(double);
    if (memcmp(search->rates_hz, best->rates_hz, bytes) != 0) return;
    memcpy(best->bounds_hz, search->bounds_hz, bytes);
    memcpy(best->by_loop, search->by_loop, search->tasks * sizeof(bool));
}

static td_err climb_from(climber *search, const double *rates_hz, choice rule)
{
    memmove(search->rates_hz, rates_hz, search->tasks * sizeof(double));
    TD_TRY(climb(search, rule));
    note_bounds(search);
    return TD_OK;
}

// All classes by the same part of what their loops would allow.
static td_err climb_together(climber *search)
{
    double low = 0;
    double high = 1;
    size_t bytes = search->tasks * sizeof(double);
    memcpy(search->start_hz, search->least_hz, bytes);
    for (int i = 0; i < 7 && !is_spent(search); i++) {
        double part = (low + high) / 2;
        td_plan_answer answer;
        for (size_t j = 0; j < search->tasks; j++)
            search->trial_hz[j] =
                fmax(search->least_hz[j],
                     part * td_plan_problem_most_hz(search->problem, j));
        TD_TRY(attempt(search, search->trial_hz, &answer));
        if (answer == TD_PLAN_HOLDS) {
            low = part;
            memcpy(search->start_hz, search->trial_hz, bytes);
        } else {
            high = part;
        }
    }
    return climb_from(search, search->start_hz, BY_GAIN);
}

// Takes from one class, lets the others climb, then that one again.
static td_err exchange(climber *search, size_t task, double part)
{
    double least = search->least_hz[task];
    size_t bytes = search->tasks * sizeof(double);
    memcpy(search->start_hz, search->best.rates_hz, bytes);
    search->start_hz[task] = least + part * (search->start_hz[task] - least);
    search->frozen = task;
    td_err err = climb_from(search, search->start_hz, BY_GAIN);
    search->frozen = SIZE_MAX;
    TD_TRY(err);
    return climb_from(search, search->rates_hz, BY_GAIN);
}

static td_err exchange_all(climber *search)
{
    static const double parts[] = {0, 0.5, 0.8};
    double before;
    do {
        before = search->best.value_hz;
        for (size_t i = 0; i < TD_COUNT_OF(parts); i++)
            for (size_t task = 0; task < search->tasks; task++)
                if (!is_spent(search)) TD_TRY(exchange(search, task, parts[i]));
    } while (!is_spent(search) &&
             search->best.value_hz >
                 before * (1 + search->problem->options.tolerance));
    return TD_OK;
}

static td_err set_start(climber *search, td_errinfo *info)
{
    const td_plan_problem *problem = search->problem;
    for (size_t i = 0; i < search->tasks; i++) {
        const td_config_factory_task *task = &problem->factory->tasks[i];
        double most_hz = td_plan_problem_most_hz(problem, i);
        double least_hz = task->min_throughput / (double)task->robot_count;
        if (least_hz > most_hz)
            return td_fail(
                info, TD_ERR_INVALID,
                "%s: min_throughput: %.4g actions a second of %zu robots are "
                "more than action_period_ms allows, %.4g; lower it or add "
                "robots",
                task->name, task->min_throughput, task->robot_count,
                most_hz * (double)task->robot_count);
        search->finest_hz[i] = most_hz / problem->options.rate_steps;
        search->least_hz[i] = fmax(least_hz, search->finest_hz[i]);
    }
    return TD_OK;
}

static td_err run(climber *search, td_errinfo *info)
{
    td_plan_answer answer;
    TD_TRY(set_start(search, info));
    TD_TRY(attempt(search, search->least_hz, &answer));
    if (answer != TD_PLAN_HOLDS)
        return td_plan_infeasible(&search->evaluator, answer, search->least_hz,
                                  search->trial_hz, info);
    TD_TRY(climb_from(search, search->least_hz, BY_GAIN));
    if (search->tasks == 1 || search->problem->options.compact) return TD_OK;
    TD_TRY(climb_from(search, search->least_hz, BY_RETURN));
    TD_TRY(climb_together(search));
    return exchange_all(search);
}

td_err td_plan_search(const td_plan_problem *problem,
                      td_plan_solution *ret_found, td_errinfo *info)
{
    climber search = {.problem = problem};
    td_err err = init(&search);
    if (err == TD_ERR_UNSUPPORTED)
        (void)td_fail(info, err,
                      "server_cluster: so many GPUs of several types are "
                      "packed with CBC, which is not here; install "
                      "coinor-libcbc3, or divide the factory");
    if (err == TD_OK) err = run(&search, info);
    if (err == TD_ERR_LIMIT && info && !info->text[0])
        (void)td_fail(info, err,
                      "server_cluster: too many GPUs or robots for one plan; "
                      "divide the factory");
    search.best.points = search.evaluator.points;
    td_plan_evaluator_done(&search.evaluator);
    if (err == TD_OK) *ret_found = search.best;
    return err;
}

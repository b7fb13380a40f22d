// SPDX-License-Identifier: Apache-2.0
#include "plan/search/search.h"

#include <string.h>

#define HALVINGS 8

static td_err name_loop(const td_plan_evaluator *evaluator, td_errinfo *info)
{
    uint32_t task = evaluator->short_task;
    const td_config_factory_task *at =
        &evaluator->problem->factory->tasks[task];
    return td_fail(
        info, TD_ERR_LIMIT,
        "%s: min_throughput: %.4g actions a second cannot be met: with these "
        "models the loops of %zu robots give %.4g at most; lower it, add "
        "robots or use a faster model",
        at->name, at->min_throughput, at->robot_count,
        evaluator->loops_hz[task] * (double)at->robot_count);
}

// The most that a class can have beside the least of the others; 0: nothing.
static td_err find_most(td_plan_evaluator *evaluator, size_t task,
                        const double *least_hz, double *scratch_hz,
                        double *ret_hz)
{
    size_t tasks = evaluator->problem->factory->task_count;
    double low = 0;
    double high = least_hz[task];
    memcpy(scratch_hz, least_hz, tasks * sizeof *scratch_hz);
    for (int i = 0; i < HALVINGS; i++) {
        td_plan_answer answer;
        scratch_hz[task] = (low + high) / 2;
        TD_TRY(td_plan_evaluate(evaluator, scratch_hz, &answer));
        if (answer == TD_PLAN_HOLDS)
            low = scratch_hz[task];
        else
            high = scratch_hz[task];
    }
    *ret_hz = low;
    return TD_OK;
}

// The class without whose minimum the others' would hold. OK when there is
// none.
static td_err name_minimum(td_plan_evaluator *evaluator, const double *least_hz,
                           double *scratch_hz, td_errinfo *info)
{
    const td_config_factory *factory = evaluator->problem->factory;
    for (size_t i = 0; i < factory->task_count; i++) {
        const td_config_factory_task *at = &factory->tasks[i];
        double most_hz = 0;
        if (at->min_throughput == 0) continue;
        TD_TRY(find_most(evaluator, i, least_hz, scratch_hz, &most_hz));
        if (most_hz > 0)
            return td_fail(
                info, TD_ERR_LIMIT,
                "%s: min_throughput: %.4g actions a second cannot be met "
                "beside what the others need: %.4g at most; lower it or add "
                "GPUs",
                at->name, at->min_throughput,
                most_hz * (double)at->robot_count);
    }
    return TD_OK;
}

// The pool that takes most.
static td_err name_pool(const td_plan_problem *problem, const double *least_hz,
                        td_errinfo *info)
{
    const td_plan_pool *worst = NULL;
    uint32_t most = 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < problem->pool_count; i++) {
        uint32_t need =
            td_plan_evaluate_least(problem, &problem->pools[i], least_hz);
        sum += need;
        if (need <= most) continue;
        most = need;
        worst = &problem->pools[i];
    }
    if (!worst) return TD_ERR_LIMIT;
    return td_fail(
        info, TD_ERR_LIMIT,
        "%s: components: %s: too few GPUs: at its least this factory needs "
        "%llu or more and has %u for streams; %s alone takes %u of them for "
        "%u streams. Add GPUs, take robots away, or ask less often",
        problem->factory->tasks[worst->needs[0].task].name, worst->name,
        (unsigned long long)(sum > problem->gpus ? sum : problem->gpus + 1),
        problem->gpus, worst->model, most, worst->streams);
}

td_err td_plan_infeasible(td_plan_evaluator *evaluator, td_plan_answer answer,
                          const double *least_hz, double *scratch_hz,
                          td_errinfo *info)
{
    if (answer == TD_PLAN_NO_LOOP) return name_loop(evaluator, info);
    TD_TRY(name_minimum(evaluator, least_hz, scratch_hz, info));
    return name_pool(evaluator->problem, least_hz, info);
}

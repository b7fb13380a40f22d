// SPDX-License-Identifier: Apache-2.0
#include "plan/search/compact.h"

#include "plan/search/allocation.h"

#include <math.h>
#include <string.h>

// What all that is on a server's GPU asks, and how many they are.
static double joined_hz(const td_plan_evaluator *evaluator, size_t index,
                        const double *rates_hz, uint32_t *ret_streams)
{
    double sum = 0;
    *ret_streams = 0;
    for (size_t i = 0; i < evaluator->allocation_count; i++) {
        const td_plan_allocation *allocation = &evaluator->allocations[i];
        if (i != index && allocation->joined != index) continue;
        sum += td_plan_allocation_hz(evaluator, allocation, rates_hz);
        *ret_streams += allocation->streams;
    }
    return sum;
}

static bool is_alike(const td_plan_pool *a, const td_plan_pool *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->name, b->name) == 0;
}

// Whether a server still holds its deadlines with another's streams too.
static bool may_join(const td_plan_evaluator *evaluator, size_t from, size_t to,
                     const double *rates_hz)
{
    const td_plan_problem *problem = evaluator->problem;
    const td_plan_pool *own = &problem->pools[evaluator->allocations[to].pool];
    const td_plan_pool *other =
        &problem->pools[evaluator->allocations[from].pool];
    uint32_t here, there;
    td_plan_point point;
    if (from == to || evaluator->allocations[to].joined != TD_PLAN_NONE ||
        !is_alike(own, other))
        return false;
    double sum_hz = joined_hz(evaluator, from, rates_hz, &here) +
                    joined_hz(evaluator, to, rates_hz, &there);
    double slowest_hz = fmin(td_plan_evaluate_slowest_hz(own, rates_hz),
                             td_plan_evaluate_slowest_hz(other, rates_hz));
    const td_plan_pool *strict =
        own->deadline_ms <= other->deadline_ms ? own : other;
    return td_plan_problem_estimate(problem, strict,
                                    evaluator->allocations[to].type,
                                    here + there, sum_hz, slowest_hz, &point);
}

static void join(td_plan_evaluator *evaluator, size_t from, size_t to)
{
    for (size_t i = 0; i < evaluator->allocation_count; i++)
        if (i == from || evaluator->allocations[i].joined == from)
            evaluator->allocations[i].joined = (uint32_t)to;
}

// Merges the server with the least load into the one with the most that still
// takes it. False when no two can.
static bool merge_one(td_plan_evaluator *evaluator, const double *rates_hz)
{
    size_t best_from = SIZE_MAX;
    size_t best_to = SIZE_MAX;
    double least = INFINITY;
    double most = -1;
    uint32_t streams;
    for (size_t from = 0; from < evaluator->allocation_count; from++) {
        if (evaluator->allocations[from].joined != TD_PLAN_NONE) continue;
        double load = joined_hz(evaluator, from, rates_hz, &streams);
        for (size_t to = 0; to < evaluator->allocation_count; to++) {
            double other = joined_hz(evaluator, to, rates_hz, &streams);
            if (load > least || (load == least && other <= most) ||
                !may_join(evaluator, from, to, rates_hz))
                continue;
            least = load;
            most = other;
            best_from = from;
            best_to = to;
        }
    }
    if (best_from == SIZE_MAX) return false;
    join(evaluator, best_from, best_to);
    return true;
}

bool td_plan_compact(td_plan_evaluator *evaluator, const double *rates_hz)
{
    size_t gpus = evaluator->allocation_count;
    while (gpus > evaluator->problem->gpus && merge_one(evaluator, rates_hz))
        gpus--;
    return gpus <= evaluator->problem->gpus;
}

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_SEARCH_EVALUATE_H
#define TD_PLAN_SEARCH_EVALUATE_H

// Whether the robots of each task can act at given rates, and on which servers.

#include "plan/search/problem.h"

// A server that takes the next streams of a pool's line.
typedef struct td_plan_allocation {
    uint32_t pool, type;
    uint32_t from, streams;
    uint32_t joined; // index of the server whose GPU it was merged into; NONE
} td_plan_allocation;

// What came of a rate vector.
typedef enum td_plan_answer {
    TD_PLAN_HOLDS,
    TD_PLAN_NO_GPUS, // deadlines and rates need more GPUs than there are
    TD_PLAN_NO_LOOP, // a robot's own loop is slower than its rate
} td_plan_answer;

typedef struct td_plan_evaluator {
    const td_plan_problem *problem; // borrowed
    td_plan_packer *packer;
    td_plan_packer *wide; // with more GPUs than there are, to merge from
    td_plan_pack_row *rows;
    uint32_t *units; // streams in a unit, of each pool
    double *costs;
    size_t cost_room;
    bool fewest; // servers, whatever the latency: to merge them afterwards
    double *loads, *worths;          // of the streams of a line before each
    uint32_t *need_at;               // of each stream of a line
    double *allowed_ms;              // for each need of a pool
    td_plan_allocation *allocations; // of the last one that held
    size_t allocation_count, most_allocations;
    double *loops_hz;    // what they leave to each task
    double *best_hz;     // what a task's loop allows at the very best
    uint32_t short_task; // whose loop was too slow
    uint32_t points;     // how many were asked for
} td_plan_evaluator;

// Borrows the problem. LIMIT, NOMEM; td_plan_evaluator_done() even then.
TD_NODISCARD td_err td_plan_evaluator_init(td_plan_evaluator *evaluator,
                                           const td_plan_problem *problem);
void td_plan_evaluator_done(td_plan_evaluator *evaluator);

// NOMEM, LIMIT.
TD_NODISCARD td_err td_plan_evaluate(td_plan_evaluator *evaluator,
                                     const double *rates_hz,
                                     td_plan_answer *ret_answer);

double td_plan_evaluate_slowest_hz(const td_plan_pool *pool,
                                   const double *rates_hz);

// The fewest GPUs, of its best type, that a pool needs by its load alone.
uint32_t td_plan_evaluate_least(const td_plan_problem *problem,
                                const td_plan_pool *pool,
                                const double *rates_hz);

#endif

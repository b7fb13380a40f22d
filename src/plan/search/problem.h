// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_SEARCH_PROBLEM_H
#define TD_PLAN_SEARCH_PROBLEM_H

// What is to be planned, in the planner's own terms: types of GPUs, classes of
// robots, and pools of streams that may share servers.

#include "base/arena.h"
#include "plan/capacity/curve.h"
#include "plan/pack/pack.h"

// GPUs that are alike.
typedef struct td_plan_type {
    const char *name;
    double memory_gb; // of each; 0: as the profiles say
    uint32_t gpus;    // for streams, without standbys
} td_plan_type;

// The streams of one component of one class: one a robot.
typedef struct td_plan_need {
    uint32_t task, component;
    uint32_t streams;
    double per_action; // calls for an action; 0: obliged, at rate_hz
    double rate_hz;
    double worth; // of a millisecond less, for one stream
} td_plan_need;

// Streams that may share servers, in a line: those of one need are neighbours.
typedef struct td_plan_pool {
    const char *model, *engine;
    const char *name; // of the first component in it
    double deadline_ms, percentile;
    td_plan_need *needs;
    size_t need_count;
    uint32_t streams;
    uint32_t servers;                   // at most; 0: as there are
    uint32_t loaded[TD_PLAN_MAX_TYPES]; // GPUs that serve such streams already
    double size_gb;                     // of the model
    const td_plan_curve *curves[TD_PLAN_MAX_TYPES]; // NULL: not on this type
    // For streams of unlike rates, which keep no phases; NULL: they are alike.
    const td_plan_curve *unlike[TD_PLAN_MAX_TYPES];
    // For streams in step, one for each size of batch.
    const td_plan_curve *in_step[TD_PLAN_MAX_TYPES];
    size_t in_step_count[TD_PLAN_MAX_TYPES];
} td_plan_pool;

typedef struct td_plan_problem {
    const td_config_factory *factory;
    const td_config_profiles *profiles;
    td_plan_options options;
    td_arena *arena; // owns what is below
    td_plan_type types[TD_PLAN_MAX_TYPES];
    size_t type_count;
    uint32_t gpus;   // for streams, of all types
    bool by_columns; // packed by an integer program: pools are of one need
    uint32_t standbys;
    uint32_t *kept;      // of each node, GPUs that are standbys
    uint32_t most_loads; // GPUs that may load another model; NONE: all
    size_t most_needs;   // components of all tasks
    td_plan_pool *pools;
    size_t pool_count;
} td_plan_problem;

// Borrows the factory and the profiles. Owned by the caller. As td_plan_make().
TD_NODISCARD td_err td_plan_problem_new(const td_config_factory *factory,
                                        const td_config_profiles *profiles,
                                        const td_plan_options *options,
                                        td_plan_problem **ret_problem,
                                        td_errinfo *info);
void td_plan_problem_free(td_plan_problem *problem);
TD_AUTO_FREE(td_plan_problem, td_plan_problem_free)

// The type of a node's GPUs.
size_t td_plan_problem_type(const td_plan_problem *problem, size_t node);

// Of one stream of a need, when the robots of each task act at these rates.
double td_plan_need_hz(const td_plan_need *need, const double *rates_hz);

// Actions a second that t_act alone would allow.
double td_plan_problem_most_hz(const td_plan_problem *problem, size_t task);

// What a robot's loop allows when its inference takes `latency_ms` an action.
double td_plan_problem_loop_hz(const td_plan_problem *problem, size_t task,
                               double latency_ms);

// What a server of a type gives `streams` of a pool that ask at `rate_hz` in
// all, the slowest of them at `least_hz`: each in a phase of its own, or in
// step where that takes less time. False when it cannot.
bool td_plan_problem_estimate(const td_plan_problem *problem,
                              const td_plan_pool *pool, size_t type,
                              uint32_t streams, double rate_hz, double least_hz,
                              td_plan_point *ret_point);

// What it could take at most.
double td_plan_problem_capacity_hz(const td_plan_problem *problem,
                                   const td_plan_pool *pool, size_t type);

// Runs a server's batches as the point says.
void td_plan_point_use(const td_plan_point *point, td_plan_server *server);

// The latency that loops are computed with.
double td_plan_problem_loop_ms(const td_plan_problem *problem,
                               const td_plan_point *point);

#endif

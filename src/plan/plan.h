// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_PLAN_H
#define TD_PLAN_PLAN_H

// The plan of a factory: which model runs on which GPU, which server each robot
// asks, how often, when in the period and in which batches, so that the most
// valuable actions come out and every deadline holds.
//
// Pure: no clock, no thread. The same inputs make the same plan, so the search
// is bounded by a number of steps, and by time only where the caller says so.
//
// A plan borrows nothing: it has copies of every name that it uses.

#include "config/factory/factory.h"
#include "config/factory/profile.h"
#include "config/manifest/scheduling.h"

// Who plans, by the name on the command line.
#define TD_PLAN_PLANNERS(X)                                                    \
    X(TENDON, "tendon")                   /* ours */                           \
    X(PAPER, "paper")                     /* as Rosa's scheduler */            \
    X(EQUAL, "equal")                     /* as many GPUs for each model */    \
    X(WEIGHTED, "weighted")               /* by the size of the models */      \
    X(DEDICATED, "dedicated")             /* a GPU a model a robot */          \
    X(DEDICATED_ROBOT, "dedicated-robot") /* a GPU a robot */

typedef enum td_plan_planner {
#define TD_PLAN_PLANNER_ENUM(name, text) TD_PLAN_##name,
    TD_PLAN_PLANNERS(TD_PLAN_PLANNER_ENUM)
#undef TD_PLAN_PLANNER_ENUM
        TD_PLAN_PLANNER_COUNT
} td_plan_planner;

const char *td_plan_planner_name(td_plan_planner planner);

// NOTFOUND.
TD_NODISCARD td_err td_plan_planner_find(const char *name,
                                         td_plan_planner *ret_planner);

// How GPUs are divided among the models.
typedef enum td_plan_split {
    TD_PLAN_SPLIT_BEST,
    TD_PLAN_SPLIT_EQUAL,
    TD_PLAN_SPLIT_BY_SIZE,       // memory_gb of the profiles
    TD_PLAN_SPLIT_MODEL_A_ROBOT, // robots that get no GPU are refused
    TD_PLAN_SPLIT_ROBOT,         // all models of a robot on one GPU
} td_plan_split;

// Which latency a robot's loop is computed with: t_act + l_S1 + l_S2 / H.
typedef enum td_plan_loop {
    TD_PLAN_LOOP_MEAN,
    TD_PLAN_LOOP_TAIL, // the component's percentile
} td_plan_loop;

// Everything that a planner is made of; td_plan_options_of() has each one's,
// and any of it may be changed.
typedef struct td_plan_options {
    td_plan_planner planner; // names the plan
    td_plan_split split;
    td_plan_loop loop;
    bool capped;    // robots keep to a rate; else they ask when they can
    bool staggered; // streams of a server have phases
    bool shared;    // components with one model and deadline share servers
    bool compact;   // servers of one model are merged after packing (paper)
    td_config_wait wait;  // NONE or FULL
    uint32_t batch_most;  // of any server; 0: as profiled
    uint32_t rate_steps;  // the finest rate is 1 / t_act over this
    uint32_t most_points; // rate vectors tried at most
    double tolerance;     // the search ends when less than this part is left
    // (optional) Whether a search is to end with what it has, of which so many
    // rate vectors were tried; 1 begins one. Plans then depend on it.
    bool (*is_over)(void *context, uint32_t points);
    void *context; // of is_over; borrowed
    double slack;  // deadlines are planned shorter by this part
    double margin; // a rate that the loop bounds is granted with this more
    double action_jitter; // of t_act, one deviation, that plans allow for
    double network_jitter_ms;
    const struct td_plan *previous; // borrowed; NULL: none. Ties prefer it
} td_plan_options;

td_plan_options td_plan_options_of(td_plan_planner planner);

#define TD_PLAN_NONE UINT32_MAX
#define TD_PLAN_MOST_COMPONENTS 16 // of a task

// One model on one GPU.
typedef struct td_plan_server {
    const char *id;   // "h200-0/3", unique; with its model where a GPU has many
    const char *node; // its name in the factory
    uint32_t gpu;     // of that node, from 0
    const char *model;
    const char *engine;
    const char *gpu_type;
    uint32_t batch_most;
    td_config_wait wait; // NONE, FIXED or FULL
    double wait_ms;      // FIXED
    bool standby;        // weights loaded, no stream of its own
    double rate_hz;      // of all its streams
    double capacity_hz;  // that it could take within their deadlines
    double memory_gb;    // 0: not known
} td_plan_server;

// What one robot asks of one server. Streams are in the order of robots, and
// of the task's components.
typedef struct td_plan_stream {
    uint32_t robot;     // index in `robots`
    uint32_t component; // index in its task's
    const char *name;   // of the component
    uint32_t server;    // index in `servers`
    uint32_t standby;   // index in `servers`; NONE
    double rate_hz;     // granted, on average; 0: whenever it can
    uint32_t every;     // calls of component 0 for one of this; 0: by rate_hz
    double phase;       // 0 to 1, of 1 / rate_hz or of `every`
    double deadline_ms;
    double mean_ms, tail_ms; // as computed, with the factory's overhead
} td_plan_stream;

typedef struct td_plan_robot {
    const char *name, *key;
    uint32_t task;         // index in `classes` and in the factory's tasks
    uint32_t first_stream; // one for each of its task's components
    uint32_t stream_count; // 0: refused
} td_plan_robot;

// What binds a class's rate.
#define TD_PLAN_BINDS(X)                                                       \
    X(LOOP, "the robot's own loop")                                            \
    X(GPUS, "the number of GPUs")                                              \
    X(DEADLINE, "a deadline")                                                  \
    X(NOTHING, "nothing: robots ask when they can")

typedef enum td_plan_bind {
#define TD_PLAN_BIND_ENUM(name, text) TD_PLAN_BINDS_##name,
    TD_PLAN_BINDS(TD_PLAN_BIND_ENUM)
#undef TD_PLAN_BIND_ENUM
        TD_PLAN_BIND_COUNT
} td_plan_bind;

const char *td_plan_bind_text(td_plan_bind bind);

// The robots of a task.
typedef struct td_plan_class {
    const char *task;
    uint32_t robots;  // served
    uint32_t refused; // for want of GPUs, in plans of the baselines
    double rate_hz;   // actions of a robot on average; 0: whenever it can
    double loop_hz;   // what the slowest one's loop allows with this plan
    double most_hz;   // at this rate and above some deadline or loop fails
    double value;     // of one action
    td_plan_bind binds;
    uint32_t bound; // index of the component that does; NONE
} td_plan_class;

typedef struct td_plan {
    td_plan_planner planner;
    td_plan_server *servers;
    size_t server_count;
    td_plan_robot *robots;
    size_t robot_count;
    td_plan_stream *streams;
    size_t stream_count;
    td_plan_class *classes; // as the factory's tasks
    size_t class_count;
    uint32_t gpus, gpus_used, gpus_standby;
    double actions_hz; // of all robots
    double value_hz;   // weighted; 0 where robots ask when they can
    uint32_t points;   // rate vectors that were tried
    uint32_t reloaded; // GPUs that differ from the previous plan
    uint32_t rerouted; // streams that do
} td_plan;

// Makes a plan. Owned by the caller. NOMEM; INVALID and NOTFOUND for a factory
// or profiles that cannot be planned (a deadline below the model's own time, no
// profile, one for another GPU, a model that fits nowhere); LIMIT when there
// are too few GPUs, with the class and the component that cannot be met. `info`
// has the way out.
TD_NODISCARD td_err td_plan_make(const td_config_factory *factory,
                                 const td_config_profiles *profiles,
                                 const td_plan_options *options,
                                 td_plan **ret_plan, td_errinfo *info);
void td_plan_free(td_plan *plan);
TD_AUTO_FREE(td_plan, td_plan_free)

// Writes the plan as JSON, for machines: docs/plan.md. Blocks. IO.
TD_NODISCARD td_err td_plan_write(const td_plan *plan, FILE *out);

// Reads a file that td_plan_write() wrote. Owned by the caller. Blocks.
// NOTFOUND, IO; FORMAT with the member that is wrong, LIMIT, MISMATCH for
// another version of the format, NOMEM.
TD_NODISCARD td_err td_plan_load(const char *path, td_plan **ret_plan,
                                 td_errinfo *info);

// The same from memory; `file` is what errors call it.
TD_NODISCARD td_err td_plan_parse(const char *file, const void *data,
                                  size_t size, td_plan **ret_plan,
                                  td_errinfo *info);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_FACTORY_FACTORY_H
#define TD_CONFIG_FACTORY_FACTORY_H

// The description of a factory: GPUs, robots, and what each task needs of which
// model, how fast and how often. What the planner plans from.
//
// The format is that of the Rosa paper's Figure 3 with more fields, all
// optional: every name at the top that is not a field of its own is a task.
// What the file may leave out is resolved here, so that a reader finds one
// form: GPUs in `nodes`, each robot in `robots`, each component's rate in
// `per_action` or `rate_hz`.

#include "config/yaml/table.h"

#define TD_CONFIG_MAX_COMPONENTS 16 // as many as a grant can carry

// GPUs of one type in one machine.
typedef struct td_config_factory_node {
    const char *name;
    const char *gpu_type;
    int64_t gpus;
    double gpu_memory_gb; // of each; 0: as its profiles say
} td_config_factory_node;

typedef struct td_config_factory_cluster {
    int64_t num_servers;  // GPUs of all nodes
    const char *gpu_type; // of a cluster without `nodes` in its file
    double gpu_memory_gb;
    td_config_factory_node *nodes;
    size_t node_count;  // at least 1
    int64_t standby;    // GPUs that are kept for failures
    double overhead_ms; // of a request beside its model: network and coding
} td_config_factory_cluster;

// One robot. Those of a group that gives only a number are called TASK-0, ...
typedef struct td_config_factory_robot {
    const char *name;
    const char *key; // its client_uuid
    size_t task;     // index in `tasks`
} td_config_factory_robot;

// A line of robot_fleet.
typedef struct td_config_factory_group {
    const char *task;
    int64_t num_robots;
    td_config_factory_robot *robots; // those given by name, or none
    size_t robot_count;
} td_config_factory_group;

// What a robot does when an answer is late, or a model says that it is unsafe.
typedef enum td_config_fallback {
    TD_CONFIG_STOP_AND_RESEND,
    TD_CONFIG_STOP_AND_REPLAN,
    TD_CONFIG_USE_LAST_PLAN,
    TD_CONFIG_STOP,
    TD_CONFIG_RETURN_TO_SAFE_STATE,
    TD_CONFIG_RETRY_TASK,
    TD_CONFIG_STOP_AND_CALL_HUMAN,
} td_config_fallback;

// When a component is asked.
typedef enum td_config_invoke {
    TD_CONFIG_INVOKE_AUTO,      // in files only: what its name and fields say
    TD_CONFIG_INVOKE_ACTION,    // for each action: system1
    TD_CONFIG_INVOKE_EVERY,     // once for `every` calls of the component `of`
    TD_CONFIG_INVOKE_PERIODIC,  // freq_hz times a second
    TD_CONFIG_INVOKE_ON_CHANGE, // when the scene changes, at most freq_hz
} td_config_invoke;

typedef enum td_config_role {
    TD_CONFIG_SYSTEM1,
    TD_CONFIG_SYSTEM2,
    TD_CONFIG_SAFETY,
    TD_CONFIG_MONITOR,
    TD_CONFIG_OTHER,
} td_config_role;

// A model that a task needs. Exactly one of per_action and rate_hz is above 0.
typedef struct td_config_factory_component {
    const char *name; // "system1", "system2", "safety", "monitor", or another
    const char *model;
    const char *engine; // of its profile; "": any
    const char *prompt;
    double slo_ms;         // the deadline of an answer
    double slo_percentile; // of the answers must meet it; 99
    double freq_hz;
    td_config_invoke invoke;
    int64_t every;
    const char *of;
    td_config_fallback fallback;

    td_config_role role;
    // Calls for each action, of components that are goal-coupled: the next
    // action waits for them. 1 for system1, 1 / H for system2.
    double per_action;
    double rate_hz; // of the others, the obligations
} td_config_factory_component;

typedef struct td_config_factory_pipeline {
    double action_period_ms; // t_act
    // System 2 calls for one System 1 call: 0.1 is once in 10. 0: no system2.
    double system2_to_system1_call_ratio;
} td_config_factory_pipeline;

typedef struct td_config_factory_retry {
    int64_t max_task_retries;
    td_config_fallback on_max_task_retries;
} td_config_factory_retry;

typedef struct td_config_factory_violation {
    int64_t max_consecutive_safety_replan;
    int64_t max_consecutive_slo_violation;
    td_config_fallback on_max_violation;
} td_config_factory_violation;

typedef enum td_config_execution {
    TD_CONFIG_SYNC,  // inference, then the action, in turn
    TD_CONFIG_ASYNC, // the next inference runs during the action
} td_config_execution;

typedef enum td_config_on_miss {
    TD_CONFIG_MISS_FALLBACK, // the component's fallback
    TD_CONFIG_MISS_COUNT,    // only counted
} td_config_on_miss;

typedef struct td_config_factory_task {
    const char *name;
    td_config_factory_pipeline pipeline;
    td_config_factory_retry task_retry;
    td_config_factory_violation safety_and_slo_violation;
    double value;          // v_c, what one action is worth
    double min_throughput; // F_c, actions a second of all its robots
    double slo_percentile; // of components that do not say their own
    td_config_execution execution;
    td_config_on_miss on_miss;
    td_config_factory_component *components; // [0] is system1
    size_t component_count;
    size_t robot_count; // of all groups
} td_config_factory_task;

typedef struct td_config_factory {
    td_config_factory_cluster server_cluster;
    td_config_factory_group *robot_fleet; // as in the file
    size_t group_count;
    const char *profiles;            // folder of profiles
    td_config_factory_task *tasks;   // each with at least one robot
    size_t task_count;               // at least 1
    td_config_factory_robot *robots; // all, in the order of the groups
    size_t robot_count;              // at least 1
} td_config_factory;

// Reads and checks a description. Owned by the caller, with everything it
// points to. Blocks on the file. IO, FORMAT (not YAML), LIMIT, INVALID (a
// field), with "factory.yaml:12: place: what" in `info`.
TD_NODISCARD td_err td_config_factory_load(const char *path,
                                           td_config_factory **ret_factory,
                                           td_errinfo *info);

// The same from memory; `path` is what errors call it.
TD_NODISCARD td_err td_config_factory_parse(const char *path, const void *data,
                                            size_t size,
                                            td_config_factory **ret_factory,
                                            td_errinfo *info);

void td_config_factory_free(td_config_factory *factory);
TD_AUTO_FREE(td_config_factory, td_config_factory_free)

// The component of that name, or NULL.
const td_config_factory_component *
td_config_factory_find(const td_config_factory_task *task, const char *name);

const char *td_config_fallback_name(td_config_fallback fallback);

// Every field, for help, docs and td_config_schema_write().
extern const td_config_table td_config_factory_table;

// A description with comments that stands for itself: examples/factory.yaml.
extern const char td_config_factory_example[];

#endif

// SPDX-License-Identifier: Apache-2.0
#include "plan/file/file.h"

#include <stddef.h>

static const char *const planners[] = {
#define PLANNER(name, text) text,
    TD_PLAN_PLANNERS(PLANNER)
#undef PLANNER
        NULL};

static const char *const binds[] = {
#define BIND(name, text) text,
    TD_PLAN_BINDS(BIND)
#undef BIND
        NULL};

#define ROW(type, name, kind, member)                                          \
    {name, TD_PLAN_FILE_##kind, offsetof(type, member), NULL}
#define CHOICE(type, name, member, choices)                                    \
    {name, TD_PLAN_FILE_CHOICE, offsetof(type, member), choices}

const td_plan_file_field td_plan_file_plan[] = {
    CHOICE(td_plan, "planner", planner, planners),
    ROW(td_plan, "actions_hz", NUMBER, actions_hz),
    ROW(td_plan, "value_hz", NUMBER, value_hz),
    ROW(td_plan, "gpus", WHOLE, gpus),
    ROW(td_plan, "gpus_used", WHOLE, gpus_used),
    ROW(td_plan, "gpus_standby", WHOLE, gpus_standby),
    {0},
};

const td_plan_file_field td_plan_file_server[] = {
    ROW(td_plan_server, "id", TEXT, id),
    ROW(td_plan_server, "node", TEXT, node),
    ROW(td_plan_server, "gpu", WHOLE, gpu),
    ROW(td_plan_server, "gpu_type", TEXT, gpu_type),
    ROW(td_plan_server, "model", TEXT, model),
    ROW(td_plan_server, "engine", TEXT, engine),
    ROW(td_plan_server, "standby", BOOL, standby),
    ROW(td_plan_server, "batch_most", WHOLE, batch_most),
    CHOICE(td_plan_server, "batch_wait", wait, td_config_waits),
    ROW(td_plan_server, "batch_wait_ms", ADDED, wait_ms),
    ROW(td_plan_server, "rate_hz", NUMBER, rate_hz),
    ROW(td_plan_server, "capacity_hz", NUMBER, capacity_hz),
    ROW(td_plan_server, "memory_gb", NUMBER, memory_gb),
    {0},
};

const td_plan_file_field td_plan_file_class[] = {
    ROW(td_plan_class, "task", TEXT, task),
    ROW(td_plan_class, "robots", WHOLE, robots),
    ROW(td_plan_class, "refused", WHOLE, refused),
    ROW(td_plan_class, "rate_hz", NUMBER, rate_hz),
    ROW(td_plan_class, "loop_hz", NUMBER, loop_hz),
    ROW(td_plan_class, "most_hz", NUMBER, most_hz),
    ROW(td_plan_class, "value", NUMBER, value),
    CHOICE(td_plan_class, "bound_by", binds, binds),
    ROW(td_plan_class, "bound_component", INDEX, bound),
    {0},
};

const td_plan_file_field td_plan_file_robot[] = {
    ROW(td_plan_robot, "name", TEXT, name),
    ROW(td_plan_robot, "key", TEXT, key),
    {0},
};

const td_plan_file_field td_plan_file_stream[] = {
    ROW(td_plan_stream, "component", TEXT, name),
    ROW(td_plan_stream, "rate_hz", NUMBER, rate_hz),
    ROW(td_plan_stream, "every", WHOLE, every),
    ROW(td_plan_stream, "phase", NUMBER, phase),
    ROW(td_plan_stream, "deadline_ms", NUMBER, deadline_ms),
    ROW(td_plan_stream, "mean_ms", NUMBER, mean_ms),
    ROW(td_plan_stream, "tail_ms", NUMBER, tail_ms),
    {0},
};

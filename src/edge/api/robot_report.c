// SPDX-License-Identifier: Apache-2.0
#include "edge/api/robot.h"

#include "base/clock.h"
#include "edge/api/api.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct listener {
    td_robot_number_fn each;
    void *user;
} listener;

static void report_one(const listener *to, td_wire_text name, const char *part,
                       double value)
{
    char whole[2 * TD_WIRE_MAX_NAME];
    (void)snprintf(whole, sizeof whole, "%.*s%s", (int)name.size, name.data,
                   part);
    to->each(to->user, whole, value);
}

static void report_quantiles(const listener *to, const td_wire_quantiles *of)
{
    report_one(to, of->name, "/count", (double)of->count);
    report_one(to, of->name, "/mean", of->mean);
    report_one(to, of->name, "/p50", of->p50);
    report_one(to, of->name, "/p99", of->p99);
    report_one(to, of->name, "/p999", of->p999);
    report_one(to, of->name, "/max", of->max);
}

static void report_all(const listener *to, const td_wire_metrics *metrics)
{
    for (uint32_t i = 0; i < metrics->counter_count; i++)
        report_one(to, metrics->counters[i].name, "",
                   (double)metrics->counters[i].value);
    for (uint32_t i = 0; i < metrics->gauge_count; i++)
        report_one(to, metrics->gauges[i].name, "", metrics->gauges[i].value);
    for (uint32_t i = 0; i < metrics->quantiles_count; i++)
        report_quantiles(to, &metrics->quantiles[i]);
}

td_err td_robot_report(td_robot *robot, td_robot_number_fn each, void *user)
{
    const listener to = {each, user};
    td_wire_metrics *metrics = malloc(sizeof *metrics);
    if (!metrics) return TD_ERR_NOMEM;
    td_edge_metrics_get(robot->parts.edge, td_clock_monotonic_ns(), metrics);
    report_all(&to, metrics);
    free(metrics);
    return TD_OK;
}

td_err td_robot_number(td_robot *robot, const char *name, double *ret_value)
{
    td_edge_api_number wanted = {.name = name};
    TD_TRY(td_robot_report(robot, td_edge_api_number_match, &wanted));
    return td_edge_api_number_get(&wanted, ret_value);
}

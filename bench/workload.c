// SPDX-License-Identifier: Apache-2.0
#include "bench/workload.h"

#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROFILES "../../profiles" // from where the program is

static const struct {
    const char *name;
    const char *tasks; // a digit each, P1 to P4; they share the robots alike
} workloads[] = {
#define TD_BENCH_WORKLOAD_ROW(name, text, tasks) {text, tasks},
    TD_BENCH_WORKLOADS(TD_BENCH_WORKLOAD_ROW)
#undef TD_BENCH_WORKLOAD_ROW
};

// What comes after System 1, by task.
static const char *const others[] = {
    "",
    "    monitor: {model: Qwen2.5-VL-7B-Instruct, freq_hz: 0.5, slo_ms: "
    "2000}\n",
    "    safety: {model: Qwen2.5-VL-3B-Instruct, freq_hz: 2, slo_ms: 500}\n"
    "    monitor: {model: Qwen2.5-VL-7B-Instruct, freq_hz: 0.5, slo_ms: "
    "2000}\n",
    "    system2: {model: Qwen2.5-VL-7B-Instruct, every: 10, slo_ms: 2000}\n"
    "    safety: {model: Qwen2.5-VL-3B-Instruct, freq_hz: 2, slo_ms: 500}\n"
    "    monitor: {model: Qwen2.5-VL-7B-Instruct, freq_hz: 0.5, slo_ms: "
    "2000}\n",
};

const char *td_bench_workload_name(td_bench_workload workload)
{
    return workloads[workload].name;
}

td_bench_workload_size td_bench_workload_of(uint32_t robots)
{
    return (td_bench_workload_size){.robots = robots,
                                    .gpus = 8,
                                    .action_ms = 200,
                                    .system1_ms = 200,
                                    .policy = ""};
}

static void write_text(FILE *out, td_bench_workload workload,
                       const td_bench_workload_size *size)
{
    const char *tasks = workloads[workload].tasks;
    uint32_t each = size->robots / (uint32_t)strlen(tasks);
    (void)fprintf(out,
                  "server_cluster: {num_servers: %u, gpu_type: NVIDIA H200}\n"
                  "robot_fleet:\n",
                  size->gpus);
    for (const char *task = tasks; *task; task++)
        (void)fprintf(out, "  - {task: p%c, num_robots: %u}\n", *task, each);
    for (const char *task = tasks; *task; task++)
        (void)fprintf(out,
                      "p%c:\n%s"
                      "  pipeline: {action_period_ms: %g}\n"
                      "  components:\n"
                      "    system1: {model: nvidia/GR00T-N1.6-3B, slo_ms: "
                      "%g}\n%s",
                      *task, size->policy, size->action_ms, size->system1_ms,
                      others[*task - '1']);
}

td_err td_bench_workload_factory(td_bench_workload workload,
                                 const td_bench_workload_size *size,
                                 td_config_factory **ret_factory,
                                 td_errinfo *info)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return TD_ERR_NOMEM;
    write_text(out, workload, size);
    td_err err = fclose(out) == 0 ? TD_OK : TD_ERR_NOMEM;
    if (err == TD_OK)
        err = td_config_factory_parse(workloads[workload].name, text, bytes,
                                      ret_factory, info);
    free(text);
    return err;
}

td_err td_bench_workload_profiles(td_config_profiles **ret_profiles,
                                  td_errinfo *info)
{
    char path[TD_BENCH_LINE_BYTES];
    if (!td_bench_find(PROFILES, "", path))
        return td_fail(info, TD_ERR_NOTFOUND, "there are no profiles at %s",
                       path);
    return td_config_profiles_load(path, ret_profiles, info);
}

td_err td_bench_workload_plan(td_bench_workload workload,
                              const td_bench_workload_size *size,
                              const td_config_profiles *profiles,
                              const td_plan_options *options,
                              td_bench_planned *ret_planned, td_errinfo *info)
{
    td_bench_planned made = {.profiles = profiles};
    TD_TRY(td_bench_workload_factory(workload, size, &made.factory, info));
    td_err err =
        td_plan_make(made.factory, profiles, options, &made.plan, info);
    if (err == TD_OK)
        *ret_planned = made;
    else
        td_config_factory_free(made.factory);
    return err;
}

void td_bench_planned_done(td_bench_planned *planned)
{
    td_plan_free(planned->plan);
    td_config_factory_free(planned->factory);
}

void td_bench_planned_roles(const td_bench_planned *planned,
                            uint32_t ret_gpus[TD_BENCH_ROLES])
{
    const td_plan *plan = planned->plan;
    memset(ret_gpus, 0, TD_BENCH_ROLES * sizeof *ret_gpus);
    for (uint32_t s = 0; s < plan->server_count; s++) {
        size_t i = 0;
        while (i < plan->stream_count && plan->streams[i].server != s)
            i++;
        if (i == plan->stream_count) continue;
        const td_plan_stream *stream = &plan->streams[i];
        uint32_t task = plan->robots[stream->robot].task;
        td_config_role role =
            planned->factory->tasks[task].components[stream->component].role;
        if (role < TD_BENCH_ROLES) ret_gpus[role]++;
    }
}

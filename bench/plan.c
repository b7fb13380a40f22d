// SPDX-License-Identifier: Apache-2.0
// How long planning takes: whole plans, trying one out in simulation, and one
// result. Limits are of time on the wall; processor time stands beside it.
#include "bench/bench.h"
#include "bench/planning.h"
#include "bench/workload.h"
#include "plan/admit/admit.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MOST_RUNS 15
#define ADMISSION_MS 1
#define VERIFY_RUNS 3 // as `tendon plan` does

const td_bench_planning_case td_bench_planning_cases[] = {
    {"P4/64-robots/8-gpus", 1, 64, 8, 20, 0.1},
    {"8-classes/512-robots/64-gpus", 8, 512, 64, 1000, 1},
    {"13-classes/1000-robots/128-gpus", 13, 1000, 128, 5000, 1},
};
#define CASES TD_BENCH_PLANNING_CASES

// Tasks from P4 down to P1 and around again, each a little slower than the one
// before.
static const char *const parts[] = {
    "    system2: {model: Qwen2.5-VL-7B-Instruct, every: 10, slo_ms: 2000}\n",
    "    safety: {model: Qwen2.5-VL-3B-Instruct, freq_hz: 2, slo_ms: 500}\n",
    "    monitor: {model: Qwen2.5-VL-7B-Instruct, freq_hz: 0.5, slo_ms: 2e3}\n",
};

static void write_task(FILE *out, uint32_t index)
{
    (void)fprintf(out,
                  "t%u:\n  value: %g\n  pipeline: {action_period_ms: %u}\n"
                  "  components:\n"
                  "    system1: {model: nvidia/GR00T-N1.6-3B, slo_ms: %u}\n",
                  index, 1 + 0.25 * (index % 3), 200 + 10 * index,
                  200 + 50 * (index / 4));
    for (uint32_t i = index % 4; i < TD_COUNT_OF(parts); i++)
        (void)fputs(parts[i], out);
}

static void write_factory(FILE *out, const td_bench_planning_case *at)
{
    (void)fprintf(out,
                  "server_cluster: {num_servers: %u, gpu_type: NVIDIA H200}\n"
                  "robot_fleet:\n",
                  at->gpus);
    for (uint32_t i = 0; i < at->classes; i++)
        (void)fprintf(out, "  - {task: t%u, num_robots: %u}\n", i,
                      at->robots * (i + 1) / at->classes -
                          at->robots * i / at->classes);
    for (uint32_t i = 0; i < at->classes; i++)
        write_task(out, i);
}

static td_err make_factory(const td_bench_planning_case *at,
                           td_config_factory **ret_factory, td_errinfo *info)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return TD_ERR_NOMEM;
    write_factory(out, at);
    td_err err = fclose(out) == 0 ? TD_OK : TD_ERR_NOMEM;
    if (err == TD_OK)
        err = td_config_factory_parse(at->name, text, bytes, ret_factory, info);
    free(text);
    return err;
}

double td_bench_planning_now_ms(void)
{
    return (double)td_clock_monotonic_ns() / (double)TD_NS_PER_MS;
}

static double used_ms(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

// What several runs of one thing took.
typedef struct times {
    double wall_ms[MOST_RUNS], cpu_ms[MOST_RUNS];
    size_t count;
    double start_ms, start_cpu_ms;
} times;

static void begin(times *all)
{
    all->start_cpu_ms = used_ms();
    all->start_ms = td_bench_planning_now_ms();
}

static void end(times *all)
{
    all->wall_ms[all->count] = td_bench_planning_now_ms() - all->start_ms;
    all->cpu_ms[all->count++] = used_ms() - all->start_cpu_ms;
}

// `most_ms` is of time on the wall; 0: no limit.
static void print(const td_bench_options *options, const char *what,
                  times *took, double most_ms)
{
    char name[64];
    td_bench_row row = {.bench = "plan", .name = name, .unit = "ms"};
    (void)snprintf(name, sizeof name, "%s/cpu/p50", what);
    row.value = td_bench_median(took->cpu_ms, took->count);
    td_bench_print(options, &row);
    (void)snprintf(name, sizeof name, "%s/p50", what);
    row.value = td_bench_median(took->wall_ms, took->count);
    if (most_ms > 0) {
        row.limited = TD_BENCH_VALUE;
        row.limit = most_ms;
    }
    td_bench_print(options, &row);
}

static td_err bench_plan(const td_bench_options *options, size_t index,
                         const td_config_factory *factory,
                         const td_config_profiles *profiles, td_errinfo *info)
{
    const td_bench_planning_case *at = &td_bench_planning_cases[index];
    td_plan_options how = td_plan_options_of(TD_PLAN_TENDON);
    times took = {.count = 0};
    size_t runs = index ? 3 : MOST_RUNS;
    if (options->quick) runs = 1;
    for (size_t i = 0; i < runs; i++) {
        TD_AUTO(td_plan) *plan = NULL;
        td_bench_progress("plan: %s, run %zu of %zu", at->name, i + 1, runs);
        begin(&took);
        TD_TRY(td_plan_make(factory, profiles, &how, &plan, info));
        end(&took);
        TD_TRY(td_bench_sleep(0));
    }
    print(options, at->name, &took, at->most_ms);
    return TD_OK;
}

// What `tendon plan` does with each plan before it writes it.
static td_err bench_verification(const td_bench_options *options, size_t index,
                                 const td_config_factory *factory,
                                 const td_config_profiles *profiles,
                                 td_errinfo *info)
{
    TD_AUTO(td_plan) *plan = NULL;
    td_plan_options how = td_plan_options_of(TD_PLAN_TENDON);
    td_sim_factory_options sim = td_sim_factory_defaults;
    td_sim_factory_result result;
    times took = {.count = 0};
    char name[64];
    sim.runs = options->quick ? 1 : VERIFY_RUNS;
    td_bench_progress("plan: %s, simulated",
                      td_bench_planning_cases[index].name);
    TD_TRY(td_plan_make(factory, profiles, &how, &plan, info));
    begin(&took);
    TD_TRY(td_sim_factory_run(factory, profiles, plan, &sim, &result, info));
    end(&took);
    td_sim_factory_result_done(&result);
    (void)snprintf(name, sizeof name, "verification/%s",
                   td_bench_planning_cases[index].name);
    print(options, name, &took, 0);
    return TD_OK;
}

static td_err bench_admission(const td_bench_options *options,
                              const td_config_factory *factory,
                              const td_config_profiles *profiles,
                              td_errinfo *info)
{
    TD_AUTO(td_plan) *plan = NULL;
    TD_AUTO(td_plan_admission) *admission = NULL;
    td_plan_options how = td_plan_options_of(TD_PLAN_TENDON);
    times took = {.count = 0};
    TD_TRY(td_plan_make(factory, profiles, &how, &plan, info));
    TD_TRY(td_plan_admission_new(factory, profiles, plan, &admission, info));
    for (size_t i = 0; i < MOST_RUNS; i++) {
        td_plan_admit_result result;
        char name[32];
        (void)snprintf(name, sizeof name, "new-%zu", i);
        begin(&took);
        TD_TRY(td_plan_admit(admission, name, name, 3, 0, &result));
        end(&took);
    }
    print(options, "admission/512-robots", &took, ADMISSION_MS);
    return TD_OK;
}

static td_err bench_all(const td_bench_options *options,
                        const td_config_profiles *profiles,
                        td_config_factory **factories, td_errinfo *info)
{
    for (size_t i = 0; i < CASES; i++) {
        TD_TRY(make_factory(&td_bench_planning_cases[i], &factories[i], info));
        TD_TRY(bench_plan(options, i, factories[i], profiles, info));
    }
    TD_TRY(bench_admission(options, factories[1], profiles, info));
    for (size_t i = 0; i < CASES; i++)
        TD_TRY(bench_verification(options, i, factories[i], profiles, info));
    return td_bench_planning_packings(options, factories, profiles, info);
}

td_err td_bench_plan(const td_bench_options *options, td_errinfo *info)
{
    TD_AUTO(td_config_profiles) *profiles = NULL;
    td_config_factory *factories[CASES] = {NULL};
    TD_TRY(td_bench_workload_profiles(&profiles, info));
    td_err err = bench_all(options, profiles, factories, info);
    for (size_t i = 0; i < CASES; i++)
        if (factories[i]) td_config_factory_free(factories[i]);
    return err;
}

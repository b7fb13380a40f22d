// SPDX-License-Identifier: Apache-2.0
// How long planning takes: whole plans, one admission, and the packing alone
// beside OR-Tools, which the Rosa paper's scheduler packs with.
#include "bench/bench.h"
#include "bench/workload.h"
#include "plan/admit.h"
#include "plan/evaluate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_RUNS 15
#define ADMISSION_MS 1
#define HALVINGS 8

static const struct {
    const char *name;
    uint32_t classes, robots, gpus;
    double most_ms;
    double most_ratio; // of the packing, beside OR-Tools
} cases[] = {
    {"P4/64-robots/8-gpus", 1, 64, 8, 20, 0.1},
    {"8-classes/512-robots/64-gpus", 8, 512, 64, 1000, 1},
    {"13-classes/1000-robots/128-gpus", 13, 1000, 128, 5000, 1},
};
#define CASES TD_COUNT_OF(cases)

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

static void write_factory(FILE *out, size_t index)
{
    uint32_t classes = cases[index].classes;
    (void)fprintf(out,
                  "server_cluster: {num_servers: %u, gpu_type: NVIDIA H200}\n"
                  "robot_fleet:\n",
                  cases[index].gpus);
    for (uint32_t i = 0; i < classes; i++)
        (void)fprintf(out, "  - {task: t%u, num_robots: %u}\n", i,
                      cases[index].robots * (i + 1) / classes -
                          cases[index].robots * i / classes);
    for (uint32_t i = 0; i < classes; i++)
        write_task(out, i);
}

static td_err make_factory(size_t index, td_config_factory **ret_factory,
                           td_errinfo *info)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return TD_ERR_NOMEM;
    write_factory(out, index);
    td_err err = fclose(out) == 0 ? TD_OK : TD_ERR_NOMEM;
    if (err == TD_OK)
        err = td_config_factory_parse(cases[index].name, text, bytes,
                                      ret_factory, info);
    free(text);
    return err;
}

// Of this thread's own: what else runs on the machine does not count.
static double now_ms(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

static td_err time_plan(const td_config_factory *factory,
                        const td_config_profiles *profiles, double *ret_ms,
                        td_errinfo *info)
{
    TD_AUTO(td_plan) *plan = NULL;
    td_plan_options options = td_plan_options_of(TD_PLAN_TENDON);
    double start_ms = now_ms();
    TD_TRY(td_plan_make(factory, profiles, &options, &plan, info));
    *ret_ms = now_ms() - start_ms;
    return TD_OK;
}

static td_err bench_plan(const td_bench_options *options, size_t index,
                         const td_config_factory *factory,
                         const td_config_profiles *profiles, td_errinfo *info)
{
    double took_ms[MOST_RUNS];
    char name[64];
    size_t runs = index ? 3 : MOST_RUNS;
    if (options->quick) runs = 1;
    for (size_t i = 0; i < runs; i++) {
        td_bench_progress("plan: %s, run %zu of %zu", cases[index].name, i + 1,
                          runs);
        TD_TRY(time_plan(factory, profiles, &took_ms[i], info));
        TD_TRY(td_bench_sleep(0));
    }
    (void)snprintf(name, sizeof name, "%s/p50", cases[index].name);
    const td_bench_row row = {
        .bench = "plan",
        .name = name,
        .value = td_bench_median(took_ms, runs),
        .unit = "ms",
        .limited = TD_BENCH_VALUE,
        .limit = cases[index].most_ms,
    };
    td_bench_print(options, &row);
    return TD_OK;
}

static td_err bench_admission(const td_bench_options *options,
                              const td_config_factory *factory,
                              const td_config_profiles *profiles,
                              td_errinfo *info)
{
    TD_AUTO(td_plan) *plan = NULL;
    TD_AUTO(td_plan_desk) *desk = NULL;
    td_plan_options how = td_plan_options_of(TD_PLAN_TENDON);
    double took_ms[MOST_RUNS];
    TD_TRY(td_plan_make(factory, profiles, &how, &plan, info));
    TD_TRY(td_plan_desk_new(factory, profiles, plan, &desk, info));
    for (size_t i = 0; i < MOST_RUNS; i++) {
        td_plan_admission admission;
        char name[32];
        (void)snprintf(name, sizeof name, "new-%zu", i);
        double start_ms = now_ms();
        TD_TRY(td_plan_admit(desk, name, name, 3, 0, &admission));
        took_ms[i] = now_ms() - start_ms;
    }
    const td_bench_row row = {
        .bench = "plan",
        .name = "admission/512-robots/p50",
        .value = td_bench_median(took_ms, MOST_RUNS),
        .unit = "ms",
        .limited = TD_BENCH_VALUE,
        .limit = ADMISSION_MS,
    };
    td_bench_print(options, &row);
    return TD_OK;
}

// One packing problem: a row for each component of each class, at rates at
// which there only just is a packing.
typedef struct packing {
    td_plan_problem *problem;
    td_plan_evaluator evaluator;
    td_bench_pairs ms;
} packing;

static void packing_done(packing *it)
{
    td_plan_evaluator_done(&it->evaluator);
    if (it->problem) td_plan_problem_free(it->problem);
}

// The last one that is tried holds, so that its rows are those of a packing.
static td_err find_rates(packing *it, double *rates_hz)
{
    double low = 0;
    double high = 1;
    for (int i = 0; i <= HALVINGS; i++) {
        double part = i < HALVINGS ? (low + high) / 2 : low;
        td_plan_answer answer;
        for (size_t j = 0; j < it->problem->factory->task_count; j++)
            rates_hz[j] = part * td_plan_problem_most_hz(it->problem, j) + 1e-3;
        TD_TRY(td_plan_evaluate(&it->evaluator, rates_hz, &answer));
        if (answer == TD_PLAN_HOLDS)
            low = part;
        else
            high = part;
    }
    return TD_OK;
}

static td_err packing_init(packing *it, const td_config_factory *factory,
                           const td_config_profiles *profiles, td_errinfo *info)
{
    td_plan_options options = td_plan_options_of(TD_PLAN_TENDON);
    options.shared = false;
    TD_TRY(
        td_plan_problem_new(factory, profiles, &options, &it->problem, info));
    TD_TRY(td_plan_evaluator_init(&it->evaluator, it->problem));
    double *rates_hz = calloc(factory->task_count, sizeof *rates_hz);
    if (!rates_hz) return TD_ERR_NOMEM;
    td_err err = find_rates(it, rates_hz);
    free(rates_hz);
    return err;
}

// Columns as at the first place of the line: rows of one class cost the same at
// every place but for a last unit that is not whole.
static bool is_column(const td_plan_pack_row *row, uint32_t units)
{
    return units <= row->demand && !isinf(row->cost[0][units - 1]);
}

static void write_packing(const packing *it, FILE *out)
{
    const td_plan_problem *problem = it->problem;
    size_t columns = 0;
    for (size_t i = 0; i < problem->pool_count; i++)
        for (uint32_t k = 1; k <= it->evaluator.rows[i].most; k++)
            columns += is_column(&it->evaluator.rows[i], k);
    (void)fprintf(out, "%u %zu %zu\n", problem->gpus, problem->pool_count,
                  columns);
    for (size_t i = 0; i < problem->pool_count; i++)
        (void)fprintf(out, "%u ", it->evaluator.rows[i].demand);
    for (size_t i = 0; i < problem->pool_count; i++)
        for (uint32_t k = 1; k <= it->evaluator.rows[i].most; k++)
            if (is_column(&it->evaluator.rows[i], k))
                (void)fprintf(out, "\n%zu %u %.12g", i, k,
                              it->evaluator.rows[i].cost[0][k - 1]);
    (void)fputc('\n', out);
}

static td_err write_packings(packing *packings, const char *path,
                             td_errinfo *info)
{
    FILE *out = fopen(path, "we");
    if (!out) return td_fail(info, TD_ERR_IO, "%s: %s", path, strerror(errno));
    for (size_t i = 0; i < CASES; i++) {
        for (size_t j = 0; j < packings[i].problem->pool_count; j++)
            packings[i].evaluator.rows[j].stride = 0;
        write_packing(&packings[i], out);
    }
    if (fclose(out) == 0) return TD_OK;
    return td_fail(info, TD_ERR_IO, "%s: cannot write", path);
}

static td_err pack_once(packing *it, double *ret_ms, double *ret_cost)
{
    const td_plan_pack_server *servers;
    size_t count;
    double start_ms = now_ms();
    TD_TRY(td_plan_pack(it->evaluator.packer, it->evaluator.rows,
                        it->problem->pool_count, &servers, &count, ret_cost));
    *ret_ms = now_ms() - start_ms;
    return TD_OK;
}

// Both sides must find the same cost.
static td_err pack_pair(packing *it, const char *name, const double *theirs,
                        bool beside, td_errinfo *info)
{
    double took_ms;
    double cost;
    TD_TRY(pack_once(it, &took_ms, &cost));
    if (beside && fabs(cost - theirs[1]) > 1e-4 * cost)
        return td_fail(info, TD_ERR_MISMATCH,
                       "plan: %s: our packing costs %.9g, OR-Tools' %.9g", name,
                       cost, theirs[1]);
    td_bench_pairs_add(&it->ms, took_ms, theirs[0]);
    return TD_OK;
}

static td_err pack_pairs(const td_bench_options *options, packing *packings,
                         td_bench_peer *peer, td_errinfo *info)
{
    size_t blocks = options->quick ? 2 : 9;
    for (size_t i = 0; i < blocks; i++) {
        double theirs[2 * CASES] = {0};
        td_bench_progress("plan: packing, block %zu of %zu", i + 1, blocks);
        if (peer) TD_TRY(td_bench_peer_block(peer, theirs, 2 * CASES, info));
        for (size_t j = 0; j < CASES; j++)
            TD_TRY(pack_pair(&packings[j], cases[j].name, &theirs[2 * j], peer,
                             info));
        TD_TRY(td_bench_sleep(0));
    }
    return TD_OK;
}

static void print_packing(const td_bench_options *options, size_t index,
                          const packing *it, bool beside)
{
    char name[64];
    (void)snprintf(name, sizeof name, "packing/%s/p50", cases[index].name);
    const td_bench_row row = {
        .bench = "plan",
        .name = name,
        .value = td_bench_pairs_value(&it->ms),
        .unit = "ms",
        .against = beside ? "OR-Tools" : NULL,
        .ratio = beside ? td_bench_pairs_ratio(&it->ms) : 0,
        .limited = beside ? TD_BENCH_RATIO : TD_BENCH_NO_LIMIT,
        .limit = cases[index].most_ratio,
    };
    td_bench_print(options, &row);
}

static td_err bench_packings(const td_bench_options *options, packing *packings,
                             td_errinfo *info)
{
    char path[TD_BENCH_PATH_BYTES];
    const char *args[] = {"ortools_pack.py", path, NULL};
    td_bench_peer peer = {0};
    bool beside = td_bench_peer_can(options, "OR-Tools", args[0]);
    TD_TRY(td_bench_file("packings", path, info));
    TD_TRY(write_packings(packings, path, info));
    if (beside) TD_TRY(td_bench_peer_start(args, &peer, info));
    td_err err = pack_pairs(options, packings, beside ? &peer : NULL, info);
    td_bench_child_end(&peer.child);
    TD_TRY(err);
    for (size_t i = 0; i < CASES; i++)
        print_packing(options, i, &packings[i], beside);
    return TD_OK;
}

static td_err bench_all(const td_bench_options *options,
                        const td_config_profiles *profiles,
                        td_config_factory **factories, packing *packings,
                        td_errinfo *info)
{
    for (size_t i = 0; i < CASES; i++) {
        TD_TRY(make_factory(i, &factories[i], info));
        TD_TRY(bench_plan(options, i, factories[i], profiles, info));
        TD_TRY(packing_init(&packings[i], factories[i], profiles, info));
    }
    TD_TRY(bench_admission(options, factories[1], profiles, info));
    return bench_packings(options, packings, info);
}

td_err td_bench_plan(const td_bench_options *options, td_errinfo *info)
{
    TD_AUTO(td_config_profiles) *profiles = NULL;
    td_config_factory *factories[CASES] = {NULL};
    packing packings[CASES] = {{0}};
    TD_TRY(td_bench_workload_profiles(&profiles, info));
    td_err err = bench_all(options, profiles, factories, packings, info);
    for (size_t i = 0; i < CASES; i++) {
        packing_done(&packings[i]);
        if (factories[i]) td_config_factory_free(factories[i]);
    }
    return err;
}

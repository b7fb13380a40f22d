// SPDX-License-Identifier: Apache-2.0
// The packing alone beside OR-Tools, which the Rosa paper's scheduler packs
// with: the same problems, and its solver's time without that of building its
// model, which is given apart.
#include "bench/planning.h"

#include "plan/search/evaluate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HALVINGS 8
#define BLOCKS 9
#define CASES TD_BENCH_PLANNING_CASES

// What a block of the other side says of each problem.
typedef struct theirs {
    double model_ms, solve_ms, cost;
} theirs;

// One packing problem: a row for each component of each class, at rates at
// which there only just is a packing.
typedef struct packing {
    const char *name;
    td_plan_problem *problem;
    td_plan_evaluator evaluator;
    td_bench_pairs ms;       // ours, and their solver's
    double model_ms[BLOCKS]; // theirs
    size_t model_count;
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

static td_err packing_init(packing *it, const char *name,
                           const td_config_factory *factory,
                           const td_config_profiles *profiles, td_errinfo *info)
{
    td_plan_options options = td_plan_options_of(TD_PLAN_TENDON);
    options.shared = false;
    it->name = name;
    TD_TRY(
        td_plan_problem_new(factory, profiles, &options, &it->problem, info));
    TD_TRY(td_plan_evaluator_init(&it->evaluator, it->problem));
    double *rates_hz = calloc(factory->task_count, sizeof *rates_hz);
    if (!rates_hz) return TD_ERR_NOMEM;
    td_err err = find_rates(it, rates_hz);
    free(rates_hz);
    // Rows of one class cost the same at every place of the line but for a last
    // unit that is not whole: both sides take the costs of the first place.
    for (size_t i = 0; i < it->problem->pool_count; i++)
        it->evaluator.rows[i].stride = 0;
    return err;
}

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

static td_err write_packings(const packing *packings, const char *path,
                             td_errinfo *info)
{
    FILE *out = fopen(path, "we");
    if (!out) return td_fail(info, TD_ERR_IO, "%s: %s", path, strerror(errno));
    for (size_t i = 0; i < CASES; i++)
        write_packing(&packings[i], out);
    if (fclose(out) == 0) return TD_OK;
    return td_fail(info, TD_ERR_IO, "%s: cannot write", path);
}

// Both sides must find the same cost.
static td_err pack_pair(packing *it, const theirs *other, bool beside,
                        td_errinfo *info)
{
    const td_plan_pack_server *servers;
    size_t count;
    double cost;
    double start_ms = td_bench_planning_now_ms();
    TD_TRY(td_plan_pack(it->evaluator.packer, it->evaluator.rows,
                        it->problem->pool_count, &servers, &count, &cost));
    double took_ms = td_bench_planning_now_ms() - start_ms;
    if (beside && fabs(cost - other->cost) > 1e-4 * cost)
        return td_fail(info, TD_ERR_MISMATCH,
                       "plan: %s: our packing costs %.9g, OR-Tools' %.9g",
                       it->name, cost, other->cost);
    td_bench_pairs_add(&it->ms, took_ms, other->solve_ms);
    it->model_ms[it->model_count++] = other->model_ms;
    return TD_OK;
}

static td_err pack_pairs(const td_bench_options *options, packing *packings,
                         td_bench_peer *peer, td_errinfo *info)
{
    size_t blocks = options->quick ? 2 : BLOCKS;
    for (size_t i = 0; i < blocks; i++) {
        double numbers[3 * CASES] = {0};
        td_bench_progress("plan: packing, block %zu of %zu", i + 1, blocks);
        if (peer) TD_TRY(td_bench_peer_block(peer, numbers, 3 * CASES, info));
        for (size_t j = 0; j < CASES; j++) {
            const theirs other = {numbers[3 * j], numbers[3 * j + 1],
                                  numbers[3 * j + 2]};
            TD_TRY(pack_pair(&packings[j], &other, peer, info));
        }
        TD_TRY(td_bench_sleep(0));
    }
    return TD_OK;
}

static void print_packing(const td_bench_options *options, packing *it,
                          double most_ratio, bool beside)
{
    char name[80];
    (void)snprintf(name, sizeof name, "packing/%s/p50", it->name);
    td_bench_row row = {
        .bench = "plan",
        .name = name,
        .value = td_bench_pairs_value(&it->ms),
        .unit = "ms",
        .against = beside ? "OR-Tools' solver" : NULL,
        .ratio = beside ? td_bench_pairs_ratio(&it->ms) : 0,
        .limited = beside ? TD_BENCH_RATIO : TD_BENCH_NO_LIMIT,
        .limit = most_ratio,
    };
    td_bench_print(options, &row);
    if (!beside) return;
    (void)snprintf(name, sizeof name, "packing/%s/ortools-model/p50", it->name);
    row = (td_bench_row){
        .bench = "plan",
        .name = name,
        .value = td_bench_median(it->model_ms, it->model_count),
        .unit = "ms",
    };
    td_bench_print(options, &row);
}

static td_err run_packings(const td_bench_options *options, packing *packings,
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
        print_packing(options, &packings[i],
                      td_bench_planning_cases[i].most_ratio, beside);
    return TD_OK;
}

td_err td_bench_planning_packings(const td_bench_options *options,
                                  td_config_factory *const factories[CASES],
                                  const td_config_profiles *profiles,
                                  td_errinfo *info)
{
    packing packings[CASES] = {{0}};
    td_err err = TD_OK;
    for (size_t i = 0; i < CASES && err == TD_OK; i++)
        err = packing_init(&packings[i], td_bench_planning_cases[i].name,
                           factories[i], profiles, info);
    if (err == TD_OK) err = run_packings(options, packings, info);
    for (size_t i = 0; i < CASES; i++)
        packing_done(&packings[i]);
    return err;
}

// SPDX-License-Identifier: Apache-2.0
// Every number of the paper's results beside ours, each with how far it may be
// off. Nothing is fitted to a row; what one set of constants cannot meet is
// listed at the end with why.
#include "bench/rosa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THROUGHPUT 0.03 // parts that a figure may be off
#define RATIO 0.05
#define GPUS 0.1
#define POINTS 1.5 // of a rate of deadlines met, in percent

typedef enum metric_kind { QUALIFIED, RAW, MET, MEDIAN } metric_kind;

static const struct {
    const char *name, *unit;
} metrics[] = {
    [QUALIFIED] = {"qualified", "1/s"},
    [RAW] = {"raw", "1/s"},
    [MET] = {"system1-met", "%"},
    [MEDIAN] = {"system1/p50", "ms"},
};

// A figure of the sweep that the paper has too.
static const struct {
    td_bench_workload workload;
    int fleet; // index of 8, 16, 32, 64
    td_bench_rosa_system system;
    metric_kind metric;
    double paper;
    bool deviates; // known: printed without a limit
} figures[] = {
    {TD_BENCH_P4, 0, TD_BENCH_ROSA_EQUAL, QUALIFIED, 29.5, false},
    {TD_BENCH_P4, 0, TD_BENCH_ROSA_ROSA, QUALIFIED, 23.9, false},
    {TD_BENCH_P4, 2, TD_BENCH_ROSA_ROSA, QUALIFIED, 89.4, false},
    {TD_BENCH_P4, 2, TD_BENCH_ROSA_ROSA, MET, 99.96, false},
    {TD_BENCH_P4, 2, TD_BENCH_ROSA_ROSA, MEDIAN, 83.8, false},
    {TD_BENCH_P4, 2, TD_BENCH_ROSA_EQUAL, QUALIFIED, 0, false},
    {TD_BENCH_P4, 2, TD_BENCH_ROSA_WEIGHTED, QUALIFIED, 0, false},
    {TD_BENCH_P4, 2, TD_BENCH_ROSA_EQUAL, MET, 0, false},
    {TD_BENCH_P4, 2, TD_BENCH_ROSA_EQUAL, MEDIAN, 534.5, false},
    {TD_BENCH_P4, 1, TD_BENCH_ROSA_WEIGHTED, MET, 0, false},
    {TD_BENCH_P4, 1, TD_BENCH_ROSA_WEIGHTED, MEDIAN, 520.8, false},
    {TD_BENCH_P2, 2, TD_BENCH_ROSA_ROSA, QUALIFIED, 106.9, false},
    {TD_BENCH_P3, 2, TD_BENCH_ROSA_ROSA, QUALIFIED, 106.9, false},
    {TD_BENCH_P3, 2, TD_BENCH_ROSA_EQUAL, QUALIFIED, 0, false},
    {TD_BENCH_P3, 2, TD_BENCH_ROSA_WEIGHTED, QUALIFIED, 0, false},
    {TD_BENCH_P4, 0, TD_BENCH_ROSA_DEDICATED, QUALIFIED, 7.4, false},
    {TD_BENCH_P4, 0, TD_BENCH_ROSA_DEDICATED_ROBOT, QUALIFIED, 0, true},
    {TD_BENCH_P4, 2, TD_BENCH_ROSA_UNCAPPED, QUALIFIED, 107.3, false},
    {TD_BENCH_P4, 3, TD_BENCH_ROSA_UNCAPPED, RAW, 145.5, false},
    {TD_BENCH_P4, 3, TD_BENCH_ROSA_UNCAPPED, QUALIFIED, 24.8, true},
    {TD_BENCH_P4, 3, TD_BENCH_ROSA_UNCAPPED, MET, 17.0, true},
    {TD_BENCH_P4, 3, TD_BENCH_ROSA_ROSA, QUALIFIED, 78.8, false},
    {TD_BENCH_P4, 3, TD_BENCH_ROSA_ROSA, MET, 97.2, false},
};

// GPUs of system1, system2, safety and monitor on P4.
static const struct {
    td_bench_rosa_system system;
    int fleet;
    uint32_t gpus[TD_BENCH_ROLES];
} allocations[] = {
    {TD_BENCH_ROSA_ROSA, 0, {5, 1, 1, 1}},
    {TD_BENCH_ROSA_ROSA, 1, {5, 1, 1, 1}},
    {TD_BENCH_ROSA_ROSA, 2, {5, 1, 1, 1}},
    {TD_BENCH_ROSA_ROSA, 3, {4, 1, 2, 1}},
    {TD_BENCH_ROSA_EQUAL, 3, {2, 2, 2, 2}},
    {TD_BENCH_ROSA_WEIGHTED, 2, {1, 3, 1, 3}},
};

static double value_of(const td_bench_rosa_point *point, metric_kind metric)
{
    switch (metric) {
    case QUALIFIED:
        return point->qualified_hz;
    case RAW:
        return point->raw_hz;
    case MET:
        return point->met;
    default:
        return point->p50_ms;
    }
}

// A figure beside the paper's; `part` is how far it may be off, 0: no limit.
static void print_beside(const td_bench_options *options, const char *name,
                         double value, const char *unit, double paper,
                         double part)
{
    td_bench_row row = {.bench = "rosa",
                        .name = name,
                        .value = value,
                        .unit = unit,
                        .more = true,
                        .against = paper > 0 ? "paper" : NULL,
                        .ratio = paper > 0 ? value / paper : 0,
                        .other = paper};
    if (part > 0) {
        row.limited = TD_BENCH_RATIO_OFF;
        row.limit = part;
    }
    td_bench_print(options, &row);
}

static void print_points(const td_bench_options *options, const char *name,
                         double value, double paper, double points)
{
    const td_bench_row row = {.bench = "rosa",
                              .name = name,
                              .value = value,
                              .unit = "%",
                              .more = true,
                              .against = "paper",
                              .ratio = paper > 0 ? value / paper : 0,
                              .other = paper,
                              .limited = TD_BENCH_VALUE_OFF,
                              .limit = points};
    td_bench_print(options, &row);
}

static void print_zero(const td_bench_options *options, const char *name,
                       double value, const char *unit)
{
    const td_bench_row row = {.bench = "rosa",
                              .name = name,
                              .value = value,
                              .unit = unit,
                              .against = value > 0 ? NULL : "paper",
                              .limited = TD_BENCH_VALUE,
                              .limit = 0};
    td_bench_print(options, &row);
}

static void print_figure(const td_bench_options *options,
                         const td_bench_rosa_sweep *sweep, size_t i)
{
    char name[64];
    int fleet = figures[i].fleet;
    metric_kind metric = figures[i].metric;
    td_bench_rosa_system system = figures[i].system;
    double paper = figures[i].paper;
    double value =
        value_of(&sweep->points[figures[i].workload][fleet][system], metric);
    (void)snprintf(name, sizeof name, "%s/%u/%s/%s",
                   td_bench_workload_name(figures[i].workload),
                   td_bench_rosa_fleets[fleet], td_bench_rosa_name(system),
                   metrics[metric].name);
    if (paper == 0 && !figures[i].deviates)
        print_zero(options, name, value, metrics[metric].unit);
    else if (metric == MET && !figures[i].deviates)
        print_points(options, name, value, paper, POINTS);
    else
        print_beside(options, name, value, metrics[metric].unit, paper,
                     metric == MEDIAN || figures[i].deviates ? 0 : THROUGHPUT);
}

static void print_allocation(const td_bench_options *options,
                             const td_bench_rosa_sweep *sweep, size_t i)
{
    char name[64];
    td_bench_rosa_system system = allocations[i].system;
    const td_bench_rosa_point *point =
        &sweep->points[TD_BENCH_P4][allocations[i].fleet][system];
    const uint32_t *gpus = point->gpus, *paper = allocations[i].gpus;
    uint32_t differ = 0;
    for (int role = 0; role < TD_BENCH_ROLES; role++)
        differ += gpus[role] != paper[role];
    (void)snprintf(name, sizeof name, "P4/%u/%s/gpus-unlike-the-paper",
                   td_bench_rosa_fleets[allocations[i].fleet],
                   td_bench_rosa_name(system));
    print_zero(options, name, differ, "models");
    td_bench_say(options, "    %u:%u:%u:%u, paper %u:%u:%u:%u", gpus[0],
                 gpus[1], gpus[2], gpus[3], paper[0], paper[1], paper[2],
                 paper[3]);
}

static double qualified(const td_bench_rosa_sweep *sweep, td_bench_workload w,
                        int fleet, td_bench_rosa_system system)
{
    return sweep->points[w][fleet][system].qualified_hz;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double peak(const td_bench_rosa_sweep *sweep, td_bench_workload w,
                   td_bench_rosa_system system)
{
    double most = 0;
    for (int f = 0; f < TD_BENCH_ROSA_FLEETS; f++)
        most = larger(most, qualified(sweep, w, f, system));
    return most;
}

static double shared_peak(const td_bench_rosa_sweep *sweep, td_bench_workload w)
{
    return larger(peak(sweep, w, TD_BENCH_ROSA_EQUAL),
                  peak(sweep, w, TD_BENCH_ROSA_WEIGHTED));
}

// Of rosa's rates and batches on GPUs that are split otherwise.
static double best_split(const td_bench_rosa_sweep *sweep, int fleet)
{
    return larger(
        qualified(sweep, TD_BENCH_P4, fleet, TD_BENCH_ROSA_SPLIT_EQUAL),
        qualified(sweep, TD_BENCH_P4, fleet, TD_BENCH_ROSA_SPLIT_WEIGHTED));
}

static double over(double value, double other)
{
    return other > 0 ? value / other : 0;
}

static void print_ratios(const td_bench_options *options,
                         const td_bench_rosa_sweep *sweep)
{
    double p4 = qualified(sweep, TD_BENCH_P4, 2, TD_BENCH_ROSA_ROSA);
    double p3 = qualified(sweep, TD_BENCH_P3, 2, TD_BENCH_ROSA_ROSA);
    double mix2 = peak(sweep, TD_BENCH_MIX2, TD_BENCH_ROSA_ROSA);
    double mix4 = peak(sweep, TD_BENCH_MIX4, TD_BENCH_ROSA_ROSA);
    print_beside(
        options, "P2/32/best-shared/qualified",
        larger(qualified(sweep, TD_BENCH_P2, 2, TD_BENCH_ROSA_EQUAL),
               qualified(sweep, TD_BENCH_P2, 2, TD_BENCH_ROSA_WEIGHTED)),
        "1/s", 87.1, THROUGHPUT);
    print_beside(
        options, "P4/over-gpu-a-model",
        over(p4, qualified(sweep, TD_BENCH_P4, 0, TD_BENCH_ROSA_DEDICATED)),
        "x", 12.06, RATIO);
    print_beside(options, "P3/over-shared-peak",
                 over(p3, shared_peak(sweep, TD_BENCH_P3)), "x", 2.44, RATIO);
    print_beside(options, "Mix2/peak", mix2, "1/s", 96.6, RATIO);
    print_beside(options, "Mix2/over-shared-peak",
                 over(mix2, shared_peak(sweep, TD_BENCH_MIX2)), "x", 2.21,
                 RATIO);
    print_beside(options, "Mix4/peak", mix4, "1/s", 100.5, RATIO);
    print_beside(options, "Mix4/over-shared-peak",
                 over(mix4, shared_peak(sweep, TD_BENCH_MIX4)), "x", 2.30,
                 RATIO);
}

static void print_ablations(const td_bench_options *options,
                            const td_bench_rosa_sweep *sweep)
{
    static const double paper[] = {0, 1.26, 2.20};
    const td_bench_rosa_point *large = sweep->points[TD_BENCH_P4][3];
    for (int f = 1; f <= 2; f++) {
        char name[64];
        (void)snprintf(name, sizeof name, "P4/%u/allocation-alone",
                       td_bench_rosa_fleets[f]);
        print_beside(options, name,
                     over(qualified(sweep, TD_BENCH_P4, f, TD_BENCH_ROSA_ROSA),
                          best_split(sweep, f)),
                     "x", paper[f], RATIO);
    }
    print_zero(options, "P4/64/rosa-on-weighted/plans",
               large[TD_BENCH_ROSA_SPLIT_WEIGHTED].feasible ? 1 : 0, "plans");
    print_beside(options, "P4/64/capped-over-uncapped",
                 over(large[TD_BENCH_ROSA_ROSA].qualified_hz,
                      large[TD_BENCH_ROSA_UNCAPPED].qualified_hz),
                 "x", 3.18, 0);
}

static double most_needed(const td_bench_rosa_times needs)
{
    double most = 0;
    for (int w = 0; w <= TD_BENCH_P4; w++)
        for (int f = 0; f < TD_BENCH_ROSA_FLEETS; f++)
            most = larger(most, needs[w][f]);
    return most;
}

static void print_needs(const td_bench_options *options,
                        const td_bench_rosa_needs *needs)
{
    static const struct {
        const char *name;
        double paper;
    } splits[] = {
        [TD_BENCH_ROSA_MATCH_EQUAL] = {"equal", 5.5},
        [TD_BENCH_ROSA_MATCH_WEIGHTED] = {"weighted", 8.6},
    };
    char name[64];
    for (size_t i = 0; i < TD_COUNT_OF(splits); i++) {
        (void)snprintf(name, sizeof name, "gpus-to-match/%s", splits[i].name);
        print_beside(options, name, most_needed(needs->planned[i]), "x",
                     splits[i].paper, GPUS);
        (void)snprintf(name, sizeof name, "gpus-to-match/%s/random-arrivals",
                       splits[i].name);
        print_beside(options, name, most_needed(needs->random[i]), "x",
                     splits[i].paper, 0);
    }
    td_bench_say(options,
                 "    asked at random, System 1 with batches of one takes %.1f "
                 "a second within 200 ms",
                 needs->random_hz);
}

static td_err print_batches(const td_bench_options *options,
                            const td_config_profiles *profiles,
                            const td_bench_rosa_best *best, td_errinfo *info)
{
    const td_config_profile *system1;
    TD_TRY(td_config_profiles_find(profiles, "nvidia/GR00T-N1.6-3B", "",
                                   "NVIDIA H200", &system1, info));
    print_beside(options, "batch-16/throughput-over-batch-1",
                 16 * td_config_profile_mean_ms(system1, 1) /
                     td_config_profile_mean_ms(system1, 16),
                 "x", 3, THROUGHPUT);
    print_beside(options, "16-robots/50ms/batch-16-over-1", best->all[0][4],
                 "x", 2.46, 0);
    print_beside(options, "16-robots/50ms/best-batch", best->batch[0][4],
                 "robots", 16, 0);
    print_beside(options, "16-robots/50ms/best-over-1", best->speedup[0][4],
                 "x", 2.46, 0);
    return TD_OK;
}

static const char deviations[] =
    "Known deviations, printed without a limit:\n"
    "  P4/64/uncapped: of 16 robots in turn at a server that takes 55 ms for\n"
    "  two, more than a third are on time; in the paper 17 %. With it\n"
    "  capped-over-uncapped.\n"
    "  P4/8/gpu-a-robot: models that share a GPU in fair slices of time are "
    "on\n"
    "  time here; the paper has no point that qualifies.\n"
    "  16-robots/50ms: two batches of 8 in turn give more than one of 16, "
    "with\n"
    "  these times.\n"
    "Not met by one set of constants (docs/benchmarks.md reckons it out):\n"
    "  gpus-to-match: 5.5 and 8.6 times 8 GPUs are 44 and 69, which give "
    "System\n"
    "  1 eleven either way, equally or 3:7:3:7. So a GPU holds 3 of 32 "
    "robots,\n"
    "  8.4 requests a second, and not 4: as where requests come at random\n"
    "  (random-arrivals). The paper's own plans have up to 20.3 on a GPU: as\n"
    "  where every robot keeps its period, and then five GPUs do, as here.\n"
    "  Mix2, P4/16/allocation-alone: one constant says what a GPU takes with\n"
    "  batches of one, 93.5 %, as 16 robots on a GPU have it in the paper.\n"
    "  Up to 8 robots have 90 % there, the ninth of its ten rates: with that\n"
    "  Mix2 is 96.9 and 2.22, allocation-alone with 16 robots 1.28, and then\n"
    "  P4/64 75.0 and allocation-alone with 32 robots 2.38 are missed.\n"
    "Medians have no limit: the paper gives one run of each.";

static td_err print_all(const td_bench_options *options,
                        const td_config_profiles *profiles,
                        const td_bench_rosa_sweep *sweep, td_errinfo *info)
{
    td_bench_rosa_needs needs;
    td_bench_rosa_best best;
    TD_TRY(td_bench_rosa_match(profiles, sweep, &needs, info));
    TD_TRY(td_bench_rosa_batches(options, profiles, &best, info));
    for (size_t i = 0; i < TD_COUNT_OF(figures); i++)
        print_figure(options, sweep, i);
    print_ratios(options, sweep);
    for (size_t i = 0; i < TD_COUNT_OF(allocations); i++)
        print_allocation(options, sweep, i);
    print_ablations(options, sweep);
    print_needs(options, &needs);
    TD_TRY(print_batches(options, profiles, &best, info));
    td_bench_say(options, "%s", deviations);
    if (!options->plot) return TD_OK;
    return td_bench_rosa_plot(options, profiles, sweep, &needs, &best, info);
}

td_err td_bench_rosa(const td_bench_options *options, td_errinfo *info)
{
    TD_AUTO(td_config_profiles) *profiles = NULL;
    TD_TRY(td_bench_workload_profiles(&profiles, info));
    td_bench_rosa_sweep *sweep = calloc(1, sizeof *sweep);
    if (!sweep) return TD_ERR_NOMEM;
    td_err err = td_bench_rosa_run(options, profiles, sweep, info);
    if (err == TD_OK) err = print_all(options, profiles, sweep, info);
    free(sweep);
    return err;
}

// SPDX-License-Identifier: Apache-2.0
// Charts like the paper's Figures 6 to 14, of what the sweep saw.
#include "bench/rosa.h"

#include "base/chart/chart.h"

#include <stdio.h>

#define FITTED " simulated H200, times fitted to the paper (arXiv 2607.01088)."
#define SUBTITLE "8" FITTED
#define MOST_SIZES 64 // of batches in a profile

typedef double value_of(const td_bench_rosa_point *point);

static double qualified(const td_bench_rosa_point *point)
{
    return point->feasible ? point->qualified_hz : 0;
}

static double met(const td_bench_rosa_point *point)
{
    return point->met;
}

static double median(const td_bench_rosa_point *point)
{
    return point->p50_ms;
}

// What was measured lies at the marks; theirs keep lines apart that coincide.
static void add_line(td_chart *chart, const char *label, td_chart_colour colour,
                     const uint32_t *xs, const double *ys, size_t count)
{
    static const td_chart_style marks[] = {TD_CHART_DOTS, TD_CHART_CROSSES,
                                           TD_CHART_TRIANGLES};
    const td_chart_style styles[] = {TD_CHART_LINE,
                                     marks[colour % TD_COUNT_OF(marks)]};
    for (size_t i = 0; i < TD_COUNT_OF(styles); i++) {
        td_chart_add_series(chart,
                            &(td_chart_series){.label = i == 0 ? label : NULL,
                                               .style = styles[i],
                                               .colour = colour});
        for (size_t k = 0; k < count; k++)
            td_chart_add_point(chart, xs[k], ys[k]);
    }
}

// What a panel shows: some systems over the number of robots.
typedef struct view {
    const char *title, *x_label, *y_label;
    value_of *value;
    td_bench_workload workload;
    const td_bench_rosa_system *systems;
    size_t count;
} view;

static void add_view(td_chart *chart, const td_bench_rosa_sweep *sweep,
                     const view *shown, bool labels)
{
    td_chart_add_panel(chart, &(td_chart_panel){.title = shown->title,
                                                .x_label = shown->x_label,
                                                .y_label = shown->y_label,
                                                .x_log = true,
                                                .x_doubles = true,
                                                .y_from_zero = true});
    for (size_t i = 0; i < shown->count; i++) {
        td_bench_rosa_system system = shown->systems[i];
        double values[TD_BENCH_ROSA_FLEETS];
        for (int f = 0; f < TD_BENCH_ROSA_FLEETS; f++)
            values[f] =
                shown->value(&sweep->points[shown->workload][f][system]);
        add_line(chart, labels ? td_bench_rosa_name(system) : NULL,
                 (td_chart_colour)i, td_bench_rosa_fleets, values,
                 TD_BENCH_ROSA_FLEETS);
    }
}

static td_err save(const td_bench_options *options, const char *file,
                   const char *title, const td_bench_rosa_sweep *sweep,
                   const view *views, size_t count, td_errinfo *info)
{
    TD_AUTO(td_chart) *chart = NULL;
    TD_TRY(td_chart_new(title, SUBTITLE, &chart));
    for (size_t i = 0; i < count; i++)
        add_view(chart, sweep, &views[i], i == 0);
    return td_chart_save(chart, options->plot, file, info);
}

static const td_bench_rosa_system shared[] = {
    TD_BENCH_ROSA_ROSA, TD_BENCH_ROSA_EQUAL, TD_BENCH_ROSA_WEIGHTED};
static const td_bench_rosa_system dedicated[] = {
    TD_BENCH_ROSA_ROSA, TD_BENCH_ROSA_DEDICATED, TD_BENCH_ROSA_DEDICATED_ROBOT};
static const td_bench_rosa_system caps[] = {TD_BENCH_ROSA_ROSA,
                                            TD_BENCH_ROSA_UNCAPPED};
static const td_bench_rosa_system splits[] = {TD_BENCH_ROSA_ROSA,
                                              TD_BENCH_ROSA_SPLIT_EQUAL,
                                              TD_BENCH_ROSA_SPLIT_WEIGHTED};

#define ROBOTS "robots"
#define ACTIONS "qualified actions/s"
#define VIEW(title, y, value, workload, systems)                               \
    {title, ROBOTS, y, value, workload, systems, TD_COUNT_OF(systems)}
#define OF_TASKS(systems)                                                      \
    {VIEW("P1", ACTIONS, qualified, TD_BENCH_P1, systems),                     \
     VIEW("P2", ACTIONS, qualified, TD_BENCH_P2, systems),                     \
     VIEW("P3", ACTIONS, qualified, TD_BENCH_P3, systems),                     \
     VIEW("P4", ACTIONS, qualified, TD_BENCH_P4, systems)}

static td_err plot_sweep(const td_bench_options *options,
                         const td_bench_rosa_sweep *sweep, td_errinfo *info)
{
    static const view figure6[] = OF_TASKS(shared);
    static const view figure7[] = OF_TASKS(dedicated);
    static const view figure8[] = {
        VIEW("Mix2", ACTIONS, qualified, TD_BENCH_MIX2, shared),
        VIEW("Mix4", ACTIONS, qualified, TD_BENCH_MIX4, shared)};
    static const view figure9[] = {
        VIEW("P4", "System 1, median (ms)", median, TD_BENCH_P4, shared),
        VIEW(NULL, "System 1 on time (%)", met, TD_BENCH_P4, shared)};
    static const view figure10[] = {
        VIEW("P4", ACTIONS, qualified, TD_BENCH_P4, caps),
        VIEW(NULL, "System 1 on time (%)", met, TD_BENCH_P4, caps)};
    static const view figure12[] = {
        VIEW("P4", ACTIONS, qualified, TD_BENCH_P4, splits)};
    static const struct {
        const char *file, *title;
        const view *views;
        size_t count;
    } charts[] = {
        {"figure06.svg", "Shared GPUs, one task", figure6, 4},
        {"figure07.svg", "Beside dedicated GPUs", figure7, 4},
        {"figure08.svg", "Shared GPUs, several tasks", figure8, 2},
        {"figure09.svg", "System 1 under load", figure9, 2},
        {"figure10.svg", "Request rates, capped and not", figure10, 2},
        {"figure12.svg", "GPUs split otherwise", figure12, 1},
    };
    for (size_t i = 0; i < TD_COUNT_OF(charts); i++)
        TD_TRY(save(options, charts[i].file, charts[i].title, sweep,
                    charts[i].views, charts[i].count, info));
    return TD_OK;
}

static td_err plot_needs(const td_bench_options *options,
                         const td_bench_rosa_needs *needs, td_errinfo *info)
{
    TD_AUTO(td_chart) *chart = NULL;
    TD_TRY(td_chart_new("GPUs that a split needs for the rate of rosa's 8",
                        SUBTITLE " Both with rosa's rates; batches of one.",
                        &chart));
    for (int w = 0; w <= TD_BENCH_P4; w++) {
        td_chart_add_panel(
            chart, &(td_chart_panel){
                       .title = td_bench_workload_name((td_bench_workload)w),
                       .x_label = ROBOTS,
                       .y_label = "times as many",
                       .x_log = true,
                       .x_doubles = true,
                       .y_from_zero = true});
        for (int split = 0; split < TD_BENCH_ROSA_MATCH_COUNT; split++) {
            const char *label = split ? "weighted" : "equal";
            add_line(chart, w == 0 ? label : NULL,
                     split ? TD_CHART_GREEN : TD_CHART_ORANGE,
                     td_bench_rosa_fleets, needs->planned[split][w],
                     TD_BENCH_ROSA_FLEETS);
        }
    }
    return td_chart_save(chart, options->plot, "figure11.svg", info);
}

static void add_profile(td_chart *chart, const td_config_profile *profile,
                        bool throughput, td_chart_colour colour)
{
    uint32_t sizes[MOST_SIZES];
    double values[MOST_SIZES];
    size_t count = 0;
    for (; count < profile->service_count && count < MOST_SIZES; count++) {
        sizes[count] = (uint32_t)profile->service[count].batch;
        double ms = td_config_profile_mean_ms(profile, sizes[count]);
        values[count] = throughput ? 1000 * sizes[count] / ms : ms;
    }
    add_line(chart, throughput ? NULL : profile->model, colour, sizes, values,
             count);
}

static td_err plot_profiles(const td_bench_options *options,
                            const td_config_profiles *profiles,
                            td_errinfo *info)
{
    static const char *const models[] = {"nvidia/GR00T-N1.6-3B",
                                         "physical-intelligence/pi0.5"};
    TD_AUTO(td_chart) *chart = NULL;
    TD_TRY(td_chart_new("System 1 by the size of its batches",
                        "One H200. Times of GR00T are fitted to the paper "
                        "(arXiv 2607.01088), those of pi0.5 to what SGLang "
                        "publishes.",
                        &chart));
    for (int throughput = 0; throughput < 2; throughput++) {
        td_chart_add_panel(
            chart, &(td_chart_panel){.x_label = "batch",
                                     .y_label = throughput ? "requests/s"
                                                           : "batch (ms)",
                                     .x_log = true,
                                     .x_doubles = true,
                                     .y_from_zero = true});
        for (size_t i = 0; i < TD_COUNT_OF(models); i++) {
            const td_config_profile *profile;
            TD_TRY(td_config_profiles_find(profiles, models[i], "",
                                           "NVIDIA H200", &profile, info));
            add_profile(chart, profile, throughput, (td_chart_colour)i);
        }
    }
    return td_chart_save(chart, options->plot, "figure13.svg", info);
}

static td_err plot_best(const td_bench_options *options,
                        const td_bench_rosa_best *best, td_errinfo *info)
{
    TD_AUTO(td_chart) *chart = NULL;
    TD_TRY(td_chart_new("Which batch is best for one GPU without a deadline",
                        "One" FITTED " Batches wait until they are full.",
                        &chart));
    for (int speedup = 0; speedup < 2; speedup++) {
        td_chart_add_panel(
            chart,
            &(td_chart_panel){.x_label = ROBOTS,
                              .y_label = speedup ? "over batches of one (x)"
                                                 : "best batch",
                              .x_log = true,
                              .x_doubles = true,
                              .y_from_zero = true});
        for (int p = 0; p < TD_BENCH_ROSA_PERIODS; p++) {
            char label[32];
            double values[TD_BENCH_ROSA_CROWDS];
            for (int c = 0; c < TD_BENCH_ROSA_CROWDS; c++)
                values[c] = speedup ? best->speedup[p][c] : best->batch[p][c];
            (void)snprintf(label, sizeof label, "%g ms",
                           td_bench_rosa_periods_ms[p]);
            add_line(chart, speedup ? NULL : label, (td_chart_colour)p,
                     td_bench_rosa_crowds, values, TD_BENCH_ROSA_CROWDS);
        }
    }
    return td_chart_save(chart, options->plot, "figure14.svg", info);
}

td_err td_bench_rosa_plot(const td_bench_options *options,
                          const td_config_profiles *profiles,
                          const td_bench_rosa_sweep *sweep,
                          const td_bench_rosa_needs *needs,
                          const td_bench_rosa_best *best, td_errinfo *info)
{
    TD_TRY(plot_sweep(options, sweep, info));
    TD_TRY(plot_needs(options, needs, info));
    TD_TRY(plot_profiles(options, profiles, info));
    return plot_best(options, best, info);
}

// SPDX-License-Identifier: Apache-2.0
#include "oracle.h"

#include "base/rand.h"
#include "plan/search/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS 12 // of a rate
#define LEAST 0.98

// A factory of two tasks made by hand, and what it points to.
typedef struct small {
    td_config_factory factory;
    td_config_factory_node node;
    td_config_factory_task tasks[2];
    td_config_factory_component parts[2][2];
    td_config_factory_robot robots[24];
    td_config_profile models[3];
    td_config_profile *list[3];
    td_config_profiles profiles;
    td_config_profile_service sizes[3][3];
    double times_ms[3][3];
} small;

static uint32_t draw(td_rand *rand, uint32_t least, uint32_t most)
{
    return least + (uint32_t)(td_rand_u64(rand) % (most - least + 1));
}

static void draw_models(td_rand *rand, small *it)
{
    static const char *const names[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++) {
        double first_ms = draw(rand, 20, 60);
        for (size_t j = 0; j < 3; j++) {
            it->times_ms[i][j] = first_ms * (1 + 0.5 * (double)((1 << j) - 1));
            it->sizes[i][j] = (td_config_profile_service){
                .batch = 1 << j,
                .alone_ms = &it->times_ms[i][j],
                .alone_count = 1,
            };
        }
        it->models[i] = (td_config_profile){
            .model = names[i],
            .engine = "",
            .gpu = "gpu",
            .service = it->sizes[i],
            .service_count = 3,
        };
        it->list[i] = &it->models[i];
    }
    it->profiles = (td_config_profiles){it->list, 3};
}

static void draw_task(td_rand *rand, small *it, size_t index)
{
    static const char *const names[] = {"a", "b", "c"};
    bool shared = draw(rand, 0, 1) == 0;
    it->parts[index][0] = (td_config_factory_component){
        .name = "system1",
        .model = names[shared ? 0 : index],
        .engine = "",
        .slo_ms = shared ? 200 : draw(rand, 120, 300),
        .slo_percentile = 99,
        .per_action = 1,
    };
    it->parts[index][1] = (td_config_factory_component){
        .name = "watch",
        .model = "c",
        .engine = "",
        .slo_ms = 500,
        .slo_percentile = 99,
        .rate_hz = draw(rand, 1, 8) / 4.0,
    };
    it->tasks[index] = (td_config_factory_task){
        .name = index ? "two" : "one",
        .pipeline = {.action_period_ms = draw(rand, 100, 300)},
        .value = draw(rand, 1, 4),
        .components = it->parts[index],
        .component_count = draw(rand, 1, 2),
        .robot_count = draw(rand, 1, 12),
    };
}

static void draw_small(td_rand *rand, small *it)
{
    size_t robots = 0;
    *it = (small){.node = {.name = "node", .gpu_type = "gpu"}};
    draw_models(rand, it);
    for (size_t i = 0; i < 2; i++) {
        draw_task(rand, it, i);
        for (size_t j = 0; j < it->tasks[i].robot_count; j++)
            it->robots[robots++] = (td_config_factory_robot){"", "", i};
    }
    it->node.gpus = draw(rand, 2, 5);
    it->factory = (td_config_factory){
        .server_cluster = {.num_servers = it->node.gpus,
                           .nodes = &it->node,
                           .node_count = 1,
                           .overhead_ms = 6},
        .tasks = it->tasks,
        .task_count = 2,
        .robots = it->robots,
        .robot_count = robots,
    };
}

static double value_of(const small *it, const double *rates_hz)
{
    double sum = 0;
    for (size_t i = 0; i < 2; i++)
        sum +=
            it->tasks[i].value * (double)it->tasks[i].robot_count * rates_hz[i];
    return sum;
}

// Every rate vector of the grid. The best value, and how many hold although one
// below them fails.
static td_err try_all(const small *it, const td_plan_problem *problem,
                      double *ret_best, unsigned *ret_pruned)
{
    bool holds[STEPS + 1][STEPS + 1] = {{false}};
    td_plan_evaluator evaluator;
    td_err err = td_plan_evaluator_init(&evaluator, problem);
    *ret_best = 0;
    *ret_pruned = 0;
    for (int i = 1; i <= STEPS && err == TD_OK; i++)
        for (int j = 1; j <= STEPS && err == TD_OK; j++) {
            const double rates_hz[] = {
                td_plan_problem_most_hz(problem, 0) * i / STEPS,
                td_plan_problem_most_hz(problem, 1) * j / STEPS};
            td_plan_answer answer;
            err = td_plan_evaluate(&evaluator, rates_hz, &answer);
            holds[i][j] = err == TD_OK && answer == TD_PLAN_HOLDS;
            if (!holds[i][j]) continue;
            *ret_best = fmax(*ret_best, value_of(it, rates_hz));
            *ret_pruned +=
                (i > 1 && !holds[i - 1][j]) || (j > 1 && !holds[i][j - 1]);
        }
    td_plan_evaluator_done(&evaluator);
    return err;
}

// What the search finds, of what there is. 1 when there is nothing.
static td_err check(const small *it, double *ret_part, unsigned *ret_pruned)
{
    TD_AUTO(td_plan_problem) *problem = NULL;
    td_plan_options options = td_plan_options_of(TD_PLAN_TENDON);
    td_plan_solution found = {.value_hz = 0};
    double best;
    options.rate_steps = STEPS;
    *ret_part = 1;
    *ret_pruned = 0;
    td_err err = td_plan_problem_new(&it->factory, &it->profiles, &options,
                                     &problem, NULL);
    if (err == TD_ERR_INVALID) return TD_OK; // a deadline too short
    TD_TRY(err);
    TD_TRY(try_all(it, problem, &best, ret_pruned));
    err = td_plan_search(problem, &found, NULL);
    if (err == TD_ERR_LIMIT) err = TD_OK; // value 0
    TD_TRY(err);
    if (best > 0) *ret_part = found.value_hz / best;
    return TD_OK;
}

int oracle_grid(uint64_t seed, uint64_t count)
{
    td_rand all;
    double worst = 1;
    double sum = 0;
    unsigned pruned = 0;
    td_rand_init(&all, seed);
    for (uint64_t i = 0; i < count; i++) {
        td_rand rand;
        small it;
        double part;
        unsigned wrong;
        td_rand_fork(&all, i, &rand);
        draw_small(&rand, &it);
        if (check(&it, &part, &wrong) != TD_OK) return 1;
        if (part < LEAST || wrong)
            (void)printf("instance %llu: %.4f of the best, %u pruned wrongly\n",
                         (unsigned long long)i, part, wrong);
        worst = fmin(worst, part);
        sum += part;
        pruned += wrong;
    }
    (void)printf("%llu instances: worst %.4f of the grid's best, mean %.4f, "
                 "%u feasible points pruned\n",
                 (unsigned long long)count, worst, sum / (double)count, pruned);
    return worst >= LEAST && pruned == 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include "plan/place/assemble.h"
#include "plan/place/keep.h"
#include "plan/search/search.h"

#include <string.h>

static const char *const names[] = {
#define TD_PLAN_PLANNER_NAME(name, text) text,
    TD_PLAN_PLANNERS(TD_PLAN_PLANNER_NAME)
#undef TD_PLAN_PLANNER_NAME
};

static const char *const binds[] = {
#define TD_PLAN_BIND_TEXT(name, text) text,
    TD_PLAN_BINDS(TD_PLAN_BIND_TEXT)
#undef TD_PLAN_BIND_TEXT
};

const char *td_plan_planner_name(td_plan_planner planner)
{
    return names[planner];
}

td_err td_plan_planner_find(const char *name, td_plan_planner *ret_planner)
{
    for (unsigned i = 0; i < TD_PLAN_PLANNER_COUNT; i++)
        if (strcmp(names[i], name) == 0) {
            *ret_planner = (td_plan_planner)i;
            return TD_OK;
        }
    return TD_ERR_NOTFOUND;
}

const char *td_plan_bind_text(td_plan_bind bind)
{
    return binds[bind];
}

static td_plan_options paper(td_plan_split split, bool capped)
{
    return (td_plan_options){
        .split = split,
        .loop = TD_PLAN_LOOP_TAIL,
        .capped = capped,
        .compact = split == TD_PLAN_SPLIT_BEST,
        .wait = capped ? TD_CONFIG_WAIT_FULL : TD_CONFIG_WAIT_NONE,
        .batch_most = capped ? 0 : 1,
        .rate_steps = 256,
        .most_points = 400,
    };
}

td_plan_options td_plan_options_of(td_plan_planner planner)
{
    static const td_plan_split splits[] = {
        [TD_PLAN_EQUAL] = TD_PLAN_SPLIT_EQUAL,
        [TD_PLAN_WEIGHTED] = TD_PLAN_SPLIT_BY_SIZE,
        [TD_PLAN_DEDICATED] = TD_PLAN_SPLIT_MODEL_A_ROBOT,
        [TD_PLAN_DEDICATED_ROBOT] = TD_PLAN_SPLIT_ROBOT,
    };
    td_plan_options options = paper(TD_PLAN_SPLIT_BEST, true);
    if (planner == TD_PLAN_TENDON)
        options = (td_plan_options){
            .split = TD_PLAN_SPLIT_BEST,
            .loop = TD_PLAN_LOOP_MEAN,
            .capped = true,
            .staggered = true,
            .shared = true,
            .wait = TD_CONFIG_WAIT_NONE,
            .rate_steps = 1024,
            .most_points = 400,
            .tolerance = 0.001,
            .slack = 0.05,
            .margin = 0.03,
            .action_jitter = 0.05,
            .network_jitter_ms = 3,
        };
    else if (planner != TD_PLAN_PAPER)
        options = paper(splits[planner], false);
    options.planner = planner;
    return options;
}

static td_err find(td_plan_problem *problem, td_plan_solution *ret_found,
                   td_errinfo *info)
{
    const td_plan_options *options = &problem->options;
    if (options->split == TD_PLAN_SPLIT_EQUAL ||
        options->split == TD_PLAN_SPLIT_BY_SIZE)
        TD_TRY(td_plan_baseline_split(problem, info));
    if (!options->capped) return td_plan_baseline_allocate(problem, ret_found);
    TD_TRY(td_plan_search(problem, ret_found, info));
    return options->previous ? td_plan_fewest_loads(problem, ret_found) : TD_OK;
}

td_err td_plan_make(const td_config_factory *factory,
                    const td_config_profiles *profiles,
                    const td_plan_options *options, td_plan **ret_plan,
                    td_errinfo *info)
{
    TD_AUTO(td_plan_problem) *problem = NULL;
    TD_AUTO(td_plan) *plan = NULL;
    td_plan_solution found;
    TD_TRY(td_plan_problem_new(factory, profiles, options, &problem, info));
    TD_TRY(find(problem, &found, info));
    TD_TRY(td_plan_assemble(problem, &found, &plan));
    if (options->previous) td_plan_keep_count_changes(plan, options->previous);
    *ret_plan = TD_TAKE(plan);
    return TD_OK;
}

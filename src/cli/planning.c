// SPDX-License-Identifier: Apache-2.0
#include "cli/planning.h"

#include "base/clock.h"
#include "plan/memory.h"

#include <stdio.h>
#include <string.h>

#define MOST_TRIES 4
#define LESS_EACH 0.1 // of the deadlines, for another try
#define WORTH_IT 0.9  // of a new plan

td_err td_cli_planning_simulate(const td_cli_planning *in,
                                const td_config_factory *factory,
                                const td_plan *plan,
                                td_sim_factory_result *ret_result,
                                td_errinfo *info)
{
    td_sim_factory_options options = td_sim_factory_defaults;
    options.runs = TD_CLI_PLANNING_RUNS;
    options.duration_ns =
        options.warmup_ns + TD_CLI_PLANNING_S * (int64_t)TD_NS_PER_S;
    options.unsafe = in->unsafe;
    options.failing = in->failing;
    return td_sim_factory_run(factory, in->profiles, plan, &options, ret_result,
                              info);
}

static td_err verify(const td_cli_planning *in,
                     const td_config_factory *factory, const td_plan *plan,
                     double *ret_qualified_hz, td_errinfo *info)
{
    td_sim_factory_result result;
    TD_TRY(td_cli_planning_simulate(in, factory, plan, &result, info));
    td_err err = td_sim_factory_holds(factory, plan, &result, info);
    *ret_qualified_hz = result.qualified_hz;
    td_sim_factory_result_done(&result);
    return err;
}

td_err td_cli_planning_make(const td_cli_planning *in,
                            const td_config_factory *factory,
                            td_plan **ret_plan, double *ret_qualified_hz,
                            td_errinfo *info)
{
    td_plan_options options = in->options;
    for (int tries = 1;; tries++) {
        TD_AUTO(td_plan) *plan = NULL;
        TD_TRY(td_plan_make(factory, in->profiles, &options, &plan, info));
        td_err err = verify(in, factory, plan, ret_qualified_hz, info);
        if (err == TD_OK) {
            *ret_plan = TD_TAKE(plan);
            return TD_OK;
        }
        if (err != TD_ERR_MISMATCH || tries == MOST_TRIES || !options.capped)
            return err;
        options.slack += LESS_EACH;
        options.margin = 0;
    }
}

static bool is_in(const td_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->robot_count; i++)
        if (strcmp(plan->robots[i].name, name) == 0) return true;
    return false;
}

td_err td_cli_planning_admit(const td_cli_planning *in,
                             const td_config_factory *factory,
                             const td_plan *before,
                             td_plan_admission **ret_admission,
                             td_cli_newcomers *ret_newcomers, td_errinfo *info)
{
    TD_AUTO(td_plan_admission) *admission = NULL;
    td_cli_newcomers all = {.count = 0};
    TD_TRY(
        td_plan_admission_new(factory, in->profiles, before, &admission, info));
    for (size_t i = 0; i < factory->robot_count; i++) {
        const td_config_factory_robot *robot = &factory->robots[i];
        if (is_in(before, robot->name)) continue;
        if (all.count++ > all.admitted) continue;
        TD_TRY(td_plan_admit(admission, robot->name, robot->key,
                             (uint32_t)robot->task, 0, &all.last));
        all.admitted += all.last.verdict != TD_PLAN_REPLAN;
    }
    *ret_admission = TD_TAKE(admission);
    *ret_newcomers = all;
    return TD_OK;
}

static const td_config_factory_robot *robot_of(const td_config_factory *factory,
                                               const char *name)
{
    for (size_t i = 0; i < factory->robot_count; i++)
        if (strcmp(factory->robots[i].name, name) == 0)
            return &factory->robots[i];
    return NULL;
}

// One who left, or does something else now; NULL: none.
static const td_plan_robot *who_left(const td_config_factory *factory,
                                     const td_plan *before)
{
    for (size_t i = 0; i < before->robot_count; i++) {
        const td_plan_robot *was = &before->robots[i];
        const td_config_factory_robot *now = robot_of(factory, was->name);
        if (!now || strcmp(factory->tasks[now->task].name,
                           before->classes[was->task].task) != 0)
            return was;
    }
    return NULL;
}

// Why the newcomers are not just admitted, in `reason`; then false. The plan
// with them is owned by the caller.
static td_err try_admission(const td_cli_planning *in, const td_plan *before,
                            const td_plan *fresh, td_plan **ret_plan,
                            double *ret_qualified_hz, char *reason, size_t room,
                            td_errinfo *info)
{
    TD_AUTO(td_plan_admission) *admission = NULL;
    td_cli_newcomers newcomers;
    td_arena *arena;
    td_errinfo why = {.text = ""};
    const td_plan_robot *left = who_left(in->factory, before);
    *ret_plan = NULL;
    if (left) {
        (void)snprintf(reason, room, "robot %s has left or changed",
                       left->name);
        return TD_OK;
    }
    td_err err = td_cli_planning_admit(in, in->factory, before, &admission,
                                       &newcomers, &why);
    if (err == TD_ERR_MISMATCH) {
        (void)snprintf(reason, room, "%s", why.text);
        return TD_OK;
    }
    if (err != TD_OK) return td_fail(info, err, "%s", why.text);
    const td_plan *kept = td_plan_admission_plan(admission);
    double part = kept->value_hz / fresh->value_hz;
    if (newcomers.admitted < newcomers.count)
        (void)snprintf(reason, room, "%zu of %zu newcomers find room; %s",
                       newcomers.admitted, newcomers.count,
                       newcomers.last.reason);
    else if (newcomers.count == 0 || part < WORTH_IT)
        (void)snprintf(reason, room, "the old one is worth %.0f %% of it",
                       100 * part);
    else if (verify(in, in->factory, kept, ret_qualified_hz, &why) != TD_OK)
        (void)snprintf(reason, room, "with the newcomers %s", why.text);
    else
        return td_plan_copy(kept, ret_plan, &arena);
    return TD_OK;
}

td_err td_cli_planning_replan(const td_cli_planning *in, const td_plan *before,
                              bool loud, td_plan **ret_plan,
                              double *ret_qualified_hz, td_errinfo *info)
{
    TD_AUTO(td_plan) *fresh = NULL;
    TD_AUTO(td_plan) *kept = NULL;
    td_cli_planning again = *in;
    char reason[sizeof info->text + 64];
    double kept_hz = 0;
    again.options.previous = before;
    TD_TRY(td_cli_planning_make(&again, in->factory, &fresh, ret_qualified_hz,
                                info));
    TD_TRY(try_admission(in, before, fresh, &kept, &kept_hz, reason,
                         sizeof reason, info));
    if (kept) {
        if (loud)
            (void)printf("admitted: %zu; nobody moves, and a new plan would "
                         "give %.1f weighted actions a second\n\n",
                         kept->robot_count - before->robot_count,
                         fresh->value_hz);
        *ret_qualified_hz = kept_hz;
        *ret_plan = TD_TAKE(kept);
        return TD_OK;
    }
    if (loud)
        (void)printf("a new plan: %s. %u GPUs load another model, %u streams "
                     "change their server\n\n",
                     reason, fresh->reloaded, fresh->rerouted);
    *ret_plan = TD_TAKE(fresh);
    return TD_OK;
}

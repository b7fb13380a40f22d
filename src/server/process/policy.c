// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/log.h"
#include "server/process/process.h"

#include <stdlib.h>

void td_server_policy_done(td_server_policy *policy)
{
    if (policy->plugin) td_server_plugin_close(policy->plugin);
    if (policy->text) td_config_scheduling_free(policy->text);
    *policy = (td_server_policy){.text = NULL};
}

static td_err check_score(const td_config_scheduling *scheduling,
                          td_errinfo *info)
{
    if (!td_sched_strategy_scores((td_sched_strategy)scheduling->strategy))
        return td_fail(info, TD_ERR_INVALID,
                       "scheduling: a score function is for strategies that "
                       "score, %s does not",
                       td_config_strategies[scheduling->strategy]);
    if (scheduling->score[0] || scheduling->plugin[0])
        return td_fail(info, TD_ERR_INVALID,
                       "scheduling.%s: a score function is given too, choose "
                       "one of the two",
                       scheduling->score[0] ? "score" : "plugin");
    return TD_OK;
}

td_err td_server_policy_make(const td_config_scheduling *scheduling,
                             td_server_score_hook score,
                             td_server_policy *ret_policy, td_errinfo *info)
{
    td_server_policy policy = {.scheduling = *scheduling, .score = score};
    if (score.ask) TD_TRY(check_score(scheduling, info));
    TD_TRY(td_server_settings_policy(scheduling, &policy.sched, &policy.plugin,
                                     info));
    if (score.ask) {
        policy.sched.score = score.ask;
        policy.sched.score_user = score.user;
    }
    *ret_policy = policy;
    return TD_OK;
}

static void use_on(td_server_device *device, const td_server_process *process,
                   const char *name, const td_server_policy *policy)
{
    td_server_device_settings settings;
    td_server_settings_device(process->manifest, &policy->scheduling, name,
                              &policy->sched, &settings);
    td_err err = td_server_device_use(device, &settings);
    if (err != TD_OK)
        td_log_text(TD_LOG_ERROR, "serve: %s: %s", name, td_err_text(err));
}

void td_server_policy_swap(td_server_process *process, td_server_policy *next)
{
    for (size_t i = 0; i < process->manifest->model_count; i++) {
        const td_server_entry *entry = &process->entries[i];
        if (entry->owns_device && entry->device)
            use_on(entry->device, process, process->manifest->models[i].device,
                   next);
    }
    td_server_policy before = process->policy;
    process->policy = *next;
    *next = before;
    process->has_policy = true;
}

static void say_changed(const td_server_process *process)
{
    const td_server_policy *policy = &process->policy;
    const char *strategy = td_config_strategies[policy->scheduling.strategy];
    const char *by = policy->score.ask ? " by a score function" : "";
    td_log_text(TD_LOG_INFO, "serve: scheduling is %s%s", strategy, by);
    if (process->events)
        td_server_events_add(process->events, td_clock_monotonic_ns(),
                             TD_SERVER_EVENT_RELOADED, NULL, NULL,
                             "scheduling is %s%s", strategy, by);
}

// Only the score changes; the texts of the others stay where they are.
static td_err use_score(td_server_process *process, td_server_score_hook score,
                        td_errinfo *info)
{
    td_server_policy next;
    td_config_scheduling scheduling = process->policy.scheduling;
    scheduling.score = scheduling.plugin = "";
    TD_TRY(td_server_policy_make(&scheduling, score, &next, info));
    next.text = TD_TAKE(process->policy.text);
    td_server_policy_swap(process, &next);
    td_server_policy_done(&next);
    return TD_OK;
}

static td_err use_text(td_server_process *process, const char *yaml,
                       td_server_score_hook score, td_errinfo *info)
{
    td_server_policy next;
    TD_AUTO(td_config_scheduling) *text = NULL;
    TD_TRY(td_config_scheduling_parse(
        "(scheduling)", yaml, &process->policy.scheduling, &text, info));
    TD_TRY(td_server_policy_make(text, score, &next, info));
    next.text = TD_TAKE(text);
    td_server_policy_swap(process, &next);
    td_server_policy_done(&next);
    return TD_OK;
}

td_err td_server_policy_use(td_server_process *process, const char *yaml,
                            td_server_score_hook score, td_errinfo *info)
{
    TD_TRY(yaml ? use_text(process, yaml, score, info)
                : use_score(process, score, info));
    say_changed(process);
    return TD_OK;
}

// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/log.h"
#include "server/process/process.h"

#include <stdlib.h>

// What a new manifest asks for, made before anything is changed.
typedef struct asked {
    td_config_manifest *manifest;
    td_server_policy policy;
    td_server_model_config *configs; // one for each entry
    td_server_allowance **clients;
} asked;

static void drop_next(asked *next, size_t count)
{
    for (size_t i = 0; next->clients && i < count; i++)
        free(next->clients[i]);
    free(next->clients);
    free(next->configs);
    td_server_policy_done(&next->policy);
    if (next->manifest) td_config_manifest_free(next->manifest);
}

static const td_config_model *find_twin(const td_config_manifest *manifest,
                                        const td_config_model *server)
{
    for (size_t i = 0; i < manifest->model_count; i++)
        if (td_config_model_same(&manifest->models[i], server))
            return &manifest->models[i];
    return NULL;
}

static td_err make_next(const td_server_process *process, const char *path,
                        asked *next, td_errinfo *info)
{
    size_t count = process->manifest->model_count;
    TD_TRY(td_config_manifest_load(path, &next->manifest, info));
    td_config_scheduling scheduling = next->manifest->scheduling;
    scheduling.tiers = process->manifest->scheduling.tiers;
    TD_TRY(td_server_policy_make(&scheduling, process->policy.score,
                                 &next->policy, info));
    next->configs = calloc(count, sizeof *next->configs);
    next->clients = calloc(count, sizeof *next->clients);
    if (!next->configs || !next->clients) return TD_ERR_NOMEM;
    for (size_t i = 0; i < count; i++) {
        const td_config_model *twin =
            find_twin(next->manifest, &process->manifest->models[i]);
        if (!twin) continue; // goes on as it was
        TD_TRY(td_server_settings_from(next->manifest, twin, process->boot,
                                       &next->configs[i], &next->clients[i]));
    }
    return TD_OK;
}

// How many differences were said.
typedef struct changes {
    size_t taken, left;
} changes;

static void say_live(void *user, const td_config_change *change)
{
    changes *count = user;
    if (!change->live) return;
    count->taken++;
    if (change->now[0])
        td_log_text(TD_LOG_INFO, "serve: %s: %s, was %s", change->field,
                    change->now, change->was);
    else
        td_log_text(TD_LOG_INFO, "serve: %s: changed", change->field);
}

static void say_left(void *user, const td_config_change *change)
{
    static const char *const what[] = {
        [TD_CONFIG_CHANGED] = "differs",
        [TD_CONFIG_ADDED] = "is new",
        [TD_CONFIG_REMOVED] = "is not there any more",
    };
    changes *count = user;
    if (change->live) return;
    count->left++;
    td_log_text(TD_LOG_WARN, "serve: %s: %s, needs a restart", change->field,
                what[change->kind]);
}

static void say_changes(const td_server_process *process, const asked *next)
{
    changes count = {0};
    td_config_manifest_diff(process->live, next->manifest, say_live, &count);
    td_config_manifest_diff(process->manifest, next->manifest, say_left,
                            &count);
    td_log_text(TD_LOG_INFO, "serve: reloaded: %zu changed, %zu need a restart",
                count.taken, count.left);
    td_server_events_add(
        process->events, td_clock_monotonic_ns(), TD_SERVER_EVENT_RELOADED,
        NULL, NULL, "%zu changed, %zu need a restart", count.taken, count.left);
}

static void use_entry(td_server_entry *entry,
                      const td_server_model_config *config,
                      td_server_allowance **clients)
{
    td_err err =
        td_server_model_use(entry->model, &config->settings, &config->model);
    if (err != TD_OK)
        td_log_text(TD_LOG_ERROR, "serve: %s: %s", config->settings.server_id,
                    td_err_text(err));
    td_server_allowance *before = entry->clients;
    entry->clients = *clients;
    *clients = before;
}

// From here on nothing can fail that was checked before.
static void use_next(td_server_process *process, asked *next)
{
    size_t count = process->manifest->model_count;
    td_server_policy_swap(process, &next->policy);
    for (size_t i = 0; i < count; i++) {
        if (next->clients[i])
            use_entry(&process->entries[i], &next->configs[i],
                      &next->clients[i]);
    }
    if (process->live != process->manifest)
        td_config_manifest_free(process->live);
    process->live = TD_TAKE(next->manifest);
}

static void say_broken(const td_server_process *process, const char *why)
{
    td_log_text(TD_LOG_ERROR, "serve: %s; nothing was changed", why);
    td_server_events_add(process->events, td_clock_monotonic_ns(),
                         TD_SERVER_EVENT_RELOAD_FAILED, NULL, NULL, "%s", why);
}

void td_server_process_reload(td_server_process *process, const char *path)
{
    asked next = {0};
    td_errinfo info = {.text = ""};
    td_err err = make_next(process, path, &next, &info);
    if (err != TD_OK) {
        say_broken(process, info.text[0] ? info.text : td_err_text(err));
    } else {
        say_changes(process, &next);
        use_next(process, &next);
    }
    drop_next(&next, process->manifest->model_count);
}

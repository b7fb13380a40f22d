// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/log.h"
#include "server/process/process.h"

#include <stdlib.h>

// What a new manifest asks for, made before anything is changed.
typedef struct asked {
    td_config_manifest *manifest;
    td_server_policy plan;
    td_server_model_config *configs; // one for each entry
    td_server_allowance **clients;
} asked;

static void drop_next(asked *next, size_t count)
{
    for (size_t i = 0; next->clients && i < count; i++)
        free(next->clients[i]);
    free(next->clients);
    free(next->configs);
    td_server_policy_done(&next->plan);
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

static td_err make_next(const td_server_process *house, const char *path,
                        asked *next, td_errinfo *info)
{
    size_t count = house->manifest->model_count;
    TD_TRY(td_config_manifest_load(path, &next->manifest, info));
    td_config_scheduling scheduling = next->manifest->scheduling;
    scheduling.tiers = house->manifest->scheduling.tiers;
    TD_TRY(td_server_policy_make(&scheduling, house->plan.score, &next->plan,
                                 info));
    next->configs = calloc(count, sizeof *next->configs);
    next->clients = calloc(count, sizeof *next->clients);
    if (!next->configs || !next->clients) return TD_ERR_NOMEM;
    for (size_t i = 0; i < count; i++) {
        const td_config_model *twin =
            find_twin(next->manifest, &house->manifest->models[i]);
        if (!twin) continue; // goes on as it was
        TD_TRY(td_server_settings_from(next->manifest, twin, house->boot,
                                       &next->configs[i], &next->clients[i]));
    }
    return TD_OK;
}

// How many differences were said.
typedef struct tale {
    size_t taken, left;
} tale;

static void say_live(void *user, const td_config_change *change)
{
    tale *told = user;
    if (!change->live) return;
    told->taken++;
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
    tale *told = user;
    if (change->live) return;
    told->left++;
    td_log_text(TD_LOG_WARN, "serve: %s: %s, needs a restart", change->field,
                what[change->kind]);
}

static void say_changes(const td_server_process *house, const asked *next)
{
    tale told = {0};
    td_config_manifest_diff(house->live, next->manifest, say_live, &told);
    td_config_manifest_diff(house->manifest, next->manifest, say_left, &told);
    td_log_text(TD_LOG_INFO, "serve: reloaded: %zu changed, %zu need a restart",
                told.taken, told.left);
    td_server_events_add(house->events, td_clock_now_ns(&td_clock_monotonic),
                         TD_SERVER_EVENT_RELOADED, NULL, NULL,
                         "%zu changed, %zu need a restart", told.taken,
                         told.left);
}

static void use_entry(td_server_entry *entry,
                      const td_server_model_config *config,
                      td_server_allowance **clients)
{
    td_err err =
        td_server_model_use(entry->server, &config->settings, &config->model);
    if (err != TD_OK)
        td_log_text(TD_LOG_ERROR, "serve: %s: %s", config->settings.server_id,
                    td_err_text(err));
    td_server_allowance *before = entry->clients;
    entry->clients = *clients;
    *clients = before;
}

// From here on nothing can fail that was checked before.
static void use_next(td_server_process *house, asked *next)
{
    size_t count = house->manifest->model_count;
    td_server_policy_swap(house, &next->plan);
    for (size_t i = 0; i < count; i++) {
        if (next->clients[i])
            use_entry(&house->entries[i], &next->configs[i], &next->clients[i]);
    }
    if (house->live != house->manifest) td_config_manifest_free(house->live);
    house->live = TD_TAKE(next->manifest);
}

static void say_broken(const td_server_process *house, const char *why)
{
    td_log_text(TD_LOG_ERROR, "serve: %s; nothing was changed", why);
    td_server_events_add(house->events, td_clock_now_ns(&td_clock_monotonic),
                         TD_SERVER_EVENT_RELOAD_FAILED, NULL, NULL, "%s", why);
}

void td_server_process_reload(td_server_process *house, const char *path)
{
    asked next = {0};
    td_errinfo info = {.text = ""};
    td_err err = make_next(house, path, &next, &info);
    if (err != TD_OK) {
        say_broken(house, info.text[0] ? info.text : td_err_text(err));
    } else {
        say_changes(house, &next);
        use_next(house, &next);
    }
    drop_next(&next, house->manifest->model_count);
}

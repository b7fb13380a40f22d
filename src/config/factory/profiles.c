// SPDX-License-Identifier: Apache-2.0
#include "config/factory/profile.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int is_profile(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return entry->d_name[0] != '.' && dot && strcmp(dot, ".yaml") == 0;
}

static td_err load_one(td_config_profiles *profiles, const char *folder,
                       const char *name, td_errinfo *info)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0) return TD_ERR_NOMEM;
    td_err err =
        td_config_profile_load(path, &profiles->items[profiles->count], info);
    if (err == TD_OK) profiles->count++;
    free(path);
    return err;
}

static td_err load_all(const char *folder, struct dirent **entries,
                       size_t count, td_config_profiles **ret_profiles,
                       td_errinfo *info)
{
    TD_AUTO(td_config_profiles) *profiles = calloc(1, sizeof *profiles);
    if (!profiles) return TD_ERR_NOMEM;
    profiles->items = calloc(count + 1, sizeof *profiles->items);
    if (!profiles->items) return TD_ERR_NOMEM;
    for (size_t i = 0; i < count; i++)
        TD_TRY(load_one(profiles, folder, entries[i]->d_name, info));
    *ret_profiles = TD_TAKE(profiles);
    return TD_OK;
}

td_err td_config_profiles_load(const char *folder,
                               td_config_profiles **ret_profiles,
                               td_errinfo *info)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_profile, alphasort);
    if (count < 0)
        return td_fail(info, TD_ERR_IO,
                       "%.200s: %s; it should hold the profiles that `tendon "
                       "profile` writes",
                       folder, strerror(errno));
    td_err err = load_all(folder, entries, (size_t)count, ret_profiles, info);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return err;
}

void td_config_profiles_free(td_config_profiles *profiles)
{
    for (size_t i = 0; i < profiles->count; i++)
        td_config_profile_free(profiles->items[i]);
    free(profiles->items);
    free(profiles);
}

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

// Those of two different owners differ.
static bool same_model(const char *one, const char *other)
{
    if (strchr(one, '/') && strchr(other, '/')) return strcmp(one, other) == 0;
    return strcasecmp(last_part(one), last_part(other)) == 0;
}

// What of the folder fits how far.
typedef struct matches {
    const td_config_profile *model;  // but not on that GPU
    const td_config_profile *gpu;    // but not of that engine
    const td_config_profile *found;  // fits
    const td_config_profile *second; // fits too
} matches;

static void look_at(const td_config_profile *profile, const char *model,
                    const char *engine, const char *gpu, matches *found)
{
    if (!same_model(profile->model, model)) return;
    if (strcmp(profile->gpu, gpu) != 0)
        found->model = profile;
    else if (engine[0] && strcmp(profile->engine, engine) != 0)
        found->gpu = profile;
    else if (found->found)
        found->second = profile;
    else
        found->found = profile;
}

static td_err explain(const matches *found, const char *model,
                      const char *engine, const char *gpu, td_errinfo *info)
{
    if (found->second)
        return td_fail(info, TD_ERR_INVALID,
                       "two profiles of %.100s on %.60s: %.80s and %.80s; say "
                       "`engine` in the component, or take one away",
                       model, gpu, last_part(found->found->file),
                       last_part(found->second->file));
    if (found->gpu)
        return td_fail(info, TD_ERR_MISMATCH,
                       "the profile of %.100s on %.60s, %.80s, is of the "
                       "engine %.60s, not %.60s; measure it with `tendon "
                       "profile`",
                       model, gpu, last_part(found->gpu->file),
                       found->gpu->engine, engine);
    if (found->model)
        return td_fail(info, TD_ERR_MISMATCH,
                       "the profile of %.100s, %.80s, is for another GPU, "
                       "%.60s; measure it on %.60s with `tendon profile`",
                       model, last_part(found->model->file), found->model->gpu,
                       gpu);
    return td_fail(info, TD_ERR_NOTFOUND,
                   "there is no profile of %.100s on %.60s; measure it with "
                   "`tendon profile`",
                   model, gpu);
}

td_err td_config_profiles_find(const td_config_profiles *profiles,
                               const char *model, const char *engine,
                               const char *gpu,
                               const td_config_profile **ret_profile,
                               td_errinfo *info)
{
    matches found = {0};
    for (size_t i = 0; i < profiles->count; i++)
        look_at(profiles->items[i], model, engine, gpu, &found);
    if (!found.found || found.second)
        return explain(&found, model, engine, gpu, info);
    *ret_profile = found.found;
    return TD_OK;
}

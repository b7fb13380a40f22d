// SPDX-License-Identifier: Apache-2.0
#include "engine/native/checkpoint/hub.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_REVISION 64

// "owner/name" or "name", of letters, digits, '-', '_' and '.'; a dot is never
// the first.
static bool is_repository(const char *name)
{
    int slashes = 0;
    char before = '/';
    for (const char *at = name; *at; before = *at++) {
        if (*at == '/' && (before == '/' || slashes++ > 0)) return false;
        if (*at == '.' && before == '/') return false;
        if (*at != '/' && !isalnum((unsigned char)*at) && *at != '-' &&
            *at != '_' && *at != '.')
            return false;
    }
    return before != '/';
}

// As the hub's own library looks for it.
static td_err cache_folder(char ret_path[TD_NATIVE_MAX_PATH], td_errinfo *info)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"HF_HUB_CACHE", ""},
                  {"HUGGINGFACE_HUB_CACHE", ""},
                  {"HF_HOME", "hub"},
                  {"XDG_CACHE_HOME", "huggingface/hub"},
                  {"HOME", ".cache/huggingface/hub"}};
    for (size_t i = 0; i < TD_COUNT_OF(places); i++) {
        const char *folder = getenv(places[i].variable);
        if (folder && *folder)
            return td_native_path_join(folder, places[i].below, ret_path, info);
    }
    return td_fail(info, TD_ERR_NOTFOUND, "there is no home folder");
}

static td_err repository_folder(const char *name,
                                char ret_path[TD_NATIVE_MAX_PATH],
                                td_errinfo *info)
{
    char cache[TD_NATIVE_MAX_PATH], own[TD_NATIVE_MAX_PATH];
    size_t used = 0;
    if (strlen(name) > TD_NATIVE_MAX_PATH / 4)
        return td_fail(info, TD_ERR_LIMIT, "%.64s...: the name is too long",
                       name);
    TD_TRY(cache_folder(cache, info));
    used += (size_t)snprintf(own, sizeof own, "models--");
    for (const char *at = name; *at; at++)
        used += (size_t)snprintf(own + used, sizeof own - used, "%s%.1s",
                                 *at == '/' ? "--" : "", *at == '/' ? "" : at);
    return td_native_path_join(cache, own, ret_path, info);
}

static bool read_main(const char *folder, char ret_revision[MAX_REVISION])
{
    char path[TD_NATIVE_MAX_PATH];
    if (td_native_path_join(folder, "refs/main", path, NULL) != TD_OK)
        return false;
    FILE *file = fopen(path, "re");
    if (!file) return false;
    bool found = fgets(ret_revision, MAX_REVISION, file) != NULL;
    (void)fclose(file);
    if (!found) return false;
    ret_revision[strcspn(ret_revision, "\r\n")] = '\0';
    return td_native_path_is_plain(ret_revision);
}

// The only snapshot, where there is one.
static bool find_only(const char *folder, char ret_revision[MAX_REVISION])
{
    char path[TD_NATIVE_MAX_PATH];
    int count = 0;
    if (td_native_path_join(folder, "snapshots", path, NULL) != TD_OK)
        return false;
    DIR *snapshots = opendir(path);
    if (!snapshots) return false;
    for (const struct dirent *at; (at = readdir(snapshots));)
        if (td_native_path_is_plain(at->d_name) && count++ == 0)
            (void)snprintf(ret_revision, MAX_REVISION, "%.*s", MAX_REVISION - 1,
                           at->d_name);
    (void)closedir(snapshots);
    return count == 1;
}

static td_err find_cached(const char *name, const char *file,
                          char ret_path[TD_NATIVE_MAX_PATH], td_errinfo *info)
{
    char folder[TD_NATIVE_MAX_PATH], revision[MAX_REVISION];
    char inside[TD_NATIVE_MAX_PATH];
    TD_TRY(repository_folder(name, folder, info));
    if (!read_main(folder, revision) && !find_only(folder, revision))
        return td_fail(info, TD_ERR_NOTFOUND,
                       "%s: is not in the hub's local cache (%s)", name,
                       folder);
    int size =
        snprintf(inside, sizeof inside, "snapshots/%s/%s", revision, file);
    if (size >= (int)sizeof inside) return TD_ERR_LIMIT;
    return td_native_path_join(folder, inside, ret_path, info);
}

bool td_native_hub_is_name(const char *name)
{
    return is_repository(name) && strchr(name, '/');
}

td_err td_native_hub_find(const char *name, const char *file,
                          char ret_path[TD_NATIVE_MAX_PATH], td_errinfo *info)
{
    char path[TD_NATIVE_MAX_PATH];
    TD_TRY(td_native_path_join(name, file, path, info));
    if (access(path, R_OK) != 0) {
        if (!is_repository(name))
            return td_fail(info,
                           name[0] == '/' ? TD_ERR_NOTFOUND : TD_ERR_INVALID,
                           "%.200s: is no folder with a %s, and no repository "
                           "of the hub",
                           name, file);
        TD_TRY(find_cached(name, file, path, info));
        if (access(path, R_OK) != 0)
            return td_fail(info, TD_ERR_NOTFOUND, "%s: is not there", path);
    }
    memcpy(ret_path, path, sizeof path);
    return TD_OK;
}

// SPDX-License-Identifier: Apache-2.0
#include "server/dispatch/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYMBOL "tendon_score_plugin"

struct td_server_plugin {
    void *library;
    td_score_function score;
};

static td_err look_up(td_server_plugin *plugin, const char *path,
                      td_errinfo *info)
{
    const td_score_plugin *found = dlsym(plugin->library, SYMBOL);
    if (!found)
        return td_fail(info, TD_ERR_NOTFOUND,
                       "%s has no " SYMBOL
                       ": end it with TD_SCORE_PLUGIN(function)",
                       path);
    if (found->version == 0 || found->version > TD_SCORE_VERSION)
        return td_fail(info, TD_ERR_VERSION,
                       "%s was made for version %u of tendon/score.h, this "
                       "server knows 1 to %u",
                       path, found->version, TD_SCORE_VERSION);
    if (!found->score)
        return td_fail(info, TD_ERR_NOTFOUND, "%s has no function in " SYMBOL,
                       path);
    plugin->score = found->score;
    return TD_OK;
}

// A name without a slash would be looked for among the system's libraries.
static void *load(const char *path)
{
    char *full = NULL;
    const char *folder = strchr(path, '/') ? "" : "./";
    if (asprintf(&full, "%s%s", folder, path) < 0) return NULL;
    void *library = dlopen(full, RTLD_NOW | RTLD_LOCAL);
    free(full);
    return library;
}

td_err td_server_plugin_open(const char *path, td_server_plugin **ret_plugin,
                             td_errinfo *info)
{
    TD_AUTO(td_server_plugin) *plugin = calloc(1, sizeof *plugin);
    if (!plugin) return TD_ERR_NOMEM;
    plugin->library = load(path);
    if (!plugin->library) return td_fail(info, TD_ERR_IO, "%s", dlerror());
    TD_TRY(look_up(plugin, path, info));
    *ret_plugin = TD_TAKE(plugin);
    return TD_OK;
}

void td_server_plugin_close(td_server_plugin *plugin)
{
    if (plugin->library) (void)dlclose(plugin->library);
    free(plugin);
}

double td_server_plugin_ask(void *plugin, const td_score_request *request)
{
    const td_server_plugin *self = plugin;
    return self->score(request);
}

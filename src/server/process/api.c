// SPDX-License-Identifier: Apache-2.0
// The public C API, include/tendon/server.h, on the house.
//
// Close: the house closes its servers, then their engines, after which no model
// is called any more; then the devices, and with them the score; then whoever
// listens is told what is left.
#include "server/process/api.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

static bool is_stopping(void *user)
{
    const td_server *host = user;
    return atomic_load(&host->stop);
}

td_err td_server_open_on(td_net *net, td_config_manifest *manifest,
                         td_server **ret_host, td_errinfo *info)
{
    td_server *host = calloc(1, sizeof *host);
    if (!host) {
        td_config_manifest_free(manifest);
        return td_fail(info, TD_ERR_NOMEM, "no memory for a host");
    }
    td_event_init(&host->wake);
    pthread_mutex_init(&host->lock, NULL);
    host->extras = (td_server_extras){.functions = host->functions,
                                      .is_stopping = is_stopping,
                                      .user = host,
                                      .net = net};
    td_log_hold();
    td_err err = td_server_process_new(manifest, &host->extras, &host->house);
    if (err != TD_OK) {
        td_server_close(host);
        return td_fail(info, err, "no memory for a host");
    }
    *ret_host = host;
    return TD_OK;
}

td_err td_server_open(const char *path, td_server **ret_host, td_errinfo *info)
{
    td_config_manifest *manifest = NULL;
    TD_TRY(td_config_manifest_load(path, &manifest, info));
    return td_server_open_on(NULL, manifest, ret_host, info);
}

td_err td_server_open_text(const char *yaml, td_server **ret_host,
                           td_errinfo *info)
{
    td_config_manifest *manifest = NULL;
    TD_TRY(td_config_manifest_parse("(text)", yaml, strlen(yaml), &manifest,
                                    info));
    return td_server_open_on(NULL, manifest, ret_host, info);
}

// The manifest's own text, which stays; NULL: it has no such model.
static const char *find_callback(const td_config_manifest *manifest,
                                 const char *model_id)
{
    for (size_t i = 0; i < manifest->model_count; i++) {
        const td_config_model *server = &manifest->models[i];
        if (server->engine.kind == TD_CONFIG_CALLBACK &&
            strcmp(server->model_id, model_id) == 0)
            return server->model_id;
    }
    return NULL;
}

static td_err add_function_locked(td_server *host, const char *model_id,
                                  td_server_engine_function function,
                                  td_errinfo *info)
{
    const char *own = find_callback(host->house->manifest, model_id);
    if (host->phase != TD_SERVER_OPEN)
        return td_fail(info, TD_ERR_BUSY, "model %s: it has started", model_id);
    if (!function.infer)
        return td_fail(info, TD_ERR_INVALID, "model %s: no function", model_id);
    if (!own)
        return td_fail(info, TD_ERR_NOTFOUND,
                       "model %s: the manifest has no such model with engine: "
                       "{kind: callback}",
                       model_id);
    if (td_server_functions_find(&host->extras, model_id))
        return td_fail(info, TD_ERR_EXISTS, "model %s: has its function",
                       model_id);
    host->functions[host->extras.function_count++] =
        (td_server_model_function){own, function};
    return TD_OK;
}

td_err td_server_use_model(td_server *host, const char *model_id,
                           td_infer_function infer, void *user,
                           td_errinfo *info)
{
    pthread_mutex_lock(&host->lock);
    td_err err = add_function_locked(
        host, model_id, (td_server_engine_function){infer, user}, info);
    pthread_mutex_unlock(&host->lock);
    return err;
}

td_err td_server_use_scheduling(td_server *host, const char *yaml,
                                td_server_score_fn score, void *user,
                                td_errinfo *info)
{
    pthread_mutex_lock(&host->lock);
    td_err err =
        host->phase == TD_SERVER_STARTING
            ? td_fail(info, TD_ERR_BUSY, "it is being started")
            : td_server_policy_use(host->house, yaml,
                                   (td_server_score_hook){score, user}, info);
    pthread_mutex_unlock(&host->lock);
    return err;
}

// Whether it was in the phase `from`, and is in `to` now.
static bool pass(td_server *host, td_server_phase from, td_server_phase to)
{
    pthread_mutex_lock(&host->lock);
    bool passes = host->phase == from;
    if (passes) host->phase = to;
    pthread_mutex_unlock(&host->lock);
    return passes;
}

td_err td_server_start(td_server *host, td_errinfo *info)
{
    if (!pass(host, TD_SERVER_OPEN, TD_SERVER_STARTING))
        return td_fail(info, TD_ERR_EXISTS, "a host is started once");
    td_err err = td_server_process_open(host->house, info);
    (void)pass(host, TD_SERVER_STARTING,
               err == TD_OK ? TD_SERVER_STARTED : TD_SERVER_START_FAILED);
    if (err == TD_OK) td_log_text(TD_LOG_INFO, "serve: ready");
    return err;
}

static int64_t until_ns(int64_t timeout_ms)
{
    int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
    if (timeout_ms < 0 || timeout_ms > (INT64_MAX - now_ns) / TD_NS_PER_MS)
        return INT64_MAX;
    return now_ns + timeout_ms * TD_NS_PER_MS;
}

bool td_server_wait(td_server *host, int64_t timeout_ms)
{
    int64_t end_ns = until_ns(timeout_ms);
    while (!atomic_load(&host->stop) &&
           td_event_wait_until(&host->wake, end_ns)) {
    }
    return atomic_load(&host->stop);
}

void td_server_stop(td_server *host)
{
    atomic_store(&host->stop, true);
    td_event_signal(&host->wake);
}

static bool has_started(td_server *host)
{
    pthread_mutex_lock(&host->lock);
    bool started = host->phase == TD_SERVER_STARTED;
    pthread_mutex_unlock(&host->lock);
    return started;
}

td_err td_server_drain(td_server *host, int64_t timeout_ms, td_errinfo *info)
{
    if (!has_started(host))
        return td_fail(info, TD_ERR_EMPTY, "nothing was started");
    if (td_server_process_drain(host->house, until_ns(timeout_ms)))
        return TD_OK;
    return td_fail(info, TD_ERR_TIMEOUT, "a model still runs after %lld ms",
                   (long long)timeout_ms);
}

void td_server_close(td_server *host)
{
    if (host->house) td_server_process_close(host->house);
    td_log_release();
    pthread_mutex_destroy(&host->lock);
    free(host);
}

static td_err listen_locked(td_server *host,
                            const td_server_listeners *listeners)
{
    if (host->phase != TD_SERVER_OPEN) return TD_ERR_BUSY;
    host->extras.listeners = *listeners;
    return TD_OK;
}

td_err td_server_on_metric(td_server *host, td_server_metric_fn tell,
                           void *user)
{
    pthread_mutex_lock(&host->lock);
    td_server_listeners listeners = host->extras.listeners;
    listeners.on_metric = tell;
    listeners.metric_user = user;
    td_err err = listen_locked(host, &listeners);
    pthread_mutex_unlock(&host->lock);
    return err;
}

td_err td_server_on_event(td_server *host, td_server_event_fn tell, void *user)
{
    pthread_mutex_lock(&host->lock);
    td_server_listeners listeners = host->extras.listeners;
    listeners.on_event = tell;
    listeners.event_user = user;
    td_err err = listen_locked(host, &listeners);
    pthread_mutex_unlock(&host->lock);
    return err;
}

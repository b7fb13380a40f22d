// SPDX-License-Identifier: Apache-2.0
// The public C API, include/tendon/serve.h, on the house.
//
// Close: the house closes its servers, then their engines, after which no model
// is called any more; then the devices, and with them the score; then whoever
// listens is told what is left.
#include "host/host.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

static bool is_stopping(void *user)
{
    const td_host *host = user;
    return atomic_load(&host->stop);
}

td_err td_host_open_on(td_net *net, td_config_manifest *manifest,
                       td_host **ret_host, td_errinfo *info)
{
    td_host *host = calloc(1, sizeof *host);
    if (!host) {
        td_config_manifest_free(manifest);
        return td_fail(info, TD_ERR_NOMEM, "no memory for a host");
    }
    td_event_init(&host->wake);
    pthread_mutex_init(&host->lock, NULL);
    host->extras = (td_host_extras){.functions = host->functions,
                                    .is_stopping = is_stopping,
                                    .user = host,
                                    .net = net};
    td_log_hold();
    td_err err = td_host_house_new(manifest, &host->extras, &host->house);
    if (err != TD_OK) {
        td_host_close(host);
        return td_fail(info, err, "no memory for a host");
    }
    *ret_host = host;
    return TD_OK;
}

td_err td_host_open(const char *path, td_host **ret_host, td_errinfo *info)
{
    td_config_manifest *manifest = NULL;
    TD_TRY(td_config_manifest_load(path, &manifest, info));
    return td_host_open_on(NULL, manifest, ret_host, info);
}

td_err td_host_open_text(const char *yaml, td_host **ret_host, td_errinfo *info)
{
    td_config_manifest *manifest = NULL;
    TD_TRY(td_config_manifest_parse("(text)", yaml, strlen(yaml), &manifest,
                                    info));
    return td_host_open_on(NULL, manifest, ret_host, info);
}

// The manifest's own text, which stays; NULL: it has no such model.
static const char *find_callback(const td_config_manifest *manifest,
                                 const char *model_id)
{
    for (size_t i = 0; i < manifest->server_count; i++) {
        const td_config_server *server = &manifest->server[i];
        if (server->engine.kind == TD_CONFIG_CALLBACK &&
            strcmp(server->model_id, model_id) == 0)
            return server->model_id;
    }
    return NULL;
}

static td_err add_function_locked(td_host *host, const char *model_id,
                                  td_server_function function, td_errinfo *info)
{
    const char *own = find_callback(host->house->manifest, model_id);
    if (host->phase != TD_HOST_OPEN)
        return td_fail(info, TD_ERR_BUSY, "model %s: it has started", model_id);
    if (!function.infer)
        return td_fail(info, TD_ERR_INVALID, "model %s: no function", model_id);
    if (!own)
        return td_fail(info, TD_ERR_NOTFOUND,
                       "model %s: the manifest has no such model with engine: "
                       "{kind: callback}",
                       model_id);
    if (td_host_functions_find(&host->extras, model_id))
        return td_fail(info, TD_ERR_EXISTS, "model %s: has its function",
                       model_id);
    host->functions[host->extras.function_count++] =
        (td_host_function){own, function};
    return TD_OK;
}

td_err td_host_use_model(td_host *host, const char *model_id,
                         td_infer_function infer, void *user, td_errinfo *info)
{
    pthread_mutex_lock(&host->lock);
    td_err err = add_function_locked(host, model_id,
                                     (td_server_function){infer, user}, info);
    pthread_mutex_unlock(&host->lock);
    return err;
}

td_err td_host_use_scheduling(td_host *host, const char *yaml,
                              td_host_score_fn score, void *user,
                              td_errinfo *info)
{
    pthread_mutex_lock(&host->lock);
    td_err err = host->phase == TD_HOST_STARTING
                     ? td_fail(info, TD_ERR_BUSY, "it is being started")
                     : td_host_plan_use(host->house, yaml,
                                        (td_host_score){score, user}, info);
    pthread_mutex_unlock(&host->lock);
    return err;
}

// Whether it was in the phase `from`, and is in `to` now.
static bool pass(td_host *host, td_host_phase from, td_host_phase to)
{
    pthread_mutex_lock(&host->lock);
    bool passes = host->phase == from;
    if (passes) host->phase = to;
    pthread_mutex_unlock(&host->lock);
    return passes;
}

td_err td_host_start(td_host *host, td_errinfo *info)
{
    if (!pass(host, TD_HOST_OPEN, TD_HOST_STARTING))
        return td_fail(info, TD_ERR_EXISTS, "a host is started once");
    td_err err = td_host_house_open(host->house, info);
    (void)pass(host, TD_HOST_STARTING,
               err == TD_OK ? TD_HOST_STARTED : TD_HOST_FAILED);
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

bool td_host_wait(td_host *host, int64_t timeout_ms)
{
    int64_t end_ns = until_ns(timeout_ms);
    while (!atomic_load(&host->stop) &&
           td_event_wait_until(&host->wake, end_ns)) {
    }
    return atomic_load(&host->stop);
}

void td_host_stop(td_host *host)
{
    atomic_store(&host->stop, true);
    td_event_signal(&host->wake);
}

static bool has_started(td_host *host)
{
    pthread_mutex_lock(&host->lock);
    bool started = host->phase == TD_HOST_STARTED;
    pthread_mutex_unlock(&host->lock);
    return started;
}

td_err td_host_drain(td_host *host, int64_t timeout_ms, td_errinfo *info)
{
    if (!has_started(host))
        return td_fail(info, TD_ERR_EMPTY, "nothing was started");
    if (td_host_house_drain(host->house, until_ns(timeout_ms))) return TD_OK;
    return td_fail(info, TD_ERR_TIMEOUT, "a model still runs after %lld ms",
                   (long long)timeout_ms);
}

void td_host_close(td_host *host)
{
    if (host->house) td_host_house_close(host->house);
    td_log_release();
    pthread_mutex_destroy(&host->lock);
    free(host);
}

static td_err listen_locked(td_host *host, const td_host_listeners *listeners)
{
    if (host->phase != TD_HOST_OPEN) return TD_ERR_BUSY;
    host->extras.listeners = *listeners;
    return TD_OK;
}

td_err td_host_on_metric(td_host *host, td_host_metric_fn tell, void *user)
{
    pthread_mutex_lock(&host->lock);
    td_host_listeners listeners = host->extras.listeners;
    listeners.on_metric = tell;
    listeners.metric_user = user;
    td_err err = listen_locked(host, &listeners);
    pthread_mutex_unlock(&host->lock);
    return err;
}

td_err td_host_on_event(td_host *host, td_host_event_fn tell, void *user)
{
    pthread_mutex_lock(&host->lock);
    td_host_listeners listeners = host->extras.listeners;
    listeners.on_event = tell;
    listeners.event_user = user;
    td_err err = listen_locked(host, &listeners);
    pthread_mutex_unlock(&host->lock);
    return err;
}

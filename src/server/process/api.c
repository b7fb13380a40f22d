// SPDX-License-Identifier: Apache-2.0
// The public C API, include/tendon/server.h, on the process.
//
// Close: the process closes its servers, then their engines, after which no
// model is called any more; then the devices, and with them the score; then
// whoever listens gets what is left.
#include "server/process/api.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

static bool is_stopping(void *user)
{
    const td_server *server = user;
    return atomic_load(&server->stop);
}

td_err td_server_open_on(td_net *net, td_config_manifest *manifest,
                         td_server **ret_server, td_errinfo *info)
{
    td_server *server = calloc(1, sizeof *server);
    if (!server) {
        td_config_manifest_free(manifest);
        return td_fail(info, TD_ERR_NOMEM, "no memory for a server");
    }
    td_event_init(&server->wake);
    pthread_mutex_init(&server->lock, NULL);
    server->extras = (td_server_extras){.functions = server->functions,
                                        .listens_later = true,
                                        .is_stopping = is_stopping,
                                        .user = server,
                                        .net = net};
    td_log_hold();
    td_err err =
        td_server_process_new(manifest, &server->extras, &server->process);
    if (err != TD_OK) {
        td_server_close(server);
        return td_fail(info, err, "no memory for a server");
    }
    *ret_server = server;
    return TD_OK;
}

td_err td_server_open(const char *path, td_server **ret_server,
                      td_errinfo *info)
{
    td_config_manifest *manifest = NULL;
    TD_TRY(td_config_manifest_load(path, &manifest, info));
    return td_server_open_on(NULL, manifest, ret_server, info);
}

td_err td_server_open_text(const char *yaml, td_server **ret_server,
                           td_errinfo *info)
{
    td_config_manifest *manifest = NULL;
    TD_TRY(td_config_manifest_parse("(text)", yaml, strlen(yaml), &manifest,
                                    info));
    return td_server_open_on(NULL, manifest, ret_server, info);
}

// The manifest's own text, which stays; NULL: it has no such model.
static const char *find_callback(const td_config_manifest *manifest,
                                 const char *model_id)
{
    for (size_t i = 0; i < manifest->model_count; i++) {
        const td_config_model *model = &manifest->models[i];
        if (model->engine.kind == TD_CONFIG_CALLBACK &&
            strcmp(model->model_id, model_id) == 0)
            return model->model_id;
    }
    return NULL;
}

static td_err add_function_locked(td_server *server, const char *model_id,
                                  td_server_engine_function function,
                                  td_errinfo *info)
{
    const char *own = find_callback(server->process->manifest, model_id);
    if (server->phase != TD_SERVER_OPEN)
        return td_fail(info, TD_ERR_BUSY, "model %s: it has started", model_id);
    if (!function.infer)
        return td_fail(info, TD_ERR_INVALID, "model %s: no function", model_id);
    if (!own)
        return td_fail(info, TD_ERR_NOTFOUND,
                       "model %s: the manifest has no such model with engine: "
                       "{kind: callback}",
                       model_id);
    if (td_server_process_find_function(&server->extras, model_id))
        return td_fail(info, TD_ERR_EXISTS, "model %s: has its function",
                       model_id);
    server->functions[server->extras.function_count++] =
        (td_server_model_function){own, function};
    return TD_OK;
}

td_err td_server_use_model(td_server *server, const char *model_id,
                           td_infer_function infer, void *user,
                           td_errinfo *info)
{
    pthread_mutex_lock(&server->lock);
    td_err err = add_function_locked(
        server, model_id, (td_server_engine_function){infer, user}, info);
    pthread_mutex_unlock(&server->lock);
    return err;
}

td_err td_server_use_scheduling(td_server *server, const char *yaml,
                                td_server_score_fn score, void *user,
                                td_errinfo *info)
{
    pthread_mutex_lock(&server->lock);
    td_err err =
        server->phase == TD_SERVER_STARTING
            ? td_fail(info, TD_ERR_BUSY, "it is being started")
            : td_server_policy_use(server->process, yaml,
                                   (td_server_score_hook){score, user}, info);
    pthread_mutex_unlock(&server->lock);
    return err;
}

// Whether it was in the phase `from`, and is in `to` now.
static bool pass(td_server *server, td_server_phase from, td_server_phase to)
{
    pthread_mutex_lock(&server->lock);
    bool passes = server->phase == from;
    if (passes) server->phase = to;
    pthread_mutex_unlock(&server->lock);
    return passes;
}

td_err td_server_start(td_server *server, td_errinfo *info)
{
    if (!pass(server, TD_SERVER_OPEN, TD_SERVER_STARTING))
        return td_fail(info, TD_ERR_EXISTS, "a server is started once");
    td_err err = td_server_process_open(server->process, info);
    (void)pass(server, TD_SERVER_STARTING,
               err == TD_OK ? TD_SERVER_STARTED : TD_SERVER_START_FAILED);
    if (err == TD_OK) td_log_text(TD_LOG_INFO, "serve: ready");
    return err;
}

static int64_t until_ns(int64_t timeout_ms)
{
    int64_t now_ns = td_clock_monotonic_ns();
    if (timeout_ms < 0 || timeout_ms > (INT64_MAX - now_ns) / TD_NS_PER_MS)
        return INT64_MAX;
    return now_ns + timeout_ms * TD_NS_PER_MS;
}

bool td_server_wait(td_server *server, int64_t timeout_ms)
{
    int64_t end_ns = until_ns(timeout_ms);
    while (!atomic_load(&server->stop) &&
           td_event_wait_until(&server->wake, end_ns)) {
    }
    return atomic_load(&server->stop);
}

void td_server_stop(td_server *server)
{
    atomic_store(&server->stop, true);
    td_event_signal(&server->wake);
}

static bool has_started(td_server *server)
{
    pthread_mutex_lock(&server->lock);
    bool started = server->phase == TD_SERVER_STARTED;
    pthread_mutex_unlock(&server->lock);
    return started;
}

td_err td_server_drain(td_server *server, int64_t timeout_ms, td_errinfo *info)
{
    if (!has_started(server))
        return td_fail(info, TD_ERR_EMPTY, "nothing was started");
    if (td_server_process_drain(server->process, until_ns(timeout_ms)))
        return TD_OK;
    return td_fail(info, TD_ERR_TIMEOUT, "a model still runs after %lld ms",
                   (long long)timeout_ms);
}

void td_server_close(td_server *server)
{
    if (server->process) td_server_process_close(server->process);
    td_log_release();
    pthread_mutex_destroy(&server->lock);
    free(server);
}

static td_err listen_locked(td_server *server,
                            const td_server_listeners *listeners)
{
    if (server->phase == TD_SERVER_STARTING) return TD_ERR_BUSY;
    server->extras.listeners = *listeners;
    td_server_process *process = server->process;
    if (server->phase == TD_SERVER_STARTED && process->stream)
        td_server_stream_listen(process->stream, listeners);
    return TD_OK;
}

td_err td_server_on_metric(td_server *server, td_server_metric_fn notify,
                           void *user)
{
    pthread_mutex_lock(&server->lock);
    td_server_listeners listeners = server->extras.listeners;
    listeners.on_metric = notify;
    listeners.metric_user = user;
    td_err err = listen_locked(server, &listeners);
    pthread_mutex_unlock(&server->lock);
    return err;
}

td_err td_server_on_event(td_server *server, td_server_event_fn notify,
                          void *user)
{
    pthread_mutex_lock(&server->lock);
    td_server_listeners listeners = server->extras.listeners;
    listeners.on_event = notify;
    listeners.event_user = user;
    td_err err = listen_locked(server, &listeners);
    pthread_mutex_unlock(&server->lock);
    return err;
}

// SPDX-License-Identifier: Apache-2.0
// A model of a connection: opened, waited for, its results taken, closed.
//
// This is the program's side of td_model; the rest of the work is in files of
// its own, which share the struct in model.h: observation.c fills a message
// from the program's struct, outbox.c sends it, inbox.c takes answers in,
// requests.c says how each observation ended, attach.c has the thread td-model,
// result.c makes what the program gets.
//
// Whoever waits for a result waits on `changed` under `lock`, and ends by
// itself what expires meanwhile, so that a timeout is exact without td-model. A
// descriptor for poll() is readable exactly while a result waits, or for ever
// once the model is stopped.
//
// Locks: `sending`, then `lock`. `sending` is held while the network is waited
// for; `lock` never is, and guards the requests, the server's name, the decoder
// and the reason why there is no server.
//
// Stop: td_model_stop() ends what is open and wakes whoever waits; any thread
// may call it. Drain: td_model_close() joins td-model, which leaves the server,
// and undeclares, which waits for callbacks. Free: the connection lets the
// model go, then the memory goes.
#include "client/model.h"

#include "base/clock.h"
#include "edge/api/api.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FIRST_SETTINGS_BYTES TD_EDGE_API_UP_TO(td_model_settings, raw_if_shared)
#define DEFAULT_LIMIT_MS 5000
#define LONGEST_MS (INT64_C(1000) * 60 * 60 * 24 * 365)
#define LARGE_ANSWERS 64

static const td_net_qos obs_qos = {.priority = TD_NET_DATA};
static const td_net_qos every_qos = {.priority = TD_NET_DATA, .reliable = true};

static bool is_stopped(const td_model *model)
{
    return atomic_load(&model->state) == TD_CLIENT_MODEL_STOPPED;
}

// Level: readable exactly while a result waits, or for ever once stopped.
static void show_locked(td_model *model)
{
    eventfd_t value;
    if (model->fd < 0) return;
    if (td_client_requests_first(&model->requests) || is_stopped(model))
        (void)eventfd_write(model->fd, 1);
    else
        (void)eventfd_read(model->fd, &value); // fails where it is none
}

void td_client_model_changed_locked(td_model *model)
{
    show_locked(model);
    pthread_cond_broadcast(&model->changed);
}

void td_client_model_expire_locked(td_model *model, int64_t now_ns)
{
    const uint64_t *expired =
        &model->requests.counts.outcomes[TD_MODEL_EXPIRED];
    uint64_t before = *expired;
    if (td_client_requests_expire(&model->requests, now_ns) > 0) {
        model->doubts = true;
        td_event_signal(&model->wake);
    }
    if (*expired != before) td_client_model_changed_locked(model);
}

static td_err check_settings(const td_model_settings *settings,
                             td_errinfo *info)
{
    if (settings->limit_ms < 0 || settings->limit_ms > LONGEST_MS ||
        settings->latency_budget_ms < 0)
        return td_fail(info, TD_ERR_INVALID,
                       "limit_ms and latency_budget_ms: must not be negative, "
                       "nor the limit over a year");
    if (settings->jpeg_quality > 100)
        return td_fail(info, TD_ERR_INVALID,
                       "jpeg_quality: must be 1 to 100, or 0 for raw, got %u",
                       settings->jpeg_quality);
    return TD_OK;
}

static td_err take_settings(td_model *model, const td_model_settings *wanted,
                            td_errinfo *info)
{
    td_model_settings *settings = &model->settings;
    TD_TRY(td_edge_api_struct("settings", wanted, FIRST_SETTINGS_BYTES,
                              sizeof *settings, settings, info));
    TD_TRY(check_settings(settings, info));
    if (settings->limit_ms == 0) settings->limit_ms = DEFAULT_LIMIT_MS;
    TD_TRY(td_edge_api_chunk("model_id", settings->model_id, "TENDON_MODEL",
                             model->id, info));
    TD_TRY(td_edge_api_chunk("version", settings->version, "TENDON_VERSION",
                             model->version, info));
    TD_TRY(td_edge_api_chunk("application", settings->application,
                             "TENDON_APPLICATION", model->application, info));
    settings->model_id = settings->version = settings->application = NULL;
    model->route = (td_wire_route){
        .cluster = model->connection->cluster,
        .experiment = model->connection->experiment,
        .model = model->id,
        .version = model->version,
        .application = model->application,
    };
    return TD_OK;
}

static td_err declare(td_model *model, td_errinfo *info)
{
    const char *client = model->connection->client;
    td_net *net = model->connection->net;
    char key[TD_WIRE_MAX_KEY];
    TD_TRY(td_wire_key(&model->route, client, "obs", key, info));
    const td_net_qos *qos = model->connection->every ? &every_qos : &obs_qos;
    TD_TRY(td_net_publish(net, key, qos, &model->pub, info));
    TD_TRY(td_wire_key(&model->route, client, "action", key, info));
    return td_net_subscribe(net, key, td_client_inbox_on_action, model,
                            &model->actions, info);
}

static td_err open_parts(td_model *model, td_errinfo *info)
{
    TD_TRY(td_wire_encoder_new(&model->encoder));
    TD_TRY(td_wire_decoder_new(&model->decoder));
    TD_TRY(td_queue_new(LARGE_ANSWERS, sizeof(td_net_msg *), &model->large));
    TD_TRY(declare(model, info));
    return td_client_attach_open(model, info);
}

static void drop_result(void *answer)
{
    td_model_result_free(answer);
}

static void init_values(td_model *model, td_connection *connection)
{
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&model->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&model->lock, NULL);
    pthread_mutex_init(&model->sending, NULL);
    td_event_init(&model->wake);
    td_client_requests_init(&model->requests, connection->every, drop_result);
    td_hist_init(&model->round_trip_ns);
    model->connection = connection;
    model->boot = td_client_connection_boot();
    model->planned_ns = INT64_MAX;
    model->fd = -1;
}

static void unmake(td_model *model)
{
    td_net_msg *msg;
    if (model->actions) (void)td_net_undeclare(model->actions);
    if (model->pub) td_net_unpublish(model->pub);
    while (model->large && td_queue_pop(model->large, &msg) == TD_OK)
        td_net_msg_free(msg);
    if (model->large) td_queue_free(model->large);
    td_client_requests_done(&model->requests);
    for (uint32_t i = 0; i < TD_WIRE_MAX_IMAGES; i++)
        if (model->jpegs[i]) td_media_jpeg_encoder_free(model->jpegs[i]);
    td_client_outbox_drop(model);
    if (model->decoder) td_wire_decoder_free(model->decoder);
    if (model->encoder) td_wire_encoder_free(model->encoder);
    if (model->fd >= 0) (void)close(model->fd);
    pthread_cond_destroy(&model->changed);
    pthread_mutex_destroy(&model->sending);
    pthread_mutex_destroy(&model->lock);
    free(model);
}

td_err td_connection_model(td_connection *connection,
                           const td_model_settings *settings,
                           td_model **ret_model, td_errinfo *info)
{
    td_model *model = calloc(1, sizeof *model);
    if (!model) return TD_ERR_NOMEM;
    init_values(model, connection);
    td_err err = take_settings(model, settings, info);
    if (err == TD_OK) err = td_client_connection_add(connection, model, info);
    if (err != TD_OK) {
        unmake(model);
        return err;
    }
    err = open_parts(model, info);
    if (err != TD_OK) {
        td_model_close(model);
        return err;
    }
    *ret_model = model;
    return TD_OK;
}

void td_model_stop(td_model *model)
{
    pthread_mutex_lock(&model->lock);
    atomic_store(&model->state, TD_CLIENT_MODEL_STOPPED);
    td_client_requests_lose(&model->requests, td_clock_monotonic_ns(),
                            TD_CLIENT_WHY_STOPPED);
    td_client_model_changed_locked(model);
    pthread_mutex_unlock(&model->lock);
    td_event_signal(&model->wake);
}

void td_model_close(td_model *model)
{
    td_connection *connection = model->connection;
    td_model_stop(model);
    td_client_attach_close(model);
    if (model->actions) (void)td_net_undeclare(TD_TAKE(model->actions));
    if (model->pub) td_net_unpublish(TD_TAKE(model->pub));
    td_client_connection_remove(connection, model);
    unmake(model);
}

const char *td_model_state(const td_model *model)
{
    static const char *const names[] = {
        [TD_CLIENT_MODEL_CONNECTING] = "CONNECTING",
        [TD_CLIENT_MODEL_ATTACHED] = "ATTACHED",
        [TD_CLIENT_MODEL_RECONNECTING] = "RECONNECTING",
        [TD_CLIENT_MODEL_STOPPED] = "STOPPED",
    };
    return names[atomic_load(&model->state)];
}

static int64_t until_of(int64_t timeout_ms)
{
    if (timeout_ms < 0 || timeout_ms > LONGEST_MS) return INT64_MAX;
    return td_clock_monotonic_ns() + timeout_ms * TD_NS_PER_MS;
}

// Gives the lock up meanwhile.
static void wait_locked(td_model *model, int64_t until_ns)
{
    const struct timespec until = {until_ns / TD_NS_PER_S,
                                   until_ns % TD_NS_PER_S};
    if (until_ns == INT64_MAX)
        (void)pthread_cond_wait(&model->changed, &model->lock);
    else
        (void)pthread_cond_timedwait(&model->changed, &model->lock, &until);
}

static td_err why_locked(const td_model *model, td_errinfo *info)
{
    if (is_stopped(model))
        return td_fail(info, TD_ERR_CLOSED, "the model was stopped");
    if (model->why == TD_OK)
        return td_fail(info, TD_ERR_TIMEOUT, "no server was asked yet");
    return td_fail(info, model->why, "%s", model->why_text.text);
}

td_err td_model_wait(td_model *model, int64_t timeout_ms, td_errinfo *info)
{
    int64_t until_ns = until_of(timeout_ms);
    td_err err = TD_OK;
    pthread_mutex_lock(&model->lock);
    while (atomic_load(&model->state) != TD_CLIENT_MODEL_ATTACHED &&
           !is_stopped(model) && td_clock_monotonic_ns() < until_ns)
        wait_locked(model, until_ns);
    if (atomic_load(&model->state) != TD_CLIENT_MODEL_ATTACHED)
        err = why_locked(model, info);
    pthread_mutex_unlock(&model->lock);
    return err;
}

static td_err make_locked(td_model *model, const td_client_ended *ended,
                          td_model_result **ret_result)
{
    const char *detail =
        ended->why == TD_CLIENT_WHY_UNSENT ? model->why_text.text : "";
    if (!ended->answer)
        return td_client_result_new_end(ended, detail, ret_result);
    *ret_result = ended->answer;
    return TD_OK;
}

// Without memory for it the result stays where it is.
static td_err take_locked(td_model *model, td_model_result **ret_result)
{
    td_client_requests *requests = &model->requests;
    const td_client_ended ended = *td_client_requests_first(requests);
    td_model_result *result;
    TD_TRY(make_locked(model, &ended, &result));
    td_err err = td_client_result_add_superseded(result, requests->superseded,
                                                 requests->superseded_count);
    if (err != TD_OK) {
        if (!ended.answer) td_model_result_free(result);
        return err;
    }
    td_client_requests_take(requests);
    show_locked(model);
    result->round_trip_us = ended.took_ns / TD_NS_PER_US;
    if (ended.outcome == TD_MODEL_ANSWERED)
        td_hist_record(&model->round_trip_ns, ended.took_ns);
    *ret_result = result;
    return TD_OK;
}

// Whoever waits ends what expires meanwhile, to the point.
static bool wait_result_locked(td_model *model, int64_t until_ns)
{
    for (;;) {
        int64_t now_ns = td_clock_monotonic_ns();
        if (td_client_requests_first(&model->requests)) return true;
        int64_t due_ns = td_client_requests_due_ns(&model->requests);
        if (due_ns <= now_ns) {
            td_client_model_expire_locked(model, now_ns);
            continue;
        }
        if (now_ns >= until_ns || is_stopped(model)) return false;
        wait_locked(model, due_ns < until_ns ? due_ns : until_ns);
    }
}

td_err td_model_get_result(td_model *model, int64_t timeout_ms,
                           td_model_result **ret_result)
{
    int64_t until_ns = until_of(timeout_ms);
    td_err err;
    pthread_mutex_lock(&model->lock);
    if (wait_result_locked(model, until_ns))
        err = take_locked(model, ret_result);
    else
        err = is_stopped(model) ? TD_ERR_CLOSED : TD_ERR_TIMEOUT;
    pthread_mutex_unlock(&model->lock);
    return err;
}

td_err td_model_fd(td_model *model, int *ret_fd)
{
    pthread_mutex_lock(&model->lock);
    if (model->fd < 0) model->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    show_locked(model);
    int fd = model->fd;
    pthread_mutex_unlock(&model->lock);
    if (fd < 0) return TD_ERR_IO;
    *ret_fd = fd;
    return TD_OK;
}

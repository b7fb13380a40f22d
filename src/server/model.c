// SPDX-License-Identifier: Apache-2.0
// Shutdown: the status and liveliness declarations go first, so that nobody new
// comes, and no further batch is formed; then what runs is waited for; then
// each client's declarations go, and what still waited with them. The loop's
// thread does all of it before it returns; then everything is freed.
#include "server/model.h"

#include "base/log.h"
#include "server/shell.h"

#include <stdio.h>
#include <stdlib.h>

#define QUERIES 1024
#define SIGHTINGS 4096
#define TURN_NS TD_NS_PER_S
#define HEALTH_NS (50 * TD_NS_PER_MS) // between looks at the engine's

static const td_net_qos metrics_qos = {.priority = TD_NET_DATA_LOW};

// Transport's thread.
static void on_query(void *user, td_net_request *request)
{
    td_server_model *server = user;
    if (td_queue_push(server->queries, &request) == TD_OK) {
        td_event_signal(&server->wake);
        return;
    }
    td_server_telemetry_dropped(server);
    td_net_request_free(request);
}

static int64_t earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

// The loop comes round: once a second at least, so that it is seen to.
static void wait_turn(td_server_model *server, int64_t due_ns)
{
    int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
    atomic_store_explicit(&server->turned_ns, now_ns, memory_order_relaxed);
    (void)td_event_wait_until(&server->wake, earlier(due_ns, now_ns + TURN_NS));
}

static bool is_busy(td_server_model *server)
{
    pthread_mutex_lock(&server->device->lock);
    bool busy = server->busy > 0;
    pthread_mutex_unlock(&server->device->lock);
    return busy;
}

static void shut_down(td_server_model *server)
{
    pthread_mutex_lock(&server->device->lock);
    td_server_core_set_state(server->core, TD_WIRE_DRAINING);
    pthread_mutex_unlock(&server->device->lock);
    if (!server->draining) td_server_health_say(server, TD_WIRE_DRAINING);
    td_server_device_stop(server->device, server);
    (void)td_net_undeclare(server->status);
    if (server->watch) (void)td_net_undeclare(server->watch);
    (void)td_net_undeclare(server->token);
    td_server_reception_events(server); // who still asks is told that it drains
    while (is_busy(server))
        wait_turn(server, INT64_MAX);
    td_server_request_tell(server);
    td_server_reception_close(server);
    if (server->events) td_server_events_deliver(server->events);
    if (server->metrics) td_net_unpublish(server->metrics);
}

static void put_metrics(td_server_model *server, int64_t now_ns)
{
    if (now_ns < server->next_metrics_ns) return;
    td_server_telemetry_put(server, now_ns);
    server->next_metrics_ns = now_ns + server->metrics_period_ns;
}

// Everything that there is to do. Returns when there is more, if nothing comes.
static int64_t look(td_server_model *server)
{
    td_server_health_look(server);
    td_server_reception_events(server);
    td_server_reception_look(server);
    td_server_run_look(server->device);
    td_server_request_tell(server);
    int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
    int64_t due_ns = td_server_reception_silence(server, now_ns);
    put_metrics(server, now_ns);
    if (server->events) td_server_events_deliver(server->events);
    due_ns = earlier(due_ns, server->next_metrics_ns);
    if (server->engine->ops->health)
        due_ns = earlier(due_ns, now_ns + HEALTH_NS);
    return earlier(due_ns, td_server_device_plan_ns(server->device, server));
}

static void loop(void *user)
{
    td_server_model *server = user;
    int64_t due_ns = 0;
    if (td_engine_health_of(server->engine) == TD_ENGINE_READY)
        td_server_health_say(
            server, TD_WIRE_READY); // else the first look says what it is
    while (!atomic_load(&server->stop)) {
        wait_turn(server, due_ns);
        due_ns = look(server);
    }
    shut_down(server);
}

// One for each batch that the engine may have at a time.
static td_err make_runs(td_server_model *server)
{
    const td_engine_spec *spec = server->spec;
    uint32_t most = spec->continuous ? spec->max_batch : spec->most_inflight;
    if (most == 0) most = 1;
    for (uint32_t i = 0; i < most; i++) {
        td_server_run *run = calloc(1, sizeof *run);
        if (!run) return TD_ERR_NOMEM;
        run->server = server;
        run->next = server->free_runs;
        server->free_runs = run;
        TD_TRY(td_wire_encoder_new(&run->encoder));
    }
    return TD_OK;
}

static td_err make_core(td_server_model *server,
                        const td_server_model_config *config, td_errinfo *info)
{
    TD_TRY(td_server_device_add(server->device, server, &config->model, info));
    server->how = config->model;
    td_server_core_model model = {
        .spec = server->spec,
        .dispatch = server->device->dispatch,
        .number = server->model,
        .cadence = td_server_device_cadence(server->device, server->engine),
        .precompute = config->model.precompute,
        .prefix_age_ns = config->model.prefix_age_ns,
        .inputs = config->model.inputs,
    };
    if (td_engine_splits(server->engine))
        model.prefix_bytes = config->model.prefix_bytes;
    TD_TRY(td_server_core_new(&config->settings, &model, &server->core));
    td_server_core_set_state(server->core, TD_WIRE_READY);
    return TD_OK;
}

static void count_on(td_server_model *server, td_server_counter_id counter,
                     uint64_t from)
{
    if (from > 0)
        td_server_stats_count(server->stats, counter, TD_SERVER_NOBODY, from);
}

static td_err make(td_server_model *server,
                   const td_server_model_config *config, td_errinfo *info)
{
    td_event_init(&server->wake);
    TD_TRY(td_server_stats_new(server->capacity, &server->stats));
    td_server_stats_tap(server->stats, &config->tap);
    count_on(server, TD_SERVER_COUNT_BAD_QUERIES, config->bad_queries);
    count_on(server, TD_SERVER_COUNT_EVENTS_DROPPED, config->events_dropped);
    TD_TRY(td_queue_new(QUERIES, sizeof(td_net_request *), &server->queries));
    TD_TRY(td_queue_new(SIGHTINGS, sizeof(td_server_sighting),
                        &server->sightings));
    TD_TRY(td_wire_decoder_new(&server->decoder));
    TD_TRY(td_wire_decoder_new(&server->arrival_decoder));
    TD_TRY(td_wire_encoder_new(&server->encoder));
    server->peers = calloc(server->capacity, sizeof *server->peers);
    if (!server->peers) return TD_ERR_NOMEM;
    TD_TRY(make_runs(server));
    return make_core(server, config, info);
}

static td_err declare(td_server_model *server,
                      const td_server_model_config *config, td_errinfo *info)
{
    char key[TD_WIRE_MAX_KEY];
    char token[TD_WIRE_MAX_KEY + 2 * TD_WIRE_MAX_NAME];
    if (config->metrics_period_ns > 0) {
        TD_TRY(td_wire_key(&server->route, NULL, "metrics", key, info));
        TD_TRY(td_net_publish(server->net, key, &metrics_qos, &server->metrics,
                              info));
    }
    TD_TRY(td_server_reception_watch(server, info));
    TD_TRY(td_wire_key(&server->route, NULL, "status", key, info));
    TD_TRY(td_net_serve(server->net, key, on_query, server, &server->status,
                        info));
    (void)snprintf(token, sizeof token, "%s/alive/%s/%llu", key, server->id,
                   (unsigned long long)server->boot);
    return td_net_token(server->net, token, &server->token, info);
}

static void free_requests(td_server_request *request)
{
    while (request) {
        td_server_request *next = request->next;
        td_server_request_free(request);
        request = next;
    }
}

static void free_runs(td_server_run *run)
{
    while (run) {
        td_server_run *next = run->next;
        if (run->encoder) td_wire_encoder_free(run->encoder);
        free(run);
        run = next;
    }
}

// Frees what was made; nothing declared is left.
static void unmake(td_server_model *server)
{
    td_net_request *query;
    while (server->queries && td_queue_pop(server->queries, &query) == TD_OK)
        td_net_request_free(query);
    if (server->core) td_server_core_free(server->core);
    if (server->added) td_server_device_remove(server->device, server);
    if (server->owns_device) td_server_device_close(server->device);
    free_requests(server->free_requests);
    free_runs(server->free_runs);
    if (server->encoder) td_wire_encoder_free(server->encoder);
    if (server->arrival_decoder) td_wire_decoder_free(server->arrival_decoder);
    if (server->decoder) td_wire_decoder_free(server->decoder);
    if (server->sightings) td_queue_free(server->sightings);
    if (server->queries) td_queue_free(server->queries);
    if (server->stats) td_server_stats_free(server->stats);
    free(server->tokens.list);
    pthread_mutex_destroy(&server->arrival_lock);
    free(server->peers);
    free(server);
}

static void undeclare(td_server_model *server)
{
    if (server->status) (void)td_net_undeclare(server->status);
    if (server->watch) (void)td_net_undeclare(server->watch);
    if (server->token) (void)td_net_undeclare(server->token);
    if (server->metrics) td_net_unpublish(server->metrics);
}

static td_err own_device(td_server_model *server,
                         const td_server_model_config *config, td_errinfo *info)
{
    td_server_device_settings settings = td_server_device_defaults;
    settings.clients = config->settings.capacity;
    TD_TRY(td_server_device_open(&settings, &server->device, info));
    server->owns_device = true;
    return TD_OK;
}

static td_err start(td_server_model *server,
                    const td_server_model_config *config, td_errinfo *info)
{
    if (!server->device) TD_TRY(own_device(server, config, info));
    TD_TRY(make(server, config, info));
    TD_TRY(declare(server, config, info));
    td_thread_config thread = {.name = "td-server", .cpu = -1};
    return td_thread_start(&thread, loop, server, &server->thread, info);
}

td_err td_server_model_open(td_net *net, td_engine *engine,
                            const td_server_model_config *config,
                            td_server_model **ret_server, td_errinfo *info)
{
    td_server_model *server = calloc(1, sizeof *server);
    if (!server) return TD_ERR_NOMEM;
    server->device = config->device;
    server->net = net;
    server->engine = engine;
    server->spec = engine->ops->spec(engine);
    server->route = config->route;
    server->id = config->settings.server_id;
    server->boot = config->settings.boot;
    server->capacity = config->settings.capacity;
    server->metrics_period_ns = config->metrics_period_ns;
    server->events = config->events;
    server->opened_ns = td_clock_now_ns(&td_clock_monotonic);
    atomic_init(&server->turned_ns, server->opened_ns);
    server->next_metrics_ns =
        config->metrics_period_ns > 0
            ? server->opened_ns + config->metrics_period_ns
            : INT64_MAX;
    pthread_mutex_init(&server->arrival_lock, NULL);
    td_err err = start(server, config, info);
    if (err != TD_OK) {
        undeclare(server);
        if (server->added) td_server_device_stop(server->device, server);
        unmake(server);
        return err;
    }
    *ret_server = server;
    return TD_OK;
}

void td_server_model_close(td_server_model *server)
{
    atomic_store(&server->stop, true);
    td_event_signal(&server->wake);
    td_thread_join(server->thread);
    unmake(server);
}

td_err td_server_model_use(td_server_model *server,
                           const td_server_settings *settings,
                           const td_server_model_settings *model)
{
    pthread_mutex_lock(&server->device->lock);
    td_err err = td_server_dispatch_set(server->device->dispatch, server->model,
                                        server->spec, model);
    if (err == TD_OK) {
        td_server_core_use(server->core, settings, model);
        server->how = *model;
        server->changed = true;
        td_event_signal(&server->wake);
    }
    pthread_mutex_unlock(&server->device->lock);
    return err;
}

void td_server_model_report_get(td_server_model *server,
                                td_server_model_report *ret_report)
{
    pthread_mutex_lock(&server->device->lock);
    td_server_core_counts(server->core, &ret_report->counts);
    ret_report->clients = td_server_core_clients(server->core);
    pthread_mutex_unlock(&server->device->lock);
    ret_report->events_dropped =
        td_server_stats_counter(server->stats, TD_SERVER_COUNT_EVENTS_DROPPED);
    ret_report->puts_failed =
        td_server_stats_counter(server->stats, TD_SERVER_COUNT_PUTS_FAILED);
}

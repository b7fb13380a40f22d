// SPDX-License-Identifier: Apache-2.0
// The admin page over HTTP: a thread of base/http answers, this file says what.
//
// A model has a place here from the start, so that the page shows that it is
// being loaded; td_server_admin_show() puts the model there and takes it away.
// `lock` guards the places and is held while one is read, so show(NULL) returns
// when nobody reads it any more, and the model may be closed. Reading takes the
// device's lock inside it; nobody takes them the other way round.
//
// /healthz looks at when each model's loop last came round, and never waits for
// a loop. Everything else is a view (view.c) printed as JSON or for Prometheus.
//
// Close: the HTTP server is closed, which waits for the answer being written;
// then everything is freed.
#include "server/report/admin.h"

#include "base/clock.h"
#include "base/http/http.h"
#include "base/http/query.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_S 60
#define STALL_NS (5 * TD_NS_PER_S)
#define JSON_TYPE "application/json"
#define LINES_TYPE "application/x-ndjson"

enum { BAD_REQUEST = 400, NO_MEMORY = 500, UNAVAILABLE = 503 };

// A model's place; its server comes and goes.
struct place {
    td_server_model *server; // NULL: not yet, or not any more
    bool was_shown;
};

struct td_server_admin {
    td_server_admin_config config;
    int64_t opened_ns;
    int64_t stall_ns;
    td_http *http;
    pthread_mutex_t lock; // guards places; held while one is read
    struct place places[];
};

// What somebody wants to see.
struct wanted {
    int64_t window_ns; // 0: no windows
    const char *model; // NULL: all
    const char *client;
};

static td_err see_locked(const td_server_admin *admin, size_t index,
                         int64_t now_ns, const struct wanted *wanted,
                         td_server_view *view)
{
    const struct place *place = &admin->places[index];
    *view = (td_server_view){.about = admin->config.models[index]};
    view->state = place->was_shown ? TD_WIRE_DRAINING : TD_WIRE_WARMING;
    if (!place->server) return TD_OK;
    return td_server_model_view(place->server, now_ns, wanted->window_ns,
                                wanted->client, view);
}

static bool is_wanted(const td_server_admin *admin, size_t index,
                      const struct wanted *wanted)
{
    const char *model = admin->config.models[index].model;
    return !wanted->model || strcmp(wanted->model, model) == 0;
}

static void free_views(td_server_view *views, size_t count)
{
    for (size_t i = 0; i < count; i++)
        td_server_view_done(&views[i]);
    free(views);
}

// The views, and how many; free with free_views(). NULL for want of memory.
static td_server_view *look(td_server_admin *admin, int64_t now_ns,
                            const struct wanted *wanted, size_t *ret_count)
{
    size_t count = 0;
    td_server_view *views =
        calloc(admin->config.model_count + 1, sizeof *views);
    if (!views) return NULL;
    td_err err = TD_OK;
    pthread_mutex_lock(&admin->lock);
    for (size_t i = 0; err == TD_OK && i < admin->config.model_count; i++)
        if (is_wanted(admin, i, wanted))
            err = see_locked(admin, i, now_ns, wanted, &views[count++]);
    pthread_mutex_unlock(&admin->lock);
    *ret_count = count;
    if (err == TD_OK) return views;
    free_views(views, count);
    return NULL;
}

static void give_metrics(td_http_reply *reply, const char *query, void *user)
{
    (void)query;
    size_t count;
    const struct wanted all = {.window_ns = 0};
    td_server_view *views = look(user, td_clock_monotonic_ns(), &all, &count);
    if (!views) {
        td_http_refuse(reply, NO_MEMORY, "out of memory");
        return;
    }
    td_prom prom;
    td_prom_init(&prom, reply->out);
    reply->type = TD_PROM_TEXT_TYPE;
    td_server_view_prometheus(views, count, &prom);
    free_views(views, count);
}

// Says which loops stand still.
static void give_health(td_http_reply *reply, const char *query, void *user)
{
    (void)query;
    td_server_admin *admin = user;
    pthread_mutex_lock(&admin->lock);
    for (size_t i = 0; i < admin->config.model_count; i++) {
        const td_server_model *server = admin->places[i].server;
        if (!server) continue;
        int64_t still_ns =
            td_clock_monotonic_ns() - td_server_model_looped_ns(server);
        if (still_ns < admin->stall_ns) continue;
        reply->status = UNAVAILABLE;
        (void)fprintf(reply->out, "%s: its loop has stood still for %.1f s\n",
                      admin->config.models[i].server,
                      (double)still_ns / (double)TD_NS_PER_S);
    }
    pthread_mutex_unlock(&admin->lock);
    if (reply->status != UNAVAILABLE) (void)fputs("OK\n", reply->out);
}

static void write_readiness(FILE *out, const td_server_view *views,
                            size_t count, bool ready)
{
    td_json json;
    td_json_init(&json, out);
    td_json_object(&json, NULL);
    td_json_bool(&json, "ready", ready);
    td_json_array(&json, "models");
    for (size_t i = 0; i < count; i++) {
        td_json_object(&json, NULL);
        td_json_text(&json, "server", views[i].about.server);
        td_json_text(&json, "model", views[i].about.model);
        td_json_text(&json, "state", td_wire_server_state_name(views[i].state));
        td_json_end_object(&json);
    }
    td_json_end_array(&json);
    td_json_end_object(&json);
    (void)fputc('\n', out);
}

static void give_readiness(td_http_reply *reply, const char *query, void *user)
{
    (void)query;
    size_t count;
    const struct wanted all = {.client = ""}; // of no client
    td_server_view *views = look(user, td_clock_monotonic_ns(), &all, &count);
    if (!views) {
        td_http_refuse(reply, NO_MEMORY, "out of memory");
        return;
    }
    bool ready = true;
    for (size_t i = 0; i < count; i++)
        ready = ready && views[i].state == TD_WIRE_READY;
    reply->type = JSON_TYPE;
    reply->status = ready ? reply->status : UNAVAILABLE;
    write_readiness(reply->out, views, count, ready);
    free_views(views, count);
}

static void write_stats(const td_server_admin *admin, FILE *out,
                        const td_server_view *views, size_t count,
                        int64_t now_ns, int64_t window_ns)
{
    int64_t since_ns = td_server_window_since_ns(now_ns, window_ns);
    if (since_ns < admin->opened_ns) since_ns = admin->opened_ns;
    td_json json;
    td_json_init(&json, out);
    td_json_object(&json, NULL);
    td_json_number(&json, "window_s", (double)window_ns / TD_NS_PER_S);
    td_json_number(&json, "covers_s", (double)(now_ns - since_ns) / 1e9);
    td_json_array(&json, "models");
    for (size_t i = 0; i < count; i++)
        td_server_view_json(&views[i], now_ns, &json);
    td_json_end_array(&json);
    td_json_end_object(&json);
    (void)fputc('\n', out);
}

static td_err read_wanted(const char *text, td_query *query,
                          struct wanted *ret_wanted, td_errinfo *info)
{
    static const char *const names[] = {"window", "model", "client", NULL};
    int64_t window_s = WINDOW_S;
    TD_TRY(td_query_parse(text, strlen(text), query, info));
    TD_TRY(td_query_only(query, names, info));
    TD_TRY(td_query_number(query, "window", 1, TD_SERVER_WINDOW_MAX_S,
                           &window_s, info));
    *ret_wanted = (struct wanted){
        .window_ns = window_s * TD_NS_PER_S,
        .model = td_query_text(query, "model"),
        .client = td_query_text(query, "client"),
    };
    return TD_OK;
}

static void give_stats(td_http_reply *reply, const char *text, void *user)
{
    td_query query;
    struct wanted wanted;
    td_errinfo info = {.text = ""};
    if (read_wanted(text, &query, &wanted, &info) != TD_OK) {
        td_http_refuse(reply, BAD_REQUEST, info.text);
        return;
    }
    size_t count;
    int64_t now_ns = td_clock_monotonic_ns();
    td_server_view *views = look(user, now_ns, &wanted, &count);
    if (!views) {
        td_http_refuse(reply, NO_MEMORY, "out of memory");
        return;
    }
    reply->type = JSON_TYPE;
    write_stats(user, reply->out, views, count, now_ns, wanted.window_ns);
    free_views(views, count);
}

static void write_event(const td_server_admin *admin, FILE *out,
                        const td_server_events_item *event, uint64_t lost)
{
    td_json json;
    td_json_init(&json, out);
    td_json_object(&json, NULL);
    td_json_whole(&json, "number", event->number);
    td_json_number(&json, "at_s",
                   (double)(event->at_ns - admin->opened_ns) / 1e9);
    td_json_text(&json, "event", td_server_event_name(event->kind));
    if (event->server[0]) td_json_text(&json, "server", event->server);
    if (event->client[0]) td_json_text(&json, "client", event->client);
    td_json_text(&json, "text", event->text);
    if (lost > 0) td_json_whole(&json, "lost", lost);
    td_json_end_object(&json);
    (void)fputc('\n', out);
}

static td_err read_cursor(const td_server_admin *admin, const char *text,
                          uint64_t *ret_after, int64_t *ret_limit,
                          td_errinfo *info)
{
    static const char *const names[] = {"after", "limit", NULL};
    td_query query;
    int64_t after = 0, limit = TD_SERVER_EVENTS_KEPT;
    TD_TRY(td_query_parse(text, strlen(text), &query, info));
    TD_TRY(td_query_only(&query, names, info));
    TD_TRY(td_query_number(&query, "after", 0, INT64_MAX, &after, info));
    TD_TRY(td_query_number(&query, "limit", 1, TD_SERVER_EVENTS_KEPT, &limit,
                           info));
    uint64_t newest = td_server_events_newest(admin->config.events);
    if ((uint64_t)after > newest)
        return td_fail(info, TD_ERR_INVALID,
                       "after: the newest event is %llu: the server was "
                       "restarted, begin again with after=0",
                       (unsigned long long)newest);
    *ret_after = (uint64_t)after;
    *ret_limit = limit;
    return TD_OK;
}

static void give_events(td_http_reply *reply, const char *text, void *user)
{
    td_server_admin *admin = user;
    uint64_t after = 0, lost;
    int64_t limit = 0;
    td_errinfo info = {.text = ""};
    if (read_cursor(admin, text, &after, &limit, &info) != TD_OK) {
        td_http_refuse(reply, BAD_REQUEST, info.text);
        return;
    }
    reply->type = LINES_TYPE;
    td_server_events_item event;
    for (; limit > 0; limit--) {
        if (!td_server_events_next(admin->config.events, after, &event, &lost))
            break;
        write_event(admin, reply->out, &event, lost);
        after = event.number;
    }
}

static const td_http_route routes[] = {
    {"/metrics", give_metrics},  {"/healthz", give_health},
    {"/readyz", give_readiness}, {"/v1/stats", give_stats},
    {"/v1/events", give_events},
};

td_err td_server_admin_open(const td_server_admin_config *config,
                            td_server_admin **ret_admin, td_errinfo *info)
{
    TD_AUTO(td_server_admin) *admin = calloc(
        1, sizeof *admin + config->model_count * sizeof admin->places[0]);
    if (!admin) return TD_ERR_NOMEM;
    pthread_mutex_init(&admin->lock, NULL);
    admin->config = *config;
    admin->stall_ns = config->stall_ns ? config->stall_ns : STALL_NS;
    admin->opened_ns = td_clock_monotonic_ns();
    const td_http_config http = {
        .what = "admin",
        .address = config->address,
        .port = config->port,
        .patience_ns = config->patience_ns,
        .routes = routes,
        .route_count = TD_COUNT_OF(routes),
        .user = admin,
    };
    TD_TRY(td_http_open(&http, &admin->http, info));
    *ret_admin = TD_TAKE(admin);
    return TD_OK;
}

void td_server_admin_close(td_server_admin *admin)
{
    if (admin->http) td_http_close(admin->http);
    pthread_mutex_destroy(&admin->lock);
    free(admin);
}

uint16_t td_server_admin_port(const td_server_admin *admin)
{
    return td_http_port(admin->http);
}

void td_server_admin_show(td_server_admin *admin, size_t model,
                          td_server_model *server)
{
    pthread_mutex_lock(&admin->lock);
    admin->places[model].server = server;
    admin->places[model].was_shown = true;
    pthread_mutex_unlock(&admin->lock);
}

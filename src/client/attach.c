// SPDX-License-Identifier: Apache-2.0
// The thread td-model: finds a server, attaches to it, and watches it.
//
// Two states, and one function for each. search(): ask for the status of every
// server of this model, choose one, ask it to take this client; when that
// fails, wait, longer each time, but ask soon when a server appears on the
// network. watch(): sleep until woken; when the server's liveliness is gone, or
// when it did not answer in time and does not know this client any more, what
// was sent is lost and the search starts again. Finding and watching are the
// edge's own code (edge/session).
//
// While it sleeps the thread also does what nobody else may be there for: it
// ends what expires and joins large answers that the transport's thread left.
//
// `lock` guards what the program sees: the state, the server's name, why there
// is none. Fields that only this thread uses need none.
//
// Stop: the state becomes STOPPED and the event is signalled. Drain: the thread
// leaves its loop and tells the server that it leaves; td_client_attach_close()
// joins it. Free: the watch on the network is closed, then the finder.
#include "base/clock.h"
#include "base/log.h"
#include "client/model.h"
#include "edge/session/state.h"

#include <string.h>

static bool is_in(const td_model *model, td_client_model_state state)
{
    return atomic_load(&model->state) == (int)state;
}

// A stopped one stays so.
static bool enter_locked(td_model *model, td_client_model_state state)
{
    if (is_in(model, TD_CLIENT_MODEL_STOPPED)) return false;
    atomic_store(&model->state, (int)state);
    return true;
}

static void note_attached(td_model *model)
{
    pthread_mutex_lock(&model->lock);
    bool entered = enter_locked(model, TD_CLIENT_MODEL_ATTACHED);
    model->attached++;
    model->doubts = false;
    td_client_model_changed_locked(model);
    pthread_mutex_unlock(&model->lock);
    model->attempts = 0;
    model->said[0] = 0;
    if (entered)
        td_log_text(TD_LOG_INFO, "model %s: attached to %s", model->id,
                    model->found.id);
}

static void note_lost(td_model *model, const char *why)
{
    pthread_mutex_lock(&model->lock);
    (void)enter_locked(model, TD_CLIENT_MODEL_RECONNECTING);
    td_client_requests_lose(&model->requests, td_clock_monotonic_ns(),
                            TD_CLIENT_WHY_GONE);
    model->server[0] = 0;
    model->why = td_fail(&model->why_text, TD_ERR_NOTFOUND, "server %s %s",
                         model->found.id, why);
    td_client_model_changed_locked(model);
    pthread_mutex_unlock(&model->lock);
    td_log_text(TD_LOG_WARN, "model %s: server %s %s", model->id,
                model->found.id, why);
}

// The same complaint is said once.
static void note_failed(td_model *model, td_err err, const td_errinfo *info)
{
    pthread_mutex_lock(&model->lock);
    model->why = err;
    model->why_text = *info;
    pthread_mutex_unlock(&model->lock);
    if (strcmp(model->said, info->text) == 0) return;
    memcpy(model->said, info->text, sizeof model->said);
    td_log_text(err == TD_ERR_NOTFOUND ? TD_LOG_INFO : TD_LOG_WARN,
                "model %s: waiting: %s", model->id, info->text);
}

// The server's name is known before it is asked, so that its first answer is
// not a stranger's.
static td_err join(td_model *model, const td_edge_server *only,
                   td_errinfo *info)
{
    td_edge_server server;
    TD_TRY(td_edge_finder_find(model->finder, only, NULL, &server, info));
    td_edge_presence_follow(model->presence, &server);
    model->found = server;
    pthread_mutex_lock(&model->lock);
    memcpy(model->server, server.id, sizeof model->server);
    pthread_mutex_unlock(&model->lock);
    return td_edge_finder_attach(model->finder, &server, info);
}

// Sleeps until woken, or until `until_ns`; no longer than until something
// expires. Where nothing is open, what is asked meanwhile expires later than
// that, and need not wake this thread.
static void rest_until(td_model *model, int64_t until_ns)
{
    pthread_mutex_lock(&model->lock);
    int64_t now_ns = td_clock_monotonic_ns();
    int64_t limit_ns = model->settings.limit_ms * TD_NS_PER_MS;
    td_client_model_expire_locked(model, now_ns);
    int64_t due_ns = td_client_requests_due_ns(&model->requests);
    if (due_ns > now_ns + limit_ns) due_ns = now_ns + limit_ns;
    if (due_ns > until_ns) due_ns = until_ns;
    model->planned_ns = due_ns;
    pthread_mutex_unlock(&model->lock);
    (void)td_event_wait_until(&model->wake, due_ns);
    td_client_inbox_join(model);
}

// Waits before the next attempt; less when a server appears, but not so that
// all who waited for it ask at once.
static void rest(td_model *model)
{
    int64_t due_ns = td_clock_monotonic_ns() +
                     td_edge_state_retry_ns(model->attempts++, &model->rand);
    while (!is_in(model, TD_CLIENT_MODEL_STOPPED) &&
           td_clock_monotonic_ns() < due_ns) {
        rest_until(model, due_ns);
        if (!td_edge_presence_has_appeared(model->presence)) continue;
        int64_t soon_ns =
            td_clock_monotonic_ns() + (int64_t)(td_rand_unit(&model->rand) *
                                                (double)TD_EDGE_RETRY_MIN_NS);
        if (soon_ns < due_ns) due_ns = soon_ns;
    }
}

static void search(td_model *model)
{
    td_errinfo info = {.text = ""};
    // Whoever is there is asked now.
    (void)td_edge_presence_has_appeared(model->presence);
    td_err err = join(model, NULL, &info);
    if (err == TD_OK) {
        note_attached(model);
        td_client_outbox_flush(model);
    } else {
        note_failed(model, err, &info);
        rest(model);
    }
}

static bool has_doubts(td_model *model)
{
    pthread_mutex_lock(&model->lock);
    bool doubts = model->doubts;
    model->doubts = false;
    pthread_mutex_unlock(&model->lock);
    return doubts;
}

// It did not answer in time: one that has forgotten this client, or takes no
// more, is left.
static void ask_again(td_model *model)
{
    td_errinfo info = {.text = ""};
    td_edge_server same = model->found;
    if (join(model, &same, &info) != TD_OK) note_lost(model, "does not answer");
}

static void watch(td_model *model)
{
    if (td_edge_presence_is_lost(model->presence))
        note_lost(model, "is gone");
    else if (has_doubts(model))
        ask_again(model);
    else
        rest_until(model, INT64_MAX);
}

void td_client_attach_run(void *user)
{
    td_model *model = user;
    while (!is_in(model, TD_CLIENT_MODEL_STOPPED))
        if (is_in(model, TD_CLIENT_MODEL_ATTACHED))
            watch(model);
        else
            search(model);
    if (model->server[0] && !td_edge_presence_is_lost(model->presence))
        td_edge_finder_leave(model->finder, &model->found);
}

td_err td_client_attach_open(td_model *model, td_errinfo *info)
{
    const td_edge_finder_config config = {
        .net = model->connection->net,
        .route = model->route,
        .client = model->connection->client,
        .boot = model->boot,
        .replies = model->replies,
        .every = model->connection->every,
    };
    const td_thread_config thread = {.name = "td-model", .cpu = -1};
    td_rand_init(&model->rand, model->boot);
    TD_TRY(td_edge_finder_new(&config, &model->finder));
    TD_TRY(
        td_edge_presence_open(&config, &model->wake, &model->presence, info));
    return td_thread_start(&thread, td_client_attach_run, model, &model->thread,
                           info);
}

void td_client_attach_close(td_model *model)
{
    if (model->thread) td_thread_join(model->thread);
    if (model->presence) td_edge_presence_close(model->presence);
    if (model->finder) td_edge_finder_free(model->finder);
}

// SPDX-License-Identifier: Apache-2.0
// Questions to servers and what became of the replies.
//
// A question is a query on the model's key `status`; every server of the model
// may reply. Without a payload it asks who is there (find); with a
// td_wire_attach it asks one of them to take the client, or tells it that the
// client leaves. The caller waits for the end of the query, a second at most,
// then looks at the replies one by one, on its own thread, and picks: one that
// is ready before one that is degraded, another before the one that was just
// left, the less loaded before the more. A reply that is of no use is counted
// by why and said; of several reasons the one most worth waiting for is
// reported.
//
// The transport's callbacks only leave replies in a queue. One thread asks at a
// time, and only one query is under way.
//
// Lock: it guards `answered`. The callback that ends a query signals under it,
// because whoever sees the answer may free the finder.
//
// End: a query that was begun is always waited for, since its callbacks know
// this finder; so there is none when it is freed.
#include "edge/session/finder.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/sync/event.h"
#include "base/sync/queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define REPLIES 64
#define QUERY_NS (1 * TD_NS_PER_S)

struct td_edge_finder {
    td_edge_finder_config config;
    td_wire_encoder *encoder;
    td_wire_decoder *decoder;
    td_queue *replies; // td_net_msg *
    td_event wake;
    pthread_mutex_t lock; // guards `answered`
    bool answered;        // the query is done
    td_wire_status status;
};

// What one search looks for, and the best so far.
typedef struct search {
    const td_edge_server *only, *last;
    bool found;
    td_edge_server best;
    td_edge_reply why; // none is chosen so far
} search;

const char *td_edge_reply_name(td_edge_reply reply)
{
    static const char *const names[] = {
#define NAME(name, text) text,
        TD_EDGE_REPLIES(NAME)
#undef NAME
    };
    return names[reply];
}

const char *td_edge_reply_counter(td_edge_reply reply)
{
    static const char *const names[] = {
#define NAME(name, text) "status_" text,
        TD_EDGE_REPLIES(NAME)
#undef NAME
    };
    return names[reply];
}

bool td_edge_server_same(const td_edge_server *a, const td_edge_server *b)
{
    return a->boot == b->boot && strcmp(a->id, b->id) == 0;
}

static uint64_t count(td_edge_finder *finder, td_edge_reply reply)
{
    return atomic_fetch_add(&finder->config.replies[reply], 1) + 1;
}

// A reply is of no use: others may be. Any thread.
static void pass_over(td_edge_finder *finder, td_edge_reply reply,
                      const char *why)
{
    uint64_t so_far = count(finder, reply);
    if (!td_log_is_due(so_far)) return;
    td_log_text(reply == TD_EDGE_REPLY_NOT_READY ? TD_LOG_INFO : TD_LOG_WARN,
                "edge: status passed over: %s: %s (%llu so far)",
                td_edge_reply_name(reply), why, (unsigned long long)so_far);
}

// Transport's thread.
static void on_reply(void *user, const td_net_sample *sample)
{
    td_edge_finder *finder = user;
    td_net_msg *msg = NULL;
    if (sample->is_error) {
        pass_over(finder, TD_EDGE_REPLY_FAILED, "an error came instead");
        return;
    }
    if (td_net_keep(sample, &msg) == TD_OK &&
        td_queue_push(finder->replies, &msg) == TD_OK)
        return;
    pass_over(finder, TD_EDGE_REPLY_UNKEPT, "too many at once");
    if (msg) td_net_msg_free(msg);
}

// Transport's thread. All under the lock: whoever sees the answer may free the
// finder.
static void on_done(void *user)
{
    td_edge_finder *finder = user;
    pthread_mutex_lock(&finder->lock);
    finder->answered = true;
    td_event_signal(&finder->wake);
    pthread_mutex_unlock(&finder->lock);
}

static bool is_answered(td_edge_finder *finder)
{
    pthread_mutex_lock(&finder->lock);
    bool answered = finder->answered;
    pthread_mutex_unlock(&finder->lock);
    return answered;
}

static td_err ask(td_edge_finder *finder, td_slice payload, td_errinfo *info)
{
    const td_edge_finder_config *config = &finder->config;
    char key[TD_WIRE_MAX_KEY];
    TD_TRY(td_wire_key(&config->route, NULL, "status", key, info));
    finder->answered = false; // no query is under way
    TD_TRY(td_net_query(config->net, key, payload, QUERY_NS, on_reply, on_done,
                        finder, info));
    while (!is_answered(finder))
        (void)td_event_wait_until(&finder->wake, INT64_MAX);
    return TD_OK;
}

static td_err read_reply(td_edge_finder *finder, td_net_msg *msg,
                         td_errinfo *info)
{
    td_slice bytes;
    TD_TRY(td_net_msg_bytes(msg, &bytes));
    return td_wire_status_decode(finder->decoder, bytes.data, bytes.size,
                                 &finder->status, info);
}

static td_edge_server server_of(const td_wire_status *status)
{
    td_edge_server server = {
        .boot = status->server_boot,
        .load = status->load,
        .degraded = status->state == TD_WIRE_DEGRADED,
    };
    memcpy(server.id, status->server.data, status->server.size);
    return server;
}

static bool is_better(const search *wanted, const td_edge_server *server)
{
    if (!wanted->found) return true;
    if (server->degraded != wanted->best.degraded) return !server->degraded;
    if (wanted->last) {
        if (td_edge_server_same(server, wanted->last)) return false;
        if (td_edge_server_same(&wanted->best, wanted->last)) return true;
    }
    return server->load < wanted->best.load;
}

// Looks at one reply. The reason not to choose it is in `why`.
static td_err consider(td_edge_finder *finder, td_net_msg *msg, search *wanted,
                       td_errinfo *why)
{
    const td_edge_finder_config *config = &finder->config;
    const td_wire_status *status = &finder->status;
    TD_TRY(read_reply(finder, msg, why));
    td_edge_server server = server_of(status);
    if (wanted->only && !td_edge_server_same(&server, wanted->only))
        return TD_OK;
    // One that is loading may not know itself yet.
    if (status->state == TD_WIRE_WARMING || status->state == TD_WIRE_DRAINING)
        return td_fail(why, TD_ERR_NOTFOUND, "server %s is %s", server.id,
                       td_wire_server_state_name(status->state));
    if (config->fits) TD_TRY(config->fits(config->user, status, &server, why));
    if (is_better(wanted, &server)) wanted->best = server;
    wanted->found = true;
    return TD_OK;
}

static td_edge_reply reason_of(td_err err)
{
    switch (err) {
    case TD_ERR_NOTFOUND:
        return TD_EDGE_REPLY_NOT_READY;
    case TD_ERR_MISMATCH:
        return TD_EDGE_REPLY_MISMATCH;
    case TD_ERR_VERSION:
        return TD_EDGE_REPLY_NEWER;
    default:
        return TD_EDGE_REPLY_UNREADABLE;
    }
}

static td_err nobody(td_edge_finder *finder, td_errinfo *info)
{
    const td_wire_route *route = &finder->config.route;
    (void)count(finder, TD_EDGE_REPLY_NOBODY);
    return td_fail(info, TD_ERR_NOTFOUND, "no server answers for %s/%s/%s",
                   route->model, route->version, route->application);
}

td_err td_edge_finder_find(td_edge_finder *finder, const td_edge_server *only,
                           const td_edge_server *last,
                           td_edge_server *ret_server, td_errinfo *info)
{
    search wanted = {.only = only, .last = last, .why = TD_EDGE_REPLY_NOBODY};
    td_err err = TD_OK;
    td_net_msg *msg;
    TD_TRY(ask(finder, (td_slice){0}, info));
    while (td_queue_pop(finder->replies, &msg) == TD_OK) {
        td_errinfo why = {.text = ""};
        td_err one = consider(finder, msg, &wanted, &why);
        if (one != TD_OK) pass_over(finder, reason_of(one), why.text);
        if (one != TD_OK && reason_of(one) < wanted.why) {
            wanted.why = reason_of(one);
            err = td_fail(info, one, "%s", why.text);
        }
        td_net_msg_free(msg);
    }
    if (!wanted.found) return err != TD_OK ? err : nobody(finder, info);
    *ret_server = wanted.best;
    return TD_OK;
}

static td_err ask_to_attach(td_edge_finder *finder,
                            const td_edge_server *server, bool leave,
                            td_errinfo *info)
{
    const td_edge_finder_config *config = &finder->config;
    td_wire_attach message = {
        .client = td_wire_text_of(config->client),
        .server = td_wire_text_of(server->id),
        .server_boot = server->boot,
        .boot = config->boot,
        .route = config->generation,
        .leave = leave,
        .every = config->every,
    };
    TD_TRY(td_wire_attach_encode(finder->encoder, &message, info));
    size_t part_count;
    const td_slice *parts = td_wire_encoder_parts(finder->encoder, &part_count);
    return ask(finder, parts[0], info); // an attach is one small part
}

// Whether this is the server's answer to an attach.
static bool is_verdict(const td_wire_status *status,
                       const td_edge_server *server)
{
    return status->has_attach && status->server_boot == server->boot &&
           td_wire_text_is(status->server, server->id);
}

// NOTFOUND: it is not, which anybody's may be who answers.
static td_err read_verdict(td_edge_finder *finder, const td_edge_server *server,
                           td_net_msg *msg, td_errinfo *info)
{
    const td_wire_status *status = &finder->status;
    td_errinfo why = {.text = ""};
    td_err err = read_reply(finder, msg, &why);
    if (err != TD_OK) {
        pass_over(finder, reason_of(err), why.text);
        return TD_ERR_NOTFOUND;
    }
    if (!is_verdict(status, server)) {
        pass_over(finder, TD_EDGE_REPLY_UNASKED, server_of(status).id);
        return TD_ERR_NOTFOUND;
    }
    if (status->attached) return TD_OK;
    (void)count(finder, TD_EDGE_REPLY_REFUSED);
    return td_fail(info, TD_ERR_DENIED, "%.*s", (int)status->attach_reason.size,
                   status->attach_reason.data);
}

static td_err ask_server(td_edge_finder *finder, const td_edge_server *server,
                         bool leave, td_errinfo *info)
{
    TD_TRY(ask_to_attach(finder, server, leave, info));
    td_err err = TD_ERR_NOTFOUND;
    td_net_msg *msg;
    while (td_queue_pop(finder->replies, &msg) == TD_OK) {
        bool waits = err == TD_ERR_NOTFOUND;
        td_err one = read_verdict(finder, server, msg, waits ? info : NULL);
        if (waits) err = one;
        td_net_msg_free(msg);
    }
    if (err != TD_ERR_NOTFOUND) return err;
    (void)count(finder, TD_EDGE_REPLY_NOBODY);
    return td_fail(info, err, "server %s is gone", server->id);
}

td_err td_edge_finder_attach(td_edge_finder *finder,
                             const td_edge_server *server, td_errinfo *info)
{
    return ask_server(finder, server, false, info);
}

void td_edge_finder_leave(td_edge_finder *finder, const td_edge_server *server)
{
    (void)ask_server(finder, server, true, NULL);
}

td_err td_edge_finder_new(const td_edge_finder_config *config,
                          td_edge_finder **ret_finder)
{
    TD_AUTO(td_edge_finder) *finder = calloc(1, sizeof *finder);
    if (!finder) return TD_ERR_NOMEM;
    finder->config = *config;
    td_event_init(&finder->wake);
    pthread_mutex_init(&finder->lock, NULL);
    TD_TRY(td_wire_encoder_new(&finder->encoder));
    TD_TRY(td_wire_decoder_new(&finder->decoder));
    TD_TRY(td_queue_new(REPLIES, sizeof(td_net_msg *), &finder->replies));
    *ret_finder = TD_TAKE(finder);
    return TD_OK;
}

void td_edge_finder_free(td_edge_finder *finder)
{
    td_net_msg *msg;
    while (finder->replies && td_queue_pop(finder->replies, &msg) == TD_OK)
        td_net_msg_free(msg);
    if (finder->replies) td_queue_free(finder->replies);
    if (finder->decoder) td_wire_decoder_free(finder->decoder);
    if (finder->encoder) td_wire_encoder_free(finder->encoder);
    pthread_mutex_destroy(&finder->lock);
    free(finder);
}

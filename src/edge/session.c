// SPDX-License-Identifier: Apache-2.0
// Finding a server and watching over it. One attempt is: ask everybody for
// their status, keep those that are ready and fit, take the least loaded, ask
// it to attach. All on the thread that called td_edge_run(); the transport's
// callbacks only leave replies in a queue.
//
// Shutdown: declarations go first; a query still under way is waited for, at
// most its own timeout, because its callbacks know this session.
#include "base/log.h"
#include "edge/shell.h"
#include "wire/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLIES 64
#define QUERY_NS (1 * TD_NS_PER_S)
#define RETRY_NS (TD_NS_PER_S / 2)
#define STALLED_NS TD_NS_PER_S // beyond the time after which it asks again
#define LOOK_NS (TD_NS_PER_S / 10)

struct td_edge_session {
    td_edge *edge;
    td_net_decl *actions, *servers, *token;
    td_net_pub *metrics;
    td_wire_encoder *encoder;
    td_wire_decoder *decoder;
    td_queue *replies;    // td_net_msg *
    bool answered;        // the query is done; guarded by the edge's lock
    uint64_t server_boot; // of the edge's server; guarded by the edge's lock
    _Atomic bool lost;    // the attached server's token is gone
    int64_t next_metrics_ns;
    int64_t refused_since_ns;                 // 0: not refused
    uint64_t connections;                     // so far
    char said[sizeof((td_errinfo *)0)->text]; // the last complaint
    td_wire_status status;
};

// What one attempt chose.
typedef struct choice {
    bool found;
    char server[TD_WIRE_MAX_NAME + 1];
    uint64_t boot;
    float load;
    bool wanted[TD_WIRE_MAX_IMAGES];
} choice;

static bool stopping(const td_edge_session *session)
{
    return atomic_load(&session->edge->stop_session);
}

static int64_t now(void)
{
    return td_clock_now_ns(&td_clock_monotonic);
}

// Transport's thread.
static void on_reply(void *user, const td_net_sample *sample)
{
    td_edge_session *session = user;
    td_net_msg *msg = NULL;
    if (sample->is_error) return;
    if (td_net_keep(sample, &msg) == TD_OK &&
        td_queue_push(session->replies, &msg) == TD_OK)
        return;
    atomic_fetch_add(&session->edge->inbox_full, 1);
    if (msg) td_net_msg_free(msg);
}

// Transport's thread. All under the lock: whoever sees the answer may free the
// session.
static void on_done(void *user)
{
    td_edge_session *session = user;
    td_edge *edge = session->edge;
    pthread_mutex_lock(&edge->lock);
    session->answered = true;
    td_event_signal(&edge->session_wake);
    pthread_mutex_unlock(&edge->lock);
}

static bool is_answered(td_edge_session *session)
{
    pthread_mutex_lock(&session->edge->lock);
    bool answered = session->answered;
    pthread_mutex_unlock(&session->edge->lock);
    return answered;
}

// Whether ".../status/alive/SERVER/BOOT" is that start's. Boot 0: any.
static bool is_token_of(const char *key, const char *server, uint64_t boot)
{
    static const char before[] = "/status/alive/";
    const char *found = strstr(key, before);
    size_t size = strlen(server);
    if (!found || size == 0) return false;
    const char *id = found + strlen(before);
    if (strncmp(id, server, size) != 0 || id[size] != '/') return false;
    return boot == 0 || strtoull(id + size + 1, NULL, 10) == boot;
}

// Transport's thread.
static void on_server(void *user, const char *key, bool alive)
{
    td_edge_session *session = user;
    td_edge *edge = session->edge;
    if (alive) {
        td_event_signal(&edge->session_wake); // perhaps the one we wait for
        return;
    }
    pthread_mutex_lock(&edge->lock);
    bool ours = is_token_of(key, edge->server, session->server_boot);
    pthread_mutex_unlock(&edge->lock);
    if (!ours) return;
    atomic_store(&session->lost, true);
    td_event_signal(&edge->session_wake);
}

static td_err ask(td_edge_session *session, td_slice payload, td_errinfo *info)
{
    td_edge *edge = session->edge;
    char key[TD_WIRE_MAX_KEY];
    TD_TRY(td_wire_key(&edge->config.route, NULL, "status", key, info));
    session->answered = false; // no query is under way
    TD_TRY(td_net_query(edge->net, key, payload, QUERY_NS, on_reply, on_done,
                        session, info));
    while (!is_answered(session))
        (void)td_event_wait_until(&edge->session_wake, INT64_MAX);
    return TD_OK;
}

static void choose(const td_edge_session *session, choice *best)
{
    const td_wire_status *status = &session->status;
    const td_edge_profile *profile = &session->edge->config.profile;
    if (best->found && best->load <= status->load) return;
    *best = (choice){
        .found = true,
        .boot = status->server_boot,
        .load = status->load,
    };
    memcpy(best->server, status->server.data, status->server.size);
    for (uint32_t i = 0; i < profile->camera_count; i++)
        for (uint32_t j = 0; j < status->camera_count; j++)
            if (td_wire_text_same(profile->cameras[i].name,
                                  status->cameras[j].name))
                best->wanted[i] = true;
}

// Looks at one reply. The first reason not to choose it stays in `why`.
static td_err consider(td_edge_session *session, td_net_msg *msg, choice *best,
                       td_errinfo *why)
{
    td_slice bytes;
    td_wire_status *status = &session->status;
    TD_TRY(td_net_msg_bytes(msg, &bytes));
    TD_TRY(td_wire_status_decode(session->decoder, bytes.data, bytes.size,
                                 status, why));
    TD_TRY(td_edge_check(&session->edge->config.profile, status, why));
    if (status->state == TD_WIRE_WARMING || status->state == TD_WIRE_DRAINING)
        return td_fail(why, TD_ERR_NOTFOUND, "server %.*s is %s",
                       (int)status->server.size, status->server.data,
                       td_wire_server_state_name(status->state));
    choose(session, best);
    return TD_OK;
}

static td_err find_server(td_edge_session *session, choice *ret_choice,
                          td_errinfo *info)
{
    td_err first = td_fail(
        info, TD_ERR_NOTFOUND, "no server answers for %s/%s/%s",
        session->edge->config.route.model, session->edge->config.route.version,
        session->edge->config.route.application);
    bool any = false;
    TD_TRY(ask(session, (td_slice){0}, info));
    td_net_msg *msg;
    while (td_queue_pop(session->replies, &msg) == TD_OK) {
        td_errinfo why = {.text = ""};
        td_err err = consider(session, msg, ret_choice, &why);
        if (err != TD_OK && !any) {
            first = err;
            *info = why;
            any = true;
        }
        td_net_msg_free(msg);
    }
    return ret_choice->found ? TD_OK : first;
}

static td_err read_attach_reply(td_edge_session *session, const char *server,
                                td_net_msg *msg, td_errinfo *info)
{
    td_slice bytes;
    const td_wire_status *status = &session->status;
    TD_TRY(td_net_msg_bytes(msg, &bytes));
    TD_TRY(td_wire_status_decode(session->decoder, bytes.data, bytes.size,
                                 &session->status, info));
    if (!status->has_attach || !td_wire_text_is(status->server, server))
        return td_fail(info, TD_ERR_NOTFOUND,
                       "server %s did not answer the attach", server);
    if (status->attached) return TD_OK;
    return td_fail(info, TD_ERR_DENIED, "%.*s", (int)status->attach_reason.size,
                   status->attach_reason.data);
}

static td_err attach(td_edge_session *session, const choice *chosen,
                     td_errinfo *info)
{
    const td_edge_config *config = &session->edge->config;
    td_wire_attach message = {
        .client = td_wire_text_of(config->client),
        .server = td_wire_text_of(chosen->server),
        .server_boot = chosen->boot,
        .boot = config->core.boot,
        .route = config->core.route,
    };
    TD_TRY(td_wire_attach_encode(session->encoder, &message, info));
    size_t count;
    const td_slice *parts = td_wire_encoder_parts(session->encoder, &count);
    TD_TRY(ask(session, parts[0], info)); // an attach is one small part
    td_err err =
        td_fail(info, TD_ERR_NOTFOUND, "server %s is gone", chosen->server);
    td_net_msg *msg;
    while (td_queue_pop(session->replies, &msg) == TD_OK) {
        if (err == TD_ERR_NOTFOUND)
            err = read_attach_reply(session, chosen->server, msg, info);
        td_net_msg_free(msg);
    }
    return err;
}

// The server's name is known before it is asked, so that its first answer is
// not a stranger's.
static td_err join_server(td_edge_session *session, td_errinfo *info)
{
    td_edge *edge = session->edge;
    choice chosen = {0};
    TD_TRY(find_server(session, &chosen, info));
    atomic_store(&session->lost, false);
    pthread_mutex_lock(&edge->lock);
    memcpy(edge->server, chosen.server, sizeof edge->server);
    session->server_boot = chosen.boot;
    memcpy(edge->wanted, chosen.wanted, sizeof edge->wanted);
    pthread_mutex_unlock(&edge->lock);
    return attach(session, &chosen, info);
}

static void put_metrics(td_edge_session *session)
{
    td_edge *edge = session->edge;
    int64_t now_ns = now();
    if (!session->metrics || now_ns < session->next_metrics_ns) return;
    td_edge_telemetry_put(edge, session->metrics, session->encoder, now_ns);
    session->next_metrics_ns = now_ns + edge->config.metrics_period_ns;
}

static void set_state(td_edge *edge, td_edge_state state)
{
    atomic_store(&edge->state, (int)state);
    atomic_store(&edge->connection,
                 state == TD_EDGE_STREAMING ? ++edge->session->connections : 0);
}

static bool stalled(td_edge *edge, int64_t since_ns)
{
    td_edge_counts counts;
    pthread_mutex_lock(&edge->lock);
    td_edge_core_counts(edge->core, &counts);
    pthread_mutex_unlock(&edge->lock);
    int64_t merged_ns = atomic_load(&edge->merged_ns);
    int64_t last_ns = merged_ns > since_ns ? merged_ns : since_ns;
    int64_t patience_ns = edge->config.core.resend_max_ns + STALLED_NS;
    return counts.left == 0 && now() - last_ns > patience_ns;
}

// Returns when the server is lost or the robot is to stop.
static void stream(td_edge_session *session)
{
    td_edge *edge = session->edge;
    int64_t since_ns = now();
    td_log_text(TD_LOG_INFO, "edge: %s attached to server %s",
                edge->config.client, edge->server);
    set_state(edge, TD_EDGE_STREAMING);
    session->refused_since_ns = 0;
    session->said[0] = 0;
    while (!stopping(session) && !atomic_load(&session->lost) &&
           !stalled(edge, since_ns)) {
        put_metrics(session);
        (void)td_event_wait_until(&edge->session_wake, now() + LOOK_NS);
    }
    if (stopping(session)) return;
    set_state(edge, TD_EDGE_RECONNECTING);
    atomic_fetch_add(&edge->reconnects, 1);
    td_log_text(TD_LOG_WARN, "edge: server %s %s: holding, looking for one",
                edge->server,
                atomic_load(&session->lost) ? "is gone" : "sends no chunks");
}

// The same complaint is said once.
static void complain(td_edge_session *session, td_err err, const char *text)
{
    if (strcmp(session->said, text) == 0) return;
    (void)snprintf(session->said, sizeof session->said, "%s", text);
    td_log_text(err == TD_ERR_NOTFOUND ? TD_LOG_INFO : TD_LOG_WARN,
                "edge: waiting: %s", text);
}

// A robot that has never moved gives up on a server that will not have it; one
// that has moved holds and keeps trying.
static bool give_up(td_edge_session *session, td_err err)
{
    if (session->connections > 0) return false;
    if (err == TD_ERR_MISMATCH || err == TD_ERR_VERSION) return true;
    if (err != TD_ERR_DENIED) {
        session->refused_since_ns = 0;
        return false;
    }
    if (session->refused_since_ns == 0) session->refused_since_ns = now();
    return now() - session->refused_since_ns >=
           session->edge->config.refused_for_ns;
}

// Joins and streams until it is to stop, or gives up.
static td_err keep_joining(td_edge_session *session, td_errinfo *info)
{
    while (!stopping(session)) {
        td_errinfo why = {.text = ""};
        td_err err = join_server(session, &why);
        if (err == TD_OK) {
            stream(session);
            continue;
        }
        if (give_up(session, err)) return td_fail(info, err, "%s", why.text);
        complain(session, err, why.text);
        put_metrics(session);
        if (!stopping(session)) // its signal may have ended the query's wait
            (void)td_event_wait_until(&session->edge->session_wake,
                                      now() + RETRY_NS);
    }
    return TD_OK;
}

td_err td_edge_run(td_edge *edge, td_errinfo *info)
{
    td_edge_session *session = edge->session;
    td_err err = keep_joining(session, info);
    set_state(edge, TD_EDGE_STOPPED);
    session->next_metrics_ns = 0; // the last word
    put_metrics(session);
    return err;
}

static td_err declare_token(td_edge_session *session, td_errinfo *info)
{
    const td_edge_config *config = &session->edge->config;
    char key[TD_WIRE_MAX_KEY];
    char token[TD_WIRE_MAX_KEY + TD_WIRE_MAX_NAME];
    TD_TRY(td_wire_key(&config->route, config->client, "alive", key, info));
    (void)snprintf(token, sizeof token, "%s/%llu", key,
                   (unsigned long long)config->core.boot);
    TD_TRY(td_net_token(session->edge->net, token, &session->token, info));
    TD_TRY(td_wire_key(&config->route, NULL, "status", key, info));
    (void)snprintf(token, sizeof token, "%s/alive/*/*", key);
    return td_net_watch(session->edge->net, token, on_server, session,
                        &session->servers, info);
}

static td_err session_init(td_edge_session *session, td_errinfo *info)
{
    static const td_net_qos metrics_qos = {.priority = TD_NET_DATA_LOW};
    td_edge *edge = session->edge;
    const td_edge_config *config = &edge->config;
    char key[TD_WIRE_MAX_KEY];
    TD_TRY(td_wire_encoder_new(&session->encoder));
    TD_TRY(td_wire_decoder_new(&session->decoder));
    TD_TRY(td_queue_new(REPLIES, sizeof(td_net_msg *), &session->replies));
    TD_TRY(td_wire_key(&config->route, config->client, "action", key, info));
    TD_TRY(td_net_subscribe(edge->net, key, td_edge_merger_on_action, edge,
                            &session->actions, info));
    if (config->metrics_period_ns > 0) {
        TD_TRY(
            td_wire_key(&config->route, config->client, "metrics", key, info));
        TD_TRY(td_net_publish(edge->net, key, &metrics_qos, &session->metrics,
                              info));
    }
    return declare_token(session, info);
}

td_err td_edge_session_new(td_edge *edge, td_edge_session **ret_session,
                           td_errinfo *info)
{
    td_edge_session *session = calloc(1, sizeof *session);
    if (!session) return TD_ERR_NOMEM;
    session->edge = edge;
    td_err err = session_init(session, info);
    if (err != TD_OK) {
        td_edge_session_free(session);
        return err;
    }
    *ret_session = session;
    return TD_OK;
}

void td_edge_session_free(td_edge_session *session)
{
    if (session->token) (void)td_net_undeclare(session->token);
    if (session->servers) (void)td_net_undeclare(session->servers);
    if (session->actions) (void)td_net_undeclare(session->actions);
    if (session->metrics) td_net_unpublish(session->metrics);
    td_net_msg *msg;
    while (session->replies && td_queue_pop(session->replies, &msg) == TD_OK)
        td_net_msg_free(msg);
    if (session->replies) td_queue_free(session->replies);
    if (session->decoder) td_wire_decoder_free(session->decoder);
    if (session->encoder) td_wire_encoder_free(session->encoder);
    free(session);
}

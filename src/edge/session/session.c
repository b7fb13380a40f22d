// SPDX-License-Identifier: Apache-2.0
// The shell around the states: each has one thing to do, which waits or asks
// and tells what came of it; state.c says where that leads. All on the thread
// that called td_edge_run().
//
// Shutdown: declarations go first, and with the last callback the rest is
// freed.
#include "base/log.h"
#include "edge/session/presence.h"
#include "edge/shell.h"
#include "wire/msgpack/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS (TD_NS_PER_S / 10)

struct td_edge_session {
    td_edge *edge;
    td_edge_finder *finder;
    td_edge_presence *presence;
    td_net_decl *actions;
    td_net_pub *metrics;
    td_wire_encoder *encoder; // of metrics
    int64_t next_metrics_ns;
    td_rand rand;

    td_edge_server server; // the present one
    td_edge_server left;   // alive, but not to be taken first; "": none
    uint64_t connections;  // so far
    int64_t attached_ns;
    bool asked_again;   // the present server, and it answered
    int64_t refused_ns; // since when; 0: not refused
    uint32_t attempts;  // in a row
    char said[sizeof((td_errinfo *)0)->text]; // the last complaint

    // As of the last look.
    int64_t merged_ns;
    uint64_t warnings;
    uint64_t acted[TD_EDGE_FAILSAFE_REASON_COUNT];
};

static bool stopping(const td_edge_session *session)
{
    return atomic_load(&session->edge->stop_session);
}

static int64_t now(void)
{
    return td_clock_now_ns(&td_clock_monotonic);
}

static td_edge_state state_of(const td_edge_session *session)
{
    return (td_edge_state)atomic_load(&session->edge->state);
}

static bool is_lost(const td_edge_session *session)
{
    return td_edge_presence_is_lost(session->presence);
}

static void put_metrics(td_edge_session *session)
{
    td_edge *edge = session->edge;
    int64_t now_ns = now();
    if (!session->metrics || now_ns < session->next_metrics_ns) return;
    td_edge_telemetry_put(edge, session->metrics, session->encoder, now_ns);
    session->next_metrics_ns = now_ns + edge->config.metrics_period_ns;
}

static void say(const td_edge_session *session, const td_edge_transition *step)
{
    char text[TD_WIRE_MAX_NAME + sizeof((td_errinfo *)0)->text];
    bool bad =
        step->to == TD_EDGE_STALLED || step->to == TD_EDGE_RECONNECTING ||
        (step->from == TD_EDGE_STREAMING && step->to == TD_EDGE_DEGRADED);
    td_edge_state_say(step, session->server.id, text, sizeof text);
    td_log_text(bad ? TD_LOG_WARN : TD_LOG_INFO, "edge: %s %s: %s",
                session->edge->config.client, td_edge_state_name(step->to),
                text);
}

// A server has the robot: another number makes the tick ask it at once.
static void begin(td_edge_session *session, td_edge_event event)
{
    session->attached_ns = now();
    session->asked_again = event == TD_EDGE_EVENT_STILL_THERE;
    session->refused_ns = 0;
    session->attempts = 0;
    session->said[0] = 0;
    pthread_mutex_lock(&session->edge->lock);
    td_edge_core_connected(session->edge->core);
    pthread_mutex_unlock(&session->edge->lock);
    atomic_store(&session->edge->connection, ++session->connections);
}

static void end(td_edge_session *session)
{
    atomic_store(&session->edge->connection, 0);
    session->left = is_lost(session) ? (td_edge_server){0} : session->server;
}

// The one place where the state changes.
static void tell(td_edge_session *session, td_edge_event event)
{
    td_edge *edge = session->edge;
    const td_edge_transition *step =
        td_edge_state_next(state_of(session), event);
    if (!step) return;
    bool attached = td_edge_state_is_attached(step->to);
    if (attached &&
        (event == TD_EDGE_EVENT_ATTACHED || event == TD_EDGE_EVENT_STILL_THERE))
        begin(session, event);
    if (!attached && td_edge_state_is_attached(step->from)) end(session);
    atomic_store(&edge->state, (int)step->to);
    atomic_fetch_add(&edge->entered[step->to], 1);
    say(session, step);
}

// What came of asking a server to take the robot.
static void tell_result(td_edge_session *session, td_err err,
                        td_edge_event success)
{
    if (err != TD_ERR_DENIED) session->refused_ns = 0;
    if (err == TD_OK) {
        tell(session, success);
    } else if (err == TD_ERR_MISMATCH || err == TD_ERR_VERSION) {
        tell(session, TD_EDGE_EVENT_MISMATCH);
    } else if (err == TD_ERR_DENIED) {
        tell(session, TD_EDGE_EVENT_REFUSED);
        if (session->refused_ns == 0) session->refused_ns = now();
        if (now() - session->refused_ns >= session->edge->config.refused_for_ns)
            tell(session, TD_EDGE_EVENT_TURNED_AWAY);
    } else {
        tell(session, TD_EDGE_EVENT_GONE);
    }
}

// The server's name is known before it is asked, so that its first answer is
// not a stranger's.
static td_err join(td_edge_session *session, const td_edge_server *only,
                   td_errinfo *info)
{
    td_edge *edge = session->edge;
    const td_edge_server *last = session->left.id[0] ? &session->left : NULL;
    td_edge_server server;
    TD_TRY(td_edge_finder_find(session->finder, only, last, &server, info));
    td_edge_presence_follow(session->presence, &server);
    session->server = server;
    pthread_mutex_lock(&edge->lock);
    memcpy(edge->server, server.id, sizeof edge->server);
    memcpy(edge->wanted, server.wanted, sizeof edge->wanted);
    pthread_mutex_unlock(&edge->lock);
    return td_edge_finder_attach(session->finder, &server, info);
}

// Whoever was left alive still listens to this robot.
static void leave_last(td_edge_session *session)
{
    if (session->left.id[0] &&
        !td_edge_server_same(&session->left, &session->server))
        td_edge_finder_leave(session->finder, &session->left);
    session->left = (td_edge_server){0};
}

// The same complaint is said once.
static void complain(td_edge_session *session, td_err err, const char *text)
{
    if (strcmp(session->said, text) == 0) return;
    (void)snprintf(session->said, sizeof session->said, "%s", text);
    td_log_text(err == TD_ERR_NOTFOUND ? TD_LOG_INFO : TD_LOG_WARN,
                "edge: waiting: %s", text);
}

// Waits before the next attempt; less when a server appears, but not so that
// all who waited for it ask at once.
static void rest(td_edge_session *session)
{
    int64_t due_ns =
        now() + td_edge_state_retry_ns(session->attempts++, &session->rand);
    for (;;) {
        int64_t now_ns = now();
        if (td_edge_presence_has_appeared(session->presence)) {
            int64_t soon_ns = now_ns + (int64_t)(td_rand_unit(&session->rand) *
                                                 (double)TD_EDGE_RETRY_MIN_NS);
            if (soon_ns < due_ns) due_ns = soon_ns;
        }
        put_metrics(session);
        if (stopping(session) || now_ns >= due_ns) return;
        int64_t look_ns = now_ns + LOOK_NS;
        (void)td_event_wait_until(&session->edge->session_wake,
                                  due_ns < look_ns ? due_ns : look_ns);
    }
}

static td_err search(td_edge_session *session, td_errinfo *info)
{
    // Whoever is there is asked now.
    (void)td_edge_presence_has_appeared(session->presence);
    td_err err = join(session, NULL, info);
    tell_result(session, err, TD_EDGE_EVENT_ATTACHED);
    if (err == TD_OK) {
        leave_last(session);
    } else if (state_of(session) != TD_EDGE_STOPPED) {
        complain(session, err, info->text);
        rest(session);
    }
    return err;
}

// Whether it holds for want of an action, or did since the last look for long
// enough to be told.
static bool is_starved(td_edge_session *session, const td_edge_counts *counts)
{
    bool more = counts->warnings != session->warnings;
    session->warnings = counts->warnings;
    return more || counts->warned;
}

// Whether that made the fail-safe act since the last look.
static bool has_acted(td_edge_session *session, const td_edge_counts *counts,
                      td_edge_failsafe_reason reason)
{
    bool more = counts->failsafes[reason] != session->acted[reason];
    session->acted[reason] = counts->failsafes[reason];
    return more;
}

// How the robot does, as the tick and the driver count it.
static void tell_condition(td_edge_session *session,
                           const td_edge_counts *counts)
{
    bool starved = is_starved(session, counts);
    bool limits = has_acted(session, counts, TD_EDGE_FAILSAFE_FOR_LIMITS);
    bool driver = has_acted(session, counts, TD_EDGE_FAILSAFE_FOR_DRIVER);
    bool served = counts->left > 0 || session->merged_ns > session->attached_ns;
    if (starved) tell(session, TD_EDGE_EVENT_STARVED);
    if (limits) tell(session, TD_EDGE_EVENT_LIMITS);
    if (driver) tell(session, TD_EDGE_EVENT_DRIVER);
    if (!starved && !limits && !driver && served)
        tell(session, TD_EDGE_EVENT_RECOVERED);
}

static void tell_watchdog(td_edge_session *session,
                          const td_edge_counts *counts)
{
    const td_edge_config *config = &session->edge->config;
    bool served = session->merged_ns > session->attached_ns;
    int64_t since_ns = served ? session->merged_ns : session->attached_ns;
    if (!td_edge_state_overdue(now(), since_ns, counts->left,
                               config->watchdog_ns))
        return;
    tell(session, session->asked_again && !served ? TD_EDGE_EVENT_SILENT
                                                  : TD_EDGE_EVENT_OVERDUE);
}

static bool has_merged(td_edge_session *session)
{
    int64_t merged_ns = atomic_load(&session->edge->merged_ns);
    bool more = merged_ns != session->merged_ns;
    session->merged_ns = merged_ns;
    return more;
}

static td_err watch(td_edge_session *session, td_errinfo *info)
{
    td_edge *edge = session->edge;
    td_edge_counts counts;
    (void)info;
    put_metrics(session);
    if (edge->config.trace) td_edge_trace_drain(edge->config.trace);
    if (!is_lost(session))
        (void)td_event_wait_until(&edge->session_wake, now() + LOOK_NS);
    pthread_mutex_lock(&edge->lock);
    td_edge_core_counts(edge->core, &counts);
    pthread_mutex_unlock(&edge->lock);
    if (has_merged(session)) tell(session, TD_EDGE_EVENT_CHUNK);
    if (is_lost(session)) tell(session, TD_EDGE_EVENT_GONE);
    tell_condition(session, &counts);
    tell_watchdog(session, &counts);
    return TD_OK;
}

static td_err ask_again(td_edge_session *session, td_errinfo *info)
{
    td_edge_server same = session->server;
    td_err err = join(session, &same, info);
    if (has_merged(session)) // whatever it says of itself
        tell(session, TD_EDGE_EVENT_CHUNK);
    else
        tell_result(session, err, TD_EDGE_EVENT_STILL_THERE);
    return TD_OK;
}

td_err td_edge_run(td_edge *edge, td_errinfo *info)
{
    static td_err (*const doing[])(td_edge_session *, td_errinfo *) = {
        [TD_EDGE_CONNECTING] = search,   [TD_EDGE_STREAMING] = watch,
        [TD_EDGE_DEGRADED] = watch,      [TD_EDGE_STALLED] = ask_again,
        [TD_EDGE_RECONNECTING] = search,
    };
    td_edge_session *session = edge->session;
    td_err err = TD_OK; // of what was done last
    td_errinfo why = {.text = ""};
    while (state_of(session) != TD_EDGE_STOPPED) {
        err = TD_OK;
        if (stopping(session))
            tell(session, TD_EDGE_EVENT_STOP);
        else
            err = doing[state_of(session)](session, &why);
    }
    session->next_metrics_ns = 0; // the last word
    put_metrics(session);
    return err == TD_OK ? TD_OK : td_fail(info, err, "%s", why.text);
}

static td_err fits(void *user, const td_wire_status *status,
                   td_edge_server *server, td_errinfo *info)
{
    const td_edge_profile *profile = user;
    TD_TRY(td_edge_check(profile, status, info));
    for (uint32_t i = 0; i < profile->camera_count; i++)
        for (uint32_t j = 0; j < status->camera_count; j++)
            if (td_wire_text_same(profile->cameras[i].name,
                                  status->cameras[j].name))
                server->wanted[i] = (td_media_size){status->cameras[j].height,
                                                    status->cameras[j].width};
    return TD_OK;
}

static td_err open_search(td_edge_session *session, td_errinfo *info)
{
    td_edge *edge = session->edge;
    const td_edge_finder_config config = {
        .net = edge->net,
        .route = edge->config.route,
        .client = edge->config.client,
        .boot = edge->config.core.boot,
        .generation = edge->config.core.route,
        .fits = fits,
        .user = &edge->config.profile,
        .replies = edge->replies,
    };
    TD_TRY(td_edge_finder_new(&config, &session->finder));
    return td_edge_presence_open(&config, &edge->session_wake,
                                 &session->presence, info);
}

// By the name too: robots that start together may have equal boots.
static void seed(td_edge_session *session)
{
    const td_edge_config *config = &session->edge->config;
    uint64_t name = 0;
    for (const char *c = config->client; *c; c++)
        name = name * 31 + (unsigned char)*c;
    td_rand of_boot;
    td_rand_init(&of_boot, config->core.boot);
    td_rand_fork(&of_boot, name, &session->rand);
}

static td_err session_init(td_edge_session *session, td_errinfo *info)
{
    static const td_net_qos metrics_qos = {.priority = TD_NET_DATA_LOW};
    td_edge *edge = session->edge;
    const td_edge_config *config = &edge->config;
    char key[TD_WIRE_MAX_KEY];
    seed(session);
    atomic_store(&edge->entered[TD_EDGE_CONNECTING], 1);
    TD_TRY(td_wire_encoder_new(&session->encoder));
    TD_TRY(td_wire_key(&config->route, config->client, "action", key, info));
    TD_TRY(td_net_subscribe(edge->net, key, td_edge_merger_on_action, edge,
                            &session->actions, info));
    if (config->metrics_period_ns > 0) {
        TD_TRY(
            td_wire_key(&config->route, config->client, "metrics", key, info));
        TD_TRY(td_net_publish(edge->net, key, &metrics_qos, &session->metrics,
                              info));
    }
    return open_search(session, info);
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
    if (session->presence) td_edge_presence_close(session->presence);
    if (session->actions) (void)td_net_undeclare(session->actions);
    if (session->metrics) td_net_unpublish(session->metrics);
    if (session->finder) td_edge_finder_free(session->finder);
    if (session->encoder) td_wire_encoder_free(session->encoder);
    free(session);
}

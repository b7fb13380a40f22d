// SPDX-License-Identifier: Apache-2.0
// Carries out the session's states (state.c): each state has one thing to do,
// which waits or asks, and what comes of it is an event; the table in
// state.c says where that leads.
//
//   CONNECTING, RECONNECTING   search: ask who serves the model, check that it
//                              fits, have it take the robot; else rest
//   STREAMING, DEGRADED        watch: every 100 ms, or sooner when woken, look
//                              at the merges, the robot's condition and the
//                              server's token
//   STALLED                    ask_again: whether the same server still has us
//
// All of it runs on the thread that called td_edge_run(). In every turn it also
// calls `report`, which sends the metrics. The finder and the presence have
// callbacks on the transport's threads; they reach in here only through `wake`
// and what presence.c guards.
//
// No lock. What others read is atomic: the state, how often each was entered,
// the replies. What the rest of the edge needs of the server it has from the
// link, which this file alone writes.
//
// Stop: td_edge_session_stop() sets a flag and wakes; a question that was asked
// is waited for, a second at most. End: the presence's declarations go first,
// and with the last callback the rest is freed.
#include "edge/session/session.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/sync/event.h"
#include "edge/session/presence.h"
#include "wire/msgpack/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS (TD_NS_PER_S / 10)

struct td_edge_session {
    td_edge_session_config config;
    td_edge_finder *finder;
    td_edge_presence *presence;
    td_event wake;
    _Atomic bool stopping;
    _Atomic int state; // td_edge_state
    _Atomic uint64_t entered[TD_EDGE_STATE_COUNT];
    _Atomic uint64_t replies[TD_EDGE_REPLY_COUNT];
    td_rand rand;

    td_edge_server server; // the present one
    td_edge_server left;   // alive, but not to be taken first; "": none
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

static bool is_stopping(const td_edge_session *session)
{
    return atomic_load(&session->stopping);
}

static td_edge_state state_of(const td_edge_session *session)
{
    return (td_edge_state)atomic_load(&session->state);
}

static bool is_lost(const td_edge_session *session)
{
    return td_edge_presence_is_lost(session->presence);
}

static void report(const td_edge_session *session, bool last)
{
    session->config.report(session->config.user, last);
}

static void log_transition(const td_edge_session *session,
                           const td_edge_transition *step)
{
    char text[TD_WIRE_MAX_NAME + sizeof((td_errinfo *)0)->text];
    bool bad =
        step->to == TD_EDGE_STALLED || step->to == TD_EDGE_RECONNECTING ||
        (step->from == TD_EDGE_STREAMING && step->to == TD_EDGE_DEGRADED);
    td_edge_state_describe(step, session->server.id, text, sizeof text);
    td_log_text(bad ? TD_LOG_WARN : TD_LOG_INFO, "edge: %s %s: %s",
                session->config.client, td_edge_state_name(step->to), text);
}

// A server has the robot: another number makes the tick ask it at once.
static void begin(td_edge_session *session, td_edge_event event)
{
    session->attached_ns = td_clock_monotonic_ns();
    session->asked_again = event == TD_EDGE_EVENT_STILL_THERE;
    session->refused_ns = 0;
    session->attempts = 0;
    session->said[0] = 0;
    td_edge_link_connect(session->config.link);
}

static void end(td_edge_session *session)
{
    td_edge_link_disconnect(session->config.link);
    session->left = is_lost(session) ? (td_edge_server){0} : session->server;
}

// The one place where the state changes.
static void handle(td_edge_session *session, td_edge_event event)
{
    const td_edge_transition *step =
        td_edge_state_next(state_of(session), event);
    if (!step) return;
    bool attached = td_edge_state_is_attached(step->to);
    if (attached &&
        (event == TD_EDGE_EVENT_ATTACHED || event == TD_EDGE_EVENT_STILL_THERE))
        begin(session, event);
    if (!attached && td_edge_state_is_attached(step->from)) end(session);
    atomic_store(&session->state, (int)step->to);
    atomic_fetch_add(&session->entered[step->to], 1);
    log_transition(session, step);
}

// What came of asking a server to take the robot.
static void handle_result(td_edge_session *session, td_err err,
                          td_edge_event success)
{
    if (err != TD_ERR_DENIED) session->refused_ns = 0;
    if (err == TD_OK) {
        handle(session, success);
    } else if (err == TD_ERR_MISMATCH || err == TD_ERR_VERSION) {
        handle(session, TD_EDGE_EVENT_MISMATCH);
    } else if (err == TD_ERR_DENIED) {
        handle(session, TD_EDGE_EVENT_REFUSED);
        if (session->refused_ns == 0)
            session->refused_ns = td_clock_monotonic_ns();
        if (td_clock_monotonic_ns() - session->refused_ns >=
            session->config.refused_for_ns)
            handle(session, TD_EDGE_EVENT_TURNED_AWAY);
    } else {
        handle(session, TD_EDGE_EVENT_GONE);
    }
}

// The server's name is known before it is asked, so that its first answer is
// not a stranger's.
static td_err join(td_edge_session *session, const td_edge_server *only,
                   td_errinfo *info)
{
    const td_edge_server *last = session->left.id[0] ? &session->left : NULL;
    td_edge_server server;
    TD_TRY(td_edge_finder_find(session->finder, only, last, &server, info));
    td_edge_presence_follow(session->presence, &server);
    session->server = server;
    td_edge_link_name_server(session->config.link, &server);
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
        td_clock_monotonic_ns() +
        td_edge_state_retry_ns(session->attempts++, &session->rand);
    for (;;) {
        int64_t now_ns = td_clock_monotonic_ns();
        if (td_edge_presence_has_appeared(session->presence)) {
            int64_t soon_ns = now_ns + (int64_t)(td_rand_unit(&session->rand) *
                                                 (double)TD_EDGE_RETRY_MIN_NS);
            if (soon_ns < due_ns) due_ns = soon_ns;
        }
        report(session, false);
        if (is_stopping(session) || now_ns >= due_ns) return;
        int64_t look_ns = now_ns + LOOK_NS;
        (void)td_event_wait_until(&session->wake,
                                  due_ns < look_ns ? due_ns : look_ns);
    }
}

static td_err search(td_edge_session *session, td_errinfo *info)
{
    // Whoever is there is asked now.
    (void)td_edge_presence_has_appeared(session->presence);
    td_err err = join(session, NULL, info);
    handle_result(session, err, TD_EDGE_EVENT_ATTACHED);
    if (err == TD_OK) {
        leave_last(session);
    } else if (state_of(session) != TD_EDGE_STOPPED) {
        complain(session, err, info->text);
        rest(session);
    }
    return err;
}

// Whether it holds for want of an action, or did since the last look for long
// enough to be reported.
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
static void check_condition(td_edge_session *session,
                            const td_edge_counts *counts)
{
    bool starved = is_starved(session, counts);
    bool limits = has_acted(session, counts, TD_EDGE_FAILSAFE_FOR_LIMITS);
    bool driver = has_acted(session, counts, TD_EDGE_FAILSAFE_FOR_DRIVER);
    bool served = counts->left > 0 || session->merged_ns > session->attached_ns;
    if (starved) handle(session, TD_EDGE_EVENT_STARVED);
    if (limits) handle(session, TD_EDGE_EVENT_LIMITS);
    if (driver) handle(session, TD_EDGE_EVENT_DRIVER);
    if (!starved && !limits && !driver && served)
        handle(session, TD_EDGE_EVENT_RECOVERED);
}

static void check_watchdog(td_edge_session *session,
                           const td_edge_counts *counts)
{
    bool served = session->merged_ns > session->attached_ns;
    int64_t since_ns = served ? session->merged_ns : session->attached_ns;
    if (!td_edge_state_overdue(td_clock_monotonic_ns(), since_ns, counts->left,
                               session->config.watchdog_ns))
        return;
    handle(session, session->asked_again && !served ? TD_EDGE_EVENT_SILENT
                                                    : TD_EDGE_EVENT_OVERDUE);
}

static bool has_merged(td_edge_session *session)
{
    int64_t merged_ns = td_edge_link_merged_ns(session->config.link);
    bool more = merged_ns != session->merged_ns;
    session->merged_ns = merged_ns;
    return more;
}

static td_err watch(td_edge_session *session, td_errinfo *info)
{
    td_edge_counts counts;
    (void)info;
    report(session, false);
    if (!is_lost(session))
        (void)td_event_wait_until(&session->wake,
                                  td_clock_monotonic_ns() + LOOK_NS);
    td_edge_link_counts(session->config.link, &counts);
    if (has_merged(session)) handle(session, TD_EDGE_EVENT_CHUNK);
    if (is_lost(session)) handle(session, TD_EDGE_EVENT_GONE);
    check_condition(session, &counts);
    check_watchdog(session, &counts);
    return TD_OK;
}

static td_err ask_again(td_edge_session *session, td_errinfo *info)
{
    td_edge_server same = session->server;
    td_err err = join(session, &same, info);
    if (has_merged(session)) // whatever it says of itself
        handle(session, TD_EDGE_EVENT_CHUNK);
    else
        handle_result(session, err, TD_EDGE_EVENT_STILL_THERE);
    return TD_OK;
}

td_err td_edge_session_run(td_edge_session *session, td_errinfo *info)
{
    static td_err (*const doing[])(td_edge_session *, td_errinfo *) = {
        [TD_EDGE_CONNECTING] = search,   [TD_EDGE_STREAMING] = watch,
        [TD_EDGE_DEGRADED] = watch,      [TD_EDGE_STALLED] = ask_again,
        [TD_EDGE_RECONNECTING] = search,
    };
    td_err err = TD_OK; // of what was done last
    td_errinfo why = {.text = ""};
    while (state_of(session) != TD_EDGE_STOPPED) {
        err = TD_OK;
        if (is_stopping(session))
            handle(session, TD_EDGE_EVENT_STOP);
        else
            err = doing[state_of(session)](session, &why);
    }
    report(session, true);
    return err == TD_OK ? TD_OK : td_fail(info, err, "%s", why.text);
}

static td_err fits(void *user, const td_wire_status *status,
                   td_edge_server *server, td_errinfo *info)
{
    const td_edge_profile *profile = user;
    TD_TRY(td_edge_check_server(profile, status, info));
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
    const td_edge_session_config *own = &session->config;
    const td_edge_finder_config config = {
        .net = own->net,
        .route = *own->route,
        .client = own->client,
        .boot = own->boot,
        .generation = own->generation,
        .fits = fits,
        .user = own->profile,
        .replies = session->replies,
    };
    TD_TRY(td_edge_finder_new(&config, &session->finder));
    return td_edge_presence_open(&config, &session->wake, &session->presence,
                                 info);
}

// By the name too: robots that start together may have equal boots.
static void seed(td_edge_session *session)
{
    uint64_t name = 0;
    for (const char *c = session->config.client; *c; c++)
        name = name * 31 + (unsigned char)*c;
    td_rand of_boot;
    td_rand_init(&of_boot, session->config.boot);
    td_rand_fork(&of_boot, name, &session->rand);
}

td_err td_edge_session_new(const td_edge_session_config *config,
                           td_edge_session **ret_session, td_errinfo *info)
{
    td_edge_session *made = calloc(1, sizeof *made);
    if (!made) return TD_ERR_NOMEM;
    TD_AUTO(td_edge_session) *session = made;
    session->config = *config;
    td_event_init(&session->wake);
    seed(session);
    atomic_store(&session->entered[TD_EDGE_CONNECTING], 1);
    TD_TRY(open_search(session, info));
    *ret_session = TD_TAKE(session);
    return TD_OK;
}

void td_edge_session_stop(td_edge_session *session)
{
    atomic_store(&session->stopping, true);
    td_event_signal(&session->wake);
}

void td_edge_session_leave(td_edge_session *session)
{
    if (session->presence) td_edge_presence_close(TD_TAKE(session->presence));
    if (session->finder) td_edge_finder_free(TD_TAKE(session->finder));
}

void td_edge_session_free(td_edge_session *session)
{
    td_edge_session_leave(session);
    free(session);
}

td_edge_session_stats td_edge_session_stats_get(const td_edge_session *session)
{
    td_edge_session_stats stats = {.state = state_of(session)};
    for (int i = 0; i < TD_EDGE_STATE_COUNT; i++)
        stats.entered[i] = atomic_load(&session->entered[i]);
    for (int i = 0; i < TD_EDGE_REPLY_COUNT; i++)
        stats.replies[i] = atomic_load(&session->replies[i]);
    return stats;
}

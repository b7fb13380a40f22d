// SPDX-License-Identifier: Apache-2.0
// Creates, joins and ends the parts of a robot's edge. Each part owns its state
// and its thread behind a header of its own; who needs another part is given it
// here when it is created:
//
//   session ──► link ◄── publisher ◄── driver ◄── tick ──► recorder
//                 ▲          ▲                                ▲
//              merger     cameras ────────────────────────────┘
//
// Start: first what is only data (core, link, task), then what is declared on
// the network or has a thread that asks nobody (resetter, cameras, recorder,
// telemetry), then publisher, driver, tick, merger and session, each after
// those that it uses. Only then do threads start: merger, publisher, driver,
// and last the tick, which sets everything in motion. A failure anywhere ends
// what was made in the same order as td_edge_end().
//
// Stop (td_edge_end): driver, merger and cameras get a flag; the tick ends
// first, so that nothing new is asked; then the publisher; then the recorder,
// which saves its episode. Leave: all that is declared on the network goes.
// Drain: what calls the robot's or the user's own functions is waited for last,
// and with a limit, since these may never return: driver, merger, cameras.
//
// Free (td_edge_close): when all have ended, everything at once. No part is
// freed before, because the driver may still hand something to the publisher.
//
// Lock order: the resetter's lock, then the link's. All other locks are taken
// alone and hold no other: the link's by everyone else, the task's, a camera's
// loan, the recorder's status, the presence's and the finder's. The tick takes
// none of them. Nobody waits for the network under a lock, or calls a user's
// function.
#include "edge/edge.h"

#include "base/clock.h"
#include "base/log.h"
#include "edge/loop/merger.h"
#include "edge/loop/tick.h"
#include "edge/record/remote.h"
#include "edge/report/telemetry.h"
#include "edge/session/resetter.h"
#include "edge/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDED 16 // pictures of a camera that wait to be recorded
#define PATIENCE_NS                                                            \
    (2 * TD_NS_PER_S) // before a wait is reported, with its reason

struct td_edge {
    td_net *net;
    td_robot_hardware *robot;
    td_edge_config config;
    int64_t opened_ns;
    bool ended; // of its own: only the robot's and the user's functions may run

    td_edge_core *core;
    td_edge_link *link;
    td_edge_task *task;
    td_edge_resetter *resetter;
    td_edge_cameras cameras;
    td_edge_recorder *recorder; // NULL: nothing is recorded
    td_edge_remote *remote;     // likewise
    td_edge_telemetry *telemetry;
    td_edge_publisher *publisher;
    td_edge_driver *driver;
    td_edge_tick *tick;
    td_edge_merger *merger;
    td_edge_session *session;
};

static int64_t control_period_ns(const td_edge *edge)
{
    return edge->config.core.period_ns / edge->config.core.substeps;
}

static td_err make_resetter(td_edge *edge, td_errinfo *info)
{
    const td_edge_resetter_config config = {
        .net = edge->net,
        .route = &edge->config.route,
        .client = edge->config.client,
        .boot = edge->config.core.boot,
        .generation = edge->config.core.route,
        .core = edge->core,
        .link = edge->link,
    };
    return td_edge_resetter_open(&config, &edge->resetter, info);
}

static td_err make_cameras(td_edge *edge, td_errinfo *info)
{
    const td_edge_cameras_config config = {
        .robot = edge->robot,
        .cameras = edge->config.profile.cameras,
        .period_ns = edge->config.camera_period_ns,
        .count = edge->config.profile.camera_count,
        .kept = edge->config.record.close ? RECORDED : 0,
    };
    return td_edge_cameras_open(&edge->cameras, &config, info);
}

// A dataset needs a task. Recorder's thread.
static void give_task(void *user, char ret_task[TD_DATASET_MAX_TASK])
{
    const td_edge *edge = user;
    td_edge_task_cut(edge->task, edge->config.route.application,
                     TD_DATASET_MAX_TASK, ret_task);
}

static td_edge_episode_writer_config writer_config(const td_edge *edge)
{
    const td_edge_config *config = &edge->config;
    const td_edge_core_settings *core = &config->core;
    td_edge_episode_writer_config writer = {
        .states = core->policy_states ? core->policy_states : core->channels,
        .channels = core->channels,
        .period_ns = core->period_ns,
        .camera_count = config->profile.camera_count,
        .sink = config->record,
        .clock = &td_clock_monotonic,
    };
    for (uint32_t i = 0; i < writer.camera_count; i++) {
        const td_wire_camera *camera = &config->profile.cameras[i];
        writer.camera_names[i] = camera->name;
        writer.camera_period_ns[i] = config->camera_period_ns[i];
        writer.camera_bytes[i] = (size_t)camera->height * camera->width * 3;
        writer.cameras[i] = td_edge_pictures_of(edge->cameras.each[i]);
    }
    return writer;
}

static td_err make_recorder(td_edge *edge, td_errinfo *info)
{
    if (!edge->config.record.close) return TD_OK;
    const td_edge_recorder_config config = {
        .writer = writer_config(edge),
        .substeps = edge->config.core.substeps,
        .begin = edge->config.record_begin,
        .task = give_task,
        .user = edge,
    };
    edge->config.record.close = NULL; // it is the recorder's now
    TD_TRY(td_edge_recorder_open(&config, &edge->recorder, info));
    return td_edge_remote_open(edge->net, &edge->config.route,
                               edge->config.client, edge->recorder,
                               &edge->remote, info);
}

static td_err make_telemetry(td_edge *edge, td_errinfo *info)
{
    const td_edge_telemetry_config config = {
        .net = edge->net,
        .route = &edge->config.route,
        .client = edge->config.client,
        .boot = edge->config.core.boot,
        .opened_ns = edge->opened_ns,
        .period_ns = edge->config.metrics_period_ns,
        .cameras = edge->config.profile.cameras,
        .camera_count = edge->config.profile.camera_count,
    };
    return td_edge_telemetry_open(&config, &edge->telemetry, info);
}

static td_err make_publisher(td_edge *edge, td_errinfo *info)
{
    const td_edge_publisher_config config = {
        .net = edge->net,
        .route = &edge->config.route,
        .client = edge->config.client,
        .core = &edge->config.core,
        .frames =
            {
                .cameras = &edge->cameras,
                .codec = edge->config.codec,
                .jpeg_quality = edge->config.jpeg_quality,
                .jpeg_chroma = edge->config.jpeg_chroma,
            },
        .similar = edge->config.similar,
        .link = edge->link,
        .task = edge->task,
    };
    return td_edge_publisher_new(&config, &edge->publisher, info);
}

static td_err make_driver(td_edge *edge)
{
    const td_edge_config *own = &edge->config;
    const td_edge_driver_config config = {
        .robot = edge->robot,
        .core = edge->core,
        .publisher = edge->publisher,
        .channels = own->core.channels,
        .policy_states = own->core.policy_states,
        .period_ns = control_period_ns(edge),
        .limit_ns = own->driver_limit_ns,
        .control = own->control,
        .control_user = own->control_user,
        .observe_state = own->observe_state,
        .observe_state_user = own->observe_state_user,
        .records = edge->recorder != NULL,
        .pull = own->pull,
    };
    return td_edge_driver_new(&config, &edge->driver);
}

static td_err make_tick(td_edge *edge)
{
    const td_edge_tick_config config = {
        .core = edge->core,
        .driver = edge->driver,
        .publisher = edge->publisher,
        .link = edge->link,
        .recorder = edge->recorder,
        .trace = edge->config.trace,
        .channels = edge->config.core.channels,
        .policy_states = edge->config.core.policy_states,
        .period_ns = control_period_ns(edge),
    };
    return td_edge_tick_new(&config, &edge->tick);
}

static td_err make_merger(td_edge *edge, td_errinfo *info)
{
    const td_edge_merger_config config = {
        .net = edge->net,
        .route = &edge->config.route,
        .client = edge->config.client,
        .link = edge->link,
        .trace = edge->config.trace,
    };
    return td_edge_merger_new(&config, &edge->merger, info);
}

// Session's thread.
static void report(void *user, bool last)
{
    td_edge *edge = user;
    int64_t now_ns = td_clock_monotonic_ns();
    td_edge_report now;
    if (edge->config.trace) td_edge_trace_drain(edge->config.trace);
    if (!last && !td_edge_telemetry_is_due(edge->telemetry, now_ns)) return;
    td_edge_report_get(edge, &now);
    td_edge_times times = td_edge_times_get(edge);
    td_edge_telemetry_put(edge->telemetry, now_ns, &now, &times);
}

static td_err make_session(td_edge *edge, td_errinfo *info)
{
    const td_edge_session_config config = {
        .net = edge->net,
        .route = &edge->config.route,
        .client = edge->config.client,
        .boot = edge->config.core.boot,
        .generation = edge->config.core.route,
        .profile = &edge->config.profile,
        .refused_for_ns = edge->config.refused_for_ns,
        .watchdog_ns = edge->config.watchdog_ns,
        .link = edge->link,
        .report = report,
        .user = edge,
    };
    return td_edge_session_new(&config, &edge->session, info);
}

static td_err make(td_edge *edge, td_errinfo *info)
{
    TD_TRY(td_edge_core_new(&edge->config.core, &edge->core, info));
    TD_TRY(td_edge_link_new(edge->core, &edge->link));
    TD_TRY(td_edge_task_new(edge->config.task, &edge->task, info));
    TD_TRY(make_resetter(edge, info));
    TD_TRY(make_cameras(edge, info));
    TD_TRY(make_recorder(edge, info));
    TD_TRY(make_telemetry(edge, info));
    TD_TRY(make_publisher(edge, info));
    TD_TRY(make_driver(edge));
    TD_TRY(make_tick(edge));
    TD_TRY(make_merger(edge, info));
    return make_session(edge, info);
}

static td_err start(td_edge *edge, td_errinfo *info)
{
    int priority = edge->config.realtime_priority;
    int below = priority > 1 ? priority - 1 : priority;
    TD_TRY(td_edge_merger_start(edge->merger, info));
    TD_TRY(td_edge_publisher_start(edge->publisher, info));
    if (edge->config.pull) return TD_OK;
    TD_TRY(td_edge_driver_start(edge->driver, below, info));
    return td_edge_tick_start(edge->tick, priority, edge->config.cpu, info);
}

static void stop(td_edge *edge)
{
    if (edge->driver) td_edge_driver_stop(edge->driver);
    if (edge->merger) td_edge_merger_stop(edge->merger);
    td_edge_cameras_stop(&edge->cameras);
    if (edge->tick) td_edge_tick_end(edge->tick);
    if (edge->publisher) td_edge_publisher_end(edge->publisher);
    if (edge->remote) td_edge_remote_leave(edge->remote);
    if (edge->recorder) td_edge_recorder_close(TD_TAKE(edge->recorder));
}

static void leave(td_edge *edge)
{
    if (edge->session) td_edge_session_leave(edge->session);
    if (edge->merger) td_edge_merger_leave(edge->merger);
    if (edge->telemetry) td_edge_telemetry_leave(edge->telemetry);
    if (edge->publisher) td_edge_publisher_leave(edge->publisher);
    if (edge->resetter) td_edge_resetter_leave(edge->resetter);
}

static bool note_ended(bool ended, const char *functions)
{
    if (!ended)
        td_log_text(TD_LOG_ERROR, "edge: cannot close: %s has not returned",
                    functions);
    return ended;
}

static bool drain(const td_edge *edge, int64_t until_ns)
{
    bool ended = true;
    if (edge->driver)
        ended &= note_ended(td_edge_driver_end(edge->driver, until_ns),
                            "the robot's read() or write()");
    if (edge->merger)
        ended &= note_ended(td_edge_merger_end(edge->merger, until_ns),
                            "aggregate()");
    ended &= td_edge_cameras_end(&edge->cameras, until_ns);
    return ended;
}

bool td_edge_end(td_edge *edge, int64_t limit_ns)
{
    if (!edge->ended) {
        edge->ended = true;
        stop(edge);
        leave(edge);
    }
    return drain(edge, limit_ns == INT64_MAX
                           ? INT64_MAX
                           : td_clock_monotonic_ns() + limit_ns);
}

static void unmake(td_edge *edge)
{
    if (edge->session) td_edge_session_free(edge->session);
    if (edge->merger) td_edge_merger_free(edge->merger);
    if (edge->tick) td_edge_tick_free(edge->tick);
    if (edge->driver) td_edge_driver_free(edge->driver);
    if (edge->publisher) td_edge_publisher_free(edge->publisher);
    if (edge->telemetry) td_edge_telemetry_close(edge->telemetry);
    if (edge->remote) td_edge_remote_close(edge->remote);
    td_edge_cameras_close(&edge->cameras);
    if (edge->resetter) td_edge_resetter_close(edge->resetter);
    if (edge->task) td_edge_task_free(edge->task);
    if (edge->link) td_edge_link_free(edge->link);
    if (edge->core) td_edge_core_free(edge->core);
    if (edge->config.record.close)
        edge->config.record.close(edge->config.record.user);
    free(edge);
}

void td_edge_close(td_edge *edge)
{
    if (!td_edge_end(edge, PATIENCE_NS)) (void)td_edge_end(edge, INT64_MAX);
    unmake(edge);
}

td_err td_edge_open(td_net *net, td_robot_hardware *robot,
                    const td_edge_config *config, td_edge **ret_edge,
                    td_errinfo *info)
{
    td_edge *edge = calloc(1, sizeof *edge);
    if (!edge && config->record.close)
        config->record.close(config->record.user);
    if (!edge) return TD_ERR_NOMEM;
    edge->net = net;
    edge->robot = robot;
    edge->config = *config;
    edge->opened_ns = td_clock_monotonic_ns();
    edge->config.core.start_ns = edge->opened_ns;
    td_err err = make(edge, info);
    if (err == TD_OK) err = start(edge, info);
    if (err != TD_OK) {
        td_edge_close(edge);
        return err;
    }
    *ret_edge = edge;
    return TD_OK;
}

td_err td_edge_run(td_edge *edge, td_errinfo *info)
{
    return td_edge_session_run(edge->session, info);
}

void td_edge_stop(td_edge *edge)
{
    td_edge_session_stop(edge->session);
}

td_edge_step td_edge_pull(td_edge *edge, const float *state)
{
    return td_edge_tick_pull(edge->tick, state);
}

td_err td_edge_reset(td_edge *edge, const char *reason, td_errinfo *info)
{
    return td_edge_resetter_begin(edge->resetter, reason, info);
}

td_err td_edge_set_task(td_edge *edge, const char *task, td_errinfo *info)
{
    return td_edge_task_set(edge->task, task, info);
}

td_err td_edge_episode(td_edge *edge, td_edge_episode_command command,
                       td_errinfo *info)
{
    if (!edge->recorder)
        return td_fail(info, TD_ERR_UNSUPPORTED, "nothing is recorded");
    return td_edge_recorder_execute(edge->recorder, command, info);
}

td_edge_state td_edge_state_get(const td_edge *edge)
{
    return td_edge_session_stats_get(edge->session).state;
}

static void report_session(const td_edge *edge, td_edge_report *report)
{
    td_edge_session_stats session = td_edge_session_stats_get(edge->session);
    report->state = session.state;
    memcpy(report->entered, session.entered, sizeof report->entered);
    memcpy(report->replies, session.replies, sizeof report->replies);
    td_edge_link_counts(edge->link, &report->counts);
    td_edge_link_server(edge->link, report->server);
}

static void report_cameras(const td_edge *edge, td_edge_report *report)
{
    td_edge_publisher_stats publisher =
        td_edge_publisher_stats_get(edge->publisher);
    report->camera_count = edge->cameras.count;
    for (uint32_t i = 0; i < report->camera_count; i++) {
        td_wire_text name = edge->cameras.wire[i].name;
        td_edge_camera_report *camera = &report->cameras[i];
        camera->taken = td_edge_camera_taken(edge->cameras.each[i]);
        camera->failed = td_edge_camera_failed(edge->cameras.each[i]);
        camera->stale = publisher.stale[i];
        (void)snprintf(camera->name, sizeof camera->name, "%.*s",
                       (int)name.size, name.data);
    }
}

void td_edge_report_get(td_edge *edge, td_edge_report *ret_report)
{
    td_edge_driver_stats driver = td_edge_driver_stats_get(edge->driver);
    *ret_report = (td_edge_report){
        .outbox_replaced = driver.replaced,
        .driver_failed = driver.failed,
        .missed_ticks = td_edge_tick_stats_get(edge->tick).missed,
        .inbox_full = td_edge_merger_stats_get(edge->merger).full,
        .resets_failed = td_edge_resetter_failed(edge->resetter),
        .metrics_failed = td_edge_telemetry_failed(edge->telemetry),
        .net = td_net_counts_get(edge->net),
    };
    if (edge->remote)
        ret_report->inbox_full += td_edge_remote_full(edge->remote);
    if (edge->recorder)
        ret_report->record = td_edge_recorder_status(edge->recorder);
    report_session(edge, ret_report);
    report_cameras(edge, ret_report);
}

void td_edge_metrics_get(td_edge *edge, int64_t now_ns,
                         td_wire_metrics *ret_metrics)
{
    td_edge_report now;
    td_edge_report_get(edge, &now);
    td_edge_times times = td_edge_times_get(edge);
    td_edge_telemetry_fill(edge->telemetry, now_ns, &now, &times, ret_metrics);
}

td_edge_times td_edge_times_get(const td_edge *edge)
{
    td_edge_tick_stats tick = td_edge_tick_stats_get(edge->tick);
    td_edge_merger_stats merger = td_edge_merger_stats_get(edge->merger);
    return (td_edge_times){
        .lateness_ns = tick.lateness_ns,
        .age_ns = tick.age_ns,
        .transport_ns = merger.transport_ns,
        .installed_ns = merger.installed_ns,
        .control_ns = td_edge_driver_stats_get(edge->driver).control_ns,
        .skew_ns = td_edge_publisher_stats_get(edge->publisher).skew_ns,
    };
}

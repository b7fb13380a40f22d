// SPDX-License-Identifier: Apache-2.0
// Shutdown: driver and cameras are told; the tick stops first, so that nothing
// new is asked; then the publisher; then the recorder, which saves its episode;
// then all that is declared on the network goes. What calls the robot's or the
// user's own functions comes last, since these may never return: driver, merge,
// cameras. With them everything is freed.
#include "edge/edge.h"

#include "base/log.h"
#include "edge/shell.h"
#include "wire/msgpack/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECEIVED 256
#define RECORDED 16 // pictures of a camera that wait to be recorded
#define PATIENCE_NS (2 * TD_NS_PER_S) // before one that waits says for whom

static void init_values(td_edge *edge)
{
    pthread_mutex_init(&edge->lock, NULL);
    td_event_init(&edge->driver_wake);
    td_event_init(&edge->publisher_wake);
    td_event_init(&edge->merge_wake);
    td_event_init(&edge->session_wake);
    td_hist_init(&edge->lateness_ns);
    td_hist_init(&edge->age_ns);
    td_hist_init(&edge->control_ns);
    td_hist_init(&edge->transport_ns);
    td_hist_init(&edge->installed_ns);
    td_hist_init(&edge->skew_ns);
    edge->opened_ns = td_clock_now_ns(&td_clock_monotonic);
    edge->config.core.start_ns = edge->opened_ns;
    // A host begins when it likes.
    edge->driven_ns = edge->config.pull ? INT64_MAX : edge->opened_ns;
}

static td_err open_cameras(td_edge *edge, td_errinfo *info)
{
    const td_edge_profile *profile = &edge->config.profile;
    uint32_t kept = edge->config.record.close ? RECORDED : 0;
    for (uint32_t i = 0; i < profile->camera_count; i++)
        TD_TRY(td_edge_camera_open(edge->robot, i, &profile->cameras[i],
                                   edge->config.camera_period_ns[i], kept,
                                   &edge->cameras[i], info));
    return TD_OK;
}

static td_err make(td_edge *edge, td_errinfo *info)
{
    TD_TRY(td_edge_core_new(&edge->config.core, &edge->core, info));
    TD_TRY(td_slot_new(sizeof(td_edge_command), &edge->commands));
    TD_TRY(td_slot_new(sizeof(td_edge_request), &edge->requests));
    TD_TRY(td_slot_new(sizeof(td_edge_reading), &edge->readings));
    TD_TRY(td_slot_new(sizeof(td_edge_outgoing), &edge->outbox));
    TD_TRY(td_queue_new(RECEIVED, sizeof(td_edge_received), &edge->received));
    TD_TRY(td_wire_decoder_new(&edge->decoder));
    TD_TRY(td_edge_set_task(edge, edge->config.task, info));
    TD_TRY(td_edge_reset_open(edge, info));
    TD_TRY(open_cameras(edge, info));
    TD_TRY(td_edge_episode_open(edge, info));
    td_edge_telemetry_open(edge);
    TD_TRY(td_edge_publisher_new(edge, &edge->publisher, info));
    return td_edge_session_new(edge, &edge->session, info);
}

static td_err start_thread(td_edge *edge, const char *name, int priority,
                           int cpu, void (*run)(void *), td_thread **ret_thread,
                           td_errinfo *info)
{
    td_thread_config config = {
        .name = name, .realtime_priority = priority, .cpu = cpu};
    return td_thread_start(&config, run, edge, ret_thread, info);
}

// Of the tick alone: the driver asks for less, and a system that refuses it
// refuses the tick.
static void say_refusal(const td_edge *edge)
{
    const char *refusal = td_thread_refusal(edge->tick);
    if (refusal) td_log_text(TD_LOG_WARN, "%s", refusal);
}

static td_err start(td_edge *edge, td_errinfo *info)
{
    int priority = edge->config.realtime_priority;
    int below = priority > 1 ? priority - 1 : priority;
    TD_TRY(start_thread(edge, "td-merge", 0, -1, td_edge_merger_run,
                        &edge->merge, info));
    TD_TRY(start_thread(edge, "td-publisher", 0, -1, td_edge_publisher_run,
                        &edge->publisher_thread, info));
    if (edge->config.pull) return TD_OK;
    TD_TRY(start_thread(edge, "td-driver", below, -1, td_edge_driver_run,
                        &edge->driver, info));
    TD_TRY(start_thread(edge, "td-tick", priority, edge->config.cpu,
                        td_edge_tick_run, &edge->tick, info));
    say_refusal(edge);
    return TD_OK;
}

static void free_slot(td_slot *slot)
{
    if (slot) td_slot_free(slot);
}

static void unmake(td_edge *edge)
{
    td_edge_received received;
    while (edge->received && td_queue_pop(edge->received, &received) == TD_OK)
        td_net_msg_free(received.msg);
    for (uint32_t i = 0; i < TD_WIRE_MAX_IMAGES; i++)
        if (edge->cameras[i]) td_edge_camera_close(edge->cameras[i]);
    if (edge->decoder) td_wire_decoder_free(edge->decoder);
    if (edge->received) td_queue_free(edge->received);
    free_slot(edge->outbox);
    free_slot(edge->readings);
    free_slot(edge->requests);
    free_slot(edge->commands);
    if (edge->core) td_edge_core_free(edge->core);
    pthread_mutex_destroy(&edge->lock);
    free(edge);
}

static void end_own(td_edge *edge)
{
    if (atomic_exchange(&edge->stop_threads, true)) return;
    td_event_signal(&edge->driver_wake);
    td_event_signal(&edge->merge_wake);
    for (uint32_t i = 0; i < TD_WIRE_MAX_IMAGES; i++)
        if (edge->cameras[i]) td_edge_camera_stop(edge->cameras[i]);
    if (edge->tick) td_thread_join(edge->tick);
    td_event_signal(&edge->publisher_wake);
    if (edge->publisher_thread) td_thread_join(edge->publisher_thread);
    td_edge_episode_close(edge);
    if (edge->session) td_edge_session_free(edge->session);
    if (edge->publisher) td_edge_publisher_free(edge->publisher);
    if (edge->resets) td_net_unpublish(edge->resets);
}

static bool end_thread(td_thread **thread, const char *functions,
                       int64_t until_ns)
{
    if (!*thread) return true;
    if (td_thread_join_until(*thread, until_ns)) {
        *thread = NULL;
        return true;
    }
    td_log_text(TD_LOG_ERROR, "edge: cannot close: %s has not returned",
                functions);
    return false;
}

static bool end_camera(const td_edge *edge, uint32_t index, int64_t until_ns)
{
    td_wire_text name = edge->config.profile.cameras[index].name;
    if (!edge->cameras[index] ||
        td_edge_camera_end(edge->cameras[index], until_ns))
        return true;
    td_log_text(TD_LOG_ERROR,
                "edge: cannot close: camera %.*s's frame() has not returned",
                (int)name.size, name.data);
    return false;
}

bool td_edge_end(td_edge *edge, int64_t limit_ns)
{
    end_own(edge);
    int64_t until_ns = INT64_MAX;
    if (limit_ns < INT64_MAX)
        until_ns = td_clock_now_ns(&td_clock_monotonic) + limit_ns;
    bool ended =
        end_thread(&edge->driver, "the robot's read() or write()", until_ns);
    ended &= end_thread(&edge->merge, "aggregate()", until_ns);
    for (uint32_t i = 0; i < TD_WIRE_MAX_IMAGES; i++)
        ended &= end_camera(edge, i, until_ns);
    return ended;
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
    init_values(edge);
    td_err err = make(edge, info);
    if (err == TD_OK) err = start(edge, info);
    if (err != TD_OK) {
        td_edge_close(edge);
        return err;
    }
    *ret_edge = edge;
    return TD_OK;
}

void td_edge_stop(td_edge *edge)
{
    atomic_store(&edge->stop_session, true);
    td_event_signal(&edge->session_wake);
}

td_err td_edge_set_task(td_edge *edge, const char *task, td_errinfo *info)
{
    const td_wire_at at = {.name = td_wire_text_of("task"), .info = info};
    TD_TRY(td_wire_text_check(&at, td_wire_text_of(task)));
    pthread_mutex_lock(&edge->lock);
    memcpy(edge->task, task, strlen(task) + 1);
    pthread_mutex_unlock(&edge->lock);
    return TD_OK;
}

td_edge_state td_edge_state_get(const td_edge *edge)
{
    return (td_edge_state)atomic_load(&edge->state);
}

static void report_camera(const td_edge *edge, uint32_t index,
                          td_edge_camera_report *ret_report)
{
    td_wire_text name = edge->config.profile.cameras[index].name;
    *ret_report = (td_edge_camera_report){
        .taken = td_edge_camera_taken(edge->cameras[index]),
        .failed = td_edge_camera_failed(edge->cameras[index]),
        .stale = atomic_load(&edge->stale[index]),
    };
    (void)snprintf(ret_report->name, sizeof ret_report->name, "%.*s",
                   (int)name.size, name.data);
}

void td_edge_report_get(td_edge *edge, td_edge_report *ret_report)
{
    *ret_report = (td_edge_report){
        .state = td_edge_state_get(edge),
        .outbox_replaced = atomic_load(&edge->outbox_replaced),
        .metrics_failed = atomic_load(&edge->metrics_failed),
        .inbox_full = atomic_load(&edge->inbox_full),
        .missed_ticks = atomic_load(&edge->missed_ticks),
        .driver_failed = atomic_load(&edge->driver_failed),
        .resets_failed = atomic_load(&edge->resets_failed),
        .net = td_net_counts_get(edge->net),
    };
    for (int i = 0; i < TD_EDGE_STATE_COUNT; i++)
        ret_report->entered[i] = atomic_load(&edge->entered[i]);
    for (int i = 0; i < TD_EDGE_REPLY_COUNT; i++)
        ret_report->replies[i] = atomic_load(&edge->replies[i]);
    ret_report->camera_count = edge->config.profile.camera_count;
    for (uint32_t i = 0; i < ret_report->camera_count; i++)
        report_camera(edge, i, &ret_report->cameras[i]);
    if (edge->recorder)
        ret_report->record = td_edge_recorder_look(edge->recorder);
    pthread_mutex_lock(&edge->lock);
    td_edge_core_counts(edge->core, &ret_report->counts);
    memcpy(ret_report->server, edge->server, sizeof ret_report->server);
    pthread_mutex_unlock(&edge->lock);
}

td_edge_times td_edge_times_get(const td_edge *edge)
{
    return (td_edge_times){
        .lateness_ns = &edge->lateness_ns,
        .age_ns = &edge->age_ns,
        .transport_ns = &edge->transport_ns,
        .installed_ns = &edge->installed_ns,
        .control_ns = &edge->control_ns,
        .skew_ns = &edge->skew_ns,
    };
}

// SPDX-License-Identifier: Apache-2.0
#include "edge/runtime.h"

#include "base/log.h"
#include "base/sync/thread.h"
#include "edge/record/dataset_sink.h"
#include "edge/report/prometheus.h"
#include "edge/session/boot.h"
#include "edge/settings.h"
#include "net/zenoh/zenoh.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MESSAGES_BYTES ((size_t)8 << 20)
#define FRAMES 6

static td_err open_robot(td_edge_runtime *runtime,
                         const td_config_robot *config,
                         const td_edge_runtime_options *options,
                         td_errinfo *info)
{
    td_robot_config *robot = malloc(sizeof *robot);
    if (!robot) return TD_ERR_NOMEM;
    td_edge_settings_robot(config, robot);
    robot->callbacks = options->callbacks;
    td_err err =
        td_robot_hardware_open(td_config_robot_kind_name(config->robot.kind),
                               robot, &runtime->robot, info);
    free(robot);
    return err;
}

// Room for messages, and for frames that the cameras take into it: of each, so
// many are with the camera, on their way or with the server.
static size_t pool_bytes(const td_config_robot *config)
{
    size_t bytes = MESSAGES_BYTES;
    for (size_t i = 0; i < config->robot.camera_count; i++) {
        const td_config_robot_camera *camera = &config->robot.cameras[i];
        size_t pixel_bytes = (size_t)camera->height * (size_t)camera->width * 3;
        bytes += FRAMES * (pixel_bytes + TD_ROBOT_JPEG_MORE);
    }
    return bytes;
}

static td_err open_net(td_edge_runtime *runtime, const td_config_robot *config,
                       td_net *given, td_errinfo *info)
{
    const td_net_zenoh_config net = {
        .mode = config->mode == TD_CONFIG_ROBOT_PEER ? TD_NET_ZENOH_PEER
                                                     : TD_NET_ZENOH_CLIENT,
        .connect = &config->endpoint,
        .connect_count = 1,
        .shared_memory = config->shared_memory,
        .shm_pool_bytes = pool_bytes(config),
    };
    runtime->net = given;
    runtime->net_is_ours = !given;
    return given ? TD_OK : td_net_zenoh_open(&net, &runtime->net, info);
}

static uint64_t boot_number(const td_config_robot *config)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    int64_t wall_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    uint64_t boot;
    td_errinfo info;
    if (td_edge_boot_next(config->boot_file, wall_ms, &boot, &info) != TD_OK)
        td_log_text(TD_LOG_WARN, "robot: %s", info.text);
    return boot;
}

static void add_options(const td_edge_runtime_options *options,
                        td_edge_config *edge)
{
    edge->trace = options->trace;
    edge->control = options->control;
    edge->control_user = options->control_user;
    edge->observe_state = options->observe_state;
    edge->observe_state_user = options->observe_state_user;
    edge->pull = options->pull;
    if (!options->blend && !options->blend_all) return;
    edge->core.aggregate = TD_EDGE_CUSTOM;
    edge->core.blend = options->blend;
    edge->core.blend_all = options->blend_all;
    edge->core.blend_user = options->blend_user;
}

static td_err open_edge(td_edge_runtime *runtime, const td_config_robot *config,
                        const td_edge_runtime_options *options,
                        td_errinfo *info)
{
    if (config->robot.state_count > 0 && !options->observe_state)
        return td_fail(info, TD_ERR_INVALID,
                       "robot.states: nobody says what they are; they are for "
                       "programs that use the C API");
    td_edge_config *edge = malloc(sizeof *edge);
    if (!edge) return TD_ERR_NOMEM;
    td_edge_settings_from(config, boot_number(config), edge);
    add_options(options, edge);
    td_err err = TD_OK;
    if (config->record.dir[0])
        err = td_edge_dataset_sink_open(config, &edge->record, info);
    if (err == TD_OK)
        err = td_edge_open(runtime->net, runtime->robot, edge, &runtime->edge,
                           info);
    free(edge);
    return err;
}

// td-http's thread.
static void give_metrics(td_http_reply *reply, const char *query, void *user)
{
    (void)query;
    const td_edge_runtime *runtime = user;
    td_edge_report report;
    td_edge_report_get(runtime->edge, &report);
    td_edge_times times = td_edge_times_get(runtime->edge);
    td_prom prom;
    td_prom_init(&prom, reply->out);
    reply->type = TD_PROM_TEXT_TYPE;
    td_edge_prometheus_write(&prom, runtime->client, &report, &times);
}

static td_err open_http(td_edge_runtime *runtime, const td_config_robot *config,
                        td_errinfo *info)
{
    static const td_http_route routes[] = {{"/metrics", give_metrics}};
    const td_http_config http = {
        .what = "metrics",
        .port = (uint16_t)config->prometheus_port,
        .routes = routes,
        .route_count = TD_COUNT_OF(routes),
        .user = runtime,
    };
    return config->prometheus_port ? td_http_open(&http, &runtime->http, info)
                                   : TD_OK;
}

static void lock_memory(const td_config_robot *config)
{
    td_errinfo refusal;
    if (config->realtime.lock_memory &&
        td_thread_lock_memory(&refusal) != TD_OK)
        td_log_text(TD_LOG_WARN, "robot: %s", refusal.text);
}

static void stay_awake(td_edge_runtime *runtime, const td_config_robot *config)
{
    td_errinfo refusal;
    if (config->realtime.wake_us < 0) return;
    runtime->awake =
        td_thread_stay_awake((int32_t)config->realtime.wake_us,
                             &runtime->awake_fd, &refusal) == TD_OK;
    if (!runtime->awake) td_log_text(TD_LOG_WARN, "robot: %s", refusal.text);
}

// The tick has its CPU to itself: whatever is started here runs on the others.
static td_err open_beside_tick(td_edge_runtime *runtime,
                               const td_config_robot *config,
                               const td_edge_runtime_options *options,
                               td_errinfo *info)
{
    cpu_set_t before;
    td_errinfo refusal;
    bool kept = config->realtime.cpu >= 0 && !options->pull &&
                td_thread_keep_off((int)config->realtime.cpu, &before,
                                   &refusal) == TD_OK;
    if (config->realtime.cpu >= 0 && !options->pull && !kept)
        td_log_text(TD_LOG_WARN, "robot: realtime.cpu: %s", refusal.text);
    td_err err = open_net(runtime, config, options->net, info);
    if (err == TD_OK) err = open_edge(runtime, config, options, info);
    if (kept) td_thread_run_on(&before);
    return err;
}

static td_err open_parts(td_edge_runtime *runtime,
                         const td_config_robot *config,
                         const td_edge_runtime_options *options,
                         td_errinfo *info)
{
    TD_TRY(open_robot(runtime, config, options, info));
    lock_memory(config);
    stay_awake(runtime, config);
    TD_TRY(open_beside_tick(runtime, config, options, info));
    return open_http(runtime, config, info);
}

td_err td_edge_runtime_open(td_edge_runtime *runtime,
                            const td_config_robot *config,
                            const td_edge_runtime_options *options,
                            td_errinfo *info)
{
    *runtime = (td_edge_runtime){.client = config->client_uuid};
    td_err err = open_parts(runtime, config, options, info);
    if (err != TD_OK) td_edge_runtime_close(runtime);
    return err;
}

static void close_http(td_edge_runtime *runtime)
{
    if (runtime->http) td_http_close(TD_TAKE(runtime->http));
}

bool td_edge_runtime_end(td_edge_runtime *runtime, int64_t limit_ns)
{
    close_http(runtime);
    if (td_edge_end(runtime->edge, limit_ns)) return true;
    if (runtime->net_is_ours) td_net_close(TD_TAKE(runtime->net));
    return false;
}

void td_edge_runtime_close(td_edge_runtime *runtime)
{
    close_http(runtime);
    if (runtime->edge) td_edge_close(runtime->edge);
    if (runtime->net && runtime->net_is_ours) td_net_close(runtime->net);
    if (runtime->robot) td_robot_hardware_close(runtime->robot);
    if (runtime->awake) (void)close(runtime->awake_fd);
    *runtime = (td_edge_runtime){0};
}

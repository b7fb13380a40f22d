// SPDX-License-Identifier: Apache-2.0
#include "bench/rig.h"

#include "base/clock.h"
#include "base/sync/thread.h"
#include "edge/record/dataset_sink.h"
#include "edge/settings.h"
#include "net/zenoh/zenoh.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STREAM_WAIT_NS (20 * TD_NS_PER_S)
#define LOOK_NS (2 * TD_NS_PER_MS)
#define TEXT_BYTES 2048

static const char joints[] =
    "[j0, j1, j2, j3, j4, j5, j6, j7, j8, j9, j10, j11, j12, j13]";

static int clients; // so far

// A port that the kernel gives and that is free again when this returns.
static td_err free_port(uint16_t *ret_port, td_errinfo *info)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return td_fail(info, TD_ERR_IO, "socket: %s", strerror(errno));
    bool ok = bind(fd, (struct sockaddr *)&address, size) == 0 &&
              getsockname(fd, (struct sockaddr *)&address, &size) == 0;
    (void)close(fd);
    if (!ok) return td_fail(info, TD_ERR_IO, "no free port on 127.0.0.1");
    *ret_port = ntohs(address.sin_port);
    return TD_OK;
}

td_err td_bench_endpoint(td_bench_link link, char ret[TD_BENCH_ENDPOINT_BYTES],
                         td_errinfo *info)
{
    char path[TD_BENCH_PATH_BYTES];
    uint16_t port = 0;
    if (link == TD_BENCH_UNIX) {
        TD_TRY(td_bench_file("sock", path, info));
        (void)snprintf(ret, TD_BENCH_ENDPOINT_BYTES, "unixsock-stream/%s",
                       path);
        return TD_OK;
    }
    TD_TRY(free_port(&port, info));
    (void)snprintf(ret, TD_BENCH_ENDPOINT_BYTES, "tcp/127.0.0.1:%u", port);
    return TD_OK;
}

static void print_cameras(const td_bench_setup *setup, char *ret, size_t size)
{
    size_t used = 0;
    used += (size_t)snprintf(ret, size, "{");
    for (uint32_t i = 0; i < setup->cameras; i++)
        used += (size_t)snprintf(ret + used, size - used,
                                 "%scam%u: {height: %u, width: %u}",
                                 i ? ", " : "", i, setup->height, setup->width);
    (void)snprintf(ret + used, size - used, "}");
}

// `tendon-bench policy` for a worker.
static void print_engine(const td_bench_setup *setup, char *ret, size_t size)
{
    char self[512];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    if (setup->worker)
        (void)snprintf(ret, size,
                       "    kind: worker\n"
                       "    command: [\"%s\", policy]\n",
                       self);
    else
        (void)snprintf(ret, size,
                       "    kind: synthetic\n"
                       "    latency: {kind: fixed, ms: %g, per_batch_ms: %g}\n",
                       setup->batch_ms, setup->member_ms);
}

static void print_manifest(const td_bench_setup *setup, const char *endpoint,
                           char ret[TEXT_BYTES])
{
    char cameras[512];
    char engine[640];
    print_cameras(setup, cameras, sizeof cameras);
    print_engine(setup, engine, sizeof engine);
    (void)snprintf(ret, TEXT_BYTES,
                   "cluster_uuid: bench\n"
                   "experiment_tag: bench\n"
                   "models:\n"
                   "- model_id: still\n"
                   "  model_version: v1\n"
                   "  application_tag: bench\n"
                   "  server_id: bench\n"
                   "  fps: %lld\n"
                   "  endpoint: %s\n"
                   "  mode: %s\n"
                   "  shared_memory: %s\n"
                   "  accept_unknown: true\n"
                   "  capacity: %lld\n"
                   "  engine:\n"
                   "%s"
                   "    actions: %s\n"
                   "    cameras: %s\n"
                   "    chunk: %d\n"
                   "    max_batch: %lld\n",
                   (long long)setup->fps, endpoint,
                   setup->meeting ? "client" : "peer",
                   setup->link == TD_BENCH_SHM ? "true" : "false",
                   (long long)(setup->capacity ? setup->capacity : 256), engine,
                   joints, cameras, TD_BENCH_ROWS,
                   (long long)(setup->max_batch ? setup->max_batch : 8));
}

void td_bench_next_action_key(char ret_key[TD_WIRE_MAX_KEY])
{
    (void)snprintf(ret_key, TD_WIRE_MAX_KEY,
                   "bench/bench/still/v1/bench/robot-%d/action", clients + 1);
}

static void print_robot(const td_bench_setup *setup, char ret[TEXT_BYTES])
{
    char cameras[512];
    print_cameras(setup, cameras, sizeof cameras);
    (void)snprintf(ret, TEXT_BYTES,
                   "cluster_uuid: bench\n"
                   "experiment_tag: bench\n"
                   "model_id: still\n"
                   "model_version: v1\n"
                   "application_tag: bench\n"
                   "client_uuid: robot-%d\n"
                   "endpoint: tcp/127.0.0.1:1\n"
                   "robot:\n"
                   "  kind: synthetic\n"
                   "  joints: %s\n"
                   "  cameras: %s\n"
                   "fps: %lld\n"
                   "actions_per_chunk: %d\n"
                   "chunk_size_threshold: %s\n"
                   "image_codec: %s\n"
                   "control_hz: %lld\n"
                   "record: {dir: \"%s\"}\n"
                   "metrics_hz: 0\n",
                   ++clients, joints, cameras, (long long)setup->fps,
                   TD_BENCH_ROWS, setup->eager ? "1" : "0.5",
                   setup->raw ? "raw" : "jpeg", (long long)setup->control_hz,
                   setup->record ? setup->record : "");
}

static td_err write_text(const char *path, const char *text, td_errinfo *info)
{
    FILE *file = fopen(path, "we");
    if (!file) return td_fail(info, TD_ERR_IO, "%s: %s", path, strerror(errno));
    bool ok = fputs(text, file) >= 0;
    if (fclose(file) == 0 && ok) return TD_OK;
    return td_fail(info, TD_ERR_IO, "%s: cannot write", path);
}

td_err td_bench_server_start(const td_bench_setup *setup,
                             td_bench_server *ret_server, td_errinfo *info)
{
    td_bench_server server = {0};
    char text[TEXT_BYTES];
    char path[TD_BENCH_PATH_BYTES];
    const char *given = setup->meeting ? setup->meeting : setup->listen;
    if (given)
        (void)snprintf(server.endpoint, sizeof server.endpoint, "%s", given);
    else
        TD_TRY(td_bench_endpoint(setup->link, server.endpoint, info));
    TD_TRY(td_bench_file("yaml", path, info));
    print_manifest(setup, server.endpoint, text);
    TD_TRY(write_text(path, text, info));
    const char *args[] = {"serve", path, "--log", "error", NULL};
    TD_TRY(td_bench_tendon_start(args, &server.child, info));
    *ret_server = server;
    return TD_OK;
}

td_err td_bench_net_open(const td_bench_setup *setup,
                         const td_bench_server *server, td_net **ret_net,
                         td_errinfo *info)
{
    const char *const connect[] = {server->endpoint};
    td_net_zenoh_config config = {
        .mode = TD_NET_ZENOH_CLIENT,
        .connect = connect,
        .connect_count = TD_COUNT_OF(connect),
        .shared_memory = setup->link == TD_BENCH_SHM,
    };
    return td_net_zenoh_open(&config, ret_net, info);
}

static td_err parse_robot(const td_bench_setup *setup,
                          td_config_robot **ret_config, td_errinfo *info)
{
    char text[TEXT_BYTES];
    print_robot(setup, text);
    return td_config_robot_parse("bench robot", text, strlen(text), ret_config,
                                 info);
}

td_err td_bench_synthetic_open(const td_bench_setup *setup,
                               td_robot_hardware **ret_robot, td_errinfo *info)
{
    TD_AUTO(td_config_robot) *config = NULL;
    TD_TRY(parse_robot(setup, &config, info));
    td_robot_config robot;
    td_edge_settings_robot(config, &robot);
    return td_robot_hardware_open("synthetic", &robot, ret_robot, info);
}

td_err td_bench_record_open(const td_bench_setup *setup,
                            td_edge_episode_sink *ret_sink, td_errinfo *info)
{
    TD_AUTO(td_config_robot) *config = NULL;
    TD_TRY(parse_robot(setup, &config, info));
    return td_edge_dataset_sink_open(config, ret_sink, info);
}

struct td_bench_edge {
    td_config_robot *file;
    td_edge_config config; // borrows from the file
    td_edge *edge;
    td_thread *session;
    _Atomic bool ended; // the session, with:
    td_err err;
    td_errinfo info;
};

static void run_session(void *user)
{
    td_bench_edge *edge = user;
    edge->err = td_edge_run(edge->edge, &edge->info);
    edge->ended = true;
}

static td_err edge_start(const td_bench_setup *setup, td_net *net,
                         td_robot_hardware *robot, td_bench_edge *edge,
                         td_errinfo *info)
{
    const td_thread_config thread = {.name = "td-session", .cpu = -1};
    TD_TRY(parse_robot(setup, &edge->file, info));
    td_edge_settings_from(edge->file, 1, &edge->config);
    if (setup->own_cpu) edge->config.cpu = setup->own_cpu - 1;
    if (setup->jpeg_quality) edge->config.jpeg_quality = setup->jpeg_quality;
    if (setup->record)
        TD_TRY(
            td_edge_dataset_sink_open(edge->file, &edge->config.record, info));
    TD_TRY(td_edge_open(net, robot, &edge->config, &edge->edge, info));
    TD_TRY(td_thread_start(&thread, run_session, edge, &edge->session, info));
    return td_bench_edge_wait(edge, info);
}

td_err td_bench_edge_open(const td_bench_setup *setup, td_net *net,
                          td_robot_hardware *robot, td_bench_edge **ret_edge,
                          td_errinfo *info)
{
    TD_AUTO(td_bench_edge) *edge = calloc(1, sizeof *edge);
    if (!edge) return TD_ERR_NOMEM;
    TD_TRY(edge_start(setup, net, robot, edge, info));
    *ret_edge = TD_TAKE(edge);
    return TD_OK;
}

td_edge *td_bench_edge_get(const td_bench_edge *edge)
{
    return edge->edge;
}

const td_edge_config *td_bench_edge_config(const td_bench_edge *edge)
{
    return &edge->config;
}

td_err td_bench_edge_wait(td_bench_edge *edge, td_errinfo *info)
{
    int64_t until_ns = td_clock_monotonic_ns() + STREAM_WAIT_NS;
    while (td_clock_monotonic_ns() < until_ns) {
        td_edge_report report;
        td_edge_report_get(edge->edge, &report);
        if (report.state == TD_EDGE_STREAMING) return TD_OK;
        if (edge->ended) return td_fail(info, edge->err, "%s", edge->info.text);
        TD_TRY(td_bench_sleep(LOOK_NS));
    }
    return td_fail(info, TD_ERR_TIMEOUT, "the robot found no server");
}

void td_bench_edge_stop(td_bench_edge *edge)
{
    if (!edge->session) return;
    td_edge_stop(edge->edge);
    td_thread_join(edge->session);
    edge->session = NULL;
}

void td_bench_edge_close(td_bench_edge *edge)
{
    td_bench_edge_stop(edge);
    if (edge->edge) td_edge_close(edge->edge);
    if (edge->file) td_config_robot_free(edge->file);
    free(edge);
}

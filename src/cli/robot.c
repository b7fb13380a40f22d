// SPDX-License-Identifier: Apache-2.0
#include "config/robot.h"
#include "base/expose.h"
#include "cli/cli.h"
#include "cli/link.h"
#include "edge/boot.h"
#include "edge/plot.h"
#include "edge/prometheus.h"
#include "edge/settings.h"
#include "net/zenoh/zenoh.h"

#include "base/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char help[] =
    "usage: tendon robot ROBOT.yaml [--check] [--plot DIR] [--log LEVEL]\n"
    "       tendon robot --fields\n"
    "\n"
    "Runs a robot: finds its server, checks that the two fit, and plays the\n"
    "chunks that come back, until Ctrl-C. It may be started before its "
    "server.\n"
    "\n"
    "  --check      only read the file and say whether it is right\n"
    "  --plot DIR   at the end, write charts of the run into DIR (SVG)\n"
    "  --log LEVEL  debug, info (default), warn or error\n"
    "  --fields     print the file's fields as a table (Markdown)\n"
    "\n"
    "examples:\n"
    "  tendon robot examples/robot.yaml\n"
    "  tendon robot examples/robot.yaml --check\n"
    "  tendon robot examples/robot.yaml --plot charts\n";

// Closed in reverse.
struct parts {
    td_net *net;
    td_net_decl *links;
    td_robot *robot;
    td_edge_trace *trace; // NULL: not asked for
    td_edge *edge;
    td_expose *expose; // NULL: not asked for
    const char *client;
};

static td_err open_net(const td_config_robot *config, struct parts *parts,
                       td_errinfo *info)
{
    td_net_zenoh_config net = {
        .mode = config->mode == TD_CONFIG_ROBOT_PEER ? TD_NET_ZENOH_PEER
                                                     : TD_NET_ZENOH_CLIENT,
        .connect = &config->endpoint,
        .connect_count = 1,
        .shared_memory = config->shared_memory,
    };
    TD_TRY(td_net_zenoh_open(&net, &parts->net, info));
    return td_cli_link_watch(parts->net, config->endpoint, &parts->links, info);
}

static td_err open_robot(const td_config_robot *config, struct parts *parts,
                         td_errinfo *info)
{
    td_robot_config *robot = malloc(sizeof *robot);
    if (!robot) return TD_ERR_NOMEM;
    td_edge_settings_robot(config, robot);
    td_err err = td_robot_open("synthetic", robot, &parts->robot, info);
    free(robot);
    return err;
}

static uint64_t boot_number(const td_config_robot *config)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    int64_t wall_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    uint64_t boot;
    td_errinfo info;
    if (td_edge_boot(config->boot_file, wall_ms, &boot, &info) != TD_OK)
        td_log_text(TD_LOG_WARN, "robot: %s", info.text);
    return boot;
}

static td_err open_trace(const td_config_robot *config, struct parts *parts)
{
    const char *names[TD_EDGE_TRACE_CHANNELS] = {NULL};
    td_edge_trace_config trace = td_edge_trace_defaults;
    trace.channels = (uint32_t)config->robot.joint_count;
    trace.names = names;
    for (uint32_t i = 0; i < TD_EDGE_TRACE_CHANNELS && i < trace.channels; i++)
        names[i] = config->robot.joints[i].name;
    return td_edge_trace_new(&trace, &parts->trace);
}

// td-expose's thread.
static void render(td_prom *prom, void *user)
{
    struct parts *parts = user;
    td_edge_report report;
    td_edge_report_get(parts->edge, &report);
    td_edge_times times = td_edge_times_get(parts->edge);
    td_edge_prometheus_write(prom, parts->client, &report, &times);
}

static td_err open_expose(const td_config_robot *config, struct parts *parts,
                          td_errinfo *info)
{
    const td_expose_config expose = {
        .port = (uint16_t)config->prometheus_port,
        .render = render,
        .user = parts,
    };
    return td_expose_open(&expose, &parts->expose, info);
}

static td_err open_edge(const td_config_robot *config, struct parts *parts,
                        td_errinfo *info)
{
    td_edge_config *edge = malloc(sizeof *edge);
    if (!edge) return TD_ERR_NOMEM;
    td_edge_settings_from(config, boot_number(config), edge);
    edge->trace = parts->trace;
    td_err err =
        td_edge_open(parts->net, parts->robot, edge, &parts->edge, info);
    free(edge);
    return err;
}

// A policy's mistake would move such a joint as fast as its motor can.
static void warn_unlimited(const td_config_robot *config)
{
    size_t count = 0;
    const char *first = NULL;
    for (size_t i = 0; i < config->robot.joint_count; i++) {
        const td_config_joint *joint = &config->robot.joints[i];
        if (joint->max_speed > 0 || joint->kind == TD_CONFIG_HOLD) continue;
        if (count++ == 0) first = joint->name;
    }
    if (count > 0)
        td_log_text(TD_LOG_WARN,
                    "robot: %zu joints have no max_speed, %s the first: a "
                    "server may move them as fast as they can",
                    count, first);
}

static td_err open_all(const td_config_robot *config, struct parts *parts,
                       td_errinfo *info)
{
    td_errinfo refusal;
    if (config->realtime.lock_memory &&
        td_thread_lock_memory(&refusal) != TD_OK)
        td_log_text(TD_LOG_WARN, "robot: %s", refusal.text);
    warn_unlimited(config);
    TD_TRY(open_net(config, parts, info));
    TD_TRY(open_robot(config, parts, info));
    TD_TRY(open_edge(config, parts, info));
    return config->prometheus_port ? open_expose(config, parts, info) : TD_OK;
}

static void say_goodbye(td_edge *edge)
{
    td_edge_report report;
    td_edge_report_get(edge, &report);
    const td_edge_counts *counts = &report.counts;
    td_log_text(
        TD_LOG_INFO,
        "robot: %llu ticks, %llu fresh, %llu starved; %llu sent, %llu "
        "merged",
        (unsigned long long)counts->ticks, (unsigned long long)counts->fresh,
        (unsigned long long)counts->starved, (unsigned long long)counts->sent,
        (unsigned long long)counts->outcomes[TD_EDGE_MERGED]);
}

static void close_all(struct parts *parts)
{
    if (parts->expose) td_expose_close(parts->expose);
    if (parts->edge) td_edge_close(parts->edge);
    if (parts->trace) td_edge_trace_free(parts->trace);
    if (parts->robot) td_robot_close(parts->robot);
    if (parts->links) (void)td_net_undeclare(parts->links);
    if (parts->net) td_net_close(parts->net);
}

static void stop_edge(void *edge)
{
    td_edge_stop(edge);
}

static void ignore_stop(void *user)
{
    (void)user;
}

static td_err draw(td_edge_trace *trace, const char *dir, td_errinfo *info)
{
    td_edge_trace_drain(trace);
    TD_TRY(td_edge_plot(trace, dir, info));
    td_log_text(TD_LOG_INFO, "robot: five charts of this run are in %s", dir);
    return TD_OK;
}

static int run(const td_config_robot *config, const char *level,
               const char *plot_dir)
{
    struct parts parts = {.client = config->client_uuid};
    td_errinfo info = {.text = ""};
    if (!td_cli_start_log("robot", level)) return 2;
    td_cli_keep_stop();
    td_err err = plot_dir ? open_trace(config, &parts) : TD_OK;
    if (err == TD_OK) err = open_all(config, &parts, &info);
    if (err == TD_OK) {
        td_cli_on_stop(stop_edge, parts.edge);
        err = td_edge_run(parts.edge, &info);
        td_cli_on_stop(ignore_stop, NULL);
        say_goodbye(parts.edge);
        if (plot_dir && err == TD_OK) err = draw(parts.trace, plot_dir, &info);
    }
    close_all(&parts);
    if (err != TD_OK) return td_cli_fail("robot", err, &info);
    td_log_stop();
    return 0;
}

int td_cli_robot(int argc, char **argv)
{
    td_cli_file file;
    const char *plot_dir = NULL;
    const td_cli_option plot = {"plot", &plot_dir, NULL};
    int code;
    if (!td_cli_parse_file(argc, argv, help, &td_config_robot_table, &plot,
                           &file, &code))
        return code;
    td_errinfo info = {.text = ""};
    TD_AUTO(td_config_robot) *config = NULL;
    td_err err = td_config_robot_load(file.path, &config, &info);
    if (err != TD_OK) return td_cli_fail("robot", err, &info);
    if (!file.check) return run(config, file.level, plot_dir);
    (void)printf("%s: robot %s, fine\n", file.path, config->client_uuid);
    return 0;
}

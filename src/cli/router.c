// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"
#include "net/zenoh/zenoh.h"
#include "server/process/link.h"

#include <stdio.h>

static const char help[] =
    "usage: tendon router [ENDPOINT] [--connect ENDPOINT] [--log LEVEL]\n"
    "\n"
    "Runs a Zenoh router: robots and servers connect to it as clients.\n"
    "\n"
    "  ENDPOINT     where it listens; tcp/0.0.0.0:7447 unless given\n"
    "  --connect E  another router to join\n"
    "  --log LEVEL  debug, info (default), warn or error\n"
    "\n"
    "examples:\n"
    "  tendon router\n"
    "  tendon router tcp/127.0.0.1:7447\n"
    "  tendon router tcp/0.0.0.0:7448 --connect tcp/10.0.0.1:7447\n";

static int run(const td_net_zenoh_config *config, const char *level)
{
    td_errinfo info = {.text = ""};
    TD_AUTO(td_net) *net = NULL;
    td_server_link *links = NULL;
    if (!td_cli_start_log("router", level)) return 2;
    td_cli_keep_stop();
    td_err err = td_net_zenoh_open(config, &net, &info);
    if (err == TD_OK)
        err = td_server_link_watch(net, config->connect, config->connect_count,
                                   &links, &info);
    if (err != TD_OK) return td_cli_fail("router", err, &info);
    td_log_text(TD_LOG_INFO, "router: %s listens at %s; Ctrl-C stops",
                td_net_id(net), config->listen[0]);
    (void)td_cli_wait_signal();
    td_server_link_end(links);
    td_log_stop();
    return 0;
}

int td_cli_router(int argc, char **argv)
{
    const char *endpoint = NULL;
    const char *connect = NULL;
    const char *level = NULL;
    const td_cli_option options[] = {
        {"connect", &connect, NULL}, {"log", &level, NULL}, {0}};
    if (td_cli_wants_help(argc, argv)) {
        (void)fputs(help, stdout);
        return 0;
    }
    if (!td_cli_parse(argc, argv, options, &endpoint)) return 2;
    if (!endpoint) endpoint = "tcp/0.0.0.0:7447";
    td_net_zenoh_config config = {
        .mode = TD_NET_ZENOH_ROUTER,
        .listen = &endpoint,
        .listen_count = 1,
        .connect = &connect,
        .connect_count = connect ? 1 : 0,
        .shared_memory = true,
    };
    return run(&config, level);
}

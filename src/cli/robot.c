// SPDX-License-Identifier: Apache-2.0
// tendon robot: runs the robot of a file until Ctrl-C, or asks one that runs
// elsewhere to begin or end an episode.
//
// To run is to open what the file asks for (edge/runtime.h), to watch the link
// to the endpoint, which says in the log when nobody answers there, and to run
// the edge on this thread until a signal stops it. On a terminal, keys begin,
// end and discard episodes: they come on the keyboard's thread, and go to the
// recorder as commands.
//
// At the end the edge has CLOSE_NS to close. Hardware whose functions never
// return would hold it for ever: then the log names them, and the process ends
// without freeing what their threads still use.
//
// With --episode the word goes as a query to the robot's key. The reply may
// come after the wait is over, so where it is written is static.
#include "base/clock.h"
#include "base/sync/event.h"
#include "cli/cli.h"
#include "cli/keyboard.h"
#include "edge/record/recorder.h"
#include "edge/report/plot.h"
#include "edge/runtime.h"
#include "net/zenoh/zenoh.h"
#include "server/process/link.h"
#include "wire/key.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

// An episode of an hour takes a while to be saved.
#define PATIENCE_NS (60 * TD_NS_PER_S)
#define GRACE_NS (5 * TD_NS_PER_S) // for the transport to say that it is over

// Static: a late reply may still reach it.
static struct answer {
    td_event done;
    _Atomic bool came;
    char text[256];
} answer;

// Transport's thread.
static void on_reply(void *user, const td_net_sample *sample)
{
    (void)user;
    if (sample->is_error || !sample->whole) return;
    (void)snprintf(answer.text, sizeof answer.text, "%.*s",
                   (int)sample->head.size, (const char *)sample->head.data);
    answer.came = true;
}

static void on_done(void *user)
{
    (void)user;
    td_event_signal(&answer.done);
}

static td_err ask_robot(td_net *net, const td_config_robot *config,
                        const char *word, td_errinfo *info)
{
    const td_wire_route route = {
        .cluster = config->cluster_uuid,
        .experiment = config->experiment_tag,
        .model = config->model_id,
        .version = config->model_version,
        .application = config->application_tag,
    };
    char key[TD_WIRE_MAX_KEY];
    int64_t over_ns = td_clock_monotonic_ns() + PATIENCE_NS;
    td_event_init(&answer.done);
    TD_TRY(td_wire_key(&route, config->client_uuid, "episode", key, info));
    TD_TRY(td_net_query(net, key, (td_slice){word, strlen(word)}, PATIENCE_NS,
                        on_reply, on_done, NULL, info));
    (void)td_event_wait_until(&answer.done, over_ns + GRACE_NS);
    if (answer.came || td_clock_monotonic_ns() < over_ns) return TD_OK;
    return td_fail(info, TD_ERR_TIMEOUT,
                   "no answer after %d s; a long episode may still be being "
                   "saved",
                   (int)(PATIENCE_NS / TD_NS_PER_S));
}

// Asks the robot of this file, which runs elsewhere, to begin or end the
// episode that it records, and waits until it has done so. Blocks. NOTFOUND if
// no such robot records; TIMEOUT after a minute; INVALID with what it says.
static td_err request_episode(const td_config_robot *config, const char *word,
                              td_errinfo *info)
{
    const td_net_zenoh_config net_config = {
        .mode = TD_NET_ZENOH_CLIENT,
        .connect = &config->endpoint,
        .connect_count = 1,
    };
    TD_AUTO(td_net) *net = NULL;
    TD_TRY(td_net_zenoh_open(&net_config, &net, info));
    TD_TRY(ask_robot(net, config, word, info));
    if (!answer.came)
        return td_fail(info, TD_ERR_NOTFOUND, "no robot %s records at %s",
                       config->client_uuid, config->endpoint);
    if (strcmp(answer.text, TD_EDGE_EPISODE_OK) == 0) return TD_OK;
    return td_fail(info, TD_ERR_INVALID, "%s", answer.text);
}

// A robot that does not come back by then is left to the end of the process.
#define CLOSE_NS (3 * TD_NS_PER_S)

static const char help[] =
    "usage: tendon robot ROBOT.yaml [--check] [--record DIR] [--plot DIR]\n"
    "                    [--log LEVEL]\n"
    "       tendon robot ROBOT.yaml --episode begin|end|discard|next|again\n"
    "       tendon robot --fields\n"
    "\n"
    "Runs a robot: finds its server, checks that the two fit, and plays the\n"
    "chunks that come back, until Ctrl-C. It may be started before its "
    "server.\n"
    "\n"
    "  --check         only read the file and say whether it is right\n"
    "  --record DIR    record what is seen and done as a LeRobotDataset; if "
    "DIR\n"
    "                  holds this robot's dataset, append to it. On a "
    "terminal:\n"
    "                  space saves the episode and begins the next, d "
    "discards\n"
    "                  it and begins again, p saves it and pauses, q saves it\n"
    "                  and stops\n"
    "  --episode WORD  ask the robot of this file, which runs and records\n"
    "                  elsewhere, to do that\n"
    "  --plot DIR      at the end, write charts of the run into DIR (SVG)\n"
    "  --log LEVEL     debug, info (default), warn or error\n"
    "  --fields        print the file's fields as a table (Markdown)\n"
    "\n"
    "examples:\n"
    "  tendon robot examples/robot.yaml\n"
    "  tendon robot examples/robot.yaml --check\n"
    "  tendon robot examples/robot.yaml --record data/cookies\n"
    "  tendon robot examples/robot.yaml --plot charts\n";

static td_err open_trace(const td_config_robot *config,
                         td_edge_trace **ret_trace)
{
    const char *names[TD_EDGE_TRACE_CHANNELS] = {NULL};
    td_edge_trace_config trace = td_edge_trace_defaults;
    trace.channels = (uint32_t)config->robot.joint_count;
    trace.names = names;
    for (uint32_t i = 0; i < TD_EDGE_TRACE_CHANNELS && i < trace.channels; i++)
        names[i] = config->robot.joints[i].name;
    return td_edge_trace_new(&trace, ret_trace);
}

static void log_totals(td_edge *edge)
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

// What stands in the way of an order is said and changes nothing.
static void order(td_edge *edge, td_edge_episode_command what)
{
    td_errinfo info = {.text = ""};
    if (td_edge_episode(edge, what, &info) != TD_OK)
        td_log_text(TD_LOG_WARN, "recording: %s", info.text);
}

static bool is_recording(td_edge *edge)
{
    td_edge_report report;
    td_edge_report_get(edge, &report);
    return report.record.state == TD_EDGE_RECORD_RECORDING;
}

// The thread of the keys. The end of the run saves the episode.
static void on_key(void *user, char key)
{
    td_edge *edge = user;
    if (key == ' ' || key == '\n')
        order(edge, TD_EDGE_EPISODE_NEXT);
    else if (key == 'd')
        order(edge, TD_EDGE_EPISODE_AGAIN);
    else if (key == 'p')
        order(edge,
              is_recording(edge) ? TD_EDGE_EPISODE_END : TD_EDGE_EPISODE_BEGIN);
    else if (key == 'q')
        td_edge_stop(edge);
}

static td_err run_edge(td_edge *edge, bool records, td_errinfo *info)
{
    td_cli_keyboard *keyboard = NULL;
    td_cli_on_stop(stop_edge, edge);
    if (records && td_cli_keyboard_open(on_key, edge, &keyboard, NULL) == TD_OK)
        td_log_text(TD_LOG_INFO, "recording: space: save and next; d: discard "
                                 "and again; p: save and pause; q: save and "
                                 "stop");
    td_err err = td_edge_run(edge, info);
    if (keyboard) td_cli_keyboard_close(keyboard);
    td_cli_on_stop(ignore_stop, NULL);
    log_totals(edge);
    return err;
}

static void close_robot(td_edge_runtime *assembly)
{
    if (td_edge_runtime_end(assembly, CLOSE_NS)) {
        td_edge_runtime_close(assembly);
        return;
    }
    td_log_text(TD_LOG_ERROR, "robot: ended without waiting for it");
    td_log_stop();
    _exit(1);
}

static td_err run_robot(const td_config_robot *config, td_edge_trace *trace,
                        td_errinfo *info)
{
    const td_edge_runtime_options extras = {.trace = trace};
    td_edge_runtime assembly;
    td_server_link *links = NULL;
    TD_TRY(td_edge_runtime_open(&assembly, config, &extras, info));
    td_err err =
        td_server_link_watch(assembly.net, &config->endpoint, 1, &links, info);
    if (err == TD_OK)
        err = run_edge(assembly.edge, config->record.dir[0], info);
    if (links) td_server_link_end(links);
    close_robot(&assembly);
    return err;
}

static int run(const td_config_robot *config, const char *level,
               const char *plot_dir)
{
    td_errinfo info = {.text = ""};
    td_edge_trace *trace = NULL;
    if (!td_cli_start_log("robot", level)) return 2;
    td_cli_keep_stop();
    td_err err = plot_dir ? open_trace(config, &trace) : TD_OK;
    if (err == TD_OK) err = run_robot(config, trace, &info);
    if (plot_dir && err == TD_OK) err = draw(trace, plot_dir, &info);
    if (trace) td_edge_trace_free(trace);
    if (err != TD_OK) return td_cli_fail("robot", err, &info);
    td_log_stop();
    return 0;
}

int td_cli_robot(int argc, char **argv)
{
    td_cli_file file;
    const char *plot_dir = NULL, *record_dir = NULL, *word = NULL;
    const td_cli_option more[] = {{"plot", &plot_dir, NULL},
                                  {"record", &record_dir, NULL},
                                  {"episode", &word, NULL},
                                  {0}};
    int code;
    if (!td_cli_parse_file(argc, argv, help, &td_config_robot_table, more,
                           &file, &code))
        return code;
    td_errinfo info = {.text = ""};
    TD_AUTO(td_config_robot) *config = NULL;
    td_err err = td_config_robot_load(file.path, &config, &info);
    if (err != TD_OK) return td_cli_fail("robot", err, &info);
    if (record_dir) config->record.dir = record_dir;
    if (word) err = request_episode(config, word, &info);
    if (err != TD_OK) return td_cli_fail("robot", err, &info);
    if (word) return 0;
    if (!file.check) return run(config, file.level, plot_dir);
    (void)printf("%s: robot %s, fine\n", file.path, config->client_uuid);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// `tendon demo`: one server and some robots on this machine, and a table of how
// they do.
//
// Each is a process of its own, started from this same program with files that
// are written here, joined by Zenoh over a socket in a folder that goes again
// at the end. This process only looks: it subscribes to their metrics, as
// anybody could, and prints the table.
//
// The life of a run: set_up() makes the folder and the files and starts the
// children; look_on() draws the table until the time is over, a child dies or
// Ctrl-C comes; stop_children() ends the robots first, so that each can say its
// last word to a server that still listens; summarise() prints the sums; the
// demo failed if a robot is missing or none moved. When something went wrong
// the logs of the children are printed.
//
// A child dies with this process, however that ends (cli/child.h).
#include "base/clock.h"
#include "base/sync/event.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/metrics.h"
#include "net/zenoh/zenoh.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: tendon demo [--seconds N] [--robots N] [--keep]\n"
    "\n"
    "One server and four robots on this machine, for thirty seconds, with a "
    "live\n"
    "table. The policy is synthetic: 60 ms a chunk, batches up to 4.\n"
    "\n"
    "  --seconds N  how long, 1 to 86400; 30 unless given\n"
    "  --robots N   how many, 1 to 16; 4 unless given\n"
    "  --keep       leave the configuration and the logs, and say where\n"
    "\n"
    "examples:\n"
    "  tendon demo\n"
    "  tendon demo --seconds 10 --robots 8\n";

static const char manifest_text[] =
    "cluster_uuid: demo\n"
    "experiment_tag: box\n"
    "models:\n"
    "  - model_id: synthetic\n"
    "    model_version: v1\n"
    "    application_tag: wave\n"
    "    server_id: server\n"
    "    fps: 30\n"
    "    endpoint: %s\n"
    "    accept_unknown: true\n"
    "    engine:\n"
    "      kind: synthetic\n"
    "      cameras: {front: {height: 240, width: 320},"
    " wrist: {height: 240, width: 320}}\n"
    "      max_batch: 4\n"
    "      latency: {kind: lognormal, ms: 60, std_ms: 15, per_batch_ms: 4}\n";

static const char robot_text[] = "cluster_uuid: demo\n"
                                 "experiment_tag: box\n"
                                 "model_id: synthetic\n"
                                 "model_version: v1\n"
                                 "application_tag: wave\n"
                                 "client_uuid: robot-%d\n"
                                 "endpoint: %s\n"
                                 "boot_file: %s/robot-%d.boot\n"
                                 "task: wave to the camera\n"
                                 "robot:\n"
                                 "  kind: synthetic\n"
                                 "  cameras: {front: {height: 240, width: 320},"
                                 " wrist: {height: 240, width: 320}}\n";

#define MAX_ROBOTS 16
#define PATIENCE_NS (5 * TD_NS_PER_S)
#define FRAME_NS (TD_NS_PER_S / 2)
#define PATH 160

struct demo {
    int64_t seconds;
    int robots;
    char folder[TD_CLI_FOLDER_MAX];
    char endpoint[PATH];
    pid_t children[MAX_ROBOTS + 1]; // the server is the first
    int child_count;
    td_net *net;
    td_cli_metrics *metrics;
    bool terminal;
    int lines_drawn;
    bool child_died;
};

static td_event stopped;
static volatile bool interrupted;

static void on_stop(void *user)
{
    (void)user;
    if (td_cli_must_hurry()) td_cli_child_hurry();
    interrupted = true;
    td_event_signal(&stopped);
}

static void path_in(const struct demo *demo, char *ret_path, const char *name,
                    int number, const char *ending)
{
    if (number < 0)
        (void)snprintf(ret_path, PATH, "%s/%s.%s", demo->folder, name, ending);
    else
        (void)snprintf(ret_path, PATH, "%s/%s-%d.%s", demo->folder, name,
                       number, ending);
}

static td_err write_text(const char *path, const char *text, td_errinfo *info)
{
    FILE *file = fopen(path, "we");
    bool ok = file && fputs(text, file) >= 0;
    if (file && fclose(file) != 0) ok = false;
    if (ok) return TD_OK;
    return td_fail(info, TD_ERR_IO, "%s: %s", path, strerror(errno));
}

static td_err start_child(struct demo *demo, const char *command, int number,
                          const char *text, td_errinfo *info)
{
    char config[PATH];
    char log[PATH];
    path_in(demo, config, command, number, "yaml");
    path_in(demo, log, command, number, "log");
    TD_TRY(write_text(config, text, info));
    const char *argv[] = {command, config, NULL};
    TD_TRY(td_cli_child_start(argv, log, &demo->children[demo->child_count],
                              info));
    demo->child_count++;
    return TD_OK;
}

static td_err start_children(struct demo *demo, td_errinfo *info)
{
    char text[2048];
    (void)snprintf(text, sizeof text, manifest_text, demo->endpoint);
    TD_TRY(start_child(demo, "serve", -1, text, info));
    for (int i = 1; i <= demo->robots; i++) {
        (void)snprintf(text, sizeof text, robot_text, i, demo->endpoint,
                       demo->folder, i);
        TD_TRY(start_child(demo, "robot", i, text, info));
    }
    return TD_OK;
}

static td_err watch(struct demo *demo, td_errinfo *info)
{
    const char *connect = demo->endpoint;
    td_net_zenoh_config config = {
        .mode = TD_NET_ZENOH_CLIENT,
        .connect = &connect,
        .connect_count = 1,
    };
    td_wire_route route = {"demo", "box", "synthetic", "v1", "wave"};
    TD_TRY(td_net_zenoh_open(&config, &demo->net, info));
    return td_cli_metrics_open(demo->net, &route, &demo->metrics, info);
}

static int print_rows(const td_cli_metrics_row *rows, size_t count)
{
    (void)printf("%-10s %-12s %8s %12s %12s %8s %8s\n", "robot", "state",
                 "rate Hz", "trip p50 ms", "trip p99 ms", "buffer", "starved");
    for (size_t i = 0; i < count; i++) {
        const td_cli_metrics_row *row = &rows[i];
        (void)printf("%-10s %-12s %8.1f %12.1f %12.1f %8.0f %8llu\n",
                     row->source, row->state, row->rate_hz,
                     row->transport_p50_ms, row->transport_p99_ms,
                     row->buffer_rows, (unsigned long long)row->starved);
    }
    return (int)count + 1;
}

// On a terminal the table is drawn over itself; elsewhere it comes now and
// then.
static void draw(struct demo *demo, int64_t passed_s)
{
    td_cli_metrics_row rows[TD_CLI_METRICS_MAX];
    size_t count = td_cli_metrics_rows(demo->metrics, rows);
    if (demo->terminal && demo->lines_drawn > 0)
        (void)printf("\033[%dA\033[J", demo->lines_drawn);
    demo->lines_drawn = print_rows(rows, count);
    (void)printf("%lld of %lld s; Ctrl-C stops\n", (long long)passed_s,
                 (long long)demo->seconds);
    demo->lines_drawn++;
    (void)fflush(stdout);
}

static bool all_alive(struct demo *demo)
{
    for (int i = 0; i < demo->child_count; i++)
        if (td_cli_child_ended(demo->children[i])) demo->child_died = true;
    return !demo->child_died;
}

static void look_on(struct demo *demo)
{
    int64_t start_ns = td_clock_monotonic_ns();
    int64_t end_ns = start_ns + demo->seconds * TD_NS_PER_S;
    int64_t now_ns = start_ns;
    int64_t frame_ns = demo->terminal ? FRAME_NS : 10 * FRAME_NS;
    int64_t next_ns = start_ns + frame_ns;
    while (!interrupted && now_ns < end_ns && all_alive(demo)) {
        int64_t until_ns =
            now_ns + FRAME_NS < end_ns ? now_ns + FRAME_NS : end_ns;
        (void)td_event_wait_until(&stopped, until_ns);
        now_ns = td_clock_monotonic_ns();
        if (now_ns < next_ns || now_ns >= end_ns) continue;
        draw(demo, (now_ns - start_ns) / TD_NS_PER_S);
        next_ns = now_ns + frame_ns;
    }
    draw(demo, (now_ns - start_ns) / TD_NS_PER_S);
}

// A child that is stopped before it handles signals ends by the signal.
static bool ended_well(int code)
{
    return code == 0 || code == 128 + SIGINT ||
           (code == 128 + SIGKILL && td_cli_must_hurry());
}

// Robots first, so that each says its last word to a server that listens.
static bool stop_children(struct demo *demo)
{
    bool clean = true;
    for (int i = demo->child_count - 1; i >= 0; i--)
        if (!ended_well(td_cli_child_stop(demo->children[i], PATIENCE_NS)))
            clean = false;
    return clean;
}

static bool summarise(struct demo *demo)
{
    td_cli_metrics_row rows[TD_CLI_METRICS_MAX];
    size_t count = td_cli_metrics_rows(demo->metrics, rows);
    uint64_t fresh = 0, starved = 0, merged = 0, sent = 0;
    for (size_t i = 0; i < count; i++) {
        fresh += rows[i].fresh;
        starved += rows[i].starved;
        merged += rows[i].merged;
        sent += rows[i].sent;
    }
    (void)printf("\n%zu robots moved %llu steps on %llu chunks; %llu "
                 "observations sent, %llu ticks starved.\n",
                 count, (unsigned long long)fresh, (unsigned long long)merged,
                 (unsigned long long)sent, (unsigned long long)starved);
    return count == (size_t)demo->robots && fresh > 0;
}

static void print_log(const struct demo *demo, const char *name, int number)
{
    char path[PATH];
    char line[512];
    path_in(demo, path, name, number, "log");
    FILE *file = fopen(path, "re");
    if (!file) return;
    (void)fprintf(stderr, "--- %s\n", path);
    while (fgets(line, sizeof line, file))
        (void)fputs(line, stderr);
    (void)fclose(file);
}

static void print_logs(const struct demo *demo)
{
    print_log(demo, "serve", -1);
    for (int i = 1; i <= demo->robots; i++)
        print_log(demo, "robot", i);
}

static td_err set_up(struct demo *demo, td_errinfo *info)
{
    td_event_init(&stopped);
    td_cli_clean_up_on_stop();
    td_cli_on_stop(on_stop, NULL);
    TD_TRY(td_cli_folder_make(demo->folder, info));
    (void)snprintf(demo->endpoint, sizeof demo->endpoint,
                   "unixsock-stream/%s/socket", demo->folder);
    (void)printf("Starting one server and %d robots.\n", demo->robots);
    TD_TRY(start_children(demo, info));
    return watch(demo, info);
}

static void tear_down(struct demo *demo, bool keep)
{
    if (demo->metrics) td_cli_metrics_close(demo->metrics);
    if (demo->net) td_net_close(demo->net);
    if (keep)
        (void)printf("Configuration and logs are in %s\n", demo->folder);
    else if (demo->folder[0])
        td_cli_folder_remove(demo->folder);
}

static int run(struct demo *demo, bool keep)
{
    td_errinfo info = {.text = ""};
    demo->terminal = isatty(STDOUT_FILENO);
    td_err err = set_up(demo, &info);
    if (err == TD_OK) look_on(demo);
    bool clean = stop_children(demo);
    td_net_zenoh_sweep();
    bool fine = err == TD_OK && clean && !demo->child_died;
    if (err == TD_OK) fine = (summarise(demo) || interrupted) && fine;
    if (!fine) print_logs(demo);
    tear_down(demo, keep);
    if (err != TD_OK) return td_cli_fail("demo", err, &info);
    return fine ? 0 : 1;
}

static bool read_number(const char *name, const char *text, int64_t most,
                        int64_t *ret_number)
{
    if (!text) return true;
    char *end;
    long long number = strtoll(text, &end, 10);
    if (*text && !*end && number >= 1 && number <= most) {
        *ret_number = number;
        return true;
    }
    (void)fprintf(stderr, "tendon demo: --%s must be 1 to %lld, got \"%s\"\n",
                  name, (long long)most, text);
    return false;
}

int td_cli_demo(int argc, char **argv)
{
    const char *seconds = NULL;
    const char *robots = NULL;
    bool keep = false;
    const td_cli_option options[] = {{"seconds", &seconds, NULL},
                                     {"robots", &robots, NULL},
                                     {"keep", NULL, &keep},
                                     {0}};
    if (td_cli_wants_help(argc, argv)) {
        (void)fputs(help, stdout);
        return 0;
    }
    struct demo demo = {.seconds = 30};
    int64_t count = 4;
    if (!td_cli_parse(argc, argv, options, NULL) ||
        !read_number("seconds", seconds, 86400, &demo.seconds) ||
        !read_number("robots", robots, MAX_ROBOTS, &count))
        return 2;
    demo.robots = (int)count;
    return run(&demo, keep);
}

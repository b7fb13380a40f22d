// SPDX-License-Identifier: Apache-2.0
// `tendon dataset replay`: puts a recorded session to a policy and compares.
//
// What the policy answers is compared with what was recorded, channel by
// channel and step by step of a chunk; with --latency also what a robot would
// have played, with its own settings if a robot's file is given.
// cli/dataset/evaluate.c asks the policy; this file reads the arguments,
// collects what evaluate reports, and prints a table, JSON or a chart.
//
// The policy runs in this process: a manifest's model, or a checkpoint's
// folder. A synthetic policy's latency is set to nothing, because nobody here
// waits for it.
//
// `run` holds what is collected for the table and the chart. Ctrl-C ends the
// run between two frames.
#include "base/chart/chart.h"
#include "base/clock.h"
#include "base/json/json.h"
#include "cli/cli.h"
#include "cli/dataset/commands.h"
#include "cli/dataset/evaluate.h"
#include "cli/policy.h"
#include "engine/probe.h"
#include "server/load/settings.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define PLOT "replay.svg"

static const char help[] =
    "usage: tendon dataset replay DIR --policy CHECKPOINT|MANIFEST.yaml "
    "[--server ID]\n"
    "                      [--device NAME] [--episode N] [--every N | "
    "--latency MS\n"
    "                      [--robot ROBOT.yaml]] [--plot OUT] [--json]\n"
    "\n"
    "Shows a policy the recorded frames and prints how far its actions are "
    "from those\n"
    "that were recorded, for each channel: of the first step of each chunk, "
    "and of all\n"
    "its steps. Nothing moves, nothing is sent, and no time passes but what "
    "the policy\n"
    "takes.\n"
    "\n"
    "  --policy PATH   a LeRobot checkpoint's folder, or a manifest\n"
    "  --server ID     which of its models, by server_id (default: its only "
    "one)\n"
    "  --device NAME   of a checkpoint: cpu (default), cuda:0\n"
    "  --episode N     this one alone, the first is 0 (default: all)\n"
    "  --every N       ask at every N-th frame of an episode (default: 1)\n"
    "  --latency MS    in virtual time: a robot plays the chunks at the "
    "dataset's rate,\n"
    "                  asks when half of one is left, and answers come MS "
    "later;\n"
    "                  what it plays is compared as well\n"
    "  --robot FILE    with --latency: the robot of this file, with its own "
    "way to ask\n"
    "                  and to join chunks, its limits and its fail-safe\n"
    "  --plot OUT      a folder for " PLOT ": recorded and predicted actions,\n"
    "                  and the error by the steps ahead\n"
    "  --json          one object instead of the table\n"
    "\n"
    "To drive a whole robot with a recorded session, in real time or faster, "
    "give a\n"
    "robot file\n"
    "`robot: {kind: replay, dataset: DIR}`.\n"
    "\n"
    "examples:\n"
    "  tendon dataset replay runs/monday --policy "
    "outputs/act/pretrained_model\n"
    "  tendon dataset replay runs/monday --policy serve.yaml --every 10 --plot "
    "out\n"
    "  tendon dataset replay runs/monday --policy serve.yaml --latency 120\n"
    "  tendon dataset replay runs/monday --policy serve.yaml --latency 120 \\\n"
    "      --robot arm.yaml\n";

typedef struct arguments {
    const char *folder, *policy, *server, *device, *episode, *every, *plot,
        *latency, // NULL: nothing is played
        *robot;
    bool json;
} arguments;

typedef struct line {
    uint64_t row;
    uint32_t episode;
} line;

typedef struct run {
    const arguments *args;
    const td_engine_spec *spec;
    td_cli_evaluate_sums sums;
    uint64_t shown, to_show; // frames
    line *lines;             // of each
    float *actions; // recorded and predicted of each, [line x 2 x channels]
} run;

static void run_done(run *self)
{
    td_cli_evaluate_sums_done(&self->sums);
    free(self->lines);
    free(self->actions);
}

static void show_progress(const run *self)
{
    if (!isatty(STDERR_FILENO)) return;
    (void)fprintf(stderr, "\r\033[K%" PRIu64 " of %" PRIu64 " frames",
                  self->shown, self->to_show);
}

static void clear_progress(const run *self)
{
    if (self->shown > 0 && isatty(STDERR_FILENO))
        (void)fputs("\r\033[K", stderr);
}

static void on_frame(void *user, uint64_t row, uint32_t episode,
                     const float *recorded, const float *predicted)
{
    run *self = user;
    uint32_t width = self->spec->action_count;
    float *at = self->actions + self->shown * 2 * width;
    for (uint32_t i = 0; i < width; i++) {
        at[i] = recorded[i];
        at[width + i] = predicted ? predicted[i] : NAN;
    }
    self->lines[self->shown++] = (line){row, episode};
    show_progress(self);
}

static bool read_number(const char *option, const char *text, long long least,
                        int64_t *value)
{
    char *end = NULL;
    if (!text) return true;
    long long read = strtoll(text, &end, 10);
    if (end != text && !*end && read >= least && read <= INT32_MAX) {
        *value = read;
        return true;
    }
    (void)fprintf(stderr,
                  "tendon dataset replay: --%s must be a number from %lld on, "
                  "got \"%s\"\n",
                  option, least, text);
    return false;
}

static uint64_t frames_to_show(const td_cli_evaluate_config *config)
{
    const td_dataset_episodes *all = td_dataset_reader_episodes(config->reader);
    uint64_t frames = 0;
    for (size_t i = 0; i < all->count; i++)
        if (config->episode < 0 || config->episode == (int64_t)i)
            frames +=
                (all->items[i].length + config->every - 1) / config->every;
    return frames;
}

static void name_of(const run *self, uint32_t channel, char ret_name[128])
{
    const td_wire_text name = self->spec->actions[channel].name;
    (void)snprintf(ret_name, 128, "%.*s", (int)name.size, name.data);
}

static void print_heads(int groups)
{
    (void)printf("%-24s", "channel");
    for (int i = 0; i < groups; i++)
        (void)printf("%s %9s %10s %10s", i ? "  " : "", "mean", "rms", "max");
    (void)printf("\n");
}

static void print_error(const char *before, td_dataset_compare_error error)
{
    (void)printf("%s %9.4g %10.4g %10.4g", before,
                 td_dataset_compare_mean(error), td_dataset_compare_rms(error),
                 error.largest);
}

static void print_counts(const run *self)
{
    (void)printf("%" PRIu64 " frames, asked %" PRIu64
                 " times, chunks of %u steps\n",
                 self->shown, self->sums.asked, self->spec->chunk_rows);
    if (self->args->latency)
        (void)printf("played with answers %s ms late: %" PRIu64
                     " frames of the policy, %" PRIu64 " held, %" PRIu64
                     " clamped\n",
                     self->args->latency, self->sums.fresh, self->sums.held,
                     self->sums.clamped);
}

static void print_table(const run *self)
{
    char name[128];
    const td_dataset_compare *chunks = &self->sums.chunks;
    bool plays = self->args->latency != NULL;
    print_counts(self);
    (void)printf("\n%-24s %31s   %31s", "", "first step", "all steps");
    if (plays) (void)printf("   %31s", "played");
    (void)printf("\n");
    print_heads(plays ? 3 : 2);
    for (uint32_t i = 0; i < chunks->channels; i++) {
        name_of(self, i, name);
        (void)printf("%-24s", name);
        print_error("", td_dataset_compare_channel(chunks, i, 1));
        print_error("  ", td_dataset_compare_channel(chunks, i, chunks->steps));
        if (plays)
            print_error("  ",
                        td_dataset_compare_channel(&self->sums.played, i, 1));
        (void)printf("\n");
    }
}

static void put_error(td_json *json, const char *name,
                      td_dataset_compare_error error)
{
    td_json_object(json, name);
    td_json_whole(json, "count", error.count);
    td_json_number(json, "mean", td_dataset_compare_mean(error));
    td_json_number(json, "rms", td_dataset_compare_rms(error));
    td_json_number(json, "max", error.largest);
    td_json_end_object(json);
}

static void print_json(const run *self)
{
    const td_dataset_compare *chunks = &self->sums.chunks;
    td_json json;
    char name[128];
    td_json_init(&json, stdout);
    td_json_object(&json, NULL);
    td_json_text(&json, "folder", self->args->folder);
    td_json_text(&json, "policy", self->args->policy);
    td_json_whole(&json, "frames", self->shown);
    td_json_whole(&json, "asked", self->sums.asked);
    td_json_whole(&json, "chunk", self->spec->chunk_rows);
    if (self->args->latency) {
        td_json_whole(&json, "fresh", self->sums.fresh);
        td_json_whole(&json, "held", self->sums.held);
        td_json_whole(&json, "clamped", self->sums.clamped);
    }
    td_json_array(&json, "channels");
    for (uint32_t i = 0; i < chunks->channels; i++) {
        name_of(self, i, name);
        td_json_object(&json, NULL);
        td_json_text(&json, "name", name);
        put_error(&json, "first", td_dataset_compare_channel(chunks, i, 1));
        put_error(&json, "all",
                  td_dataset_compare_channel(chunks, i, chunks->steps));
        if (self->args->latency)
            put_error(&json, "played",
                      td_dataset_compare_channel(&self->sums.played, i, 1));
        td_json_end_object(&json);
    }
    td_json_end_array(&json);
    td_json_end_object(&json);
    (void)printf("\n");
}

static void plot_channel(const run *self, td_chart *chart, uint32_t channel)
{
    const td_chart_series series[] = {
        {"recorded", TD_CHART_LINE, TD_CHART_GREY},
        {self->args->latency ? "played" : "predicted, first step",
         TD_CHART_DOTS, TD_CHART_BLUE},
    };
    char name[128];
    name_of(self, channel, name);
    uint32_t width = self->spec->action_count;
    const td_chart_panel panel = {.title = name,
                                  .x_label = channel == 0 ? "frame" : NULL};
    td_chart_add_panel(chart, &panel);
    for (uint32_t of = 0; of < TD_COUNT_OF(series); of++) {
        td_chart_add_series(chart, &series[of]);
        for (uint64_t i = 0; i < self->shown; i++) {
            float value = self->actions[(2 * i + of) * width + channel];
            if (isfinite(value))
                td_chart_add_point(chart, (double)self->lines[i].row, value);
        }
    }
}

static void plot_steps(const run *self, td_chart *chart)
{
    static const td_chart_panel panel = {.title = "error by the step ahead",
                                         .x_label = "step of the chunk",
                                         .y_label = "mean, all channels",
                                         .y_from_zero = true};
    static const td_chart_series series = {NULL, TD_CHART_LINE,
                                           TD_CHART_VERMILION};
    td_chart_add_panel(chart, &panel);
    td_chart_add_series(chart, &series);
    const td_dataset_compare *compare = &self->sums.chunks;
    for (uint32_t step = 0; step < compare->steps; step++) {
        td_dataset_compare_error all = {0};
        for (uint32_t i = 0; i < compare->channels; i++) {
            td_dataset_compare_error one =
                compare->cells[(size_t)step * compare->channels + i];
            all.count += one.count;
            all.sum += one.sum;
        }
        if (all.count)
            td_chart_add_point(chart, step, td_dataset_compare_mean(all));
    }
}

static td_err plot(const run *self, td_errinfo *info)
{
    TD_AUTO(td_chart) *chart = NULL;
    TD_TRY(td_chart_new("What a policy would have done, and what was done",
                        self->args->folder, &chart));
    for (uint32_t i = 0; i < self->spec->action_count; i++)
        plot_channel(self, chart, i);
    plot_steps(self, chart);
    TD_TRY(td_chart_save(chart, self->args->plot, PLOT, info));
    if (!self->args->json)
        (void)printf("\nwrote %s/%s\n", self->args->plot, PLOT);
    return TD_OK;
}

static td_err prepare(run *self, const td_cli_evaluate_config *config)
{
    self->spec = config->engine->ops->spec(config->engine);
    self->to_show = frames_to_show(config);
    size_t width = self->spec->action_count;
    self->lines = calloc(self->to_show + 1, sizeof *self->lines);
    self->actions =
        calloc(2 * width * (self->to_show + 1), sizeof *self->actions);
    if (!self->lines || !self->actions) return TD_ERR_NOMEM;
    return td_cli_evaluate_sums_init(&self->sums, self->spec);
}

static td_err replay(const arguments *args, td_cli_evaluate_config config,
                     td_errinfo *info)
{
    run self = {.args = args};
    config.on_frame = on_frame;
    config.user = &self;
    config.stop = td_cli_is_stopping;
    td_err err = prepare(&self, &config);
    if (err == TD_OK) err = td_cli_evaluate(&config, &self.sums, info);
    clear_progress(&self);
    if (err == TD_OK && args->json) print_json(&self);
    if (err == TD_OK && !args->json) print_table(&self);
    if (err == TD_OK && args->plot) err = plot(&self, info);
    run_done(&self);
    return err;
}

// A synthetic policy's time is only played: nobody here waits for it.
static td_err open_engine(const td_config_model *model, td_engine **ret_engine,
                          td_errinfo *info)
{
    td_config_model timeless = *model;
    timeless.engine.latency = (td_config_latency){0};
    return td_server_engines_open(&timeless, NULL, ret_engine, info);
}

static td_err open_and_replay(const arguments *args,
                              td_cli_evaluate_config config, td_errinfo *info)
{
    const td_config_model *model = NULL;
    TD_AUTO(td_dataset_reader) *reader = NULL;
    TD_AUTO(td_config_manifest) *manifest = NULL;
    TD_AUTO(td_config_robot) *robot = NULL;
    TD_AUTO(td_engine) *engine = NULL;
    if (args->robot) TD_TRY(td_config_robot_load(args->robot, &robot, info));
    TD_TRY(td_dataset_reader_open(args->folder, &reader, info));
    TD_TRY(td_cli_policy_manifest(args->policy, args->device, &manifest, info));
    TD_TRY(td_cli_policy_model(manifest, args->server, &model, info));
    TD_TRY(open_engine(model, &engine, info));
    TD_TRY(td_engine_probe_warm_up(engine, NULL, info));
    config.reader = reader;
    config.engine = engine;
    config.robot = robot;
    return replay(args, config, info);
}

int td_cli_dataset_replay(int argc, char **argv)
{
    arguments args = {0};
    const td_cli_option options[] = {
        {"policy", &args.policy, NULL}, {"server", &args.server, NULL},
        {"device", &args.device, NULL}, {"episode", &args.episode, NULL},
        {"every", &args.every, NULL},   {"latency", &args.latency, NULL},
        {"robot", &args.robot, NULL},   {"plot", &args.plot, NULL},
        {"json", NULL, &args.json},     {0},
    };
    if (td_cli_wants_help(argc, argv)) {
        (void)fputs(help, stdout);
        return 0;
    }
    if (!td_cli_parse(argc, argv, options, &args.folder)) return 2;
    int64_t episode = -1, every = 1, latency_ms = 0;
    if (!read_number("episode", args.episode, 0, &episode)) return 2;
    if (!read_number("every", args.every, 1, &every)) return 2;
    if (!read_number("latency", args.latency, 0, &latency_ms)) return 2;
    if (args.every && args.latency) {
        (void)fprintf(stderr, "tendon dataset replay: --every or --latency? A "
                              "robot that plays asks when it has to\n");
        return 2;
    }
    if (args.robot && !args.latency) {
        (void)fprintf(stderr, "tendon dataset replay: --robot says how answers "
                              "are played, --latency when they come: give "
                              "both\n");
        return 2;
    }
    if (!args.folder || !args.policy) {
        (void)fprintf(stderr, "tendon dataset replay: which %s?\n\n%s",
                      args.folder ? "policy" : "dataset", help);
        return 2;
    }
    if (!td_cli_start_log("dataset replay", "warn")) return 2;
    td_cli_keep_stop();
    td_errinfo info = {.text = ""};
    const td_cli_evaluate_config config = {
        .episode = episode,
        .every = (uint32_t)every,
        .plays = args.latency != NULL,
        .latency_ns = latency_ms * TD_NS_PER_MS,
    };
    td_err err = open_and_replay(&args, config, &info);
    td_log_stop();
    return err == TD_OK ? 0 : td_cli_fail("dataset replay", err, &info);
}

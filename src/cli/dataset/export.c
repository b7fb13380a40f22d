// SPDX-License-Identifier: Apache-2.0
#include "dataset/read/export.h"
#include "base/json/json.h"
#include "cli/cli.h"
#include "cli/dataset/commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define QUALITY 95

static const char help[] =
    "usage: tendon dataset export DIR OUT [--episodes FIRST[:LAST]]\n"
    "                             [--no-pictures] [--json]\n"
    "\n"
    "Writes a dataset as files for people: OUT/episodes.csv, a CSV of frames "
    "for\n"
    "each episode with a column for each channel, and a JPEG for each picture "
    "in\n"
    "OUT/CAMERA/episode-N/frame-N.jpg. OUT must be absent or empty. Ctrl-C "
    "stops;\n"
    "what is written stays.\n"
    "\n"
    "  --episodes FIRST[:LAST]  only these, counted from 0\n"
    "  --no-pictures            only the tables\n"
    "  --json                   one object: {\"folder\", \"out\", "
    "\"episodes\", \"frames\",\n"
    "                           \"pictures\"}\n"
    "\n"
    "examples:\n"
    "  tendon dataset export runs/monday /tmp/monday\n"
    "  tendon dataset export runs/monday /tmp/third --episodes 2 "
    "--no-pictures\n";

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    bool *on_terminal = user;
    if (isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "\r\033[K%" PRIu64 " of %" PRIu64 " frames", done,
                      total);
        *on_terminal = true;
    }
    return !td_cli_is_stopping();
}

static void print_json(const td_dataset_export_config *config,
                       const td_dataset_export_sums *sums)
{
    td_json json;
    td_json_init(&json, stdout);
    td_json_object(&json, NULL);
    td_json_text(&json, "folder", config->folder);
    td_json_text(&json, "out", config->out);
    td_json_whole(&json, "episodes", sums->episodes);
    td_json_whole(&json, "frames", sums->frames);
    td_json_whole(&json, "pictures", sums->pictures);
    td_json_end_object(&json);
    (void)printf("\n");
}

static int export_dataset(td_dataset_export_config *config, bool as_json)
{
    td_dataset_export_sums sums = {0};
    td_errinfo info = {""};
    bool on_terminal = false;
    config->progress = on_progress;
    config->user = &on_terminal;
    td_err err = td_dataset_export(config, &sums, &info);
    if (on_terminal) (void)fputs("\r\033[K", stderr);
    if (err != TD_OK) return td_cli_fail("dataset export", err, &info);
    if (as_json)
        print_json(config, &sums);
    else
        (void)printf("%s: %" PRIu64 " episode%s, %" PRIu64 " frames, %" PRIu64
                     " pictures\n",
                     config->out, sums.episodes, sums.episodes == 1 ? "" : "s",
                     sums.frames, sums.pictures);
    return 0;
}

int td_cli_dataset_export(int argc, char **argv)
{
    bool as_json = false;
    td_dataset_export_config config = {.quality = QUALITY};
    const td_cli_option options[] = {{"episodes", &config.episodes, NULL},
                                     {"no-pictures", NULL, &config.no_pictures},
                                     {"json", NULL, &as_json},
                                     {0}};
    if (td_cli_wants_help(argc, argv)) {
        (void)printf("%s", help);
        return 0;
    }
    if (argc < 3 || argv[1][0] == '-' || argv[2][0] == '-') {
        (void)fprintf(stderr,
                      "tendon dataset export: from which folder to which?\n\n"
                      "%s",
                      help);
        return 2;
    }
    config.folder = argv[1];
    argv[1] = argv[0];
    if (!td_cli_parse(argc - 1, argv + 1, options, &config.out)) return 2;
    td_cli_keep_stop();
    return export_dataset(&config, as_json);
}

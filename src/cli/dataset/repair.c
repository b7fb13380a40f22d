// SPDX-License-Identifier: Apache-2.0
#include "base/json/json.h"
#include "cli/cli.h"
#include "cli/dataset/commands.h"
#include "dataset/write/save.h"

#include <inttypes.h>
#include <unistd.h>

static const char help[] =
    "usage: tendon dataset repair DIR [--json]\n"
    "\n"
    "Saves what recorders left unfinished beside a dataset, after a power cut "
    "or a\n"
    "kill: each such episode is added, as far as it was written; one without a "
    "frame\n"
    "is dropped. Finished episodes are not touched, and a dataset of which "
    "nothing is\n"
    "unfinished stays as it is. Stopping it anywhere loses nothing.\n"
    "\n"
    "  --json   one object: {\"folder\", \"saved\": [{\"episode\", "
    "\"frames\"}],\n"
    "           \"dropped\": COUNT, \"left\": [WHY]}\n"
    "\n"
    "The exit code is 1 when an episode could not be saved; it is then still "
    "there.\n"
    "\n"
    "examples:\n"
    "  tendon dataset repair runs/monday && tendon dataset verify "
    "runs/monday\n"
    "  tendon dataset repair runs/monday --json | jq '.saved'\n";

typedef struct saved_one {
    uint32_t episode;
    uint32_t frames;
} saved_one;

enum { MAX_SAVED = 1024, MAX_LEFT = 16 };

typedef struct report {
    bool as_json;
    bool on_terminal; // a line of progress is there
    uint32_t saved_count;
    uint32_t dropped_count;
    uint32_t left_count;
    saved_one saved[MAX_SAVED];
    td_errinfo left[MAX_LEFT];
} report;

static void clear_line(report *to)
{
    if (to->on_terminal) (void)fputs("\r\033[K", stderr);
    to->on_terminal = false;
}

static void on_progress(void *user, uint64_t done, uint64_t total)
{
    report *to = user;
    if (!isatty(STDERR_FILENO)) return;
    (void)fprintf(stderr, "\r\033[Kepisode %" PRIu32 ": %" PRIu64 " %%",
                  to->saved_count + to->dropped_count + to->left_count + 1,
                  done * 100 / total);
    to->on_terminal = true;
}

static void on_saved(void *user, uint32_t episode, uint32_t frames)
{
    report *to = user;
    clear_line(to);
    if (!to->as_json)
        (void)printf("saved %" PRIu32 " frames as episode %" PRIu32 "\n",
                     frames, episode);
    if (to->saved_count < MAX_SAVED)
        to->saved[to->saved_count] = (saved_one){episode, frames};
    to->saved_count++;
}

static void on_dropped(void *user)
{
    report *to = user;
    clear_line(to);
    if (!to->as_json) (void)printf("dropped an episode without a frame\n");
    to->dropped_count++;
}

static void on_left(void *user, const char *why)
{
    report *to = user;
    clear_line(to);
    (void)fprintf(stderr, "tendon dataset repair: left as it is: %s\n", why);
    if (to->left_count < MAX_LEFT)
        (void)snprintf(to->left[to->left_count].text, sizeof to->left[0].text,
                       "%s", why);
    to->left_count++;
}

static void print_json(const report *of, const char *folder)
{
    td_json json;
    td_json_init(&json, stdout);
    td_json_object(&json, NULL);
    td_json_text(&json, "folder", folder);
    td_json_array(&json, "saved");
    for (uint32_t i = 0; i < of->saved_count && i < MAX_SAVED; i++) {
        td_json_object(&json, NULL);
        td_json_whole(&json, "episode", of->saved[i].episode);
        td_json_whole(&json, "frames", of->saved[i].frames);
        td_json_end_object(&json);
    }
    td_json_end_array(&json);
    td_json_whole(&json, "dropped", of->dropped_count);
    td_json_array(&json, "left");
    for (uint32_t i = 0; i < of->left_count && i < MAX_LEFT; i++)
        td_json_text(&json, NULL, of->left[i].text);
    td_json_end_array(&json);
    td_json_end_object(&json);
    (void)printf("\n");
}

static int repair(const char *folder, bool as_json)
{
    static report done; // 10 kB
    td_errinfo info = {""};
    const td_dataset_save_hooks hooks = {
        .saved = on_saved,
        .dropped = on_dropped,
        .left = on_left,
        .user = &done,
        .progress = on_progress,
    };
    done.as_json = as_json;
    td_err err = td_dataset_save_leftovers(folder, &hooks, &info);
    clear_line(&done);
    if (as_json) print_json(&done, folder);
    if (err != TD_OK) return td_cli_fail("dataset repair", err, &info);
    if (!as_json &&
        done.saved_count + done.dropped_count + done.left_count == 0)
        (void)printf("%s: nothing is unfinished\n", folder);
    return done.left_count > 0;
}

int td_cli_dataset_repair(int argc, char **argv)
{
    int code = 0;
    td_cli_folder folder;
    if (!td_cli_parse_folder(argc, argv, help, &folder, &code)) return code;
    return repair(folder.path, folder.json);
}

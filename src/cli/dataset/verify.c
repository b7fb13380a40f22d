// SPDX-License-Identifier: Apache-2.0
#include "dataset/verify/verify.h"
#include "base/json/json.h"
#include "cli/cli.h"
#include "cli/dataset/commands.h"
#include "dataset/disk/staging.h"

#include <inttypes.h>
#include <unistd.h>

static const char help[] =
    "usage: tendon dataset verify DIR [--json]\n"
    "\n"
    "Holds a dataset to everything that the format promises: what info.json "
    "says\n"
    "against the files, counts, rows without a gap, timestamps, lengths of "
    "videos,\n"
    "statistics. Reads all rows, decodes no video, changes nothing. Each fault "
    "is\n"
    "printed with its file and what to do. The exit code is 0 when there is "
    "none.\n"
    "\n"
    "  --json   one object: {\"folder\", \"faults\": [{\"file\", \"what\", "
    "\"remedy\"}], …}\n"
    "\n"
    "examples:\n"
    "  tendon dataset verify ~/.cache/huggingface/lerobot/me/pick-up\n"
    "  tendon dataset verify runs/monday --json | jq '.faults | length'\n";

typedef struct report {
    const char *folder;
    td_json json;
    bool as_json;
    bool begun;       // the object, which is not where nothing was found out
    bool on_terminal; // a line of progress is there
} report;

static void begin_json(report *to)
{
    if (to->begun) return;
    to->begun = true;
    td_json_init(&to->json, stdout);
    td_json_object(&to->json, NULL);
    td_json_text(&to->json, "folder", to->folder);
    td_json_array(&to->json, "faults");
}

static void clear_line(report *to)
{
    if (to->on_terminal) (void)fputs("\r\033[K", stderr);
    to->on_terminal = false;
}

static void on_fault(void *user, const td_dataset_fault *fault)
{
    report *to = user;
    if (!to->as_json) {
        clear_line(to);
        (void)printf("%s: %s\n  %s\n", fault->file, fault->what, fault->remedy);
        return;
    }
    begin_json(to);
    td_json_object(&to->json, NULL);
    td_json_text(&to->json, "file", fault->file);
    td_json_text(&to->json, "what", fault->what);
    td_json_text(&to->json, "remedy", fault->remedy);
    td_json_end_object(&to->json);
}

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    report *to = user;
    if (isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "\r\033[K%" PRIu64 " of %" PRIu64, done, total);
        to->on_terminal = true;
    }
    return !td_cli_is_stopping();
}

static void end_json(report *to, uint32_t unfinished)
{
    begin_json(to);
    td_json_end_array(&to->json);
    td_json_whole(&to->json, "unfinished", unfinished);
    td_json_end_object(&to->json);
    (void)printf("\n");
}

static void end_text(const report *to, uint32_t faults, uint32_t unfinished)
{
    const char *folder = to->folder;
    if (faults == 0)
        (void)printf("%s: nothing is wrong\n", folder);
    else
        (void)printf("%s: %" PRIu32 " fault%s\n", folder, faults,
                     faults == 1 ? "" : "s");
    if (unfinished > 0)
        (void)printf("%" PRIu32 " unfinished episode%s beside it; to save: "
                     "tendon dataset repair %s\n",
                     unfinished, unfinished == 1 ? "" : "s", folder);
}

static int verify(const char *folder, bool as_json)
{
    uint32_t faults = 0;
    td_errinfo info = {""};
    report to = {.folder = folder, .as_json = as_json};
    const td_dataset_verify_hooks hooks = {on_fault, on_progress, &to};
    td_err err = td_dataset_verify(folder, &hooks, &faults, &info);
    uint32_t unfinished = td_dataset_staging_unfinished(folder);
    clear_line(&to);
    if (to.begun || (as_json && err == TD_OK)) end_json(&to, unfinished);
    if (err != TD_OK) return td_cli_fail("dataset verify", err, &info);
    if (!as_json) end_text(&to, faults, unfinished);
    return faults > 0;
}

int td_cli_dataset_verify(int argc, char **argv)
{
    int code = 0;
    td_cli_folder folder;
    if (!td_cli_parse_folder(argc, argv, help, &folder, &code)) return code;
    td_cli_keep_stop();
    return verify(folder.path, folder.json);
}

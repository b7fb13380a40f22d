// SPDX-License-Identifier: Apache-2.0
#include "dataset/meta/info.h"
#include "base/json/json.h"
#include "cli/cli.h"
#include "cli/dataset/commands.h"
#include "dataset/disk/staging.h"
#include "dataset/meta/tasks.h"

#include <inttypes.h>

static const char help[] =
    "usage: tendon dataset info DIR [--json]\n"
    "\n"
    "Prints what a dataset holds: robot, episodes, frames, tasks and features; "
    "who\n"
    "records there now, and what is unfinished.\n"
    "\n"
    "  --json   as one object\n"
    "\n"
    "examples:\n"
    "  tendon dataset info ~/.cache/huggingface/lerobot/me/pick-up\n"
    "  tendon dataset info runs/monday --json | jq .total_frames\n";

typedef struct shown {
    const char *folder;
    td_dataset_info *dataset;
    td_dataset_tasks *tasks; // NULL: none
    uint32_t unfinished;
    pid_t recorder; // 0: none
} shown;

static void print_feature(const td_dataset_feature *feature)
{
    (void)printf("%-12s %s, %s", "", feature->key,
                 td_dataset_dtype_name(feature->dtype));
    for (uint32_t i = 0; i < feature->dims; i++)
        (void)printf("%s%u", i ? "x" : " ", feature->shape[i]);
    bool named = !td_dataset_feature_is_picture(feature);
    for (size_t i = 0; named && i < feature->name_count; i++)
        (void)printf("%s %s", i ? "," : ":", feature->names[i]);
    (void)printf("\n");
}

static void print_text(const shown *of)
{
    const td_dataset_info *dataset = of->dataset;
    double seconds = (double)dataset->total_frames / dataset->fps;
    (void)printf("%s\n", of->folder);
    (void)printf("%-12s %s\n", "robot",
                 dataset->robot_type ? dataset->robot_type : "not said");
    (void)printf("%-12s %" PRIu64 ", %" PRIu64
                 " frames at %u a second: %.1f minutes\n",
                 "episodes", dataset->total_episodes, dataset->total_frames,
                 dataset->fps, seconds / 60);
    for (size_t i = 0; of->tasks && i < of->tasks->count; i++)
        (void)printf("%-12s %s\n", i ? "" : "tasks", of->tasks->texts[i]);
    (void)printf("features\n");
    for (size_t i = 0; i < dataset->feature_count; i++)
        print_feature(&dataset->features[i]);
    if (of->recorder)
        (void)printf("%-12s process %ld\n", "recording", (long)of->recorder);
    if (of->unfinished)
        (void)printf("%-12s %" PRIu32 "; to save: tendon dataset repair %s\n",
                     "unfinished", of->unfinished, of->folder);
}

static void write_feature(td_json *json, const td_dataset_feature *feature)
{
    td_json_object(json, NULL);
    td_json_text(json, "key", feature->key);
    td_json_text(json, "dtype", td_dataset_dtype_name(feature->dtype));
    td_json_array(json, "shape");
    for (uint32_t i = 0; i < feature->dims; i++)
        td_json_whole(json, NULL, feature->shape[i]);
    td_json_end_array(json);
    td_json_array(json, "names");
    for (size_t i = 0; i < feature->name_count; i++)
        td_json_text(json, NULL, feature->names[i]);
    td_json_end_array(json);
    td_json_end_object(json);
}

static void print_json(const shown *of)
{
    td_json json;
    const td_dataset_info *dataset = of->dataset;
    td_json_init(&json, stdout);
    td_json_object(&json, NULL);
    td_json_text(&json, "folder", of->folder);
    td_json_text(&json, "robot_type", dataset->robot_type);
    td_json_whole(&json, "fps", dataset->fps);
    td_json_whole(&json, "total_episodes", dataset->total_episodes);
    td_json_whole(&json, "total_frames", dataset->total_frames);
    td_json_array(&json, "tasks");
    for (size_t i = 0; of->tasks && i < of->tasks->count; i++)
        td_json_text(&json, NULL, of->tasks->texts[i]);
    td_json_end_array(&json);
    td_json_array(&json, "features");
    for (size_t i = 0; i < dataset->feature_count; i++)
        write_feature(&json, &dataset->features[i]);
    td_json_end_array(&json);
    td_json_whole(&json, "recorder", (uint64_t)of->recorder);
    td_json_whole(&json, "unfinished", of->unfinished);
    td_json_end_object(&json);
    (void)printf("\n");
}

static int show(const char *folder, bool as_json)
{
    td_errinfo info = {""};
    TD_AUTO(td_dataset_info) *dataset = NULL;
    TD_AUTO(td_dataset_tasks) *tasks = NULL;
    td_err err = td_dataset_info_read(folder, &dataset, &info);
    if (err == TD_OK && dataset->total_tasks > 0)
        err = td_dataset_tasks_read(folder, &tasks, &info);
    if (err != TD_OK) return td_cli_fail("dataset info", err, &info);
    const shown of = {folder, dataset, tasks,
                      td_dataset_staging_unfinished(folder),
                      td_dataset_staging_recorder(folder)};
    (as_json ? print_json : print_text)(&of);
    return 0;
}

int td_cli_dataset_info(int argc, char **argv)
{
    int code = 0;
    td_cli_folder folder;
    if (!td_cli_parse_folder(argc, argv, help, &folder, &code)) return code;
    return show(folder.path, folder.json);
}

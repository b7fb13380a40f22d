// SPDX-License-Identifier: Apache-2.0
#include "config/robot/record.h"

#include <stdlib.h>
#include <string.h>

static const char *const codecs[] = {"av1", "h264", NULL};
static const char *const begins[] = {"start", "command", NULL};

static const td_config_field record_rows[] = {
    TD_ROW_TEXT(td_config_record, dir, "\"\"", 0, 4096,
                "the dataset's folder; one that holds this robot's dataset is "
                "appended to; empty: that of "
                "dataset_repo_id among LeRobot's own"),
    TD_ROW_ENUM(td_config_record, codec, "av1", codecs,
                "of its videos; h264: less work for this machine, more for "
                "the disk"),
    TD_ROW_ENUM(td_config_record, begin, "start", begins,
                "when the first episode begins: with the first action, or "
                "when somebody says so"),
};
const td_config_table td_config_record_table = {
    record_rows, TD_COUNT_OF(record_rows), sizeof(td_config_record), NULL};

static bool is_plain(const char *text, size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return size > 0 && text[0] != '.' && text[0] != '-' &&
           strspn(text, plain) >= size;
}

// No more than the Hub takes; above all nothing that leads out of a folder.
static bool is_repo_id(const char *id)
{
    const char *slash = strchr(id, '/');
    if (!slash) return is_plain(id, strlen(id));
    return is_plain(id, (size_t)(slash - id)) &&
           is_plain(slash + 1, strlen(slash + 1));
}

// As LeRobot and huggingface_hub look for it.
static const char *default_folder(td_arena *arena, const char *id)
{
    static const struct {
        const char *variable, *below;
    } homes[] = {
        {"HF_LEROBOT_HOME", ""},
        {"HF_HOME", "/lerobot"},
        {"XDG_CACHE_HOME", "/huggingface/lerobot"},
        {"HOME", "/.cache/huggingface/lerobot"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(homes); i++) {
        const char *home = getenv(homes[i].variable);
        if (home && home[0] == '/')
            return td_arena_print(arena, "%s%s/%s", home, homes[i].below, id);
    }
    return td_arena_print(arena, "/tmp/lerobot/%s", id);
}

td_err td_config_record_check(const td_config_location *location,
                              const td_config_node *node,
                              td_config_robot *robot)
{
    const char *id = robot->dataset_repo_id;
    if (!id[0]) return TD_OK;
    if (!is_repo_id(id))
        return td_config_location_fail(
            location, td_config_node_get(node, "dataset_repo_id"),
            "dataset_repo_id",
            "must be NAME or OWNER/NAME, each of A-Z a-z 0-9 . _ - and not "
            "starting with '.' or '-', got %.64s",
            id);
    if (robot->record.dir[0]) return TD_OK;
    robot->record.dir = default_folder(location->arena, id);
    return robot->record.dir ? TD_OK : td_config_location_no_memory(location);
}

// SPDX-License-Identifier: Apache-2.0
#include "config/engine.h"

#include "config/table.h"

#define MAX_EXACT 9007199254740991.0 // whole numbers that a double can hold

static const char *const engines[] = {"synthetic", NULL};
static const char *const latencies[] = {"none",      "fixed",   "normal",
                                        "lognormal", "profile", NULL};

static td_err check_latency(const td_config_place *place,
                            const td_config_node *node, void *value);
static td_err check_engine(const td_config_place *place,
                           const td_config_node *node, void *value);

static const td_config_field latency_rows[] = {
    TD_ROW_ENUM(td_config_latency, kind, "none", latencies,
                "what the time of one batch is drawn from"),
    TD_ROW_NUMBER(td_config_latency, ms, "0", 0, 60000,
                  "mean of a batch of one"),
    TD_ROW_NUMBER(td_config_latency, std_ms, "0", 0, 60000,
                  "deviation (normal, lognormal)"),
    TD_ROW_NUMBER(td_config_latency, per_batch_ms, "0", 0, 60000,
                  "more for each further member of the batch"),
    TD_ROW_NUMBER(td_config_latency, prepare_ms, "0", 0, 60000,
                  "before the device takes a batch; overlaps with the batch "
                  "that runs"),
    TD_ROW_TEXT(td_config_latency, file, "\"\"", 0, 4096,
                "measured samples (profile): a line for each batch size, "
                "\"n: samples in ms\""),
};
static const td_config_table latency_table = {
    latency_rows, TD_COUNT_OF(latency_rows), sizeof(td_config_latency),
    check_latency};

static const td_config_field engine_rows[] = {
    TD_ROW_ENUM(td_config_engine, kind, NULL, engines, "what runs the model"),
    TD_ROW_MAP(td_config_engine, actions, action_count, td_config_channel,
               "[joint_0, joint_1, joint_2, joint_3, joint_4, joint_5]",
               td_config_channel_table, 1, TD_CONFIG_MAX_CHANNELS,
               "action channels in order"),
    TD_ROW_MAP(td_config_engine, states, state_count, td_config_channel, "[]",
               td_config_channel_table, 0, TD_CONFIG_MAX_CHANNELS,
               "state channels in order; none: those of the actions"),
    TD_ROW_MAP(td_config_engine, cameras, camera_count, td_config_camera, "[]",
               td_config_camera_table, 0, TD_CONFIG_MAX_CAMERAS,
               "pictures that every observation must hold"),
    TD_ROW_INTEGER(td_config_engine, chunk, "50", 1, TD_CONFIG_MAX_ROWS,
                   "actions in a chunk"),
    TD_ROW_INTEGER(td_config_engine, max_batch, "1", 1, TD_CONFIG_MAX_BATCH,
                   "most observations in one batch"),
    TD_ROW_BOOL(td_config_engine, continuous, "false",
                "what is submitted joins what runs, up to max_batch at a time"),
    TD_ROW_STRUCT(td_config_engine, latency, td_config_latency, "{}",
                  latency_table, "how long a batch takes"),
    TD_ROW_INTEGER(td_config_engine, seed, "0", 0, MAX_EXACT,
                   "of the latency draws"),
    TD_ROW_BOOL(td_config_engine, check_images, "false",
                "decode every picture and refuse one that is damaged"),
};
const td_config_table td_config_engine_table = {
    engine_rows, TD_COUNT_OF(engine_rows), sizeof(td_config_engine),
    check_engine};

static td_err check_latency(const td_config_place *place,
                            const td_config_node *node, void *value)
{
    td_config_latency *latency = value;
    bool profile = latency->kind == TD_CONFIG_LATENCY_PROFILE;
    if (profile != (latency->file[0] != '\0'))
        return td_config_bad(
            place, td_config_node_get(node, "file"), "file", "%s",
            profile ? "is missing, a profile needs the file of its samples"
                    : "is for kind: profile only");
    if (latency->kind == TD_CONFIG_LATENCY_LOGNORMAL && latency->ms == 0)
        return td_config_bad(place, td_config_node_get(node, "ms"), "ms",
                             "must be above 0 for kind: lognormal, got 0");

    return td_config_beside(place, &latency->file);
}

static td_err check_channels(const td_config_place *place,
                             const td_config_node *node, const char *field,
                             const td_config_channel *channels, size_t count)
{
    const char *wrong =
        td_config_channels_check(channels, sizeof *channels, count);
    if (!wrong) return TD_OK;
    return td_config_bad(place, td_config_node_get(node, field), field,
                         "a quaternion is four channels in a row, %s begins "
                         "fewer",
                         wrong);
}

static td_err check_engine(const td_config_place *place,
                           const td_config_node *node, void *value)
{
    td_config_engine *engine = value;
    if (engine->state_count == 0) {
        engine->states = engine->actions;
        engine->state_count = engine->action_count;
    }
    TD_TRY(check_channels(place, node, "actions", engine->actions,
                          engine->action_count));
    return check_channels(place, node, "states", engine->states,
                          engine->state_count);
}

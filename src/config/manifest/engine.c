// SPDX-License-Identifier: Apache-2.0
// Reads the engine of a model in the manifest.
//
// Fields of all kinds of engine stand in one table, since they stand in one map
// in the file; `engine_only` says which kinds have which field, and a field
// that the chosen kind does not have is refused by name with the kinds that do.
// The same is done for the kinds of latency of a synthetic engine. So a file
// that was copied from another kind of engine says at once what does not apply,
// and nothing is ignored in silence.
//
// What depends on several fields is checked after all of them: a worker needs
// `python` or `command` and not both, a quaternion is four channels in a row,
// and states are the actions where none are given. What a worker or a
// checkpoint says of itself (actions, chunk, batch) is left 0 here unless the
// file says it.
#include "config/manifest/engine.h"

#include "config/yaml/table.h"

#include <stdio.h>
#include <string.h>

#define MAX_EXACT 9007199254740991.0 // whole numbers that a double can hold

static const char *const engines[] = {"synthetic", "worker", "callback",
                                      "native", NULL};
static const char *const latencies[] = {"none",      "fixed",   "normal",
                                        "lognormal", "profile", NULL};

static td_err check_latency(const td_config_location *location,
                            const td_config_node *node, void *value);
static td_err check_engine(const td_config_location *location,
                           const td_config_node *node, void *value);

static const td_config_field latency_rows[] = {
    TD_ROW_ENUM(td_config_latency, kind, "none", latencies,
                "what the time of one batch is drawn from"),
    TD_ROW_NUMBER(td_config_latency, ms, "0", 0, 60000,
                  "mean of a batch of one (fixed, normal, lognormal)"),
    TD_ROW_NUMBER(td_config_latency, std_ms, "0", 0, 60000,
                  "deviation (normal, lognormal)"),
    TD_ROW_NUMBER(td_config_latency, per_batch_ms, "0", 0, 60000,
                  "more for each further member of the batch"),
    TD_ROW_NUMBER(td_config_latency, prepare_ms, "0", 0, 60000,
                  "before the device takes a batch; overlaps with the batch "
                  "that runs"),
    TD_ROW_TEXT(td_config_latency, file, "\"\"", 0, 4096,
                "what is played back (profile): a file of `tendon profile`"),
};
static const td_config_table latency_table = {
    latency_rows, TD_COUNT_OF(latency_rows), sizeof(td_config_latency),
    check_latency};

static const td_config_field ensemble_rows[] = {
    TD_ROW_BOOL(td_config_ensemble, enabled, "false",
                "a step is the mean of all chunks that spoke of it"),
    TD_ROW_NUMBER(td_config_ensemble, coefficient, "0.01", -100, 100,
                  "above 0: older chunks weigh more"),
};
static const td_config_table ensemble_table = {
    ensemble_rows, TD_COUNT_OF(ensemble_rows), sizeof(td_config_ensemble),
    NULL};

static const td_config_field engine_rows[] = {
    TD_ROW_ENUM(td_config_engine, kind, "native", engines,
                "what runs the model; native: the checkpoint of "
                "pretrained_path, in this process"),
    TD_ROW_MAP(td_config_engine, actions, action_count, td_config_channel,
               "[joint_0, joint_1, joint_2, joint_3, joint_4, joint_5]",
               td_config_channel_table, 1, TD_CONFIG_MAX_CHANNELS,
               "action channels in order; worker, native: unless it says its "
               "own"),
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
    TD_ROW_BOOL(td_config_engine, halves, "false",
                "a prefix takes 0.7 of the time, a chunk made from it 0.3; a "
                "worker says so itself"),
    TD_ROW_TEXT(td_config_engine, python, "\"\"", 0, 4096,
                "worker: the callable, file.py:name (beside the manifest) or "
                "module:name"),
    TD_ROW_TEXTS(td_config_engine, command, command_count, 1, 4096, 0, 64,
                 "worker: or a program and its arguments"),
    TD_ROW_BOOL(td_config_engine, batched, "false",
                "worker: the callable takes a list of observations"),
    TD_ROW_INTEGER(td_config_engine, parallel, "1", 1, TD_CONFIG_MAX_BATCH,
                   "worker, callback: batches that run side by side: "
                   "processes, or threads that call the function"),
    TD_ROW_BOOL(td_config_engine, rtc, "false",
                "worker, callback: it can do real-time chunking"),
    TD_ROW_NUMBER(td_config_engine, tolerance, "0", 0, 1000,
                  "worker, callback: largest difference of an answer across "
                  "batch sizes"),
    TD_ROW_INTEGER(td_config_engine, results_kb, "0", 0, 32 << 10,
                   "worker: most that the named results of an answer take; "
                   "0: as it says, or 1024"),
    TD_ROW_INTEGER(td_config_engine, memory_mb, "0", 0, 16 << 20,
                   "worker: most private memory; 0: no limit"),
    TD_ROW_NUMBER(td_config_engine, start_s, "300", 0.1, 86400,
                  "worker: most time until it is ready"),
    TD_ROW_NUMBER(td_config_engine, answer_s, "5", 0.01, 86400,
                  "worker, callback: a batch that stands still for longer, and "
                  "for longer than ten times its p99 (callback: its longest), "
                  "hangs"),
    TD_ROW_INTEGER(td_config_engine, threads, "0", 0, 256,
                   "native: of the processor; 0: one for each CPU that this "
                   "process may use"),
    TD_ROW_TEXT(td_config_engine, tokenizer, "\"\"", 0, 4096,
                "native: the tokenizer.json of a policy that takes text "
                "(beside the manifest); none: that of the checkpoint's folder"),
    TD_ROW_STRUCT(td_config_engine, ensemble, td_config_ensemble, "{}",
                  ensemble_table,
                  "native: the temporal ensemble of LeRobot, kept for each "
                  "robot"),
};
const td_config_table td_config_engine_table = {
    engine_rows, TD_COUNT_OF(engine_rows), sizeof(td_config_engine),
    check_engine};

// A field that not every kind has, and the kinds that have it.
struct only {
    const char *name;
    unsigned kinds;
};

// "worker or callback".
static void name_kinds(const char *const *names, unsigned kinds, size_t room,
                       char *ret_text)
{
    size_t used = 0;
    ret_text[0] = '\0';
    for (unsigned i = 0; names[i] && used < room; i++)
        if (kinds & (1u << i))
            used += (size_t)snprintf(ret_text + used, room - used, "%s%s",
                                     used ? " or " : "", names[i]);
}

static td_err check_only(const td_config_location *location,
                         const td_config_node *node, const struct only *only,
                         size_t count, const char *const *names, unsigned kind)
{
    for (size_t i = 0; i < count; i++) {
        const td_config_node *unused = td_config_node_get(node, only[i].name);
        if (!unused || (only[i].kinds & (1u << kind))) continue;
        char kinds[64];
        name_kinds(names, only[i].kinds, sizeof kinds, kinds);
        return td_config_location_fail(location, unused, only[i].name,
                                       "is for kind: %s only", kinds);
    }
    return TD_OK;
}

#define FIXED (1u << TD_CONFIG_LATENCY_FIXED)
#define SPREAD                                                                 \
    ((1u << TD_CONFIG_LATENCY_NORMAL) | (1u << TD_CONFIG_LATENCY_LOGNORMAL))
#define PROFILE (1u << TD_CONFIG_LATENCY_PROFILE)

static const struct only latency_only[] = {
    {"ms", FIXED | SPREAD},
    {"std_ms", SPREAD},
    {"file", PROFILE},
};

static td_err check_latency(const td_config_location *location,
                            const td_config_node *node, void *value)
{
    td_config_latency *latency = value;
    TD_TRY(check_only(location, node, latency_only, TD_COUNT_OF(latency_only),
                      latencies, latency->kind));
    if (latency->kind == TD_CONFIG_LATENCY_PROFILE && !latency->file[0])
        return td_config_location_fail(
            location, td_config_node_get(node, "file"), "file",
            "is missing, a profile needs the file of its samples");
    if (latency->kind == TD_CONFIG_LATENCY_LOGNORMAL && latency->ms == 0)
        return td_config_location_fail(
            location, td_config_node_get(node, "ms"), "ms",
            "must be above 0 for kind: lognormal, got 0");

    return td_config_location_beside(location, &latency->file);
}

static td_err check_channels(const td_config_location *location,
                             const td_config_node *node, const char *field,
                             const td_config_channel *channels, size_t count)
{
    const char *wrong =
        td_config_channels_check(channels, sizeof *channels, count);
    if (!wrong) return TD_OK;
    return td_config_location_fail(
        location, td_config_node_get(node, field), field,
        "a quaternion is four channels in a row, %s begins "
        "fewer",
        wrong);
}

#define SYNTHETIC (1u << TD_CONFIG_SYNTHETIC)
#define WORKER (1u << TD_CONFIG_WORKER)
#define CALLBACK (1u << TD_CONFIG_CALLBACK)
#define NATIVE (1u << TD_CONFIG_NATIVE)

static const struct only engine_only[] = {
    {"cameras", SYNTHETIC | WORKER | CALLBACK},
    {"chunk", SYNTHETIC | WORKER | CALLBACK},
    {"continuous", SYNTHETIC},
    {"latency", SYNTHETIC},
    {"seed", SYNTHETIC},
    {"check_images", SYNTHETIC},
    {"halves", SYNTHETIC},
    {"python", WORKER},
    {"command", WORKER},
    {"batched", WORKER},
    {"parallel", WORKER | CALLBACK},
    {"rtc", WORKER | CALLBACK},
    {"tolerance", WORKER | CALLBACK},
    {"results_kb", WORKER},
    {"memory_mb", WORKER},
    {"start_s", WORKER},
    {"answer_s", WORKER | CALLBACK},
    {"threads", NATIVE},
    {"tokenizer", NATIVE},
    {"ensemble", NATIVE},
};

static td_err check_worker(const td_config_location *location,
                           const td_config_node *node, td_config_engine *engine)
{
    bool python = engine->python[0] != '\0';
    if (python == (engine->command_count > 0))
        return td_config_location_fail(
            location, NULL, NULL,
            "a worker needs python or command, and not both");
    if (engine->batched && !python)
        return td_config_location_fail(location,
                                       td_config_node_get(node, "batched"),
                                       "batched", "is for python only");
    if (python && !strchr(engine->python, ':'))
        return td_config_location_fail(
            location, td_config_node_get(node, "python"), "python",
            "must be file.py:name or module:name, got \"%s\"", engine->python);
    if (!td_config_node_get(node, "actions")) engine->action_count = 0;
    if (!td_config_node_get(node, "chunk")) engine->chunk = 0;
    if (!td_config_node_get(node, "max_batch")) engine->max_batch = 0;
    return strstr(engine->python, ".py:")
               ? td_config_location_beside(location, &engine->python)
               : TD_OK;
}

static td_err check_engine(const td_config_location *location,
                           const td_config_node *node, void *value)
{
    td_config_engine *engine = value;
    TD_TRY(check_only(location, node, engine_only, TD_COUNT_OF(engine_only),
                      engines, engine->kind));
    if (engine->kind == TD_CONFIG_WORKER)
        TD_TRY(check_worker(location, node, engine));
    if (engine->kind == TD_CONFIG_NATIVE &&
        !td_config_node_get(node, "actions"))
        engine->action_count = 0;
    if (engine->state_count == 0) {
        engine->states = engine->actions;
        engine->state_count = engine->action_count;
    }
    TD_TRY(td_config_location_beside(location, &engine->tokenizer));
    TD_TRY(check_channels(location, node, "actions", engine->actions,
                          engine->action_count));
    return check_channels(location, node, "states", engine->states,
                          engine->state_count);
}

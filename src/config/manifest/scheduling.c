// SPDX-License-Identifier: Apache-2.0
#include "config/manifest/scheduling.h"

#include "config/manifest/engine.h"
#include "config/yaml/table.h"

#include <string.h>

const char *const td_config_strategies[] = {"deadline_aware",
                                            "model_deadline",
                                            "tiered_deadline",
                                            "priority_tiered",
                                            "batch_optimized",
                                            "round_robin",
                                            NULL};
const char *const td_config_overflows[] = {"drop_oldest", "reject_newest",
                                           NULL};
const char *const td_config_waits[] = {"slack", "none", "fixed", "full", NULL};

static td_err check_scheduling(const td_config_location *location,
                               const td_config_node *node, void *value);
static td_err check_batch(const td_config_location *location,
                          const td_config_node *node, void *value);

#define MAX_WEIGHT 1000

static const td_config_field weights_rows[] = {
    TD_ROW_NUMBER(td_config_weights, cadence, "45", 0, MAX_WEIGHT,
                  "for each 0.1 s by which its robot's next is overdue"),
    TD_ROW_NUMBER(td_config_weights, urgency, "25", 0, MAX_WEIGHT,
                  "times the urgency that it was sent with"),
    TD_ROW_NUMBER(td_config_weights, steps, "15", 0, MAX_WEIGHT,
                  "whole with 0 steps remaining, less with up to 4"),
    TD_ROW_NUMBER(td_config_weights, priority, "10", 0, MAX_WEIGHT,
                  "whole at priority 0, none from 10 on"),
    TD_ROW_NUMBER(td_config_weights, age, "15", 0, MAX_WEIGHT,
                  "grows with its age to the whole at its latency budget"),
};
static const td_config_table weights_table = {
    weights_rows, TD_COUNT_OF(weights_rows), sizeof(td_config_weights), NULL};

static const td_config_field queue_rows[] = {
    TD_ROW_INTEGER(td_config_queue, size, "1000", 1, 1000000,
                   "requests that wait, of all clients of a device"),
    TD_ROW_NUMBER(td_config_queue, ttl_ms, "5000", 1, 600000,
                  "a request that has waited longer is dropped", .live = true),
    TD_ROW_ENUM(td_config_queue, overflow, "drop_oldest", td_config_overflows,
                "who goes when there is no room", .live = true),
    TD_ROW_INTEGER(td_config_queue, retries, "0", 0, 16,
                   "how often a request that failed runs again", .live = true),
    TD_ROW_NUMBER(td_config_queue, backoff_ms, "10", 0, 60000,
                  "before the first retry; doubled for each more",
                  .live = true),
};
static const td_config_table queue_table = {queue_rows, TD_COUNT_OF(queue_rows),
                                            sizeof(td_config_queue), NULL};

static const td_config_field cadence_rows[] = {
    TD_ROW_NUMBER(td_config_cadence, alpha, "0.3", 0.001, 1,
                  "weight of the newest interval between two observations"),
    TD_ROW_NUMBER(td_config_cadence, gone_s, "10", 0.1, 86400,
                  "seconds of silence after which a robot is gone"),
    TD_ROW_NUMBER(td_config_cadence, wake_ahead_ms, "5", 0, 1000,
                  "how long before an observation is expected an engine that "
                  "can be woken is"),
    TD_ROW_INTEGER(td_config_cadence, wake_samples, "5", 1, 1000,
                   "intervals that must be known for that"),
};
static const td_config_table cadence_table = {
    cadence_rows, TD_COUNT_OF(cadence_rows), sizeof(td_config_cadence), NULL};

static const td_config_field flush_rows[] = {
    TD_ROW_INTEGER(td_config_flush, max_size, "8", 1, TD_CONFIG_MAX_BATCH,
                   "a batch of so many starts at once"),
    TD_ROW_NUMBER(td_config_flush, wait_ms, "10", 0, 60000,
                  "a smaller one when its first has waited for so long"),
};
static const td_config_table flush_table = {flush_rows, TD_COUNT_OF(flush_rows),
                                            sizeof(td_config_flush), NULL};

static const td_config_field scheduling_rows[] = {
    TD_ROW_ENUM(td_config_scheduling, strategy, "model_deadline",
                td_config_strategies, "who goes first", .live = true),
    TD_ROW_STRUCT(td_config_scheduling, weights, td_config_weights, "{}",
                  weights_table, "parts of the score (docs/scheduling.md)",
                  .live = true),
    TD_ROW_NUMBER(td_config_scheduling, fairness, "0.1", 0, 1,
                  "the part of the starts that goes, in turn, to who has "
                  "waited for too long, whatever it claims; 0: none",
                  .live = true),
    TD_ROW_TEXT(td_config_scheduling, score, "\"\"", 0, 1024,
                "a score of your own: an expression over age_ms, budget_ms, "
                "urgency, priority, steps_remaining, slack_ms, overdue_ms and "
                "score, the published one; higher goes first",
                .live = true),
    TD_ROW_TEXT(td_config_scheduling, plugin, "\"\"", 0, 4096,
                "a score of your own: a library with a C function "
                "(tendon/score.h)",
                .live = true),
    TD_ROW_INTEGER(td_config_scheduling, tiers, "4", 1, TD_CONFIG_MAX_TIERS,
                   "of tiered_deadline and priority_tiered: priorities from "
                   "the last one on share it"),
    TD_ROW_BOOL(td_config_scheduling, side_by_side, "true",
                "models on one processor \"device\" (cpu, cpu:1, ...) run at "
                "the same time; false: one after the other, as on a GPU"),
    TD_ROW_STRUCT(td_config_scheduling, queue, td_config_queue, "{}",
                  queue_table,
                  "of clients that want every observation answered"),
    TD_ROW_STRUCT(
        td_config_scheduling, cadence, td_config_cadence, "{}", cadence_table,
        "what a robot's pace says of its next observation", .live = true),
    TD_ROW_STRUCT(td_config_scheduling, flush, td_config_flush, "{}",
                  flush_table, "when batch_optimized starts a batch",
                  .live = true),
};
const td_config_table td_config_scheduling_table = {
    scheduling_rows, TD_COUNT_OF(scheduling_rows), sizeof(td_config_scheduling),
    check_scheduling};

static const td_config_field batch_rows[] = {
    TD_ROW_ENUM(td_config_batch, wait, "slack", td_config_waits,
                "when a batch that is not full starts: when the least slack "
                "runs out, at once, after wait_ms, never"),
    TD_ROW_INTEGER(td_config_batch, max_size, "0", 0, TD_CONFIG_MAX_BATCH,
                   "observations in one batch; 0: as many as the engine "
                   "takes"),
    TD_ROW_NUMBER(td_config_batch, wait_ms, "0", 0, 60000,
                  "how long its first waits (fixed)"),
};
const td_config_table td_config_batch_table = {
    batch_rows, TD_COUNT_OF(batch_rows), sizeof(td_config_batch), check_batch};

static bool scores(td_config_strategy strategy)
{
    return strategy <= TD_CONFIG_TIERED_DEADLINE;
}

static td_err check_own_score(const td_config_location *location,
                              const td_config_node *node,
                              const td_config_scheduling *scheduling)
{
    const char *field = scheduling->plugin[0] ? "plugin" : "score";
    if (!scheduling->plugin[0] && !scheduling->score[0]) return TD_OK;
    if (scheduling->plugin[0] && scheduling->score[0])
        return td_config_location_fail(
            location, td_config_node_get(node, field), field,
            "a score is given too, choose one of the two");
    if (!scores(scheduling->strategy))
        return td_config_location_fail(
            location, td_config_node_get(node, field), field,
            "is for strategies that score, %s does not",
            td_config_strategies[scheduling->strategy]);
    return TD_OK;
}

static td_err check_scheduling(const td_config_location *location,
                               const td_config_node *node, void *value)
{
    td_config_scheduling *scheduling = value;
    TD_TRY(check_own_score(location, node, scheduling));
    TD_TRY(td_config_location_beside(location, &scheduling->plugin));
    TD_TRY(td_config_location_print(location, td_config_node_get(node, "score"),
                                    "score", &scheduling->score_at));
    return td_config_location_print(location,
                                    td_config_node_get(node, "plugin"),
                                    "plugin", &scheduling->plugin_at);
}

static td_err check_batch(const td_config_location *location,
                          const td_config_node *node, void *value)
{
    const td_config_batch *batch = value;
    bool fixed = batch->wait == TD_CONFIG_WAIT_FIXED;
    if (fixed == (batch->wait_ms > 0)) return TD_OK;
    return td_config_location_fail(
        location, td_config_node_get(node, "wait_ms"), "wait_ms", "%s",
        fixed ? "must be above 0 for wait: fixed" : "is for wait: fixed only");
}

static td_err keep_rest(const char *path, const char *text,
                        const td_config_scheduling *was,
                        td_config_scheduling *now, td_errinfo *info)
{
    TD_AUTO(td_arena) *arena = NULL;
    td_config_node *root = NULL;
    TD_TRY(td_arena_new(&arena));
    TD_TRY(td_config_yaml_parse(arena, path, text, strlen(text), &root, info));
    if (td_config_node_get(root, "tiers"))
        return td_fail(info, TD_ERR_INVALID,
                       "%s:%d: tiers: cannot change while it is used", path,
                       td_config_node_get(root, "tiers")->line);
    now->tiers = was->tiers;
    now->side_by_side = was->side_by_side;
    if (!td_config_node_get(root, "strategy")) now->strategy = was->strategy;
    if (!td_config_node_get(root, "weights")) now->weights = was->weights;
    if (!td_config_node_get(root, "fairness")) now->fairness = was->fairness;
    if (!td_config_node_get(root, "queue")) now->queue = was->queue;
    if (!td_config_node_get(root, "cadence")) now->cadence = was->cadence;
    if (!td_config_node_get(root, "flush")) now->flush = was->flush;
    return TD_OK;
}

td_err td_config_scheduling_parse(const char *path, const char *text,
                                  const td_config_scheduling *was,
                                  td_config_scheduling **ret_now,
                                  td_errinfo *info)
{
    void *value = NULL;
    TD_TRY(td_config_table_parse(&td_config_scheduling_table, path, text,
                                 strlen(text), &value, info));
    TD_AUTO(td_config_scheduling) *now = value;
    TD_TRY(keep_rest(path, text, was, now, info));
    *ret_now = TD_TAKE(now);
    return TD_OK;
}

void td_config_scheduling_free(td_config_scheduling *scheduling)
{
    td_config_table_free(scheduling);
}

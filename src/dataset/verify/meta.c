// SPDX-License-Identifier: Apache-2.0
#include "dataset/meta/stats_file.h"
#include "dataset/verify/verify_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REMEDY_INFO "correct info.json, or copy the dataset again"
#define REMEDY_STATS "compute the statistics again with LeRobot's own tool"

// What a reader found: its own words are the fault.
static td_err reported(td_dataset_verification *check, td_err err,
                       const char *file, const char *remedy,
                       const td_errinfo *why)
{
    if (err == TD_ERR_NOMEM) return err;
    return td_dataset_verify_fault(check, file, remedy, "%s",
                                   why->text[0] ? why->text : td_err_text(err));
}

static td_err check_defaults(td_dataset_verification *check)
{
    for (size_t i = 0; i < TD_DATASET_DEFAULTS; i++) {
        const td_dataset_default *wanted = &td_dataset_info_defaults[i];
        const td_dataset_feature *feature =
            td_dataset_info_find(check->dataset, wanted->key);
        if (feature && feature->dtype == wanted->dtype &&
            td_dataset_feature_size(feature) == 1)
            continue;
        TD_TRY(td_dataset_verify_fault(
            check, "meta/info.json", REMEDY_INFO, "features: %s is %s",
            wanted->key, feature ? "of another type" : "missing"));
    }
    return TD_OK;
}

static td_err check_tasks(td_dataset_verification *check)
{
    td_errinfo why = {""};
    if (check->dataset->total_tasks == 0) return TD_OK;
    td_err err = td_dataset_tasks_read(check->folder, &check->tasks, &why);
    if (err != TD_OK)
        return reported(check, err, "meta/tasks.parquet",
                        TD_DATASET_REMEDY_COPY, &why);
    if (check->tasks->count != check->dataset->total_tasks)
        TD_TRY(td_dataset_verify_fault(check, "meta/tasks.parquet", REMEDY_INFO,
                                       "%zu tasks, and info.json says %" PRIu64,
                                       check->tasks->count,
                                       check->dataset->total_tasks));
    return TD_OK;
}

static td_err check_episodes(td_dataset_verification *check)
{
    td_errinfo why = {""};
    uint64_t rows = 0;
    td_err err = td_dataset_episodes_read(check->folder, check->dataset,
                                          &check->episodes, &why);
    if (err != TD_OK)
        return reported(check, err, "meta/episodes", TD_DATASET_REMEDY_COPY,
                        &why);
    for (size_t i = 0; i < check->episodes->count; i++)
        rows += check->episodes->items[i].length;
    if (rows == check->dataset->total_frames) return TD_OK;
    return td_dataset_verify_fault(check, "meta/info.json", REMEDY_INFO,
                                   "total_frames is %" PRIu64
                                   ", and the episodes have %" PRIu64,
                                   check->dataset->total_frames, rows);
}

// Quantiles that are not there are NaN here (dataset/meta/stats_file.h).
static bool is_sound(const td_dataset_stats *stats)
{
    size_t quantiles = (size_t)TD_DATASET_STAT_Q01 * stats->channels;
    size_t count = (size_t)TD_DATASET_STAT_COUNT * stats->channels;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(stats->values[i]) &&
            !(i >= quantiles && isnan(stats->values[i])))
            return false;
    return stats->count > 0;
}

static td_err check_stat(td_dataset_verification *check,
                         const td_dataset_feature *feature,
                         const td_dataset_stats *stats)
{
    if (feature->dtype == TD_DATASET_DTYPE_STRING) return TD_OK;
    if (stats && is_sound(stats)) return TD_OK;
    return td_dataset_verify_fault(
        check, "meta/stats.json", REMEDY_STATS, "%s: %s", feature->key,
        stats ? "a statistic that is not finite, or of nothing"
              : "no statistics");
}

static td_err check_stats(td_dataset_verification *check)
{
    td_errinfo why = {""};
    size_t count = check->dataset->feature_count;
    td_dataset_stats **stats = calloc(count, sizeof *stats);
    if (!stats) return TD_ERR_NOMEM;
    td_err err =
        td_dataset_stats_file_read(check->folder, check->dataset, stats, &why);
    if (err != TD_OK)
        err = reported(check, err, "meta/stats.json", REMEDY_STATS, &why);
    else
        for (size_t i = 0; i < count && err == TD_OK; i++)
            err = check_stat(check, &check->dataset->features[i], stats[i]);
    for (size_t i = 0; i < count; i++)
        if (stats[i]) td_dataset_stats_free(stats[i]);
    free((void *)stats);
    return err;
}

td_err td_dataset_verify_meta(td_dataset_verification *check)
{
    td_errinfo why = {""};
    td_err err = td_dataset_info_read(check->folder, &check->dataset, &why);
    if (err != TD_OK)
        return reported(check, err, "meta/info.json", REMEDY_INFO, &why);
    TD_TRY(check_defaults(check));
    TD_TRY(check_tasks(check));
    if (check->dataset->total_episodes == 0) return TD_OK;
    TD_TRY(check_stats(check));
    return check_episodes(check);
}

// SPDX-License-Identifier: Apache-2.0
#include "dataset/write/columns.h"
#include "dataset/meta/features.h"
#include "dataset/stats/pictures.h"

#include <stdlib.h>
#include <string.h>

struct td_dataset_columns {
    size_t feature_count;
    size_t row_count; // of columns
    td_dataset_column *rows;
    double **wide; // of a column whose values the dataset keeps as float64
    td_dataset_stats **stats;
    // What follows from where the episode stands.
    float *timestamp;
    double *exact; // timestamp, as LeRobot takes its statistics
    int64_t *frame_index;
    int64_t *episode_index;
    int64_t *index;
    int64_t *task_index;
};

void td_dataset_columns_free(td_dataset_columns *columns)
{
    for (size_t i = 0; columns->stats && i < columns->feature_count; i++)
        if (columns->stats[i]) td_dataset_stats_free(columns->stats[i]);
    for (size_t i = 0; columns->wide && i < columns->feature_count; i++)
        free(columns->wide[i]);
    free((void *)columns->stats);
    free((void *)columns->wide);
    free(columns->rows);
    free(columns->timestamp);
    free(columns->exact);
    free(columns->frame_index);
    free(columns->episode_index);
    free(columns->index);
    free(columns->task_index);
    free(columns);
}

static td_err count_up(td_dataset_columns *columns,
                       const td_dataset_unsaved *unsaved,
                       const td_dataset_columns_place *place)
{
    size_t count = unsaved->frames;
    columns->timestamp = calloc(count, sizeof *columns->timestamp);
    columns->exact = calloc(count, sizeof *columns->exact);
    columns->frame_index = calloc(count, sizeof *columns->frame_index);
    columns->episode_index = calloc(count, sizeof *columns->episode_index);
    columns->index = calloc(count, sizeof *columns->index);
    columns->task_index = calloc(count, sizeof *columns->task_index);
    if (!columns->timestamp || !columns->exact || !columns->frame_index ||
        !columns->episode_index || !columns->index || !columns->task_index)
        return TD_ERR_NOMEM;
    for (size_t i = 0; i < count; i++) {
        columns->exact[i] = (double)i / unsaved->schema->fps;
        columns->timestamp[i] = (float)columns->exact[i];
        columns->frame_index[i] = (int64_t)i;
        columns->episode_index[i] = (int64_t)place->number;
        columns->index[i] = (int64_t)(place->first + i);
        columns->task_index[i] = place->tasks[unsaved->task[i]];
    }
    return TD_OK;
}

// The values of a feature, and how statistics look at them.
typedef struct source {
    const char *key;
    td_dataset_type type;
    uint32_t width;
    const void *values;
    td_dataset_stats_type stats_type;
    const void *stats_values; // NULL: the values
} source;

#define STATS_BOOL TD_DATASET_STATS_BOOL
#define STATS_F32 TD_DATASET_STATS_F32
#define STATS_I64 TD_DATASET_STATS_I64

static bool find_source(const td_dataset_columns *columns,
                        const td_dataset_unsaved *unsaved, const char *key,
                        source *ret_source)
{
    const source sources[] = {
        {"action", TD_DATASET_F32, unsaved->schema->action_count,
         unsaved->action, STATS_F32, NULL},
        {"observation.state", TD_DATASET_F32, unsaved->schema->state_count,
         unsaved->state, STATS_F32, NULL},
#define EXTRA(name, dtype, field)                                              \
    {name, TD_DATASET_##dtype, 1, unsaved->field, STATS_##dtype, NULL},
        TD_DATASET_EXTRAS(EXTRA)
#undef EXTRA
            {"timestamp", TD_DATASET_F32, 1, columns->timestamp,
             TD_DATASET_STATS_F64, columns->exact},
        {"frame_index", TD_DATASET_I64, 1, columns->frame_index, STATS_I64,
         NULL},
        {"episode_index", TD_DATASET_I64, 1, columns->episode_index, STATS_I64,
         NULL},
        {"index", TD_DATASET_I64, 1, columns->index, STATS_I64, NULL},
        {"task_index", TD_DATASET_I64, 1, columns->task_index, STATS_I64, NULL},
    };
    for (size_t i = 0; i < TD_COUNT_OF(sources); i++)
        if (strcmp(sources[i].key, key) == 0) {
            *ret_source = sources[i];
            return true;
        }
    return false;
}

static td_err widen(td_dataset_columns *columns, size_t count, source *from)
{
    const float *values = from->values;
    double *wide = calloc(count, sizeof *wide);
    if (!wide) return TD_ERR_NOMEM;
    columns->wide[columns->row_count] = wide;
    for (size_t i = 0; i < count; i++)
        wide[i] = (double)values[i];
    from->type = TD_DATASET_F64;
    from->values = wide;
    from->stats_type = TD_DATASET_STATS_F64;
    return TD_OK;
}

static td_err add_values(td_dataset_columns *columns,
                         const td_dataset_unsaved *unsaved,
                         const td_dataset_feature *feature,
                         td_dataset_stats **ret_stats, td_errinfo *info)
{
    source from;
    if (!find_source(columns, unsaved, feature->key, &from))
        return td_fail(info, TD_ERR_NOTFOUND, "%s: not recorded", feature->key);
    size_t count = (size_t)unsaved->frames * from.width;
    if (feature->dtype == TD_DATASET_DTYPE_F64 && from.type == TD_DATASET_F32)
        TD_TRY(widen(columns, count, &from));
    columns->rows[columns->row_count++] = (td_dataset_column){
        .type = from.type,
        .count = count,
        .values = from.values,
    };
    return td_dataset_stats_column(
        from.stats_type, from.stats_values ? from.stats_values : from.values,
        unsaved->frames, from.width, ret_stats);
}

// The pictures that LeRobot would look at, in order.
static td_err add_pictures(const td_dataset_unsaved *unsaved, uint32_t index,
                           td_dataset_stats **ret_stats, td_errinfo *info)
{
    TD_AUTO(td_dataset_unsaved_camera) *camera = NULL;
    TD_AUTO(td_dataset_pictures) *pictures = NULL;
    TD_TRY(td_dataset_unsaved_camera_open(unsaved, index, &camera, info));
    TD_TRY(td_dataset_pictures_new(&pictures));
    size_t samples = td_dataset_pictures_samples(unsaved->frames);
    for (size_t i = 0; i < samples; i++) {
        td_slice pixels;
        size_t frame = td_dataset_pictures_sample(unsaved->frames, i);
        TD_TRY(
            td_dataset_unsaved_pixels(camera, (uint32_t)frame, &pixels, info));
        td_dataset_pictures_add(pictures, pixels.data, pixels.size / 3);
    }
    return td_dataset_pictures_stats(pictures, ret_stats);
}

static td_err add_feature(td_dataset_columns *columns,
                          const td_dataset_unsaved *unsaved,
                          const td_dataset_feature *feature,
                          td_dataset_stats **ret_stats, td_errinfo *info)
{
    uint32_t camera = td_dataset_features_camera(unsaved->schema, feature->key);
    if (camera < unsaved->schema->camera_count)
        return add_pictures(unsaved, camera, ret_stats, info);
    return add_values(columns, unsaved, feature, ret_stats, info);
}

td_err td_dataset_columns_new(const td_dataset_info *dataset,
                              const td_dataset_unsaved *unsaved,
                              const td_dataset_columns_place *place,
                              td_dataset_columns **ret_columns,
                              td_errinfo *info)
{
    TD_AUTO(td_dataset_columns) *columns = calloc(1, sizeof *columns);
    if (!columns) return TD_ERR_NOMEM;
    columns->feature_count = dataset->feature_count;
    columns->rows = calloc(dataset->feature_count, sizeof *columns->rows);
    columns->wide = calloc(dataset->feature_count, sizeof *columns->wide);
    columns->stats = calloc(dataset->feature_count, sizeof *columns->stats);
    if (!columns->rows || !columns->wide || !columns->stats)
        return TD_ERR_NOMEM;
    TD_TRY(count_up(columns, unsaved, place));
    for (size_t i = 0; i < dataset->feature_count; i++)
        TD_TRY(add_feature(columns, unsaved, &dataset->features[i],
                           &columns->stats[i], info));
    *ret_columns = TD_TAKE(columns);
    return TD_OK;
}

const td_dataset_column *
td_dataset_columns_rows(const td_dataset_columns *columns)
{
    return columns->rows;
}

const td_dataset_stats *const *
td_dataset_columns_stats(const td_dataset_columns *columns)
{
    return (const td_dataset_stats *const *)columns->stats;
}

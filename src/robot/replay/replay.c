// SPDX-License-Identifier: Apache-2.0
#include "robot/replay/replay.h"

#include "dataset/read/reader.h"
#include "media/video.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE "observation.state"
#define IMAGES "observation.images."
#define KEY_BYTES 256
#define NS_PER_S 1e9
#define NOT_STARTED INT64_MIN
#define GRACE 0.01 // rows: a caller's period is rounded to nanoseconds

typedef struct camera {
    td_dataset_reader *reader; // its capturing thread's
    char key[KEY_BYTES];
} camera;

typedef struct replay {
    td_robot_hardware robot;
    _Atomic int64_t start_ns; // of row 0, NOT_STARTED before the first look
    double rows_per_ns;
    uint64_t first, count;   // rows
    td_dataset_reader *rows; // the driver's
    uint32_t joint_count;
    camera cameras[TD_ROBOT_MAX_CAMERAS];
    uint32_t camera_count;
} replay;

static void close_replay(td_robot_hardware *robot)
{
    replay *self = (replay *)robot;
    for (uint32_t i = 0; i < self->camera_count; i++)
        td_dataset_reader_close(self->cameras[i].reader);
    if (self->rows) td_dataset_reader_close(self->rows);
    free(self);
}

static void replay_free(replay *self)
{
    close_replay(&self->robot);
}
TD_AUTO_FREE(replay, replay_free)

static td_err find_rows(replay *self, const td_robot_config *config,
                        td_errinfo *info)
{
    const td_dataset_info *dataset = td_dataset_reader_info(self->rows);
    const td_dataset_episodes *episodes =
        td_dataset_reader_episodes(self->rows);
    self->rows_per_ns = dataset->fps * config->speed / NS_PER_S;
    self->count = dataset->total_frames;
    if (config->episode >= 0) {
        if ((uint64_t)config->episode >= episodes->count)
            return td_fail(info, TD_ERR_INVALID,
                           "%s has %zu episodes, the first is 0; there is no "
                           "%lld",
                           config->dataset, episodes->count,
                           (long long)config->episode);
        self->first = episodes->items[config->episode].from;
        self->count = episodes->items[config->episode].length;
    }
    if (self->count > 0) return TD_OK;
    return td_fail(info, TD_ERR_INVALID, "%s has no frames", config->dataset);
}

static td_err check_names(const td_dataset_feature *state,
                          const td_robot_config *config, td_errinfo *info)
{
    for (size_t i = 0; i < state->name_count; i++)
        if (strcmp(state->names[i], config->joints[i].name) != 0)
            return td_fail(info, TD_ERR_INVALID,
                           "joint %zu is %.64s here and %.64s in %s; give the "
                           "dataset's names in its order",
                           i, config->joints[i].name, state->names[i],
                           config->dataset);
    return TD_OK;
}

static td_err check_joints(const replay *self, const td_robot_config *config,
                           td_errinfo *info)
{
    const td_dataset_feature *state =
        td_dataset_info_find(td_dataset_reader_info(self->rows), STATE);
    size_t count = state ? td_dataset_feature_size(state) : 0;
    if (!state || count != config->joint_count)
        return td_fail(info, TD_ERR_INVALID,
                       STATE " of %s has %zu values, and the robot %u joints",
                       config->dataset, count, config->joint_count);
    if (state->name_count != count) return TD_OK; // none, or groups'
    return check_names(state, config, info);
}

static td_err check_camera(const td_dataset_reader *reader, const char *key,
                           const td_robot_camera *given, td_errinfo *info)
{
    const td_dataset_feature *feature =
        td_dataset_info_find(td_dataset_reader_info(reader), key);
    uint32_t height = 0, width = 0;
    if (!feature)
        return td_fail(info, TD_ERR_INVALID, "the dataset has no %s", key);
    if (td_dataset_feature_picture(feature, &height, &width) != TD_OK)
        return td_fail(info, TD_ERR_INVALID, "%s is not a picture", key);
    if (height != given->height || width != given->width)
        return td_fail(info, TD_ERR_INVALID,
                       "camera %s is %u x %u here and %u x %u in the dataset",
                       given->name, given->height, given->width, height, width);
    return feature->dtype == TD_DATASET_DTYPE_VIDEO ? td_media_video_load(info)
                                                    : TD_OK;
}

static td_err open_camera(replay *self, const char *dataset,
                          const td_robot_camera *given, td_errinfo *info)
{
    camera *opened = &self->cameras[self->camera_count];
    int size =
        snprintf(opened->key, sizeof opened->key, IMAGES "%s", given->name);
    if (size >= KEY_BYTES)
        return td_fail(info, TD_ERR_INVALID, "camera %.64s: too long a name",
                       given->name);
    TD_TRY(td_dataset_reader_open(dataset, &opened->reader, info));
    self->camera_count++;
    return check_camera(opened->reader, opened->key, given, info);
}

static td_err check_config(const td_robot_config *config, td_errinfo *info)
{
    if (config->joint_count < 1 || config->joint_count > TD_ROBOT_MAX_JOINTS)
        return td_fail(info, TD_ERR_INVALID, "must have 1 to %d joints, got %u",
                       TD_ROBOT_MAX_JOINTS, config->joint_count);
    if (config->camera_count > TD_ROBOT_MAX_CAMERAS)
        return td_fail(info, TD_ERR_INVALID,
                       "must have at most %d cameras, got %u",
                       TD_ROBOT_MAX_CAMERAS, config->camera_count);
    if (!config->dataset || !config->dataset[0])
        return td_fail(info, TD_ERR_INVALID, "a replay needs a dataset");
    if (!isfinite(config->speed) || config->speed <= 0)
        return td_fail(info, TD_ERR_INVALID, "the speed must be above 0");
    return TD_OK;
}

static td_err open_replay(const td_robot_config *config,
                          td_robot_hardware **ret_robot, td_errinfo *info)
{
    TD_TRY(check_config(config, info));
    TD_AUTO(replay) *self = calloc(1, sizeof *self);
    if (!self) return TD_ERR_NOMEM;
    self->robot.ops = &td_robot_replay;
    self->start_ns = NOT_STARTED;
    self->joint_count = config->joint_count;
    TD_TRY(td_dataset_reader_open(config->dataset, &self->rows, info));
    TD_TRY(find_rows(self, config, info));
    TD_TRY(check_joints(self, config, info));
    for (uint32_t i = 0; i < config->camera_count; i++)
        TD_TRY(open_camera(self, config->dataset, &config->cameras[i], info));
    *ret_robot = &TD_TAKE(self)->robot;
    return TD_OK;
}

static uint64_t row_at(replay *self, int64_t now_ns)
{
    int64_t start_ns = NOT_STARTED;
    if (atomic_compare_exchange_strong(&self->start_ns, &start_ns, now_ns))
        start_ns = now_ns;
    double rows = (double)(now_ns - start_ns) * self->rows_per_ns + GRACE;
    if (rows < 1) return self->first;
    if (rows >= (double)self->count) return self->first + self->count - 1;
    return self->first + (uint64_t)rows;
}

static td_err read_replay(td_robot_hardware *robot, int64_t now_ns,
                          float *ret_state)
{
    replay *self = (replay *)robot;
    td_dataset_reading reading;
    td_err err = td_dataset_reader_seek(self->rows, row_at(self, now_ns),
                                        &reading, NULL);
    if (err == TD_OK)
        err = td_dataset_reader_floats(self->rows, STATE, self->joint_count,
                                       ret_state);
    return err == TD_OK ? TD_OK : TD_ERR_IO;
}

static td_err write_replay(td_robot_hardware *robot, int64_t now_ns,
                           const float *command)
{
    (void)now_ns;
    const replay *self = (const replay *)robot;
    for (uint32_t i = 0; i < self->joint_count; i++)
        if (!isfinite(command[i])) return TD_ERR_INVALID;
    return TD_OK;
}

static td_err frame_replay(td_robot_hardware *robot, uint32_t index,
                           int64_t now_ns, td_robot_picture *picture)
{
    replay *self = (replay *)robot;
    if (index >= self->camera_count) return TD_ERR_INVALID;
    camera *from = &self->cameras[index];
    td_dataset_reading reading;
    td_err err = td_dataset_reader_seek(from->reader, row_at(self, now_ns),
                                        &reading, NULL);
    if (err == TD_OK)
        err = td_dataset_reader_stored(from->reader, from->key, picture->bytes,
                                       picture->room, &picture->jpeg, NULL);
    return err == TD_OK ? TD_OK : TD_ERR_IO;
}

const td_robot_ops td_robot_replay = {
    .name = "replay",
    .open = open_replay,
    .close = close_replay,
    .read = read_replay,
    .write = write_replay,
    .frame = frame_replay,
};

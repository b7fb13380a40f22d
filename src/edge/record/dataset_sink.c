// SPDX-License-Identifier: Apache-2.0
#include "edge/record/dataset_sink.h"

#include "base/log.h"

static td_err begin(void *user, td_errinfo *info)
{
    return td_dataset_writer_begin(user, info);
}

static td_err add(void *user, const td_dataset_frame *frame, td_errinfo *info)
{
    return td_dataset_writer_add(user, frame, info);
}

static td_err end(void *user, uint32_t *ret_episode, td_errinfo *info)
{
    return td_dataset_writer_end(user, ret_episode, info);
}

static td_err discard(void *user, td_errinfo *info)
{
    return td_dataset_writer_discard(user, info);
}

static td_dataset_writer_state look(void *user)
{
    return td_dataset_writer_report(user);
}

static void close_writer(void *user)
{
    td_dataset_writer_close(user);
}

// Names in the file's order; they are borrowed while the writer opens.
typedef struct schema_names {
    const char *state[TD_CONFIG_MAX_CHANNELS];
    const char *action[TD_CONFIG_MAX_CHANNELS];
    td_dataset_camera cameras[TD_CONFIG_MAX_CAMERAS];
} schema_names;

static td_dataset_schema schema_of(const td_config_robot *config,
                                   schema_names *names)
{
    const td_config_robot_device *robot = &config->robot;
    bool has_own_state = robot->state_count > 0;
    for (size_t i = 0; i < robot->joint_count; i++)
        names->state[i] = names->action[i] = robot->joints[i].name;
    for (size_t i = 0; i < robot->state_count; i++)
        names->state[i] = robot->states[i].name;
    for (size_t i = 0; i < robot->camera_count; i++)
        names->cameras[i] = (td_dataset_camera){
            .name = robot->cameras[i].name,
            .height = (uint32_t)robot->cameras[i].height,
            .width = (uint32_t)robot->cameras[i].width,
        };
    return (td_dataset_schema){
        .fps = (uint32_t)config->fps,
        .robot_type = td_config_robot_kind_name(robot->kind),
        .codec = (td_media_codec)config->record.codec,
        .state = names->state,
        .state_count =
            (uint32_t)(has_own_state ? robot->state_count : robot->joint_count),
        .action = names->action,
        .action_count = (uint32_t)robot->joint_count,
        .cameras = names->cameras,
        .camera_count = (uint32_t)robot->camera_count,
    };
}

static void log_open(const td_config_robot *config, td_dataset_writer *writer)
{
    td_dataset_writer_state state = td_dataset_writer_report(writer);
    td_log_text(TD_LOG_INFO, "recording: into %s, %u episodes there",
                config->record.dir, state.episodes);
}

td_err td_edge_dataset_sink_open(const td_config_robot *config,
                                 td_edge_episode_sink *ret_sink,
                                 td_errinfo *info)
{
    schema_names names;
    const td_dataset_writer_config writing = {
        .folder = config->record.dir,
        .schema = schema_of(config, &names),
    };
    td_dataset_writer *writer = NULL;
    TD_TRY(td_dataset_writer_open(&writing, &writer, info));
    log_open(config, writer);
    *ret_sink = (td_edge_episode_sink){
        .user = writer,
        .begin = begin,
        .add = add,
        .end = end,
        .discard = discard,
        .look = look,
        .close = close_writer,
    };
    return TD_OK;
}

// SPDX-License-Identifier: Apache-2.0
#include "edge/settings.h"

#include "base/clock.h"

#define RESEND_MIN_NS (100 * TD_NS_PER_MS)
#define REFUSED_FOR_NS (5 * TD_NS_PER_S)

static td_wire_channel channel_of(const td_config_joint *joint)
{
    return (td_wire_channel){
        .name = td_wire_text_of(joint->name),
        .kind = (td_wire_channel_kind)joint->kind,
    };
}

static void fill_profile(const td_config_robot *config,
                         td_edge_profile *profile)
{
    const td_config_robot_device *robot = &config->robot;
    profile->model_id = config->model_id;
    profile->model_version = config->model_version;
    profile->step_period_us = 1000000 / config->fps;
    profile->actions_per_chunk = (uint32_t)config->actions_per_chunk;
    for (size_t i = 0; i < robot->joint_count; i++) {
        profile->actions[i] = channel_of(&robot->joints[i]);
        profile->states[i] = channel_of(&robot->joints[i]);
    }
    profile->action_count = (uint32_t)robot->joint_count;
    profile->state_count = (uint32_t)robot->joint_count;
    for (size_t i = 0; i < robot->camera_count; i++)
        profile->cameras[i] = (td_wire_camera){
            .name = td_wire_text_of(robot->cameras[i].name),
            .height = (uint32_t)robot->cameras[i].height,
            .width = (uint32_t)robot->cameras[i].width,
        };
    profile->camera_count = (uint32_t)robot->camera_count;
}

// buffer_time_s in rows, when it is given; else a share of the chunk.
static uint32_t ask_below(const td_config_robot *config)
{
    double rows =
        config->buffer_time_s > 0
            ? config->buffer_time_s * (double)config->fps
            : config->chunk_size_threshold * (double)config->actions_per_chunk;
    return (uint32_t)rows;
}

static void fill_core(const td_config_robot *config, uint64_t boot,
                      td_edge_settings *core)
{
    core->channels = (uint32_t)config->robot.joint_count;
    for (size_t i = 0; i < config->robot.joint_count; i++)
        core->kinds[i] = (td_wire_channel_kind)config->robot.joints[i].kind;
    core->period_ns = TD_NS_PER_S / config->fps;
    core->actions_per_chunk = (uint32_t)config->actions_per_chunk;
    core->aggregate = (td_edge_aggregate)config->aggregate_fn_name;
    core->trim = (td_edge_trim)config->trim;
    core->ask_below_rows = ask_below(config);
    core->max_action_age_ns =
        (int64_t)(config->max_action_age_s * (double)TD_NS_PER_S);
    core->resend_min_ns = RESEND_MIN_NS;
    core->resend_max_ns = core->max_action_age_ns; // later it would be refused
    core->warn_after_empty_ticks =
        (uint32_t)config->max_empty_cycles_before_warning;
    core->boot = boot;
    core->episode = 1;
}

void td_edge_settings_from(const td_config_robot *config, uint64_t boot,
                           td_edge_config *ret_config)
{
    *ret_config = (td_edge_config){
        .route =
            {
                .cluster = config->cluster_uuid,
                .experiment = config->experiment_tag,
                .model = config->model_id,
                .version = config->model_version,
                .application = config->application_tag,
            },
        .client = config->client_uuid,
        .task = config->task,
        .raw_images = config->image_codec == TD_CONFIG_RAW,
        .jpeg_quality = (int)config->jpeg_quality,
        .realtime_priority = (int)config->realtime.priority,
        .cpu = (int)config->realtime.cpu,
        .metrics_period_ns =
            config->metrics_hz > 0
                ? (int64_t)((double)TD_NS_PER_S / config->metrics_hz)
                : 0,
        .refused_for_ns = REFUSED_FOR_NS,
    };
    fill_profile(config, &ret_config->profile);
    fill_core(config, boot, &ret_config->core);
}

void td_edge_settings_robot(const td_config_robot *config,
                            td_robot_config *ret_config)
{
    const td_config_robot_device *robot = &config->robot;
    *ret_config = (td_robot_config){
        .joint_count = (uint32_t)robot->joint_count,
        .camera_count = (uint32_t)robot->camera_count,
        .time_constant_s = robot->time_constant_s,
    };
    for (size_t i = 0; i < robot->joint_count; i++)
        ret_config->joints[i] = (td_robot_joint){
            .name = robot->joints[i].name,
            .kind = (td_robot_kind)robot->joints[i].kind,
            .initial = robot->joints[i].initial,
            .speed_limit = robot->joints[i].speed_limit,
        };
    for (size_t i = 0; i < robot->camera_count; i++)
        ret_config->cameras[i] = (td_robot_camera){
            .name = robot->cameras[i].name,
            .height = (uint32_t)robot->cameras[i].height,
            .width = (uint32_t)robot->cameras[i].width,
        };
}

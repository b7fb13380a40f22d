// SPDX-License-Identifier: Apache-2.0
#include "edge/settings.h"

#include "base/clock.h"

#include <math.h>

#define RESEND_MIN_NS (100 * TD_NS_PER_MS)
#define REFUSED_FOR_NS (5 * TD_NS_PER_S)

static td_wire_channel channel_of(const td_config_joint *joint)
{
    return (td_wire_channel){
        .name = td_wire_text_of(joint->name),
        .kind = (td_wire_channel_kind)joint->kind,
    };
}

static void fill_states(const td_config_robot_device *robot,
                        td_edge_profile *profile)
{
    if (robot->state_count > 0)
        profile->state_count = (uint32_t)robot->state_count;
    for (size_t i = 0; i < robot->state_count; i++)
        profile->states[i] = (td_wire_channel){
            .name = td_wire_text_of(robot->states[i].name),
            .kind = (td_wire_channel_kind)robot->states[i].kind,
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
    fill_states(robot, profile);
    for (size_t i = 0; i < robot->camera_count; i++)
        profile->cameras[i] = (td_wire_camera){
            .name = td_wire_text_of(robot->cameras[i].name),
            .height = (uint32_t)robot->cameras[i].height,
            .width = (uint32_t)robot->cameras[i].width,
        };
    profile->camera_count = (uint32_t)robot->camera_count;
    profile->downscale = config->downscale;
}

static void fill_images(const td_config_robot *config, td_edge_config *edge)
{
    edge->codec = (td_edge_codec)config->image_codec;
    edge->jpeg_quality = (int)config->jpeg_quality;
    edge->jpeg_chroma = (td_media_chroma)config->jpeg_chroma;
    for (size_t i = 0; i < config->robot.camera_count; i++)
        edge->camera_period_ns[i] = TD_NS_PER_S / config->robot.cameras[i].fps;
    edge->similar = (td_edge_similar_settings){
        .on = config->similarity.enabled,
        .state_tolerance = config->similarity.state,
        .image_tolerance = config->similarity.image,
    };
}

static double per_tick(double per_second, int64_t hz)
{
    return per_second > 0 ? per_second / (double)hz : INFINITY;
}

// As float32, and still within the limits that it is within.
static float within(double value, double min, double max)
{
    float near = (float)value;
    if (near < min) near = nextafterf(near, INFINITY);
    if (near > max) near = nextafterf(near, -INFINITY);
    return near;
}

// Limits by the second in the file, by the control tick in the gate.
static void fill_limits(const td_config_robot *config,
                        td_edge_core_settings *core)
{
    int64_t hz = config->control_hz;
    for (size_t i = 0; i < config->robot.joint_count; i++) {
        const td_config_joint *joint = &config->robot.joints[i];
        core->kinds[i] = (td_wire_channel_kind)joint->kind;
        core->limits[i] = (td_edge_gate_channel){
            .min = joint->min > -TD_CONFIG_POSITION ? joint->min : -INFINITY,
            .max = joint->max < TD_CONFIG_POSITION ? joint->max : INFINITY,
            .max_step = per_tick(joint->max_speed, hz),
            .max_accel_step = per_tick(joint->max_acceleration, hz * hz),
        };
        core->failsafe[i] = (td_edge_failsafe_channel){
            .mode =
                (td_edge_failsafe_mode)td_config_robot_failsafe(config, joint),
            .safe = within(joint->safe, joint->min, joint->max),
            .safe_step = per_tick(config->safe_pose_speed, hz),
        };
    }
}

static int64_t nanoseconds(double seconds)
{
    return (int64_t)(seconds * (double)TD_NS_PER_S);
}

static void fill_ask(const td_config_robot *config, td_edge_core_settings *core)
{
    core->ask = (td_edge_ask_settings){
        .mode = (td_edge_ask_mode)config->observe,
        .threshold = config->chunk_size_threshold,
        .buffer_time_ns = nanoseconds(config->buffer_time_s),
        .starve_target = config->starve_target,
        .max_unanswered = (uint32_t)config->max_unanswered,
        .again = config->ask_again,
        .resend_min_ns = RESEND_MIN_NS,
        .resend_max_ns = core->max_action_age_ns, // later it would be refused
    };
    if (core->ask.resend_max_ns < RESEND_MIN_NS)
        core->ask.resend_min_ns = core->ask.resend_max_ns;
    core->rate_hz = config->rate.hz;
    core->rate_phase = config->rate.phase;
    core->priority = (uint32_t)config->priority;
    core->urgency = (float)config->urgency;
}

static void fill_core(const td_config_robot *config, uint64_t boot,
                      td_edge_core_settings *core)
{
    core->channels = (uint32_t)config->robot.joint_count;
    core->policy_states = (uint32_t)config->robot.state_count;
    core->period_ns = TD_NS_PER_S / config->fps;
    core->substeps = (uint32_t)(config->control_hz / config->fps);
    core->actions_per_chunk = (uint32_t)config->actions_per_chunk;
    core->aggregate = (td_edge_aggregate)config->aggregate_fn_name;
    core->trim = (td_edge_trim)config->trim;
    core->max_action_age_ns = nanoseconds(config->max_action_age_s);
    core->warn_after_empty_ticks =
        (uint32_t)config->max_empty_cycles_before_warning;
    core->max_limit_hits = (uint32_t)config->max_limit_hits;
    core->boot = boot;
    core->episode = 1;
    fill_limits(config, core);
    fill_ask(config, core);
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
        .realtime_priority = (int)config->realtime.priority,
        .cpu = (int)config->realtime.cpu,
        .metrics_period_ns =
            config->metrics_hz > 0
                ? (int64_t)((double)TD_NS_PER_S / config->metrics_hz)
                : 0,
        .refused_for_ns = REFUSED_FOR_NS,
        .watchdog_ns = nanoseconds(config->watchdog_s),
        .driver_limit_ns = nanoseconds(config->driver_limit_s),
        .record_begin = config->record.begin == TD_CONFIG_RECORD_AT_START,
    };
    fill_profile(config, &ret_config->profile);
    fill_images(config, ret_config);
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
        .dataset = robot->dataset[0] ? robot->dataset : NULL,
        .episode = robot->episode,
        .speed = robot->speed,
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

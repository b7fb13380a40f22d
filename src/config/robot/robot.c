// SPDX-License-Identifier: Apache-2.0
// Reads a robot's file: who it is, what it is connected to, when it asks, how
// chunks join, its limits and its fail-safe.
//
// One row a field; help, defaults and the reference in the documentation are
// made from the same rows. What several fields decide together is checked at
// the end: each way to ask has its own field and only one may be given;
// fail-safe poses are checked in robot/joints.c, recording in robot/record.c.
//
// The limits that protect a robot come from this file alone; nothing that a
// server says changes them. A field that may change while the robot runs is
// marked live, and td_config_diff() says whether two files differ in anything
// else.
//
// The boot file's default follows the XDG base directories, /tmp for a user
// without a home.
#include "config/robot/robot.h"

#include "config/robot/joints.h"
#include "config/robot/record.h"

#include <stdlib.h>

#define LEAST_METRICS_HZ 0.001

static const char *const modes[] = {"client", "peer", NULL};
static const char *const devices[] = {"synthetic", "callback", "replay", NULL};
static const char *const aggregates[] = {"weighted_average", "latest_only",
                                         "average",          "conservative",
                                         "temporal",         NULL};
static const char *const observes[] = {"threshold", "time", "auto", NULL};
static const char *const failsafes[] = {"hold", "zero_velocity", "safe_pose",
                                        "repeat", NULL};
static const char *const joint_failsafes[] = {
    "hold", "zero_velocity", "safe_pose", "repeat", "as_robot", NULL};
static const char *const codecs[] = {"jpeg", "raw", "auto", NULL};
static const char *const chromas[] = {"4:2:0", "4:2:2", "4:4:4", NULL};
static const char *const trims[] = {"steps", "time", NULL};

static td_err check_robot(const td_config_location *location,
                          const td_config_node *node, void *value);

static const td_config_field joint_rows[] = {
    TD_ROW_ENUM(td_config_joint, kind, "linear", td_config_channel_kinds,
                "how values between two steps are made"),
    TD_ROW_NUMBER(td_config_joint, initial, "0", -TD_CONFIG_POSITION,
                  TD_CONFIG_POSITION, "where it stands at the start"),
    TD_ROW_NUMBER(td_config_joint, speed_limit, "10", 0.001, 10000,
                  "how fast the synthetic joint can move, units a second"),
    TD_ROW_NUMBER(td_config_joint, min, "-10000", -TD_CONFIG_POSITION,
                  TD_CONFIG_POSITION,
                  "no command goes below; -10000: no limit"),
    TD_ROW_NUMBER(td_config_joint, max, "10000", -TD_CONFIG_POSITION,
                  TD_CONFIG_POSITION, "no command goes above; 10000: no limit"),
    TD_ROW_NUMBER(td_config_joint, max_speed, "0", 0, 100000,
                  "of the commands, units a second; 0: no limit"),
    TD_ROW_NUMBER(td_config_joint, max_acceleration, "0", 0, 10000000,
                  "of the commands, units a second squared; 0: no limit"),
    TD_ROW_ENUM(td_config_joint, failsafe, "as_robot", joint_failsafes,
                "what it does when there is no action"),
    TD_ROW_NUMBER(td_config_joint, safe, "0", -TD_CONFIG_POSITION,
                  TD_CONFIG_POSITION, "its position in the safe pose"),
};
static const td_config_table joint_table = {joint_rows, TD_COUNT_OF(joint_rows),
                                            sizeof(td_config_joint),
                                            td_config_joints_check_one};

static const td_config_field camera_rows[] = {
    TD_ROW_INTEGER(td_config_robot_camera, height, "480", 32, 8192, "pixels"),
    TD_ROW_INTEGER(td_config_robot_camera, width, "640", 64, 8192, "pixels"),
    TD_ROW_INTEGER(td_config_robot_camera, fps, "30", 1, 1000,
                   "frames a second"),
};
static const td_config_table camera_table = {
    camera_rows, TD_COUNT_OF(camera_rows), sizeof(td_config_robot_camera),
    NULL};

static const td_config_field device_rows[] = {
    TD_ROW_ENUM(td_config_robot_device, kind, NULL, devices,
                "what stands here; callback: hardware of a program that uses "
                "the C API; replay: a recorded session"),
    TD_ROW_MAP(td_config_robot_device, joints, joint_count, td_config_joint,
               "[joint_0, joint_1, joint_2, joint_3, joint_4, joint_5]",
               joint_table, 1, TD_CONFIG_MAX_CHANNELS, "joints in order"),
    TD_ROW_MAP(
        td_config_robot_device, states, state_count, td_config_channel, "[]",
        td_config_channel_table, 0, TD_CONFIG_MAX_CHANNELS,
        "what the policy sees, in order, given by a program that uses the C "
        "API; none: where the joints are"),
    TD_ROW_MAP(td_config_robot_device, cameras, camera_count,
               td_config_robot_camera, "[]", camera_table, 0,
               TD_CONFIG_MAX_CAMERAS, "cameras and the size of their pictures"),
    TD_ROW_NUMBER(td_config_robot_device, time_constant_s, "0.05", 0.001, 100,
                  "how fast a joint follows its command"),
    TD_ROW_TEXT(td_config_robot_device, dataset, "\"\"", 0, 4096,
                "of a replay: the folder of a LeRobotDataset v3.0"),
    TD_ROW_INTEGER(td_config_robot_device, episode, "-1", -1, INT32_MAX,
                   "of a replay; -1: all, one after the other"),
    TD_ROW_NUMBER(td_config_robot_device, speed, "1", 0.001, 1000,
                  "of a replay; 1: as it was"),
};
static const td_config_table device_table = {
    device_rows, TD_COUNT_OF(device_rows), sizeof(td_config_robot_device),
    td_config_joints_check_device};

static const td_config_field realtime_rows[] = {
    TD_ROW_INTEGER(td_config_realtime, priority, "80", 0, 99,
                   "SCHED_FIFO priority of the control tick; 0: ordinary"),
    TD_ROW_INTEGER(td_config_realtime, cpu, "-1", -1, 1023,
                   "the CPU that it has to itself; -1: any, shared"),
    TD_ROW_INTEGER(td_config_realtime, wake_us, "50", -1, 1000000,
                   "the longest that a CPU may take to wake from sleep, in "
                   "microseconds; 0: none sleeps, which costs power and which "
                   "a virtual machine needs; -1: as the system has it"),
    TD_ROW_BOOL(td_config_realtime, lock_memory, "true",
                "keep the process in memory"),
};
static const td_config_table realtime_table = {
    realtime_rows, TD_COUNT_OF(realtime_rows), sizeof(td_config_realtime),
    NULL};

static const td_config_field rate_rows[] = {
    TD_ROW_NUMBER(td_config_rate, hz, "0", 0, 10000,
                  "observations a second, on average; 0: no limit"),
    TD_ROW_NUMBER(td_config_rate, phase, "0", 0, 1,
                  "when in its period this robot asks, 0 to 1"),
};
static const td_config_table rate_table = {rate_rows, TD_COUNT_OF(rate_rows),
                                           sizeof(td_config_rate), NULL};

static const td_config_field similarity_rows[] = {
    TD_ROW_BOOL(td_config_similarity, enabled, "false",
                "do not send what is much like the last one sent"),
    TD_ROW_NUMBER(td_config_similarity, state, "0.05", 0, 10000,
                  "the joints' distance below which it is"),
    TD_ROW_NUMBER(td_config_similarity, image, "2", 0, 255,
                  "and the pixels' mean difference, of 255"),
};
static const td_config_table similarity_table = {
    similarity_rows, TD_COUNT_OF(similarity_rows), sizeof(td_config_similarity),
    NULL};

static const td_config_field robot_rows[] = {
    TD_ROW_CHUNK(td_config_robot, cluster_uuid, NULL, "the cluster"),
    TD_ROW_CHUNK(td_config_robot, experiment_tag, NULL, "the experiment"),
    TD_ROW_CHUNK(td_config_robot, model_id, NULL, "the policy"),
    TD_ROW_CHUNK(td_config_robot, model_version, NULL, "its version"),
    TD_ROW_CHUNK(td_config_robot, application_tag, NULL, "what it does"),
    TD_ROW_CHUNK(td_config_robot, client_uuid, NULL, "this robot's id"),
    TD_ROW_ENDPOINT(td_config_robot, endpoint, NULL,
                    "the server or router to connect to"),
    TD_ROW_ENUM(td_config_robot, mode, "client", modes,
                "how to take part in the network"),
    TD_ROW_BOOL(td_config_robot, shared_memory, "true",
                "use it with a server on this machine"),
    TD_ROW_STRUCT(td_config_robot, robot, td_config_robot_device, NULL,
                  device_table, "the robot itself"),
    TD_ROW_INTEGER(td_config_robot, fps, "30", 1, 1000,
                   "policy steps a second"),
    TD_ROW_INTEGER(td_config_robot, control_hz, "0", 0, 1000,
                   "commands a second, a multiple of fps; 0: as fps"),
    TD_ROW_INTEGER(td_config_robot, actions_per_chunk, "50", 1,
                   TD_CONFIG_MAX_ROWS, "actions of a chunk that are played"),
    TD_ROW_ENUM(td_config_robot, aggregate_fn_name, "weighted_average",
                aggregates, "how a new chunk joins what is left of the old"),
    TD_ROW_NUMBER(td_config_robot, chunk_size_threshold, "0.5", 0, 1,
                  "ask for the next chunk below this part of a full buffer"),
    TD_ROW_NUMBER(td_config_robot, buffer_time_s, "0", 0, 3600,
                  "ask below this much time instead; 0: not used"),
    TD_ROW_ENUM(td_config_robot, observe, "threshold", observes,
                "when to ask: below chunk_size_threshold, below buffer_time_s, "
                "or as late as the measured round trips allow"),
    TD_ROW_NUMBER(td_config_robot, starve_target, "0.001", 0.000001, 0.5,
                  "with auto: how often a chunk may come too late"),
    TD_ROW_INTEGER(td_config_robot, max_unanswered, "1", 1, 64,
                   "observations on their way at a time"),
    TD_ROW_BOOL(td_config_robot, ask_again, "false",
                "ask once more for an answer that stays away, without "
                "pictures, while there are actions left, and only then "
                "observe anew: where sending pictures is dear"),
    TD_ROW_INTEGER(td_config_robot, priority, "1", 0, 10,
                   "0 is the highest; a server counts no more of it and of the "
                   "urgency than it allows this robot"),
    TD_ROW_NUMBER(td_config_robot, urgency, "0", 0, 1,
                  "how urgent its observations are; 1 is the most"),
    TD_ROW_STRUCT(td_config_robot, rate, td_config_rate, "{}", rate_table,
                  "how often to ask at most"),
    TD_ROW_STRUCT(td_config_robot, similarity, td_config_similarity, "{}",
                  similarity_table, "which observations to leave out"),
    TD_ROW_ENUM(td_config_robot, trim, "steps", trims,
                "what is past in a chunk: steps executed, or time gone by"),
    TD_ROW_NUMBER(td_config_robot, max_action_age_s, "3", 0.001, 3600,
                  "a chunk whose observation is older is refused"),
    TD_ROW_ENUM(td_config_robot, image_codec, "jpeg", codecs,
                "how pictures travel; auto: raw through shared memory where "
                "that costs less, else jpeg"),
    TD_ROW_INTEGER(td_config_robot, jpeg_quality, "90", 1, 100,
                   "of the pictures sent; a camera's own JPEG goes as it is"),
    TD_ROW_ENUM(td_config_robot, jpeg_chroma, "4:2:0", chromas,
                "how finely their colour is kept"),
    TD_ROW_BOOL(td_config_robot, downscale, "true",
                "make pictures smaller where the server asks for it"),
    TD_ROW_INTEGER(td_config_robot, max_empty_cycles_before_warning, "10", 1,
                   1000000, "control steps without an action"),
    TD_ROW_ENUM(td_config_robot, failsafe, "hold", failsafes,
                "what the joints do when there is no action"),
    TD_ROW_NUMBER(td_config_robot, safe_pose_speed, "0.5", 0.001, 10000,
                  "of the way to the safe pose, units a second"),
    TD_ROW_INTEGER(td_config_robot, max_limit_hits, "30", 1, 1000000,
                   "policy steps in a row in which limits had to act before "
                   "the fail-safe does"),
    TD_ROW_NUMBER(td_config_robot, watchdog_s, "4", 0.01, 3600,
                  "without a chunk before the server is asked again"),
    TD_ROW_NUMBER(td_config_robot, driver_limit_s, "0.5", 0.001, 3600,
                  "a robot that blocks longer makes the fail-safe act"),
    TD_ROW_TEXT(td_config_robot, task, "\"\"", 0, 8192,
                "what the robot is to do, in words for the policy"),
    TD_ROW_STRUCT(td_config_robot, realtime, td_config_realtime, "{}",
                  realtime_table, "scheduling of the control tick"),
    TD_ROW_TEXT(td_config_robot, boot_file, "\"\"", 0, 4096,
                "where the boot number is kept; empty: "
                "$XDG_STATE_HOME/tendon/CLIENT_UUID.boot"),
    TD_ROW_NUMBER(td_config_robot, metrics_hz, "2", 0, 100,
                  "telemetry messages a second; 0: none"),
    TD_ROW_INTEGER(td_config_robot, prometheus_port, "0", 0, 65535,
                   "where Prometheus finds them on this machine; 0: nowhere"),
    TD_ROW_TEXT(td_config_robot, dataset_repo_id, "\"\"", 0, 193,
                "what is done is recorded as a LeRobotDataset of this name, "
                "OWNER/NAME; empty: only with record.dir"),
    TD_ROW_STRUCT(td_config_robot, record, td_config_record, "{}",
                  td_config_record_table, "how, and where to"),
};
const td_config_table td_config_robot_table = {
    robot_rows, TD_COUNT_OF(robot_rows), sizeof(td_config_robot), check_robot};

// As the XDG base directories have it; /tmp for a user without a home.
static const char *default_boot_file(td_arena *arena, const char *client)
{
    const char *state = getenv("XDG_STATE_HOME");
    if (state && state[0] == '/')
        return td_arena_print(arena, "%s/tendon/%s.boot", state, client);
    const char *home = getenv("HOME");
    if (home && home[0] == '/')
        return td_arena_print(arena, "%s/.local/state/tendon/%s.boot", home,
                              client);
    return td_arena_print(arena, "/tmp/tendon/%s.boot", client);
}

// Each way to ask has its own field, and only one may be given.
static td_err check_observe(const td_config_location *location,
                            const td_config_node *node, td_config_robot *robot)
{
    const td_config_node *time = td_config_node_get(node, "buffer_time_s");
    const td_config_node *share =
        td_config_node_get(node, "chunk_size_threshold");
    const td_config_node *observe = td_config_node_get(node, "observe");
    if (robot->buffer_time_s > 0 && share)
        return td_config_location_fail(
            location, time, "buffer_time_s",
            "stands instead of chunk_size_threshold, give "
            "only one of them");
    if (robot->buffer_time_s > 0 && !observe)
        robot->observe = TD_CONFIG_OBSERVE_TIME;
    bool timed = robot->observe == TD_CONFIG_OBSERVE_TIME;
    if (timed != (robot->buffer_time_s > 0))
        return td_config_location_fail(location, timed ? observe : time,
                                       "observe",
                                       "time needs buffer_time_s above 0, and "
                                       "buffer_time_s needs time");
    if (robot->observe == TD_CONFIG_OBSERVE_AUTO && share)
        return td_config_location_fail(
            location, share, "chunk_size_threshold",
            "is not used with observe: auto, leave it out");
    return TD_OK;
}

static td_err check_robot(const td_config_location *location,
                          const td_config_node *node, void *value)
{
    td_config_robot *robot = value;
    TD_TRY(check_observe(location, node, robot));
    TD_TRY(td_config_joints_check_failsafe(location, node, robot));
    TD_TRY(td_config_record_check(location, node, robot));
    if (robot->control_hz == 0) robot->control_hz = robot->fps;
    if (robot->control_hz % robot->fps != 0)
        return td_config_location_fail(
            location, td_config_node_get(node, "control_hz"), "control_hz",
            "must be a multiple of fps, %lld, got %lld", (long long)robot->fps,
            (long long)robot->control_hz);
    if (robot->metrics_hz > 0 && robot->metrics_hz < LEAST_METRICS_HZ)
        return td_config_location_fail(
            location, td_config_node_get(node, "metrics_hz"), "metrics_hz",
            "must be 0 or at least %g, got %g", LEAST_METRICS_HZ,
            robot->metrics_hz);
    if (robot->boot_file[0]) return TD_OK;
    robot->boot_file = default_boot_file(location->arena, robot->client_uuid);
    return robot->boot_file ? TD_OK : td_config_location_no_memory(location);
}

td_err td_config_robot_load(const char *path, td_config_robot **ret_robot,
                            td_errinfo *info)
{
    void *robot = NULL;
    TD_TRY(td_config_table_load(&td_config_robot_table, path, &robot, info));
    *ret_robot = robot;
    return TD_OK;
}

td_err td_config_robot_parse(const char *path, const void *data, size_t size,
                             td_config_robot **ret_robot, td_errinfo *info)
{
    void *robot = NULL;
    TD_TRY(td_config_table_parse(&td_config_robot_table, path, data, size,
                                 &robot, info));
    *ret_robot = robot;
    return TD_OK;
}

const char *td_config_robot_kind_name(td_config_robot_kind kind)
{
    return devices[kind];
}

void td_config_robot_free(td_config_robot *robot)
{
    td_config_table_free(robot);
}

td_config_failsafe td_config_robot_failsafe(const td_config_robot *robot,
                                            const td_config_joint *joint)
{
    return joint->failsafe == TD_CONFIG_FAILSAFE_AS_ROBOT ? robot->failsafe
                                                          : joint->failsafe;
}

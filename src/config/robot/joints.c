// SPDX-License-Identifier: Apache-2.0
#include "config/robot/joints.h"

#include <math.h>

#define LEAST_LIMIT 0.000001   // slower than that is a mistake
#define LENGTH_TOLERANCE 0.001 // of a quaternion
#define PATH_BYTES 128

static const td_config_node *member(const td_config_node *node,
                                    const char *name)
{
    const td_config_node *found = node ? td_config_node_get(node, name) : NULL;
    return found ? found : node;
}

// Commands are float32: two limits may leave none between them.
static bool has_room(double min, double max)
{
    float low = (float)min;
    return (low < min ? nextafterf(low, INFINITY) : low) <= max;
}

static td_err check_range(const td_config_location *location,
                          const td_config_node *node,
                          const td_config_joint *joint)
{
    const td_config_node *at = td_config_node_get(node, "min");
    if (joint->min > joint->max)
        return td_config_location_fail(location, at, "min",
                                       "must be at most max, %g, got %g",
                                       joint->max, joint->min);
    if (!has_room(joint->min, joint->max))
        return td_config_location_fail(
            location, at, "min",
            "leaves no float32 up to max, %.17g, got %.17g", joint->max,
            joint->min);
    if (joint->kind == TD_CONFIG_QUATERNION &&
        (joint->min > -TD_CONFIG_POSITION || joint->max < TD_CONFIG_POSITION))
        return td_config_location_fail(
            location, at, "min",
            "and max are not for a quaternion, leave them "
            "out");
    return TD_OK;
}

static td_err check_limit(const td_config_location *location,
                          const td_config_node *node, const char *field,
                          double value)
{
    if (value == 0 || value >= LEAST_LIMIT) return TD_OK;
    return td_config_location_fail(
        location, td_config_node_get(node, field), field,
        "must be 0 for no limit or at least %g, got %g", LEAST_LIMIT, value);
}

td_err td_config_joints_check_one(const td_config_location *location,
                                  const td_config_node *node, void *value)
{
    const td_config_joint *joint = value;
    TD_TRY(check_range(location, node, joint));
    TD_TRY(check_limit(location, node, "max_speed", joint->max_speed));
    TD_TRY(check_limit(location, node, "max_acceleration",
                       joint->max_acceleration));
    if (joint->safe < joint->min || joint->safe > joint->max)
        return td_config_location_fail(
            location, td_config_node_get(node, "safe"), "safe",
            "must be within min and max, %g to %g, got %g", joint->min,
            joint->max, joint->safe);
    return TD_OK;
}

static double length_of(const td_config_joint *first,
                        double (*part)(const td_config_joint *joint))
{
    double sum = 0;
    for (size_t i = 0; i < 4; i++)
        sum += part(&first[i]) * part(&first[i]);
    return sqrt(sum);
}

static double initial_of(const td_config_joint *joint)
{
    return joint->initial;
}

static double safe_of(const td_config_joint *joint)
{
    return joint->safe;
}

// `path` leads to the joints.
static td_err check_length(const td_config_location *location,
                           const td_config_node *joints, const char *path,
                           const td_config_joint *first, const char *field,
                           double length)
{
    char name[PATH_BYTES];
    if (fabs(length - 1) <= LENGTH_TOLERANCE) return TD_OK;
    (void)snprintf(name, sizeof name, "%s.%s.%s", path, first->name, field);
    return td_config_location_fail(
        location, member(member(joints, first->name), field), name,
        "the four of a quaternion must be of length 1, are "
        "of %g",
        length);
}

static size_t width_of(const td_config_joint *joint)
{
    return joint->kind == TD_CONFIG_QUATERNION ? 4 : 1;
}

static td_err check_whole(const td_config_location *location,
                          const td_config_node *node, const char *field,
                          const char *wrong)
{
    if (!wrong) return TD_OK;
    return td_config_location_fail(
        location, node, field,
        "a quaternion is four %s in a row, %s begins fewer", field, wrong);
}

static td_err check_replay(const td_config_location *location,
                           const td_config_node *node,
                           const td_config_robot_device *device)
{
    bool replays = device->kind == TD_CONFIG_ROBOT_REPLAY;
    if (replays == (device->dataset[0] != '\0')) return TD_OK;
    if (replays)
        return td_config_location_fail(location, node, "robot.dataset",
                                       "must name the folder to replay");
    return td_config_location_fail(
        location, td_config_node_get(node, "dataset"), "robot.dataset",
        "is for kind: replay, leave it out");
}

td_err td_config_joints_check_device(const td_config_location *location,
                                     const td_config_node *node, void *value)
{
    const td_config_robot_device *device = value;
    const td_config_node *joints = td_config_node_get(node, "joints");
    TD_TRY(check_whole(location, joints, "joints",
                       td_config_channels_check(device->joints,
                                                sizeof *device->joints,
                                                device->joint_count)));
    TD_TRY(check_whole(location, td_config_node_get(node, "states"), "states",
                       td_config_channels_check(device->states,
                                                sizeof *device->states,
                                                device->state_count)));
    TD_TRY(check_replay(location, node, device));
    if (device->kind != TD_CONFIG_ROBOT_SYNTHETIC) return TD_OK;
    for (size_t i = 0; i < device->joint_count;
         i += width_of(&device->joints[i])) {
        const td_config_joint *joint = &device->joints[i];
        if (joint->kind == TD_CONFIG_QUATERNION)
            TD_TRY(check_length(location, joints, "joints", joint, "initial",
                                length_of(joint, initial_of)));
    }
    return TD_OK;
}

// Where the joint's mode stands: with it, or with the robot.
static td_err bad_failsafe(const td_config_location *location,
                           const td_config_node *node,
                           const td_config_joint *joint, const char *why)
{
    char name[PATH_BYTES];
    if (joint->failsafe == TD_CONFIG_FAILSAFE_AS_ROBOT)
        return td_config_location_fail(
            location, td_config_node_get(node, "failsafe"), "failsafe",
            "zero_velocity is %s, as %s is", why, joint->name);
    const td_config_node *joints = member(member(node, "robot"), "joints");
    (void)snprintf(name, sizeof name, "robot.joints.%s.failsafe", joint->name);
    return td_config_location_fail(
        location, member(member(joints, joint->name), "failsafe"), name,
        "zero_velocity is %s", why);
}

static td_err check_zero_velocity(const td_config_location *location,
                                  const td_config_node *node,
                                  const td_config_joint *joint)
{
    if (joint->kind == TD_CONFIG_ANGLE || joint->kind == TD_CONFIG_QUATERNION)
        return bad_failsafe(location, node, joint, "not for a rotation");
    if (joint->min > 0 || joint->max < 0)
        return bad_failsafe(location, node, joint, "not for limits without 0");
    return TD_OK;
}

td_err td_config_joints_check_failsafe(const td_config_location *location,
                                       const td_config_node *node,
                                       const td_config_robot *robot)
{
    const td_config_robot_device *device = &robot->robot;
    const td_config_node *joints = member(member(node, "robot"), "joints");
    for (size_t i = 0; i < device->joint_count;
         i += width_of(&device->joints[i])) {
        const td_config_joint *joint = &device->joints[i];
        td_config_failsafe mode = td_config_robot_failsafe(robot, joint);
        if (mode == TD_CONFIG_FAILSAFE_ZERO_VELOCITY)
            TD_TRY(check_zero_velocity(location, node, joint));
        if (mode == TD_CONFIG_FAILSAFE_SAFE_POSE &&
            joint->kind == TD_CONFIG_QUATERNION)
            TD_TRY(check_length(location, joints, "robot.joints", joint, "safe",
                                length_of(joint, safe_of)));
    }
    return TD_OK;
}

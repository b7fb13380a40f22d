// SPDX-License-Identifier: Apache-2.0
// The public C API of a robot, include/tendon/robot.h, on the edge.
//
// A td_robot is a robot's parsed file, its runtime (hardware, network, edge),
// a thread that runs the session, and, where the user blends, a thread for
// that. Each function checks what it is given and passes it on; structs of the
// caller are read by their `size`, so that an older program may pass a shorter
// one (options.c).
//
// Threads: td-session runs td_edge_run(); its result is kept until somebody
// asks. The user's functions are called on the edge's threads, as robot.h says
// of each; a program that pulls calls td_edge_pull() on its own.
//
// Close: the session stops and its thread is joined; then the edge's
// threads end, and last the one that blends; after that no function of the
// user's is called any more.
#include "edge/api/robot.h"

#include "base/clock.h"
#include "base/log.h"
#include "edge/api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_DRIVER_BYTES TD_EDGE_API_UP_TO(td_robot_driver, aggregate)

static td_err check_driver(const td_robot *robot, td_errinfo *info)
{
    const td_robot_driver *driver = &robot->driver;
    if (robot->config->robot.kind != TD_CONFIG_ROBOT_CALLBACK)
        return td_fail(info, TD_ERR_INVALID,
                       "robot.kind: must be callback for a robot of your own, "
                       "is %s",
                       td_config_robot_kind_name(robot->config->robot.kind));
    if (!driver->read != !driver->write)
        return td_fail(info, TD_ERR_INVALID,
                       "driver: needs both read and write, or neither, to be "
                       "pulled");
    if (driver->control && !driver->read)
        return td_fail(info, TD_ERR_INVALID,
                       "driver: control is not used by a robot that is "
                       "pulled");
    if (!driver->observe_state != (robot->config->robot.state_count == 0))
        return td_fail(
            info, TD_ERR_INVALID,
            "driver: needs observe_state where the file has robot.states, "
            "and only there");
    if (driver->aggregate && driver->blend)
        return td_fail(info, TD_ERR_INVALID,
                       "driver: takes either aggregate or blend");
    if (!(driver->blend_limit_s >= 0 && driver->blend_limit_s <= 3600))
        return td_fail(info, TD_ERR_INVALID,
                       "driver: blend_limit_s must be 0 to 3600");
    return TD_OK;
}

static td_err open_blend(td_robot *robot, td_errinfo *info)
{
    const td_config_robot *config = robot->config;
    double limit_s = robot->driver.blend_limit_s;
    if (limit_s == 0) limit_s = 0.5 / (double)config->fps;
    const td_edge_user_blend_config blend = {
        .fn = robot->driver.blend,
        .user = robot->driver.user,
        .most_rows = (size_t)config->actions_per_chunk,
        .channels = config->robot.joint_count,
        .limit_ns = (int64_t)(limit_s * (double)TD_NS_PER_S),
    };
    return blend.fn ? td_edge_user_blend_open(&blend, &robot->blend, info)
                    : TD_OK;
}

static td_err open_parts(td_robot *robot, td_net *net, td_errinfo *info)
{
    const td_robot_driver *driver = &robot->driver;
    const td_robot_callbacks callbacks = {
        .user = driver->user,
        .read = driver->read,
        .write = driver->write,
        .frame = driver->frame,
        .picture = driver->picture,
    };
    const td_edge_runtime_options extras = {
        .callbacks = &callbacks,
        .control = driver->control,
        .control_user = driver->user,
        .observe_state = driver->observe_state,
        .observe_state_user = driver->user,
        .blend = driver->aggregate,
        .blend_all = robot->blend ? td_edge_user_blend_all : NULL,
        .blend_user = robot->blend ? (void *)robot->blend : driver->user,
        .pull = !driver->read,
        .net = net,
    };
    return td_edge_runtime_open(&robot->parts, robot->config, &extras, info);
}

static td_err open_client(td_robot *robot, td_net *net,
                          const td_robot_driver *driver, td_errinfo *info)
{
    TD_TRY(td_edge_api_struct("driver", driver, FIRST_DRIVER_BYTES,
                              sizeof robot->driver, &robot->driver, info));
    TD_TRY(check_driver(robot, info));
    TD_TRY(open_blend(robot, info));
    return open_parts(robot, net, info);
}

td_err td_robot_open_on(td_net *net, td_config_robot *config,
                        const td_robot_driver *driver, td_robot **ret_robot,
                        td_errinfo *info)
{
    td_robot *robot = calloc(1, sizeof *robot);
    if (!robot) {
        td_config_robot_free(config);
        return TD_ERR_NOMEM;
    }
    robot->config = config;
    td_log_hold();
    td_err err = open_client(robot, net, driver, info);
    if (err != TD_OK) {
        td_robot_close(robot);
        return err;
    }
    *ret_robot = robot;
    return TD_OK;
}

td_err td_robot_open(const char *path, const td_robot_driver *driver,
                     td_robot **ret_robot, td_errinfo *info)
{
    td_config_robot *config = NULL;
    TD_TRY(td_config_robot_load(path, &config, info));
    return td_robot_open_on(NULL, config, driver, ret_robot, info);
}

td_err td_robot_open_text(const char *yaml, const td_robot_driver *driver,
                          td_robot **ret_robot, td_errinfo *info)
{
    td_config_robot *config = NULL;
    TD_TRY(td_config_robot_parse("(text)", yaml, strlen(yaml), &config, info));
    return td_robot_open_on(NULL, config, driver, ret_robot, info);
}

td_err td_robot_run(td_robot *robot, td_errinfo *info)
{
    if (atomic_exchange(&robot->ran, true))
        return td_fail(info, TD_ERR_EXISTS, "a robot runs once");
    return td_edge_run(robot->parts.edge, info);
}

static void run(void *user)
{
    td_robot *robot = user;
    robot->result = td_edge_run(robot->parts.edge, &robot->why);
}

td_err td_robot_start(td_robot *robot, td_errinfo *info)
{
    const td_thread_config config = {.name = "td-session", .cpu = -1};
    if (atomic_exchange(&robot->ran, true))
        return td_fail(info, TD_ERR_EXISTS, "a robot runs once");
    return td_thread_start(&config, run, robot, &robot->runner, info);
}

td_err td_robot_wait(td_robot *robot, td_errinfo *info)
{
    if (!robot->runner)
        return td_fail(info, TD_ERR_EMPTY, "nothing was started");
    td_thread_join(TD_TAKE(robot->runner));
    return robot->result == TD_OK
               ? TD_OK
               : td_fail(info, robot->result, "%s", robot->why.text);
}

void td_robot_stop(td_robot *robot)
{
    td_edge_stop(robot->parts.edge);
}

void td_robot_close(td_robot *robot)
{
    if (robot->runner) {
        td_robot_stop(robot);
        td_thread_join(robot->runner);
    }
    td_edge_runtime_close(&robot->parts);
    if (robot->blend) td_edge_user_blend_close(robot->blend);
    td_log_release();
    td_config_robot_free(robot->config);
    free(robot);
}

static td_robot_doing doing(const td_edge_step *step)
{
    if (!step->command) return TD_ROBOT_IDLE;
    if (step->fresh) return TD_ROBOT_FRESH;
    return step->starved ? TD_ROBOT_STARVED : TD_ROBOT_FAILSAFE;
}

static void fill_result(const td_edge_step *step, td_robot_result *ret_result)
{
    td_robot_result result = {
        .size = ret_result->size,
        .doing = doing(step),
        .limited = step->command && step->hits->consecutive > 0,
        .left = step->left,
        .age_us = step->fresh ? step->age_ns / TD_NS_PER_US : 0,
    };
    memcpy(ret_result, &result,
           result.size < sizeof result ? result.size : sizeof result);
}

td_err td_robot_step(td_robot *robot, const float *state, float *ret_command,
                     td_robot_result *ret_result)
{
    if (robot->driver.read) return TD_ERR_UNSUPPORTED;
    td_edge_step step = td_edge_pull(robot->parts.edge, state);
    if (step.command)
        memcpy(ret_command, step.command,
               td_robot_joints(robot) * sizeof *ret_command);
    if (ret_result) fill_result(&step, ret_result);
    return TD_OK;
}

uint32_t td_robot_joints(const td_robot *robot)
{
    return (uint32_t)robot->config->robot.joint_count;
}

td_err td_robot_reset(td_robot *robot, const char *reason, td_errinfo *info)
{
    return td_edge_reset(robot->parts.edge, reason, info);
}

td_err td_robot_set_task(td_robot *robot, const char *task, td_errinfo *info)
{
    return td_edge_set_task(robot->parts.edge, task, info);
}

td_err td_robot_episode_begin(td_robot *robot, td_errinfo *info)
{
    return td_edge_episode(robot->parts.edge, TD_EDGE_EPISODE_BEGIN, info);
}

td_err td_robot_episode_end(td_robot *robot, bool keep, td_errinfo *info)
{
    return td_edge_episode(robot->parts.edge,
                           keep ? TD_EDGE_EPISODE_END : TD_EDGE_EPISODE_DISCARD,
                           info);
}

const char *td_robot_state(const td_robot *robot)
{
    return td_edge_state_name(td_edge_state_get(robot->parts.edge));
}

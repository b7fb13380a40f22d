// SPDX-License-Identifier: Apache-2.0
// What goes wrong with a robot, and what its task says about it: late answers
// and warnings lead to the component's fallback, failures to another try, and
// too much of it in a row to what comes after that.
#include "sim/factory/world.h"

void td_sim_factory_violation_begin(td_sim_factory_robot *robot)
{
    const td_config_factory_violation *violation =
        &robot->task->safety_and_slo_violation;
    const td_edge_strikes_limits limits = {
        .late = (uint32_t)violation->max_consecutive_slo_violation,
        .replans = (uint32_t)violation->max_consecutive_safety_replan,
        .retries = (uint32_t)robot->task->task_retry.max_task_retries,
    };
    td_edge_strikes_init(&robot->strikes, &limits);
}

// True: it does something else than go on. Those who resend or keep their plan
// do so where they miss it.
static bool react(td_sim_factory_robot *robot, td_config_fallback what,
                  int64_t now_ns)
{
    switch (what) {
    case TD_CONFIG_STOP:
    case TD_CONFIG_STOP_AND_CALL_HUMAN:
        td_sim_factory_robot_stop(robot, now_ns);
        return true;
    case TD_CONFIG_RETURN_TO_SAFE_STATE:
    case TD_CONFIG_RETRY_TASK:
        td_sim_factory_robot_restart(robot, now_ns);
        return true;
    default:
        return false;
    }
}

bool td_sim_factory_violation_answer(td_sim_factory_stream *stream,
                                     bool on_time, int64_t now_ns)
{
    td_sim_factory_robot *robot = stream->robot;
    bool much =
        td_edge_strikes_answer(&robot->strikes, stream->number, on_time);
    if (on_time) return false;
    return react(robot,
                 much ? robot->task->safety_and_slo_violation.on_max_violation
                      : stream->component->fallback,
                 now_ns);
}

static void hear_safety(td_sim_factory_stream *stream, bool safe,
                        int64_t now_ns)
{
    td_sim_factory_robot *robot = stream->robot;
    uint32_t bit = 1u << stream->number;
    bool much = td_edge_strikes_safety(&robot->strikes, safe);
    robot->warned = safe ? robot->warned & ~bit : robot->warned | bit;
    if (safe) return;
    td_config_fallback what =
        much ? robot->task->safety_and_slo_violation.on_max_violation
             : stream->component->fallback;
    td_sim_trace_line(robot->world->trace, now_ns, "robot %u is unsafe",
                      robot->number);
    if (!react(robot, what, now_ns) && what == TD_CONFIG_STOP_AND_REPLAN)
        td_sim_factory_robot_replan(robot);
}

static void hear_monitor(td_sim_factory_robot *robot, bool failed,
                         int64_t now_ns)
{
    bool much = td_edge_strikes_task(&robot->strikes, failed);
    if (!failed) return;
    (void)react(robot,
                much ? robot->task->task_retry.on_max_task_retries
                     : TD_CONFIG_RETRY_TASK,
                now_ns);
}

void td_sim_factory_violation_verdict(td_sim_factory_stream *stream,
                                      int64_t now_ns)
{
    td_sim_factory_robot *robot = stream->robot;
    const td_sim_factory_options *options = robot->world->options;
    td_config_role role = stream->component->role;
    if (role == TD_CONFIG_SAFETY && options->unsafe > 0)
        hear_safety(stream, td_rand_unit(&robot->rand) >= options->unsafe,
                    now_ns);
    if (role == TD_CONFIG_MONITOR && options->failing > 0)
        hear_monitor(robot, td_rand_unit(&robot->rand) < options->failing,
                     now_ns);
}

// SPDX-License-Identifier: Apache-2.0
// A robot of the simulation: the real core of a robot, without threads.
//
// act() does by hand what the real robot's threads do, in this order: merge the
// answers that arrived, look after the session, let the other components act,
// and tick if the time has come. It returns when it next has something to do.
//
// The session is a small one: ask for the status of any server, ask that one to
// take this robot, stream. A query that brings nothing is sent again after a
// while. There is no failover here; sim/factory has it.
//
// A tick reads the synthetic hardware, asks the core for a command, writes it,
// and sends an observation where the core asks for one. Everything that happens
// is a line of the world's trace, so that two runs with the same seed can be
// compared byte by byte.
//
// The robot is freed by the world, made whole or not: every pointer may be
// NULL.
#include "edge/session/check.h"
#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUERY_NS TD_NS_PER_S
#define RETRY_NS (TD_NS_PER_S / 2)

typedef enum session {
    LOOKING,   // for a server
    ATTACHING, // to the one that answered
    STREAMING,
} session;

struct td_sim_robot {
    td_sim_world *world;
    uint32_t index;
    char id[TD_WIRE_MAX_NAME + 1];
    td_net *net;
    td_net_pub *obs;
    td_net_decl *actions;
    td_sim_mailbox answers, replies;
    td_edge_core_settings settings;
    td_edge_core *core;
    td_robot_hardware *robot;
    td_sim_components *components;
    session session;
    int64_t session_due_ns; // when to ask again
    int64_t tick_due_ns;
    char server[TD_WIRE_MAX_NAME + 1];
};

static const td_net_qos obs_qos = {.priority = TD_NET_DATA};

static void on_done(void *user)
{
    (void)user; // what counts is what was answered; a retry covers the rest
}

static td_err query(td_sim_robot *robot, td_slice payload, td_errinfo *info)
{
    char key[TD_WIRE_MAX_KEY];
    TD_TRY(td_wire_key(&robot->world->route, NULL, "status", key, info));
    return td_net_query(robot->net, key, payload, QUERY_NS, td_sim_mailbox_add,
                        on_done, &robot->replies, info);
}

static td_err ask_to_attach(td_sim_robot *robot, const td_wire_status *status,
                            td_errinfo *info)
{
    td_sim_world *world = robot->world;
    memcpy(robot->server, status->server.data, status->server.size);
    td_wire_attach attach = {
        .client = td_wire_text_of(robot->id),
        .server = status->server,
        .boot = robot->settings.boot,
    };
    TD_TRY(td_wire_attach_encode(world->encoder, &attach, info));
    size_t count;
    const td_slice *parts = td_wire_encoder_parts(world->encoder, &count);
    robot->session = ATTACHING;
    return query(robot, parts[0], info);
}

static td_err take_status(td_sim_robot *robot, int64_t now_ns, td_net_msg *msg,
                          td_errinfo *info)
{
    td_sim_world *world = robot->world;
    td_slice bytes;
    td_wire_status status;
    TD_TRY(td_net_msg_bytes(msg, &bytes));
    TD_TRY(td_wire_status_decode(world->decoder, bytes.data, bytes.size,
                                 &status, info));
    if (robot->session == LOOKING) return ask_to_attach(robot, &status, info);
    if (robot->session == ATTACHING && status.attached) {
        robot->session = STREAMING;
        td_edge_core_connected(robot->core);
        td_sim_trace_line(&world->trace, now_ns, "%s attached", robot->id);
    }
    return TD_OK;
}

// Asks, and asks again as long as nothing came of it.
static td_err look_for_server(td_sim_robot *robot, int64_t now_ns,
                              td_errinfo *info)
{
    td_net_msg *msg;
    while ((msg = td_sim_mailbox_take(&robot->replies))) {
        td_err err = take_status(robot, now_ns, msg, info);
        td_net_msg_free(msg);
        TD_TRY(err);
    }
    if (robot->session == STREAMING || now_ns < robot->session_due_ns)
        return TD_OK;
    robot->session = LOOKING;
    robot->session_due_ns = now_ns + QUERY_NS + RETRY_NS;
    return query(robot, (td_slice){0}, info);
}

// What the policy is asked with, and the other components.
static td_err look(td_sim_robot *robot, int64_t now_ns,
                   const td_edge_step *step, td_edge_outgoing *ret_outgoing)
{
    *ret_outgoing = (td_edge_outgoing){
        .request = {step->seq, step->left, step->must_go, step->again},
        .captured_ns = now_ns,
        .episode = td_edge_core_episode(robot->core),
        .cursor = td_edge_core_cursor(robot->core),
    };
    return td_robot_hardware_read(robot->robot, now_ns, ret_outgoing->state);
}

static td_err observe(td_sim_robot *robot, const td_edge_outgoing *outgoing,
                      td_errinfo *info)
{
    td_sim_world *world = robot->world;
    const td_edge_request *request = &outgoing->request;
    int64_t now_ns = outgoing->captured_ns;
    td_wire_obs obs;
    td_edge_observe_fill(&robot->settings, robot->id, "", outgoing, now_ns,
                         &obs);
    TD_TRY(td_wire_obs_encode(world->encoder, &obs, info));
    const td_edge_sent sent = {.seq = request->seq,
                               .episode = outgoing->episode,
                               .cursor = outgoing->cursor,
                               .captured_ns = now_ns,
                               .put_ns = now_ns,
                               .again = request->again};
    if (!td_edge_core_sent(robot->core, &sent)) return TD_OK;
    td_sim_trace_line(&world->trace, now_ns, "%s sends %llu left %u", robot->id,
                      (unsigned long long)request->seq, request->left);
    return td_sim_mailbox_put(robot->obs, world->encoder);
}

static void watch(td_sim_robot *robot, int64_t now_ns, const td_edge_step *step)
{
    const td_sim_config *config = robot->world->config;
    const td_sim_tick seen = {
        .robot = robot->index,
        .now_ns = now_ns,
        .cursor = td_edge_core_cursor(robot->core),
        .step = step,
    };
    if (config->watch) config->watch(config->watch_user, &seen);
}

static td_err tick(td_sim_robot *robot, int64_t now_ns, td_errinfo *info)
{
    td_sim_world *world = robot->world;
    float reading[TD_WIRE_MAX_CHANNELS];
    TD_TRY(td_robot_hardware_read(robot->robot, now_ns, reading));
    const td_edge_core_input seen = {
        .now_ns = now_ns,
        .connection = robot->session == STREAMING,
        .reading = reading,
        .read_ns = now_ns,
    };
    td_edge_step step = td_edge_core_tick(robot->core, &seen);
    if (step.command) {
        TD_TRY(td_robot_hardware_write(robot->robot, now_ns, step.command));
        td_sim_trace_line(&world->trace, now_ns, "%s plays %llu%s", robot->id,
                          (unsigned long long)td_edge_core_cursor(robot->core),
                          step.starved ? " starved" : "");
        td_sim_trace_floats(&world->trace, step.command,
                            robot->settings.channels);
    }
    watch(robot, now_ns, &step);
    td_edge_outgoing outgoing;
    TD_TRY(look(robot, now_ns, &step, &outgoing));
    if (step.ask) TD_TRY(observe(robot, &outgoing, info));
    return td_sim_components_tick(robot->components, step.ask,
                                  robot->session == STREAMING, &outgoing, info);
}

static td_err merge(td_sim_robot *robot, int64_t now_ns, td_net_msg *msg,
                    td_errinfo *info)
{
    td_sim_world *world = robot->world;
    td_slice bytes;
    td_wire_action action;
    td_edge_answer answer;
    TD_TRY(td_net_msg_bytes(msg, &bytes));
    TD_TRY(td_wire_action_decode(world->decoder, bytes.data, bytes.size,
                                 &action, info));
    TD_TRY(td_edge_core_answer(robot->core, now_ns, robot->server, &action,
                               &answer));
    td_sim_trace_line(&world->trace, now_ns, "%s answer %llu %s", robot->id,
                      (unsigned long long)action.ident.seq,
                      answer.stray ? td_edge_stray_name(answer.why_stray)
                                   : td_edge_outcome_name(answer.outcome));
    return TD_OK;
}

td_err td_sim_robot_act(td_sim_robot *robot, int64_t now_ns,
                        int64_t *ret_due_ns, td_errinfo *info)
{
    td_net_msg *msg;
    while ((msg = td_sim_mailbox_take(&robot->answers))) {
        td_err err = merge(robot, now_ns, msg, info);
        td_net_msg_free(msg);
        TD_TRY(err);
    }
    TD_TRY(look_for_server(robot, now_ns, info));
    int64_t due_ns;
    TD_TRY(td_sim_components_act(robot->components, now_ns, &due_ns, info));
    if (now_ns >= robot->tick_due_ns) {
        TD_TRY(tick(robot, now_ns, info));
        robot->tick_due_ns +=
            robot->settings.period_ns / robot->settings.substeps;
    }
    *ret_due_ns = robot->tick_due_ns < due_ns ? robot->tick_due_ns : due_ns;
    if (robot->session != STREAMING && robot->session_due_ns < *ret_due_ns)
        *ret_due_ns = robot->session_due_ns;
    return TD_OK;
}

static void fill_settings(td_sim_robot *robot)
{
    const td_sim_config *config = robot->world->config;
    td_edge_core_settings *settings = &robot->settings;
    *settings = config->edge;
    settings->channels = config->joints;
    settings->period_ns = TD_NS_PER_S / config->fps;
    if (settings->actions_per_chunk > config->chunk_rows)
        settings->actions_per_chunk = config->chunk_rows;
}

static td_err open_hardware(td_sim_robot *robot, td_errinfo *info)
{
    td_robot_config *config = calloc(1, sizeof *config);
    if (!config) return TD_ERR_NOMEM;
    char names[TD_ROBOT_MAX_JOINTS][12];
    config->joint_count = robot->world->config->joints;
    config->time_constant_s = 0.05;
    for (uint32_t i = 0; i < config->joint_count; i++) {
        (void)snprintf(names[i], sizeof names[i], "j%u", i);
        config->joints[i] = (td_robot_joint){
            .name = names[i], .speed_limit = 10.0, .initial = 0.01 * i};
    }
    td_err err =
        td_robot_hardware_open("synthetic", config, &robot->robot, info);
    free(config);
    return err;
}

// Ticks are spread over the period, as those of real robots are.
static td_err robot_init(td_sim_robot *robot, td_errinfo *info)
{
    td_sim_world *world = robot->world;
    char key[TD_WIRE_MAX_KEY];
    (void)snprintf(robot->id, sizeof robot->id, "robot%u", robot->index);
    td_sim_mailbox_init(&robot->answers);
    td_sim_mailbox_init(&robot->replies);
    fill_settings(robot);
    robot->tick_due_ns =
        robot->settings.period_ns * robot->index / world->config->robots;
    TD_TRY(open_hardware(robot, info));
    TD_TRY(td_edge_core_new(&robot->settings, &robot->core, info));
    TD_TRY(td_net_inproc_open(world->hub, robot->id, &robot->net, info));
    TD_TRY(td_wire_key(&world->route, robot->id, "action", key, info));
    TD_TRY(td_net_subscribe(robot->net, key, td_sim_mailbox_add,
                            &robot->answers, &robot->actions, info));
    TD_TRY(td_wire_key(&world->route, robot->id, "obs", key, info));
    TD_TRY(td_net_publish(robot->net, key, &obs_qos, &robot->obs, info));
    return td_sim_components_new(world, robot->net, robot->id, &robot->settings,
                                 &robot->components, info);
}

td_err td_sim_robot_new(td_sim_world *world, uint32_t index,
                        td_sim_robot **ret_robot, td_errinfo *info)
{
    td_sim_robot *robot = calloc(1, sizeof *robot);
    if (!robot) return TD_ERR_NOMEM;
    robot->world = world;
    robot->index = index;
    *ret_robot = robot; // the world frees it, made whole or not
    return robot_init(robot, info);
}

void td_sim_robot_free(td_sim_robot *robot)
{
    if (robot->components) td_sim_components_free(robot->components);
    if (robot->actions) (void)td_net_undeclare(robot->actions);
    if (robot->obs) td_net_unpublish(robot->obs);
    td_net_msg *msg;
    while ((msg = td_sim_mailbox_take(&robot->answers)) ||
           (msg = td_sim_mailbox_take(&robot->replies)))
        td_net_msg_free(msg);
    if (robot->net) td_net_close(robot->net);
    if (robot->core) td_edge_core_free(robot->core);
    if (robot->robot) td_robot_hardware_close(robot->robot);
    free(robot);
}

uint64_t td_sim_robot_cursor(const td_sim_robot *robot)
{
    return td_edge_core_cursor(robot->core);
}

void td_sim_robot_counts(const td_sim_robot *robot, td_edge_counts *ret_counts)
{
    td_edge_core_counts(robot->core, ret_counts);
}

const td_sim_components *td_sim_robot_components(const td_sim_robot *robot)
{
    return robot->components;
}

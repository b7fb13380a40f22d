// SPDX-License-Identifier: Apache-2.0
// A robot around the real core: reads, sends a little later, hears, ticks.
#include "edge/observe/observe.h"
#include "lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WAITING 64 // observations between the tick and the network

struct lab_robot {
    const lab_options *options;
    td_rand *rand;
    lab_log *log;
    td_edge_core_settings settings;
    td_edge_core *core;
    td_net *net;
    td_net_pub *obs;
    td_net_decl *actions;
    lab_inbox inbox;
    td_wire_decoder *decoder;
    td_wire_encoder *encoder;
    uint32_t server;
    uint64_t connection, connections;
    bool driver_down, gate_starts;
    float at[LAB_MAX_CHANNELS]; // where it stands
    uint64_t ticks;
    int64_t put_delay_ns;
    td_edge_outgoing waiting[WAITING];
    uint32_t waiting_first, waiting_count;
};

static int64_t tick_due_ns(const lab_robot *robot)
{
    return (int64_t)robot->ticks * robot->settings.period_ns /
           robot->settings.substeps;
}

static void log_end(lab_robot *robot)
{
    td_edge_counts counts;
    td_edge_core_counts(robot->core, &counts);
    LAB_LOG(robot->log, LAB_TOTAL, (int64_t)counts.sent);
    for (int i = 0; i < TD_EDGE_OUTCOME_COUNT; i++)
        LAB_LOG(robot->log, LAB_OUTCOME, i, (int64_t)counts.outcomes[i]);
    for (int i = 0; i < TD_EDGE_STRAY_COUNT; i++)
        LAB_LOG(robot->log, LAB_STRAY, i, (int64_t)counts.strays[i]);
}

static void begin(lab_robot *robot)
{
    td_errinfo info = {.text = ""};
    const td_edge_core_settings *settings = &robot->settings;
    lab_check(td_edge_core_new(settings, &robot->core, &info), &info);
    LAB_LOG(robot->log, LAB_START, (int64_t)settings->boot,
            (int64_t)settings->route, (int64_t)settings->episode);
    robot->gate_starts = true;
    robot->driver_down = false;
    robot->waiting_count = 0;
    lab_robot_attach(robot, robot->server);
}

void lab_robot_restart(lab_robot *robot)
{
    log_end(robot);
    td_edge_core_free(robot->core);
    robot->settings.boot++;
    robot->settings.start_ns = tick_due_ns(robot);
    begin(robot);
}

void lab_robot_attach(lab_robot *robot, uint32_t server)
{
    robot->server = server;
    robot->connection = ++robot->connections;
    td_edge_core_connected(robot->core);
    LAB_LOG(robot->log, LAB_ATTACH, server);
}

void lab_robot_detach(lab_robot *robot)
{
    robot->connection = 0;
}

void lab_robot_reset(lab_robot *robot)
{
    lab_check(td_edge_core_reset(robot->core), NULL);
    LAB_LOG(robot->log, LAB_RESET, 0);
}

void lab_robot_driver(lab_robot *robot, bool down)
{
    robot->driver_down = down;
}

static void hear(lab_robot *robot, int64_t now_ns, td_net_msg *msg)
{
    td_slice bytes;
    td_wire_action action;
    td_edge_answer result;
    lab_check(td_net_msg_bytes(msg, &bytes), NULL);
    int64_t at = lab_log_bytes(&robot->log->messages, bytes.data, bytes.size);
    int64_t outcome = -1, stray = TD_EDGE_STRAY_MALFORMED;
    if (td_wire_action_decode(robot->decoder, bytes.data, bytes.size, &action,
                              NULL) == TD_OK) {
        lab_check(td_edge_core_answer(robot->core, now_ns,
                                      lab_server_name(robot->server), &action,
                                      &result),
                  NULL);
        outcome = result.stray ? -1 : (int64_t)result.outcome;
        stray = result.stray ? (int64_t)result.why_stray : -1;
    } else {
        td_edge_core_malformed(robot->core);
    }
    LAB_LOG(robot->log, LAB_ANSWER, now_ns, at, (int64_t)bytes.size, outcome,
            stray);
}

static td_edge_outgoing *oldest_waiting(lab_robot *robot)
{
    return robot->waiting_count ? &robot->waiting[robot->waiting_first] : NULL;
}

static void put(lab_robot *robot, const td_edge_outgoing *outgoing)
{
    td_errinfo info = {.text = ""};
    td_wire_obs obs;
    size_t count;
    td_edge_observe_fill(&robot->settings, "robot", "", outgoing,
                         outgoing->captured_ns, &obs);
    lab_check(td_wire_obs_encode(robot->encoder, &obs, &info), &info);
    const td_slice *parts = td_wire_encoder_parts(robot->encoder, &count);
    lab_check(td_net_put(robot->obs, parts, count, NULL, NULL), NULL);
}

// The transport takes one in fifty not.
static void send(lab_robot *robot, int64_t now_ns,
                 const td_edge_outgoing *outgoing)
{
    const td_edge_sent sent = {.seq = outgoing->request.seq,
                               .episode = outgoing->episode,
                               .cursor = outgoing->cursor,
                               .captured_ns = outgoing->captured_ns,
                               .put_ns = now_ns};
    bool goes = td_edge_core_sent(robot->core, &sent);
    LAB_LOG(robot->log, LAB_SENT, (int64_t)sent.seq, (int64_t)sent.episode,
            (int64_t)sent.cursor, sent.captured_ns, sent.put_ns, goes);
    if (!goes) return;
    if (!robot->options->sequential && lab_one_in(robot->rand, 50)) {
        td_edge_core_unsent(robot->core, sent.seq);
        LAB_LOG(robot->log, LAB_UNSENT, (int64_t)sent.seq);
        return;
    }
    put(robot, outgoing);
}

static void send_waiting(lab_robot *robot, int64_t now_ns)
{
    td_edge_outgoing *oldest;
    while ((oldest = oldest_waiting(robot)) &&
           oldest->captured_ns + robot->put_delay_ns <= now_ns) {
        robot->waiting_first = (robot->waiting_first + 1) % WAITING;
        robot->waiting_count--;
        send(robot, now_ns, oldest);
    }
}

// One asked for in fifty is never made, and leaves a gap in the seqs.
static void capture(lab_robot *robot, int64_t now_ns, const td_edge_step *step)
{
    if (!robot->options->sequential && lab_one_in(robot->rand, 50)) return;
    if (robot->waiting_count == WAITING) lab_check(TD_ERR_FULL, NULL);
    uint32_t at = (robot->waiting_first + robot->waiting_count++) % WAITING;
    td_edge_outgoing *outgoing = &robot->waiting[at];
    *outgoing = (td_edge_outgoing){
        .request = {.seq = step->seq,
                    .left = step->left,
                    .must_go = step->must_go},
        .captured_ns = now_ns,
        .episode = td_edge_core_episode(robot->core),
        .cursor = td_edge_core_cursor(robot->core),
    };
}

static void log_rows(lab_robot *robot, const td_edge_step *step)
{
    static const float nothing[LAB_MAX_CHANNELS] = {NAN};
    size_t bytes = robot->settings.channels * sizeof(float);
    (void)lab_log_bytes(&robot->log->wanted,
                        step->wanted ? step->wanted : nothing, bytes);
    (void)lab_log_bytes(&robot->log->commands,
                        step->command ? step->command : nothing, bytes);
}

// The gate starts with the first tick, and again when the driver is back.
static void log_place(lab_robot *robot)
{
    if (robot->driver_down) robot->gate_starts = true;
    if (!robot->gate_starts || robot->driver_down) return;
    robot->gate_starts = false;
    size_t bytes = robot->settings.channels * sizeof(float);
    LAB_LOG(robot->log, LAB_PLACE,
            lab_log_bytes(&robot->log->messages, robot->at, bytes));
}

static void tick(lab_robot *robot, int64_t now_ns)
{
    const td_edge_core_input seen = {
        .now_ns = now_ns,
        .connection = robot->connection,
        .reading = robot->at,
        .read_ns = now_ns,
        .driver_down = robot->driver_down,
    };
    log_place(robot);
    td_edge_step step = td_edge_core_tick(robot->core, &seen);
    LAB_LOG(robot->log, LAB_TICK, now_ns,
            (int64_t)td_edge_core_cursor(robot->core), step.command != NULL,
            step.fresh, (int64_t)step.failsafe);
    log_rows(robot, &step);
    if (step.command && !robot->driver_down)
        memcpy(robot->at, step.command,
               robot->settings.channels * sizeof(float));
    if (step.ask) capture(robot, now_ns, &step);
    robot->ticks++;
}

int64_t lab_robot_act(lab_robot *robot, int64_t now_ns)
{
    td_net_msg *msg;
    while ((msg = lab_inbox_take(&robot->inbox))) {
        hear(robot, now_ns, msg);
        td_net_msg_free(msg);
    }
    send_waiting(robot, now_ns);
    if (tick_due_ns(robot) <= now_ns) tick(robot, now_ns);
    const td_edge_outgoing *oldest = oldest_waiting(robot);
    int64_t tick_ns = tick_due_ns(robot);
    int64_t put_ns =
        oldest ? oldest->captured_ns + robot->put_delay_ns : INT64_MAX;
    return put_ns < tick_ns ? put_ns : tick_ns;
}

// A quaternion stands upright, all else at 0.
static void stand(lab_robot *robot)
{
    const td_edge_core_settings *settings = &robot->settings;
    for (uint32_t i = 0; i < settings->channels; i++)
        if (settings->kinds[i] == TD_WIRE_QUATERNION) robot->at[i += 3] = 1;
}

lab_robot *lab_robot_new(const lab_options *options, td_rand *rand,
                         td_net_hub *hub, const td_edge_core_settings *settings,
                         lab_log *log)
{
    static const td_net_qos qos = {.priority = TD_NET_DATA};
    lab_robot *robot = lab_calloc(sizeof *robot);
    robot->options = options;
    robot->rand = rand;
    robot->log = log;
    robot->settings = *settings;
    robot->put_delay_ns = (int64_t)lab_between(rand, 0, 5e7);
    stand(robot);
    lab_check(td_wire_decoder_new(&robot->decoder), NULL);
    lab_check(td_wire_encoder_new(&robot->encoder), NULL);
    lab_check(td_net_inproc_open(hub, "robot", &robot->net, NULL), NULL);
    lab_check(td_net_publish(robot->net, "obs", &qos, &robot->obs, NULL), NULL);
    lab_check(td_net_subscribe(robot->net, "action", lab_inbox_add,
                               &robot->inbox, &robot->actions, NULL),
              NULL);
    begin(robot);
    return robot;
}

void lab_robot_free(lab_robot *robot)
{
    td_net_msg *msg;
    log_end(robot);
    lab_check(td_net_undeclare(robot->actions), NULL);
    td_net_unpublish(robot->obs);
    while ((msg = lab_inbox_take(&robot->inbox)))
        td_net_msg_free(msg);
    td_net_close(robot->net);
    td_edge_core_free(robot->core);
    td_wire_encoder_free(robot->encoder);
    td_wire_decoder_free(robot->decoder);
    free(robot);
}

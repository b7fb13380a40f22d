// SPDX-License-Identifier: Apache-2.0
// One robot of a simulated factory: it asks, acts and asks again.
//
// Synchronous, System 2 is asked before System 1 and both before the action.
// Asynchronous, the next answer is asked for when an action begins, and plans
// come when they come.
//
// The functions here are what happens to a robot, each called by an event of
// the world: its token is there (ask), an obligation is due (check), an answer
// arrived or was lost, a deadline passed (late), its action has ended (acted),
// it is back where its task begins (back). Each moves the robot on and puts the
// next events on the world's list.
//
// What it waits for is a set of bits, one for each component; bit 0 is System
// 1. An action begins when none is left. An action qualifies when System 1 and
// everything that it rests on answered in time; unqualified() says which did
// not.
//
// What late answers and warnings lead to is decided in violation.c; this file
// carries it out: ask again, which costs a token, go on with what there is,
// begin the task again, or stop.
#include "sim/factory/world.h"

#define PRIMARY 1u // the bit of System 1

static uint32_t bit_of(const td_sim_factory_stream *stream)
{
    return 1u << stream->number;
}

static bool falls_back(const td_sim_factory_robot *robot)
{
    return robot->task->on_miss == TD_CONFIG_MISS_FALLBACK;
}

static bool is_async(const td_sim_factory_robot *robot)
{
    return robot->task->execution == TD_CONFIG_ASYNC;
}

static bool counts(const td_sim_factory_robot *robot, int64_t at_ns)
{
    return at_ns >= robot->world->options->warmup_ns;
}

// Components beside System 1 of which the latest due answer was not in time.
static uint32_t unqualified(const td_sim_factory_robot *robot, int64_t now_ns)
{
    return (robot->missed | td_edge_components_late(&robot->parts, now_ns)) &
           ~PRIMARY;
}

static void send_all(td_sim_factory_robot *robot, uint32_t bits, int64_t now_ns)
{
    for (; bits; bits &= bits - 1)
        td_sim_factory_world_send(&robot->streams[__builtin_ctz(bits)], now_ns);
}

static void ask_system1(td_sim_factory_robot *robot, int64_t now_ns)
{
    robot->asked.planned = (unqualified(robot, now_ns) & robot->goals) == 0;
    robot->stage = TD_SIM_FACTORY_ASKING;
    send_all(robot, PRIMARY, now_ns);
}

// A token is there: System 1 is asked, after what it needs.
static void ask_goals(td_sim_factory_robot *robot, int64_t now_ns)
{
    uint32_t due =
        td_edge_components_due(&robot->parts, now_ns, true, UINT32_MAX);
    send_all(robot, due & ~PRIMARY, now_ns);
    robot->needed = is_async(robot) ? 0 : due & robot->goals & ~PRIMARY;
    if (robot->needed)
        robot->stage = TD_SIM_FACTORY_PLANNING;
    else
        ask_system1(robot, now_ns);
}

// A warning stops a robot whatever its misses lead to.
static bool is_halted(const td_sim_factory_robot *robot, int64_t now_ns)
{
    return robot->warned ||
           (falls_back(robot) && (unqualified(robot, now_ns) & ~robot->goals));
}

static int64_t action_ns(td_sim_factory_robot *robot)
{
    const td_sim_factory_options *options = robot->world->options;
    double off = options->action_jitter *
                 (options->deviates ? td_rand_normal(&robot->rand)
                                    : 2 * td_rand_unit(&robot->rand) - 1);
    double ms = robot->task->pipeline.action_period_ms;
    if (off < -1) off = -1;
    return (int64_t)(ms * (1 + off) * (double)TD_NS_PER_MS);
}

// To where its task begins, which takes as long as an action.
static void go_back(td_sim_factory_robot *robot, int64_t now_ns)
{
    robot->anew = false;
    robot->stage = TD_SIM_FACTORY_RETURNING;
    td_sim_factory_robot_replan(robot);
    td_sim_factory_world_put(robot->world, now_ns + action_ns(robot),
                             TD_SIM_FACTORY_BACK, robot, 0);
}

static void want(td_sim_factory_robot *robot, int64_t now_ns)
{
    if (robot->stopped) return;
    if (robot->anew) {
        go_back(robot, now_ns);
        return;
    }
    if (is_halted(robot, now_ns)) {
        robot->stage = TD_SIM_FACTORY_HALTED;
        return;
    }
    if (!td_edge_rate_allows(&robot->rate, now_ns)) {
        robot->stage = TD_SIM_FACTORY_PACED;
        td_sim_factory_world_put(robot->world, robot->rate.tat_ns,
                                 TD_SIM_FACTORY_ASK, robot, 0);
        return;
    }
    td_edge_rate_take(&robot->rate, now_ns);
    ask_goals(robot, now_ns);
}

void td_sim_factory_robot_ask(td_sim_factory_robot *robot, int64_t now_ns)
{
    if (robot->stage == TD_SIM_FACTORY_PACED) want(robot, now_ns);
}

static void await_check(td_sim_factory_robot *robot)
{
    int64_t next_ns = INT64_MAX;
    for (uint32_t i = 1; i < robot->parts.count; i++)
        if (!(robot->goals & 1u << i) &&
            robot->parts.parts[i].rate.tat_ns < next_ns)
            next_ns = robot->parts.parts[i].rate.tat_ns;
    if (next_ns < INT64_MAX)
        td_sim_factory_world_put(robot->world, next_ns, TD_SIM_FACTORY_CHECK,
                                 robot, 0);
}

void td_sim_factory_robot_check(td_sim_factory_robot *robot, int64_t now_ns)
{
    uint32_t due =
        td_edge_components_due(&robot->parts, now_ns, false, ~robot->goals);
    send_all(robot, due, now_ns);
    await_check(robot);
}

static void begin_action(td_sim_factory_robot *robot,
                         td_sim_factory_action action, int64_t now_ns)
{
    robot->now = action;
    robot->acting = true;
    td_sim_factory_world_put(robot->world, now_ns + action_ns(robot),
                             TD_SIM_FACTORY_ACTED, robot, 0);
    if (is_async(robot) && robot->stage == TD_SIM_FACTORY_IDLE)
        want(robot, now_ns);
}

static void count_action(td_sim_factory_robot *robot, int64_t now_ns)
{
    uint32_t obligations = unqualified(robot, now_ns) & ~robot->goals;
    bool qualifies =
        robot->now.on_time && robot->now.planned && obligations == 0;
    td_sim_factory_sums *sums = robot->world->sums;
    td_sim_trace_line(robot->world->trace, now_ns, "robot %u acted%s",
                      robot->number, qualifies ? "" : ", not qualified");
    if (!counts(robot, now_ns)) return;
    sums->actions[robot->task_number]++;
    sums->qualified[robot->task_number] += qualifies;
}

void td_sim_factory_robot_acted(td_sim_factory_robot *robot, int64_t now_ns)
{
    count_action(robot, now_ns);
    robot->acting = false;
    if (!is_async(robot) || robot->anew) {
        want(robot, now_ns);
    } else if (robot->has_next) {
        robot->has_next = false;
        begin_action(robot, robot->next, now_ns);
    }
}

static void take_action(td_sim_factory_robot *robot, bool on_time,
                        int64_t now_ns)
{
    robot->asked.on_time = on_time;
    robot->stage = TD_SIM_FACTORY_IDLE;
    if (!robot->acting) {
        begin_action(robot, robot->asked, now_ns);
        return;
    }
    robot->next = robot->asked;
    robot->has_next = true;
}

// One thing less that System 1 waits for.
static void take_plan(td_sim_factory_robot *robot, uint32_t bit, int64_t now_ns)
{
    if (!(robot->needed & bit)) return;
    robot->needed &= ~bit;
    if (robot->needed == 0) ask_system1(robot, now_ns);
}

static void go_on(td_sim_factory_stream *stream, bool on_time, int64_t now_ns)
{
    td_sim_factory_robot *robot = stream->robot;
    uint32_t bit = bit_of(stream);
    if (bit == PRIMARY)
        take_action(robot, on_time, now_ns);
    else if (robot->goals & bit)
        take_plan(robot, bit, now_ns);
    else if (robot->stage == TD_SIM_FACTORY_HALTED)
        want(robot, now_ns);
}

static void receive(td_sim_factory_stream *stream,
                    const td_sim_factory_request *request, int64_t now_ns)
{
    td_sim_factory_robot *robot = stream->robot;
    int64_t took_ns = now_ns - request->sent_ns;
    bool on_time = took_ns <= stream->deadline_ns;
    if (counts(robot, request->sent_ns)) {
        td_hist_record(stream->latency, took_ns);
        stream->tally->on_time += on_time;
        stream->tally->late += !on_time;
    }
    td_sim_trace_line(robot->world->trace, now_ns, "robot %u %s after %lld%s",
                      robot->number, stream->component->name,
                      (long long)took_ns, on_time ? "" : ", late");
    robot->missed = on_time ? robot->missed & ~bit_of(stream)
                            : robot->missed | bit_of(stream);
    if (stream->seq == request->seq) {
        td_edge_components_answered(&robot->parts, stream->number);
        stream->waiting = false;
    }
    if (falls_back(robot))
        (void)td_sim_factory_violation_answer(stream, on_time, now_ns);
    td_sim_factory_violation_verdict(stream, now_ns);
    go_on(stream, on_time, now_ns);
}

void td_sim_factory_robot_answered(td_sim_factory_request *request,
                                   int64_t now_ns)
{
    td_sim_factory_stream *stream = request->stream;
    bool goal = stream->robot->goals & bit_of(stream);
    bool given_up = !stream->waiting || stream->seq != request->seq;
    if (!goal || !given_up) receive(stream, request, now_ns);
    td_sim_factory_world_free(stream->robot->world, request);
}

void td_sim_factory_robot_lost(td_sim_factory_request *request, int64_t now_ns)
{
    td_sim_factory_stream *stream = request->stream;
    td_sim_factory_robot *robot = stream->robot;
    // Of what the robot waits for, it notices by itself.
    if (!(robot->goals & bit_of(stream))) {
        robot->missed |= bit_of(stream);
        stream->tally->lost += counts(robot, request->sent_ns);
        if (falls_back(robot))
            (void)td_sim_factory_violation_answer(stream, false, now_ns);
    }
    td_sim_factory_world_free(robot->world, request);
}

// Asks again, which costs a token, or goes on with what there is.
static void fall_back(td_sim_factory_stream *stream, int64_t now_ns)
{
    td_sim_factory_robot *robot = stream->robot;
    bool keeps = stream->component->fallback == TD_CONFIG_USE_LAST_PLAN;
    bool blocks = bit_of(stream) == PRIMARY || (robot->needed & bit_of(stream));
    if (bit_of(stream) != PRIMARY && keeps) {
        take_plan(robot, bit_of(stream), now_ns);
        return;
    }
    robot->parts.parts[stream->number].owed = bit_of(stream) != PRIMARY;
    if (stream->component->fallback == TD_CONFIG_STOP_AND_REPLAN)
        td_sim_factory_robot_replan(robot);
    if (!blocks) return;
    robot->needed = 0;
    want(robot, now_ns);
}

void td_sim_factory_robot_late(td_sim_factory_stream *stream, int64_t now_ns,
                               uint64_t seq)
{
    td_sim_factory_robot *robot = stream->robot;
    if (!stream->waiting || stream->seq != seq) return;
    stream->waiting = false;
    robot->missed |= bit_of(stream);
    stream->tally->late += counts(robot, now_ns - stream->deadline_ns - 1);
    td_sim_trace_line(robot->world->trace, now_ns, "robot %u %s missed",
                      robot->number, stream->component->name);
    if (!td_sim_factory_violation_answer(stream, false, now_ns))
        fall_back(stream, now_ns);
}

void td_sim_factory_robot_back(td_sim_factory_robot *robot, int64_t now_ns)
{
    if (robot->stage != TD_SIM_FACTORY_RETURNING) return;
    robot->stage = TD_SIM_FACTORY_IDLE;
    want(robot, now_ns);
}

void td_sim_factory_robot_replan(td_sim_factory_robot *robot)
{
    for (uint32_t i = 1; i < robot->parts.count; i++)
        if (robot->goals & 1u << i) robot->parts.parts[i].owed = true;
}

// Answers to what it has asked no longer matter.
static void give_up(td_sim_factory_robot *robot)
{
    for (uint32_t i = 0; i < robot->parts.count; i++)
        if (robot->goals & 1u << i) robot->streams[i].waiting = false;
    robot->needed = 0;
    robot->has_next = false;
    robot->stage = TD_SIM_FACTORY_IDLE;
}

void td_sim_factory_robot_restart(td_sim_factory_robot *robot, int64_t now_ns)
{
    if (robot->stopped || robot->anew ||
        robot->stage == TD_SIM_FACTORY_RETURNING)
        return;
    robot->world->sums->restarts[robot->task_number]++;
    td_sim_trace_line(robot->world->trace, now_ns, "robot %u begins again",
                      robot->number);
    give_up(robot);
    robot->anew = true;
    if (!robot->acting) want(robot, now_ns);
}

void td_sim_factory_robot_stop(td_sim_factory_robot *robot, int64_t now_ns)
{
    if (robot->stopped) return;
    robot->world->sums->stopped[robot->task_number]++;
    td_sim_trace_line(robot->world->trace, now_ns, "robot %u stops",
                      robot->number);
    give_up(robot);
    robot->stopped = true;
}

static double phase_of(td_sim_factory_robot *robot, double granted)
{
    return robot->world->options->unphased ? td_rand_unit(&robot->rand)
                                           : granted;
}

static td_edge_component pace_of(td_sim_factory_stream *stream)
{
    bool primary = stream->number == 0;
    return (td_edge_component){
        .rate_hz = primary || stream->plan->every ? 0 : stream->plan->rate_hz,
        .every = primary ? 0 : stream->plan->every,
        .phase = phase_of(stream->robot, stream->plan->phase),
        .deadline_ns = stream->deadline_ns,
    };
}

td_err td_sim_factory_robot_begin(td_sim_factory_robot *robot)
{
    const td_plan_robot *plan = &robot->world->plan->robots[robot->number];
    td_edge_component paces[TD_WIRE_MAX_COMPONENTS] = {0};
    for (uint32_t i = 0; i < plan->stream_count; i++)
        paces[i] = pace_of(&robot->streams[i]);
    double hz = robot->streams[0].plan->rate_hz;
    int64_t saved_ns = hz > 0 ? (int64_t)((double)TD_NS_PER_S / hz) : 0;
    td_sim_factory_violation_begin(robot);
    TD_TRY(td_edge_components_init(&robot->parts, paces, plan->stream_count, 0,
                                   0));
    TD_TRY(td_edge_rate_init(&robot->rate, hz, paces[0].phase, saved_ns, 0));
    double loose_ms = robot->task->pipeline.action_period_ms * paces[0].phase;
    robot->stage = TD_SIM_FACTORY_PACED;
    td_sim_factory_world_put(robot->world,
                             hz > 0 ? robot->rate.tat_ns
                                    : (int64_t)(loose_ms * TD_NS_PER_MS),
                             TD_SIM_FACTORY_ASK, robot, 0);
    await_check(robot);
    return TD_OK;
}

// SPDX-License-Identifier: Apache-2.0
// Admits one robot more to a plan that is at work, without moving a model or
// another robot.
//
// For each component of the robot's task the server of the right pool with the
// most room is chosen. A robot asks at its class's rate. If its System 1 server
// has no room for that, all robots of that server are slowed down by the same
// factor so that it fits, unless a class would fall below its minimum; any
// other component without room means that only a new plan helps. The newcomer's
// own rate is capped by what its loop can do with the latencies that result.
//
// Before anything is changed the gain is set against the loss: what the
// newcomer adds, less what those who share its System 1 server lose, must be at
// least WORTH_IT of what a new plan would give, where the caller knows that.
// Only then the robot and its streams enter the plan, each stream with the
// phase in the middle of the largest gap of its server, and the latencies and
// rates of the whole plan are computed again.
//
// The state (admit/admission.h) is a copy of the plan with what each server can
// take, so that one admission takes microseconds. Pure; one thread at a time.
#include "plan/admit/admit.h"

#include "plan/admit/admission.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WORTH_IT 0.9 // of a new plan
#define PHASES 256   // as finely as a newcomer's is chosen

// A robot on its way in.
typedef struct newcomer {
    uint32_t task;
    const td_config_factory_task *at;
    double rate_hz;    // of its actions
    uint32_t *servers; // of each component
    double squeeze; // what the robots of its System 1 server keep of their rate
} newcomer;

static const char *const texts[] = {
#define TD_PLAN_VERDICT_TEXT(name, text) text,
    TD_PLAN_VERDICTS(TD_PLAN_VERDICT_TEXT)
#undef TD_PLAN_VERDICT_TEXT
};

const char *td_plan_verdict_text(td_plan_verdict verdict)
{
    return texts[verdict];
}

// The server of a pool with the most room.
static uint32_t roomiest(const td_plan_admission *admission,
                         const td_plan_pool *pool, double *ret_room_hz)
{
    uint32_t best = TD_PLAN_NONE;
    *ret_room_hz = -INFINITY;
    for (uint32_t i = 0; i < admission->plan->server_count; i++) {
        const td_plan_server *server = &admission->plan->servers[i];
        double room_hz = server->capacity_hz - server->rate_hz;
        if (admission->pools[i] != pool || room_hz <= *ret_room_hz) continue;
        *ret_room_hz = room_hz;
        best = i;
    }
    return best;
}

static double asks_hz(const td_config_factory_component *part, double rate_hz)
{
    return part->per_action > 0 ? part->per_action * rate_hz : part->rate_hz;
}

// What the robots of a class have at least, each.
static double floor_hz(const td_plan_admission *admission, uint32_t task)
{
    const td_plan_class *class = &admission->plan->classes[task];
    const td_config_factory_task *at =
        &admission->problem->factory->tasks[task];
    double spare_hz = class->rate_hz * class->robots - at->min_throughput;
    return spare_hz > 0 ? 0 : class->rate_hz;
}

// How much slower its System 1 server's robots become so that it fits in too.
static bool squeeze(const td_plan_admission *admission, newcomer *robot,
                    uint32_t server, td_plan_admit_result *result)
{
    const td_plan_server *at = &admission->plan->servers[server];
    double keep = at->capacity_hz / (at->rate_hz + robot->rate_hz);
    for (uint32_t i = 0; i < admission->plan->class_count; i++)
        if (floor_hz(admission, i) > 0) {
            (void)snprintf(result->reason, sizeof result->reason,
                           "no server of %s has room, and %s has no more than "
                           "its minimum",
                           at->model, admission->plan->classes[i].task);
            return false;
        }
    robot->squeeze = keep;
    robot->rate_hz *= keep;
    result->verdict = TD_PLAN_SLOWER;
    (void)snprintf(
        result->reason, sizeof result->reason,
        "%s has no room at %.3g Hz: its robots keep %.0f %% of their "
        "rates",
        at->id, robot->rate_hz / keep, 100 * keep);
    return true;
}

static bool find_servers(const td_plan_admission *admission, newcomer *robot,
                         td_plan_admit_result *result)
{
    for (uint32_t i = 0; i < robot->at->component_count; i++) {
        const td_config_factory_component *part = &robot->at->components[i];
        const td_plan_pool *pool =
            td_plan_admission_pool(admission->problem, robot->task, i);
        double room_hz;
        uint32_t server =
            pool ? roomiest(admission, pool, &room_hz) : TD_PLAN_NONE;
        if (server == TD_PLAN_NONE) {
            (void)snprintf(result->reason, sizeof result->reason,
                           "no server has %s for %s", part->model, part->name);
            return false;
        }
        robot->servers[i] = server;
        if (asks_hz(part, robot->rate_hz) <= room_hz) continue;
        if (i == 0) {
            if (!squeeze(admission, robot, server, result)) return false;
            continue;
        }
        (void)snprintf(result->reason, sizeof result->reason,
                       "%s: the server of %s with the most room, %s, has %.3g "
                       "Hz of it, and %.3g are needed",
                       part->name, part->model,
                       admission->plan->servers[server].id, fmax(room_hz, 0),
                       asks_hz(part, robot->rate_hz));
        return false;
    }
    return true;
}

// The middle of the largest gap between the phases of a server's streams.
static double free_phase(const td_plan *plan, uint32_t server)
{
    bool taken[PHASES] = {false};
    size_t widest = 0;
    size_t best = 0;
    for (size_t i = 0; i < plan->stream_count; i++)
        if (plan->streams[i].server == server)
            taken[(size_t)(plan->streams[i].phase * PHASES) % PHASES] = true;
    for (size_t from = 0; from < PHASES; from++) {
        size_t gap = 0;
        while (gap < PHASES && !taken[(from + gap) % PHASES])
            gap++;
        if (gap <= widest) continue;
        widest = gap;
        best = from + gap / 2;
    }
    return (double)(best % PHASES) / PHASES;
}

// Room for one robot more, and its streams.
static td_err grow(td_plan_admission *admission, size_t streams)
{
    td_plan *plan = admission->plan;
    if (plan->robot_count == admission->robot_room) {
        size_t room = 2 * admission->robot_room + 8;
        td_plan_robot *robots =
            td_arena_alloc(admission->arena, room, sizeof *robots);
        if (!robots) return TD_ERR_NOMEM;
        memcpy(robots, plan->robots, plan->robot_count * sizeof *robots);
        plan->robots = robots;
        admission->robot_room = room;
    }
    if (plan->stream_count + streams > admission->stream_room) {
        size_t room = 2 * admission->stream_room + 8 * streams;
        td_plan_stream *grown =
            td_arena_alloc(admission->arena, room, sizeof *grown);
        if (!grown) return TD_ERR_NOMEM;
        memcpy(grown, plan->streams, plan->stream_count * sizeof *grown);
        plan->streams = grown;
        admission->stream_room = room;
    }
    return TD_OK;
}

static void slow_down(td_plan_admission *admission, uint32_t server,
                      double keep)
{
    td_plan *plan = admission->plan;
    for (size_t i = 0; i < plan->robot_count; i++) {
        const td_plan_robot *robot = &plan->robots[i];
        if (robot->stream_count == 0 ||
            plan->streams[robot->first_stream].server != server)
            continue;
        const td_config_factory_task *task =
            &admission->problem->factory->tasks[robot->task];
        for (uint32_t j = 0; j < robot->stream_count; j++) {
            td_plan_stream *stream = &plan->streams[robot->first_stream + j];
            if (task->components[j].per_action == 0) continue;
            plan->servers[stream->server].rate_hz -=
                stream->rate_hz * (1 - keep);
            stream->rate_hz *= keep;
        }
    }
}

static uint32_t standby_for(const td_plan *plan, uint32_t server)
{
    for (size_t i = 0; i < plan->stream_count; i++)
        if (plan->streams[i].server == server) return plan->streams[i].standby;
    return TD_PLAN_NONE;
}

static void add_stream(td_plan_admission *admission, const newcomer *robot,
                       uint32_t i)
{
    td_plan *plan = admission->plan;
    const td_config_factory_component *part = &robot->at->components[i];
    td_plan_server *server = &plan->servers[robot->servers[i]];
    double phase = free_phase(plan, robot->servers[i]);
    uint32_t standby = standby_for(plan, robot->servers[i]);
    server->rate_hz += asks_hz(part, robot->rate_hz);
    admission->streams_of[robot->servers[i]]++;
    plan->streams[plan->stream_count++] = (td_plan_stream){
        .robot = (uint32_t)plan->robot_count,
        .component = i,
        .name = part->name,
        .server = robot->servers[i],
        .standby = standby,
        .rate_hz = asks_hz(part, robot->rate_hz),
        .every = part->per_action > 0 && i > 0
                     ? (uint32_t)(1 / part->per_action + 0.5)
                     : 0,
        .phase = phase,
        .deadline_ms = part->slo_ms,
    };
}

static td_err enter(td_plan_admission *admission, const newcomer *robot,
                    const char *name, const char *key)
{
    td_plan *plan = admission->plan;
    td_plan_robot fresh = {
        .name = td_arena_copy(admission->arena, name, strlen(name)),
        .key = td_arena_copy(admission->arena, key, strlen(key)),
        .task = robot->task,
        .first_stream = (uint32_t)plan->stream_count,
        .stream_count = (uint32_t)robot->at->component_count,
    };
    if (!fresh.name || !fresh.key) return TD_ERR_NOMEM;
    TD_TRY(grow(admission, robot->at->component_count));
    if (robot->squeeze < 1)
        slow_down(admission, robot->servers[0], robot->squeeze);
    for (uint32_t i = 0; i < robot->at->component_count; i++)
        add_stream(admission, robot, i);
    plan->robots[plan->robot_count++] = fresh;
    plan->classes[robot->task].robots++;
    return TD_OK;
}

static bool is_there(const td_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->robot_count; i++)
        if (strcmp(plan->robots[i].name, name) == 0) return true;
    return false;
}

// What a server's requests take when so many more streams ask it so much more.
// False when it cannot.
static bool estimate(const td_plan_admission *admission, uint32_t server,
                     uint32_t more, double more_hz, td_plan_point *ret_point)
{
    uint32_t streams = admission->streams_of[server] + more;
    double rate_hz = admission->plan->servers[server].rate_hz + more_hz;
    return td_plan_problem_estimate(
        admission->problem, admission->pools[server], admission->types[server],
        streams, rate_hz, rate_hz / streams, ret_point);
}

static td_plan_point point_at(const td_plan_admission *admission,
                              uint32_t server, uint32_t more, double more_hz)
{
    td_plan_point point =
        admission->pools[server]->curves[admission->types[server]]->points[0];
    (void)estimate(admission, server, more, more_hz, &point);
    return point;
}

// What the newcomer's loop allows; it asks no more often than that.
static void keep_to_loop(const td_plan_admission *admission, newcomer *robot)
{
    double latency_ms = 0;
    for (uint32_t i = 0; i < robot->at->component_count; i++) {
        const td_config_factory_component *part = &robot->at->components[i];
        const td_plan_point point = point_at(admission, robot->servers[i], 1,
                                             asks_hz(part, robot->rate_hz));
        latency_ms += part->per_action *
                      td_plan_problem_loop_ms(admission->problem, &point);
    }
    robot->rate_hz =
        fmin(robot->rate_hz, td_plan_problem_loop_hz(admission->problem,
                                                     robot->task, latency_ms));
}

// Actions a second of a robot that asks as often as its clock and its loop let
// it, when its System 1 answers in so much time.
static double acts_hz(const td_plan_admission *admission,
                      const td_plan_robot *robot, double clock_hz,
                      const td_plan_point *system1)
{
    const td_config_factory_task *task =
        &admission->problem->factory->tasks[robot->task];
    double latency_ms = 0;
    for (uint32_t i = 0; i < robot->stream_count; i++) {
        const td_plan_stream *stream =
            &admission->plan->streams[robot->first_stream + i];
        const td_plan_point point =
            i == 0 ? *system1
                   : (td_plan_point){.mean_ms = stream->mean_ms,
                                     .tail_ms = stream->tail_ms};
        latency_ms += task->components[i].per_action *
                      td_plan_problem_loop_ms(admission->problem, &point);
    }
    return fmin(clock_hz, td_plan_problem_loop_hz(admission->problem,
                                                  robot->task, latency_ms));
}

// What the robots that share its System 1 server lose, weighted.
static double cost_hz(const td_plan_admission *admission, const newcomer *robot)
{
    const td_plan *plan = admission->plan;
    const td_plan_point before = point_at(admission, robot->servers[0], 0, 0);
    const td_plan_point after =
        point_at(admission, robot->servers[0], 1,
                 robot->squeeze < 1 ? 0 : robot->rate_hz);
    double sum = 0;
    for (size_t i = 0; i < plan->robot_count; i++) {
        const td_plan_robot *other = &plan->robots[i];
        if (other->stream_count == 0 ||
            plan->streams[other->first_stream].server != robot->servers[0])
            continue;
        double clock_hz = plan->streams[other->first_stream].rate_hz;
        sum += plan->classes[other->task].value *
               (acts_hz(admission, other, clock_hz, &before) -
                acts_hz(admission, other, clock_hz * robot->squeeze, &after));
    }
    return sum;
}

// How servers run their batches, for as many as ask them now.
static void rebatch(td_plan_admission *admission)
{
    td_plan_point point;
    if (!admission->problem->options.staggered) return;
    for (uint32_t i = 0; i < admission->plan->server_count; i++)
        if (admission->pools[i] && estimate(admission, i, 0, 0, &point))
            td_plan_point_use(&point, &admission->plan->servers[i]);
}

// Latencies of all servers as they are now, and what all robots make of them.
static void recount(td_plan_admission *admission)
{
    td_plan *plan = admission->plan;
    rebatch(admission);
    for (size_t i = 0; i < plan->stream_count; i++) {
        td_plan_stream *stream = &plan->streams[i];
        const td_plan_point point = point_at(admission, stream->server, 0, 0);
        stream->mean_ms = point.mean_ms;
        stream->tail_ms = point.tail_ms;
    }
    plan->actions_hz = plan->value_hz = 0;
    for (size_t i = 0; i < plan->class_count; i++)
        plan->classes[i].rate_hz = 0;
    for (size_t i = 0; i < plan->robot_count; i++) {
        const td_plan_robot *robot = &plan->robots[i];
        if (robot->stream_count == 0) continue;
        const td_plan_stream *first = &plan->streams[robot->first_stream];
        td_plan_class *class = &plan->classes[robot->task];
        const td_plan_point system1 = {.mean_ms = first->mean_ms,
                                       .tail_ms = first->tail_ms};
        double rate_hz = acts_hz(admission, robot, first->rate_hz, &system1);
        class->rate_hz += rate_hz / class->robots;
        plan->actions_hz += rate_hz;
        plan->value_hz += class->value * rate_hz;
    }
}

td_err td_plan_admit(td_plan_admission *admission, const char *name,
                     const char *key, uint32_t task, double global_hz,
                     td_plan_admit_result *ret_result)
{
    uint32_t servers[TD_PLAN_MOST_COMPONENTS] = {0};
    td_plan_admit_result result = {.verdict = TD_PLAN_ADMITTED,
                                   .before_hz = admission->plan->value_hz,
                                   .after_hz = admission->plan->value_hz};
    if (task >= admission->problem->factory->task_count) return TD_ERR_INVALID;
    if (is_there(admission->plan, name)) return TD_ERR_EXISTS;
    newcomer robot = {
        .task = task,
        .at = &admission->problem->factory->tasks[task],
        .rate_hz = admission->plan->classes[task].rate_hz,
        .servers = servers,
        .squeeze = 1,
    };
    if (robot.at->component_count > TD_PLAN_MOST_COMPONENTS)
        return TD_ERR_INVALID;
    if (!find_servers(admission, &robot, &result)) {
        result.verdict = TD_PLAN_REPLAN;
        *ret_result = result;
        return TD_OK;
    }
    keep_to_loop(admission, &robot);
    double after_hz = admission->plan->value_hz +
                      robot.at->value * robot.rate_hz -
                      cost_hz(admission, &robot);
    if (after_hz < WORTH_IT * global_hz) {
        result.verdict = TD_PLAN_REPLAN;
        (void)snprintf(result.reason, sizeof result.reason,
                       "it would be %.0f %% of what a new plan gives",
                       100 * after_hz / global_hz);
        *ret_result = result;
        return TD_OK;
    }
    TD_TRY(enter(admission, &robot, name, key));
    recount(admission);
    result.after_hz = admission->plan->value_hz;
    *ret_result = result;
    return TD_OK;
}

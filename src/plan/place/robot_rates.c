// SPDX-License-Identifier: Apache-2.0
// Rates and phases of single robots.
//
// The search gives all robots of a class one rate, the one that its slowest
// server allows. Here those on emptier servers become faster, server by server,
// as far as their own loops, their deadlines and the other servers that they
// ask go.
//
// Robots of several classes on one server first get one rate where they can,
// because phases stay apart only where periods are the same: that of the
// fastest, or each its own without phases, or that of the slowest, whichever
// holds first.
//
// What a robot is granted is a little more than what its loop can take, where
// servers could answer that: a clock that gives exactly what a loop can take
// loses whatever the loop's jitter leaves over.
//
// Phases are spread evenly over the streams of each server; streams that one
// batch waits for have one phase. Pure; everything is written into the draft.
#include "plan/place/assemble.h"

#include <math.h>
#include <string.h>

#define HALVINGS 12

static const td_config_factory_component *part_of(const td_plan_draft *draft,
                                                  const td_plan_stream *stream)
{
    uint32_t task = draft->plan->robots[stream->robot].task;
    return &draft->problem->factory->tasks[task].components[stream->component];
}

static void count_loads(td_plan_draft *draft)
{
    const td_plan *plan = draft->plan;
    memset(draft->loads_hz, 0, plan->server_count * sizeof(double));
    for (size_t i = 0; i < plan->stream_count; i++) {
        const td_plan_stream *stream = &plan->streams[i];
        const td_config_factory_component *part = part_of(draft, stream);
        if (stream->server == TD_PLAN_NONE) continue;
        draft->loads_hz[stream->server] +=
            part->per_action > 0
                ? part->per_action * draft->rates_hz[stream->robot]
                : part->rate_hz;
    }
}

bool td_plan_draft_point(const td_plan_draft *draft, uint32_t server,
                         double rate_hz, td_plan_point *ret_point)
{
    uint32_t streams = draft->streams_of[server];
    if (draft->unlike[server])
        return td_plan_curve_at(
            draft->pools[server]->unlike[draft->types[server]], rate_hz,
            ret_point);
    return td_plan_problem_estimate(draft->problem, draft->pools[server],
                                    draft->types[server], streams, rate_hz,
                                    streams ? rate_hz / streams : 1, ret_point);
}

// What the inference of an action takes a robot; false when a server fails.
static bool latency_ms(const td_plan_draft *draft, uint32_t robot,
                       double *ret_ms)
{
    const td_plan_robot *at = &draft->plan->robots[robot];
    *ret_ms = 0;
    for (uint32_t i = 0; i < at->stream_count; i++) {
        const td_plan_stream *stream =
            &draft->plan->streams[at->first_stream + i];
        const td_config_factory_component *part = part_of(draft, stream);
        td_plan_point point;
        if (part->per_action == 0) continue;
        if (!td_plan_draft_point(draft, stream->server,
                                 draft->loads_hz[stream->server], &point))
            return false;
        *ret_ms +=
            part->per_action * td_plan_problem_loop_ms(draft->problem, &point);
    }
    return true;
}

// Whether a robot's actions come from this server.
static bool acts_by(const td_plan *plan, const td_plan_robot *robot,
                    uint32_t server)
{
    return robot->stream_count > 0 &&
           plan->streams[robot->first_stream].server == server;
}

// Makes the robots whose actions come from this server faster, or slower.
static void scale(td_plan_draft *draft, uint32_t server, double factor)
{
    const td_plan *plan = draft->plan;
    for (uint32_t i = 0; i < plan->robot_count; i++) {
        const td_plan_robot *robot = &plan->robots[i];
        if (!acts_by(plan, robot, server)) continue;
        for (uint32_t j = 0; j < robot->stream_count; j++) {
            const td_plan_stream *stream =
                &plan->streams[robot->first_stream + j];
            draft->loads_hz[stream->server] +=
                part_of(draft, stream)->per_action * draft->rates_hz[i] *
                (factor - 1);
        }
        draft->rates_hz[i] *= factor;
    }
}

// Whether all of them can act as they do now; without `loops`, whether their
// servers could answer them.
static bool holds(const td_plan_draft *draft, uint32_t server, bool loops)
{
    const td_plan *plan = draft->plan;
    double took_ms;
    for (uint32_t i = 0; i < plan->robot_count; i++) {
        const td_plan_robot *robot = &plan->robots[i];
        if (!acts_by(plan, robot, server)) continue;
        if (!latency_ms(draft, i, &took_ms)) return false;
        if (loops &&
            draft->rates_hz[i] >
                td_plan_problem_loop_hz(draft->problem, robot->task, took_ms))
            return false;
    }
    return true;
}

// The slowest and the fastest of the robots whose actions come from a server.
static void find_range(const td_plan_draft *draft, uint32_t server,
                       double *ret_least, double *ret_most)
{
    const td_plan *plan = draft->plan;
    *ret_least = INFINITY;
    *ret_most = 0;
    for (uint32_t i = 0; i < plan->robot_count; i++) {
        const td_plan_robot *robot = &plan->robots[i];
        if (!acts_by(plan, robot, server)) continue;
        *ret_least = fmin(*ret_least, draft->rates_hz[i]);
        *ret_most = fmax(*ret_most, draft->rates_hz[i]);
    }
}

// Gives the robots of a server one rate. A class with a minimum keeps its own
// where that is more.
static void set_all(td_plan_draft *draft, uint32_t server, double rate_hz)
{
    const td_plan *plan = draft->plan;
    for (uint32_t i = 0; i < plan->robot_count; i++) {
        const td_plan_robot *robot = &plan->robots[i];
        if (!acts_by(plan, robot, server)) continue;
        if (rate_hz < draft->rates_hz[i] &&
            draft->problem->factory->tasks[robot->task].min_throughput > 0)
            continue;
        draft->rates_hz[i] = rate_hz;
    }
    count_loads(draft);
}

// Whether they hold with rates of their own, without phases.
static bool holds_unlike(td_plan_draft *draft, uint32_t server)
{
    const td_plan_curve *curve =
        draft->pools[server]->unlike[draft->types[server]];
    if (!curve) return false;
    draft->unlike[server] = true;
    if (holds(draft, server, true)) {
        draft->plan->servers[server].capacity_hz = curve->capacity_hz;
        return true;
    }
    draft->unlike[server] = false;
    return false;
}

// Robots of several classes on one server get one rate where they can, because
// phases stay apart only where periods are the same: that of the fastest. Or
// they keep their own, or else get that of the slowest.
static void level(td_plan_draft *draft, uint32_t server)
{
    double least;
    double most;
    find_range(draft, server, &least, &most);
    if (least >= most) return;
    memcpy(draft->saved_hz, draft->rates_hz,
           draft->plan->robot_count * sizeof *draft->saved_hz);
    set_all(draft, server, most);
    if (holds(draft, server, true)) return;
    memcpy(draft->rates_hz, draft->saved_hz,
           draft->plan->robot_count * sizeof *draft->saved_hz);
    count_loads(draft);
    if (!holds_unlike(draft, server)) set_all(draft, server, least);
}

static void speed_up(td_plan_draft *draft, uint32_t server)
{
    double low = 1;
    double high = 2;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        scale(draft, server, middle);
        bool fine = holds(draft, server, true);
        scale(draft, server, 1 / middle);
        if (fine)
            low = middle;
        else
            high = middle;
    }
    scale(draft, server, low);
}

// Whether a robot's loop is all that holds it back.
static bool is_by_loop(const td_plan_draft *draft, uint32_t robot)
{
    double took_ms;
    if (!latency_ms(draft, robot, &took_ms)) return false;
    double loop_hz = td_plan_problem_loop_hz(
        draft->problem, draft->plan->robots[robot].task, took_ms);
    return draft->rates_hz[robot] * (1 + draft->problem->options.margin) >=
           loop_hz;
}

static void set_rates(td_plan_draft *draft, uint32_t robot, double granted_hz)
{
    const td_plan_robot *at = &draft->plan->robots[robot];
    for (uint32_t i = 0; i < at->stream_count; i++) {
        td_plan_stream *stream = &draft->plan->streams[at->first_stream + i];
        const td_config_factory_component *part = part_of(draft, stream);
        if (part->per_action > 0)
            stream->rate_hz = part->per_action * granted_hz;
    }
}

// A clock that gives exactly what a loop can take loses what the loop's jitter
// leaves over, so it gives a little more where the servers could answer that.
static void grant(td_plan_draft *draft, uint32_t server)
{
    double more = 1 + draft->problem->options.margin;
    const td_plan *plan = draft->plan;
    scale(draft, server, more);
    bool fine = holds(draft, server, false);
    scale(draft, server, 1 / more);
    for (uint32_t i = 0; i < plan->robot_count; i++) {
        const td_plan_robot *robot = &plan->robots[i];
        if (!acts_by(plan, robot, server)) continue;
        set_rates(draft, i,
                  draft->rates_hz[i] *
                      (fine && is_by_loop(draft, i) ? more : 1));
    }
}

void td_plan_robot_rates(td_plan_draft *draft)
{
    const td_plan *plan = draft->plan;
    count_loads(draft);
    if (!draft->problem->options.capped) return;
    for (uint32_t i = 0; i < plan->server_count; i++)
        if (draft->problem->options.staggered) level(draft, i);
    for (uint32_t i = 0; i < plan->server_count; i++)
        if (draft->problem->options.staggered && !plan->servers[i].standby)
            speed_up(draft, i);
    for (uint32_t i = 0; i < plan->server_count; i++)
        grant(draft, i);
}

// Those that a batch waits for have one phase.
static void spread(td_plan_draft *draft, uint32_t server)
{
    td_plan *plan = draft->plan;
    const td_plan_server *on = &plan->servers[server];
    uint32_t together = on->wait == TD_CONFIG_WAIT_FIXED ? on->batch_most : 1;
    uint32_t at = 0;
    for (size_t i = 0; i < plan->stream_count; i++) {
        if (plan->streams[i].server != server) continue;
        plan->streams[i].phase =
            (double)(at - at % together) / draft->streams_of[server];
        at++;
    }
}

void td_plan_robot_phases(td_plan_draft *draft)
{
    if (!draft->problem->options.staggered) return;
    for (uint32_t i = 0; i < draft->plan->server_count; i++)
        spread(draft, i);
}

// SPDX-License-Identifier: Apache-2.0
#include "sim/factory/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void td_sim_factory_world_put(td_sim_factory_world *world, int64_t at_ns,
                              td_sim_factory_kind kind, void *subject,
                              uint64_t tag)
{
    td_sim_factory_events_put(
        &world->events,
        &(td_sim_factory_event){
            .at_ns = at_ns, .subject = subject, .tag = tag, .kind = kind});
}

int64_t td_sim_factory_world_delay_ns(td_sim_factory_robot *robot)
{
    const td_sim_factory_world *world = robot->world;
    double off = 2 * td_rand_unit(&robot->rand) - 1;
    int64_t ns = world->way_ns +
                 (int64_t)((double)world->options->network_jitter_ns * off);
    return ns > 0 ? ns : 0;
}

static td_sim_factory_request *request_new(td_sim_factory_world *world)
{
    td_sim_factory_request *request = world->spare;
    if (request) {
        world->spare = request->next;
        return request;
    }
    request = calloc(1, sizeof *request);
    if (!request) {
        world->err = TD_ERR_NOMEM;
        return NULL;
    }
    request->older = world->requests;
    world->requests = request;
    return request;
}

void td_sim_factory_world_free(td_sim_factory_world *world,
                               td_sim_factory_request *request)
{
    request->next = world->spare;
    world->spare = request;
}

void td_sim_factory_world_send(td_sim_factory_stream *stream, int64_t now_ns)
{
    td_sim_factory_robot *robot = stream->robot;
    td_sim_factory_world *world = robot->world;
    td_sim_factory_request *request = request_new(world);
    if (!request) return;
    request->stream = stream;
    request->seq = stream->seq = ++world->last_seq;
    request->sent_ns = now_ns;
    stream->waiting = true;
    td_sim_factory_world_put(world,
                             now_ns + td_sim_factory_world_delay_ns(robot),
                             TD_SIM_FACTORY_ARRIVES, request, 0);
    bool waits = robot->goals & 1u << stream->number;
    if (waits && robot->task->on_miss == TD_CONFIG_MISS_FALLBACK)
        td_sim_factory_world_put(world, now_ns + stream->deadline_ns + 1,
                                 TD_SIM_FACTORY_LATE, stream, request->seq);
    td_sim_trace_line(world->trace, now_ns, "robot %u asks %s", robot->number,
                      stream->component->name);
}

static bool same_gpu(const td_plan_server *a, const td_plan_server *b)
{
    return a->gpu == b->gpu && strcmp(a->node, b->node) == 0;
}

// The GPU of a server, which has more than one where an earlier one is there.
static td_sim_factory_gpu *gpu_of(td_sim_factory_world *world, uint32_t server)
{
    const td_plan_server *plans = world->plan->servers;
    for (uint32_t i = 0; i < server; i++)
        if (same_gpu(&plans[i], &plans[server])) return world->servers[i].gpu;
    td_sim_factory_gpu *gpu = &world->gpus[world->gpu_count++];
    gpu->world = world;
    gpu->servers = calloc(world->plan->server_count, sizeof *gpu->servers);
    return gpu->servers ? gpu : NULL;
}

static td_err open_server(td_sim_factory_world *world, uint32_t number,
                          td_errinfo *info)
{
    td_sim_factory_server *server = &world->servers[number];
    *server = (td_sim_factory_server){.world = world, .number = number};
    server->gpu = gpu_of(world, number);
    if (!server->gpu) return TD_ERR_NOMEM;
    server->gpu->servers[server->gpu->server_count++] = server;
    return td_sim_factory_server_open(server, info);
}

static td_err join(td_sim_factory_stream *stream)
{
    const td_sched_member member = {.model = stream->server->model,
                                    .most_urgency = 1,
                                    .budget_ns = stream->deadline_ns};
    return td_server_dispatch_join(stream->server->dispatch, &member,
                                   &stream->member);
}

static td_err make_stream(td_sim_factory_robot *robot, size_t number)
{
    td_sim_factory_world *world = robot->world;
    const td_plan_stream *plan = &world->plan->streams[number];
    td_sim_factory_stream *stream = &world->streams[number];
    *stream = (td_sim_factory_stream){
        .robot = robot,
        .server = &world->servers[plan->server],
        .component = &robot->task->components[plan->component],
        .plan = plan,
        .tally = &world->sums->streams[number],
        .latency =
            &world->sums
                 ->latencies[robot->task_number * TD_WIRE_MAX_COMPONENTS +
                             plan->component],
        .number = plan->component,
        .deadline_ns = (int64_t)(plan->deadline_ms * (double)TD_NS_PER_MS),
    };
    if (stream->component->per_action > 0)
        robot->goals |= 1u << plan->component;
    return join(stream);
}

static td_err make_robot(td_sim_factory_world *world, uint32_t number)
{
    const td_plan_robot *plan = &world->plan->robots[number];
    td_sim_factory_robot *robot = &world->robots[number];
    *robot = (td_sim_factory_robot){
        .world = world,
        .task = &world->factory->tasks[plan->task],
        .streams = &world->streams[plan->first_stream],
        .number = number,
        .task_number = plan->task,
    };
    td_rand_fork(&world->seed, number, &robot->rand);
    for (uint32_t i = 0; i < plan->stream_count; i++)
        TD_TRY(make_stream(robot, plan->first_stream + i));
    return plan->stream_count > 0 ? td_sim_factory_robot_begin(robot) : TD_OK;
}

td_err td_sim_factory_world_init(td_sim_factory_world *world, uint64_t seed,
                                 td_errinfo *info)
{
    const td_plan *plan = world->plan;
    double overhead_ms = world->factory->server_cluster.overhead_ms;
    world->way_ns = (int64_t)(overhead_ms / 2 * (double)TD_NS_PER_MS);
    td_rand_init(&world->seed, seed);
    world->robots = calloc(plan->robot_count, sizeof *world->robots);
    world->streams = calloc(plan->stream_count, sizeof *world->streams);
    world->servers = calloc(plan->server_count, sizeof *world->servers);
    world->gpus = calloc(plan->server_count, sizeof *world->gpus);
    if (!world->robots || !world->streams || !world->servers || !world->gpus)
        return TD_ERR_NOMEM;
    for (uint32_t i = 0; i < plan->server_count; i++)
        TD_TRY(open_server(world, i, info));
    for (uint32_t i = 0; i < plan->robot_count; i++)
        TD_TRY(make_robot(world, i));
    return world->events.err;
}

void td_sim_factory_world_done(td_sim_factory_world *world)
{
    for (uint32_t i = 0; world->servers && i < world->plan->server_count; i++)
        if (world->servers[i].dispatch)
            td_server_dispatch_free(world->servers[i].dispatch);
    for (uint32_t i = 0; i < world->gpu_count; i++)
        free(world->gpus[i].servers);
    while (world->requests) {
        td_sim_factory_request *older = world->requests->older;
        free(world->requests);
        world->requests = older;
    }
    td_sim_factory_events_done(&world->events);
    free(world->robots);
    free(world->streams);
    free(world->servers);
    free(world->gpus);
}

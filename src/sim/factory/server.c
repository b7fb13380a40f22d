// SPDX-License-Identifier: Apache-2.0
// One model on one GPU: the scheduler and arbiter of a real server before an
// engine that only takes time.
#include "sim/factory/world.h"

#include "sched/strategy/heap.h"

static td_sched_batch_rule rule_of(const td_plan_server *plan, uint32_t most)
{
    return (td_sched_batch_rule){
        .wait = (td_sched_batch_wait)plan->wait,
        .most = plan->batch_most > 0 && plan->batch_most < most
                    ? plan->batch_most
                    : most,
        .wait_ns = (int64_t)(plan->wait_ms * (double)TD_NS_PER_MS),
    };
}

static td_server_device_settings
device_settings(const td_sim_factory_server *server)
{
    const td_sim_factory_world *world = server->world;
    td_server_device_settings settings = td_server_device_defaults;
    settings.policy.strategy = world->options->in_turn
                                   ? TD_SCHED_PRIORITY_TIERED
                                   : TD_SCHED_MODEL_DEADLINE;
    settings.queue.size = 1; // all have slots
    settings.clients = 0;
    for (size_t i = 0; i < world->plan->stream_count; i++)
        settings.clients += world->plan->streams[i].server == server->number;
    if (settings.clients == 0) settings.clients = 1;
    return settings;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void learn_times(td_sim_factory_server *server, uint32_t most)
{
    td_sched *sched = td_server_dispatch_sched(server->dispatch);
    for (uint32_t n = 1; n <= most; n++) {
        double ns = td_config_profile_mean_ms(server->profile, n) *
                    (double)TD_NS_PER_MS;
        server->mean_ns[n] = ns > 1 ? ns : 1;
        td_sched_measured(sched, 0, server->model, n,
                          (int64_t)server->mean_ns[n]);
    }
}

td_err td_sim_factory_server_open(td_sim_factory_server *server,
                                  td_errinfo *info)
{
    const td_sim_factory_world *world = server->world;
    const td_plan_server *plan = &world->plan->servers[server->number];
    TD_TRY(td_config_profiles_find(world->profiles, plan->model, plan->engine,
                                   plan->gpu_type, &server->profile, info));
    server->continuous = td_config_profile_continuous(server->profile);
    uint32_t most =
        least(td_config_profile_max_batch(server->profile), TD_SCHED_MAX_BATCH);
    const td_engine_spec spec = {.max_batch = most,
                                 .most_inflight = 1,
                                 .continuous = server->continuous};
    td_server_model_settings how = td_server_model_defaults;
    how.batch = rule_of(plan, most);
    td_server_device_settings settings = device_settings(server);
    server->wake_ns = TD_SCHED_NEVER_NS;
    td_rand_fork(&world->seed, UINT64_C(1) << 32 | server->number,
                 &server->rand);
    TD_TRY(td_server_dispatch_new(&settings, &server->dispatch, info));
    TD_TRY(
        td_server_dispatch_add(server->dispatch, &spec, &how, &server->model));
    td_server_dispatch_open(server->dispatch, server->model, true);
    learn_times(server, most);
    return TD_OK;
}

// When an answer has to leave, so that it is there in time.
static int64_t due_ns(const td_sim_factory_request *request)
{
    const td_sim_factory_stream *stream = request->stream;
    const td_sim_factory_world *world = stream->server->world;
    return request->sent_ns + stream->deadline_ns - world->way_ns -
           world->options->network_jitter_ns;
}

static td_sched_item item_of(td_sim_factory_request *request)
{
    const td_sim_factory_stream *stream = request->stream;
    bool by_deadline = !stream->server->world->options->in_turn;
    bool used_late = stream->robot->task->on_miss == TD_CONFIG_MISS_COUNT;
    int64_t due = by_deadline ? due_ns(request) : TD_SCHED_NEVER_NS;
    return (td_sched_item){
        .member = stream->member,
        .payload = request,
        .seq = request->seq,
        .due_ns = due,
        .useless_ns = used_late ? TD_SCHED_NEVER_NS : due,
        .expected_ns = TD_SCHED_NEVER_NS,
        .steps = TD_SCHED_STEPS_UNSET,
    };
}

void td_sim_factory_server_arrives(td_sim_factory_request *request,
                                   int64_t now_ns)
{
    td_sim_factory_server *server = request->stream->server;
    td_sched_item item = item_of(request);
    td_sched_ended ended;
    td_sched_outcome outcome = td_sched_submit(
        td_server_dispatch_sched(server->dispatch), now_ns, &item, &ended);
    if (ended.request.payload)
        td_sim_factory_robot_lost(ended.request.payload, now_ns);
    if (outcome == TD_SCHED_REFUSED) td_sim_factory_robot_lost(request, now_ns);
    td_sim_factory_server_schedule(server, now_ns);
}

void td_sim_factory_server_schedule(td_sim_factory_server *server,
                                    int64_t now_ns)
{
    uint64_t before = server->running;
    td_sim_factory_gpu_advance(server->gpu, now_ns);
    td_sim_factory_server_next(server, now_ns);
    if (server->running != before)
        td_sim_factory_gpu_await(server->gpu, now_ns);
}

static double noise_of(td_sim_factory_server *server, uint32_t n)
{
    double mean_ms = td_config_profile_mean_ms(server->profile, n);
    double ms = td_config_profile_quantile_ms(server->profile, n,
                                              td_rand_unit(&server->rand));
    return mean_ms > 0 && ms > 0 ? ms / mean_ms : 1;
}

static void start(td_sim_factory_server *server,
                  const td_server_dispatch_batch *next, int64_t now_ns)
{
    td_sim_factory_batch *batch = &server->batches[next->run];
    uint32_t together = server->continuous ? server->members + 1 : next->count;
    *batch = (td_sim_factory_batch){.count = next->count,
                                    .left = 1,
                                    .noise = noise_of(server, together),
                                    .started_ns = now_ns};
    for (uint32_t i = next->count; i-- > 0;) {
        td_sim_factory_request *request = next->picks[i].request.payload;
        request->ticket = next->picks[i].ticket;
        request->next = batch->first;
        batch->first = request;
    }
    server->running |= UINT64_C(1) << next->run;
    server->members += next->count;
    td_sim_trace_line(server->world->trace, now_ns, "server %u starts %u",
                      server->number, next->count);
}

static void drop(td_sim_factory_server *server, int64_t now_ns)
{
    td_sched_ended ended;
    while (td_sched_drop(td_server_dispatch_sched(server->dispatch), now_ns,
                         &ended))
        td_sim_factory_robot_lost(ended.request.payload, now_ns);
}

void td_sim_factory_server_next(td_sim_factory_server *server, int64_t now_ns)
{
    td_server_dispatch_batch batch;
    drop(server, now_ns);
    while (td_server_dispatch_next(server->dispatch, now_ns, &batch))
        start(server, &batch, now_ns);
    int64_t wake_ns = td_server_dispatch_wake_ns(server->dispatch);
    if (wake_ns != TD_SCHED_NEVER_NS && wake_ns != server->wake_ns)
        td_sim_factory_world_put(server->world, wake_ns, TD_SIM_FACTORY_WAKE,
                                 server, 0);
    server->wake_ns = wake_ns;
}

void td_sim_factory_server_ran(td_sim_factory_server *server, uint32_t number,
                               int64_t now_ns)
{
    td_sched *sched = td_server_dispatch_sched(server->dispatch);
    td_sim_factory_batch *batch = &server->batches[number];
    int64_t took_ns = now_ns - batch->started_ns;
    td_sim_factory_request *request = batch->first;
    while (request) {
        td_sim_factory_request *next = request->next;
        (void)td_sched_done(sched, now_ns, request->ticket, TD_SCHED_ANSWERED);
        td_sim_factory_world_put(
            server->world,
            now_ns + td_sim_factory_world_delay_ns(request->stream->robot),
            TD_SIM_FACTORY_ANSWERED, request, 0);
        request = next;
    }
    server->running &= ~(UINT64_C(1) << number);
    server->members -= batch->count;
    td_server_dispatch_end(server->dispatch, now_ns, server->model, number,
                           batch->count, took_ns);
    td_sim_trace_line(server->world->trace, now_ns, "server %u answers %u",
                      server->number, batch->count);
}

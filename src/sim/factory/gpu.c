// SPDX-License-Identifier: Apache-2.0
// A GPU plays service times. What batches continuously shares it by how many
// run; models that run at the same time on one GPU slow each other down.
#include "sim/factory/world.h"

#define ENDED_NS 0.5 // less than this left is rounding

static uint32_t models_running(const td_sim_factory_gpu *gpu)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < gpu->server_count; i++)
        count += gpu->servers[i]->running != 0;
    return count;
}

// What the whole batch takes as things are now.
static double whole_ns(const td_sim_factory_server *server,
                       const td_sim_factory_batch *batch, double slowed)
{
    uint32_t together = server->continuous ? server->members : batch->count;
    return server->mean_ns[together] * batch->noise * slowed;
}

static double slowed_by(const td_sim_factory_gpu *gpu)
{
    uint32_t models = models_running(gpu);
    if (models < 2) return 1;
    return 1 + gpu->world->options->interference * (models - 1);
}

static void account(td_sim_factory_server *server, int64_t from_ns,
                    int64_t now_ns)
{
    td_sim_factory_world *world = server->world;
    if (from_ns < world->options->warmup_ns)
        from_ns = world->options->warmup_ns;
    if (now_ns <= from_ns) return;
    double passed_ns = (double)(now_ns - from_ns);
    world->sums->busy_ns[server->number] += passed_ns;
    world->sums->ran_ns[server->number] += passed_ns * server->members;
}

void td_sim_factory_gpu_advance(td_sim_factory_gpu *gpu, int64_t now_ns)
{
    double passed_ns = (double)(now_ns - gpu->seen_ns);
    double slowed = slowed_by(gpu);
    for (uint32_t i = 0; passed_ns > 0 && i < gpu->server_count; i++) {
        td_sim_factory_server *server = gpu->servers[i];
        if (server->running) account(server, gpu->seen_ns, now_ns);
        for (uint64_t left = server->running; left; left &= left - 1) {
            td_sim_factory_batch *batch =
                &server->batches[__builtin_ctzll(left)];
            batch->left -= passed_ns / whole_ns(server, batch, slowed);
        }
    }
    gpu->seen_ns = now_ns;
}

static uint64_t ended(const td_sim_factory_server *server, double slowed)
{
    uint64_t bits = 0;
    for (uint64_t left = server->running; left; left &= left - 1) {
        int number = __builtin_ctzll(left);
        const td_sim_factory_batch *batch = &server->batches[number];
        if (batch->left * whole_ns(server, batch, slowed) < ENDED_NS)
            bits |= UINT64_C(1) << number;
    }
    return bits;
}

void td_sim_factory_gpu_ran(td_sim_factory_gpu *gpu, int64_t now_ns)
{
    td_sim_factory_gpu_advance(gpu, now_ns);
    double slowed = slowed_by(gpu);
    for (uint32_t i = 0; i < gpu->server_count; i++)
        for (uint64_t left = ended(gpu->servers[i], slowed); left;
             left &= left - 1)
            td_sim_factory_server_ran(gpu->servers[i],
                                      (uint32_t)__builtin_ctzll(left), now_ns);
    for (uint32_t i = 0; i < gpu->server_count; i++)
        td_sim_factory_server_next(gpu->servers[i], now_ns);
    td_sim_factory_gpu_await(gpu, now_ns);
}

void td_sim_factory_gpu_await(td_sim_factory_gpu *gpu, int64_t now_ns)
{
    double slowed = slowed_by(gpu), least_ns = -1;
    for (uint32_t i = 0; i < gpu->server_count; i++) {
        const td_sim_factory_server *server = gpu->servers[i];
        for (uint64_t left = server->running; left; left &= left - 1) {
            const td_sim_factory_batch *batch =
                &server->batches[__builtin_ctzll(left)];
            double ns = batch->left * whole_ns(server, batch, slowed);
            if (least_ns < 0 || ns < least_ns) least_ns = ns;
        }
    }
    gpu->generation++;
    if (least_ns < 0) return;
    td_sim_factory_world_put(gpu->world, now_ns + (int64_t)(least_ns + 1),
                             TD_SIM_FACTORY_RAN, gpu, gpu->generation);
}

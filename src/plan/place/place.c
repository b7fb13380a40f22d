// SPDX-License-Identifier: Apache-2.0
// Gives each allocation a GPU.
//
// First what was there: where there is a previous plan, an assignment problem
// (pack/assign.c) gives as many allocations as possible a GPU that has their
// model loaded, and among these choices the one that lets the most streams keep
// their server. place/keep.c knows the previous plan.
//
// Then the others, one after the other: a GPU of a node that has a standby
// elsewhere, and of these of the node with the fewest servers of the same
// model, so that no machine that fails takes a whole model along.
//
// An allocation that was merged into another's GPU becomes part of the same
// server if the model is the same, and else a server beside it.
//
// At last each standby GPU gets every model that is at work, as far as its
// memory goes. Pure; everything is written into the draft.
#include "plan/place/assemble.h"

#include "plan/pack/assign.h"
#include "plan/place/keep.h"

#include <stdlib.h>
#include <string.h>

typedef struct slot {
    size_t node;
    uint32_t index;
    size_t type;
    bool standby, taken;
    const char *model; // that it got; NULL: none yet
} slot;

static slot *list_gpus(const td_plan_draft *draft, size_t *ret_count)
{
    const td_plan_problem *problem = draft->problem;
    const td_config_factory_cluster *cluster =
        &problem->factory->server_cluster;
    size_t count = 0;
    slot *gpus = td_arena_alloc(draft->arena, (size_t)cluster->num_servers + 1,
                                sizeof *gpus);
    for (size_t i = 0; gpus && i < cluster->node_count; i++)
        for (uint32_t j = 0; j < cluster->nodes[i].gpus; j++)
            gpus[count++] = (slot){
                .node = i,
                .index = j,
                .type = td_plan_problem_type(problem, i),
                .standby = j + problem->kept[i] >= cluster->nodes[i].gpus,
            };
    *ret_count = count;
    return gpus;
}

static const char *node_name(const td_plan_draft *draft, const slot *gpu)
{
    return draft->problem->factory->server_cluster.nodes[gpu->node].name;
}

static bool is_free(const slot *gpu, const td_plan_allocation *allocation)
{
    return !gpu->taken && !gpu->standby && gpu->type == allocation->type;
}

// What it is worth that an allocation gets a GPU: keeping its model more than
// all streams together.
static double worth_of(const td_plan_draft *draft,
                       const td_plan_allocation *allocation, const slot *gpu)
{
    const char *model = draft->problem->pools[allocation->pool].model;
    const char *node = node_name(draft, gpu);
    const td_plan_problem *problem = draft->problem;
    double most = 1;
    if (!is_free(gpu, allocation) ||
        !td_plan_keep_had_model(draft, node, gpu->index, model))
        return 0;
    for (size_t i = 0; i < problem->pool_count; i++)
        most += problem->pools[i].streams;
    return most + td_plan_keep_streams(draft, allocation, node, gpu->index);
}

// What there is to know of a node before it gets a server of a model.
typedef struct prospect {
    bool unguarded;  // every standby is on this very node
    uint32_t gpus;   // without standbys
    uint32_t unused; // of them
    uint32_t crowd;  // servers of the model on them
} prospect;

static prospect look_at(const td_plan_draft *draft, const slot *gpus,
                        size_t count, size_t node, const char *model)
{
    const td_plan_problem *problem = draft->problem;
    prospect seen = {
        .unguarded =
            problem->standbys > 0 && problem->kept[node] == problem->standbys,
    };
    for (size_t i = 0; i < count; i++) {
        if (gpus[i].node != node || gpus[i].standby) continue;
        seen.gpus++;
        seen.unused += !gpus[i].taken;
        seen.crowd += gpus[i].model && strcmp(gpus[i].model, model) == 0;
    }
    return seen;
}

static bool is_better(const prospect *a, const prospect *b)
{
    if (a->unguarded != b->unguarded) return b->unguarded;
    if (a->crowd * b->gpus != b->crowd * a->gpus)
        return a->crowd * b->gpus < b->crowd * a->gpus;
    return a->unused > b->unused;
}

static slot *find_fresh(const td_plan_draft *draft, slot *gpus, size_t count,
                        const td_plan_allocation *allocation)
{
    const char *model = draft->problem->pools[allocation->pool].model;
    slot *best = NULL;
    prospect most = {0};
    for (size_t i = 0; i < count; i++) {
        if (!is_free(&gpus[i], allocation)) continue;
        if (best && gpus[i].node == best->node) continue;
        prospect seen = look_at(draft, gpus, count, gpus[i].node, model);
        if (best && !is_better(&seen, &most)) continue;
        best = &gpus[i];
        most = seen;
    }
    return best;
}

static td_err add_server(td_plan_draft *draft, const slot *gpu,
                         const td_plan_pool *pool, size_t type, bool alone)
{
    td_plan *plan = draft->plan;
    const td_config_factory_node *node =
        &draft->problem->factory->server_cluster.nodes[gpu->node];
    const td_config_profile *profile = pool->curves[type]->profile;
    const char *slash = strrchr(pool->model, '/');
    const char *id =
        td_arena_print(draft->arena, alone ? "%s/%u" : "%s/%u:%s", node->name,
                       gpu->index, slash ? slash + 1 : pool->model);
    if (!id) return TD_ERR_NOMEM;
    uint32_t most = pool->curves[type]->settings.most;
    draft->pools[plan->server_count] = gpu->standby ? NULL : pool;
    draft->types[plan->server_count] = type;
    plan->servers[plan->server_count++] = (td_plan_server){
        .id = id,
        .node = node->name,
        .gpu = gpu->index,
        .model = pool->model,
        .engine = profile->engine,
        .gpu_type = node->gpu_type,
        .batch_most = most,
        .wait = draft->problem->options.wait,
        .standby = gpu->standby,
        .capacity_hz = td_plan_problem_capacity_hz(draft->problem, pool, type),
        .memory_gb = td_config_profile_memory_gb(profile, most),
    };
    return TD_OK;
}

// Whether several servers share the GPU of this allocation.
static bool is_alone(const td_plan_draft *draft, size_t index)
{
    const td_plan_solution *found = draft->found;
    const td_plan_allocation *allocation = &found->allocations[index];
    const td_plan_problem *problem = draft->problem;
    size_t host =
        allocation->joined == TD_PLAN_NONE ? index : allocation->joined;
    for (size_t i = 0; i < found->allocation_count; i++)
        if ((i == host || found->allocations[i].joined == host) &&
            strcmp(problem->pools[found->allocations[i].pool].model,
                   problem->pools[allocation->pool].model) != 0)
            return false;
    return true;
}

static void take(const td_plan_draft *draft, slot *gpu, size_t allocation,
                 const slot **gpu_of)
{
    gpu->taken = true;
    gpu->model =
        draft->problem->pools[draft->found->allocations[allocation].pool].model;
    gpu_of[allocation] = gpu;
}

// What each host (an allocation that was not merged into another) is worth on
// each GPU. Returns how many there are.
static size_t weigh_hosts(const td_plan_draft *draft, const slot *gpus,
                          size_t count, double *worth, size_t *hosts)
{
    const td_plan_solution *found = draft->found;
    size_t rows = 0;
    for (size_t i = 0; i < found->allocation_count; i++) {
        if (found->allocations[i].joined != TD_PLAN_NONE) continue;
        for (size_t j = 0; j < count; j++)
            worth[rows * count + j] =
                worth_of(draft, &found->allocations[i], &gpus[j]);
        hosts[rows++] = i;
    }
    return rows;
}

// As many GPUs as can keep their models, with as many streams as can stay.
static td_err place_kept(const td_plan_draft *draft, slot *gpus, size_t count,
                         const slot **gpu_of)
{
    size_t most = draft->found->allocation_count + 1;
    size_t *hosts = calloc(2 * most, sizeof *hosts);
    double *worth = calloc(most * (count + 1), sizeof *worth);
    size_t *columns = hosts ? hosts + most : NULL;
    size_t rows = 0;
    td_err err = TD_ERR_NOMEM;
    if (hosts && worth) {
        rows = weigh_hosts(draft, gpus, count, worth, hosts);
        err = rows > count
                  ? TD_ERR_INTERNAL // the packing was within the budget
                  : td_plan_assign(worth, rows, count, columns);
    }
    for (size_t i = 0; err == TD_OK && i < rows; i++)
        if (worth[i * count + columns[i]] > 0)
            take(draft, &gpus[columns[i]], hosts[i], gpu_of);
    free(hosts);
    free(worth);
    return err;
}

static td_err place_fresh(td_plan_draft *draft, slot *gpus, size_t count,
                          const slot **gpu_of)
{
    const td_plan_solution *found = draft->found;
    for (size_t i = 0; i < found->allocation_count; i++) {
        const td_plan_allocation *allocation = &found->allocations[i];
        if (gpu_of[i] || allocation->joined != TD_PLAN_NONE) continue;
        slot *gpu = find_fresh(draft, gpus, count, allocation);
        if (!gpu) return TD_ERR_INTERNAL; // the packing was within the budget
        take(draft, gpu, i, gpu_of);
    }
    return TD_OK;
}

// The server of an allocation that was merged into another's GPU: the same one
// when the model is, else one beside it.
static td_err place_joined(td_plan_draft *draft, const slot *const *gpu_of,
                           size_t index)
{
    const td_plan_allocation *allocation = &draft->found->allocations[index];
    const td_plan_pool *pool = &draft->problem->pools[allocation->pool];
    for (size_t i = 0; i < draft->found->allocation_count; i++) {
        const td_plan_allocation *other = &draft->found->allocations[i];
        bool there = i == allocation->joined ||
                     (i < index && other->joined == allocation->joined);
        if (!there ||
            strcmp(draft->problem->pools[other->pool].model, pool->model) != 0)
            continue;
        draft->allocation_server[index] = draft->allocation_server[i];
        return TD_OK;
    }
    draft->allocation_server[index] = (uint32_t)draft->plan->server_count;
    return add_server(draft, gpu_of[allocation->joined], pool, allocation->type,
                      false);
}

static td_err place_allocations(td_plan_draft *draft, slot *gpus, size_t count)
{
    const td_plan_solution *found = draft->found;
    const slot **gpu_of = td_arena_alloc(
        draft->arena, found->allocation_count + 1, sizeof *gpu_of);
    if (!gpu_of) return TD_ERR_NOMEM;
    if (draft->problem->options.previous)
        TD_TRY(place_kept(draft, gpus, count, gpu_of));
    TD_TRY(place_fresh(draft, gpus, count, gpu_of));
    for (size_t i = 0; i < found->allocation_count; i++) {
        const td_plan_allocation *allocation = &found->allocations[i];
        if (allocation->joined != TD_PLAN_NONE) continue;
        draft->allocation_server[i] = (uint32_t)draft->plan->server_count;
        TD_TRY(add_server(draft, gpu_of[i],
                          &draft->problem->pools[allocation->pool],
                          allocation->type, is_alone(draft, i)));
        draft->plan->gpus_used++;
    }
    for (size_t i = 0; i < found->allocation_count; i++)
        if (found->allocations[i].joined != TD_PLAN_NONE)
            TD_TRY(place_joined(draft, gpu_of, i));
    return TD_OK;
}

static bool holds_model(const td_plan_draft *draft, size_t from,
                        const char *model)
{
    for (size_t i = from; i < draft->plan->server_count; i++)
        if (strcmp(draft->plan->servers[i].model, model) == 0) return true;
    return false;
}

// Every model that is at work, as far as the memory of the standby goes.
static td_err fill_standby(td_plan_draft *draft, const slot *gpu)
{
    const td_plan_problem *problem = draft->problem;
    size_t first = draft->plan->server_count;
    double used_gb = 0;
    for (size_t i = 0; i < problem->pool_count; i++) {
        const td_plan_pool *pool = &problem->pools[i];
        const td_plan_curve *curve = pool->curves[gpu->type];
        if (!curve || holds_model(draft, first, pool->model)) continue;
        double room_gb = problem->types[gpu->type].memory_gb;
        if (room_gb == 0) room_gb = curve->profile->gpu_memory_gb;
        double need_gb = td_config_profile_memory_gb(curve->profile, 1);
        if (room_gb > 0 && used_gb + need_gb > room_gb) continue;
        used_gb += need_gb;
        TD_TRY(add_server(draft, gpu, pool, gpu->type, false));
    }
    return TD_OK;
}

td_err td_plan_place(td_plan_draft *draft)
{
    const td_plan_problem *problem = draft->problem;
    size_t count;
    size_t most = draft->found->allocation_count +
                  (size_t)problem->standbys * problem->pool_count + 1;
    slot *gpus = list_gpus(draft, &count);
    draft->plan->servers =
        td_arena_alloc(draft->arena, most, sizeof(td_plan_server));
    draft->allocation_server = td_arena_alloc(
        draft->arena, draft->found->allocation_count + 1, sizeof(uint32_t));
    draft->pools = td_arena_alloc(draft->arena, most, sizeof *draft->pools);
    draft->types = td_arena_alloc(draft->arena, most, sizeof(size_t));
    draft->streams_of = td_arena_alloc(draft->arena, most, sizeof(uint32_t));
    draft->loads_hz = td_arena_alloc(draft->arena, most, sizeof(double));
    draft->unlike = td_arena_alloc(draft->arena, most, sizeof(bool));
    if (!gpus || !draft->plan->servers || !draft->allocation_server ||
        !draft->pools || !draft->types || !draft->streams_of ||
        !draft->loads_hz || !draft->unlike)
        return TD_ERR_NOMEM;
    TD_TRY(place_allocations(draft, gpus, count));
    for (size_t i = 0; i < count; i++)
        if (gpus[i].standby) TD_TRY(fill_standby(draft, &gpus[i]));
    draft->plan->gpus = (uint32_t)count;
    draft->plan->gpus_standby = problem->standbys;
    return TD_OK;
}

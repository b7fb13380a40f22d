// SPDX-License-Identifier: Apache-2.0
#include "plan/admit/what_if.h"

#include <string.h>

static void *copy(td_arena *arena, const void *from, size_t count, size_t bytes)
{
    void *to = td_arena_alloc(arena, count, bytes);
    if (to) memcpy(to, from, count * bytes);
    return to;
}

// The robots of the tasks up to and with this one.
static size_t share_until(const td_config_factory *factory, size_t task,
                          size_t robots)
{
    size_t before = 0;
    for (size_t i = 0; i <= task; i++)
        before += factory->tasks[i].robot_count;
    return robots * before / factory->robot_count;
}

// Those of a task that are there already, then new ones.
static bool name_robots(const td_config_factory *factory, size_t task,
                        td_arena *arena, size_t count,
                        td_config_factory_robot *out)
{
    size_t known = 0;
    for (size_t i = 0; i < factory->robot_count && known < count; i++)
        if (factory->robots[i].task == task) out[known++] = factory->robots[i];
    for (size_t i = known; i < count; i++) {
        const char *name =
            td_arena_print(arena, "%s-%zu", factory->tasks[task].name, i);
        if (!name) return false;
        out[i] = (td_config_factory_robot){name, name, task};
    }
    return true;
}

static td_err change_robots(const td_config_factory *factory, size_t robots,
                            td_arena *arena, td_config_factory *changed,
                            td_errinfo *info)
{
    size_t tasks = factory->task_count;
    size_t count = 0;
    size_t before = 0;
    if (robots < tasks)
        return td_fail(info, TD_ERR_INVALID,
                       "robots=%zu leaves a task without any: there are %zu "
                       "tasks",
                       robots, tasks);
    changed->tasks = copy(arena, factory->tasks, tasks, sizeof *factory->tasks);
    changed->robots =
        td_arena_alloc(arena, robots + tasks, sizeof *changed->robots);
    if (!changed->tasks || !changed->robots) return TD_ERR_NOMEM;
    for (size_t i = 0; i < tasks; i++) {
        size_t until = share_until(factory, i, robots);
        size_t own = until > before ? until - before : 1;
        before = until;
        changed->tasks[i].robot_count = own;
        if (!name_robots(factory, i, arena, own, changed->robots + count))
            return TD_ERR_NOMEM;
        count += own;
    }
    changed->robot_count = count;
    return TD_OK;
}

static td_err change_gpus(const td_config_factory *factory, int64_t gpus,
                          td_arena *arena, td_config_factory *changed,
                          td_errinfo *info)
{
    td_config_factory_cluster *cluster = &changed->server_cluster;
    size_t last = cluster->node_count - 1;
    cluster->nodes = copy(arena, factory->server_cluster.nodes,
                          cluster->node_count, sizeof *cluster->nodes);
    if (!cluster->nodes) return TD_ERR_NOMEM;
    int64_t more = gpus - cluster->num_servers;
    if (cluster->nodes[last].gpus + more < 0)
        return td_fail(info, TD_ERR_INVALID,
                       "gpus=%lld: %s, from which they are taken, has %lld of "
                       "%lld",
                       (long long)gpus, cluster->nodes[last].name,
                       (long long)cluster->nodes[last].gpus,
                       (long long)cluster->num_servers);
    cluster->nodes[last].gpus += more;
    cluster->num_servers = gpus;
    return TD_OK;
}

td_err td_plan_what_if(const td_config_factory *factory, uint32_t robots,
                       uint32_t gpus, td_arena *arena,
                       td_config_factory **ret_factory, td_errinfo *info)
{
    td_config_factory *changed = copy(arena, factory, 1, sizeof *factory);
    if (!changed) return TD_ERR_NOMEM;
    if (robots) TD_TRY(change_robots(factory, robots, arena, changed, info));
    if (gpus) TD_TRY(change_gpus(factory, gpus, arena, changed, info));
    *ret_factory = changed;
    return TD_OK;
}

// SPDX-License-Identifier: Apache-2.0
// Reads a factory's description: the format of the Rosa paper's Figure 3, with
// more fields that are all optional.
//
// Tables say what each field may be (config/yaml/table.h); the check functions
// do what no row can say, from the inside out: GPUs of a cluster without nodes
// become one node, groups of robots become robots with names and keys, counted
// on from group to group, each task knows its robots, and throughputs that no
// robot could reach are refused. So whoever has a td_config_factory finds one
// form, whatever the file left out.
//
// Names of robots and their keys must each be different from all others, since
// plans know robots by their names and servers by their keys.
//
// An error names file, line and field. Everything is the document's memory,
// freed with td_config_factory_free().
#include "config/factory/factory.h"

#include "config/factory/task.h"

#include <stdlib.h>
#include <string.h>

#define MAX_GPUS 100000
#define MAX_NODES 4096
#define MAX_ROBOTS 100000
#define MAX_GROUPS 1024
#define MAX_NAMED 8192
#define MAX_TASKS 256
#define MAX_MEMORY_GB 100000

static td_err check_cluster(const td_config_location *location,
                            const td_config_node *node, void *value);
static td_err check_group(const td_config_location *location,
                          const td_config_node *node, void *value);
static td_err check_factory(const td_config_location *location,
                            const td_config_node *node, void *value);

static const td_config_field node_rows[] = {
    TD_ROW_TEXT(td_config_factory_node, gpu_type, "\"\"", 0, 128,
                "as its profiles name it; empty: the cluster's"),
    TD_ROW_INTEGER(td_config_factory_node, gpus, "1", 1, MAX_GPUS,
                   "how many it has"),
    TD_ROW_NUMBER(td_config_factory_node, gpu_memory_gb, "0", 0, MAX_MEMORY_GB,
                  "of each; 0: the cluster's"),
};
static const td_config_table node_table = {
    node_rows, TD_COUNT_OF(node_rows), sizeof(td_config_factory_node), NULL};

static const td_config_field cluster_rows[] = {
    TD_ROW_INTEGER(td_config_factory_cluster, num_servers, "0", 0, MAX_GPUS,
                   "servers, one GPU each; 0: those of the nodes"),
    TD_ROW_TEXT(td_config_factory_cluster, gpu_type, "\"\"", 0, 128,
                "as profiles name it, such as NVIDIA H200"),
    TD_ROW_NUMBER(td_config_factory_cluster, gpu_memory_gb, "0", 0,
                  MAX_MEMORY_GB,
                  "of each GPU, in 2^30 bytes; 0: as the profiles say"),
    TD_ROW_MAP(td_config_factory_cluster, nodes, node_count,
               td_config_factory_node, "[]", node_table, 0, MAX_NODES,
               "machines, where there are several or their GPUs differ"),
    TD_ROW_INTEGER(td_config_factory_cluster, standby, "0", 0, MAX_GPUS,
                   "GPUs that stay out of normal routes, loaded, and take "
                   "over when another fails"),
    TD_ROW_NUMBER(td_config_factory_cluster, overhead_ms, "6", 0, 10000,
                  "what a request takes beside its model: the network, and "
                  "coding at both ends"),
};
static const td_config_table cluster_table = {
    cluster_rows, TD_COUNT_OF(cluster_rows), sizeof(td_config_factory_cluster),
    check_cluster};

static const td_config_field robot_rows[] = {
    TD_ROW_CHUNK(td_config_factory_robot, key, "\"\"",
                 "its client_uuid; empty: its name"),
};
static const td_config_table robot_table = {
    robot_rows, TD_COUNT_OF(robot_rows), sizeof(td_config_factory_robot), NULL};

static const td_config_field group_rows[] = {
    TD_ROW_TEXT(td_config_factory_group, task, NULL, 1, 64,
                "what they do, a task of this file"),
    TD_ROW_INTEGER(td_config_factory_group, num_robots, "0", 0, MAX_ROBOTS,
                   "how many; 0: those listed"),
    TD_ROW_MAP(td_config_factory_group, robots, robot_count,
               td_config_factory_robot, "[]", robot_table, 0, MAX_NAMED,
               "which, by name"),
};
static const td_config_table group_table = {group_rows, TD_COUNT_OF(group_rows),
                                            sizeof(td_config_factory_group),
                                            check_group};

static const td_config_field factory_rows[] = {
    TD_ROW_STRUCT(td_config_factory, server_cluster, td_config_factory_cluster,
                  NULL, cluster_table, "the GPUs"),
    TD_ROW_STRUCTS(td_config_factory, robot_fleet, group_count,
                   td_config_factory_group, NULL, group_table, 1, MAX_GROUPS,
                   "the robots"),
    TD_ROW_TEXT(td_config_factory, profiles, "profiles", 1, 4096,
                "the folder of the models' profiles; a relative one starts "
                "beside this file"),
    TD_ROW_REFUSED("tasks", "each task stands by its own name at the top"),
    TD_ROW_REST(td_config_factory, tasks, task_count, td_config_factory_task,
                td_config_task_table, 1, MAX_TASKS,
                "a task, by the name that robot_fleet gives it"),
};
const td_config_table td_config_factory_table = {
    factory_rows, TD_COUNT_OF(factory_rows), sizeof(td_config_factory),
    check_factory};

// One node for a cluster that gives none.
static td_err make_node(const td_config_location *location,
                        td_config_factory_cluster *cluster)
{
    if (cluster->num_servers == 0)
        return td_config_location_fail(
            location, NULL, "num_servers",
            "is missing, how many GPUs there are; or nodes");
    cluster->nodes = td_arena_alloc(location->arena, 1, sizeof *cluster->nodes);
    if (!cluster->nodes) return td_config_location_no_memory(location);
    *cluster->nodes = (td_config_factory_node){
        .name = "node-0", .gpu_type = "", .gpus = cluster->num_servers};
    cluster->node_count = 1;
    return TD_OK;
}

static td_err fill_node(const td_config_location *location,
                        const td_config_factory_cluster *cluster,
                        td_config_factory_node *node)
{
    if (!node->gpu_type[0]) node->gpu_type = cluster->gpu_type;
    if (node->gpu_memory_gb == 0) node->gpu_memory_gb = cluster->gpu_memory_gb;
    if (node->gpu_type[0]) return TD_OK;
    return td_config_location_fail(location, NULL, "gpu_type",
                                   "is missing, such as NVIDIA H200");
}

static td_err check_cluster(const td_config_location *location,
                            const td_config_node *node, void *value)
{
    td_config_factory_cluster *cluster = value;
    if (cluster->node_count == 0) TD_TRY(make_node(location, cluster));
    int64_t gpus = 0;
    for (size_t i = 0; i < cluster->node_count; i++) {
        TD_TRY(fill_node(location, cluster, &cluster->nodes[i]));
        gpus += cluster->nodes[i].gpus;
    }
    if (cluster->num_servers != 0 && cluster->num_servers != gpus)
        return td_config_location_fail(
            location, td_config_node_get(node, "num_servers"), "num_servers",
            "must be the %lld GPUs of the nodes, got %lld; "
            "or leave it out",
            (long long)gpus, (long long)cluster->num_servers);
    cluster->num_servers = gpus;
    if (cluster->standby < gpus) return TD_OK;
    return td_config_location_fail(
        location, td_config_node_get(node, "standby"), "standby",
        "must be fewer than the %lld GPUs there are, got "
        "%lld",
        (long long)gpus, (long long)cluster->standby);
}

static td_err check_group(const td_config_location *location,
                          const td_config_node *node, void *value)
{
    td_config_factory_group *group = value;
    int64_t listed = (int64_t)group->robot_count;
    if (group->num_robots == 0) group->num_robots = listed;
    if (group->num_robots == 0)
        return td_config_location_fail(
            location, td_config_node_get(node, "num_robots"), "num_robots",
            "must be 1 to %d, got 0; or list robots, or leave "
            "this group out",
            MAX_ROBOTS);
    if (listed == 0 || listed == group->num_robots) return TD_OK;
    return td_config_location_fail(
        location, td_config_node_get(node, "num_robots"), "num_robots",
        "must be the %lld robots listed, got %lld; or leave "
        "it out",
        (long long)listed, (long long)group->num_robots);
}

static td_config_factory_task *task_of(const td_config_factory *factory,
                                       const char *name)
{
    for (size_t i = 0; i < factory->task_count; i++)
        if (strcmp(factory->tasks[i].name, name) == 0)
            return &factory->tasks[i];
    return NULL;
}

static td_err count_robots(const td_config_location *location,
                           const td_config_node *node,
                           td_config_factory *factory)
{
    const td_config_node *at = td_config_node_get(node, "robot_fleet")->first;
    for (size_t i = 0; i < factory->group_count; i++, at = at->next) {
        const td_config_factory_group *group = &factory->robot_fleet[i];
        if (!task_of(factory, group->task))
            return td_config_location_fail(
                location, td_config_node_get(at, "task"), "robot_fleet",
                "there is no task \"%.64s\" in this file", group->task);
        factory->robot_count += (size_t)group->num_robots;
    }
    if (factory->robot_count <= MAX_ROBOTS) return TD_OK;
    return td_config_location_fail(
        location, td_config_node_get(node, "robot_fleet"), "robot_fleet",
        "must be at most %d robots, got %zu", MAX_ROBOTS, factory->robot_count);
}

// Robots of one task are counted on from group to group.
static td_err name_robots(const td_config_location *location,
                          const td_config_factory_group *group,
                          td_config_factory_task *task, size_t index,
                          td_config_factory_robot *ret_robots)
{
    for (size_t i = 0; i < (size_t)group->num_robots; i++) {
        td_config_factory_robot *robot = &ret_robots[i];
        if (group->robot_count) *robot = group->robots[i];
        if (!robot->name)
            robot->name = td_arena_print(location->arena, "%s-%zu", task->name,
                                         task->robot_count + i);
        if (!robot->name) return td_config_location_no_memory(location);
        if (!robot->key || !robot->key[0]) robot->key = robot->name;
        robot->task = index;
    }
    task->robot_count += (size_t)group->num_robots;
    return TD_OK;
}

static td_err list_robots(const td_config_location *location,
                          td_config_factory *factory)
{
    factory->robots = td_arena_alloc(location->arena, factory->robot_count,
                                     sizeof *factory->robots);
    if (!factory->robots) return td_config_location_no_memory(location);
    td_config_factory_robot *at = factory->robots;
    for (size_t i = 0; i < factory->group_count; i++) {
        const td_config_factory_group *group = &factory->robot_fleet[i];
        td_config_factory_task *task = task_of(factory, group->task);
        TD_TRY(name_robots(location, group, task,
                           (size_t)(task - factory->tasks), at));
        at += group->num_robots;
    }
    return TD_OK;
}

static int in_order(const void *a, const void *b)
{
    const char *const *one = a;
    const char *const *other = b;
    return strcmp(*one, *other);
}

// `texts` are one of each robot, and are sorted.
static td_err check_apart(const td_config_location *location,
                          const td_config_node *node, const char *what,
                          const char **texts, size_t count)
{
    qsort(texts, count, sizeof *texts, in_order);
    for (size_t i = 1; i < count; i++)
        if (strcmp(texts[i - 1], texts[i]) == 0)
            return td_config_location_fail(
                location, td_config_node_get(node, "robot_fleet"),
                "robot_fleet", "two robots have the %s \"%.64s\"", what,
                texts[i]);
    return TD_OK;
}

// Plans know robots by their names, servers by their keys.
static td_err check_robots(const td_config_location *location,
                           const td_config_node *node,
                           const td_config_factory *factory)
{
    size_t count = factory->robot_count;
    const char **texts = td_arena_alloc(location->arena, count, sizeof *texts);
    if (!texts) return td_config_location_no_memory(location);
    for (size_t i = 0; i < count; i++)
        texts[i] = factory->robots[i].key;
    TD_TRY(check_apart(location, node, "key", texts, count));
    for (size_t i = 0; i < count; i++)
        texts[i] = factory->robots[i].name;
    return check_apart(location, node, "name", texts, count);
}

// The most that a task could do if its models took no time.
static double most_actions_hz(const td_config_factory_task *task)
{
    return (double)task->robot_count * 1000 / task->pipeline.action_period_ms;
}

static td_err check_throughput(const td_config_location *location,
                               const td_config_node *node,
                               const td_config_factory_task *task)
{
    td_config_location inside = *location;
    inside.parent = location;
    inside.name = task->name;
    const td_config_node *at = td_config_node_get(node, task->name);
    if (task->robot_count == 0)
        return td_config_location_fail(
            &inside, at, NULL,
            "no robot of robot_fleet does this task, leave "
            "one of them out");
    double most_hz = most_actions_hz(task);
    if (task->min_throughput <= most_hz) return TD_OK;
    return td_config_location_fail(
        &inside, td_config_node_get(at, "min_throughput"), "min_throughput",
        "must be at most %g, what %zu robots with actions of "
        "%g ms can do, got %g",
        most_hz, task->robot_count, task->pipeline.action_period_ms,
        task->min_throughput);
}

static td_err check_factory(const td_config_location *location,
                            const td_config_node *node, void *value)
{
    td_config_factory *factory = value;
    TD_TRY(count_robots(location, node, factory));
    TD_TRY(list_robots(location, factory));
    TD_TRY(check_robots(location, node, factory));
    for (size_t i = 0; i < factory->task_count; i++)
        TD_TRY(check_throughput(location, node, &factory->tasks[i]));
    return td_config_location_beside(location, &factory->profiles);
}

td_err td_config_factory_load(const char *path, td_config_factory **ret_factory,
                              td_errinfo *info)
{
    void *factory = NULL;
    TD_TRY(
        td_config_table_load(&td_config_factory_table, path, &factory, info));
    *ret_factory = factory;
    return TD_OK;
}

td_err td_config_factory_parse(const char *path, const void *data, size_t size,
                               td_config_factory **ret_factory,
                               td_errinfo *info)
{
    void *factory = NULL;
    TD_TRY(td_config_table_parse(&td_config_factory_table, path, data, size,
                                 &factory, info));
    *ret_factory = factory;
    return TD_OK;
}

void td_config_factory_free(td_config_factory *factory)
{
    td_config_table_free(factory);
}

const td_config_factory_component *
td_config_factory_find(const td_config_factory_task *task, const char *name)
{
    for (size_t i = 0; i < task->component_count; i++)
        if (strcmp(task->components[i].name, name) == 0)
            return &task->components[i];
    return NULL;
}

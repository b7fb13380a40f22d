// SPDX-License-Identifier: Apache-2.0
// merge_log plain|limits|sequential FIRST COUNT: the logs of so many seeds.
#include "lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN_NS (20 * TD_NS_PER_S)

void lab_check(td_err err, const td_errinfo *info)
{
    if (err == TD_OK) return;
    fprintf(stderr, "merge_log: %s %s\n", td_err_name(err),
            info ? info->text : "");
    abort();
}

void *lab_calloc(size_t size)
{
    void *zeros = calloc(1, size);
    if (!zeros) abort();
    return zeros;
}

uint32_t lab_below(td_rand *rand, uint32_t n)
{
    return (uint32_t)(td_rand_u64(rand) % n);
}

bool lab_one_in(td_rand *rand, uint32_t n)
{
    return lab_below(rand, n) == 0;
}

double lab_between(td_rand *rand, double low, double high)
{
    return low + (high - low) * td_rand_unit(rand);
}

void lab_inbox_add(void *inbox, const td_net_sample *sample)
{
    lab_inbox *in = inbox;
    if (in->count == TD_COUNT_OF(in->msgs)) lab_check(TD_ERR_FULL, NULL);
    uint32_t at = (in->first + in->count++) % TD_COUNT_OF(in->msgs);
    lab_check(td_net_keep(sample, &in->msgs[at]), NULL);
}

td_net_msg *lab_inbox_take(lab_inbox *inbox)
{
    if (inbox->count == 0) return NULL;
    td_net_msg *msg = inbox->msgs[inbox->first];
    inbox->first = (inbox->first + 1) % TD_COUNT_OF(inbox->msgs);
    inbox->count--;
    return msg;
}

// Each kind of mishap has its own time, seldom the same as a tick's.
typedef struct mishaps {
    int64_t reset_ns, restart_ns, cut_ns, join_ns, down_ns, up_ns;
} mishaps;

static int64_t later(td_rand *rand, int64_t now_ns, double mean_s)
{
    return now_ns + (int64_t)(lab_between(rand, 0.1, 1.9) * mean_s * 1e9);
}

static mishaps mishaps_first(const lab_options *options, td_rand *rand)
{
    mishaps next = {INT64_MAX, INT64_MAX, INT64_MAX,
                    INT64_MAX, INT64_MAX, INT64_MAX};
    if (options->sequential) return next;
    next.reset_ns = later(rand, 0, 5);
    next.restart_ns = later(rand, 0, 10);
    next.cut_ns = later(rand, 0, 10);
    next.down_ns = later(rand, 0, 6);
    return next;
}

typedef struct lab {
    td_rand rand;
    td_clock_virtual clock;
    td_net_hub *hub;
    td_edge_core_settings settings;
    lab_server *server;
    lab_robot *robot;
    mishaps next;
    lab_log log;
} lab;

static void cut_or_join(lab *l, int64_t now_ns)
{
    mishaps *next = &l->next;
    if (next->cut_ns <= now_ns) {
        lab_check(td_net_hub_partition(l->hub, "robot", "server", true), NULL);
        lab_robot_detach(l->robot);
        next->cut_ns = INT64_MAX;
        next->join_ns = later(&l->rand, now_ns, 0.5);
    }
    if (next->join_ns <= now_ns) {
        uint32_t number = lab_below(&l->rand, LAB_SERVERS);
        lab_check(td_net_hub_partition(l->hub, "robot", "server", false), NULL);
        lab_server_be(l->server, number);
        lab_robot_attach(l->robot, number);
        next->join_ns = INT64_MAX;
        next->cut_ns = later(&l->rand, now_ns, 10);
    }
}

static void break_driver(lab *l, int64_t now_ns)
{
    mishaps *next = &l->next;
    if (next->down_ns <= now_ns) {
        lab_robot_driver(l->robot, true);
        next->down_ns = INT64_MAX;
        next->up_ns = later(&l->rand, now_ns, 0.2);
    }
    if (next->up_ns <= now_ns) {
        lab_robot_driver(l->robot, false);
        next->up_ns = INT64_MAX;
        next->down_ns = later(&l->rand, now_ns, 6);
    }
}

static void fault(lab *l, int64_t now_ns)
{
    mishaps *next = &l->next;
    if (next->reset_ns <= now_ns) {
        lab_robot_reset(l->robot);
        next->reset_ns = later(&l->rand, now_ns, 5);
    }
    if (next->restart_ns <= now_ns) {
        lab_robot_restart(l->robot);
        next->restart_ns = later(&l->rand, now_ns, 10);
    }
    cut_or_join(l, now_ns);
    break_driver(l, now_ns);
}

static int64_t earliest(const lab *l, int64_t at_ns)
{
    const mishaps *next = &l->next;
    const int64_t all[] = {next->reset_ns, next->restart_ns, next->cut_ns,
                           next->join_ns,  next->down_ns,    next->up_ns};
    for (size_t i = 0; i < TD_COUNT_OF(all); i++)
        if (all[i] < at_ns) at_ns = all[i];
    int64_t due_ns;
    if (td_net_hub_next_due(l->hub, &due_ns) && due_ns < at_ns) at_ns = due_ns;
    return at_ns;
}

// 400 ± 200 ms for both ways together.
static void set_faults(lab *l)
{
    const td_net_faults faults = {
        .delay_ns = 100 * TD_NS_PER_MS,
        .jitter_ns = 200 * TD_NS_PER_MS,
        .loss = 0.05,
        .duplicate = 0.05,
        .reorder = 0.05,
    };
    lab_check(td_net_hub_faults(l->hub, NULL, NULL, &faults), NULL);
}

static void open_lab(lab *l, const lab_options *options)
{
    td_rand_init(&l->rand, options->seed);
    lab_settings(options, &l->rand, &l->settings);
    td_clock_virtual_init(&l->clock, 0);
    lab_check(td_net_hub_new(&l->clock, options->seed, &l->hub), NULL);
    if (!options->sequential) set_faults(l);
    l->server = lab_server_new(options, &l->rand, l->hub, &l->settings);
    l->robot = lab_robot_new(options, &l->rand, l->hub, &l->settings, &l->log);
    l->next = mishaps_first(options, &l->rand);
}

static void run(const lab_options *options)
{
    lab *l = lab_calloc(sizeof *l);
    open_lab(l, options);
    for (int64_t now_ns = 0; now_ns < RUN_NS;) {
        td_net_hub_run_until(l->hub, now_ns);
        fault(l, now_ns);
        int64_t server_ns = lab_server_act(l->server, now_ns);
        int64_t robot_ns = lab_robot_act(l->robot, now_ns);
        now_ns = earliest(l, server_ns < robot_ns ? server_ns : robot_ns);
    }
    lab_robot_free(l->robot);
    lab_server_free(l->server);
    td_net_hub_free(l->hub);
    lab_log_write(&l->log, options, &l->settings);
    lab_log_done(&l->log);
    free(l);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "merge_log plain|limits|sequential FIRST COUNT\n");
        return 2;
    }
    uint64_t first = strtoull(argv[2], NULL, 10);
    uint64_t count = strtoull(argv[3], NULL, 10);
    for (uint64_t i = 0; i < count; i++) {
        const lab_options options = {
            .seed = first + i,
            .limits = strcmp(argv[1], "limits") == 0,
            .sequential = strcmp(argv[1], "sequential") == 0,
        };
        run(&options);
    }
    return 0;
}

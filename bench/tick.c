// SPDX-License-Identifier: Apache-2.0
// How late the control tick wakes up: beside a bare timer loop of the same
// priority, and while something is wrong with the server or the robot.
#include "base/clock.h"
#include "base/sync/thread.h"
#include "bench/rig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WARM_NS (TD_NS_PER_S / 4)
#define SETTLE_NS (TD_NS_PER_S / 2)
#define STACK_BYTES ((size_t)64 << 10)
#define BARE_LIMIT 1.5
#define DISTURBED_LIMIT 1.2

enum { P99, P999, QUANTILES };
static const double quantiles[] = {[P99] = 0.99, [P999] = 0.999};

typedef struct world {
    td_bench_setup setup;
    td_bench_server server;
    td_bench_child flood;
    td_thread *spinner;
    _Atomic bool spinning;
    char meeting[TD_BENCH_ENDPOINT_BYTES]; // at the flood; empty: there is none
    td_net *net;
    td_robot_hardware *robot;
    td_bench_edge *edge;
    td_bench_pairs pairs[QUANTILES];
    td_bench_pairs bare_pairs[QUANTILES]; // beside a bare timer, both disturbed
    td_bench_pairs timer_pairs[QUANTILES]; // a bare timer, disturbed and not
    td_bench_pairs chunk_pairs; // installed a second, disturbed and not
    td_hist ours, theirs;
    td_hist now, before; // scratch
    int64_t block_ns;
    size_t pair_count;
} world;

static void close_edge(world *w)
{
    if (w->robot) td_bench_still_block(w->robot, TD_BENCH_BLOCK_NOTHING);
    if (w->edge) td_bench_edge_close(w->edge);
    w->edge = NULL;
}

static void end_spinner(world *w)
{
    w->spinning = false;
    if (w->spinner) td_thread_join(w->spinner);
    w->spinner = NULL;
}

static void close_robot(world *w)
{
    end_spinner(w);
    close_edge(w);
    if (w->net) td_net_close(w->net);
    w->net = NULL;
    td_bench_child_end(&w->server.child);
    td_bench_child_end(&w->flood);
}

static void world_free(world *w)
{
    close_robot(w);
    if (w->robot) td_robot_hardware_close(w->robot);
    free(w);
}
TD_AUTO_FREE(world, world_free)

static td_err open_edge(world *w, td_errinfo *info)
{
    TD_TRY(td_bench_edge_open(&w->setup, w->net, w->robot, &w->edge, info));
    return td_bench_sleep(WARM_NS);
}

static td_err open_net(world *w, td_errinfo *info)
{
    TD_TRY(td_bench_server_start(&w->setup, &w->server, info));
    return td_bench_net_open(&w->setup, &w->server, &w->net, info);
}

static td_err world_new(const td_bench_options *options, int64_t fps,
                        world **ret_world, td_errinfo *info)
{
    TD_AUTO(world) *w = calloc(1, sizeof *w);
    if (!w) return TD_ERR_NOMEM;
    w->setup = (td_bench_setup){.link = TD_BENCH_TCP,
                                .fps = fps,
                                .cameras = 2,
                                .height = 128,
                                .width = 130,
                                .raw = true};
    w->pair_count = options->quick ? 3 : 21;
    // Enough ticks for a p99.9.
    w->block_ns = options->quick ? TD_NS_PER_S / 2 : 6 * TD_NS_PER_S;
    if (fps < 1000) w->block_ns *= 2;
    TD_TRY(td_bench_still_open(&w->setup, &w->robot));
    TD_TRY(open_net(w, info));
    *ret_world = TD_TAKE(w);
    return TD_OK;
}

// The edge's lateness during the next block.
static td_err watch_edge(world *w, td_hist *ret_hist)
{
    const td_hist *live =
        td_edge_times_get(td_bench_edge_get(w->edge)).lateness_ns;
    td_hist_init(&w->before);
    td_hist_merge(&w->before, live);
    TD_TRY(td_bench_sleep(w->block_ns));
    td_hist_init(&w->now);
    td_hist_merge(&w->now, live);
    td_hist_since(&w->now, &w->before, ret_hist);
    return TD_OK;
}

typedef struct bare {
    int64_t period_ns;
    td_hist *lateness_ns;
    _Atomic bool warm, stop;
} bare;

static void run_bare(void *user)
{
    bare *loop = user;
    td_thread_prefault_stack(STACK_BYTES);
    int64_t due_ns = td_clock_monotonic_ns() + loop->period_ns;
    while (!loop->stop) {
        td_clock_sleep_until(due_ns);
        int64_t now_ns = td_clock_monotonic_ns();
        if (loop->warm) td_hist_record(loop->lateness_ns, now_ns - due_ns);
        due_ns += (1 + (now_ns - due_ns) / loop->period_ns) * loop->period_ns;
    }
}

// With the priority of the edge's tick.
static td_err watch_bare(world *w, int priority, int cpu, td_errinfo *info)
{
    bare loop = {.period_ns = TD_NS_PER_S / w->setup.fps,
                 .lateness_ns = &w->theirs};
    const td_thread_config config = {
        .name = "bare-timer", .realtime_priority = priority, .cpu = cpu};
    td_thread *thread;
    td_hist_init(&w->theirs);
    TD_TRY(td_thread_start(&config, run_bare, &loop, &thread, info));
    td_err err = td_bench_sleep(WARM_NS);
    loop.warm = true;
    if (err == TD_OK) err = td_bench_sleep(w->block_ns);
    loop.stop = true;
    td_thread_join(thread);
    return err;
}

static void add_pair(const world *w, td_bench_pairs pairs[QUANTILES])
{
    for (int q = 0; q < QUANTILES; q++)
        td_bench_pairs_add(&pairs[q],
                           td_bench_quantile_us(&w->ours, quantiles[q]),
                           td_bench_quantile_us(&w->theirs, quantiles[q]));
}

// A limit of 0 means: no limit.
static void print_pairs(const td_bench_options *options, const world *w,
                        const td_bench_pairs pairs[QUANTILES], const char *what,
                        const char *against, double limit)
{
    for (int q = 0; q < QUANTILES; q++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%lldhz/%s/p%g",
                       (long long)w->setup.fps, what, 100 * quantiles[q]);
        td_bench_row row = {
            .bench = "tick",
            .name = name,
            .value = td_bench_pairs_value(&pairs[q]),
            .unit = "us",
            .against = against,
            .ratio = td_bench_pairs_ratio(&pairs[q]),
            .limited = limit > 0 ? TD_BENCH_RATIO : TD_BENCH_NO_LIMIT,
            .limit = limit,
        };
        td_bench_pairs_range(&pairs[q], &row.low, &row.high);
        td_bench_print(options, &row);
    }
}

static td_err watch_both(world *w, bool edge_first, td_errinfo *info)
{
    TD_TRY(open_edge(w, info));
    int priority = td_bench_edge_config(w->edge)->realtime_priority;
    int cpu = td_bench_edge_config(w->edge)->cpu;
    if (edge_first) TD_TRY(watch_edge(w, &w->ours));
    close_edge(w);
    TD_TRY(watch_bare(w, priority, cpu, info));
    if (edge_first) return TD_OK;
    TD_TRY(open_edge(w, info));
    TD_TRY(watch_edge(w, &w->ours));
    close_edge(w);
    return TD_OK;
}

static td_err run_beside_bare(const td_bench_options *options, int64_t fps,
                              td_errinfo *info)
{
    TD_AUTO(world) *w = NULL;
    TD_TRY(world_new(options, fps, &w, info));
    for (size_t i = 0; i < w->pair_count; i++) {
        td_bench_progress("tick: %lld Hz beside a bare timer, pair %zu of %zu",
                          (long long)fps, i + 1, w->pair_count);
        TD_TRY(watch_both(w, i % 2 == 0, info));
        add_pair(w, w->pairs);
    }
    print_pairs(options, w, w->pairs, "lateness", "bare timer", BARE_LIMIT);
    return TD_OK;
}

// How far two equal sides come out apart: the grain of all that follows.
static td_err do_nothing(world *w, td_errinfo *info)
{
    (void)w;
    (void)info;
    return TD_OK;
}

static td_err begin_kill(world *w, td_errinfo *info)
{
    (void)info;
    td_bench_child_kill(&w->server.child);
    return TD_OK;
}

static td_err end_kill(world *w, td_errinfo *info)
{
    close_robot(w);
    TD_TRY(open_net(w, info));
    return open_edge(w, info);
}

static td_err begin_stop(world *w, td_errinfo *info)
{
    (void)info;
    (void)kill(w->server.child.pid, SIGSTOP);
    return TD_OK;
}

static td_err end_stop(world *w, td_errinfo *info)
{
    (void)kill(w->server.child.pid, SIGCONT);
    TD_TRY(td_bench_sleep(SETTLE_NS));
    return td_bench_edge_wait(w->edge, info);
}

// Robot and server meet at the process that floods, so that the flood and the
// answers share the robot's only link, as they would if the server itself
// flooded.
static td_err open_flooded(world *w, td_errinfo *info)
{
    char key[TD_WIRE_MAX_KEY];
    const char *args[] = {"flood", w->meeting, key, NULL};
    close_robot(w);
    td_bench_next_action_key(key);
    TD_TRY(td_bench_endpoint(TD_BENCH_TCP, w->meeting, info));
    TD_TRY(td_bench_child_start(args, &w->flood, info));
    TD_TRY(td_bench_child_ready(&w->flood, info));
    w->setup.meeting = w->meeting;
    return open_net(w, info);
}

static td_err begin_flood(world *w, td_errinfo *info)
{
    (void)info;
    (void)kill(w->flood.pid, SIGUSR1);
    return TD_OK;
}

static td_err end_flood(world *w, td_errinfo *info)
{
    (void)kill(w->flood.pid, SIGUSR2);
    TD_TRY(td_bench_sleep(SETTLE_NS));
    return td_bench_edge_wait(w->edge, info);
}

static void spin(void *user)
{
    world *w = user;
    while (w->spinning)
        ;
}

// Keeps the other CPU busy, and never enters the kernel: what is left of a
// flood without its messages.
static td_err begin_spin(world *w, td_errinfo *info)
{
    const td_thread_config config = {.name = "bench-spin", .cpu = -1};
    w->spinning = true;
    return td_thread_start(&config, spin, w, &w->spinner, info);
}

static td_err end_spin(world *w, td_errinfo *info)
{
    (void)info;
    end_spinner(w);
    return TD_OK;
}

static td_err begin_camera(world *w, td_errinfo *info)
{
    (void)info;
    td_bench_still_block(w->robot, TD_BENCH_BLOCK_CAMERA);
    return TD_OK;
}

static td_err begin_driver(world *w, td_errinfo *info)
{
    (void)info;
    td_bench_still_block(w->robot, TD_BENCH_BLOCK_DRIVER);
    return TD_OK;
}

static td_err end_block(world *w, td_errinfo *info)
{
    td_bench_still_block(w->robot, TD_BENCH_BLOCK_NOTHING);
    TD_TRY(td_bench_sleep(SETTLE_NS));
    return td_bench_edge_wait(w->edge, info);
}

static const struct disturbance {
    const char *name;
    double limit; // 0: none
    bool floods;
    bool own_cpu; // of the tick: everything else runs on the others
    td_err (*begin)(world *w, td_errinfo *info);
    td_err (*end)(world *w, td_errinfo *info);
} disturbances[] = {
    {"nothing", 0, false, false, do_nothing, do_nothing},
    {"killed", DISTURBED_LIMIT, false, false, begin_kill, end_kill},
    {"stopped", DISTURBED_LIMIT, false, false, begin_stop, end_stop},
    {"camera-blocks", DISTURBED_LIMIT, false, false, begin_camera, end_block},
    {"driver-blocks", DISTURBED_LIMIT, false, false, begin_driver, end_block},
    {"flooded", DISTURBED_LIMIT, true, false, begin_flood, end_flood},
    {"flooded-own-cpu", DISTURBED_LIMIT, true, true, begin_flood, end_flood},
    {"busy-own-cpu", 0, false, true, begin_spin, end_spin},
};

typedef struct traffic {
    double junk, chunks;
} traffic;

static traffic received(const world *w)
{
    td_edge_report report;
    td_edge_report_get(td_bench_edge_get(w->edge), &report);
    return (traffic){
        .junk = (double)(report.counts.strays[TD_EDGE_STRAY_MALFORMED] +
                         report.inbox_full),
        .chunks = (double)report.counts.outcomes[TD_EDGE_MERGED],
    };
}

// The edge's lateness during the next block, and what it got a second.
static td_err watch_traffic(world *w, td_hist *ret_hist, traffic *ret_hz)
{
    double block_s = (double)w->block_ns / (double)TD_NS_PER_S;
    traffic before = received(w);
    TD_TRY(watch_edge(w, ret_hist));
    traffic after = received(w);
    ret_hz->junk = (after.junk - before.junk) / block_s;
    ret_hz->chunks = (after.chunks - before.chunks) / block_s;
    return TD_OK;
}

// A timer after the flood, beside the one that was in it (`theirs`): what the
// flood does to the machine.
static td_err watch_calm_timer(world *w, td_errinfo *info)
{
    const td_edge_config *config = td_bench_edge_config(w->edge);
    w->ours = w->theirs;
    TD_TRY(watch_bare(w, config->realtime_priority, config->cpu, info));
    add_pair(w, w->timer_pairs);
    return TD_OK;
}

static td_err watch_disturbed(world *w, const struct disturbance *disturbance,
                              double *ret_junk_hz, td_errinfo *info)
{
    const td_edge_config *config = td_bench_edge_config(w->edge);
    traffic calm_hz, hz;
    TD_TRY(watch_traffic(w, &w->theirs, &calm_hz));
    TD_TRY(disturbance->begin(w, info));
    TD_TRY(watch_traffic(w, &w->ours, &hz));
    *ret_junk_hz = hz.junk;
    add_pair(w, w->pairs);
    td_bench_pairs_add(&w->chunk_pairs, hz.chunks, calm_hz.chunks);
    if (disturbance->floods)
        TD_TRY(watch_bare(w, config->realtime_priority, config->cpu, info));
    if (disturbance->floods) add_pair(w, w->bare_pairs);
    TD_TRY(disturbance->end(w, info));
    return disturbance->floods ? watch_calm_timer(w, info) : TD_OK;
}

static void print_junk(const td_bench_options *options, const char *what,
                       double *junk_hz, size_t count)
{
    char name[64];
    (void)snprintf(name, sizeof name, "1000hz/%s/answers", what);
    const td_bench_row row = {
        .bench = "tick",
        .name = name,
        .value = td_bench_median(junk_hz, count),
        .unit = "1/s",
        .more = true,
    };
    td_bench_print(options, &row);
}

static void print_chunks(const td_bench_options *options, const world *w,
                         const char *what)
{
    char name[64];
    (void)snprintf(name, sizeof name, "1000hz/%s/chunks", what);
    td_bench_row row = {
        .bench = "tick",
        .name = name,
        .value = td_bench_pairs_value(&w->chunk_pairs),
        .unit = "1/s",
        .against = "undisturbed",
        .ratio = td_bench_pairs_ratio(&w->chunk_pairs),
        .more = true,
    };
    td_bench_pairs_range(&w->chunk_pairs, &row.low, &row.high);
    td_bench_print(options, &row);
}

static td_err run_disturbed(const td_bench_options *options,
                            const struct disturbance *disturbance, int own_cpu,
                            td_errinfo *info)
{
    double junk_hz[TD_BENCH_MAX_PAIRS];
    TD_AUTO(world) *w = NULL;
    TD_TRY(world_new(options, 1000, &w, info));
    w->setup.own_cpu = own_cpu;
    if (disturbance->floods) TD_TRY(open_flooded(w, info));
    TD_TRY(open_edge(w, info));
    for (size_t i = 0; i < w->pair_count; i++) {
        td_bench_progress("tick: 1000 Hz, %s, pair %zu of %zu",
                          disturbance->name, i + 1, w->pair_count);
        TD_TRY(watch_disturbed(w, disturbance, &junk_hz[i], info));
    }
    print_pairs(options, w, w->pairs, disturbance->name, "undisturbed",
                disturbance->limit);
    if (!disturbance->floods) return TD_OK;
    char name[64];
    (void)snprintf(name, sizeof name, "%s-bare", disturbance->name);
    print_pairs(options, w, w->bare_pairs, name, "bare timer, flooded", 0);
    (void)snprintf(name, sizeof name, "%s-timer", disturbance->name);
    print_pairs(options, w, w->timer_pairs, name, "bare timer, calm", 0);
    print_junk(options, disturbance->name, junk_hz, w->pair_count);
    print_chunks(options, w, disturbance->name);
    return TD_OK;
}

// The tick has the last CPU to itself, as `realtime.cpu` does it for a robot;
// whoever floods is another machine's, and runs on the others too.
static td_err run_beside(const td_bench_options *options,
                         const struct disturbance *disturbance,
                         td_errinfo *info)
{
    int cpu = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
    cpu_set_t before;
    TD_TRY(td_thread_keep_off(cpu, &before, info));
    td_err err = run_disturbed(options, disturbance, cpu + 1, info);
    td_thread_run_on(&before);
    return err;
}

typedef struct host {
    double all, stolen; // processor time so far, of all CPUs
} host;

// Nothing where the system does not say.
static host look_at_host(void)
{
    double part[8] = {0}; // user, nice, system, idle, iowait, irq, softirq, ...
    host seen = {0};
    FILE *file = fopen("/proc/stat", "re");
    if (!file) return seen;
    if (fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &part[0], &part[1],
               &part[2], &part[3], &part[4], &part[5], &part[6],
               &part[7]) == TD_COUNT_OF(part))
        seen.stolen = part[7];
    (void)fclose(file);
    for (size_t i = 0; i < TD_COUNT_OF(part); i++)
        seen.all += part[i];
    return seen;
}

// What the host of a virtual machine ran instead of it: no tick is on time
// then.
static void print_stolen(const td_bench_options *options, const host *before)
{
    host now = look_at_host();
    if (now.all <= before->all) return;
    const td_bench_row row = {
        .bench = "tick",
        .name = "host/stolen",
        .value = 100 * (now.stolen - before->stolen) / (now.all - before->all),
        .unit = "%",
    };
    td_bench_print(options, &row);
}

static td_err run_all(const td_bench_options *options, td_errinfo *info)
{
    if (td_bench_wanted(options, "100hz/lateness"))
        TD_TRY(run_beside_bare(options, 100, info));
    if (td_bench_wanted(options, "1000hz/lateness"))
        TD_TRY(run_beside_bare(options, 1000, info));
    for (size_t i = 0; i < TD_COUNT_OF(disturbances); i++) {
        char name[64]; // as its rows begin
        (void)snprintf(name, sizeof name, "1000hz/%s/", disturbances[i].name);
        if (!td_bench_wanted(options, name)) continue;
        TD_TRY(disturbances[i].own_cpu
                   ? run_beside(options, &disturbances[i], info)
                   : run_disturbed(options, &disturbances[i], 0, info));
    }
    return TD_OK;
}

td_err td_bench_tick(const td_bench_options *options, td_errinfo *info)
{
    int awake = td_bench_stay_awake(options);
    const host before = look_at_host();
    td_err err = run_all(options, info);
    if (err == TD_OK) print_stolen(options, &before);
    if (awake >= 0) (void)close(awake);
    return err;
}

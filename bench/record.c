// SPDX-License-Identifier: Apache-2.0
// Recording two cameras: whether one core keeps up, what the control tick
// notices of it, and what it costs beside LeRobot's own writer.
#include "base/clock.h"
#include "base/sync/thread.h"
#include "bench/footage.h"
#include "bench/rig.h"
#include "edge/record/episode_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define HEIGHT 480
#define WIDTH 640
#define CAMERAS 2
#define FPS 30
#define CONTROL_HZ 990 // enough ticks for a p99.9
#define WARM_NS (TD_NS_PER_S / 2)
#define LATENESS_LIMIT 1.2
#define CPU_LIMIT 0.5

static td_bench_setup setup_of(int64_t control_hz)
{
    return (td_bench_setup){
        .link = TD_BENCH_TCP,
        .fps = FPS,
        .control_hz = control_hz,
        .cameras = CAMERAS,
        .height = HEIGHT,
        .width = WIDTH,
    };
}

// Of this process, with all its threads.
static double spent_s(void)
{
    struct rusage used;
    (void)getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

typedef struct world {
    td_bench_setup setup;
    td_bench_footage footage;
    td_bench_server server;
    td_net *net;
    td_robot_hardware *robot;
    td_bench_edge *edge;
    char folder[TD_BENCH_PATH_BYTES]; // of the dataset
} world;

static void world_close(world *w)
{
    if (w->edge) td_bench_edge_close(TD_TAKE(w->edge));
    if (w->net) td_net_close(w->net);
    if (w->robot) td_robot_hardware_close(w->robot);
    td_bench_child_end(&w->server.child);
    td_bench_footage_done(&w->footage);
    free(w);
}
TD_AUTO_FREE(world, world_close)

static td_err world_new(int64_t control_hz, world **ret_world, td_errinfo *info)
{
    TD_AUTO(world) *w = calloc(1, sizeof *w);
    if (!w) return TD_ERR_NOMEM;
    w->setup = setup_of(control_hz);
    TD_TRY(td_bench_file("dataset", w->folder, info));
    TD_TRY(td_bench_footage_init(&w->footage, HEIGHT, WIDTH));
    TD_TRY(td_bench_footage_robot(&w->footage, &w->robot));
    TD_TRY(td_bench_server_start(&w->setup, &w->server, info));
    *ret_world = TD_TAKE(w);
    return TD_OK;
}

static td_err open_edge(world *w, bool records, td_errinfo *info)
{
    w->setup.record = records ? w->folder : NULL;
    TD_TRY(td_bench_edge_open(&w->setup, w->net, w->robot, &w->edge, info));
    return td_bench_sleep(WARM_NS);
}

static void close_edge(world *w)
{
    td_bench_edge_close(TD_TAKE(w->edge));
}

static td_edge_record_status recorded(const world *w)
{
    td_edge_report report;
    td_edge_report_get(td_bench_edge_get(w->edge), &report);
    return report.record;
}

static void print_missing(const td_bench_options *options,
                          const td_edge_record_status *seen, uint64_t frames)
{
    uint64_t missing = seen->lost;
    for (int i = 0; i < CAMERAS; i++)
        missing += seen->missing[i];
    const td_bench_row row = {
        .bench = "record",
        .name = "one-core/missing",
        .value = (double)missing,
        .unit = "frames",
        .limited = TD_BENCH_VALUE,
        .limit = 0,
    };
    td_bench_print(options, &row);
    td_bench_say(options, "  of %llu frames recorded",
                 (unsigned long long)frames);
}

static void print_share(const td_bench_options *options, const char *name,
                        double share)
{
    const td_bench_row row = {
        .bench = "record",
        .name = name,
        .value = 100 * share,
        .unit = "% of a core",
    };
    td_bench_print(options, &row);
}

// The processor that a block of the edge takes, of one core.
static td_err watch_share(int64_t block_ns, double *ret_share)
{
    double began_s = spent_s();
    int64_t began_ns = td_clock_monotonic_ns();
    TD_TRY(td_bench_sleep(block_ns));
    double passed_s =
        (double)(td_clock_monotonic_ns() - began_ns) / TD_NS_PER_S;
    *ret_share = (spent_s() - began_s) / passed_s;
    return TD_OK;
}

static td_err keep_up(const td_bench_options *options, world *w,
                      td_errinfo *info)
{
    int64_t block_ns = (options->quick ? 3 : 60) * TD_NS_PER_S;
    double with, without;
    TD_TRY(open_edge(w, false, info));
    TD_TRY(watch_share(block_ns / 4, &without));
    close_edge(w);
    TD_TRY(open_edge(w, true, info));
    td_edge_record_status before = recorded(w);
    TD_TRY(watch_share(block_ns, &with));
    td_edge_record_status seen = recorded(w);
    for (int i = 0; i < CAMERAS; i++)
        seen.missing[i] -= before.missing[i];
    seen.lost -= before.lost;
    close_edge(w);
    print_missing(options, &seen, seen.frames - before.frames);
    print_share(options, "one-core/share", with);
    print_share(options, "one-core/share-without", without);
    return TD_OK;
}

// The robot's whole process on one core; its server is another machine's.
static td_err run_one_core(const td_bench_options *options, td_errinfo *info)
{
    cpu_set_t before, one;
    TD_AUTO(world) *w = NULL;
    TD_TRY(world_new(FPS, &w, info));
    if (sched_getaffinity(0, sizeof before, &before) != 0)
        return td_fail(info, TD_ERR_IO, "which CPUs are there?");
    CPU_ZERO(&one);
    CPU_SET((int)sysconf(_SC_NPROCESSORS_ONLN) - 1, &one);
    td_thread_run_on(&one);
    td_err err = td_bench_net_open(&w->setup, &w->server, &w->net, info);
    if (err == TD_OK) err = keep_up(options, w, info);
    td_thread_run_on(&before);
    return err;
}

enum { P99, P999, QUANTILES };
static const double quantiles[] = {[P99] = 0.99, [P999] = 0.999};

// Quantiles of the tick's lateness in a block of its own edge.
static td_err watch_ticks(world *w, bool records, int64_t block_ns,
                          double ret_us[QUANTILES], td_errinfo *info)
{
    td_hist before, now, block;
    TD_TRY(open_edge(w, records, info));
    const td_hist *live =
        td_edge_times_get(td_bench_edge_get(w->edge)).lateness_ns;
    td_hist_init(&before);
    td_hist_merge(&before, live);
    TD_TRY(td_bench_sleep(block_ns));
    td_hist_init(&now);
    td_hist_merge(&now, live);
    td_hist_since(&now, &before, &block);
    close_edge(w);
    for (int q = 0; q < QUANTILES; q++)
        ret_us[q] = td_bench_quantile_us(&block, quantiles[q]);
    return TD_OK;
}

static td_err watch_pair(world *w, bool recording_first, int64_t block_ns,
                         td_bench_pairs pairs[QUANTILES], td_errinfo *info)
{
    double us[2][QUANTILES]; // without and with
    for (int turn = 0; turn < 2; turn++) {
        bool records = recording_first == (turn == 0);
        TD_TRY(watch_ticks(w, records, block_ns, us[records], info));
    }
    for (int q = 0; q < QUANTILES; q++)
        td_bench_pairs_add(&pairs[q], us[true][q], us[false][q]);
    return TD_OK;
}

static void print_lateness(const td_bench_options *options, int quantile,
                           const td_bench_pairs *pairs)
{
    char name[64];
    (void)snprintf(name, sizeof name, "lateness/p%g",
                   100 * quantiles[quantile]);
    td_bench_row row = {
        .bench = "record",
        .name = name,
        .value = td_bench_pairs_value(pairs),
        .unit = "us",
        .against = "not recording",
        .ratio = td_bench_pairs_ratio(pairs),
        .limited = TD_BENCH_RATIO,
        .limit = LATENESS_LIMIT,
    };
    td_bench_pairs_range(pairs, &row.low, &row.high);
    td_bench_print(options, &row);
}

static td_err run_lateness(const td_bench_options *options, td_errinfo *info)
{
    size_t count = options->quick ? 2 : 41;
    int64_t block_ns = (options->quick ? 1 : 5) * TD_NS_PER_S;
    td_bench_pairs pairs[QUANTILES] = {0};
    TD_AUTO(world) *w = NULL;
    TD_TRY(world_new(CONTROL_HZ, &w, info));
    TD_TRY(td_bench_net_open(&w->setup, &w->server, &w->net, info));
    for (size_t i = 0; i < count; i++) {
        td_bench_progress("record: lateness, pair %zu of %zu", i + 1, count);
        TD_TRY(watch_pair(w, i % 2 == 0, block_ns, pairs, info));
    }
    for (int q = 0; q < QUANTILES; q++)
        print_lateness(options, q, &pairs[q]);
    return TD_OK;
}

enum { DEFAULT, STREAMING, MODES };
static const struct {
    const char *word, *name, *against;
    double limit; // 0: none
} modes[] = {
    [DEFAULT] = {"default", "cpu/beside-lerobot", "LeRobot", CPU_LIMIT},
    [STREAMING] = {"streaming", "cpu/beside-lerobot-streaming",
                   "LeRobot, streaming", 0},
};

typedef struct contest {
    td_bench_setup setup;
    td_bench_footage footage;
    td_edge_episode_sink sink;
    td_bench_peer peers[MODES];
    uint32_t rows; // of an episode
    td_bench_pairs pairs[MODES];
} contest;

static void contest_free(contest *c)
{
    if (c->sink.close) c->sink.close(c->sink.user);
    for (int i = 0; i < MODES; i++)
        td_bench_child_end(&c->peers[i].child);
    td_bench_footage_done(&c->footage);
    free(c);
}
TD_AUTO_FREE(contest, contest_free)

static td_err add_row(contest *c, uint64_t number, td_errinfo *info)
{
    static const float values[TD_BENCH_JOINTS];
    td_dataset_image images[CAMERAS];
    for (uint32_t i = 0; i < CAMERAS; i++)
        images[i] =
            (td_dataset_image){TD_DATASET_IMAGE_RGB,
                               {td_bench_footage_frame(&c->footage, i, number),
                                c->footage.frame_bytes}};
    const td_dataset_frame frame = {
        .task = "wave", .state = values, .action = values, .images = images};
    return c->sink.add(c->sink.user, &frame, info);
}

// An episode at a robot's pace, and the processor's milliseconds of a row.
static td_err record_ours(contest *c, double *ret_ms, td_errinfo *info)
{
    double began_s = spent_s();
    int64_t due_ns = td_clock_monotonic_ns();
    uint32_t episode;
    TD_TRY(c->sink.begin(c->sink.user, info));
    for (uint32_t i = 0; i < c->rows; i++) {
        TD_TRY(add_row(c, i, info));
        due_ns += TD_NS_PER_S / FPS;
        td_clock_sleep_until(due_ns);
    }
    TD_TRY(c->sink.end(c->sink.user, &episode, info));
    *ret_ms = 1e3 * (spent_s() - began_s) / c->rows;
    return TD_OK;
}

static td_err start_peers(contest *c, td_errinfo *info)
{
    char path[TD_BENCH_PATH_BYTES], frames[16], height[16], width[16], rows[16],
        fps[16];
    TD_TRY(td_bench_file("rgb", path, info));
    TD_TRY(td_bench_footage_write(&c->footage, path, info));
    (void)snprintf(frames, sizeof frames, "%d", TD_BENCH_FOOTAGE_FRAMES);
    (void)snprintf(height, sizeof height, "%d", HEIGHT);
    (void)snprintf(width, sizeof width, "%d", WIDTH);
    (void)snprintf(rows, sizeof rows, "%u", c->rows);
    (void)snprintf(fps, sizeof fps, "%d", FPS);
    for (int i = 0; i < MODES; i++) {
        const char *args[] = {
            "lerobot_record.py", path, frames, height, width, rows, fps,
            modes[i].word,       NULL};
        TD_TRY(td_bench_peer_start(args, &c->peers[i], info));
    }
    return TD_OK;
}

static td_err contest_new(const td_bench_options *options,
                          contest **ret_contest, td_errinfo *info)
{
    TD_AUTO(contest) *c = calloc(1, sizeof *c);
    if (!c) return TD_ERR_NOMEM;
    char folder[TD_BENCH_PATH_BYTES];
    TD_TRY(td_bench_file("dataset", folder, info));
    c->setup = setup_of(FPS);
    c->setup.record = folder;
    c->rows = options->quick ? 30 : 300;
    TD_TRY(td_bench_footage_init(&c->footage, HEIGHT, WIDTH));
    TD_TRY(td_bench_record_open(&c->setup, &c->sink, info));
    if (td_bench_peer_can(options, "LeRobot", "lerobot_record.py"))
        TD_TRY(start_peers(c, info));
    *ret_contest = TD_TAKE(c);
    return TD_OK;
}

static td_err run_turn(contest *c, td_errinfo *info)
{
    double ours_ms;
    TD_TRY(record_ours(c, &ours_ms, info));
    for (int i = 0; i < MODES; i++) {
        double theirs[2] = {0}; // milliseconds, late rows
        if (c->peers[i].child.pid > 0)
            TD_TRY(td_bench_peer_block(&c->peers[i], theirs, 2, info));
        td_bench_pairs_add(&c->pairs[i], ours_ms, theirs[0]);
    }
    return TD_OK;
}

static void print_cost(const td_bench_options *options, const contest *c,
                       int mode)
{
    bool beside = c->peers[mode].child.pid > 0;
    const td_bench_pairs *pairs = &c->pairs[mode];
    td_bench_row row = {
        .bench = "record",
        .name = modes[mode].name,
        .value = td_bench_pairs_value(pairs),
        .unit = "ms a row",
        .against = beside ? modes[mode].against : NULL,
        .ratio = beside ? td_bench_pairs_ratio(pairs) : 0,
        .limited = beside && modes[mode].limit > 0 ? TD_BENCH_RATIO
                                                   : TD_BENCH_NO_LIMIT,
        .limit = modes[mode].limit,
    };
    if (beside) td_bench_pairs_range(pairs, &row.low, &row.high);
    td_bench_print(options, &row);
}

static td_err run_beside_lerobot(const td_bench_options *options,
                                 td_errinfo *info)
{
    size_t turns = options->quick ? 1 : 7;
    TD_AUTO(contest) *c = NULL;
    TD_TRY(contest_new(options, &c, info));
    for (size_t i = 0; i < turns; i++) {
        td_bench_progress("record: beside LeRobot, turn %zu of %zu", i + 1,
                          turns);
        TD_TRY(run_turn(c, info));
    }
    for (int i = 0; i < MODES; i++)
        print_cost(options, c, i);
    return TD_OK;
}

static td_err run_all(const td_bench_options *options, td_errinfo *info)
{
    if (td_bench_wanted(options, "one-core"))
        TD_TRY(run_one_core(options, info));
    if (td_bench_wanted(options, "lateness"))
        TD_TRY(run_lateness(options, info));
    if (td_bench_wanted(options, "cpu"))
        TD_TRY(run_beside_lerobot(options, info));
    return TD_OK;
}

td_err td_bench_record(const td_bench_options *options, td_errinfo *info)
{
    int awake = td_bench_stay_awake(options);
    td_err err = run_all(options, info);
    if (awake >= 0) (void)close(awake);
    return err;
}

// SPDX-License-Identifier: Apache-2.0
// Many robots for minutes: memory must stay flat, and every observation that
// was asked for must have ended under one name on each side.
#include "base/clock.h"
#include "bench/rig.h"
#include "net/net.h"
#include "server/core/core.h"
#include "wire/wire.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_ROBOTS 256
#define SAMPLE_NS TD_NS_PER_S
#define SAMPLES_A_LINE 30
#define QUICK_SAMPLES 3
#define DRAIN_NS (3 * TD_NS_PER_S)
#define FLAT_LIMIT 1.05
#define ANSWERED_LIMIT_MS 100
#define ANSWERED_LOOK_NS (2 * TD_NS_PER_MS)
#define ANSWERED_GIVE_UP_NS TD_NS_PER_S

static td_bench_setup setup = {
    .link = TD_BENCH_TCP,
    .fps = 30,
    .cameras = 1,
    .height = 96,
    .width = 128,
    .eager = true,
};

// Observations as no robot sends them, were each to arrive once.
static const td_server_outcome server_strays[] = {
    TD_SERVER_MALFORMED, TD_SERVER_OLD_BOOT, TD_SERVER_OLD_EPISODE,
    TD_SERVER_OLD_SEQ};
#define SERVER_STRAYS TD_COUNT_OF(server_strays)

// What the server says of itself in its metrics. Transport's thread writes.
typedef struct server_counts {
    td_wire_decoder *decoder;
    td_wire_metrics metrics; // scratch
    _Atomic uint64_t received, ended;
    _Atomic uint64_t answers; // that left
    _Atomic uint64_t strays[SERVER_STRAYS];
} server_counts;

typedef struct one_robot {
    td_net *net;
    td_robot_hardware *robot;
    td_bench_edge *edge;
} one_robot;

// Resident memory in MB, once a second.
typedef struct rss {
    double *server, *robots;
    size_t count, capacity;
} rss;

typedef struct world {
    td_bench_server server;
    td_net *net;
    td_net_decl *watch;
    server_counts counts;
    one_robot robots[MAX_ROBOTS];
    size_t robot_count;
    uint64_t killed;
    td_hist answered_ns; // from each kill until nobody waits for what was lost
    rss memory;
} world;

static void world_free(world *w)
{
    for (size_t i = 0; i < w->robot_count; i++) {
        one_robot *one = &w->robots[i];
        if (one->edge) td_bench_edge_close(one->edge);
        if (one->robot) td_robot_hardware_close(one->robot);
        if (one->net) td_net_close(one->net);
    }
    if (w->watch) (void)td_net_undeclare(w->watch);
    if (w->net) td_net_close(w->net);
    td_bench_child_end(&w->server.child);
    if (w->counts.decoder) td_wire_decoder_free(w->counts.decoder);
    free(w->memory.server);
    free(w->memory.robots);
    free(w);
}
TD_AUTO_FREE(world, world_free)

static uint64_t counter(const td_wire_metrics *metrics, const char *name)
{
    for (uint32_t i = 0; i < metrics->counter_count; i++)
        if (td_wire_text_is(metrics->counters[i].name, name))
            return metrics->counters[i].value;
    return 0;
}

// Transport's thread.
static void on_metrics(void *user, const td_net_sample *sample)
{
    static const td_server_outcome in_time[] = {
        TD_SERVER_ANSWERED, TD_SERVER_FAILED, TD_SERVER_UNREADY,
        TD_SERVER_REFUSED,  TD_SERVER_STALE,  TD_SERVER_MALFORMED};
    server_counts *counts = user;
    const td_wire_metrics *metrics = &counts->metrics;
    if (!sample->whole ||
        td_wire_metrics_decode(counts->decoder, sample->head.data,
                               sample->head.size, &counts->metrics,
                               NULL) != TD_OK)
        return;
    uint64_t ended = 0;
    for (int i = 0; i < TD_SERVER_OUTCOME_COUNT; i++)
        ended += counter(metrics, td_server_outcome_name((td_server_outcome)i));
    uint64_t answers = 0;
    for (size_t i = 0; i < TD_COUNT_OF(in_time); i++)
        answers += counter(metrics, td_server_outcome_name(in_time[i]));
    for (size_t i = 0; i < SERVER_STRAYS; i++)
        counts->strays[i] =
            counter(metrics, td_server_outcome_name(server_strays[i]));
    counts->ended = ended;
    counts->answers = answers - counter(metrics, "puts_failed");
    counts->received = counter(metrics, "received");
}

static td_err watch_server(world *w, td_errinfo *info)
{
    td_hist_init(&w->answered_ns);
    TD_TRY(td_wire_decoder_new(&w->counts.decoder));
    TD_TRY(td_bench_net_open(&setup, &w->server, &w->net, info));
    return td_net_subscribe(w->net, "bench/bench/still/v1/bench/metrics",
                            on_metrics, &w->counts, &w->watch, info);
}

static td_err open_robot(world *w, one_robot *one, td_errinfo *info)
{
    TD_TRY(td_bench_net_open(&setup, &w->server, &one->net, info));
    TD_TRY(td_bench_synthetic_open(&setup, &one->robot, info));
    return td_bench_edge_open(&setup, one->net, one->robot, &one->edge, info);
}

static td_err world_new(const td_bench_options *options, world **ret_world,
                        td_errinfo *info)
{
    TD_AUTO(world) *w = calloc(1, sizeof *w);
    if (!w) return TD_ERR_NOMEM;
    w->memory.capacity =
        options->quick ? QUICK_SAMPLES : (size_t)options->minutes * 60;
    w->memory.server = calloc(w->memory.capacity, sizeof(double));
    w->memory.robots = calloc(w->memory.capacity, sizeof(double));
    if (!w->memory.server || !w->memory.robots) return TD_ERR_NOMEM;
    TD_TRY(td_bench_server_start(&setup, &w->server, info));
    TD_TRY(watch_server(w, info));
    while (w->robot_count < (size_t)options->robots) {
        td_bench_progress("soak: robot %zu of %lld", w->robot_count + 1,
                          (long long)options->robots);
        TD_TRY(open_robot(w, &w->robots[w->robot_count++], info));
    }
    *ret_world = TD_TAKE(w);
    return TD_OK;
}

static double resident_mb(pid_t pid)
{
    char path[64];
    long pages = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    if (fscanf(file, "%*s %ld", &pages) != 1) pages = 0;
    (void)fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

// The server's only child, if it has one.
static pid_t worker_of(pid_t server)
{
    DIR *all = opendir("/proc");
    pid_t found = 0;
    for (struct dirent *entry; all && !found && (entry = readdir(all));) {
        char path[300];
        int parent = 0;
        (void)snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = fopen(path, "re");
        if (!file) continue;
        if (fscanf(file, "%*d (%*[^)]) %*c %d", &parent) == 1 &&
            parent == server)
            found = (pid_t)strtol(entry->d_name, NULL, 10);
        (void)fclose(file);
    }
    if (all) (void)closedir(all);
    return found;
}

// Of the observations that a robot has sent so far, those that have ended; with
// `ret_sent` also how many it has sent.
static uint64_t ended_of(const one_robot *one, uint64_t *ret_sent)
{
    td_edge_report report;
    td_edge_report_get(td_bench_edge_get(one->edge), &report);
    uint64_t ended = 0;
    for (int i = 0; i < TD_EDGE_OUTCOME_COUNT; i++)
        if (i != TD_EDGE_PENDING) ended += report.counts.outcomes[i];
    if (ret_sent) *ret_sent = report.counts.sent;
    return ended;
}

// Whether every robot knows what became of its first `sent` observations.
static bool are_answered(const world *w, const uint64_t sent[])
{
    for (size_t i = 0; i < w->robot_count; i++)
        if (ended_of(&w->robots[i], NULL) < sent[i]) return false;
    return true;
}

// Kills it, and waits until all who had asked have an answer.
static td_err kill_worker(world *w)
{
    uint64_t sent[MAX_ROBOTS];
    pid_t worker = worker_of(w->server.child.pid);
    if (worker <= 0 || kill(worker, SIGKILL) != 0) return TD_OK;
    int64_t start_ns = td_clock_monotonic_ns();
    int64_t now_ns = start_ns;
    w->killed++;
    for (size_t i = 0; i < w->robot_count; i++)
        (void)ended_of(&w->robots[i], &sent[i]);
    while (!are_answered(w, sent) && now_ns - start_ns < ANSWERED_GIVE_UP_NS) {
        TD_TRY(td_bench_sleep(ANSWERED_LOOK_NS));
        now_ns = td_clock_monotonic_ns();
    }
    td_hist_record(&w->answered_ns, now_ns - start_ns);
    return TD_OK;
}

static td_err watch_memory(world *w, size_t kill_s)
{
    rss *memory = &w->memory;
    for (size_t i = 0; i < memory->capacity; i++) {
        TD_TRY(td_bench_sleep(SAMPLE_NS));
        memory->server[i] = resident_mb(w->server.child.pid);
        memory->robots[i] = resident_mb(getpid());
        memory->count = i + 1;
        if (kill_s > 0 && (i + 1) % kill_s == 0) TD_TRY(kill_worker(w));
        if (i % SAMPLES_A_LINE == SAMPLES_A_LINE - 1)
            (void)fprintf(stderr,
                          "soak: %4zu s: server %.1f MB, robots %.1f MB\n",
                          i + 1, memory->server[i], memory->robots[i]);
    }
    return TD_OK;
}

// The last third beside the first, after a tenth to warm up.
static bool print_memory(const td_bench_options *options, const char *name,
                         double *samples, size_t count)
{
    size_t warm = count / 10;
    size_t third = (count - warm) / 3;
    double first = td_bench_median(samples + warm, third);
    double last = td_bench_median(samples + count - third, third);
    const td_bench_row row = {
        .bench = "soak",
        .name = name,
        .value = last,
        .unit = "MB",
        .against = "first third",
        .ratio = last / first,
        .limited = TD_BENCH_RATIO,
        .limit = FLAT_LIMIT,
    };
    td_bench_print(options, &row);
    return last / first <= FLAT_LIMIT;
}

// All robots together. What must be 0 is so for each: one robot's surplus does
// not make good what another lacks.
typedef struct totals {
    uint64_t asked, sent;
    uint64_t answers;                     // that came
    uint64_t strays[TD_EDGE_STRAY_COUNT]; // of those, to nothing that was sent
    uint64_t unaccounted; // asked for or sent, and ended under no name
    uint64_t unanswered;  // of what came, to an inbox that had room
    uint64_t pending, dropped;
} totals;

static uint64_t apart(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static uint64_t sum(const uint64_t counts[], size_t count)
{
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += counts[i];
    return all;
}

static uint64_t unaccounted_of(const td_edge_report *report)
{
    const td_edge_counts *counts = &report->counts;
    uint64_t never_sent =
        report->outbox_replaced + sum(counts->skipped, TD_EDGE_SKIP_COUNT);
    return apart(counts->asked, counts->sent + never_sent) +
           apart(counts->sent, sum(counts->outcomes, TD_EDGE_OUTCOME_COUNT));
}

static void add_robot(const one_robot *one, totals *sums)
{
    static const td_edge_outcome answered[] = {
        TD_EDGE_MERGED,   TD_EDGE_REFUSED,   TD_EDGE_TOO_OLD,
        TD_EDGE_EXPIRED,  TD_EDGE_MISSHAPEN, TD_EDGE_NOT_FINITE,
        TD_EDGE_OVERTAKEN};
    td_edge_report report;
    td_edge_report_get(td_bench_edge_get(one->edge), &report);
    const td_edge_counts *counts = &report.counts;
    uint64_t dropped = td_net_counts_get(one->net).drops;
    sums->asked += counts->asked;
    sums->sent += counts->sent;
    for (size_t i = 0; i < TD_COUNT_OF(answered); i++)
        sums->answers += counts->outcomes[answered[i]];
    sums->answers += report.inbox_full;
    sums->answers += sum(counts->strays, TD_EDGE_STRAY_COUNT);
    for (size_t i = 0; i < TD_EDGE_STRAY_COUNT; i++)
        sums->strays[i] += counts->strays[i];
    sums->unaccounted += unaccounted_of(&report);
    uint64_t unanswered = counts->outcomes[TD_EDGE_UNANSWERED];
    uint64_t known = dropped + report.inbox_full;
    sums->unanswered += unanswered > known ? unanswered - known : 0;
    sums->pending += counts->outcomes[TD_EDGE_PENDING];
    sums->dropped += dropped;
}

static bool print_zero(const td_bench_options *options, const char *name,
                       uint64_t value)
{
    const td_bench_row row = {
        .bench = "soak",
        .name = name,
        .value = (double)value,
        .unit = "msgs",
        .limited = TD_BENCH_VALUE,
    };
    td_bench_print(options, &row);
    return value == 0;
}

static void print_count(const td_bench_options *options, const char *name,
                        uint64_t value, const char *unit)
{
    const td_bench_row row = {
        .bench = "soak",
        .name = name,
        .value = (double)value,
        .unit = unit,
        .more = true,
    };
    td_bench_print(options, &row);
}

static bool print_stray(const td_bench_options *options, const char *whose,
                        const char *stray, uint64_t value)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s/stray/%s", whose, stray);
    return print_zero(options, name, value);
}

static bool print_strays(const td_bench_options *options,
                         const server_counts *server, const totals *sums)
{
    bool none = true;
    for (size_t i = 0; i < SERVER_STRAYS; i++)
        none &= print_stray(options, "server",
                            td_server_outcome_name(server_strays[i]),
                            server->strays[i]);
    for (int i = 0; i < TD_EDGE_STRAY_COUNT; i++)
        none &=
            print_stray(options, "robots", td_edge_stray_name((td_edge_stray)i),
                        sums->strays[i]);
    return none;
}

static bool print_accounts(const td_bench_options *options, const world *w)
{
    totals sums = {0};
    const server_counts *server = &w->counts;
    for (size_t i = 0; i < w->robot_count; i++)
        add_robot(&w->robots[i], &sums);
    print_count(options, "robots/asked", sums.asked, "msgs");
    print_count(options, "robots/sent", sums.sent, "msgs");
    print_count(options, "server/received", server->received, "msgs");
    print_count(options, "robots/answers", sums.answers, "msgs");
    bool robots = print_zero(options, "robots/unaccounted", sums.unaccounted);
    bool served = print_zero(options, "server/unaccounted",
                             apart(server->received, server->ended));
    bool there = print_zero(options, "to-server/unaccounted",
                            apart(sums.sent, server->received + sums.dropped));
    bool back = print_zero(options, "to-robots/unaccounted",
                           apart(server->answers, sums.answers));
    bool in_time = print_zero(options, "robots/unanswered", sums.unanswered);
    bool done = print_zero(options, "robots/pending", sums.pending);
    bool none = print_strays(options, server, &sums);
    return robots && served && there && back && in_time && done && none;
}

static bool print_answered(const td_bench_options *options, const world *w)
{
    const double quantiles[] = {0.5, 1};
    bool within = true;
    for (size_t i = 0; i < TD_COUNT_OF(quantiles); i++) {
        double ms = td_bench_quantile_us(&w->answered_ns, quantiles[i]) / 1000;
        char name[32];
        (void)snprintf(name, sizeof name, "killed/answered/p%g",
                       100 * quantiles[i]);
        const td_bench_row row = {
            .bench = "soak",
            .name = name,
            .value = ms,
            .unit = "ms",
            .limited = TD_BENCH_VALUE,
            .limit = ANSWERED_LIMIT_MS,
        };
        td_bench_print(options, &row);
        within = within && ms <= ANSWERED_LIMIT_MS;
    }
    return within;
}

td_err td_bench_soak(const td_bench_options *options, td_errinfo *info)
{
    TD_AUTO(world) *w = NULL;
    setup.worker = options->kill_s > 0;
    setup.fps = options->fps;
    TD_TRY(world_new(options, &w, info));
    TD_TRY(watch_memory(w, (size_t)options->kill_s));
    for (size_t i = 0; i < w->robot_count; i++)
        td_bench_edge_stop(w->robots[i].edge);
    TD_TRY(td_bench_sleep(DRAIN_NS)); // more than the metrics' period
    rss *memory = &w->memory;
    bool server =
        print_memory(options, "server/resident", memory->server, memory->count);
    bool robots =
        print_memory(options, "robots/resident", memory->robots, memory->count);
    bool in_time = true;
    if (setup.worker) print_count(options, "server/killed", w->killed, "times");
    if (setup.worker) in_time = print_answered(options, w);
    bool accounts = print_accounts(options, w);
    if (server && robots && accounts && in_time) return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH,
                   "soak: memory grew, messages are unaccounted for, or those "
                   "who waited were answered late");
}

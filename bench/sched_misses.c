// SPDX-License-Identifier: Apache-2.0
// Periodic robots whose buffers run dry, and a device that runs one request at
// a time, in virtual time. Each robot knows when its buffer runs dry and says
// so. The arrivals, and what each takes the device, come from a seed and are
// the same for Inferential's scheduler, which gets the steps left in the
// buffer.
//
// An ask is missed if the buffer ran dry before an answer to it, or to a newer
// one, came; also counted is the share of time that buffers were dry.
#include "base/clock.h"
#include "base/rand.h"
#include "bench/sched.h"
#include "sched/strategy/heap.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROBOTS 40
#define STEP_NS (TD_NS_PER_S / 30)
#define JITTER 0.2    // of the period
#define DEVIATION 0.3 // of the service time
#define SEED 11
#define STRATEGY TD_SCHED_MODEL_DEADLINE // on both sides

static const int64_t chunks[] = {8, 16, 30, 50}; // steps, by robot in turn

// When robots ask. Who asks early can do without every other answer, so that a
// device may be overloaded and no buffer dry.
static const struct {
    const char *name;
    double period; // of a chunk
} cadences[] = {{"half-left", 0.5}, {"quarter-left", 0.75}};

static const int loads[] = {70, 90, 100, 110, 130}; // percent

typedef struct robot {
    uint32_t member;
    int64_t chunk_ns;
    int64_t period_ns;
    int64_t phase_ns;
    int64_t dry_ns; // its buffer runs
    int64_t was_dry_ns;
    uint64_t missed;
    struct arrival *first, *last; // that are not answered
} robot;

typedef struct arrival {
    int64_t at_ns;
    uint32_t robot;
    int64_t service_ns;
    int64_t due_ns;
    struct arrival *after; // of the same robot
} arrival;

typedef struct world {
    robot robots[ROBOTS];
    int64_t end_ns;
    arrival *arrivals;
    size_t count;
    td_sched *sched;
    int64_t mean_ns; // of the service
} world;

static void world_free(world *w)
{
    if (w->sched) td_sched_free(w->sched);
    free(w->arrivals);
    free(w);
}
TD_AUTO_FREE(world, world_free)

// A robot begins with the buffer that an answer to its last ask would leave.
static void draw_robots(world *w, td_rand *rand, double period, int load)
{
    double asks_per_ns = 0;
    for (uint32_t i = 0; i < ROBOTS; i++) {
        robot *r = &w->robots[i];
        r->chunk_ns = chunks[i % TD_COUNT_OF(chunks)] * STEP_NS;
        r->period_ns = (int64_t)(period * (double)r->chunk_ns);
        r->phase_ns = (int64_t)(td_rand_unit(rand) * (double)r->period_ns);
        r->dry_ns = r->phase_ns + r->chunk_ns - r->period_ns;
        asks_per_ns += 1 / (double)r->period_ns;
    }
    w->mean_ns = (int64_t)(load / 100.0 / asks_per_ns);
}

static int by_time(const void *a, const void *b)
{
    const arrival *x = a;
    const arrival *y = b;
    if (x->at_ns != y->at_ns) return x->at_ns < y->at_ns ? -1 : 1;
    return (x->robot > y->robot) - (x->robot < y->robot);
}

static int64_t draw_service_ns(td_rand *rand, int64_t mean_ns)
{
    double spread = sqrt(log(1 + DEVIATION * DEVIATION));
    double at = spread * td_rand_normal(rand) - spread * spread / 2;
    return (int64_t)((double)mean_ns * exp(at));
}

static td_err draw_arrivals(world *w, td_rand *rand)
{
    size_t most = 0;
    for (uint32_t i = 0; i < ROBOTS; i++)
        most += (size_t)(w->end_ns / w->robots[i].period_ns) + 1;
    w->arrivals = calloc(most, sizeof *w->arrivals);
    if (!w->arrivals) return TD_ERR_NOMEM;
    for (uint32_t i = 0; i < ROBOTS; i++) {
        const robot *r = &w->robots[i];
        for (int64_t at_ns = r->phase_ns; at_ns < w->end_ns;
             at_ns += r->period_ns) {
            double late_ns = JITTER * td_rand_unit(rand) * (double)r->period_ns;
            w->arrivals[w->count++] = (arrival){
                .at_ns = at_ns + (int64_t)late_ns,
                .robot = i,
                .service_ns = draw_service_ns(rand, w->mean_ns),
            };
        }
    }
    qsort(w->arrivals, w->count, sizeof *w->arrivals, by_time);
    return TD_OK;
}

static td_err world_new(double period, int load, int64_t end_ns,
                        world **ret_world)
{
    td_rand rand;
    TD_AUTO(world) *w = calloc(1, sizeof *w);
    if (!w) return TD_ERR_NOMEM;
    w->end_ns = end_ns;
    td_rand_init(&rand, SEED);
    draw_robots(w, &rand, period, load);
    TD_TRY(draw_arrivals(w, &rand));
    *ret_world = TD_TAKE(w);
    return TD_OK;
}

static td_err write_trace(const world *w, const char *path, td_errinfo *info)
{
    FILE *file = fopen(path, "we");
    if (!file) return td_fail(info, TD_ERR_IO, "%s: %s", path, strerror(errno));
    (void)fprintf(file, "%d %lld\n", ROBOTS, (long long)w->end_ns);
    for (uint32_t i = 0; i < ROBOTS; i++)
        (void)fprintf(file, "%lld %lld\n", (long long)w->robots[i].chunk_ns,
                      (long long)w->robots[i].dry_ns);
    for (size_t i = 0; i < w->count; i++)
        (void)fprintf(file, "%lld %u %lld\n", (long long)w->arrivals[i].at_ns,
                      w->arrivals[i].robot,
                      (long long)w->arrivals[i].service_ns);
    if (fclose(file) == 0) return TD_OK;
    return td_fail(info, TD_ERR_IO, "%s: cannot write", path);
}

static td_err sched_start(world *w, td_errinfo *info)
{
    td_sched_settings settings = td_sched_defaults;
    settings.policy.strategy = STRATEGY;
    settings.batch = (td_sched_batch_rule){TD_SCHED_WAIT_NONE, 1, 0};
    TD_TRY(td_sched_new(&settings, &w->sched, info));
    td_sched_measured(w->sched, 0, 0, 1, w->mean_ns);
    for (uint32_t i = 0; i < ROBOTS; i++) {
        const td_sched_member member = {.most_urgency = 1,
                                        .budget_ns = 50 * TD_NS_PER_MS};
        TD_TRY(td_sched_join(w->sched, &member, &w->robots[i].member));
    }
    return TD_OK;
}

static void arrive(world *w, arrival *a)
{
    robot *r = &w->robots[a->robot];
    int64_t left_ns = r->dry_ns > a->at_ns ? r->dry_ns - a->at_ns : 0;
    a->due_ns = a->at_ns + left_ns;
    if (r->last)
        r->last->after = a;
    else
        r->first = a;
    r->last = a;
    const td_sched_item item = {
        .member = r->member,
        .payload = a,
        .due_ns = r->dry_ns,
        .useless_ns = a->at_ns + r->chunk_ns,
        .expected_ns = a->at_ns + r->period_ns,
        .priority = 1,
        .steps = (uint32_t)(left_ns / STEP_NS),
    };
    td_sched_ended ended;
    (void)td_sched_submit(w->sched, a->at_ns, &item, &ended);
}

// An answer came to what was asked then.
static void cover(robot *r, int64_t now_ns, int64_t asked_ns)
{
    int64_t until_ns = asked_ns + r->chunk_ns;
    if (until_ns <= now_ns) return; // nothing of it is left
    if (now_ns > r->dry_ns) r->was_dry_ns += now_ns - r->dry_ns;
    if (until_ns > r->dry_ns) r->dry_ns = until_ns;
    for (; r->first && r->first->at_ns <= asked_ns; r->first = r->first->after)
        r->missed += r->first->due_ns < now_ns;
    if (!r->first) r->last = NULL;
}

static void complete(world *w, const td_sched_pick *run, int64_t now_ns)
{
    const arrival *a = run->request.payload;
    (void)td_sched_done(w->sched, now_ns, run->ticket, TD_SCHED_ANSWERED);
    cover(&w->robots[a->robot], now_ns, a->at_ns);
}

static bool start_next(world *w, int64_t now_ns, td_sched_pick *ret_run)
{
    td_sched_ended ended;
    while (td_sched_drop(w->sched, now_ns, &ended))
        continue;
    return td_sched_next(w->sched, now_ns, TD_SCHED_ALL_MODELS, 1, ret_run);
}

static void run_device(world *w)
{
    td_sched_pick run;
    bool busy = false;
    size_t coming = 0;
    for (int64_t now_ns = 0; now_ns < w->end_ns;) {
        while (coming < w->count && w->arrivals[coming].at_ns <= now_ns)
            arrive(w, &w->arrivals[coming++]);
        if (busy) complete(w, &run, now_ns);
        busy = start_next(w, now_ns, &run);
        if (busy)
            now_ns += ((const arrival *)run.request.payload)->service_ns;
        else if (coming < w->count)
            now_ns = w->arrivals[coming].at_ns;
        else
            return;
    }
}

enum { MISSED, DRY, FIGURES };

static const char *const figures[] = {[MISSED] = "missed", [DRY] = "dry"};

static void sum_up(const world *w, double ret_percent[FIGURES])
{
    double missed = 0, dry_ns = 0;
    for (uint32_t i = 0; i < ROBOTS; i++) {
        const robot *r = &w->robots[i];
        missed += (double)r->missed;
        for (const arrival *a = r->first; a; a = a->after)
            missed += a->due_ns < w->end_ns;
        dry_ns += (double)r->was_dry_ns;
        if (r->dry_ns < w->end_ns) dry_ns += (double)(w->end_ns - r->dry_ns);
    }
    ret_percent[MISSED] = 100 * missed / (double)w->count;
    ret_percent[DRY] = 100 * dry_ns / (double)w->end_ns / ROBOTS;
}

static td_err ask_peer(const world *w, double ret_percent[FIGURES],
                       td_errinfo *info)
{
    char trace[TD_BENCH_PATH_BYTES];
    const char *args[] = {"inferential_sched.py", "misses",
                          td_sched_strategy_name(STRATEGY), trace, NULL};
    td_bench_peer peer = {0};
    TD_TRY(td_bench_file("trace", trace, info));
    TD_TRY(write_trace(w, trace, info));
    TD_TRY(td_bench_peer_start(args, &peer, info));
    td_err err = td_bench_peer_block(&peer, ret_percent, FIGURES, info);
    td_bench_child_end(&peer.child);
    return err;
}

// What Inferential does not miss we may not either, nor leave dry for longer.
static void print(const td_bench_options *options, const char *cadence,
                  int load, int figure, double ours, double theirs)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s/load-%d/%s", cadence, load,
                   figures[figure]);
    td_bench_row row = {
        .bench = "sched",
        .name = name,
        .value = ours,
        .unit = "%",
        .against = theirs > 0 ? "Inferential" : NULL,
        .ratio = theirs > 0 ? ours / theirs : 0,
        .other = theirs,
        .limited = theirs > 0 ? TD_BENCH_RATIO : TD_BENCH_VALUE,
        .limit = theirs > 0 ? 1 : 0,
    };
    if (theirs < 0 || (figure == DRY && theirs == 0))
        row.limited = TD_BENCH_NO_LIMIT;
    td_bench_print(options, &row);
}

static td_err run_case(const td_bench_options *options, size_t cadence,
                       int load, bool beside, td_errinfo *info)
{
    double ours[FIGURES], theirs[FIGURES] = {-1, -1}; // alone
    TD_AUTO(world) *w = NULL;
    TD_TRY(world_new(cadences[cadence].period, load,
                     (options->quick ? 60 : 600) * TD_NS_PER_S, &w));
    td_bench_progress("sched: robots at a load of %d %%", load);
    if (beside) TD_TRY(ask_peer(w, theirs, info));
    TD_TRY(sched_start(w, info));
    run_device(w);
    sum_up(w, ours);
    for (int i = 0; i < FIGURES; i++)
        print(options, cadences[cadence].name, load, i, ours[i], theirs[i]);
    return td_bench_sleep(0);
}

td_err td_bench_sched_misses(const td_bench_options *options, bool beside,
                             td_errinfo *info)
{
    for (size_t i = 0; i < TD_COUNT_OF(cadences); i++)
        for (size_t j = 0; j < TD_COUNT_OF(loads); j++)
            TD_TRY(run_case(options, i, loads[j], beside, info));
    return TD_OK;
}

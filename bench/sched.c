// SPDX-License-Identifier: Apache-2.0
// One decision with a thousand waiting, for each strategy, beside Inferential's
// own schedulers: a request comes, the best is taken, and it is done.
//
// Whoever was answered longest ago asks next, so that a thousand wait at every
// decision. Who that is depends on the decisions: our side runs first and
// writes down the arrivals, and Inferential is given the same at the same
// times.
#include "bench/sched.h"

#include "base/clock.h"
#include "base/rand.h"
#include "sched/strategy/heap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAITING 1000
#define SLOTS 600 // robots with a slot, then those that queue
#define QUEUED 150
#define QUEUED_EACH 4 // at a time
#define ASKERS (SLOTS + QUEUED * QUEUED_EACH)
#define MEMBERS (SLOTS + QUEUED)
#define MODELS 4
#define WARM 5000                      // decisions that do not count
#define DEVICE_NS (100 * TD_NS_PER_US) // a decision
#define BUDGET_NS (50 * TD_NS_PER_MS)
#define MOST_US 1
#define LEAST_RATIO 3
#define SEED 5

// What a request says of itself; who sends it is found when it comes.
typedef struct arrival {
    int64_t at_ns;
    int64_t due_ns; // of who has a slot; NEVER: none
    int64_t expected_ns;
    uint32_t priority;
    float urgency;
    uint32_t steps;
    uint32_t asker; // out
} arrival;

typedef struct world {
    td_sched_strategy strategy;
    td_sched *sched;
    uint32_t members[MEMBERS];
    uint32_t idle[ASKERS]; // a ring
    uint32_t first_idle, idle_count;
    arrival *arrivals; // [WAITING + WARM + decisions]
    size_t decisions;
    td_hist each_ns;
    td_bench_pairs rate, p50, p99;
} world;

static void world_free(world *w)
{
    if (w->sched) td_sched_free(w->sched);
    free(w->arrivals);
    free(w);
}
TD_AUTO_FREE(world, world_free)

static uint32_t draw_priority(td_rand *rand)
{
    static const uint32_t tenths[] = {0, 1, 1, 1, 1, 1, 1, 2, 2, 3};
    return tenths[td_rand_u64(rand) % TD_COUNT_OF(tenths)];
}

static int64_t between_ms(td_rand *rand, int64_t least, int64_t most)
{
    double ms = (double)least + td_rand_unit(rand) * (double)(most - least);
    return (int64_t)(ms * (double)TD_NS_PER_MS);
}

static void draw_arrivals(world *w)
{
    td_rand rand;
    int64_t now_ns = 0;
    td_rand_init(&rand, SEED);
    for (size_t i = 0; i < WAITING + WARM + w->decisions; i++) {
        now_ns += (int64_t)(2 * td_rand_unit(&rand) * DEVICE_NS);
        bool has_due = td_rand_u64(&rand) % 2 == 0;
        bool has_steps = td_rand_u64(&rand) % 2 == 0;
        int64_t due_ns = TD_SCHED_NEVER_NS;
        if (has_due) due_ns = now_ns + between_ms(&rand, 20, 500);
        w->arrivals[i] = (arrival){
            .at_ns = now_ns,
            .due_ns = due_ns,
            .expected_ns = now_ns + between_ms(&rand, 30, 300),
            .priority = draw_priority(&rand),
            .urgency = (float)td_rand_unit(&rand),
            .steps = has_steps ? (uint32_t)(td_rand_u64(&rand) % 20)
                               : TD_SCHED_STEPS_UNSET,
        };
    }
}

// Whether an asker has a slot of its own; the others share members that queue.
static uint32_t member_of(uint32_t asker)
{
    return asker < SLOTS ? asker : SLOTS + (asker - SLOTS) / QUEUED_EACH;
}

static td_err join_all(world *w)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        const td_sched_member member = {.model = i % MODELS,
                                        .queued = i >= SLOTS,
                                        .most_urgency = 1,
                                        .budget_ns = BUDGET_NS};
        TD_TRY(td_sched_join(w->sched, &member, &w->members[i]));
    }
    return TD_OK;
}

static void submit(world *w, arrival *a)
{
    a->asker = w->idle[w->first_idle];
    w->first_idle = (w->first_idle + 1) % ASKERS;
    w->idle_count--;
    const td_sched_item item = {
        .member = w->members[member_of(a->asker)],
        .payload = &w->idle[a->asker], // any address
        .seq = a->asker,
        .due_ns = a->asker < SLOTS ? a->due_ns : TD_SCHED_NEVER_NS,
        .useless_ns = TD_SCHED_NEVER_NS,
        .expected_ns = a->expected_ns,
        .priority = a->priority,
        .urgency = a->urgency,
        .steps = a->steps,
    };
    td_sched_ended ended;
    (void)td_sched_submit(w->sched, a->at_ns, &item, &ended);
}

static void go_idle(world *w, uint32_t asker)
{
    w->idle[(w->first_idle + w->idle_count++) % ASKERS] = asker;
}

static void decide(world *w, arrival *a)
{
    td_sched_ended ended;
    td_sched_pick pick;
    submit(w, a);
    while (td_sched_drop(w->sched, a->at_ns, &ended))
        go_idle(w, (uint32_t)ended.request.seq);
    if (td_sched_next(w->sched, a->at_ns, TD_SCHED_ALL_MODELS, 1, &pick) == 0)
        return;
    (void)td_sched_done(w->sched, a->at_ns, pick.ticket, TD_SCHED_ANSWERED);
    go_idle(w, (uint32_t)pick.request.seq);
}

// A new scheduler with a thousand waiting, that has decided for a while.
static td_err world_start(world *w, td_errinfo *info)
{
    td_sched_settings settings = td_sched_defaults;
    settings.policy.strategy = w->strategy;
    settings.members = MEMBERS;
    settings.models = MODELS;
    settings.batch = (td_sched_batch_rule){TD_SCHED_WAIT_NONE, 1, 0};
    settings.flush.most = 1;
    if (w->sched) td_sched_free(w->sched);
    w->sched = NULL;
    TD_TRY(td_sched_new(&settings, &w->sched, info));
    TD_TRY(join_all(w));
    for (uint32_t i = 0; i < MODELS; i++)
        td_sched_measured(w->sched, 0, i, 1, DEVICE_NS);
    w->first_idle = w->idle_count = 0;
    // Askers of one member far apart.
    for (uint32_t i = 0; i < ASKERS; i++)
        go_idle(w, (uint32_t)((uint64_t)i * 7 % ASKERS));
    for (uint32_t i = 0; i < WAITING; i++)
        submit(w, &w->arrivals[i]);
    for (uint32_t i = 0; i < WARM; i++)
        decide(w, &w->arrivals[WAITING + i]);
    return TD_OK;
}

static td_err world_new(td_sched_strategy strategy, size_t decisions,
                        world **ret_world)
{
    TD_AUTO(world) *w = calloc(1, sizeof *w);
    if (!w) return TD_ERR_NOMEM;
    w->strategy = strategy;
    w->decisions = decisions;
    w->arrivals = calloc(WAITING + WARM + decisions, sizeof *w->arrivals);
    if (!w->arrivals) return TD_ERR_NOMEM;
    draw_arrivals(w);
    *ret_world = TD_TAKE(w);
    return TD_OK;
}

// Of this thread's own: what else runs on the machine does not count.
static int64_t cpu_ns(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * TD_NS_PER_S + used.tv_nsec;
}

static td_err run_whole(world *w, double *ret_per_s, td_errinfo *info)
{
    TD_TRY(world_start(w, info));
    int64_t start_ns = cpu_ns();
    for (size_t i = 0; i < w->decisions; i++)
        decide(w, &w->arrivals[WAITING + WARM + i]);
    int64_t took_ns = cpu_ns() - start_ns;
    *ret_per_s = (double)w->decisions * (double)TD_NS_PER_S / (double)took_ns;
    return TD_OK;
}

static td_err run_each(world *w, td_errinfo *info)
{
    TD_TRY(world_start(w, info));
    td_hist_init(&w->each_ns);
    for (size_t i = 0; i < w->decisions; i++) {
        int64_t start_ns = td_clock_monotonic_ns();
        decide(w, &w->arrivals[WAITING + WARM + i]);
        td_hist_record(&w->each_ns, td_clock_monotonic_ns() - start_ns);
    }
    if (td_sched_waiting(w->sched) == WAITING) return td_bench_sleep(0);
    return td_fail(info, TD_ERR_MISMATCH, "sched: %u wait, not %d",
                   td_sched_waiting(w->sched), WAITING);
}

static td_err write_trace(const world *w, const char *path, td_errinfo *info)
{
    FILE *file = fopen(path, "we");
    if (!file) return td_fail(info, TD_ERR_IO, "%s: %s", path, strerror(errno));
    (void)fprintf(file, "%d %d\n", WAITING, WARM);
    for (size_t i = 0; i < WAITING + WARM + w->decisions; i++) {
        const arrival *a = &w->arrivals[i];
        bool has_steps = a->steps != TD_SCHED_STEPS_UNSET;
        uint32_t member = member_of(a->asker);
        (void)fprintf(file, "%lld %u %u %u %g %d\n", (long long)a->at_ns,
                      member, member % MODELS, a->priority, (double)a->urgency,
                      has_steps ? (int)a->steps : -1);
    }
    if (fclose(file) == 0) return TD_OK;
    return td_fail(info, TD_ERR_IO, "%s: cannot write", path);
}

static td_err run_pair(world *w, td_bench_peer *peer, td_errinfo *info)
{
    double rate, theirs[3] = {0};
    if (peer) TD_TRY(td_bench_peer_block(peer, theirs, 3, info));
    TD_TRY(run_whole(w, &rate, info));
    TD_TRY(run_each(w, info));
    td_bench_pairs_add(&w->rate, rate, theirs[0]);
    td_bench_pairs_add(&w->p50, td_bench_quantile_us(&w->each_ns, 0.5),
                       theirs[1]);
    td_bench_pairs_add(&w->p99, td_bench_quantile_us(&w->each_ns, 0.99),
                       theirs[2]);
    return TD_OK;
}

static void print(const td_bench_options *options, const world *w,
                  const td_bench_pairs *pairs, td_bench_row row, bool beside)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s/%s",
                   td_sched_strategy_name(w->strategy), row.name);
    row.bench = "sched";
    row.name = name;
    row.value = td_bench_pairs_value(pairs);
    row.against = beside ? "Inferential" : NULL;
    row.ratio = beside ? td_bench_pairs_ratio(pairs) : 0;
    if (row.limited == TD_BENCH_RATIO && !beside)
        row.limited = TD_BENCH_NO_LIMIT;
    td_bench_print(options, &row);
}

static void print_all(const td_bench_options *options, const world *w,
                      bool beside)
{
    const td_bench_row p50 = {.name = "1000-waiting/decision/p50",
                              .unit = "us",
                              .limited = TD_BENCH_VALUE,
                              .limit = MOST_US};
    const td_bench_row p99 = {.name = "1000-waiting/decision/p99",
                              .unit = "us"};
    const td_bench_row rate = {.name = "1000-waiting/decisions",
                               .unit = "1/s",
                               .more = true,
                               .limited = TD_BENCH_RATIO,
                               .limit = LEAST_RATIO};
    print(options, w, &w->p50, p50, beside);
    print(options, w, &w->p99, p99, beside);
    print(options, w, &w->rate, rate, beside);
}

static td_err run_blocks(const td_bench_options *options, world *w,
                         td_bench_peer *peer, td_errinfo *info)
{
    size_t blocks = options->quick ? 2 : 15;
    for (size_t i = 0; i < blocks; i++) {
        td_bench_progress("sched: %s, block %zu of %zu",
                          td_sched_strategy_name(w->strategy), i + 1, blocks);
        TD_TRY(run_pair(w, peer, info));
    }
    return TD_OK;
}

static td_err run_strategy(const td_bench_options *options,
                           td_sched_strategy strategy, bool beside,
                           td_errinfo *info)
{
    char trace[TD_BENCH_PATH_BYTES];
    const char *args[] = {"inferential_sched.py", "rate",
                          td_sched_strategy_name(strategy), trace, NULL};
    td_bench_peer peer = {0};
    TD_AUTO(world) *w = NULL;
    TD_TRY(world_new(strategy, options->quick ? 2000 : 20000, &w));
    TD_TRY(run_each(w, info));
    TD_TRY(td_bench_file("trace", trace, info));
    TD_TRY(write_trace(w, trace, info));
    if (beside) TD_TRY(td_bench_peer_start(args, &peer, info));
    td_err err = run_blocks(options, w, beside ? &peer : NULL, info);
    td_bench_child_end(&peer.child);
    if (err == TD_OK) print_all(options, w, beside);
    return err;
}

td_err td_bench_sched(const td_bench_options *options, td_errinfo *info)
{
    bool beside = td_bench_peer_there(options);
    for (int i = 0; i < TD_SCHED_STRATEGY_COUNT; i++)
        TD_TRY(run_strategy(options, (td_sched_strategy)i, beside, info));
    TD_TRY(td_bench_sched_saturated(options, beside, info));
    return td_bench_sched_misses(options, beside, info);
}

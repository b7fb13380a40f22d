// SPDX-License-Identifier: Apache-2.0
// Random cases of a scheduler, and what it decided, for test_scheduling.py.
//
//   sched_log FIRST COUNT
//
// A case is its settings (c), its members (m), and then requests that come (a)
// and starts (n), each at its time. Times are nanoseconds; "-" is none.
#include "base/rand.h"
#include "sched/sched.h"
#include "sched/strategy/heap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MEMBERS 8
#define MODELS 2
#define STEPS 24
#define MS 1000000LL

typedef struct world {
    td_rand rand;
    td_sched *sched;
    int64_t now_ns, run_ns;
    uint64_t seq;
    bool running[MEMBERS];
} world;

static char payload;

static uint64_t below(world *w, uint64_t bound)
{
    return td_rand_u64(&w->rand) % bound;
}

static void make(world *w, uint64_t seed)
{
    static const double parts[] = {0, 0.1, 0.1, 0.25, 0.5, 1};
    static const int64_t runs_ms[] = {0, 5, 10, 40};
    td_sched_settings settings = td_sched_defaults;
    settings.policy.strategy =
        (td_sched_strategy)below(w, TD_SCHED_STRATEGY_COUNT);
    settings.policy.tiers = 3;
    settings.policy.fairness = parts[below(w, TD_COUNT_OF(parts))];
    settings.batch = (td_sched_batch_rule){TD_SCHED_WAIT_NONE, 1, 0};
    settings.flush = settings.batch;
    settings.models = MODELS;
    w->run_ns = runs_ms[below(w, TD_COUNT_OF(runs_ms))] * MS;
    td_errinfo info = {""};
    if (td_sched_new(&settings, &w->sched, &info) != TD_OK) abort();
    for (uint32_t i = 0; i < MODELS && w->run_ns > 0; i++)
        td_sched_measured(w->sched, 0, i, 1, w->run_ns);
    (void)printf("c %" PRIu64 " %s %u %g %" PRId64 "\n", seed,
                 td_sched_strategy_name(settings.policy.strategy),
                 settings.policy.tiers, settings.policy.fairness, w->run_ns);
}

static void join_all(world *w)
{
    static const int64_t budgets_ms[] = {10, 50, 50, 200};
    for (uint32_t i = 0; i < MEMBERS; i++) {
        const td_sched_member member = {
            .model = (uint32_t)below(w, MODELS),
            .queued = below(w, 2) > 0,
            .best_priority = (uint32_t)(below(w, 4) / 3),
            .most_urgency = below(w, 4) == 0 ? 0.5F : 1,
            .budget_ns = budgets_ms[below(w, TD_COUNT_OF(budgets_ms))] * MS,
        };
        uint32_t number;
        if (td_sched_join(w->sched, &member, &number) != TD_OK) abort();
        (void)printf("m %u %u %d %u %g %" PRId64 "\n", number, member.model,
                     member.queued, member.best_priority,
                     (double)member.most_urgency, member.budget_ns);
    }
}

static void print_time(int64_t ns)
{
    if (ns == TD_SCHED_NEVER_NS)
        (void)printf(" -");
    else
        (void)printf(" %" PRId64, ns);
}

static int64_t sometimes(world *w, int64_t least_ms, uint64_t most_ms)
{
    if (below(w, 2)) return TD_SCHED_NEVER_NS;
    return w->now_ns + (least_ms + (int64_t)below(w, most_ms)) * MS;
}

static void arrive(world *w)
{
    static const uint32_t priorities[] = {0, 0, 1, 1, 1, 2, 3, 12};
    const td_sched_item item = {
        .member = (uint32_t)below(w, MEMBERS),
        .payload = &payload,
        .seq = ++w->seq,
        .due_ns = sometimes(w, -20, 400),
        .useless_ns = TD_SCHED_NEVER_NS,
        .expected_ns = sometimes(w, 1, 150),
        .priority = priorities[below(w, TD_COUNT_OF(priorities))],
        .urgency = (float)below(w, 5) / 4,
        .steps = below(w, 2) ? TD_SCHED_STEPS_UNSET : (uint32_t)below(w, 7),
    };
    (void)printf("a %" PRId64 " %u %" PRIu64 " %u %g %d", w->now_ns,
                 item.member, item.seq, item.priority, (double)item.urgency,
                 item.steps == TD_SCHED_STEPS_UNSET ? -1 : (int)item.steps);
    print_time(item.due_ns);
    print_time(item.expected_ns);
    (void)printf("\n");
    td_sched_ended ended;
    (void)td_sched_submit(w->sched, w->now_ns, &item, &ended);
}

static bool start(world *w)
{
    td_sched_pick pick;
    bool any =
        td_sched_next(w->sched, w->now_ns, TD_SCHED_ALL_MODELS, 1, &pick) > 0;
    (void)printf("n %" PRId64 " %" PRIu64 "\n", w->now_ns,
                 any ? pick.request.seq : 0);
    if (any)
        (void)td_sched_done(w->sched, w->now_ns, pick.ticket,
                            TD_SCHED_ANSWERED);
    return any;
}

static void live(uint64_t seed)
{
    world w = {.now_ns = 1000 * MS};
    td_rand_init(&w.rand, seed);
    make(&w, seed);
    join_all(&w);
    for (int i = 0; i < STEPS; i++) {
        w.now_ns += (int64_t)below(&w, 20) * MS;
        if (below(&w, 3) > 0)
            arrive(&w);
        else
            (void)start(&w);
    }
    while (start(&w))
        w.now_ns += (int64_t)below(&w, 30) * MS;
    td_sched_free(w.sched);
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (uint64_t i = 0; i < count; i++)
        live(first + i);
    return ferror(stdout) ? 1 : 0;
}

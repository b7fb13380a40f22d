// SPDX-License-Identifier: Apache-2.0
// Five clients that ask anew a moment after each answer, and a device that is
// never idle; one of them is urgent. In virtual time, the same for
// Inferential's scheduler: the urgent one's share of the answers, its median
// wait, and how long any of the others waits at most.
#include "base/clock.h"
#include "bench/sched.h"
#include "sched/strategy/heap.h"

#include <stdio.h>
#include <stdlib.h>

#define CLIENTS 5
#define RUNS 1000
#define RUN_MS 10
#define RUN_NS (RUN_MS * TD_NS_PER_MS)
#define THINK_NS TD_NS_PER_MS // from an answer to the next ask
#define STRATEGY TD_SCHED_MODEL_DEADLINE
#define LEAST_RATIO 0.9 // of the urgent one's share

enum { SHARE, WAIT, LONGEST, FIGURES };

static const struct {
    const char *name, *unit;
} figures[] = {[SHARE] = {"urgent/share", "%"},
               [WAIT] = {"urgent/wait/p50", "ms"},
               [LONGEST] = {"others/wait/max", "ms"}};

typedef struct world {
    td_sched *sched;
    int64_t asks_ns[CLIENTS]; // its next; NEVER: it waits
    int64_t asked_ns[CLIENTS];
    int64_t waits_ns[RUNS]; // the urgent one's
    uint32_t answered;      // of the urgent one
    int64_t longest_ns;
} world;

static td_err start(world *w, td_errinfo *info)
{
    td_sched_settings settings = td_sched_defaults;
    settings.policy.strategy = STRATEGY;
    settings.batch = (td_sched_batch_rule){TD_SCHED_WAIT_NONE, 1, 0};
    TD_TRY(td_sched_new(&settings, &w->sched, info));
    td_sched_measured(w->sched, 0, 0, 1, RUN_NS);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        const td_sched_member member = {.most_urgency = 1,
                                        .budget_ns = 50 * TD_NS_PER_MS};
        uint32_t number;
        TD_TRY(td_sched_join(w->sched, &member, &number));
    }
    return TD_OK;
}

static void ask_all(world *w, int64_t until_ns)
{
    static char payload;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        if (w->asks_ns[i] > until_ns) continue;
        const td_sched_item item = {.member = i,
                                    .payload = &payload,
                                    .seq = i,
                                    .due_ns = TD_SCHED_NEVER_NS,
                                    .useless_ns = TD_SCHED_NEVER_NS,
                                    .expected_ns = TD_SCHED_NEVER_NS,
                                    .priority = 1,
                                    .urgency = i == 0 ? 1 : 0,
                                    .steps = TD_SCHED_STEPS_UNSET};
        td_sched_ended ended;
        (void)td_sched_submit(w->sched, w->asks_ns[i], &item, &ended);
        w->asked_ns[i] = w->asks_ns[i];
        w->asks_ns[i] = TD_SCHED_NEVER_NS;
    }
}

static void run_all(world *w)
{
    td_sched_pick pick = {0};
    for (uint32_t run = 0; run < RUNS; run++) {
        int64_t now_ns = run * RUN_NS;
        ask_all(w, now_ns);
        if (run > 0)
            (void)td_sched_done(w->sched, now_ns, pick.ticket,
                                TD_SCHED_ANSWERED);
        if (!td_sched_next(w->sched, now_ns, TD_SCHED_ALL_MODELS, 1, &pick))
            return; // not with more than one client
        int64_t wait_ns = now_ns - w->asked_ns[pick.member];
        if (pick.member == 0)
            w->waits_ns[w->answered++] = wait_ns;
        else if (wait_ns > w->longest_ns)
            w->longest_ns = wait_ns;
        w->asks_ns[pick.member] = now_ns + RUN_NS + THINK_NS;
    }
}

static int by_length(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void sum_up(world *w, double ret_figures[FIGURES])
{
    qsort(w->waits_ns, w->answered, sizeof w->waits_ns[0], by_length);
    ret_figures[SHARE] = 100.0 * w->answered / RUNS;
    uint32_t middle = w->answered / 2;
    ret_figures[WAIT] = (double)w->waits_ns[middle] / (double)TD_NS_PER_MS;
    ret_figures[LONGEST] = (double)w->longest_ns / (double)TD_NS_PER_MS;
}

static td_err ask_peer(double ret_figures[FIGURES], td_errinfo *info)
{
    char clients[16], runs[16];
    const char *args[] = {"inferential_sched.py",
                          "saturated",
                          td_sched_strategy_name(STRATEGY),
                          clients,
                          runs,
                          NULL};
    td_bench_peer peer = {0};
    (void)snprintf(clients, sizeof clients, "%d", CLIENTS);
    (void)snprintf(runs, sizeof runs, "%d", RUNS);
    TD_TRY(td_bench_peer_start(args, &peer, info));
    td_err err = td_bench_peer_block(&peer, ret_figures, FIGURES, info);
    td_bench_child_end(&peer.child);
    return err;
}

// Its patience, and as many starts as clients, divided by the fairness.
static double longest_ms(void)
{
    double starts = CLIENTS / td_sched_defaults.policy.fairness + 1;
    return 50 + starts * RUN_MS;
}

static void print(const td_bench_options *options, int figure, double ours,
                  double theirs)
{
    char name[64];
    (void)snprintf(name, sizeof name, "saturated/%s", figures[figure].name);
    td_bench_row row = {.bench = "sched",
                        .name = name,
                        .value = ours,
                        .unit = figures[figure].unit,
                        .more = figure == SHARE,
                        .against = theirs >= 0 ? "Inferential" : NULL,
                        .ratio = theirs > 0 ? ours / theirs : 0,
                        .other = theirs};
    if (figure == SHARE && theirs > 0) {
        row.limited = TD_BENCH_RATIO;
        row.limit = LEAST_RATIO;
    } else if (figure == LONGEST) {
        row.limited = TD_BENCH_VALUE;
        row.limit = longest_ms();
    }
    td_bench_print(options, &row);
}

td_err td_bench_sched_saturated(const td_bench_options *options, bool beside,
                                td_errinfo *info)
{
    static world w;
    double ours[FIGURES], theirs[FIGURES] = {-1, -1, -1};
    w = (world){0};
    td_err err = start(&w, info);
    if (err == TD_OK && beside) err = ask_peer(theirs, info);
    if (err == TD_OK) {
        run_all(&w);
        sum_up(&w, ours);
        for (int i = 0; i < FIGURES; i++)
            print(options, i, ours[i], theirs[i]);
    }
    if (w.sched) td_sched_free(w.sched);
    return err;
}

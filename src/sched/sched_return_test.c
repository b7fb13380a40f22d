// SPDX-License-Identifier: Apache-2.0
// Clients that ask again when they were answered, in virtual time: a device
// whose batches cost little more than one alone is worth most when they come
// together, whatever they began with.
#include "sched/sched_fixture.h"

#include "base/rand.h"

#define CLIENTS 16
#define SECONDS 20
#define ANSWER_NS (MS / 30) // between the answers of a batch

// How long a client takes from its answer to its next request.
typedef struct habit {
    const char *name;
    int64_t least_ns;
    int64_t each_ns;   // for each of those who were answered before it
    int64_t jitter_ns; // up to
    int64_t pause_ns;  // instead, once in a hundred
    uint32_t early;    // how many begin half a batch before the others
    double least_size; // of a batch, on average
} habit;

typedef struct world {
    const habit *habit;
    td_sched *sched;
    td_rand rand;
    int64_t now_ns;
    uint32_t members[CLIENTS];
    int64_t comes_ns[CLIENTS]; // NEVER: waits or runs
    td_sched_pick picks[CLIENTS];
    uint32_t running;
    int64_t ends_ns; // what runs; NEVER: nothing does
    uint64_t batches, answered;
} world;

static int64_t batch_ns(uint32_t n)
{
    return 10 * MS + (int64_t)(n - 1) * 4 * MS / 10;
}

static int64_t draw_ns(world *w, int64_t to_ns)
{
    return (int64_t)(td_rand_unit(&w->rand) * (double)to_ns);
}

static void world_start(world *w, const habit *has)
{
    td_sched_settings settings = settings_of(TD_SCHED_MODEL_DEADLINE);
    settings.batch = (td_sched_batch_rule){TD_SCHED_WAIT_SLACK, CLIENTS, 0};
    *w = (world){.habit = has, .sched = sched_new(&settings)};
    w->ends_ns = NEVER;
    td_rand_init(&w->rand, 1);
    for (uint32_t n = 1; n <= CLIENTS; n++)
        td_sched_measured(w->sched, 0, 0, n, batch_ns(n));
    for (uint32_t i = 0; i < CLIENTS; i++) {
        w->members[i] = join(w->sched, i, 0, false);
        w->comes_ns[i] = i < has->early ? 0 : batch_ns(CLIENTS) / 2;
    }
}

static void answer_all(world *w)
{
    const habit *h = w->habit;
    for (uint32_t i = 0; i < w->running; i++) {
        w->now_ns += ANSWER_NS;
        (void)td_sched_done(w->sched, w->now_ns, w->picks[i].ticket,
                            TD_SCHED_ANSWERED);
        bool pauses = h->pause_ns > 0 && td_rand_u64(&w->rand) % 100 == 0;
        uint32_t client = w->picks[i].member - w->members[0];
        w->comes_ns[client] =
            w->now_ns +
            (pauses ? h->pause_ns
                    : h->least_ns + i * h->each_ns + draw_ns(w, h->jitter_ns));
    }
    w->answered += w->running;
    w->ends_ns = NEVER;
}

static void take_arrivals(world *w)
{
    for (uint32_t i = 0; i < CLIENTS; i++) {
        if (w->comes_ns[i] > w->now_ns) continue;
        w->comes_ns[i] = NEVER;
        (void)submit_seq(w->sched, w->now_ns, w->members[i], w->answered + 1);
    }
}

static void start_next(world *w)
{
    if (w->ends_ns != NEVER) return;
    w->running = td_sched_next(w->sched, w->now_ns, ALL, CLIENTS, w->picks);
    if (w->running == 0) return;
    w->ends_ns = w->now_ns + batch_ns(w->running);
    w->batches++;
}

static int64_t next_event_ns(const world *w)
{
    int64_t at_ns = w->ends_ns;
    for (uint32_t i = 0; i < CLIENTS; i++)
        if (w->comes_ns[i] < at_ns) at_ns = w->comes_ns[i];
    if (w->ends_ns == NEVER && td_sched_wake_ns(w->sched) < at_ns)
        at_ns = td_sched_wake_ns(w->sched);
    return at_ns;
}

static void world_step(world *w)
{
    int64_t at_ns = next_event_ns(w);
    if (at_ns > w->now_ns) w->now_ns = at_ns;
    if (w->ends_ns <= w->now_ns) answer_all(w);
    take_arrivals(w);
    start_next(w);
}

static void world_run(world *w, int64_t until_ns)
{
    while (w->now_ns < until_ns)
        world_step(w);
}

static const habit habits[] = {
    {"together", MS / 2, MS / 100, 0, 0, 0, 15.9},
    {"in two halves", MS / 2, MS / 100, 0, 0, 8, 15.9},
    {"one ahead of the others", MS / 2, MS / 100, 0, 0, 1, 15.9},
    {"one after the other", MS / 2, MS / 5, 0, 0, 8, 15.9},
    {"not always as fast", MS / 2, MS / 5, 2 * MS, 0, 8, 15.8},
    {"far from always as fast", MS / 2, MS / 10, 5 * MS, 0, 8, 15.5},
    {"now and then not for a while", MS / 2, MS / 5, MS, 40 * MS, 8, 15},
};

static void who_asks_again_when_answered_fills_the_batches(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(habits); i++) {
        world w;
        world_start(&w, &habits[i]);
        world_run(&w, SECONDS * 1000 * MS);
        double size = (double)w.answered / (double)w.batches;
        if (size < habits[i].least_size)
            fail_msg("%s: batches of %.2f", habits[i].name, size);
        td_sched_free(w.sched);
    }
}

static void who_stays_away_is_waited_for_once_and_not_for_long(void **state)
{
    (void)state;
    static const habit quick = {.least_ns = MS};
    world w;
    world_start(&w, &quick);
    while (w.batches < 20 || w.ends_ns == NEVER)
        world_step(&w);
    int64_t answered_ns = w.ends_ns + CLIENTS * ANSWER_NS;
    while (w.ends_ns != NEVER)
        world_step(&w);
    w.comes_ns[0] = NEVER;
    while (w.ends_ns == NEVER)
        world_step(&w);
    assert_int_equal(w.running, CLIENTS - 1);
    assert_in_range(w.now_ns - answered_ns, MS, 3 * MS);
    answered_ns = w.ends_ns + (CLIENTS - 1) * ANSWER_NS;
    for (uint64_t last = w.batches; w.batches == last;)
        world_step(&w);
    assert_int_equal(w.running, CLIENTS - 1);
    assert_int_equal(w.now_ns - answered_ns, MS);
    td_sched_free(w.sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_asks_again_when_answered_fills_the_batches),
        cmocka_unit_test(who_stays_away_is_waited_for_once_and_not_for_long),
    };
    return cmocka_run_group_tests_name("sched/sched_return", tests, NULL, NULL);
}

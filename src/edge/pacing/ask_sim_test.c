// SPDX-License-Identifier: Apache-2.0
// What a setting does to a robot: 30 Hz, chunks of 50 rows, a server that takes
// a while, in virtual time.
#include "edge/pacing/ask.h"

#include "base/clock.h"
#include "base/rand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { CHUNK = 50, HZ = 30, MAX_FLYING = 256 };

static const int64_t period_ns = TD_NS_PER_S / HZ;

typedef struct profile {
    double median_s;
    double sigma; // of the logarithm; 0: always the same
    double loss;
} profile;

typedef struct flying {
    uint64_t seq; // 0: free
    uint64_t cursor;
    int64_t captured_ns, back_ns; // INT64_MAX: lost
} flying;

typedef struct world {
    td_rand rand;
    profile server;
    td_edge_ask ask;
    td_edge_ask_advice advice;
    td_edge_latency waits, trips;
    flying flying[MAX_FLYING]; // by seq
    int64_t next_back_ns;
    uint64_t cursor, horizon; // steps executed, steps known
    uint64_t merged, ended;
    bool moving;
    uint64_t idle; // ticks
} world;

typedef struct tally {
    double idle;     // share of ticks after the first row
    double requests; // a second
} tally;

static td_edge_ask_settings settings_of(td_edge_ask_mode mode, double threshold)
{
    return (td_edge_ask_settings){
        .mode = mode,
        .threshold = threshold,
        .starve_target = 0.001,
        .max_unanswered = 1,
        .resend_min_ns = 100 * TD_NS_PER_MS,
        .resend_max_ns = 10 * TD_NS_PER_S,
        .period_ns = period_ns,
    };
}

static void send(world *w, uint64_t seq, int64_t now_ns)
{
    double took_s =
        w->server.median_s * exp(w->server.sigma * td_rand_normal(&w->rand));
    bool lost = td_rand_unit(&w->rand) < w->server.loss;
    int64_t back_ns = lost ? INT64_MAX : now_ns + (int64_t)(took_s * 1e9);
    w->flying[seq % MAX_FLYING] = (flying){
        .seq = seq,
        .cursor = w->cursor,
        .captured_ns = now_ns,
        .back_ns = back_ns,
    };
    if (back_ns < w->next_back_ns) w->next_back_ns = back_ns;
}

// The oldest still on its way, newer than the last one merged.
static int64_t waiting_since(const world *w, uint64_t seq)
{
    uint64_t at = w->merged + 1;
    while (at < seq && w->flying[at % MAX_FLYING].seq != at)
        at++;
    return w->flying[at % MAX_FLYING].captured_ns;
}

static void advise(world *w)
{
    const td_edge_ask_measured measured = {CHUNK, &w->waits, &w->trips, false};
    w->advice = td_edge_ask_advise(&w->ask.settings, &measured);
}

static void install(world *w, flying *answer)
{
    uint64_t end = answer->cursor + CHUNK;
    (void)td_edge_latency_add(&w->trips, answer->back_ns - answer->captured_ns);
    if (answer->seq > w->merged && end > w->cursor) {
        (void)td_edge_latency_add(&w->waits, answer->back_ns -
                                                 waiting_since(w, answer->seq));
        w->horizon = end;
        w->merged = answer->seq;
        w->moving = true;
    }
    if (answer->seq > w->ended) w->ended = answer->seq;
    answer->seq = 0;
    advise(w);
}

static flying *first_back(world *w)
{
    flying *first = NULL;
    w->next_back_ns = INT64_MAX;
    for (int i = 0; i < MAX_FLYING; i++) {
        flying *one = &w->flying[i];
        if (one->seq == 0 || one->back_ns >= w->next_back_ns) continue;
        first = one;
        w->next_back_ns = one->back_ns;
    }
    return first;
}

static void tick(world *w, int64_t now_ns)
{
    while (w->next_back_ns <= now_ns) {
        flying *first = first_back(w);
        if (first && first->back_ns <= now_ns) install(w, first);
    }
    if (w->cursor < w->horizon)
        w->cursor++;
    else if (w->moving)
        w->idle++;
    td_edge_ask_input seen = {
        .now_ns = now_ns,
        .connection = 1,
        .left = (uint32_t)(w->horizon - w->cursor),
        .ended_seq = w->ended,
    };
    td_edge_ask_decision decision =
        td_edge_ask_decide(&w->ask, &seen, &w->advice);
    if (decision.ask) send(w, decision.seq, now_ns);
}

static void world_init(world *w, const td_edge_ask_settings *settings,
                       profile server)
{
    *w = (world){.server = server, .next_back_ns = INT64_MAX};
    td_rand_init(&w->rand, 41);
    assert_int_equal(td_edge_ask_init(&w->ask, settings, 0), TD_OK);
    advise(w);
}

static tally run(const td_edge_ask_settings *settings, profile server,
                 int minutes)
{
    static world w;
    world_init(&w, settings, server);
    uint64_t moving = 0;
    for (int64_t i = 0; i < (int64_t)minutes * 60 * HZ; i++) {
        tick(&w, i * period_ns);
        moving += w.moving;
    }
    return (tally){
        .idle = (double)w.idle / (double)moving,
        .requests = (double)w.ask.asked / (minutes * 60),
    };
}

static tally run_rows(uint32_t rows, profile server, int minutes)
{
    td_edge_ask_settings settings =
        settings_of(TD_EDGE_ASK_THRESHOLD, (double)rows / CHUNK);
    return run(&settings, server, minutes);
}

// The tick that plays the last row asks; those until the answer are idle.
static void sequential_idles_for_each_inference(void **state)
{
    (void)state;
    static const int idle_ticks[] = {1, 3, 9, 30, 60};
    for (size_t i = 0; i < TD_COUNT_OF(idle_ticks); i++) {
        double latency_s = (idle_ticks[i] + 0.5) / HZ;
        tally seen = run_rows(0, (profile){.median_s = latency_s}, 30);
        double wanted = (double)idle_ticks[i] / (CHUNK + idle_ticks[i]);
        assert_true(fabs(seen.idle - wanted) < 0.002);
    }
}

static void from_half_on_there_is_no_idle_tick(void **state)
{
    (void)state;
    static const double thresholds[] = {0.5, 0.7, 1};
    for (size_t i = 0; i < TD_COUNT_OF(thresholds); i++) {
        td_edge_ask_settings settings =
            settings_of(TD_EDGE_ASK_THRESHOLD, thresholds[i]);
        // One at a time does for half a chunk, whatever g is.
        settings.max_unanswered = thresholds[i] > 0.5 ? 60 : 1;
        double buffer_s = thresholds[i] * CHUNK / HZ;
        for (int percent = 2; percent < 99; percent += 12) {
            profile slow = {.median_s = percent * buffer_s / 100};
            assert_true(run(&settings, slow, 5).idle == 0);
        }
        profile slower = {.median_s = 1.1 * buffer_s};
        assert_true(run(&settings, slower, 5).idle > 0);
    }
}

// The fewest requests of a fixed g that starves no more than `idle`; `least` is
// the least that any g starves.
static double best_fixed(profile server, int minutes, double idle,
                         double *ret_least)
{
    double best = INFINITY;
    *ret_least = 1;
    for (uint32_t rows = 0; rows <= CHUNK; rows += 2) {
        tally fixed = run_rows(rows, server, minutes);
        if (fixed.idle < *ret_least) *ret_least = fixed.idle;
        if (fixed.idle <= idle && fixed.requests < best) best = fixed.requests;
    }
    return best;
}

static const profile servers[] = {
    {.median_s = 0.03},
    {.median_s = 0.3},
    {.median_s = 0.8},
    {.median_s = 1.3},
    {.median_s = 2},
    {.median_s = 0.1, .sigma = 0.3},
    {.median_s = 0.3, .sigma = 0.3},
    {.median_s = 0.5, .sigma = 0.3},
    {.median_s = 0.8, .sigma = 0.3},
    {.median_s = 2, .sigma = 0.3},
    {.median_s = 0.1, .sigma = 0.5},
    {.median_s = 1, .sigma = 0.5},
};

static void auto_keeps_its_target_with_few_requests(void **state)
{
    (void)state;
    enum { MINUTES = 60 };
    td_edge_ask_settings settings = settings_of(TD_EDGE_ASK_AUTO, 0);
    for (size_t i = 0; i < TD_COUNT_OF(servers); i++) {
        tally chosen = run(&settings, servers[i], MINUTES);
        double least;
        double best = best_fixed(servers[i], MINUTES, chosen.idle, &least);
        bool can = least < settings.starve_target / 2;
        if ((can && chosen.idle > settings.starve_target) ||
            chosen.requests > 1.2 * best)
            fail_msg("%.2f s, sigma %.1f: idle %.5f, %.3f requests/s, the best "
                     "fixed g %.3f",
                     servers[i].median_s, servers[i].sigma, chosen.idle,
                     chosen.requests, best);
    }
}

static void auto_is_ready_for_loss(void **state)
{
    (void)state;
    profile lossy = {.median_s = 0.1, .sigma = 0.1, .loss = 0.02};
    td_edge_ask_settings settings = settings_of(TD_EDGE_ASK_AUTO, 0);
    assert_true(run(&settings, lossy, 60).idle < settings.starve_target);
    assert_true(run_rows(6, lossy, 60).idle > settings.starve_target);
}

static void auto_takes_as_many_at_a_time_as_it_may(void **state)
{
    (void)state;
    profile slow = {.median_s = 1};
    td_edge_ask_settings settings = settings_of(TD_EDGE_ASK_AUTO, 0);
    assert_true(run(&settings, slow, 30).idle > 0.1);
    settings.max_unanswered = 3;
    tally several = run(&settings, slow, 30);
    assert_true(several.idle < settings.starve_target);
    assert_true(several.requests < 1.1 * HZ / 19); // 50 rows less 31
}

static void auto_follows_a_server_that_slows_down(void **state)
{
    (void)state;
    static world w;
    td_edge_ask_settings settings = settings_of(TD_EDGE_ASK_AUTO, 0);
    world_init(&w, &settings, (profile){.median_s = 0.05, .sigma = 0.1});
    int64_t i = 0;
    for (; i < 20 * 60 * HZ; i++)
        tick(&w, i * period_ns);
    assert_int_equal(w.idle, 0);
    w.server.median_s = 0.5;
    for (; i < 40 * 60 * HZ; i++)
        tick(&w, i * period_ns);
    assert_in_range(w.idle, 1, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequential_idles_for_each_inference),
        cmocka_unit_test(from_half_on_there_is_no_idle_tick),
        cmocka_unit_test(auto_keeps_its_target_with_few_requests),
        cmocka_unit_test(auto_is_ready_for_loss),
        cmocka_unit_test(auto_takes_as_many_at_a_time_as_it_may),
        cmocka_unit_test(auto_follows_a_server_that_slows_down),
    };
    return cmocka_run_group_tests_name("edge/ask_sim", tests, NULL, NULL);
}

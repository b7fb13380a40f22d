// SPDX-License-Identifier: Apache-2.0
// What asking early is worth: a robot at 30 Hz with chunks of 50 rows and a
// server of its own that runs one observation at a time.
#include "sim/measure.h"

#include "base/clock.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { HZ = 30, CHUNK = 50 };

#define TRANSPORT_MS 1.0

static td_sim_config config_of(double g, double inference_ms)
{
    td_sim_config config = td_sim_config_default();
    config.robots = config.joints = 1;
    config.trace = false;
    config.duration_ns = 5 * 60 * TD_NS_PER_S;
    config.chunk_rows = CHUNK;
    config.edge.ask.threshold = g;
    config.edge.ask.resend_max_ns = 10 * TD_NS_PER_S;
    config.edge.max_action_age_ns = 10 * TD_NS_PER_S;
    config.faults =
        (td_net_faults){.delay_ns = (int64_t)(TRANSPORT_MS / 2 * 1e6)};
    config.latency = (td_engine_latency){.kind = TD_ENGINE_LATENCY_FIXED,
                                         .ms = inference_ms};
    return config;
}

static td_sim_figures measure(const td_sim_config *config)
{
    td_sim_figures figures;
    td_errinfo info = {.text = ""};
    if (td_sim_measure(config, &figures, &info) != TD_OK)
        fail_msg("%s", info.text);
    return figures;
}

// Latencies of whole periods: the observation leaves with the tick that plays
// the last row, so that a part of a period costs nothing.
static void sequential_idles_for_each_inference(void **state)
{
    (void)state;
    static const double inference_ms[] = {100, 300, 600, 1000, 2000};
    static const uint32_t executed[] = {10, 25, CHUNK};
    for (size_t i = 0; i < TD_COUNT_OF(inference_ms); i++)
        for (size_t j = 0; j < TD_COUNT_OF(executed); j++) {
            td_sim_config config = config_of(0, inference_ms[i]);
            config.edge.actions_per_chunk = executed[j];
            double latency_s = (inference_ms[i] + TRANSPORT_MS) / 1e3;
            double moving_s = (double)executed[j] / HZ;
            double wanted = latency_s / (moving_s + latency_s);
            double idle = measure(&config).idle_share;
            if (fabs(idle / wanted - 1) > 0.02)
                fail_msg("%g ms, %u rows: idle %.4f, not %.4f", inference_ms[i],
                         executed[j], idle, wanted);
        }
}

static void an_answer_within_a_period_costs_sequential_nothing(void **state)
{
    (void)state;
    td_sim_config config = config_of(0, 30);
    assert_true(measure(&config).idle_share == 0);
}

static const struct {
    const char *name;
    double g;
    uint32_t max_unanswered;
} early[] = {
    {"half", 0.5, 1},
    {"0.7", 0.7, 1},
    {"whenever the last was answered", 1, 1},
    {"every step", 1, 60},
};

static double idle_share(size_t which, double inference_ms)
{
    td_sim_config config = config_of(early[which].g, inference_ms);
    config.edge.ask.max_unanswered = early[which].max_unanswered;
    return measure(&config).idle_share;
}

// What is left at an ask is half a chunk at most, whatever g is: the latency
// took the other half.
static void
from_half_on_no_tick_is_idle_while_latency_is_under_the_buffer(void **state)
{
    (void)state;
    static const double inference_ms[] = {30, 100, 300, 600, 800};
    for (size_t i = 0; i < TD_COUNT_OF(early); i++) {
        for (size_t j = 0; j < TD_COUNT_OF(inference_ms); j++)
            if (idle_share(i, inference_ms[j]) > 0)
                fail_msg("%s idles at %g ms", early[i].name, inference_ms[j]);
        assert_true(idle_share(i, 900) > 0);
    }
}

static double task_s(td_sim_config config)
{
    config.steps = 3000;
    config.duration_ns = 3600 * TD_NS_PER_S;
    td_sim_figures figures = measure(&config);
    assert_int_equal(figures.steps, config.steps);
    return figures.seconds;
}

// Sequential executes n rows of a chunk and waits; asynchronous asks as often
// and goes on with the others.
static void a_task_is_shorter_by_the_time_that_sequential_waits(void **state)
{
    (void)state;
    static const struct {
        uint32_t executed;
        double inference_ms;
        double wanted;
    } cases[] = {
        {10, 100, 1.3},  {10, 300, 1.9},  {10, 600, 2.8},
        {25, 300, 1.36}, {25, 600, 1.72}, {CHUNK, 300, 1.18},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        double after = (double)cases[i].executed / CHUNK;
        td_sim_config sequential = config_of(0, cases[i].inference_ms);
        td_sim_config asynchronous =
            config_of(after < 0.5 ? 1 - after : 0.5, cases[i].inference_ms);
        sequential.edge.actions_per_chunk = cases[i].executed;
        double faster = task_s(sequential) / task_s(asynchronous);
        if (fabs(faster / cases[i].wanted - 1) > 0.02)
            fail_msg("%u rows, %g ms: %.3f, not %.3f", cases[i].executed,
                     cases[i].inference_ms, faster, cases[i].wanted);
    }
}

static td_sim_config auto_of(double inference_ms, double deviation,
                             uint32_t max_unanswered, int minutes)
{
    td_sim_config config = config_of(0, inference_ms);
    config.duration_ns = minutes * (60 * TD_NS_PER_S);
    config.edge.ask.mode = TD_EDGE_ASK_AUTO;
    config.edge.ask.max_unanswered = max_unanswered;
    if (deviation > 0) {
        config.latency.kind = TD_ENGINE_LATENCY_LOGNORMAL;
        config.latency.std_ms = deviation * inference_ms;
    }
    return config;
}

// The server runs a robot's observations one after the other: more of them at a
// time are of no use, which costs a wait to find out.
static const struct {
    double inference_ms, deviation;
    uint32_t max_unanswered;
    int minutes;
    bool can; // some fixed g keeps the target
} servers[] = {
    {30, 0, 1, 2, true},     {100, 0, 1, 2, true},    {300, 0, 1, 2, true},
    {600, 0, 1, 2, true},    {1000, 0, 1, 2, false},  {2000, 0, 1, 2, false},
    {100, 0.3, 1, 10, true}, {300, 0.3, 1, 10, true}, {300, 0, 3, 2, true},
    {600, 0, 3, 2, false},   {1000, 0, 3, 2, false},
};

static void auto_starves_no_more_than_it_may(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(servers); i++) {
        if (!servers[i].can) continue;
        td_sim_config config =
            auto_of(servers[i].inference_ms, servers[i].deviation,
                    servers[i].max_unanswered, 3 * servers[i].minutes);
        td_sim_figures seen = measure(&config);
        double target = config.edge.ask.starve_target;
        if (seen.starve_share > target || seen.idle_share > target)
            fail_msg("%g ms, deviation %g: %.5f of the asks, %.5f of the ticks",
                     servers[i].inference_ms, servers[i].deviation,
                     seen.starve_share, seen.idle_share);
    }
}

static void auto_asks_hardly_more_than_the_best_fixed_g(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(servers); i++) {
        td_sim_config config =
            auto_of(servers[i].inference_ms, servers[i].deviation,
                    servers[i].max_unanswered, servers[i].minutes);
        td_sim_figures seen = measure(&config), best;
        td_errinfo info;
        td_err err =
            td_sim_best_fixed(&config, seen.idle_share, 1, &best, &info);
        if (err == TD_ERR_NOTFOUND) continue; // none is as good
        assert_int_equal(err, TD_OK);
        if (seen.ask_hz > 1.2 * best.ask_hz)
            fail_msg("%g ms, deviation %g: %.3f a second, %.3f would do",
                     servers[i].inference_ms, servers[i].deviation, seen.ask_hz,
                     best.ask_hz);
    }
}

static void several_at_a_time_do_not_make_auto_wait_longer(void **state)
{
    (void)state;
    static const double inference_ms[] = {600, 1000, 2000};
    for (size_t i = 0; i < TD_COUNT_OF(inference_ms); i++) {
        td_sim_config one = auto_of(inference_ms[i], 0, 1, 5);
        td_sim_config three = auto_of(inference_ms[i], 0, 3, 5);
        assert_true(measure(&three).idle_share <
                    measure(&one).idle_share + 0.002);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequential_idles_for_each_inference),
        cmocka_unit_test(an_answer_within_a_period_costs_sequential_nothing),
        cmocka_unit_test(
            from_half_on_no_tick_is_idle_while_latency_is_under_the_buffer),
        cmocka_unit_test(a_task_is_shorter_by_the_time_that_sequential_waits),
        cmocka_unit_test(auto_starves_no_more_than_it_may),
        cmocka_unit_test(auto_asks_hardly_more_than_the_best_fixed_g),
        cmocka_unit_test(several_at_a_time_do_not_make_auto_wait_longer),
    };
    return cmocka_run_group_tests_name("sim/async", tests, NULL, NULL);
}

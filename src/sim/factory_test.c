// SPDX-License-Identifier: Apache-2.0
#include "sim/factory_fixture.h"

#define COUNT "  on_miss: count\n"
#define ASYNC "  execution: async\n"
#define PATIENT                                                                \
    "  safety_and_slo_violation: {max_consecutive_slo_violation: 1000000}\n"

static bool near(double value, double wanted, double part)
{
    return value >= wanted * (1 - part) && value <= wanted * (1 + part);
}

static const shop_hand four_robots = {.components = P4,
                                      .robots = 4,
                                      .servers = {2, 1, 1, 1},
                                      .rate_hz = 3,
                                      .batch = 2,
                                      .wait = TD_CONFIG_WAIT_NONE};

static void the_same_seed_gives_the_same_trace_to_the_byte(void **state)
{
    (void)state;
    td_sim_factory_options options = td_sim_factory_defaults;
    options.trace = true;
    td_sim_factory_result first = shop_try(&four_robots, &options);
    td_sim_factory_result second = shop_try(&four_robots, &options);
    assert_true(first.trace_size > 10000);
    assert_int_equal(first.trace_size, second.trace_size);
    assert_memory_equal(first.trace, second.trace, first.trace_size);
    assert_int_equal(first.trace_hash, second.trace_hash);
    td_sim_factory_result_done(&first);
    td_sim_factory_result_done(&second);
}

static void another_seed_gives_another_trace(void **state)
{
    (void)state;
    td_sim_factory_options options = td_sim_factory_defaults;
    options.trace = true;
    td_sim_factory_result first = shop_try(&four_robots, &options);
    options.seed++;
    td_sim_factory_result second = shop_try(&four_robots, &options);
    assert_int_not_equal(first.trace_hash, second.trace_hash);
    td_sim_factory_result_done(&first);
    td_sim_factory_result_done(&second);
}

static void actions_vary_within_a_range_or_by_a_deviation(void **state)
{
    (void)state;
    td_sim_factory_options options = shop_replay();
    const shop_hand alone = {
        .components = P1, .robots = 1, .servers = {1}, .batch = 1};
    options.trace = true;
    options.action_jitter = 0.05;
    td_sim_factory_result range = shop_try(&alone, &options);
    options.deviates = true;
    td_sim_factory_result deviation = shop_try(&alone, &options);
    assert_int_not_equal(range.trace_hash, deviation.trace_hash);
    assert_true(near(range.actions_hz, deviation.actions_hz, 0.01));
    td_sim_factory_result_done(&range);
    td_sim_factory_result_done(&deviation);
}

static void a_robot_alone_waits_for_its_model_and_the_network_only(void **state)
{
    (void)state;
    td_sim_factory_options options = shop_replay();
    const shop_hand alone = {
        .components = P1, .robots = 1, .servers = {1}, .batch = 1};
    td_sim_factory_result result = shop_try(&alone, &options);
    const td_sim_factory_component *system1 = &result.classes[0].components[0];
    assert_true(near(result.qualified_hz, 1 / (0.2 + 0.0458 + 0.006), 0.005));
    assert_true(near(system1->p99_ms, 51.8, 0.01));
    assert_true(near(result.servers[0].busy, 0.0458 / 0.2518, 0.01));
    td_sim_factory_result_done(&result);
}

// What the paper's figures come to with one set of constants; the rates are its
// own, steps of 1/256 of 1 / t_act.
static const struct {
    const char *name;
    shop_hand hand;
    double qualified_hz;
    double met; // of System 1, at least
} published[] = {
    {"equal split, 8 robots",
     {P4, 8, {2, 2, 2, 2}, 0, 1, TD_CONFIG_WAIT_NONE, false, COUNT},
     29.5,
     1},
    {"P4, 8 robots",
     {P4,
      8,
      {5, 1, 1, 1},
      5 * 153 / 256.0,
      1,
      TD_CONFIG_WAIT_NONE,
      false,
      COUNT},
     23.9,
     1},
    {"P4, 32 robots",
     {P4,
      32,
      {5, 1, 1, 1},
      5 * 143 / 256.0,
      1,
      TD_CONFIG_WAIT_NONE,
      false,
      COUNT},
     89.4,
     0.985},
    {"P2, 32 robots",
     {P2, 32, {7, 1}, 5 * 171 / 256.0, 1, TD_CONFIG_WAIT_NONE, false, COUNT},
     106.9,
     0.999},
    {"P3, 32 robots",
     {P3, 32, {6, 1, 1}, 5 * 171 / 256.0, 1, TD_CONFIG_WAIT_NONE, false, COUNT},
     106.9,
     0.999},
    {"P4, 64 robots, full batches of 2",
     {P4,
      64,
      {4, 1, 2, 1},
      5 * 65 / 256.0,
      2,
      TD_CONFIG_WAIT_FULL,
      false,
      COUNT},
     78.8,
     0.957},
    {"a GPU a model, 2 robots",
     {P4, 2, {2, 2, 2, 2}, 0, 1, TD_CONFIG_WAIT_NONE, false, COUNT},
     7.4,
     1},
    {"equal split, 32 robots",
     {P4, 32, {2, 2, 2, 2}, 0, 1, TD_CONFIG_WAIT_NONE, false, COUNT},
     0,
     0},
};

static void published_plans_give_the_published_figures(void **state)
{
    (void)state;
    td_sim_factory_options options = shop_replay();
    options.runs = 3;
    for (size_t i = 0; i < TD_COUNT_OF(published); i++) {
        td_sim_factory_result result = shop_try(&published[i].hand, &options);
        double met = td_sim_factory_met(&result.classes[0].components[0].tally);
        if (!near(result.qualified_hz, published[i].qualified_hz, 0.03) ||
            met < published[i].met)
            fail_msg("%s: %.2f of %.2f, %.4f on time", published[i].name,
                     result.qualified_hz, published[i].qualified_hz, met);
        td_sim_factory_result_done(&result);
    }
}

static void staggered_batches_of_two_are_on_time_for_every_robot(void **state)
{
    (void)state;
    const shop_hand staggered = {.components = P4,
                                 .robots = 32,
                                 .servers = {5, 1, 1, 1},
                                 .rate_hz = 3.4,
                                 .batch = 2,
                                 .wait = TD_CONFIG_WAIT_NONE};
    td_sim_factory_options options = td_sim_factory_defaults;
    td_errinfo info = {.text = ""};
    shop made;
    shop_open(&made, &staggered);
    td_sim_factory_result result = shop_run(&made, &options);
    if (!near(result.qualified_hz, 108, 0.03))
        fail_msg("%.2f", result.qualified_hz);
    if (td_sim_factory_holds(made.factory, &made.plan, &result, &info) != TD_OK)
        fail_msg("%s", info.text);
    td_sim_factory_result_done(&result);
    shop_close(&made);
}

// Six are one too many for one at a time; answered in pairs they come again in
// pairs.
static void robots_in_step_act_more_often_than_whoever_comes(void **state)
{
    (void)state;
    shop_hand six = {.components = P1,
                     .robots = 6,
                     .servers = {1},
                     .batch = 2,
                     .wait = TD_CONFIG_WAIT_NONE};
    td_sim_factory_options options = td_sim_factory_defaults;
    options.deviates = true;
    td_sim_factory_result at_once = shop_try(&six, &options);
    six.wait = TD_CONFIG_WAIT_FIXED;
    td_sim_factory_result in_step = shop_try(&six, &options);
    if (in_step.qualified_hz < 1.015 * at_once.qualified_hz)
        fail_msg("%.2f in step, %.2f at once", in_step.qualified_hz,
                 at_once.qualified_hz);
    td_sim_factory_result_done(&in_step);
    td_sim_factory_result_done(&at_once);
}

static void a_pooled_percentile_does_not_hide_the_robot_that_loses(void **state)
{
    (void)state;
    const shop_hand full = {.components = P4,
                            .robots = 64,
                            .servers = {4, 1, 2, 1},
                            .rate_hz = 5 * 65 / 256.0,
                            .batch = 2,
                            .wait = TD_CONFIG_WAIT_FULL,
                            .more = COUNT};
    td_sim_factory_options options = shop_replay();
    td_errinfo info = {.text = ""};
    shop made;
    shop_open(&made, &full);
    td_sim_factory_result result = shop_run(&made, &options);
    const td_sim_factory_component *system1 = &result.classes[0].components[0];
    assert_true(td_sim_factory_met(&system1->tally) > 0.95);
    assert_true(system1->least_met < 0.9);
    assert_int_equal(
        td_sim_factory_holds(made.factory, &made.plan, &result, &info),
        TD_ERR_MISMATCH);
    assert_non_null(
        strstr(info.text, made.plan.robots[system1->least_robot].name));
    assert_non_null(strstr(info.text, "system1"));
    td_sim_factory_result_done(&result);
    shop_close(&made);
}

static void acting_while_asking_is_limited_by_the_action_alone(void **state)
{
    (void)state;
    const shop_hand async = {.components = P4,
                             .robots = 8,
                             .servers = {5, 1, 1, 1},
                             .batch = 2,
                             .wait = TD_CONFIG_WAIT_NONE,
                             .more = ASYNC};
    td_sim_factory_options options = td_sim_factory_defaults;
    td_sim_factory_result result = shop_try(&async, &options);
    if (!near(result.qualified_hz, 39.5, 0.02))
        fail_msg("%.2f", result.qualified_hz);
    td_sim_factory_result_done(&result);
}

// 16 robots ask one server for twice what it can give.
static const shop_hand crowded = {.components = P1,
                                  .robots = 16,
                                  .servers = {1},
                                  .batch = 1,
                                  .wait = TD_CONFIG_WAIT_NONE,
                                  .more = PATIENT};

static void where_misses_count_only_late_answers_are_acted_on(void **state)
{
    (void)state;
    td_sim_factory_options options = shop_replay();
    shop_hand counted = crowded;
    counted.more = COUNT;
    td_sim_factory_result result = shop_try(&counted, &options);
    assert_true(near(result.actions_hz, 1 / 0.0458, 0.01));
    assert_true(result.qualified_hz == 0);
    td_sim_factory_result_done(&result);
}

static void where_they_fall_back_nobody_acts_on_a_late_answer(void **state)
{
    (void)state;
    td_sim_factory_options options = td_sim_factory_defaults;
    td_sim_factory_result result = shop_try(&crowded, &options);
    const td_sim_factory_tally *tally = &result.classes[0].components[0].tally;
    assert_true(result.actions_hz > 0);
    assert_true(result.actions_hz == result.qualified_hz);
    assert_true(tally->late > tally->on_time / 10);
    td_sim_factory_result_done(&result);
}

static void a_resent_ask_costs_a_token_too(void **state)
{
    (void)state;
    shop_hand capped = crowded;
    capped.rate_hz = 2;
    td_sim_factory_options options = td_sim_factory_defaults;
    td_sim_factory_result result = shop_try(&capped, &options);
    uint64_t missed = 0; // and asked again
    for (size_t i = 0; i < result.stream_count; i++) {
        const td_sim_factory_tally *tally = &result.streams[i];
        double asked = (double)(tally->on_time + tally->late + tally->lost);
        assert_true(asked <= 2 * result.seconds + 2);
        missed += tally->late + tally->lost;
    }
    assert_true(missed > 0);
    td_sim_factory_result_done(&result);
}

// 64 robots check twice a second with a GPU that takes half of that.
static shop_hand unsafe(const char *more)
{
    return (shop_hand){.components = P3,
                       .robots = 64,
                       .servers = {16, 1, 2},
                       .rate_hz = 1,
                       .batch = 2,
                       .wait = TD_CONFIG_WAIT_NONE,
                       .more = more};
}

static void an_action_with_a_late_check_does_not_qualify(void **state)
{
    (void)state;
    shop_hand counted = unsafe(COUNT);
    td_sim_factory_options options = shop_replay();
    td_sim_factory_result result = shop_try(&counted, &options);
    assert_true(near(result.actions_hz, 64, 0.05));
    assert_true(result.qualified_hz < 0.05 * result.actions_hz);
    td_sim_factory_result_done(&result);
}

static void a_late_check_stops_the_motion(void **state)
{
    (void)state;
    shop_hand stopped = unsafe(PATIENT);
    td_sim_factory_options options = shop_replay();
    td_sim_factory_result result = shop_try(&stopped, &options);
    assert_true(result.actions_hz < 0.05 * 64);
    td_sim_factory_result_done(&result);
}

static void models_on_one_gpu_slow_each_other_down(void **state)
{
    (void)state;
    shop_hand apart = {.components = P3,
                       .robots = 1,
                       .servers = {1, 1, 1},
                       .batch = 1,
                       .wait = TD_CONFIG_WAIT_NONE,
                       .more = COUNT};
    shop_hand together = apart;
    together.one_gpu = true;
    td_sim_factory_options options = shop_replay();
    td_sim_factory_result fast = shop_try(&apart, &options);
    td_sim_factory_result slow = shop_try(&together, &options);
    assert_true(near(fast.classes[0].components[0].p99_ms, 51.8, 0.01));
    assert_true(slow.classes[0].components[0].p99_ms > 80);
    assert_true(slow.actions_hz < fast.actions_hz);
    td_sim_factory_result_done(&fast);
    td_sim_factory_result_done(&slow);
}

static void a_robot_that_the_plan_refuses_does_nothing(void **state)
{
    (void)state;
    td_sim_factory_options options = td_sim_factory_defaults;
    shop made;
    shop_open(&made, &four_robots);
    td_sim_factory_result all = shop_run(&made, &options);
    made.plan.robots[3].stream_count = 0;
    made.plan.stream_count -= 4;
    td_sim_factory_result three = shop_run(&made, &options);
    assert_true(near(three.qualified_hz, 0.75 * all.qualified_hz, 0.01));
    td_sim_factory_result_done(&all);
    td_sim_factory_result_done(&three);
    shop_close(&made);
}

static void several_runs_are_counted_together(void **state)
{
    (void)state;
    td_sim_factory_options options = td_sim_factory_defaults;
    td_sim_factory_result one = shop_try(&four_robots, &options);
    options.runs = 3;
    td_sim_factory_result three = shop_try(&four_robots, &options);
    assert_true(three.seconds == 180);
    assert_true(near(three.qualified_hz, one.qualified_hz, 0.01));
    assert_true(three.streams[0].on_time > 2 * one.streams[0].on_time);
    td_sim_factory_result_done(&one);
    td_sim_factory_result_done(&three);
}

static void damage_tasks(td_plan *plan)
{
    plan->robots[1].task = 1;
}

static void damage_servers(td_plan *plan)
{
    plan->streams[2].server = 99;
}

static void damage_count(td_plan *plan)
{
    plan->robot_count--;
}

static void a_plan_of_another_factory_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *says;
        void (*damage)(td_plan *plan);
    } cases[] = {
        {"not of this factory", damage_tasks},
        {"damaged", damage_servers},
        {"not of this factory", damage_count},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_sim_factory_result result;
        td_errinfo info = {.text = ""};
        shop made;
        shop_open(&made, &four_robots);
        cases[i].damage(&made.plan);
        assert_int_equal(
            td_sim_factory_run(made.factory, made.profiles, &made.plan,
                               &td_sim_factory_defaults, &result, &info),
            TD_ERR_INVALID);
        assert_non_null(strstr(info.text, cases[i].says));
        shop_close(&made);
    }
}

static void options_that_make_no_sense_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *says;
        td_sim_factory_options options;
    } cases[] = {
        {"runs", {.runs = 0, .duration_ns = 1}},
        {"duration", {.runs = 1, .duration_ns = 5, .warmup_ns = 5}},
        {"action jitter", {.runs = 1, .duration_ns = 1, .action_jitter = 2}},
        {"network jitter",
         {.runs = 1, .duration_ns = 1, .network_jitter_ns = -1}},
        {"interference", {.runs = 1, .duration_ns = 1, .interference = -1}},
        {"unsafe", {.runs = 1, .duration_ns = 1, .unsafe = 1.5}},
        {"failing", {.runs = 1, .duration_ns = 1, .failing = -0.1}},
    };
    shop made;
    shop_open(&made, &four_robots);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_sim_factory_result result;
        td_errinfo info = {.text = ""};
        assert_int_equal(td_sim_factory_run(made.factory, made.profiles,
                                            &made.plan, &cases[i].options,
                                            &result, &info),
                         TD_ERR_INVALID);
        assert_non_null(strstr(info.text, cases[i].says));
    }
    shop_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_trace_to_the_byte),
        cmocka_unit_test(another_seed_gives_another_trace),
        cmocka_unit_test(actions_vary_within_a_range_or_by_a_deviation),
        cmocka_unit_test(
            a_robot_alone_waits_for_its_model_and_the_network_only),
        cmocka_unit_test(published_plans_give_the_published_figures),
        cmocka_unit_test(staggered_batches_of_two_are_on_time_for_every_robot),
        cmocka_unit_test(robots_in_step_act_more_often_than_whoever_comes),
        cmocka_unit_test(
            a_pooled_percentile_does_not_hide_the_robot_that_loses),
        cmocka_unit_test(acting_while_asking_is_limited_by_the_action_alone),
        cmocka_unit_test(where_misses_count_only_late_answers_are_acted_on),
        cmocka_unit_test(where_they_fall_back_nobody_acts_on_a_late_answer),
        cmocka_unit_test(a_resent_ask_costs_a_token_too),
        cmocka_unit_test(an_action_with_a_late_check_does_not_qualify),
        cmocka_unit_test(a_late_check_stops_the_motion),
        cmocka_unit_test(models_on_one_gpu_slow_each_other_down),
        cmocka_unit_test(a_robot_that_the_plan_refuses_does_nothing),
        cmocka_unit_test(several_runs_are_counted_together),
        cmocka_unit_test(a_plan_of_another_factory_is_refused),
        cmocka_unit_test(options_that_make_no_sense_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

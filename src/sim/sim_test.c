// SPDX-License-Identifier: Apache-2.0
#include "sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static td_sim_result run(const td_sim_config *config)
{
    td_sim_result result;
    td_errinfo info = {.text = ""};
    if (td_sim_run(config, &result, &info) != TD_OK) fail_msg("%s", info.text);
    return result;
}

static uint64_t sum(const uint64_t *values, int count)
{
    uint64_t total = 0;
    for (int i = 0; i < count; i++)
        total += values[i];
    return total;
}

static td_sim_config lossy(void)
{
    td_sim_config config = td_sim_config_default();
    config.faults = (td_net_faults){
        .delay_ns = 100 * TD_NS_PER_MS,
        .jitter_ns = 100 * TD_NS_PER_MS,
        .loss = 0.05,
        .duplicate = 0.05,
        .reorder = 0.1,
    };
    return config;
}

static void the_same_seed_gives_the_same_trace_to_the_byte(void **state)
{
    (void)state;
    td_sim_config config = lossy();
    td_sim_result first = run(&config);
    td_sim_result second = run(&config);
    assert_true(first.trace_size > 100000);
    assert_int_equal(first.trace_size, second.trace_size);
    assert_memory_equal(first.trace, second.trace, first.trace_size);
    assert_int_equal(first.trace_hash, second.trace_hash);
    td_sim_result_done(&first);
    td_sim_result_done(&second);
}

static void another_seed_gives_another_trace(void **state)
{
    (void)state;
    td_sim_config config = lossy();
    config.duration_ns = 5 * TD_NS_PER_S;
    td_sim_result first = run(&config);
    config.seed++;
    td_sim_result second = run(&config);
    assert_int_not_equal(first.trace_hash, second.trace_hash);
    td_sim_result_done(&first);
    td_sim_result_done(&second);
}

static void a_minute_without_faults_starves_nobody(void **state)
{
    (void)state;
    td_sim_config config = td_sim_config_default();
    td_sim_result result = run(&config);
    assert_int_equal(result.virtual_ns, 60 * TD_NS_PER_S);
    assert_in_range(result.edge.ticks, 4 * 60 * 30, 4 * (60 * 30 + 1));
    assert_int_equal(result.edge.starved, 0);
    assert_true(result.edge.fresh > 4 * 59 * 30);
    td_sim_result_done(&result);
}

static void every_observation_is_accounted_for_on_both_sides(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        td_sim_config config = lossy();
        config.seed = seed;
        config.trace = false;
        config.edge.ask.again = seed % 2 == 0;
        config.duration_ns = 20 * TD_NS_PER_S;
        td_sim_result result = run(&config);
        const td_edge_counts *edge = &result.edge;
        const td_server_counts *server = &result.server;
        assert_true(edge->sent > 0);
        assert_int_equal(edge->asked, edge->sent);
        assert_int_equal(sum(edge->outcomes, TD_EDGE_OUTCOME_COUNT),
                         edge->sent);
        assert_int_equal(sum(server->outcomes, TD_SERVER_OUTCOME_COUNT),
                         server->received);
        assert_int_equal(edge->strays[TD_EDGE_STRAY_MALFORMED], 0);
        assert_int_equal(result.net.put + result.net.duplicated,
                         result.net.delivered + result.net.lost +
                             result.net.cut + result.net.waiting);
        td_sim_result_done(&result);
    }
}

// Answers are reliable here: what is lost are observations.
static void
what_was_lost_on_its_way_is_asked_for_and_then_sent_anew(void **state)
{
    (void)state;
    td_sim_config config = td_sim_config_default();
    config.faults.loss = 0.1;
    config.edge.ask.again = true;
    td_sim_result result = run(&config);
    const td_edge_counts *edge = &result.edge;
    assert_true(edge->asked_again > 10);
    assert_true(result.server.again_misses > 10);
    assert_true(result.server.again_misses <= edge->asked_again);
    assert_int_equal(edge->outcomes[TD_EDGE_REFUSED],
                     result.server.again_misses);
    assert_int_equal(edge->asked, edge->sent);
    assert_true(edge->fresh > edge->ticks * 99 / 100);
    td_sim_result_done(&result);
}

// A second answer to the same observation is a stray, and frees who asked.
static void an_answer_that_was_only_late_comes_twice(void **state)
{
    (void)state;
    td_sim_config config = td_sim_config_default();
    config.faults.jitter_ns = 600 * TD_NS_PER_MS;
    config.edge.ask.resend_max_ns = 150 * TD_NS_PER_MS;
    config.edge.ask.again = true;
    td_sim_result result = run(&config);
    assert_true(result.server.kept_chunk_hits > 0);
    assert_true(result.edge.outcomes[TD_EDGE_SUPERSEDED] > 0);
    assert_true(result.edge.strays[TD_EDGE_STRAY_SEQ] > 0);
    td_sim_result_done(&result);
}

static td_sim_config sequential(double inference_ms)
{
    td_sim_config config = td_sim_config_default();
    config.robots = 1;
    config.edge.ask.threshold = 0;
    config.faults = (td_net_faults){0};
    config.latency = (td_engine_latency){.kind = TD_ENGINE_LATENCY_FIXED,
                                         .ms = inference_ms};
    return config;
}

static void
every_row_runs_when_a_round_trip_is_longer_than_a_chunk(void **state)
{
    (void)state;
    td_sim_config config = sequential(2500);
    td_sim_result result = run(&config);
    uint64_t merged = result.edge.outcomes[TD_EDGE_MERGED];
    assert_true(merged >= 14);
    assert_int_equal(result.edge.outcomes[TD_EDGE_EXPIRED], 0);
    assert_int_equal(result.edge.fresh + result.edge.left,
                     merged * config.chunk_rows);
    td_sim_result_done(&result);
}

static void
trimmed_by_time_a_longer_round_trip_stops_a_robot_for_ever(void **state)
{
    (void)state;
    td_sim_config config = sequential(2500);
    config.edge.trim = TD_EDGE_TRIM_TIME;
    td_sim_result result = run(&config);
    assert_int_equal(result.edge.outcomes[TD_EDGE_MERGED], 1);
    assert_int_equal(result.edge.fresh, config.chunk_rows);
    assert_true(result.edge.outcomes[TD_EDGE_EXPIRED] >= 20);
    td_sim_result_done(&result);
}

// 18 periods of holding while it was answered.
static void trimmed_by_time_a_robot_that_held_leaves_rows_out(void **state)
{
    (void)state;
    td_sim_config config = sequential(610);
    config.edge.trim = TD_EDGE_TRIM_TIME;
    td_sim_result result = run(&config);
    uint64_t merged = result.edge.outcomes[TD_EDGE_MERGED];
    assert_true(merged > 20);
    assert_int_equal(result.edge.fresh + result.edge.left,
                     config.chunk_rows +
                         (merged - 1) * (config.chunk_rows - 18));
    td_sim_result_done(&result);
}

// A planner at 2 Hz, which answers in time, and a check with every third ask of
// the policy, which does not.
static td_sim_config with_components(void)
{
    td_sim_config config = td_sim_config_default();
    config.component_count = 2;
    config.components[0] = (td_sim_component){
        .pace = {.rate_hz = 2, .deadline_ns = 400 * TD_NS_PER_MS},
        .latency = {.kind = TD_ENGINE_LATENCY_FIXED, .ms = 300},
    };
    config.components[1] = (td_sim_component){
        .pace = {.every = 3, .deadline_ns = 100 * TD_NS_PER_MS},
        .latency = {.kind = TD_ENGINE_LATENCY_FIXED, .ms = 150},
    };
    return config;
}

static void components_of_a_robot_go_at_their_own_rates(void **state)
{
    (void)state;
    td_sim_config config = with_components();
    td_sim_result result = run(&config);
    const td_sim_component_counts *planner = &result.components[0];
    const td_sim_component_counts *check = &result.components[1];
    assert_in_range(planner->asked, 4 * 119, 4 * 121);
    assert_in_range(planner->answered, planner->asked - 4, planner->asked);
    assert_int_equal(planner->late, 0);
    assert_in_range(3 * check->asked, result.edge.asked, result.edge.asked + 8);
    assert_in_range(check->late, check->asked - 4, check->asked);
    td_sim_result again = run(&config);
    assert_int_equal(again.trace_hash, result.trace_hash);
    td_sim_result_done(&again);
    td_sim_result_done(&result);
}

// What is lost is asked for again at the next turn, and counts as late.
static void a_component_whose_answers_are_lost_is_late(void **state)
{
    (void)state;
    td_sim_config config = with_components();
    config.faults.loss = 0.1;
    td_sim_result result = run(&config);
    const td_sim_component_counts *planner = &result.components[0];
    assert_in_range(planner->asked, 4 * 115, 4 * 121);
    assert_true(planner->answered < planner->asked);
    assert_true(planner->late > 0);
    assert_true(planner->late <= planner->asked - planner->answered);
    td_sim_result_done(&result);
}

// It ends with the tick that executes the last of them.
static void a_task_ends_with_its_last_step(void **state)
{
    (void)state;
    td_sim_config config = sequential(0);
    config.steps = 200;
    td_sim_result result = run(&config);
    assert_int_equal(result.edge.fresh, 200);
    assert_in_range(result.virtual_ns, 199 * TD_NS_PER_S / 30,
                    205 * TD_NS_PER_S / 30);
    td_sim_result_done(&result);
}

static void nonsense_is_refused_by_name(void **state)
{
    (void)state;
    td_sim_config config = td_sim_config_default();
    td_sim_result result;
    td_errinfo info;
    config.robots = 0;
    assert_int_equal(td_sim_run(&config, &result, &info), TD_ERR_INVALID);
    assert_string_equal(info.text, "robots: must be 1 to 256, got 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_trace_to_the_byte),
        cmocka_unit_test(another_seed_gives_another_trace),
        cmocka_unit_test(a_minute_without_faults_starves_nobody),
        cmocka_unit_test(every_observation_is_accounted_for_on_both_sides),
        cmocka_unit_test(
            what_was_lost_on_its_way_is_asked_for_and_then_sent_anew),
        cmocka_unit_test(an_answer_that_was_only_late_comes_twice),
        cmocka_unit_test(
            every_row_runs_when_a_round_trip_is_longer_than_a_chunk),
        cmocka_unit_test(
            trimmed_by_time_a_longer_round_trip_stops_a_robot_for_ever),
        cmocka_unit_test(trimmed_by_time_a_robot_that_held_leaves_rows_out),
        cmocka_unit_test(components_of_a_robot_go_at_their_own_rates),
        cmocka_unit_test(a_component_whose_answers_are_lost_is_late),
        cmocka_unit_test(a_task_ends_with_its_last_step),
        cmocka_unit_test(nonsense_is_refused_by_name),
    };
    return cmocka_run_group_tests_name("sim/sim", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_fixture.h"

#include <math.h>
#include <stdlib.h>

static void assert_between(double is, double least, double most)
{
    if (is < least || is > most)
        fail_msg("%g is not between %g and %g", is, least, most);
}

static void every_stream_has_a_server_of_its_model(void **state)
{
    (void)state;
    plant it;
    plant_made(&it, CLUSTER(8) FLEET(32) P4("job"), TD_PLAN_TENDON);
    const td_plan *plan = it.plan;
    assert_int_equal(plan->robot_count, 32);
    assert_int_equal(plan->stream_count, 32 * 4);
    for (size_t i = 0; i < plan->stream_count; i++) {
        const td_plan_stream *stream = &plan->streams[i];
        const td_config_factory_component *part =
            &it.factory->tasks[0].components[stream->component];
        assert_string_equal(plan->servers[stream->server].model, part->model);
        assert_true(stream->rate_hz > 0);
        assert_true(stream->phase >= 0 && stream->phase < 1);
        assert_true(stream->tail_ms > 0 && stream->tail_ms <= part->slo_ms);
    }
    plant_close(&it);
}

static void no_server_is_asked_more_than_it_can(void **state)
{
    (void)state;
    plant it;
    plant_made(&it, CLUSTER(8) FLEET(64) P4("job"), TD_PLAN_TENDON);
    for (size_t i = 0; i < it.plan->server_count; i++) {
        const td_plan_server *server = &it.plan->servers[i];
        assert_true(server->rate_hz > 0);
        assert_true(server->rate_hz <= server->capacity_hz * (1 + 1e-9));
    }
    assert_true(it.plan->gpus_used <= 8);
    plant_close(&it);
}

static void phases_of_a_server_are_spread_evenly(void **state)
{
    (void)state;
    plant it;
    plant_made(&it, CLUSTER(8) FLEET(32) P4("job"), TD_PLAN_TENDON);
    const td_plan *plan = it.plan;
    uint32_t shared = 0;
    for (uint32_t s = 0; s < plan->server_count; s++) {
        double least = 1;
        uint32_t count = 0;
        for (size_t i = 0; i < plan->stream_count; i++) {
            if (plan->streams[i].server != s) continue;
            count++;
            for (size_t j = 0; j < i; j++)
                if (plan->streams[j].server == s)
                    least = fmin(least, fabs(plan->streams[i].phase -
                                             plan->streams[j].phase));
        }
        shared += count > 1;
        if (count > 1) assert_true(fabs(least - 1.0 / count) < 1e-6);
    }
    assert_true(shared > 0);
    plant_close(&it);
}

// One after the other, six take longer than an action and an answer.
static void six_robots_on_a_gpu_ask_in_pairs(void **state)
{
    (void)state;
    plant it;
    plant_made(&it, CLUSTER(1) FLEET(6) TASK("job") PARTS SYSTEM1,
               TD_PLAN_TENDON);
    const td_plan_server *server = &it.plan->servers[0];
    assert_int_equal(server->batch_most, 2);
    assert_int_equal(server->wait, TD_CONFIG_WAIT_FIXED);
    assert_true(server->wait_ms == 55); // as long as a batch of two takes
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t pair = i / 2;
        assert_true(fabs(it.plan->streams[i].phase - pair / 3.0) < 1e-9);
    }
    plant_close(&it);
}

// Five do not need it; a plan every now and then, or actions that do not wait
// for answers, would leave others waiting.
static void robots_that_keep_no_step_are_not_waited_for(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
    } cases[] = {
        {"five", CLUSTER(1) FLEET(5) TASK("job") PARTS SYSTEM1},
        {"plans", CLUSTER(2) FLEET(6) TASK("job") PARTS SYSTEM1 SYSTEM2},
        {"async",
         CLUSTER(1) FLEET(6) TASK("job") "  execution: async\n" PARTS SYSTEM1},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        plant it;
        print_message("%s\n", cases[i].name);
        plant_made(&it, cases[i].text, TD_PLAN_TENDON);
        for (size_t j = 0; j < it.plan->server_count; j++)
            assert_int_equal(it.plan->servers[j].wait, TD_CONFIG_WAIT_NONE);
        plant_close(&it);
    }
}

// What the paper's scheduler gave to 8, 32 and 64 robots of P4 on 8 GPUs.
static void the_papers_planner_gives_the_papers_rates(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        double rate_hz;
        uint32_t gpus[4];
    } cases[] = {
        {"8", CLUSTER(8) FLEET(8) P4("job"), 5 * 153 / 256.0, {5, 1, 1, 1}},
        {"32", CLUSTER(8) FLEET(32) P4("job"), 5 * 143 / 256.0, {5, 1, 1, 1}},
        {"64", CLUSTER(8) FLEET(64) P4("job"), 5 * 65 / 256.0, {4, 1, 2, 1}},
    };
    static const char *const parts[] = {"system1", "system2", "safety",
                                        "monitor"};
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        plant it;
        print_message("%s robots\n", cases[i].name);
        plant_made(&it, cases[i].text, TD_PLAN_PAPER);
        assert_between(it.plan->classes[0].rate_hz, 0.97 * cases[i].rate_hz,
                       1.03 * cases[i].rate_hz);
        for (size_t j = 0; j < 4; j++)
            assert_int_equal(plant_gpus(&it, parts[j]), cases[i].gpus[j]);
        plant_close(&it);
    }
}

static void ours_gives_more_than_the_papers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double least; // times as much
    } cases[] = {
        {CLUSTER(8) FLEET(8) P4("job"), 1.2},
        {CLUSTER(8) FLEET(32) P4("job"), 1.2},
        {CLUSTER(8) FLEET(64) P4("job"), 1.5},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        plant ours;
        plant theirs;
        plant_made(&ours, cases[i].text, TD_PLAN_TENDON);
        plant_made(&theirs, cases[i].text, TD_PLAN_PAPER);
        assert_true(ours.plan->actions_hz >
                    cases[i].least * theirs.plan->actions_hz);
        plant_close(&ours);
        plant_close(&theirs);
    }
}

static void baselines_divide_gpus_as_in_the_paper(void **state)
{
    (void)state;
    static const struct {
        td_plan_planner planner;
        uint32_t gpus[4];
    } cases[] = {
        {TD_PLAN_EQUAL, {2, 2, 2, 2}},
        {TD_PLAN_WEIGHTED, {1, 3, 1, 3}},
    };
    static const char *const parts[] = {"system1", "system2", "safety",
                                        "monitor"};
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        plant it;
        plant_made(&it, CLUSTER(8) FLEET(32) P4("job"), cases[i].planner);
        for (size_t j = 0; j < 4; j++)
            assert_int_equal(plant_gpus(&it, parts[j]), cases[i].gpus[j]);
        assert_true(it.plan->streams[0].rate_hz == 0);
        plant_close(&it);
    }
}

static void dedicated_gpus_run_out(void **state)
{
    (void)state;
    plant it;
    plant_made(&it, CLUSTER(8) FLEET(32) P4("job"), TD_PLAN_DEDICATED);
    assert_int_equal(it.plan->classes[0].robots, 2);
    assert_int_equal(it.plan->classes[0].refused, 30);
    assert_int_equal(it.plan->stream_count, 2 * 4);
    plant_close(&it);
    plant_made(&it, CLUSTER(8) FLEET(32) P4("job"), TD_PLAN_DEDICATED_ROBOT);
    assert_int_equal(it.plan->classes[0].robots, 8);
    assert_int_equal(it.plan->gpus_used, 8);
    plant_close(&it);
}

#define TWO                                                                    \
    CLUSTER(8)                                                                 \
    "robot_fleet:\n  - {task: plain, num_robots: 16}\n"                        \
    "  - {task: rich, num_robots: 16}\n" TASK("plain") PARTS SYSTEM1 MONITOR

static void the_more_valuable_class_goes_first(void **state)
{
    (void)state;
    plant it;
    plant_made(
        &it,
        CLUSTER(4) "robot_fleet:\n  - {task: plain, num_robots: 32}\n"
                   "  - {task: rich, num_robots: 32}\n" TASK("plain")
                       PARTS SYSTEM1 TASK("rich") "  value: 5\n" PARTS SYSTEM1,
        TD_PLAN_TENDON);
    assert_true(it.plan->classes[1].rate_hz >
                1.5 * it.plan->classes[0].rate_hz);
    plant_close(&it);
}

static void minimums_are_kept(void **state)
{
    (void)state;
    plant it;
    plant_made(&it,
               CLUSTER(4) "robot_fleet:\n  - {task: plain, num_robots: 32}\n"
                          "  - {task: rich, num_robots: 32}\n" TASK(
                              "plain") "  min_throughput: 48\n" PARTS SYSTEM1
                              TASK("rich") "  value: 5\n" PARTS SYSTEM1,
               TD_PLAN_TENDON);
    assert_true(it.plan->classes[0].rate_hz * 32 >= 48 * 0.999);
    plant_close(&it);
}

static void classes_share_servers_where_model_and_deadline_agree(void **state)
{
    (void)state;
    plant it;
    plant_made(&it, TWO P4("rich"), TD_PLAN_TENDON);
    const td_plan *plan = it.plan;
    uint32_t monitors = plan->streams[1].server; // plain's
    bool both = false;
    for (size_t i = 0; i < plan->stream_count; i++)
        if (plan->streams[i].server == monitors &&
            plan->robots[plan->streams[i].robot].task == 1)
            both = true;
    assert_true(both);
    plant_close(&it);
}

// A robot that is slow by itself is not put beside quick ones: they would all
// be as slow.
static void slow_robots_do_not_hold_quick_ones_back(void **state)
{
    (void)state;
    plant it;
    plant_made(&it,
               CLUSTER(6) "robot_fleet:\n  - {task: quick, num_robots: 16}\n"
                          "  - {task: slow, num_robots: 12}\n" TASK("quick")
                              PARTS SYSTEM1
               "slow:\n  pipeline: {action_period_ms: 500}\n" PARTS SYSTEM1,
               TD_PLAN_TENDON);
    assert_between(it.plan->classes[0].rate_hz, 3.6, 4);
    assert_between(it.plan->classes[1].rate_hz, 1.6, 1.9);
    plant_close(&it);
    plant_made(
        &it,
        CLUSTER(1) "robot_fleet:\n  - {task: quick, num_robots: 2}\n"
                   "  - {task: slow, num_robots: 2}\n" TASK("quick")
                       PARTS SYSTEM1
        "slow:\n  pipeline: {action_period_ms: 500}\n" PARTS SYSTEM1,
        TD_PLAN_TENDON); // on one GPU each has its own rate, without phases
    assert_between(it.plan->classes[0].rate_hz, 3.5, 4);
    plant_close(&it);
}

static void compaction_merges_what_isolated_packing_cannot(void **state)
{
    (void)state;
    plant it;
    plant_made(&it, TWO P4("rich"), TD_PLAN_PAPER);
    assert_true(it.plan->gpus_used <= 8);
    assert_true(it.plan->actions_hz > 50);
    plant_close(&it);
}

static void asynchronous_robots_act_faster(void **state)
{
    (void)state;
    plant sync;
    plant async;
    plant_made(&sync, CLUSTER(8) FLEET(8) P4("job"), TD_PLAN_TENDON);
    plant_made(
        &async,
        CLUSTER(8) FLEET(8) TASK(
            "job") "  execution: async\n" PARTS SYSTEM1 SYSTEM2 SAFETY MONITOR,
        TD_PLAN_TENDON);
    assert_true(async.plan->actions_hz > 1.25 * sync.plan->actions_hz);
    plant_close(&sync);
    plant_close(&async);
}

// How many servers of a model a node has.
static uint32_t count_on(const td_plan *plan, const char *node,
                         const char *model)
{
    uint32_t count = 0;
    for (size_t i = 0; i < plan->server_count; i++)
        count += !plan->servers[i].standby &&
                 strcmp(plan->servers[i].node, node) == 0 &&
                 strcmp(plan->servers[i].model, model) == 0;
    return count;
}

static void no_node_has_all_servers_of_a_model(void **state)
{
    (void)state;
    static const char *const models[] = {"nvidia/GR00T-N1.6-3B",
                                         "Qwen2.5-VL-3B-Instruct"};
    plant it;
    plant_made(&it,
               "server_cluster:\n  nodes:\n"
               "    a: {gpu_type: NVIDIA H200, gpus: 6}\n"
               "    b: {gpu_type: NVIDIA H200, gpus: 2}\n" FLEET(64) P4("job"),
               TD_PLAN_TENDON);
    for (size_t i = 0; i < TD_COUNT_OF(models); i++) {
        assert_true(count_on(it.plan, "a", models[i]) > 0);
        assert_true(count_on(it.plan, "b", models[i]) > 0);
    }
    plant_close(&it);
}

static void servers_stand_first_where_a_standby_is_elsewhere(void **state)
{
    (void)state;
    plant it;
    plant_made(&it,
               "server_cluster:\n  standby: 1\n  nodes:\n"
               "    a: {gpu_type: NVIDIA H200, gpus: 2}\n"
               "    b: {gpu_type: NVIDIA H200, gpus: 4}\n" FLEET(2) TASK("job")
                   PARTS SYSTEM1,
               TD_PLAN_TENDON);
    assert_int_equal(it.plan->gpus_used, 1);
    assert_string_equal(it.plan->servers[0].node, "a");
    plant_close(&it);
}

static void standbys_hold_every_model_on_another_node(void **state)
{
    (void)state;
    plant it;
    plant_made(&it,
               "server_cluster:\n  standby: 1\n  nodes:\n"
               "    a: {gpu_type: NVIDIA H200, gpus: 6}\n"
               "    b: {gpu_type: NVIDIA H200, gpus: 2}\n" FLEET(32) P4("job"),
               TD_PLAN_TENDON);
    const td_plan *plan = it.plan;
    assert_int_equal(plan->gpus_standby, 1);
    assert_true(plan->gpus_used <= 7);
    for (size_t i = 0; i < plan->stream_count; i++) {
        assert_int_not_equal(plan->streams[i].standby, TD_PLAN_NONE);
        const td_plan_server *spare = &plan->servers[plan->streams[i].standby];
        assert_true(spare->standby);
        assert_string_equal(spare->node, "b");
        assert_string_equal(spare->model,
                            plan->servers[plan->streams[i].server].model);
    }
    plant_close(&it);
}

static void robots_go_to_the_type_of_gpu_that_can_serve_them(void **state)
{
    (void)state;
    plant it;
    plant_made(&it,
               "server_cluster:\n  nodes:\n"
               "    new: {gpu_type: NVIDIA H200, gpus: 2}\n"
               "    old: {gpu_type: NVIDIA H100, gpus: 2}\n" FLEET(24)
                   TASK("job") PARTS
               "    system1: {model: physical-intelligence/pi0.5, slo_ms: "
               "200}\n",
               TD_PLAN_TENDON);
    const td_plan *plan = it.plan;
    assert_int_equal(plan->server_count, 4);
    for (size_t i = 0; i < 4; i++) {
        bool new = strcmp(plan->servers[i].node, "new") == 0;
        assert_string_equal(plan->servers[i].gpu_type,
                            new ? "NVIDIA H200" : "NVIDIA H100");
        assert_true(plan->servers[i].rate_hz <= plan->servers[i].capacity_hz);
    }
    plant_close(&it);
    plant_made(&it,
               "server_cluster:\n  nodes:\n"
               "    new: {gpu_type: NVIDIA H200, gpus: 1}\n"
               "    old: {gpu_type: NVIDIA H100, gpus: 3}\n" FLEET(4)
                   TASK("job") PARTS SYSTEM1, // no profile for an H100
               TD_PLAN_TENDON);
    assert_int_equal(it.plan->server_count, 1);
    assert_string_equal(it.plan->servers[0].node, "new");
    plant_close(&it);
}

static void the_same_inputs_make_the_same_plan(void **state)
{
    (void)state;
    char *texts[2] = {NULL, NULL};
    for (size_t i = 0; i < 2; i++) {
        plant it;
        size_t bytes;
        FILE *out = open_memstream(&texts[i], &bytes);
        assert_non_null(out);
        plant_made(&it, TWO P4("rich"), TD_PLAN_TENDON);
        assert_int_equal(td_plan_write(it.plan, out), TD_OK);
        assert_int_equal(fclose(out), 0);
        plant_close(&it);
    }
    assert_string_equal(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
}

static void a_split_may_be_planned_with_rates(void **state)
{
    (void)state;
    plant it;
    plant_open(&it, CLUSTER(8) FLEET(32) P4("job"), TD_PLAN_PAPER);
    it.options.split = TD_PLAN_SPLIT_EQUAL;
    it.options.compact = false;
    assert_int_equal(plant_plan(&it), TD_OK);
    assert_int_equal(plant_gpus(&it, "system1"), 2);
    assert_between(it.plan->classes[0].rate_hz, 1.2, 1.3); // 89.4 / 2.2 / 32
    plant_close(&it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stream_has_a_server_of_its_model),
        cmocka_unit_test(no_server_is_asked_more_than_it_can),
        cmocka_unit_test(phases_of_a_server_are_spread_evenly),
        cmocka_unit_test(six_robots_on_a_gpu_ask_in_pairs),
        cmocka_unit_test(robots_that_keep_no_step_are_not_waited_for),
        cmocka_unit_test(the_papers_planner_gives_the_papers_rates),
        cmocka_unit_test(ours_gives_more_than_the_papers),
        cmocka_unit_test(baselines_divide_gpus_as_in_the_paper),
        cmocka_unit_test(dedicated_gpus_run_out),
        cmocka_unit_test(the_more_valuable_class_goes_first),
        cmocka_unit_test(minimums_are_kept),
        cmocka_unit_test(classes_share_servers_where_model_and_deadline_agree),
        cmocka_unit_test(slow_robots_do_not_hold_quick_ones_back),
        cmocka_unit_test(compaction_merges_what_isolated_packing_cannot),
        cmocka_unit_test(asynchronous_robots_act_faster),
        cmocka_unit_test(no_node_has_all_servers_of_a_model),
        cmocka_unit_test(servers_stand_first_where_a_standby_is_elsewhere),
        cmocka_unit_test(standbys_hold_every_model_on_another_node),
        cmocka_unit_test(robots_go_to_the_type_of_gpu_that_can_serve_them),
        cmocka_unit_test(the_same_inputs_make_the_same_plan),
        cmocka_unit_test(a_split_may_be_planned_with_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "config/factory/factory.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

// The paper's Figure 3, word by word.
static const char figure_3[] =
    "# Part 1: Server cluster\n"
    "server_cluster:\n"
    "  num_servers: 8\n"
    "  gpu_type: NVIDIA H200\n"
    "\n"
    "# Part 2: Robot fleet\n"
    "robot_fleet:\n"
    "  - task: pick_and_place_simple\n"
    "    num_robots: 16\n"
    "\n"
    "  - task: inspect_product\n"
    "    num_robots: 16\n"
    "\n"
    "# Part 3.1: Task I (Pick and Place)\n"
    "pick_and_place_simple:\n"
    "  pipeline:\n"
    "    action_period_ms: 200\n"
    "\n"
    "  task_retry:\n"
    "    max_task_retries: 3\n"
    "    on_max_task_retries: stop_and_call_human\n"
    "\n"
    "  safety_and_slo_violation:\n"
    "    max_consecutive_safety_replan: 10\n"
    "    max_consecutive_slo_violation: 3\n"
    "    on_max_violation: stop_and_call_human\n"
    "\n"
    "  components:\n"
    "    system1:\n"
    "      model: nvidia/GR00T-N1.6-3B\n"
    "      prompt: \"pick package and place in bin\"\n"
    "      slo_ms: 200\n"
    "      fallback: stop_and_resend\n"
    "\n"
    "    monitor:\n"
    "      model: Qwen2.5-VL-7B-Instruct\n"
    "      prompt: \"ongoing, done, or failed?\"\n"
    "      freq_hz: 0.5\n"
    "      slo_ms: 2000\n"
    "      fallback: stop_and_resend\n"
    "\n"
    "# Part 3.2: Task II (Inspect Product)\n"
    "inspect_product:\n"
    "  pipeline:\n"
    "    action_period_ms: 500\n"
    "    system2_to_system1_call_ratio: 1\n"
    "\n"
    "  task_retry:\n"
    "    max_task_retries: 3\n"
    "    on_max_task_retries: stop_and_call_human\n"
    "\n"
    "  safety_and_slo_violation:\n"
    "    max_consecutive_safety_replan: 10\n"
    "    max_consecutive_slo_violation: 3\n"
    "    on_max_violation: stop_and_call_human\n"
    "\n"
    "  components:\n"
    "    system1:\n"
    "      model: nvidia/GR00T-N1.6-3B\n"
    "      prompt: \"move to inspect package face\"\n"
    "      slo_ms: 500\n"
    "      fallback: stop_and_resend\n"
    "\n"
    "    system2:\n"
    "      model: Qwen2.5-VL-7B-Instruct\n"
    "      prompt: \"check defects; choose next view\"\n"
    "      slo_ms: 2000\n"
    "      fallback: use_last_plan\n"
    "\n"
    "    safety:\n"
    "      model: Qwen2.5-VL-3B-Instruct\n"
    "      prompt: \"is the workcell safe?\"\n"
    "      freq_hz: 2\n"
    "      slo_ms: 500\n"
    "      fallback: stop_and_replan\n"
    "\n"
    "    monitor:\n"
    "      model: Qwen2.5-VL-7B-Instruct\n"
    "      prompt: \"ongoing, done, or failed?\"\n"
    "      freq_hz: 0.5\n"
    "      slo_ms: 2000\n"
    "      fallback: stop_and_resend\n";

static td_config_factory *parsed(const char *path, const char *text)
{
    td_config_factory *factory = NULL;
    td_errinfo info = {""};
    td_err err =
        td_config_factory_parse(path, text, strlen(text), &factory, &info);
    if (err != TD_OK) fail_msg("%s: %s", td_err_name(err), info.text);
    return factory;
}

static void expect_figure_3(const td_config_factory *factory)
{
    assert_int_equal(factory->server_cluster.num_servers, 8);
    assert_int_equal(factory->server_cluster.node_count, 1);
    assert_string_equal(factory->server_cluster.nodes[0].gpu_type,
                        "NVIDIA H200");
    assert_int_equal(factory->server_cluster.nodes[0].gpus, 8);
    assert_int_equal(factory->task_count, 2);
    assert_int_equal(factory->robot_count, 32);

    const td_config_factory_task *pick = &factory->tasks[0];
    assert_string_equal(pick->name, "pick_and_place_simple");
    assert_true(pick->pipeline.action_period_ms == 200);
    assert_int_equal(pick->task_retry.max_task_retries, 3);
    assert_int_equal(pick->safety_and_slo_violation.on_max_violation,
                     TD_CONFIG_STOP_AND_CALL_HUMAN);
    assert_int_equal(pick->component_count, 2);
    assert_int_equal(pick->robot_count, 16);

    const td_config_factory_task *inspect = &factory->tasks[1];
    const td_config_factory_component *system2 =
        td_config_factory_find(inspect, "system2");
    assert_non_null(system2);
    assert_int_equal(system2->fallback, TD_CONFIG_USE_LAST_PLAN);
    assert_true(system2->per_action == 1);
    const td_config_factory_component *safety =
        td_config_factory_find(inspect, "safety");
    assert_non_null(safety);
    assert_true(safety->rate_hz == 2 && safety->per_action == 0);
    assert_int_equal(safety->role, TD_CONFIG_SAFETY);
    assert_true(safety->slo_ms == 500 && safety->slo_percentile == 99);
    assert_string_equal(safety->prompt, "is the workcell safe?");
}

static void the_papers_figure_is_taken_as_it_stands(void **state)
{
    (void)state;
    TD_AUTO(td_config_factory) *factory = parsed("factory.yaml", figure_3);
    expect_figure_3(factory);
    assert_string_equal(factory->profiles, "profiles");
}

static void the_example_is_the_papers_figure(void **state)
{
    (void)state;
    TD_AUTO(td_config_factory) *factory =
        parsed("a/b/factory.yaml", td_config_factory_example);
    expect_figure_3(factory);
    assert_string_equal(factory->profiles, "a/b/../profiles");
}

#define CLUSTER "server_cluster: {num_servers: 2, gpu_type: X}\n"
#define FLEET "robot_fleet: [{task: pick, num_robots: 4}]\n"
#define PICK "pick:\n  pipeline: {action_period_ms: 200}\n"
#define PARTS "  components:\n    system1: {model: a, slo_ms: 200}\n"
#define WHOLE CLUSTER FLEET PICK PARTS // and then line 7

static void what_is_left_out_holds_its_default(void **state)
{
    (void)state;
    TD_AUTO(td_config_factory) *factory = parsed("f", WHOLE);
    const td_config_factory_cluster *cluster = &factory->server_cluster;
    assert_int_equal(cluster->standby, 0);
    assert_true(cluster->overhead_ms == 6);
    assert_string_equal(cluster->nodes[0].name, "node-0");
    const td_config_factory_task *pick = &factory->tasks[0];
    assert_true(pick->value == 1 && pick->min_throughput == 0);
    assert_int_equal(pick->execution, TD_CONFIG_SYNC);
    assert_int_equal(pick->on_miss, TD_CONFIG_MISS_FALLBACK);
    assert_int_equal(pick->components[0].invoke, TD_CONFIG_INVOKE_ACTION);
    assert_true(pick->components[0].per_action == 1);
    assert_string_equal(factory->robots[3].name, "pick-3");
    assert_string_equal(factory->robots[3].key, "pick-3");
}

static void nodes_may_differ(void **state)
{
    (void)state;
    TD_AUTO(td_config_factory) *factory =
        parsed("f", "server_cluster:\n"
                    "  gpu_type: NVIDIA H200\n"
                    "  gpu_memory_gb: 141\n"
                    "  standby: 1\n"
                    "  nodes:\n"
                    "    a: {gpus: 8}\n"
                    "    b: {gpus: 4, gpu_type: NVIDIA L40S, "
                    "gpu_memory_gb: 48}\n" FLEET PICK PARTS);
    const td_config_factory_cluster *cluster = &factory->server_cluster;
    assert_int_equal(cluster->num_servers, 12);
    assert_string_equal(cluster->nodes[0].gpu_type, "NVIDIA H200");
    assert_true(cluster->nodes[0].gpu_memory_gb == 141);
    assert_string_equal(cluster->nodes[1].gpu_type, "NVIDIA L40S");
    assert_true(cluster->nodes[1].gpu_memory_gb == 48);
}

static void robots_may_have_names_and_keys(void **state)
{
    (void)state;
    TD_AUTO(td_config_factory) *factory =
        parsed("f", CLUSTER "robot_fleet:\n"
                            "- {task: pick, num_robots: 1}\n"
                            "- {task: pick, robots: {left: {key: arm-l}, "
                            "right: {}}}\n"
                            "- {task: pick, num_robots: 1}\n" PICK PARTS);
    static const char *const names[] = {"pick-0", "left", "right", "pick-3"};
    static const char *const keys[] = {"pick-0", "arm-l", "right", "pick-3"};
    assert_int_equal(factory->robot_count, 4);
    assert_int_equal(factory->tasks[0].robot_count, 4);
    for (size_t i = 0; i < TD_COUNT_OF(names); i++) {
        assert_string_equal(factory->robots[i].name, names[i]);
        assert_string_equal(factory->robots[i].key, keys[i]);
    }
}

static const struct {
    const char *name, *text; // a component
    double ratio;            // of the pipeline, 0: none
    td_config_invoke invoke;
    double per_action, rate_hz;
} ways[] = {
    {"system2", "system2: {model: m, slo_ms: 1}", 0.1, TD_CONFIG_INVOKE_EVERY,
     0.1, 0},
    {"system2", "system2: {model: m, slo_ms: 1}", 0.333, TD_CONFIG_INVOKE_EVERY,
     1.0 / 3, 0},
    {"system2", "system2: {model: m, slo_ms: 1}", 0, TD_CONFIG_INVOKE_EVERY, 1,
     0},
    {"system2", "system2: {model: m, slo_ms: 1, every: 4}", 0,
     TD_CONFIG_INVOKE_EVERY, 0.25, 0},
    {"system2", "system2: {model: m, slo_ms: 1, freq_hz: 0.2}", 0,
     TD_CONFIG_INVOKE_PERIODIC, 0, 0.2},
    {"check", "check: {model: m, slo_ms: 1, every: 5}", 0,
     TD_CONFIG_INVOKE_EVERY, 0.2, 0},
    {"check",
     "check: {model: m, slo_ms: 1, every: 5, of: safety}\n"
     "    safety: {model: m, slo_ms: 1, freq_hz: 2}",
     0, TD_CONFIG_INVOKE_EVERY, 0, 0.4},
    {"a",
     "a: {model: m, slo_ms: 1, every: 2, of: b}\n"
     "    b: {model: m, slo_ms: 1, every: 2, of: c}\n"
     "    c: {model: m, slo_ms: 1, every: 2}",
     0, TD_CONFIG_INVOKE_EVERY, 0.125, 0},
    {"door", "door: {model: m, slo_ms: 1, invoke: on_change, freq_hz: 3}", 0,
     TD_CONFIG_INVOKE_ON_CHANGE, 0, 3},
};

static void each_way_to_ask_gives_a_rate(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(ways); i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 CLUSTER FLEET "pick:\n"
                               "  pipeline: {action_period_ms: 200, "
                               "system2_to_system1_call_ratio: %g}\n" PARTS
                               "    %s\n",
                 ways[i].ratio, ways[i].text);
        TD_AUTO(td_config_factory) *factory = parsed("f", text);
        const td_config_factory_component *it =
            td_config_factory_find(&factory->tasks[0], ways[i].name);
        if (!it || it->invoke != ways[i].invoke ||
            fabs(it->per_action - ways[i].per_action) > 1e-9 ||
            fabs(it->rate_hz - ways[i].rate_hz) > 1e-9)
            fail_msg("%s: %g an action, %g Hz", ways[i].text,
                     it ? it->per_action : -1, it ? it->rate_hz : -1);
    }
}

static void system1_comes_first_wherever_it_stands(void **state)
{
    (void)state;
    TD_AUTO(td_config_factory) *factory =
        parsed("f", CLUSTER FLEET PICK
               "  components:\n"
               "    safety: {model: s, slo_ms: 9, freq_hz: 1}\n"
               "    monitor: {model: m, slo_ms: 9, freq_hz: 1}\n"
               "    system1: {model: a, slo_ms: 9}\n");
    const td_config_factory_task *pick = &factory->tasks[0];
    assert_int_equal(pick->component_count, 3);
    assert_string_equal(pick->components[0].name, "system1");
    assert_string_equal(pick->components[1].name, "safety");
    assert_string_equal(pick->components[2].name, "monitor");
}

static const struct {
    const char *name, *text, *error; // after "f:"
} broken[] = {
    {"no cluster", FLEET PICK PARTS,
     "1: server_cluster: is missing, must be a map of fields"},
    {"no GPUs", "server_cluster: {gpu_type: X}\n" FLEET PICK PARTS,
     "1: server_cluster.num_servers: is missing, how many GPUs there are; or "
     "nodes"},
    {"no type", "server_cluster: {num_servers: 2}\n" FLEET PICK PARTS,
     "1: server_cluster.gpu_type: is missing, such as NVIDIA H200"},
    {"two numbers",
     "server_cluster: {num_servers: 2, gpu_type: X, nodes: {a: {gpus: 3}}}"
     "\n" FLEET PICK PARTS,
     "1: server_cluster.num_servers: must be the 3 GPUs of the nodes, got 2; "
     "or leave it out"},
    {"only standbys",
     "server_cluster: {num_servers: 2, gpu_type: X, standby: 2}\n" FLEET PICK
         PARTS,
     "1: server_cluster.standby: must be fewer than the 2 GPUs there are, got "
     "2"},
    {"zero robots",
     CLUSTER "robot_fleet: [{task: pick, num_robots: 0}]\n" PICK PARTS,
     "2: robot_fleet[0].num_robots: must be 1 to 100000, got 0; or list "
     "robots, or leave this group out"},
    {"no fleet", CLUSTER PICK PARTS,
     "1: robot_fleet: is missing, must be a "
     "list"},
    {"two numbers of robots",
     CLUSTER
     "robot_fleet: [{task: pick, num_robots: 3, robots: [a]}]\n" PICK PARTS,
     "2: robot_fleet[0].num_robots: must be the 1 robots listed, got 3; or "
     "leave it out"},
    {"one key twice",
     CLUSTER "robot_fleet: [{task: pick, robots: [a, b]}, {task: pick, robots: "
             "{c: {key: a}}}]\n" PICK PARTS,
     "2: robot_fleet: two robots have the key \"a\""},
    {"one name twice",
     CLUSTER "robot_fleet: [{task: pick, robots: [a]}, {task: pick, robots: "
             "{a: {key: b}}}]\n" PICK PARTS,
     "2: robot_fleet: two robots have the name \"a\""},
    {"a task that is not there",
     CLUSTER "robot_fleet:\n- num_robots: 3\n  task: pack\n" PICK PARTS,
     "4: robot_fleet: there is no task \"pack\" in this file"},
    {"a task without robots",
     WHOLE "pack:\n  pipeline: {action_period_ms: 1}\n" PARTS,
     "7: pack: no robot of robot_fleet does this task, leave one of them out"},
    {"no task", CLUSTER FLEET, "1: tasks: must have 1 to 256 members, got 0"},
    {"a map of tasks", CLUSTER FLEET "tasks:\n  pick: {}\n",
     "3: tasks: each task stands by its own name at the top"},
    {"a misspelt field", "server_clster: 8\n" WHOLE,
     "1: server_clster: no such field, did you mean server_cluster?"},
    {"an unknown field", WHOLE "    safety: {model: m, slo_ms: 1, hz: 3}\n",
     "7: pick.components.safety.hz: no such field"},
    {"no pipeline", CLUSTER FLEET "pick:\n" PARTS,
     "3: pick.pipeline: is missing, must be a map of fields"},
    {"no system1",
     CLUSTER FLEET PICK "  components:\n"
                        "    safety: {model: s, slo_ms: 9, freq_hz: 1}\n",
     "5: pick.components: system1 is missing, the model that acts"},
    {"no deadline",
     CLUSTER FLEET PICK "  components:\n"
                        "    system1: {model: a}\n",
     "6: pick.components.system1.slo_ms: is missing, must be 1 to 600000"},
    {"an obligation without a rate",
     WHOLE "    safety: {model: m, slo_ms: 1}\n",
     "7: pick.components.safety.freq_hz: is missing, how often a second it is "
     "asked; or every, once for so many calls of system1"},
    {"system1 by the clock",
     CLUSTER FLEET PICK "  components:\n"
                        "    system1: {model: a, slo_ms: 9, freq_hz: 2}\n",
     "6: pick.components.system1.freq_hz: is not for invoke: action, leave it "
     "out"},
    {"periodic and every",
     WHOLE "    x: {model: m, slo_ms: 1, invoke: periodic, freq_hz: 1,\n"
           "      every: 2}\n",
     "8: pick.components.x.every: is for invoke: every, not for periodic"},
    {"another for each action",
     WHOLE "    x: {model: m, slo_ms: 1, invoke: action}\n",
     "7: pick.components.x.invoke: action is for system1, and system1 for each "
     "action"},
    {"every of nobody", WHOLE "    x: {model: m, slo_ms: 1, every: 2, of: y}\n",
     "7: pick.components.x.of: the task has no component \"y\""},
    {"a circle",
     WHOLE "    x: {model: m, slo_ms: 1, every: 2, of: y}\n"
           "    y: {model: m, slo_ms: 1, every: 2, of: x}\n",
     "7: pick.components.x.of: goes round in a circle, end it at system1"},
    {"a ratio without system2",
     CLUSTER FLEET "pick:\n  pipeline: {action_period_ms: 200, "
                   "system2_to_system1_call_ratio: 0.1}\n" PARTS,
     "4: pick.pipeline.system2_to_system1_call_ratio: the task has no system2, "
     "leave it out"},
    {"a ratio that is not 1 / n",
     CLUSTER FLEET "pick:\n  pipeline: {action_period_ms: 200, "
                   "system2_to_system1_call_ratio: 0.7}\n" PARTS
                   "    system2: {model: m, slo_ms: 1}\n",
     "4: pick.pipeline.system2_to_system1_call_ratio: must be 1 / n, such as "
     "0.1 for once in 10 calls, got 0.7"},
    {"a ratio the wrong way round",
     CLUSTER FLEET "pick:\n  pipeline: {action_period_ms: 200, "
                   "system2_to_system1_call_ratio: 10}\n" PARTS
                   "    system2: {model: m, slo_ms: 1}\n",
     "4: pick.pipeline.system2_to_system1_call_ratio: must be 0 to 1, got 10"},
    {"two ratios",
     CLUSTER FLEET "pick:\n  pipeline: {action_period_ms: 200, "
                   "system2_to_system1_call_ratio: 0.1}\n" PARTS
                   "    system2: {model: m, slo_ms: 1, every: 2}\n",
     "4: pick.pipeline.system2_to_system1_call_ratio: system2 says itself when "
     "it is asked, leave one of them out"},
    {"a minimum that cannot be",
     CLUSTER FLEET PICK "  min_throughput: 21\n" PARTS,
     "5: pick.min_throughput: must be at most 20, what 4 robots with actions "
     "of 200 ms can do, got 21"},
    {"a percentile of nothing",
     WHOLE "    x: {model: m, slo_ms: 1, freq_hz: 1, slo_percentile: 0.5}\n",
     "7: pick.components.x.slo_percentile: must be 0 or 1 to 99.999, got 0.5"},
};

static void a_broken_factory_is_refused_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(broken); i++) {
        td_config_factory *factory = NULL;
        td_errinfo info = {""};
        char error[512];
        snprintf(error, sizeof error, "f:%s", broken[i].error);
        td_err err = td_config_factory_parse(
            "f", broken[i].text, strlen(broken[i].text), &factory, &info);
        if (err != TD_ERR_INVALID || factory || strcmp(info.text, error) != 0)
            fail_msg("%s:\n got  %s\n want %s", broken[i].name, info.text,
                     error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_papers_figure_is_taken_as_it_stands),
        cmocka_unit_test(the_example_is_the_papers_figure),
        cmocka_unit_test(what_is_left_out_holds_its_default),
        cmocka_unit_test(nodes_may_differ),
        cmocka_unit_test(robots_may_have_names_and_keys),
        cmocka_unit_test(each_way_to_ask_gives_a_rate),
        cmocka_unit_test(system1_comes_first_wherever_it_stands),
        cmocka_unit_test(a_broken_factory_is_refused_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

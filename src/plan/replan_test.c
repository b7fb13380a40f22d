// SPDX-License-Identifier: Apache-2.0
// A plan beside the one before it: what it leaves as it is.
#include "plan/plan_fixture.h"

static void replan(plant *it, const char *text, const td_plan *previous)
{
    plant_open(it, text, TD_PLAN_TENDON);
    it->options.previous = previous;
    if (plant_plan(it) != TD_OK) fail_msg("%s", it->info.text);
}

static void the_same_factory_changes_nothing(void **state)
{
    (void)state;
    plant before;
    plant after;
    plant_made(&before, CLUSTER(8) FLEET(32) P4("job"), TD_PLAN_TENDON);
    replan(&after, CLUSTER(8) FLEET(32) P4("job"), before.plan);
    assert_int_equal(after.plan->reloaded, 0);
    assert_int_equal(after.plan->rerouted, 0);
    plant_close(&after);
    plant_close(&before);
}

// Servers of unlike sizes, of which the last was where now the first would go.
static void robots_stay_wherever_their_servers_were(void **state)
{
    (void)state;
    plant before;
    plant after;
    plant_made(&before, CLUSTER(8) FLEET(33) P4("job"), TD_PLAN_TENDON);
    for (size_t i = 0; i < before.plan->server_count; i++)
        before.plan->servers[i].gpu = 7 - before.plan->servers[i].gpu;
    replan(&after, CLUSTER(8) FLEET(33) P4("job"), before.plan);
    assert_int_equal(after.plan->reloaded, 0);
    assert_int_equal(after.plan->rerouted, 0);
    plant_close(&after);
    plant_close(&before);
}

// Two robots more, which only the newcomers' servers need to know.
static void robots_more_move_few_others(void **state)
{
    (void)state;
    plant before;
    plant after;
    plant_made(&before, CLUSTER(8) FLEET(32) P4("job"), TD_PLAN_TENDON);
    replan(&after, CLUSTER(8) FLEET(34) P4("job"), before.plan);
    assert_int_equal(after.plan->reloaded, 0);
    assert_in_range(after.plan->rerouted, 0, 4);
    plant_close(&after);
    plant_close(&before);
}

static void a_gpu_more_loads_one_model(void **state)
{
    (void)state;
    plant before;
    plant after;
    plant_made(&before, CLUSTER(8) FLEET(64) P4("job"), TD_PLAN_TENDON);
    replan(&after, CLUSTER(9) FLEET(64) P4("job"), before.plan);
    assert_true(after.plan->actions_hz > 1.01 * before.plan->actions_hz);
    assert_int_equal(after.plan->reloaded, 1);
    plant_close(&after);
    plant_close(&before);
}

#define TWO_TYPES                                                              \
    "server_cluster:\n  gpu_type: NVIDIA H200\n  nodes:\n"                     \
    "    a: {gpus: 3, gpu_memory_gb: 141}\n"                                   \
    "    b: {gpus: 3, gpu_memory_gb: 140}\n"

// Two types that are alike: whichever has a model keeps it.
static void models_stay_on_the_type_that_has_them(void **state)
{
    (void)state;
    for (int swapped = 0; swapped < 2; swapped++) {
        plant before;
        plant after;
        plant_made(&before, TWO_TYPES FLEET(24) P4("job"), TD_PLAN_TENDON);
        for (size_t i = 0; swapped && i < before.plan->server_count; i++) {
            td_plan_server *server = &before.plan->servers[i];
            server->node = strcmp(server->node, "a") == 0 ? "b" : "a";
        }
        replan(&after, TWO_TYPES FLEET(24) P4("job"), before.plan);
        assert_int_equal(after.plan->reloaded, 0);
        assert_int_equal(after.plan->rerouted, 0);
        plant_close(&after);
        plant_close(&before);
    }
}

// Only as many GPUs change their model as the best plan is worth.
static void a_plan_that_gains_enough_reloads(void **state)
{
    (void)state;
    plant before;
    plant after;
    plant_made(&before, CLUSTER(8) FLEET(8) P4("job"), TD_PLAN_TENDON);
    replan(&after, CLUSTER(8) FLEET(64) P4("job"), before.plan);
    plant fresh;
    plant_made(&fresh, CLUSTER(8) FLEET(64) P4("job"), TD_PLAN_TENDON);
    assert_true(after.plan->value_hz >= 0.98 * fresh.plan->value_hz);
    assert_in_range(after.plan->reloaded, 1, 4);
    plant_close(&fresh);
    plant_close(&after);
    plant_close(&before);
}

static bool is_over(void *context, uint32_t points)
{
    (void)context;
    return points >= 3;
}

static void a_search_that_is_ended_has_what_it_has(void **state)
{
    (void)state;
    plant it;
    plant_open(&it, CLUSTER(8) FLEET(32) P4("job"), TD_PLAN_TENDON);
    it.options.is_over = is_over;
    assert_int_equal(plant_plan(&it), TD_OK);
    assert_in_range(it.plan->points, 1, 3);
    assert_true(it.plan->actions_hz > 0);
    plant_close(&it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_factory_changes_nothing),
        cmocka_unit_test(robots_stay_wherever_their_servers_were),
        cmocka_unit_test(robots_more_move_few_others),
        cmocka_unit_test(a_gpu_more_loads_one_model),
        cmocka_unit_test(models_stay_on_the_type_that_has_them),
        cmocka_unit_test(a_plan_that_gains_enough_reloads),
        cmocka_unit_test(a_search_that_is_ended_has_what_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "plan/admit/admit.h"

#include "plan/plan_fixture.h"

#include <math.h>

static td_plan_admission *admission_of(plant *it)
{
    td_plan_admission *admission;
    if (td_plan_admission_new(it->factory, it->profiles, it->plan, &admission,
                              &it->info) != TD_OK)
        fail_msg("%s", it->info.text);
    return admission;
}

static void a_robot_is_routed_to_servers_with_room(void **state)
{
    (void)state;
    plant it;
    td_plan_admit_result result;
    plant_made(&it, CLUSTER(8) FLEET(8) P4("job"), TD_PLAN_TENDON);
    TD_AUTO(td_plan_admission) *admission = admission_of(&it);
    assert_int_equal(td_plan_admit(admission, "new", "new-key", 0, 0, &result),
                     TD_OK);
    const td_plan *plan = td_plan_admission_plan(admission);
    assert_int_equal(result.verdict, TD_PLAN_ADMITTED);
    assert_int_equal(plan->robot_count, 9);
    assert_int_equal(plan->robots[8].stream_count, 4);
    assert_true(result.after_hz > result.before_hz);
    for (uint32_t i = 0; i < 4; i++) {
        const td_plan_stream *stream =
            &plan->streams[plan->robots[8].first_stream + i];
        assert_true(plan->servers[stream->server].rate_hz <=
                    plan->servers[stream->server].capacity_hz);
        assert_true(stream->rate_hz > 0);
    }
    plant_close(&it);
}

static void others_keep_their_servers_and_phases(void **state)
{
    (void)state;
    plant it;
    td_plan_admit_result result;
    plant_made(&it, CLUSTER(8) FLEET(8) P4("job"), TD_PLAN_TENDON);
    TD_AUTO(td_plan_admission) *admission = admission_of(&it);
    assert_int_equal(td_plan_admit(admission, "new", "new", 0, 0, &result),
                     TD_OK);
    const td_plan *plan = td_plan_admission_plan(admission);
    for (size_t i = 0; i < it.plan->stream_count; i++) {
        const td_plan_stream *was = &it.plan->streams[i];
        const td_plan_stream *now = &plan->streams[i];
        assert_int_equal(now->server, was->server);
        assert_true(now->phase == was->phase);
        assert_true(now->rate_hz == was->rate_hz);
        const td_plan_stream *fresh =
            &plan->streams[plan->robots[8].first_stream + was->component];
        if (fresh->server == was->server)
            assert_true(fresh->phase != was->phase);
    }
    plant_close(&it);
}

static void robots_of_a_full_server_share_it(void **state)
{
    (void)state;
    plant it;
    td_plan_admit_result result;
    plant_made(&it, CLUSTER(2) FLEET(32) TASK("job") PARTS SYSTEM1,
               TD_PLAN_TENDON);
    TD_AUTO(td_plan_admission) *admission = admission_of(&it);
    assert_int_equal(td_plan_admit(admission, "new", "new", 0, 0, &result),
                     TD_OK);
    assert_int_equal(result.verdict, TD_PLAN_SLOWER);
    assert_non_null(strstr(result.reason, "keep"));
    const td_plan *plan = td_plan_admission_plan(admission);
    for (size_t i = 0; i < plan->server_count; i++) {
        double sum = 0;
        for (size_t j = 0; j < plan->stream_count; j++)
            if (plan->streams[j].server == i) sum += plan->streams[j].rate_hz;
        assert_true(sum <= plan->servers[i].capacity_hz * 1.031);
    }
    plant_close(&it);
}

static void no_room_for_an_obligation_asks_for_a_new_plan(void **state)
{
    (void)state;
    plant it;
    td_plan_admit_result result = {.verdict = TD_PLAN_ADMITTED};
    char name[16];
    plant_made(&it, CLUSTER(4) FLEET(24) TASK("job") PARTS SYSTEM1 SAFETY,
               TD_PLAN_TENDON);
    TD_AUTO(td_plan_admission) *admission = admission_of(&it);
    for (int i = 0; result.verdict != TD_PLAN_REPLAN && i < 200; i++) {
        (void)snprintf(name, sizeof name, "new-%d", i);
        assert_int_equal(td_plan_admit(admission, name, name, 0, 0, &result),
                         TD_OK);
    }
    assert_int_equal(result.verdict, TD_PLAN_REPLAN);
    assert_non_null(strstr(result.reason, "safety"));
    size_t robots = td_plan_admission_plan(admission)->robot_count;
    assert_int_equal(td_plan_admit(admission, "one more", "k", 0, 0, &result),
                     TD_OK);
    assert_int_equal(td_plan_admission_plan(admission)->robot_count, robots);
    plant_close(&it);
}

// Of seven nobody waits for the one who is left over.
static void a_seventh_robot_ends_the_pairs_of_six(void **state)
{
    (void)state;
    plant it;
    td_plan_admit_result result;
    plant_made(&it, CLUSTER(1) FLEET(6) TASK("job") PARTS SYSTEM1,
               TD_PLAN_TENDON);
    assert_int_equal(it.plan->servers[0].wait, TD_CONFIG_WAIT_FIXED);
    TD_AUTO(td_plan_admission) *admission = admission_of(&it);
    assert_int_equal(td_plan_admit(admission, "new", "new", 0, 0, &result),
                     TD_OK);
    const td_plan_server *server =
        &td_plan_admission_plan(admission)->servers[0];
    assert_int_equal(server->wait, TD_CONFIG_WAIT_NONE);
    assert_true(server->wait_ms == 0);
    assert_true(result.after_hz > result.before_hz);
    plant_close(&it);
}

static void what_gives_too_little_is_not_admitted(void **state)
{
    (void)state;
    plant it;
    td_plan_admit_result result;
    plant_made(&it, CLUSTER(8) FLEET(8) P4("job"), TD_PLAN_TENDON);
    TD_AUTO(td_plan_admission) *admission = admission_of(&it);
    assert_int_equal(td_plan_admit(admission, "new", "new", 0,
                                   it.plan->value_hz * 1.5, &result),
                     TD_OK);
    assert_int_equal(result.verdict, TD_PLAN_REPLAN);
    assert_non_null(strstr(result.reason, "of what a new plan gives"));
    assert_int_equal(td_plan_admission_plan(admission)->robot_count, 8);
    plant_close(&it);
}

static void who_is_there_is_not_admitted_twice(void **state)
{
    (void)state;
    plant it;
    td_plan_admit_result result;
    plant_made(&it, CLUSTER(8) FLEET(8) P4("job"), TD_PLAN_TENDON);
    TD_AUTO(td_plan_admission) *admission = admission_of(&it);
    assert_int_equal(
        td_plan_admit(admission, it.plan->robots[3].name, "k", 0, 0, &result),
        TD_ERR_EXISTS);
    assert_int_equal(td_plan_admit(admission, "new", "k", 7, 0, &result),
                     TD_ERR_INVALID);
    plant_close(&it);
}

static void a_plan_without_rates_admits_nobody(void **state)
{
    (void)state;
    plant it;
    td_plan_admission *admission;
    plant_made(&it, CLUSTER(8) FLEET(8) P4("job"), TD_PLAN_EQUAL);
    assert_int_equal(td_plan_admission_new(it.factory, it.profiles, it.plan,
                                           &admission, &it.info),
                     TD_ERR_MISMATCH);
    plant_close(&it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_robot_is_routed_to_servers_with_room),
        cmocka_unit_test(others_keep_their_servers_and_phases),
        cmocka_unit_test(robots_of_a_full_server_share_it),
        cmocka_unit_test(no_room_for_an_obligation_asks_for_a_new_plan),
        cmocka_unit_test(a_seventh_robot_ends_the_pairs_of_six),
        cmocka_unit_test(what_gives_too_little_is_not_admitted),
        cmocka_unit_test(who_is_there_is_not_admitted_twice),
        cmocka_unit_test(a_plan_without_rates_admits_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

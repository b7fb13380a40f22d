// SPDX-License-Identifier: Apache-2.0
#include "plan/file/show.h"

#include "plan/admit/what_if.h"
#include "plan/plan_fixture.h"

#include <stdlib.h>

static char *text_of(const td_plan *plan,
                     void (*show)(const td_plan *plan, FILE *out))
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    show(plan, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void the_table_has_every_class_and_server(void **state)
{
    (void)state;
    plant it;
    plant_made(&it, CLUSTER(8) FLEET(32) P4("job"), TD_PLAN_TENDON);
    char *text = text_of(it.plan, td_plan_show);
    assert_non_null(strstr(text, "32 robots on 8 of 8 GPUs"));
    assert_non_null(strstr(text, "job"));
    for (size_t i = 0; i < it.plan->server_count; i++)
        assert_non_null(strstr(text, it.plan->servers[i].id));
    free(text);
    plant_close(&it);
}

static void the_picture_escapes_names(void **state)
{
    (void)state;
    plant it;
    plant_made(&it, CLUSTER(8) FLEET(4) P4("job"), TD_PLAN_TENDON);
    it.plan->servers[0].model = "a<b>&\"c";
    char *text = text_of(it.plan, td_plan_picture);
    assert_non_null(strstr(text, "a&lt;b&gt;&amp;&quot;c"));
    assert_null(strstr(text, "a<b"));
    assert_non_null(strstr(text, "</svg>"));
    free(text);
    plant_close(&it);
}

static void reasons_say_what_more_would_do(void **state)
{
    (void)state;
    plant it;
    char *text = NULL;
    size_t bytes;
    plant_made(&it, CLUSTER(8) FLEET(64) P4("job"), TD_PLAN_TENDON);
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    assert_int_equal(
        td_plan_explain(it.factory, it.profiles, &it.options, it.plan, out),
        TD_OK);
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, "job: bound by"));
    assert_non_null(strstr(text, "one GPU more: "));
    assert_non_null(strstr(text, "one GPU less: "));
    assert_non_null(strstr(text, "one robot more: "));
    free(text);
    plant_close(&it);
}

static void a_change_keeps_proportions_and_names(void **state)
{
    (void)state;
    plant it;
    td_arena *arena;
    td_config_factory *changed;
    plant_open(&it,
               CLUSTER(8) "robot_fleet:\n  - {task: one, num_robots: 8}\n"
                          "  - {task: two, num_robots: 24}\n" P4("one")
                              P4("two"),
               TD_PLAN_TENDON);
    assert_int_equal(td_arena_new(&arena), TD_OK);
    assert_int_equal(td_plan_what_if(it.factory, 48, 10, arena, &changed, NULL),
                     TD_OK);
    assert_int_equal(changed->robot_count, 48);
    assert_int_equal(changed->tasks[0].robot_count, 12);
    assert_int_equal(changed->tasks[1].robot_count, 36);
    assert_string_equal(changed->robots[0].name, it.factory->robots[0].name);
    assert_int_equal(changed->server_cluster.num_servers, 10);
    assert_int_equal(it.factory->server_cluster.num_servers, 8);
    assert_int_equal(td_plan_what_if(it.factory, 1, 0, arena, &changed, NULL),
                     TD_ERR_INVALID);
    td_arena_free(arena);
    plant_close(&it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_has_every_class_and_server),
        cmocka_unit_test(the_picture_escapes_names),
        cmocka_unit_test(reasons_say_what_more_would_do),
        cmocka_unit_test(a_change_keeps_proportions_and_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

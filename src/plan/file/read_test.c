// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_fixture.h"

#include <stdlib.h>

static char *text_of(const td_plan *plan)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    assert_int_equal(td_plan_write(plan, out), TD_OK);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void what_was_written_is_read_whole(void **state)
{
    (void)state;
    static const td_plan_planner planners[] = {
        TD_PLAN_TENDON, TD_PLAN_PAPER, TD_PLAN_EQUAL, TD_PLAN_DEDICATED};
    for (size_t i = 0; i < TD_COUNT_OF(planners); i++) {
        plant it;
        TD_AUTO(td_plan) *again = NULL;
        plant_made(&it,
                   "server_cluster: {num_servers: 8, gpu_type: NVIDIA H200, "
                   "standby: 1}\n" FLEET(16) P4("job"),
                   planners[i]);
        char *written = text_of(it.plan);
        if (td_plan_parse("plan.json", written, strlen(written), &again,
                          &it.info) != TD_OK)
            fail_msg("%s", it.info.text);
        char *rewritten = text_of(again);
        assert_string_equal(written, rewritten);
        free(written);
        free(rewritten);
        plant_close(&it);
    }
}

#define SERVER(id, more)                                                       \
    "{\"id\":\"" id "\",\"node\":\"n\",\"gpu\":0,\"gpu_type\":\"g\","          \
    "\"model\":\"m\",\"engine\":\"e\",\"standby\":false,\"batch_most\":1,"     \
    "\"batch_wait\":\"none\",\"rate_hz\":1,\"capacity_hz\":2" more "}"
#define TOP(version, planner)                                                  \
    "{\"plan\":" version ",\"planner\":\"" planner "\",\"actions_hz\":1,"      \
    "\"value_hz\":1,\"gpus\":1,\"gpus_used\":1,\"gpus_standby\":0,"
#define SERVERS(list) "\"servers\":[" list "],"
#define GOOD SERVER("n/0", ",\"memory_gb\":0")
#define CLASSES                                                                \
    "\"classes\":[{\"task\":\"job\",\"robots\":1,\"refused\":0,\"rate_hz\":1," \
    "\"loop_hz\":1,\"most_hz\":1,\"value\":1,"                                 \
    "\"bound_by\":\"a deadline\",\"bound_component\":null}],"
#define ROBOT(task, server, phase)                                             \
    "\"robots\":[{\"name\":\"r\",\"key\":\"r\",\"task\":\"" task               \
    "\",\"streams\":[{\"component\":\"system1\",\"server\":" server            \
    ",\"standby\":null,\"rate_hz\":1,\"every\":0,\"phase\":" phase             \
    ",\"deadline_ms\":200,\"mean_ms\":1,\"tail_ms\":1}]}]}"
#define END ROBOT("job", "\"n/0\"", "0.5")

static const struct {
    const char *name, *text;
    td_err err;
    const char *says;
} cases[] = {
    {"nothing wrong", TOP("1", "tendon") SERVERS(GOOD) CLASSES END, TD_OK, ""},
    {"no JSON", "plan: 1\n", TD_ERR_FORMAT, "plan.json:1:"},
    {"a list", "[]", TD_ERR_FORMAT, "is no JSON object"},
    {"no plan", "{}", TD_ERR_FORMAT, "plan: must be a whole number"},
    {"a newer one", TOP("2", "tendon") SERVERS(GOOD) CLASSES END,
     TD_ERR_MISMATCH, "is of version 2"},
    {"another planner", TOP("1", "magic") SERVERS(GOOD) CLASSES END,
     TD_ERR_FORMAT, "planner: must be"},
    {"a number that is missing",
     TOP("1", "tendon") SERVERS(SERVER("n/0", "")) CLASSES END, TD_ERR_FORMAT,
     "servers[0].memory_gb: must be a number"},
    {"a number below 0",
     TOP("1", "tendon") SERVERS(SERVER("n/0", ",\"memory_gb\":-1")) CLASSES END,
     TD_ERR_FORMAT, "servers[0].memory_gb: must be a number from 0"},
    {"two servers of one name",
     TOP("1", "tendon") SERVERS(GOOD "," GOOD) CLASSES END, TD_ERR_FORMAT,
     "two are called n/0"},
    {"a server that is a number", TOP("1", "tendon") SERVERS("3") CLASSES END,
     TD_ERR_FORMAT, "servers: must have objects"},
    {"a server that is not there",
     TOP("1", "tendon") SERVERS(GOOD) CLASSES ROBOT("job", "\"n/1\"", "0"),
     TD_ERR_FORMAT, "robots[0].streams[0].server: no server at work is called"},
    {"no server",
     TOP("1", "tendon") SERVERS(GOOD) CLASSES ROBOT("job", "null", "0"),
     TD_ERR_FORMAT, "robots[0].streams[0].server: must be a text"},
    {"another task",
     TOP("1", "tendon") SERVERS(GOOD) CLASSES ROBOT("art", "\"n/0\"", "0"),
     TD_ERR_FORMAT, "robots[0].task: must be one of the classes'"},
    {"a phase beyond the period",
     TOP("1", "tendon") SERVERS(GOOD) CLASSES ROBOT("job", "\"n/0\"", "1.5"),
     TD_ERR_FORMAT, "robots[0].streams[0].phase: must be from 0 to 1"},
};

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        TD_AUTO(td_plan) *plan = NULL;
        td_errinfo info = {.text = ""};
        td_err err = td_plan_parse("plan.json", cases[i].text,
                                   strlen(cases[i].text), &plan, &info);
        print_message("%s: %s\n", cases[i].name, info.text);
        assert_int_equal(err, cases[i].err);
        assert_non_null(strstr(info.text, cases[i].says));
        assert_true((plan != NULL) == (err == TD_OK));
    }
}

static void a_file_that_is_not_there_is_named(void **state)
{
    (void)state;
    td_plan *plan = NULL;
    td_errinfo info = {.text = ""};
    assert_int_equal(td_plan_load("/nowhere/plan.json", &plan, &info),
                     TD_ERR_NOTFOUND);
    assert_non_null(strstr(info.text, "/nowhere/plan.json"));
    assert_null(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read_whole),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(a_file_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

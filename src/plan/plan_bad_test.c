// SPDX-License-Identifier: Apache-2.0
// Factories that cannot be planned: each is named with the way out.
#include "plan/plan_fixture.h"

#define LATE(ms) "    system1: {model: nvidia/GR00T-N1.6-3B, slo_ms: " #ms "}\n"
#define OF(model) "    system1: {model: " model ", slo_ms: 200}\n"

static const struct {
    const char *name, *text;
    td_err err;
    const char *says, *and;
} cases[] = {
    {"a deadline that no GPU can meet",
     CLUSTER(8) FLEET(4) TASK("job") PARTS LATE(40), TD_ERR_INVALID,
     "job: components: system1: slo_ms: 40 cannot be met", "at least 55"},
    {"no profile", CLUSTER(8) FLEET(4) TASK("job") PARTS OF("nobody/knows-it"),
     TD_ERR_NOTFOUND, "nobody/knows-it", ""},
    {"a profile for another GPU",
     "server_cluster: {num_servers: 2, gpu_type: NVIDIA L4}\n" FLEET(4)
         TASK("job") PARTS SYSTEM1,
     TD_ERR_MISMATCH, "NVIDIA L4", "NVIDIA H200"},
    {"a model that fits nowhere",
     "server_cluster: {num_servers: 2, gpu_type: NVIDIA H200, "
     "gpu_memory_gb: 4}\n" FLEET(4) TASK("job") PARTS SYSTEM1,
     TD_ERR_INVALID, "fits on no GPU", "more memory"},
    {"more robots than the GPUs can watch over", CLUSTER(1) FLEET(64) P4("job"),
     TD_ERR_LIMIT, "too few GPUs", "Add GPUs"},
    {"a minimum that the robots' loops do not allow",
     CLUSTER(8) FLEET(4) TASK("job") "  min_throughput: 19\n" PARTS SYSTEM1,
     TD_ERR_LIMIT, "job: min_throughput: 19", "add robots"},
    {"minimums that hold alone and not together",
     CLUSTER(1) "robot_fleet: [{task: job, num_robots: 16}, {task: other, "
                "num_robots: 16}]\n" TASK(
                    "job") "  min_throughput: 27\n" PARTS SYSTEM1
                    TASK("other") "  min_throughput: 27\n" PARTS SYSTEM1,
     TD_ERR_LIMIT, "job: min_throughput: 27", "beside what the others need"},
};

static void what_cannot_be_planned_is_named_with_the_way_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        plant it;
        print_message("%s\n", cases[i].name);
        plant_open(&it, cases[i].text, TD_PLAN_TENDON);
        td_err err = plant_plan(&it);
        print_message("    %s\n", it.info.text);
        assert_int_equal(err, cases[i].err);
        assert_non_null(strstr(it.info.text, cases[i].says));
        assert_non_null(strstr(it.info.text, cases[i].and));
        assert_null(it.plan);
        plant_close(&it);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_planned_is_named_with_the_way_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/columns.h"

#include "base/rand.h"
#include "plan/pack/integer.h"
#include "plan/plan_fixture.h"

#include <math.h>

#define ROWS 4
#define MOST 6

typedef struct instance {
    uint32_t gpus[2];
    td_plan_pack_row rows[ROWS];
    double cost[ROWS][2][MOST];
    uint32_t loaded[ROWS][2];
} instance;

static uint32_t draw(td_rand *rand, uint32_t least, uint32_t most)
{
    return least + (uint32_t)(td_rand_u64(rand) % (most - least + 1));
}

static void draw_instance(td_rand *rand, instance *it)
{
    it->gpus[0] = draw(rand, 1, 8);
    it->gpus[1] = draw(rand, 1, 8);
    for (size_t row = 0; row < ROWS; row++) {
        for (size_t at = 0; at < 2 * MOST; at++)
            it->cost[row][at / MOST][at % MOST] =
                draw(rand, 0, 4) == 0 ? INFINITY : (double)draw(rand, 1, 50);
        it->loaded[row][0] = draw(rand, 0, 3);
        it->loaded[row][1] = draw(rand, 0, 3);
        it->rows[row] = (td_plan_pack_row){
            .demand = draw(rand, 1, 14),
            .most = MOST,
            .servers = draw(rand, 0, 2) == 0 ? draw(rand, 1, 4) : 0,
            .loaded = draw(rand, 0, 1) ? it->loaded[row] : NULL,
            .cost = {it->cost[row][0],
                     draw(rand, 0, 3) == 0 ? NULL : it->cost[row][1]}};
    }
}

static void need_solver(void)
{
    if (!td_plan_integer_can()) {
        print_message("CBC is not here (coinor-libcbc3)\n");
        skip();
    }
}

// Every row is covered, by no more servers than there are.
static void check_servers(const instance *it,
                          const td_plan_pack_server *servers, size_t count,
                          double cost)
{
    uint32_t units[ROWS] = {0};
    uint32_t used[2] = {0};
    uint32_t own[ROWS][2] = {0};
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        const td_plan_pack_server *at = &servers[i];
        assert_int_equal(at->from, units[at->row]);
        units[at->row] += at->units;
        used[at->type]++;
        sum += it->cost[at->row][at->type][at->units - 1];
        if (it->rows[at->row].loaded &&
            ++own[at->row][at->type] > it->loaded[at->row][at->type])
            sum += TD_PLAN_LOAD_COST;
    }
    for (size_t row = 0; row < ROWS; row++)
        assert_int_equal(units[row], it->rows[row].demand);
    assert_true(used[0] <= it->gpus[0] && used[1] <= it->gpus[1]);
    assert_true(fabs(sum - cost) < 1e-6 * cost);
}

static void both_ways_of_packing_cost_the_same(void **state)
{
    (void)state;
    td_rand rand;
    int packed = 0;
    need_solver();
    td_rand_init(&rand, 3);
    for (int i = 0; i < 200; i++) {
        instance it;
        const td_plan_pack_server *ignored;
        td_plan_pack_server servers[16];
        size_t count;
        double cost = 0;
        double other = 0;
        draw_instance(&rand, &it);
        TD_AUTO(td_plan_packer) *packer = NULL;
        assert_int_equal(td_plan_packer_new(it.gpus, 2, &packer), TD_OK);
        td_err err =
            td_plan_pack(packer, it.rows, ROWS, &ignored, &count, &other);
        assert_int_equal(td_plan_columns_pack(it.gpus, 2, it.rows, ROWS,
                                              servers, &count, &cost),
                         err);
        if (err != TD_OK) continue;
        packed++;
        assert_true(fabs(cost - other) < 1e-6 * other);
        check_servers(&it, servers, count, cost);
    }
    assert_in_range(packed, 20, 180);
}

static void places_must_cost_the_same(void **state)
{
    (void)state;
    static const double cost[] = {1, 2};
    const uint32_t gpus[] = {4};
    const td_plan_pack_row row = {
        .demand = 2, .most = 1, .stride = 1, .cost = {cost}};
    td_plan_pack_server servers[4];
    size_t count;
    double total;
    assert_int_equal(
        td_plan_columns_pack(gpus, 1, &row, 1, servers, &count, &total),
        TD_ERR_LIMIT);
}

// As many types and GPUs as no table holds; alike but for their memory.
static void four_types_of_sixteen_are_planned(void **state)
{
    (void)state;
    plant it;
    need_solver();
    plant_open(&it,
               "server_cluster:\n  gpu_type: NVIDIA H200\n  nodes:\n"
               "    a: {gpus: 16, gpu_memory_gb: 141}\n"
               "    b: {gpus: 16, gpu_memory_gb: 140}\n"
               "    c: {gpus: 16, gpu_memory_gb: 139}\n"
               "    d: {gpus: 16, gpu_memory_gb: 138}\n" FLEET(256) P4("job"),
               TD_PLAN_TENDON);
    it.options.most_points = 8;
    if (plant_plan(&it) != TD_OK) fail_msg("%s", it.info.text);
    assert_true(it.plan->gpus_used <= 64);
    assert_true(it.plan->actions_hz > 256);
    for (size_t i = 0; i < it.plan->server_count; i++)
        assert_true(it.plan->servers[i].rate_hz <=
                    it.plan->servers[i].capacity_hz * (1 + 1e-9));
    plant_close(&it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_of_packing_cost_the_same),
        cmocka_unit_test(places_must_cost_the_same),
        cmocka_unit_test(four_types_of_sixteen_are_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/pack.h"

#include "base/rand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static td_plan_packer *packer_of(uint32_t first, uint32_t second)
{
    const uint32_t gpus[] = {first, second};
    td_plan_packer *packer;
    assert_int_equal(td_plan_packer_new(gpus, second ? 2 : 1, &packer), TD_OK);
    return packer;
}

static void the_cheapest_sizes_cover_the_line(void **state)
{
    (void)state;
    static const double cost[] = {5, 6, 20};
    TD_AUTO(td_plan_packer) *packer = packer_of(4, 0);
    const td_plan_pack_row row = {.demand = 5, .most = 3, .cost = {cost}};
    const td_plan_pack_server *servers;
    size_t count;
    double total;
    assert_int_equal(td_plan_pack(packer, &row, 1, &servers, &count, &total),
                     TD_OK);
    assert_int_equal(count, 3);
    assert_true(total == 6 + 6 + 5);
    uint32_t next = 0;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(servers[i].from, next);
        next += servers[i].units;
    }
    assert_int_equal(next, 5);
}

static void rows_share_the_gpus(void **state)
{
    (void)state;
    static const double steep[] = {1, 100};
    static const double flat[] = {10, 11};
    TD_AUTO(td_plan_packer) *packer = packer_of(3, 0);
    const td_plan_pack_row rows[] = {
        {.demand = 2, .most = 2, .cost = {steep}},
        {.demand = 2, .most = 2, .cost = {flat}},
    };
    const td_plan_pack_server *servers;
    size_t count;
    double total;
    assert_int_equal(td_plan_pack(packer, rows, 2, &servers, &count, &total),
                     TD_OK);
    assert_true(total == 1 + 1 + 11);
    assert_int_equal(servers[2].row, 1);
    assert_int_equal(servers[2].units, 2);
}

static void too_few_gpus_are_no_packing(void **state)
{
    (void)state;
    static const double cost[] = {1, 1};
    TD_AUTO(td_plan_packer) *packer = packer_of(2, 0);
    const td_plan_pack_row row = {.demand = 5, .most = 2, .cost = {cost}};
    const td_plan_pack_server *servers;
    size_t count;
    double total;
    assert_int_equal(td_plan_pack(packer, &row, 1, &servers, &count, &total),
                     TD_ERR_EMPTY);
}

static void a_row_keeps_to_its_own_number_of_servers(void **state)
{
    (void)state;
    static const double cost[] = {1, 10, 100};
    TD_AUTO(td_plan_packer) *packer = packer_of(8, 0);
    const td_plan_pack_row row = {
        .demand = 3, .most = 3, .servers = 2, .cost = {cost}};
    const td_plan_pack_server *servers;
    size_t count;
    double total;
    assert_int_equal(td_plan_pack(packer, &row, 1, &servers, &count, &total),
                     TD_OK);
    assert_int_equal(count, 2);
    assert_true(total == 11);
}

static void each_model_gets_the_gpus_that_suit_it(void **state)
{
    (void)state;
    static const double slow[] = {9, 9};
    static const double quick[] = {2, 2};
    static const double only[] = {5, 5};
    TD_AUTO(td_plan_packer) *packer = packer_of(1, 1);
    const td_plan_pack_row rows[] = {
        {.demand = 2, .most = 2, .cost = {quick, slow}},
        {.demand = 2, .most = 2, .cost = {only, NULL}}, // not on the second
    };
    const td_plan_pack_server *servers;
    size_t count;
    double total;
    assert_int_equal(td_plan_pack(packer, rows, 2, &servers, &count, &total),
                     TD_OK);
    assert_int_equal(servers[0].type, 1);
    assert_int_equal(servers[1].type, 0);
    assert_true(total == 14);
}

static void costs_may_depend_on_the_place(void **state)
{
    (void)state;
    static const double cost[] = {1, INFINITY, // place 0: one at most
                                  7, 3,        // place 1
                                  7, INFINITY};
    TD_AUTO(td_plan_packer) *packer = packer_of(2, 0);
    const td_plan_pack_row row = {
        .demand = 3, .most = 2, .stride = 2, .cost = {cost}};
    const td_plan_pack_server *servers;
    size_t count;
    double total;
    assert_int_equal(td_plan_pack(packer, &row, 1, &servers, &count, &total),
                     TD_OK);
    assert_int_equal(servers[0].units, 1);
    assert_int_equal(servers[1].units, 2);
    assert_true(total == 4);
}

// What it costs that a row has so many servers of each type.
static double loads(const td_plan_pack_row *row, const uint32_t used[2])
{
    double sum = 0;
    for (size_t type = 0; row->loaded && type < 2; type++)
        if (used[type] > row->loaded[type])
            sum += TD_PLAN_LOAD_COST * (used[type] - row->loaded[type]);
    return sum;
}

// All ways to cover what is left, tried out; the first row has `used` so many.
static double least(const td_plan_pack_row *rows, size_t count, uint32_t left,
                    const uint32_t gpus[2], const uint32_t used[2])
{
    static const uint32_t none[2] = {0, 0};
    double best = INFINITY;
    if (count == 0) return 0;
    if (left == 0)
        return loads(rows, used) + least(rows + 1, count - 1,
                                         count > 1 ? rows[1].demand : 0, gpus,
                                         none);
    for (size_t type = 0; type < 2; type++) {
        uint32_t fewer[2] = {gpus[0], gpus[1]};
        uint32_t more[2] = {used[0], used[1]};
        if (gpus[type] == 0 || !rows->cost[type]) continue;
        fewer[type]--;
        more[type]++;
        for (uint32_t take = 1; take <= rows->most && take <= left; take++)
            best = fmin(best, rows->cost[type][take - 1] +
                                  least(rows, count, left - take, fewer, more));
    }
    return best;
}

// Of every second instance the rows have servers that are loaded already.
static void agrees_with_trying_everything(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 8);
    for (int i = 0; i < 600; i++) {
        double cost[2][2][4];
        uint32_t loaded[2][2];
        const uint32_t gpus[2] = {1 + (uint32_t)(td_rand_u64(&rand) % 3),
                                  1 + (uint32_t)(td_rand_u64(&rand) % 2)};
        td_plan_pack_row rows[2];
        for (size_t row = 0; row < 2; row++) {
            for (size_t at = 0; at < 8; at++)
                cost[row][at / 4][at % 4] =
                    td_rand_u64(&rand) % 5 == 0
                        ? INFINITY
                        : (double)(1 + td_rand_u64(&rand) % 50);
            for (size_t type = 0; type < 2; type++)
                loaded[row][type] = (uint32_t)(td_rand_u64(&rand) % 3);
            rows[row] = (td_plan_pack_row){
                .demand = 1 + (uint32_t)(td_rand_u64(&rand) % 5),
                .most = 4,
                .loaded = i % 2 ? loaded[row] : NULL,
                .cost = {cost[row][0], cost[row][1]}};
        }
        TD_AUTO(td_plan_packer) *packer = packer_of(gpus[0], gpus[1]);
        const td_plan_pack_server *servers;
        size_t count;
        double total = INFINITY;
        (void)!td_plan_pack(packer, rows, 2, &servers, &count, &total);
        double best =
            least(rows, 2, rows[0].demand, gpus, (const uint32_t[]){0, 0});
        if (total != best)
            fail_msg("instance %d: %g, but %g is possible", i, total, best);
    }
}

static void too_many_types_are_refused(void **state)
{
    (void)state;
    const uint32_t gpus[TD_PLAN_MAX_TYPES + 1] = {1, 1, 1, 1, 1};
    td_plan_packer *packer;
    assert_int_equal(td_plan_packer_new(gpus, TD_PLAN_MAX_TYPES + 1, &packer),
                     TD_ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cheapest_sizes_cover_the_line),
        cmocka_unit_test(rows_share_the_gpus),
        cmocka_unit_test(too_few_gpus_are_no_packing),
        cmocka_unit_test(a_row_keeps_to_its_own_number_of_servers),
        cmocka_unit_test(each_model_gets_the_gpus_that_suit_it),
        cmocka_unit_test(costs_may_depend_on_the_place),
        cmocka_unit_test(agrees_with_trying_everything),
        cmocka_unit_test(too_many_types_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

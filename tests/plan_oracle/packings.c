// SPDX-License-Identifier: Apache-2.0
#include "oracle.h"

#include "base/json/json.h"
#include "base/rand.h"
#include "plan/pack/pack.h"

#include <math.h>
#include <stdlib.h>

#define ROWS 5
#define MOST 8
#define TYPES 2

typedef struct instance {
    size_t types, rows;
    uint32_t gpus[TYPES];
    td_plan_pack_row row[ROWS];
    double cost[ROWS][TYPES][MOST];
    uint32_t loaded[ROWS][TYPES];
} instance;

static uint32_t draw(td_rand *rand, uint32_t least, uint32_t most)
{
    return least + (uint32_t)(td_rand_u64(rand) % (most - least + 1));
}

// Near the boundary: about as many GPUs as are needed.
static void draw_instance(td_rand *rand, instance *it)
{
    uint32_t need = 0;
    it->types = draw(rand, 1, TYPES);
    it->rows = draw(rand, 1, ROWS);
    for (size_t i = 0; i < it->rows; i++) {
        uint32_t fits = draw(rand, 2, MOST);
        uint32_t demand = draw(rand, 1, 30);
        need += (demand + fits - 1) / fits;
        it->row[i] = (td_plan_pack_row){
            .demand = demand,
            .most = MOST,
            .servers = draw(rand, 0, 3) == 0 ? draw(rand, 1, 8) : 0,
        };
        for (size_t type = 0; type < it->types; type++) {
            bool absent = type > 0 && draw(rand, 0, 4) == 0;
            for (uint32_t k = 0; k < MOST; k++)
                it->cost[i][type][k] =
                    k >= fits || draw(rand, 0, 6) == 0
                        ? INFINITY
                        : (double)(draw(rand, 1, 20) + k * draw(rand, 0, 9));
            it->row[i].cost[type] = absent ? NULL : it->cost[i][type];
        }
    }
    for (size_t type = 0; type < it->types; type++)
        it->gpus[type] = draw(rand, 1, need / (uint32_t)it->types + 2);
    bool anew = draw(rand, 0, 1);
    for (size_t i = 0; i < it->rows; i++) {
        for (size_t type = 0; type < it->types; type++)
            it->loaded[i][type] = draw(rand, 0, 3);
        if (anew) it->row[i].loaded = it->loaded[i];
    }
}

static void print_columns(td_json *json, const instance *it)
{
    td_json_array(json, "columns");
    for (size_t i = 0; i < it->rows; i++)
        for (size_t type = 0; type < it->types; type++)
            for (uint32_t k = 0; it->row[i].cost[type] && k < MOST; k++) {
                if (isinf(it->cost[i][type][k])) continue;
                td_json_array(json, NULL);
                td_json_whole(json, NULL, i);
                td_json_whole(json, NULL, type);
                td_json_whole(json, NULL, k + 1);
                td_json_number(json, NULL, it->cost[i][type][k]);
                td_json_end_array(json);
            }
    td_json_end_array(json);
}

static void print_instance(const instance *it, double cost)
{
    td_json json;
    td_json_init(&json, stdout);
    td_json_object(&json, NULL);
    td_json_array(&json, "gpus");
    for (size_t i = 0; i < it->types; i++)
        td_json_whole(&json, NULL, it->gpus[i]);
    td_json_end_array(&json);
    td_json_array(&json, "demand");
    for (size_t i = 0; i < it->rows; i++)
        td_json_whole(&json, NULL, it->row[i].demand);
    td_json_end_array(&json);
    td_json_array(&json, "servers");
    for (size_t i = 0; i < it->rows; i++)
        td_json_whole(&json, NULL, it->row[i].servers);
    td_json_end_array(&json);
    td_json_array(&json, "loaded"); // by row and type; empty: loads are free
    for (size_t i = 0; i < it->rows && it->row[i].loaded; i++) {
        td_json_array(&json, NULL);
        for (size_t type = 0; type < it->types; type++)
            td_json_whole(&json, NULL, it->loaded[i][type]);
        td_json_end_array(&json);
    }
    td_json_end_array(&json);
    td_json_number(&json, "load_cost", TD_PLAN_LOAD_COST);
    print_columns(&json, it);
    td_json_number(&json, "loads", floor(cost / TD_PLAN_LOAD_COST));
    // null: there is no packing
    td_json_number(&json, "cost", fmod(cost, TD_PLAN_LOAD_COST));
    td_json_end_object(&json);
    (void)putchar('\n');
}

int oracle_packings(uint64_t seed, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        TD_AUTO(td_plan_packer) *packer = NULL;
        const td_plan_pack_server *servers;
        size_t servers_count;
        double cost = INFINITY;
        instance it;
        td_rand rand;
        td_rand_init(&rand, seed + i);
        draw_instance(&rand, &it);
        if (td_plan_packer_new(it.gpus, it.types, &packer) != TD_OK) return 1;
        td_err err = td_plan_pack(packer, it.row, it.rows, &servers,
                                  &servers_count, &cost);
        if (err != TD_OK && err != TD_ERR_EMPTY) return 1;
        print_instance(&it, cost);
    }
    return 0;
}

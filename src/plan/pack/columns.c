// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/columns.h"

#include "plan/pack/integer.h"

#include <math.h>
#include <stdlib.h>

// A column is in four limits at most: the demand of its row, the GPUs of its
// type, the servers of its row, and those of its row and type that have the
// model already.
#define LIMITS 4

typedef struct column {
    uint32_t row, type;
    uint32_t units; // 0: no servers, but loads of models
} column;

typedef struct program {
    const uint32_t *gpus;
    size_t types;
    const td_plan_pack_row *rows;
    size_t row_count;
    column *columns;
    int count, entries;
    int *start, *limit;
    double *factor, *most, *cost, *counts, *low, *high;
} program;

static size_t limit_count(const program *it)
{
    return 2 * it->row_count + it->types + it->row_count * it->types;
}

// Where the servers of a row are limited, and those of a type that need no
// load.
static size_t servers_limit(const program *it, size_t row)
{
    return it->row_count + it->types + row;
}

static size_t loaded_limit(const program *it, size_t row, size_t type)
{
    return 2 * it->row_count + it->types + row * it->types + type;
}

static bool make_room(program *it)
{
    size_t columns = 1;
    size_t limits = limit_count(it);
    for (size_t i = 0; i < it->row_count; i++)
        columns += it->types * ((size_t)it->rows[i].most + 1);
    it->columns = malloc(columns * sizeof *it->columns);
    it->start = malloc((columns + 1) * sizeof *it->start);
    it->limit = malloc(LIMITS * columns * sizeof *it->limit);
    it->factor = malloc(LIMITS * columns * sizeof *it->factor);
    it->most = malloc(columns * sizeof *it->most);
    it->cost = malloc(columns * sizeof *it->cost);
    it->counts = malloc(columns * sizeof *it->counts);
    it->low = malloc(limits * sizeof *it->low);
    it->high = malloc(limits * sizeof *it->high);
    return it->columns && it->start && it->limit && it->factor && it->most &&
           it->cost && it->counts && it->low && it->high;
}

static void program_done(program *it)
{
    free(it->columns);
    free(it->start);
    free(it->limit);
    free(it->factor);
    free(it->most);
    free(it->cost);
    free(it->counts);
    free(it->low);
    free(it->high);
}

static void add_entry(program *it, size_t limit, double factor)
{
    it->limit[it->entries] = (int)limit;
    it->factor[it->entries++] = factor;
}

static void add_column(program *it, uint32_t row, uint32_t type, uint32_t units,
                       double cost)
{
    it->columns[it->count] = (column){row, type, units};
    it->start[it->count] = it->entries;
    it->most[it->count] = it->gpus[type];
    it->cost[it->count++] = cost;
    if (units > 0) {
        add_entry(it, row, units);
        add_entry(it, it->row_count + type, 1);
        if (it->rows[row].servers) add_entry(it, servers_limit(it, row), 1);
    }
    if (it->rows[row].loaded)
        add_entry(it, loaded_limit(it, row, type), units > 0 ? 1 : -1);
}

static void add_limits(program *it)
{
    for (size_t i = 0; i < it->row_count; i++) {
        const td_plan_pack_row *row = &it->rows[i];
        it->low[i] = it->high[i] = row->demand;
        it->low[servers_limit(it, i)] = 0;
        it->high[servers_limit(it, i)] = row->servers;
        for (size_t type = 0; type < it->types; type++) {
            size_t limit = loaded_limit(it, i, type);
            it->low[limit] = -(double)it->gpus[type];
            it->high[limit] = row->loaded ? row->loaded[type] : 0;
        }
    }
    for (size_t i = 0; i < it->types; i++) {
        it->low[it->row_count + i] = 0;
        it->high[it->row_count + i] = it->gpus[i];
    }
}

static void add_columns(program *it)
{
    for (uint32_t row = 0; row < it->row_count; row++)
        for (uint32_t type = 0; type < it->types; type++) {
            const double *cost = it->rows[row].cost[type];
            for (uint32_t units = 1; cost && units <= it->rows[row].most;
                 units++)
                if (units <= it->rows[row].demand && !isinf(cost[units - 1]))
                    add_column(it, row, type, units, cost[units - 1]);
            if (cost && it->rows[row].loaded)
                add_column(it, row, type, 0, TD_PLAN_LOAD_COST);
        }
    it->start[it->count] = it->entries;
}

// Columns are in the order of their rows, so a row's line is filled on.
static size_t list_servers(const program *it, td_plan_pack_server *servers)
{
    size_t count = 0;
    uint32_t from = 0;
    for (int i = 0; i < it->count; i++) {
        const column *at = &it->columns[i];
        if (i > 0 && it->columns[i - 1].row != at->row) from = 0;
        if (at->units == 0) continue;
        for (uint32_t n = (uint32_t)it->counts[i]; n > 0; n--) {
            servers[count++] =
                (td_plan_pack_server){at->row, at->type, from, at->units};
            from += at->units;
        }
    }
    return count;
}

static td_err solve(program *it, td_plan_pack_server *servers,
                    size_t *ret_count, double *ret_cost)
{
    add_limits(it);
    add_columns(it);
    if (it->count == 0) return TD_ERR_EMPTY;
    const td_plan_integer whole = {
        .columns = it->count,
        .rows = (int)limit_count(it),
        .start = it->start,
        .row = it->limit,
        .factor = it->factor,
        .most = it->most,
        .cost = it->cost,
        .low = it->low,
        .high = it->high,
    };
    TD_TRY(td_plan_integer_solve(&whole, it->counts, ret_cost));
    *ret_count = list_servers(it, servers);
    return TD_OK;
}

td_err td_plan_columns_pack(const uint32_t *gpus, size_t types,
                            const td_plan_pack_row *rows, size_t count,
                            td_plan_pack_server *servers, size_t *ret_count,
                            double *ret_cost)
{
    program it = {
        .gpus = gpus, .types = types, .rows = rows, .row_count = count};
    for (size_t i = 0; i < count; i++)
        if (rows[i].stride) return TD_ERR_LIMIT;
    td_err err = make_room(&it) ? solve(&it, servers, ret_count, ret_cost)
                                : TD_ERR_NOMEM;
    program_done(&it);
    return err;
}

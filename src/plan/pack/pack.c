// SPDX-License-Identifier: Apache-2.0
// Packs rows of units onto GPUs at the least cost, by dynamic programming.
//
// A state is a number of GPUs of each type, written as one number in mixed
// radix, so that taking a GPU of a type subtracts that type's weight. Two
// tables are filled: fill_line() has, for one row, the least cost of serving
// its first units with the GPUs of each state; add_row() has the least cost of
// all rows so far with the GPUs of each state. Rows share nothing but GPUs, so
// the second needs of the first only its last line.
//
// Nothing remembers what was chosen. It is found again afterwards by which sum
// is equal (trace), which halves the memory; the sums are therefore computed by
// the same expressions in the same order both times.
//
// Where several types of many GPUs would make the tables too large, the packing
// is an integer program instead (pack/columns.c), which
// td_plan_pack_by_columns() decides from the numbers of GPUs alone.
//
// The packer owns its tables and uses them again; the servers that it returns
// are borrowed until the next call. Pure; one thread at a time.
#include "plan/pack/pack.h"

#include "plan/pack/columns.h"
#include "plan/pack/integer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_STATES 2000u             // beyond it an integer program is quicker
#define MOST_CELLS ((size_t)64 << 20) // doubles

struct td_plan_packer {
    size_t types;
    uint32_t gpus[TD_PLAN_MAX_TYPES];
    uint32_t weight[TD_PLAN_MAX_TYPES];
    uint32_t states; // 0: an integer program
    uint32_t total;  // GPUs
    double *cells;
    size_t cell_count;
    td_plan_pack_server *servers;
    size_t server_count;
};

// The tables of one solve.
typedef struct work {
    const td_plan_packer *packer;
    const td_plan_pack_row *rows;
    double **line; // of each row: [units][state]
    double **sum;  // of the rows before each, and of all: [state]
} work;

bool td_plan_pack_by_columns(const uint32_t *gpus, size_t types)
{
    uint32_t states = 1;
    for (size_t i = 0; types > 1 && i < types; i++) {
        if (gpus[i] >= MOST_STATES / states) return true;
        states *= gpus[i] + 1;
    }
    return false;
}

static void count_states(td_plan_packer *packer)
{
    packer->states = 1;
    for (size_t i = 0; i < packer->types; i++) {
        packer->weight[i] = packer->states;
        packer->states *= packer->gpus[i] + 1;
    }
}

td_err td_plan_packer_new(const uint32_t *gpus, size_t types,
                          td_plan_packer **ret_packer)
{
    bool by_columns = td_plan_pack_by_columns(gpus, types);
    if (types == 0 || types > TD_PLAN_MAX_TYPES) return TD_ERR_LIMIT;
    if (by_columns && !td_plan_integer_can()) return TD_ERR_UNSUPPORTED;
    TD_AUTO(td_plan_packer) *packer = calloc(1, sizeof *packer);
    if (!packer) return TD_ERR_NOMEM;
    packer->types = types;
    for (size_t i = 0; i < types; i++) {
        packer->gpus[i] = gpus[i];
        packer->total += gpus[i];
    }
    if (!by_columns) count_states(packer);
    packer->servers = calloc(packer->total + 1, sizeof *packer->servers);
    if (!packer->servers) return TD_ERR_NOMEM;
    *ret_packer = TD_TAKE(packer);
    return TD_OK;
}

void td_plan_packer_free(td_plan_packer *packer)
{
    free(packer->cells);
    free(packer->servers);
    free(packer);
}

static uint32_t digit(const td_plan_packer *packer, uint32_t state, size_t type)
{
    return state / packer->weight[type] % (packer->gpus[type] + 1);
}

static uint32_t digits(const td_plan_packer *packer, uint32_t state)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < packer->types; i++)
        sum += digit(packer, state, i);
    return sum;
}

static double cost_of(const td_plan_pack_row *row, size_t type, uint32_t from,
                      uint32_t units)
{
    return row->cost[type][from * row->stride + units - 1];
}

// One server of this type more, which costs so much, onto every state. With
// one type only, fewer than `least` servers cannot be enough.
static void extend(const td_plan_packer *packer, size_t type, double cost,
                   uint32_t least, const double *restrict before,
                   double *restrict after)
{
    uint32_t weight = packer->weight[type];
    uint32_t block = weight * (packer->gpus[type] + 1);
    uint32_t first = packer->types == 1 && least > weight ? least : weight;
    for (uint32_t base = 0; base < packer->states; base += block)
        for (uint32_t i = base + first; i < base + block; i++) {
            double sum = before[i - weight] + cost;
            after[i] = sum < after[i] ? sum : after[i];
        }
}

static void fill_line(const td_plan_packer *packer, const td_plan_pack_row *row,
                      double *line)
{
    uint32_t states = packer->states;
    for (uint32_t i = 0; i < states; i++)
        line[i] = 0;
    for (uint32_t units = 1; units <= row->demand; units++) {
        double *after = line + (size_t)units * states;
        for (uint32_t i = 0; i < states; i++)
            after[i] = INFINITY;
        for (uint32_t take = 1; take <= row->most && take <= units; take++)
            for (size_t type = 0; type < packer->types; type++) {
                if (!row->cost[type]) continue;
                double cost = cost_of(row, type, units - take, take);
                if (isinf(cost)) continue;
                extend(packer, type, cost, (units + row->most - 1) / row->most,
                       line + (size_t)(units - take) * states, after);
            }
    }
}

// Whether the GPUs of two states are there together.
static bool fit(const td_plan_packer *packer, uint32_t a, uint32_t b)
{
    for (size_t i = 0; i < packer->types; i++)
        if (digit(packer, a, i) + digit(packer, b, i) > packer->gpus[i])
            return false;
    return true;
}

static bool is_within(const td_plan_packer *packer, const td_plan_pack_row *row,
                      uint32_t state)
{
    return row->servers == 0 || digits(packer, state) <= row->servers;
}

// Of a row with the GPUs of a state: its servers, and their loads.
static double row_cost(const work *tables, size_t index, uint32_t state)
{
    const td_plan_packer *packer = tables->packer;
    const td_plan_pack_row *row = &tables->rows[index];
    double cost =
        tables->line[index][(size_t)row->demand * packer->states + state];
    if (!is_within(packer, row, state)) return INFINITY;
    for (size_t i = 0; row->loaded && i < packer->types; i++)
        if (digit(packer, state, i) > row->loaded[i])
            cost +=
                TD_PLAN_LOAD_COST * (digit(packer, state, i) - row->loaded[i]);
    return cost;
}

static void add_row(const work *tables, size_t index)
{
    const td_plan_packer *packer = tables->packer;
    uint32_t states = packer->states;
    const double *before = tables->sum[index];
    double *after = tables->sum[index + 1];
    for (uint32_t i = 0; i < states; i++)
        after[i] = INFINITY;
    for (uint32_t own = 0; own < states; own++) {
        double cost = row_cost(tables, index, own);
        if (isinf(cost)) continue;
        for (uint32_t i = 0; i + own < states; i++) {
            double sum = before[i] + cost;
            if (sum < after[i + own] &&
                (packer->types == 1 || fit(packer, i, own)))
                after[i + own] = sum;
        }
    }
}

static void take_server(td_plan_packer *packer, uint32_t row, size_t type,
                        uint32_t from, uint32_t units)
{
    packer->servers[packer->server_count++] = (td_plan_pack_server){
        .row = row, .type = (uint32_t)type, .from = from, .units = units};
}

// Whether the last server of these units is of this type and takes so many.
static bool is_last(const work *tables, uint32_t index, uint32_t state,
                    uint32_t units, size_t type, uint32_t take)
{
    const td_plan_packer *packer = tables->packer;
    const td_plan_pack_row *row = &tables->rows[index];
    const double *line = tables->line[index];
    if (!row->cost[type] || digit(packer, state, type) == 0) return false;
    double sum = line[(size_t)(units - take) * packer->states + state -
                      packer->weight[type]] +
                 cost_of(row, type, units - take, take);
    return sum == line[(size_t)units * packer->states + state];
}

static void trace_line(td_plan_packer *packer, const work *tables,
                       uint32_t index, uint32_t state)
{
    const td_plan_pack_row *row = &tables->rows[index];
    uint32_t units = row->demand;
    while (units > 0) {
        size_t choices = packer->types * row->most;
        for (size_t i = 0; i < choices; i++) {
            size_t type = i % packer->types;
            uint32_t take = (uint32_t)(i / packer->types) + 1;
            if (take > units ||
                !is_last(tables, index, state, units, type, take))
                continue;
            units -= take;
            state -= packer->weight[type];
            take_server(packer, index, type, units, take);
            break;
        }
    }
}

// The GPUs of a row in the cheapest packing of it and those before.
static uint32_t own_state(const work *tables, size_t index, uint32_t state)
{
    const td_plan_packer *packer = tables->packer;
    for (uint32_t own = 0; own <= state; own++)
        if (fit(packer, own, state - own) &&
            tables->sum[index][state - own] + row_cost(tables, index, own) ==
                tables->sum[index + 1][state])
            return own;
    return 0;
}

static int in_order(const void *left, const void *right)
{
    const td_plan_pack_server *a = left;
    const td_plan_pack_server *b = right;
    if (a->row != b->row) return a->row < b->row ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

static void trace(td_plan_packer *packer, const work *tables, size_t count)
{
    uint32_t state = packer->states - 1;
    packer->server_count = 0;
    for (size_t i = count; i-- > 0;) {
        uint32_t own = own_state(tables, i, state);
        trace_line(packer, tables, (uint32_t)i, own);
        state -= own;
    }
    qsort(packer->servers, packer->server_count, sizeof *packer->servers,
          in_order);
}

static td_err reserve(td_plan_packer *packer, const td_plan_pack_row *rows,
                      size_t count)
{
    size_t cells = (count + 1) * packer->states;
    for (size_t i = 0; i < count; i++)
        cells += ((size_t)rows[i].demand + 1) * packer->states;
    if (cells > MOST_CELLS) return TD_ERR_LIMIT;
    if (cells <= packer->cell_count) return TD_OK;
    free(packer->cells);
    packer->cell_count = 0;
    packer->cells = malloc(cells * sizeof(double));
    if (!packer->cells) return TD_ERR_NOMEM;
    packer->cell_count = cells;
    return TD_OK;
}

static void lay_out(const td_plan_packer *packer, work *tables, size_t count)
{
    double *at = packer->cells;
    for (size_t i = 0; i <= count; i++, at += packer->states)
        tables->sum[i] = at;
    for (size_t i = 0; i < count; i++) {
        tables->line[i] = at;
        at += ((size_t)tables->rows[i].demand + 1) * packer->states;
    }
}

static double solve(const work *tables, size_t count)
{
    uint32_t states = tables->packer->states;
    memset(tables->sum[0], 0, states * sizeof(double));
    for (size_t i = 0; i < count; i++) {
        fill_line(tables->packer, &tables->rows[i], tables->line[i]);
        add_row(tables, i);
    }
    return tables->sum[count][states - 1];
}

static td_err pack_columns(td_plan_packer *packer, const td_plan_pack_row *rows,
                           size_t count,
                           const td_plan_pack_server **ret_servers,
                           size_t *ret_count, double *ret_cost)
{
    TD_TRY(td_plan_columns_pack(packer->gpus, packer->types, rows, count,
                                packer->servers, &packer->server_count,
                                ret_cost));
    *ret_servers = packer->servers;
    *ret_count = packer->server_count;
    return TD_OK;
}

td_err td_plan_pack(td_plan_packer *packer, const td_plan_pack_row *rows,
                    size_t count, const td_plan_pack_server **ret_servers,
                    size_t *ret_count, double *ret_cost)
{
    if (packer->states == 0)
        return pack_columns(packer, rows, count, ret_servers, ret_count,
                            ret_cost);
    TD_TRY(reserve(packer, rows, count));
    double **pointers = malloc((2 * count + 1) * sizeof *pointers);
    if (!pointers) return TD_ERR_NOMEM;
    work tables = {packer, rows, pointers, pointers + count};
    lay_out(packer, &tables, count);
    double cost = solve(&tables, count);
    if (!isinf(cost)) trace(packer, &tables, count);
    free(pointers);
    if (isinf(cost)) return TD_ERR_EMPTY;
    *ret_servers = packer->servers;
    *ret_count = packer->server_count;
    *ret_cost = cost;
    return TD_OK;
}

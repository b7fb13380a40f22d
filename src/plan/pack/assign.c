// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/assign.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

// Rows and columns count from 1: column 0 is where a new row comes in. No pair
// is worth more than the prices of its row and its column, and those that are
// taken are worth just that: so no others are worth more in all.
typedef struct matching {
    const double *worth;
    size_t columns;
    double *row_price, *column_price;
    size_t *row_of; // of each column; 0: none
    size_t *from;   // the column before it on the way
    double *slack;  // what its price has above what it is worth, at least
    bool *seen;
} matching;

// The column with the least slack, seen from the row of the last one.
static size_t next_column(matching *m, size_t last, double *ret_least)
{
    size_t row = m->row_of[last];
    size_t next = 0;
    *ret_least = INFINITY;
    for (size_t j = 1; j <= m->columns; j++) {
        if (m->seen[j]) continue;
        double slack = m->row_price[row] + m->column_price[j] -
                       m->worth[(row - 1) * m->columns + j - 1];
        if (slack < m->slack[j]) {
            m->slack[j] = slack;
            m->from[j] = last;
        }
        if (m->slack[j] >= *ret_least) continue;
        *ret_least = m->slack[j];
        next = j;
    }
    return next;
}

static void shift_prices(matching *m, double by)
{
    for (size_t j = 0; j <= m->columns; j++)
        if (m->seen[j]) {
            m->row_price[m->row_of[j]] -= by;
            m->column_price[j] += by;
        } else {
            m->slack[j] -= by;
        }
}

// Finds the row a column, along a way on which others change theirs.
static void add_row(matching *m, size_t row)
{
    size_t at = 0;
    m->row_of[0] = row;
    for (size_t j = 0; j <= m->columns; j++) {
        m->slack[j] = INFINITY;
        m->seen[j] = false;
    }
    do {
        double least;
        m->seen[at] = true;
        at = next_column(m, at, &least);
        shift_prices(m, least);
    } while (m->row_of[at]);
    while (at) {
        size_t before = m->from[at];
        m->row_of[at] = m->row_of[before];
        at = before;
    }
}

static void match(matching *m, size_t rows, size_t *ret_columns)
{
    for (size_t i = 1; i <= rows; i++)
        add_row(m, i);
    for (size_t j = 1; j <= m->columns; j++)
        if (m->row_of[j]) ret_columns[m->row_of[j] - 1] = j - 1;
}

td_err td_plan_assign(const double *worth, size_t rows, size_t columns,
                      size_t *ret_columns)
{
    matching m = {
        .worth = worth,
        .columns = columns,
        .row_price = calloc(rows + 1, sizeof(double)),
        .column_price = calloc(columns + 1, sizeof(double)),
        .row_of = calloc(columns + 1, sizeof(size_t)),
        .from = calloc(columns + 1, sizeof(size_t)),
        .slack = calloc(columns + 1, sizeof(double)),
        .seen = calloc(columns + 1, sizeof(bool)),
    };
    bool fine = m.row_price && m.column_price && m.row_of && m.from &&
                m.slack && m.seen;
    if (fine) match(&m, rows, ret_columns);
    free(m.row_price);
    free(m.column_price);
    free(m.row_of);
    free(m.from);
    free(m.slack);
    free(m.seen);
    return fine ? TD_OK : TD_ERR_NOMEM;
}

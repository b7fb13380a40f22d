// SPDX-License-Identifier: Apache-2.0
#include "edge/record/rows.h"

#include "base/sync/cacheline.h"

#include <stdlib.h>
#include <string.h>

struct td_edge_rows {
    uint32_t states, channels, substeps;
    uint64_t lost;     // since the last row
    uint32_t idle;     // ticks since the last row of those that played nothing
    float *state;      // as last known
    td_edge_row *step; // under way; a step may be interrupted, so that
    td_edge_row *hold; // there are two
    bool stepping, holding; // they have seen their beginnings
};

size_t td_edge_rows_bytes(const td_edge_rows *rows)
{
    return sizeof(td_edge_row) +
           ((size_t)rows->states + rows->channels) * sizeof(float);
}

static td_err make(td_edge_rows *rows)
{
    rows->state = td_cacheline_calloc(rows->states, sizeof(float));
    rows->step = td_cacheline_calloc(1, td_edge_rows_bytes(rows));
    rows->hold = td_cacheline_calloc(1, td_edge_rows_bytes(rows));
    return rows->state && rows->step && rows->hold ? TD_OK : TD_ERR_NOMEM;
}

td_err td_edge_rows_new(uint32_t states, uint32_t channels, uint32_t substeps,
                        td_edge_rows **ret_rows)
{
    if (states == 0 || channels == 0 || substeps == 0) return TD_ERR_INVALID;
    TD_AUTO(td_edge_rows) *rows = calloc(1, sizeof *rows);
    if (!rows) return TD_ERR_NOMEM;
    rows->states = states;
    rows->channels = channels;
    rows->substeps = substeps;
    TD_TRY(make(rows));
    *ret_rows = TD_TAKE(rows);
    return TD_OK;
}

void td_edge_rows_free(td_edge_rows *rows)
{
    free(rows->state);
    free(rows->step);
    free(rows->hold);
    free(rows);
}

// Time that no tick saw is time in which nothing was played.
static void note_missed(td_edge_rows *rows, uint32_t missed)
{
    uint64_t idle = (uint64_t)rows->idle + missed;
    if (missed == 0) return;
    rows->lost += idle / rows->substeps;
    rows->idle = (uint32_t)(idle % rows->substeps);
    if (idle >= rows->substeps) rows->holding = false;
}

static void begin(const td_edge_rows *rows, const td_edge_rows_tick *tick,
                  td_edge_row *row)
{
    *row = (td_edge_row){.seen_ns = tick->now_ns, .episode = tick->episode};
    memcpy(row->values, rows->state, rows->states * sizeof(float));
}

static void go_on(const td_edge_rows_tick *tick, td_edge_row *row)
{
    td_edge_failsafe_reason why = tick->step->failsafe;
    if (tick->step->hits->consecutive > 0) row->clamped = true;
    if (why == TD_EDGE_FAILSAFE_FOR_LIMITS ||
        why == TD_EDGE_FAILSAFE_FOR_DRIVER)
        row->failsafe = true;
}

static const td_edge_row *end(td_edge_rows *rows, const td_edge_rows_tick *tick,
                              td_edge_row *row)
{
    memcpy(row->values + rows->states, tick->step->command,
           rows->channels * sizeof(float));
    row->lost = rows->lost;
    rows->lost = 0;
    return row;
}

static const td_edge_row *play(td_edge_rows *rows,
                               const td_edge_rows_tick *tick)
{
    const td_edge_step *step = tick->step;
    td_edge_row *row = rows->step;
    if (step->substep == 1) {
        begin(rows, tick, row);
        row->chunk = step->chunk;
        row->step = step->chunk_row;
        row->age_ns = step->age_ns;
        rows->stepping = true;
    }
    if (!rows->stepping) return NULL;
    go_on(tick, row);
    if (step->substep < rows->substeps) return NULL;
    rows->stepping = false;
    return end(rows, tick, row);
}

static const td_edge_row *hold(td_edge_rows *rows,
                               const td_edge_rows_tick *tick)
{
    td_edge_row *row = rows->hold;
    if (!rows->holding) {
        begin(rows, tick, row);
        row->held = true;
        rows->holding = true;
    }
    go_on(tick, row);
    if (++rows->idle < rows->substeps) return NULL;
    rows->idle = 0;
    rows->holding = false;
    return end(rows, tick, row);
}

const td_edge_row *td_edge_rows_add(td_edge_rows *rows,
                                    const td_edge_rows_tick *tick)
{
    if (tick->state)
        memcpy(rows->state, tick->state, rows->states * sizeof(float));
    if (!tick->step->command) return NULL;
    note_missed(rows, tick->missed);
    return tick->step->fresh ? play(rows, tick) : hold(rows, tick);
}

void td_edge_rows_lose(td_edge_rows *rows, const td_edge_row *row)
{
    rows->lost += row->lost + 1;
}

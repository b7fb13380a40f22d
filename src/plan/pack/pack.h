// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_PACK_PACK_H
#define TD_PLAN_PACK_PACK_H

// Packs streams onto servers: the cheapest way to cover every row.
//
// A row is a line of units that wait to be served; a server takes the next few
// of one row, at a cost that depends on its type of GPU, on where in the line
// it begins and on how many it takes. Rows share only the number of GPUs of
// each type, so dynamic programming is exact: over the line for one row, then
// over the GPUs for all rows. Time and memory grow with units x GPUs x units of
// a server, and with the product of the numbers of GPUs where there are several
// types: where that is too much an integer program takes over, for rows whose
// places all cost the same.

#include "base/err.h"

#include <stdbool.h>

#define TD_PLAN_MAX_TYPES 4
#define TD_PLAN_LOAD_COST 1e6 // so that the fewest loads go before all else

typedef struct td_plan_pack_row {
    uint32_t demand;  // units
    uint32_t most;    // of one server
    uint32_t servers; // of this row at most; 0: as there are
    // By type, servers that have its model already: each one more costs a load.
    // NULL: loads cost nothing.
    const uint32_t *loaded;
    size_t stride; // from one place in the line to the next: `most`, or 0
                   // when all places cost the same
    // By type: [place * stride + units - 1]; INFINITY: not possible. NULL: no
    // server of this type.
    const double *cost[TD_PLAN_MAX_TYPES];
} td_plan_pack_row;

typedef struct td_plan_pack_server {
    uint32_t row, type;
    uint32_t from, units;
} td_plan_pack_server;

// Scratch memory, used again and again. One thread at a time.
typedef struct td_plan_packer td_plan_packer;

// Whether so many GPUs of so many types are packed by an integer program.
bool td_plan_pack_by_columns(const uint32_t *gpus, size_t types);

// GPUs of each type. Owned by the caller. LIMIT for too many types; UNSUPPORTED
// when it takes an integer program and there is no solver; NOMEM.
TD_NODISCARD td_err td_plan_packer_new(const uint32_t *gpus, size_t types,
                                       td_plan_packer **ret_packer);
void td_plan_packer_free(td_plan_packer *packer);
TD_AUTO_FREE(td_plan_packer, td_plan_packer_free)

// The cheapest packing: its servers, by row and in the order of the line,
// borrowed until the next one. EMPTY when there is none; NOMEM, LIMIT.
TD_NODISCARD td_err td_plan_pack(td_plan_packer *packer,
                                 const td_plan_pack_row *rows, size_t count,
                                 const td_plan_pack_server **ret_servers,
                                 size_t *ret_count, double *ret_cost);

#endif

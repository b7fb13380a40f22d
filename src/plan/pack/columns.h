// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_PACK_COLUMNS_H
#define TD_PLAN_PACK_COLUMNS_H

// Packing as an integer program: so many servers of each row, type and number
// of units. For more types and GPUs than tables would hold; every place of a
// line must cost the same.

#include "plan/pack/pack.h"

// `servers` has room for as many as there are GPUs. As td_plan_pack(); LIMIT
// for places that cost differently, UNSUPPORTED without an integer solver.
TD_NODISCARD td_err td_plan_columns_pack(const uint32_t *gpus, size_t types,
                                         const td_plan_pack_row *rows,
                                         size_t count,
                                         td_plan_pack_server *servers,
                                         size_t *ret_count, double *ret_cost);

#endif

// SPDX-License-Identifier: Apache-2.0
#include "engine/worker/ring.h"

#include "engine/worker/spec.h"

#include <math.h>
#include <string.h>

bool td_engine_worker_read_ready(const td_worker_result *shared,
                                 uint64_t generation)
{
    return __atomic_load_n(&shared->generation, __ATOMIC_ACQUIRE) == generation;
}

// Says why in words that can stand in a message, whatever the other side wrote.
static td_err fail_as_told(const td_worker_answer *answer, td_errinfo *info)
{
    char why[TD_ENGINE_WORKER_TEXT_BYTES];
    td_engine_worker_spec_text(answer->error, sizeof answer->error, why);
    td_err err = answer->status < TD_ERR_COUNT ? (td_err)answer->status
                                               : TD_ERR_INTERNAL;
    return td_fail(info, err, "%s",
                   why[0] ? why : "the worker could not answer this");
}

static td_err read_actions(const td_worker_spec *spec, const void *shared,
                           uint32_t rows, td_engine_item *item)
{
    if (rows < 1 || rows > spec->chunk_rows)
        return td_fail(item->info, TD_ERR_FORMAT,
                       "the worker gave %u rows, a chunk has 1 to %u", rows,
                       spec->chunk_rows);
    size_t cells = (size_t)rows * spec->action_count;
    memcpy(item->actions, shared, cells * sizeof(float));
    for (size_t i = 0; i < cells; i++)
        if (!isfinite(item->actions[i]))
            return td_fail(item->info, TD_ERR_FORMAT,
                           "the worker's row %zu is not finite in channel %zu",
                           i / spec->action_count, i % spec->action_count);
    item->rows = rows;
    return TD_OK;
}

td_err td_engine_worker_read(const td_worker_spec *spec,
                             const td_engine_worker_plan *plan,
                             const td_worker_result *shared,
                             td_engine_item *const *items, uint32_t count,
                             int64_t *ret_service_ns)
{
    if (__atomic_load_n(&shared->count, __ATOMIC_RELAXED) != count)
        return TD_ERR_FORMAT;
    int64_t service_ns = __atomic_load_n(&shared->service_ns, __ATOMIC_RELAXED);
    const uint8_t *actions = (const uint8_t *)shared + plan->actions;
    for (uint32_t i = 0; i < count; i++) {
        td_worker_answer answer;
        memcpy(&answer, &shared->answers[i], sizeof answer);
        items[i]->rows = 0;
        items[i]->status =
            answer.status == TD_OK
                ? read_actions(spec, actions + i * plan->actions_bytes,
                               answer.rows, items[i])
                : fail_as_told(&answer, items[i]->info);
    }
    *ret_service_ns = service_ns > 0 ? service_ns : 0;
    return TD_OK;
}

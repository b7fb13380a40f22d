// SPDX-License-Identifier: Apache-2.0
#include "engine/worker/ring/ring.h"

#include <inttypes.h>

#define MOST_BYTES (UINT64_C(64) << 30)

// The layout is a promise to workers of other releases and other languages.
#define STANDS(type, member, at)                                               \
    _Static_assert(offsetof(td_worker_##type, member) == (at), "layout")
#define HAS(type, size)                                                        \
    _Static_assert(sizeof(td_worker_##type) == (size), "layout")
STANDS(spec, values_bytes, 28);
STANDS(spec, cameras, 40);
STANDS(spec, states, 1192);
STANDS(spec, actions, 18600);
HAS(spec, 36008);
STANDS(offer, actions, 48);
STANDS(offer, values, 64);
STANDS(offer, step_period_us, 80);
STANDS(offer, pretrained_path, 304);
STANDS(offer, spec, 4408);
STANDS(offer, dropped, 40424);
STANDS(offer, segments_changed, 56816);
STANDS(offer, segments, 56824);
HAS(offer, 60920);
STANDS(hello, environment_count, 44);
STANDS(hello, dropped, 48);
STANDS(hello, error, 56);
STANDS(hello, spec, 560);
STANDS(hello, segments, 36568);
HAS(hello, 36824);
HAS(segment, 128);
STANDS(item, prefix, 40);
STANDS(item, client, 72);
STANDS(item, images, 232);
STANDS(item, tensors, 360);
STANDS(item, metadata, 2920);
HAS(item, 3944);
HAS(batch, 252432);
HAS(value, 104);
STANDS(answer, prefix_bytes, 8);
STANDS(answer, error, 24);
STANDS(answer, values, 528);
HAS(answer, 3856);
HAS(result, 246808);
_Static_assert(sizeof(td_worker_offer) <= TD_WORKER_PAGE, "layout");
_Static_assert(sizeof(td_worker_hello) <= TD_WORKER_PAGE, "layout");
_Static_assert(TD_WORKER_MAX_BATCH == TD_ENGINE_MAX_BATCH, "one limit");

// Hands out room after room.
static uint64_t take(uint64_t *used, uint64_t bytes, uint32_t count)
{
    uint64_t at = *used;
    *used += bytes * count;
    return at;
}

static void lay_out_requests(const td_worker_spec *spec,
                             td_engine_worker_layout *layout)
{
    uint64_t used = td_engine_worker_round_up(sizeof(td_worker_batch),
                                              TD_ENGINE_WORKER_ALIGN);
    layout->state_bytes = td_engine_worker_round_up(
        spec->state_count * sizeof(float), TD_ENGINE_WORKER_ALIGN);
    layout->states = take(&used, layout->state_bytes, spec->max_batch);
    for (uint32_t i = 0; i < spec->camera_count; i++) {
        const td_worker_camera *camera = &spec->cameras[i];
        layout->image_bytes[i] = td_engine_worker_round_up(
            (uint64_t)camera->height * camera->width * 3,
            TD_ENGINE_WORKER_ALIGN);
        layout->images[i] =
            take(&used, layout->image_bytes[i], spec->max_batch);
    }
    layout->extra = take(&used, TD_ENGINE_WORKER_EXTRA_BYTES, spec->max_batch);
    layout->request_bytes = td_engine_worker_round_up(used, TD_WORKER_PAGE);
}

static void lay_out_results(const td_worker_spec *spec,
                            td_engine_worker_layout *layout)
{
    uint64_t used = td_engine_worker_round_up(sizeof(td_worker_result),
                                              TD_ENGINE_WORKER_ALIGN);
    layout->actions_bytes = td_engine_worker_round_up(
        (uint64_t)spec->chunk_rows * spec->action_count * sizeof(float),
        TD_ENGINE_WORKER_ALIGN);
    layout->actions = take(&used, layout->actions_bytes, spec->max_batch);
    layout->values_bytes =
        td_engine_worker_round_up(spec->values_bytes, TD_ENGINE_WORKER_ALIGN);
    layout->values = take(&used, layout->values_bytes, spec->max_batch);
    layout->result_bytes = td_engine_worker_round_up(used, TD_WORKER_PAGE);
}

td_err td_engine_worker_layout_make(const td_worker_spec *spec,
                                    td_engine_worker_layout *ret_layout,
                                    td_errinfo *info)
{
    td_engine_worker_layout layout = {0};
    lay_out_requests(spec, &layout);
    lay_out_results(spec, &layout);
    uint64_t used = 2 * (uint64_t)TD_WORKER_PAGE;
    layout.requests = take(&used, layout.request_bytes, TD_WORKER_SLOTS);
    layout.results = take(&used, layout.result_bytes, TD_WORKER_SLOTS);
    layout.file_bytes = used;
    if (used > MOST_BYTES)
        return td_fail(info, TD_ERR_LIMIT,
                       "batches of %u would need %" PRIu64
                       " bytes of shared memory, at most %" PRIu64,
                       spec->max_batch, used, MOST_BYTES);
    *ret_layout = layout;
    return TD_OK;
}

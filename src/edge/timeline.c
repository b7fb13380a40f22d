// SPDX-License-Identifier: Apache-2.0
#include "edge/timeline.h"

#include <assert.h>
#include <stdlib.h>

static uint64_t end_of(const td_edge_timeline *timeline)
{
    return timeline ? timeline->first + timeline->rows : 0;
}

const float *td_edge_timeline_row(const td_edge_timeline *timeline,
                                  uint64_t cursor)
{
    if (!timeline || cursor < timeline->first || cursor >= end_of(timeline))
        return NULL;
    return &timeline->data[(cursor - timeline->first) * timeline->channels];
}

uint32_t td_edge_timeline_left(const td_edge_timeline *timeline,
                               uint64_t cursor)
{
    uint64_t end = end_of(timeline);
    return cursor < end ? (uint32_t)(end - cursor) : 0;
}

static td_edge_timeline *timeline_new(uint64_t first, uint64_t end,
                                      uint32_t channels)
{
    size_t cells = (size_t)(end - first) * channels;
    td_edge_timeline *timeline =
        malloc(sizeof *timeline + cells * sizeof(float));
    if (!timeline) return NULL;
    *timeline = (td_edge_timeline){
        .first = first,
        .rows = (uint32_t)(end - first),
        .channels = channels,
    };
    return timeline;
}

// The steps that both know come first, then those of the chunk alone.
static void fill(const td_edge_timeline *old, const td_edge_chunk *chunk,
                 const td_edge_blend *blend, td_edge_timeline *next)
{
    uint32_t left = td_edge_timeline_left(old, next->first);
    uint32_t overlap = left < next->rows ? left : next->rows;
    for (uint32_t i = 0; i < next->rows; i++) {
        uint64_t step = next->first + i;
        const float *after =
            &chunk->data[(step - chunk->first) * next->channels];
        float *row = &next->data[(size_t)i * next->channels];
        if (i >= overlap) {
            td_edge_blend_alone(blend, after, row);
            continue;
        }
        const float *before = td_edge_timeline_row(old, step);
        const td_edge_place place = {step, i, overlap};
        if (!td_edge_blend_row(blend, &place, before, after, row))
            next->refused++;
    }
}

td_err td_edge_timeline_merge(const td_edge_timeline *old,
                              const td_edge_chunk *chunk, uint64_t cursor,
                              const td_edge_blend *blend,
                              td_edge_timeline **ret_timeline)
{
    assert(chunk->first <= cursor && (!old || old->first <= cursor));
    uint64_t end = chunk->first + chunk->rows;
    if (end <= cursor) return TD_ERR_EMPTY;

    // Steps beyond the chunk's end are dropped though the old timeline knew
    // them: the newer chunk has seen more, and meant to stop there.
    td_edge_timeline *next = timeline_new(cursor, end, blend->channels);
    if (!next) return TD_ERR_NOMEM;
    next->generation = old ? old->generation + 1 : 1;
    fill(old, chunk, blend, next);
    *ret_timeline = next;
    return TD_OK;
}

void td_edge_timeline_free_list(td_edge_timeline *timeline)
{
    while (timeline) {
        td_edge_timeline *next = timeline->retired;
        free(timeline);
        timeline = next;
    }
}

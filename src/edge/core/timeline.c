// SPDX-License-Identifier: Apache-2.0
#include "edge/core/timeline.h"

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

static void blend_each(const td_edge_blend *blend, const td_edge_overlap *both,
                       td_edge_timeline *next)
{
    for (uint32_t i = 0; i < both->rows; i++) {
        const td_edge_place place = {both->first + i, i, both->rows};
        size_t at = (size_t)i * both->channels;
        if (!td_edge_blend_row(blend, &place, &both->old_rows[at],
                               &both->new_rows[at], &next->data[at]))
            next->refused++;
    }
}

// The user's function of them all; false if it gave nothing.
static bool blend_all(const td_edge_blend *blend, const td_edge_overlap *both,
                      td_edge_timeline *next)
{
    next->blended = blend->all(blend->user, both, next->data);
    if (next->blended != TD_OK) return false;
    for (uint32_t i = 0; i < both->rows; i++) {
        size_t at = (size_t)i * both->channels;
        if (!td_edge_blend_accept(blend, &both->new_rows[at], &next->data[at]))
            next->refused++;
    }
    return true;
}

// The steps that both know come first, then those of the chunk alone.
static void fill(const td_edge_timeline *old, const td_edge_chunk *chunk,
                 const td_edge_blend *blend, td_edge_timeline *next)
{
    uint32_t left = td_edge_timeline_left(old, next->first);
    td_edge_overlap both = {
        .first = next->first,
        .rows = left < next->rows ? left : next->rows,
        .channels = next->channels,
        .old_rows = td_edge_timeline_row(old, next->first),
        .new_rows = &chunk->data[(next->first - chunk->first) * next->channels],
    };
    if (!blend->all)
        blend_each(blend, &both, next);
    else if (both.rows > 0 && !blend_all(blend, &both, next))
        both.rows = 0;
    for (uint32_t i = both.rows; i < next->rows; i++) {
        size_t at = (size_t)i * next->channels;
        td_edge_blend_alone(blend, &both.new_rows[at], &next->data[at]);
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

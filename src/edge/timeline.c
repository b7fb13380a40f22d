// SPDX-License-Identifier: Apache-2.0
#include "edge/timeline.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

float td_edge_aggregate_share(td_edge_aggregate aggregate)
{
    static const float shares[] = {
        [TD_EDGE_WEIGHTED_AVERAGE] = 0.7F,
        [TD_EDGE_LATEST_ONLY] = 1.0F,
        [TD_EDGE_AVERAGE] = 0.5F,
        [TD_EDGE_CONSERVATIVE] = 0.3F,
    };
    return shares[aggregate];
}

static float blend_linear(float old, float new, float share)
{
    return (1.0F - share) * old + share * new;
}

// The shorter way round. An angle and a quaternion have more than one name for
// the same place; the result goes by the new one's, so that the blended rows
// join the rest of their chunk without a turn.
static float blend_angle(float old, float new, float share)
{
    double turn = remainder((double)new - (double)old, 2.0 * M_PI);
    return (float)((double)new - (1.0 - (double)share) * turn);
}

// Spherical interpolation along the shorter arc; the result has length 1.
static void blend_quaternion(const float *old, const float *new, float share,
                             float *ret)
{
    double dot = 0;
    for (int i = 0; i < 4; i++)
        dot += (double)old[i] * (double)new[i];
    double sign = dot < 0 ? -1.0 : 1.0;
    double angle = acos(fmin(fabs(dot), 1.0));
    double sine = sin(angle);
    double from = sine < 1e-6 ? 1.0 - share : sin((1.0 - share) * angle) / sine;
    double to = sine < 1e-6 ? share : sin(share * angle) / sine;
    double mixed[4];
    double length = 0;
    for (int i = 0; i < 4; i++) {
        mixed[i] = sign * from * (double)old[i] + to * (double)new[i];
        length += mixed[i] * mixed[i];
    }
    length = sqrt(length);
    for (int i = 0; i < 4; i++)
        ret[i] = length > 0 ? (float)(mixed[i] / length) : new[i];
}

static void blend_row(const td_edge_blend *blend, const float *old,
                      const float *new, float *ret)
{
    float share = td_edge_aggregate_share(blend->aggregate);
    for (uint32_t i = 0; i < blend->channels; i++) {
        switch (blend->kinds[i]) {
        case TD_WIRE_LINEAR:
            ret[i] = blend_linear(old[i], new[i], share);
            break;
        case TD_WIRE_ANGLE:
            ret[i] = blend_angle(old[i], new[i], share);
            break;
        case TD_WIRE_HOLD:
            ret[i] = new[i];
            break;
        case TD_WIRE_QUATERNION:
            blend_quaternion(&old[i], &new[i], share, &ret[i]);
            i += 3;
            break;
        }
    }
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

td_err td_edge_timeline_merge(const td_edge_timeline *old,
                              const td_edge_chunk *chunk, uint64_t cursor,
                              const td_edge_blend *blend,
                              td_edge_timeline **ret_timeline)
{
    assert(chunk->first <= cursor);
    uint64_t end = chunk->first + chunk->rows;
    if (end <= cursor) return TD_ERR_EMPTY;

    // Steps beyond the chunk's end are dropped though the old timeline knew
    // them: the newer chunk has seen more, and meant to stop there.
    td_edge_timeline *next = timeline_new(cursor, end, blend->channels);
    if (!next) return TD_ERR_NOMEM;
    next->generation = old ? old->generation + 1 : 1;

    for (uint64_t step = cursor; step < end; step++) {
        const float *before = td_edge_timeline_row(old, step);
        const float *after =
            &chunk->data[(step - chunk->first) * blend->channels];
        float *row = &next->data[(step - cursor) * blend->channels];
        if (before)
            blend_row(blend, before, after, row);
        else
            memcpy(row, after, blend->channels * sizeof(float));
    }
    *ret_timeline = next;
    return TD_OK;
}

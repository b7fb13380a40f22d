// SPDX-License-Identifier: Apache-2.0
#include "edge/report/trace.h"

#include "base/sync/cacheline.h"
#include "base/sync/ring.h"

#include <stdatomic.h>
#include <stdio.h>

// Records on their way from one thread to the session's. A ring that was full
// loses the newest: the reader learns how many, the writer goes on.
struct track {
    td_ring *ring;
    size_t item_bytes;
    size_t max;
    unsigned char *items; // this and the next three: session's own
    size_t count;
    size_t room;
    uint64_t past_max;
    TD_CACHELINE_ALIGNED _Atomic uint64_t dropped; // written by the pusher
};

struct td_edge_trace {
    struct track ticks, merges;
    uint32_t robot_channels;
    uint32_t channels;
    char names[TD_EDGE_TRACE_CHANNELS][TD_EDGE_TRACE_NAME_BYTES];
};

const td_edge_trace_config td_edge_trace_defaults = {
    .ring_ticks = 4096,
    .ring_merges = 1024,
    .max_ticks = 120000,
    .max_merges = 20000,
};

static td_err track_init(struct track *track, size_t ring_items, size_t max,
                         size_t item_bytes)
{
    track->max = max;
    track->item_bytes = item_bytes;
    return td_ring_new(ring_items, item_bytes, &track->ring);
}

static void track_done(struct track *track)
{
    if (track->ring) td_ring_free(track->ring);
    free(track->items);
}

static void track_push(struct track *track, const void *item)
{
    if (td_ring_push(track->ring, item) != TD_OK)
        atomic_fetch_add_explicit(&track->dropped, 1, memory_order_relaxed);
}

static bool has_room(struct track *track)
{
    if (track->count >= track->max) return false;
    if (track->count < track->room) return true;

    size_t room = track->room ? 2 * track->room : 1024;
    if (room > track->max) room = track->max;
    void *grown = reallocarray(track->items, room, track->item_bytes);
    if (!grown) return false;
    track->items = grown;
    track->room = room;
    return true;
}

// `item` is room for one.
static void track_drain(struct track *track, void *item)
{
    while (td_ring_pop(track->ring, item) == TD_OK) {
        if (has_room(track))
            memcpy(track->items + track->count++ * track->item_bytes, item,
                   track->item_bytes);
        else
            track->past_max++;
    }
}

static void name_channels(td_edge_trace *trace,
                          const td_edge_trace_config *config)
{
    trace->robot_channels = config->channels;
    trace->channels = config->channels < TD_EDGE_TRACE_CHANNELS
                          ? config->channels
                          : TD_EDGE_TRACE_CHANNELS;
    for (uint32_t i = 0; i < trace->channels; i++) {
        if (config->names)
            (void)snprintf(trace->names[i], sizeof trace->names[i], "%s",
                           config->names[i]);
        else
            (void)snprintf(trace->names[i], sizeof trace->names[i],
                           "channel %u", i);
    }
}

td_err td_edge_trace_new(const td_edge_trace_config *config,
                         td_edge_trace **ret_trace)
{
    TD_AUTO(td_edge_trace) *trace = td_cacheline_calloc(1, sizeof *trace);
    if (!trace) return TD_ERR_NOMEM;
    TD_TRY(track_init(&trace->ticks, config->ring_ticks, config->max_ticks,
                      sizeof(td_edge_traced_tick)));
    TD_TRY(track_init(&trace->merges, config->ring_merges, config->max_merges,
                      sizeof(td_edge_traced_merge)));
    name_channels(trace, config);

    *ret_trace = TD_TAKE(trace);
    return TD_OK;
}

void td_edge_trace_free(td_edge_trace *trace)
{
    track_done(&trace->ticks);
    track_done(&trace->merges);
    free(trace);
}

void td_edge_trace_tick(td_edge_trace *trace, const td_edge_traced_tick *tick)
{
    track_push(&trace->ticks, tick);
}

void td_edge_trace_merge(td_edge_trace *trace,
                         const td_edge_traced_merge *merge)
{
    track_push(&trace->merges, merge);
}

void td_edge_trace_drain(td_edge_trace *trace)
{
    td_edge_traced_tick tick;
    td_edge_traced_merge merge;
    track_drain(&trace->ticks, &tick);
    track_drain(&trace->merges, &merge);
}

static uint64_t dropped(const struct track *track)
{
    return atomic_load_explicit(&track->dropped, memory_order_relaxed);
}

td_edge_traced td_edge_trace_read(const td_edge_trace *trace)
{
    return (td_edge_traced){
        .ticks = (const void *)trace->ticks.items,
        .tick_count = trace->ticks.count,
        .merges = (const void *)trace->merges.items,
        .merge_count = trace->merges.count,
        .ticks_dropped = dropped(&trace->ticks),
        .merges_dropped = dropped(&trace->merges),
        .ticks_past_max = trace->ticks.past_max,
        .merges_past_max = trace->merges.past_max,
        .robot_channels = trace->robot_channels,
        .channels = trace->channels,
        .names = trace->names,
    };
}

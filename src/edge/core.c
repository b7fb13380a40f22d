// SPDX-License-Identifier: Apache-2.0
#include "edge/core.h"

#include <stdlib.h>
#include <string.h>

// The tick's own; others only read the atomics.
typedef struct tick_side {
    const td_edge_timeline *timeline; // seen last; NULL: none yet
    float command[TD_WIRE_MAX_CHANNELS];
    bool commanded;
    uint32_t empty_ticks; // in a row
    bool warned;
    uint64_t connection; // at the tick before
    int64_t asked_ns;
    _Atomic uint64_t asked; // the seq asked for last
    _Atomic uint64_t cursor;
    _Atomic uint64_t generation; // timelines before this one are done with
    _Atomic uint64_t ticks, fresh, starved;
    _Atomic uint32_t left;
} tick_side;

typedef struct merge_side {
    td_edge_timeline *current;
    td_edge_timeline *retired; // list, newest first; the tick may be on one
    td_edge_inflight inflight;
    uint64_t merged_seq;
    uint64_t merged;
    int64_t round_trip_ns; // the longest of late
    uint64_t strays[TD_EDGE_STRAY_COUNT];
} merge_side;

struct td_edge_core {
    td_edge_settings settings;
    td_edge_blend blend;
    tick_side tick;
    merge_side merge;
    // From merge to tick.
    _Atomic(const td_edge_timeline *) published;
    _Atomic uint64_t ended_seq; // the newest seq that has ended, however
    _Atomic int64_t resend_after_ns;
};

const char *td_edge_stray_name(td_edge_stray stray)
{
    static const char *const names[] = {
#define TD_EDGE_STRAY_NAME(name, text) text,
        TD_EDGE_STRAYS(TD_EDGE_STRAY_NAME)
#undef TD_EDGE_STRAY_NAME
    };
    return names[stray];
}

// A quaternion is four channels in a row.
static bool quaternions_are_whole(const td_edge_settings *settings)
{
    uint32_t run = 0;
    for (uint32_t i = 0; i < settings->channels; i++) {
        bool part = settings->kinds[i] == TD_WIRE_QUATERNION;
        if (!part && run % 4 != 0) return false;
        run = part ? run + 1 : 0;
    }
    return run % 4 == 0;
}

td_err td_edge_core_new(const td_edge_settings *settings,
                        td_edge_core **ret_core)
{
    if (settings->channels == 0 || settings->channels > TD_WIRE_MAX_CHANNELS ||
        settings->period_ns <= 0 || settings->actions_per_chunk == 0 ||
        !quaternions_are_whole(settings))
        return TD_ERR_INVALID;
    td_edge_core *core = calloc(1, sizeof *core);
    if (!core) return TD_ERR_NOMEM;
    core->settings = *settings;
    core->blend = (td_edge_blend){
        .aggregate = settings->aggregate,
        .channels = settings->channels,
        .kinds = core->settings.kinds,
    };
    core->resend_after_ns = settings->resend_max_ns;
    *ret_core = core;
    return TD_OK;
}

static void free_list(td_edge_timeline *timeline)
{
    while (timeline) {
        td_edge_timeline *next = timeline->retired;
        free(timeline);
        timeline = next;
    }
}

void td_edge_core_free(td_edge_core *core)
{
    free_list(core->merge.retired);
    free(core->merge.current);
    free(core);
}

// Moves to the newest timeline. Telling its generation frees those before it:
// the tick only ever moves forward.
static void take_timeline(td_edge_core *core)
{
    const td_edge_timeline *newest =
        atomic_load_explicit(&core->published, memory_order_acquire);
    if (newest == core->tick.timeline) return;
    core->tick.timeline = newest;
    atomic_store_explicit(&core->tick.generation, newest->generation,
                          memory_order_release);
}

static void play_row(td_edge_core *core, const float *row, td_edge_step *step)
{
    tick_side *tick = &core->tick;
    memcpy(tick->command, row, core->settings.channels * sizeof(float));
    tick->commanded = true;
    tick->empty_ticks = 0;
    step->fresh = true;
    step->recovered = tick->warned;
    tick->warned = false;
    atomic_fetch_add_explicit(&tick->cursor, 1, memory_order_release);
    atomic_fetch_add_explicit(&tick->fresh, 1, memory_order_relaxed);
}

// Before the first command there is nothing to hold, and nobody starves.
static void hold(td_edge_core *core, td_edge_step *step)
{
    tick_side *tick = &core->tick;
    if (!tick->commanded) return;
    step->starved = true;
    atomic_fetch_add_explicit(&tick->starved, 1, memory_order_relaxed);
    if (++tick->empty_ticks != core->settings.warn_after_empty_ticks) return;
    step->warn = true;
    tick->warned = true;
}

// A server that has just been found knows nothing of what was asked before.
static bool may_ask(const td_edge_core *core, int64_t now_ns,
                    uint64_t connection, uint64_t ended)
{
    const tick_side *tick = &core->tick;
    if (connection != tick->connection ||
        ended >= atomic_load_explicit(&tick->asked, memory_order_relaxed))
        return true;
    return now_ns - tick->asked_ns >=
           atomic_load_explicit(&core->resend_after_ns, memory_order_relaxed);
}

td_edge_step td_edge_core_tick(td_edge_core *core, int64_t now_ns,
                               uint64_t connection)
{
    tick_side *tick = &core->tick;
    td_edge_step step = {0};
    // Before the timeline: an answer that has ended has its rows in it.
    uint64_t ended =
        atomic_load_explicit(&core->ended_seq, memory_order_acquire);
    take_timeline(core);
    const float *row =
        td_edge_timeline_row(tick->timeline, td_edge_core_cursor(core));
    if (row)
        play_row(core, row, &step);
    else
        hold(core, &step);
    step.command = tick->commanded ? tick->command : NULL;
    step.left =
        td_edge_timeline_left(tick->timeline, td_edge_core_cursor(core));
    if (connection && step.left <= core->settings.ask_below_rows &&
        may_ask(core, now_ns, connection, ended)) {
        step.ask = true;
        step.must_go = step.left == 0;
        step.seq =
            atomic_fetch_add_explicit(&tick->asked, 1, memory_order_relaxed) +
            1;
        tick->asked_ns = now_ns;
    }
    tick->connection = connection;
    atomic_store_explicit(&tick->left, step.left, memory_order_relaxed);
    atomic_fetch_add_explicit(&tick->ticks, 1, memory_order_relaxed);
    return step;
}

uint64_t td_edge_core_cursor(const td_edge_core *core)
{
    return atomic_load_explicit(&core->tick.cursor, memory_order_acquire);
}

void td_edge_core_sent(td_edge_core *core, const td_edge_sent *sent)
{
    td_edge_inflight_send(&core->merge.inflight, sent);
}

// The tick may ask again once the newest has ended.
static void note_ended(td_edge_core *core, uint64_t seq)
{
    if (seq > atomic_load_explicit(&core->ended_seq, memory_order_relaxed))
        atomic_store_explicit(&core->ended_seq, seq, memory_order_release);
}

void td_edge_core_unsent(td_edge_core *core, uint64_t seq)
{
    td_edge_inflight_end(&core->merge.inflight, seq, TD_EDGE_UNSENT);
    note_ended(core, seq);
}

void td_edge_core_malformed(td_edge_core *core)
{
    core->merge.strays[TD_EDGE_STRAY_MALFORMED]++;
}

static bool is_stray(td_edge_core *core, const char *server,
                     const td_wire_action *action, td_edge_answer *answer)
{
    const td_edge_settings *own = &core->settings;
    const td_wire_ident *ident = &action->ident;
    if (!td_wire_text_is(action->server, server))
        answer->why_stray = TD_EDGE_STRAY_SERVER;
    else if (ident->boot != own->boot)
        answer->why_stray = TD_EDGE_STRAY_BOOT;
    else if (ident->route != own->route)
        answer->why_stray = TD_EDGE_STRAY_ROUTE;
    else if (ident->episode != own->episode)
        answer->why_stray = TD_EDGE_STRAY_EPISODE;
    else if (!td_edge_inflight_find(&core->merge.inflight, ident->seq,
                                    &answer->sent))
        answer->why_stray = TD_EDGE_STRAY_SEQ;
    else
        return false;
    answer->stray = true;
    core->merge.strays[answer->why_stray]++;
    return true;
}

static bool has_shape(const td_edge_core *core, const td_wire_tensor *actions)
{
    return actions->dtype == TD_WIRE_F32 && actions->rank == 2 &&
           actions->shape[0] > 0 &&
           actions->shape[1] == core->settings.channels;
}

// Where the chunk's rows lie. By time, as many rows are past as periods went by
// since the observation was sent; the first chunk is never trimmed so.
static td_edge_chunk place_chunk(const td_edge_core *core, int64_t now_ns,
                                 uint64_t cursor, const float *data,
                                 uint32_t rows, const td_edge_sent *sent)
{
    td_edge_chunk chunk = {.first = sent->cursor, .rows = rows, .data = data};
    if (core->settings.trim == TD_EDGE_TRIM_STEPS) return chunk;
    int64_t past = core->merge.merged == 0
                       ? 0
                       : (now_ns - sent->put_ns) / core->settings.period_ns;
    if (past < 0) past = 0;
    if (past > rows) past = rows;
    chunk.first = cursor;
    chunk.rows = rows - (uint32_t)past;
    chunk.data = data + (size_t)past * core->settings.channels;
    return chunk;
}

// The tick is on the timeline of its generation or already on a later one.
static void collect(td_edge_core *core)
{
    uint64_t generation =
        atomic_load_explicit(&core->tick.generation, memory_order_acquire);
    td_edge_timeline **link = &core->merge.retired;
    while (*link && (*link)->generation >= generation)
        link = &(*link)->retired;
    free_list(*link);
    *link = NULL;
}

static void publish(td_edge_core *core, td_edge_timeline *next)
{
    merge_side *merge = &core->merge;
    td_edge_timeline *old = merge->current;
    merge->current = next;
    atomic_store_explicit(&core->published, next, memory_order_release);
    if (old) {
        old->retired = merge->retired;
        merge->retired = old;
    }
    collect(core);
}

static td_err merge_chunk(td_edge_core *core, int64_t now_ns,
                          const td_wire_action *action, td_edge_answer *answer)
{
    uint32_t rows = action->actions.shape[0];
    if (rows > core->settings.actions_per_chunk)
        rows = core->settings.actions_per_chunk;
    size_t bytes = (size_t)rows * core->settings.channels * sizeof(float);
    float *data = malloc(bytes); // the wire's bytes may be unaligned
    if (!data) return TD_ERR_NOMEM;
    memcpy(data, action->actions.data, bytes);

    uint64_t cursor = td_edge_core_cursor(core);
    td_edge_chunk chunk =
        place_chunk(core, now_ns, cursor, data, rows, &answer->sent);
    td_edge_timeline *next = NULL;
    td_err err = td_edge_timeline_merge(core->merge.current, &chunk, cursor,
                                        &core->blend, &next);
    free(data);
    if (err == TD_ERR_EMPTY) {
        answer->outcome = TD_EDGE_EXPIRED;
        return TD_OK;
    }
    TD_TRY(err);
    answer->rows = next->rows;
    answer->outcome = TD_EDGE_MERGED;
    core->merge.merged_seq = action->ident.seq;
    core->merge.merged++;
    publish(core, next);
    return TD_OK;
}

static td_err settle(td_edge_core *core, int64_t now_ns,
                     const td_wire_action *action, td_edge_answer *answer)
{
    int64_t age_ns = now_ns - answer->sent.captured_ns;
    if (action->error_code.size > 0)
        answer->outcome = TD_EDGE_REFUSED;
    else if (!has_shape(core, &action->actions))
        answer->outcome = TD_EDGE_MISSHAPEN;
    else if (action->ident.seq < core->merge.merged_seq)
        answer->outcome = TD_EDGE_OVERTAKEN;
    else if (age_ns > core->settings.max_action_age_ns)
        answer->outcome = TD_EDGE_TOO_OLD;
    else
        return merge_chunk(core, now_ns, action, answer);
    return TD_OK;
}

// A longer round trip counts at once, a shorter one little by little.
static void learn_round_trip(td_edge_core *core, int64_t took_ns)
{
    const td_edge_settings *settings = &core->settings;
    int64_t *usual_ns = &core->merge.round_trip_ns;
    *usual_ns -= *usual_ns / 16;
    if (took_ns > *usual_ns) *usual_ns = took_ns;
    int64_t after_ns = 3 * *usual_ns;
    if (after_ns > settings->resend_max_ns) after_ns = settings->resend_max_ns;
    if (after_ns < settings->resend_min_ns) after_ns = settings->resend_min_ns;
    atomic_store_explicit(&core->resend_after_ns, after_ns,
                          memory_order_relaxed);
}

// The seqs that the server let go end here too, and the tick may ask again.
td_err td_edge_core_answer(td_edge_core *core, int64_t now_ns,
                           const char *server, const td_wire_action *action,
                           td_edge_answer *ret_answer)
{
    td_edge_answer answer = {0};
    if (!is_stray(core, server, action, &answer)) {
        TD_TRY(settle(core, now_ns, action, &answer));
        td_edge_inflight *inflight = &core->merge.inflight;
        td_edge_inflight_end(inflight, action->ident.seq, answer.outcome);
        learn_round_trip(core, now_ns - answer.sent.put_ns);
        for (uint32_t i = 0; i < action->superseded_count; i++)
            td_edge_inflight_end(inflight, action->superseded[i],
                                 TD_EDGE_SUPERSEDED);
        note_ended(core, action->ident.seq);
    }
    *ret_answer = answer;
    return TD_OK;
}

void td_edge_core_counts(const td_edge_core *core, td_edge_counts *ret_counts)
{
    const tick_side *tick = &core->tick;
    const merge_side *merge = &core->merge;
    *ret_counts = (td_edge_counts){
        .ticks = atomic_load_explicit(&tick->ticks, memory_order_relaxed),
        .fresh = atomic_load_explicit(&tick->fresh, memory_order_relaxed),
        .starved = atomic_load_explicit(&tick->starved, memory_order_relaxed),
        .asked = atomic_load_explicit(&tick->asked, memory_order_relaxed),
        .left = atomic_load_explicit(&tick->left, memory_order_relaxed),
        .sent = merge->inflight.sent,
    };
    memcpy(ret_counts->outcomes, merge->inflight.outcomes,
           sizeof ret_counts->outcomes);
    memcpy(ret_counts->strays, merge->strays, sizeof ret_counts->strays);
}

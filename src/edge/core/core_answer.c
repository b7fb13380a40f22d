// SPDX-License-Identifier: Apache-2.0
// The core's merge thread: what was sent, what an answer is worth, the next
// timeline.
//
// An observation that is sent is entered into the ring of what is in flight,
// and leaves it with exactly one outcome. The newest seq that has ended, and
// the newest that was never sent, reach the tick in atomics; by them it
// knows that it may ask again.
//
// An answer passes in three steps. Begin: is it an answer to something that is
// in flight, from this server, in this boot, route and episode (else it is a
// stray), and is it worth joining (no error, the right shape, finite, newer
// than the last, not too old). Blend: its rows are placed on the cursor's axis,
// those that are past are trimmed, and the next timeline is built; a user's
// aggregation runs in there. End: the timeline is published with one atomic
// store, latencies are learnt, and the ring is updated. A new episode may begin
// between blend and end; then the answer is a stray after all.
//
// An old timeline is retired, not freed: the tick may still be on it. It goes
// when the tick has reported a later generation and no blend holds it.
//
// Lock: none here. All but the blend is called under the link's lock
// (session/link.c), or by a single thread in the simulator and in tests.
#include "base/finite.h"
#include "edge/core/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void td_edge_core_advise(td_edge_core *core)
{
    const td_edge_core_merge_state *merge = &core->merge;
    const td_edge_ask_measured measured = {merge->chunk_rows, &merge->waits,
                                           &merge->trips, merge->serial};
    td_edge_ask_advice advice =
        td_edge_ask_advise(&core->settings.ask, &measured);
    atomic_store_explicit(&core->below_rows, advice.below_rows,
                          memory_order_relaxed);
    atomic_store_explicit(&core->most_unanswered, advice.most,
                          memory_order_relaxed);
    atomic_store_explicit(&core->apart_ns, advice.apart_ns,
                          memory_order_relaxed);
    atomic_store_explicit(&core->resend_after_ns, advice.resend_after_ns,
                          memory_order_relaxed);
}

void td_edge_core_connected(td_edge_core *core)
{
    td_edge_latency_reconnect(&core->merge.waits);
    td_edge_latency_reconnect(&core->merge.trips);
    core->merge.serial = false;
    atomic_store_explicit(&core->refusals, 0, memory_order_relaxed);
    td_edge_core_advise(core);
}

// The tick may ask again once the newest has ended.
static void note_ended(td_edge_core *core, uint64_t seq)
{
    if (seq > atomic_load_explicit(&core->ended_seq, memory_order_relaxed))
        atomic_store_explicit(&core->ended_seq, seq, memory_order_release);
}

bool td_edge_core_sent(td_edge_core *core, const td_edge_sent *sent)
{
    td_edge_inflight_send(&core->merge.inflight, sent);
    if (sent->episode == td_edge_core_episode(core)) return true;
    td_edge_inflight_end(&core->merge.inflight, sent->seq, TD_EDGE_RESET);
    note_ended(core, sent->seq);
    return false;
}

static void note_refusal(td_edge_core *core)
{
    atomic_fetch_add_explicit(&core->refusals, 1, memory_order_relaxed);
}

void td_edge_core_skipped(td_edge_core *core, uint64_t seq, td_edge_skip why)
{
    core->merge.skipped[why]++;
    if (why == TD_EDGE_SKIP_FAILED) note_refusal(core);
    atomic_store_explicit(&core->skipped_seq, seq, memory_order_release);
}

void td_edge_core_unsent(td_edge_core *core, uint64_t seq)
{
    td_edge_inflight_end(&core->merge.inflight, seq, TD_EDGE_UNSENT);
    note_refusal(core);
    note_ended(core, seq);
}

void td_edge_core_malformed(td_edge_core *core)
{
    core->merge.strays[TD_EDGE_STRAY_MALFORMED]++;
}

static bool is_stray(td_edge_core *core, const char *server,
                     const td_wire_action *action, td_edge_answer *answer)
{
    const td_edge_core_settings *own = &core->settings;
    const td_wire_ident *ident = &action->ident;
    if (!td_wire_text_is(action->server, server))
        answer->why_stray = TD_EDGE_STRAY_SERVER;
    else if (ident->boot != own->boot)
        answer->why_stray = TD_EDGE_STRAY_BOOT;
    else if (ident->route != own->route)
        answer->why_stray = TD_EDGE_STRAY_ROUTE;
    else if (ident->episode != td_edge_core_episode(core))
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

static bool is_finite(const td_wire_tensor *actions)
{
    return td_finite_f32(actions->data, actions->size / sizeof(float));
}

// Where the chunk's rows lie. By time, as many rows are past as periods went by
// since the observation was sent; the first chunk is never trimmed so.
static td_edge_chunk place_chunk(const td_edge_core *core, int64_t now_ns,
                                 uint64_t cursor, const float *data,
                                 uint32_t rows, const td_edge_sent *sent)
{
    td_edge_chunk chunk = {.first = sent->cursor, .rows = rows, .data = data};
    if (core->settings.trim == TD_EDGE_TRIM_STEPS) return chunk;
    int64_t past = core->merge.merged_seq == 0
                       ? 0
                       : (now_ns - sent->put_ns) / core->settings.period_ns;
    if (past < 0) past = 0;
    if (past > rows) past = rows;
    chunk.first = cursor;
    chunk.past = (uint32_t)past;
    chunk.rows = rows - chunk.past;
    chunk.data = data + (size_t)past * core->settings.channels;
    return chunk;
}

// The tick is on the timeline of its generation or already on a later one.
static void collect(td_edge_core *core)
{
    const td_edge_timeline *blending = core->merge.blending;
    uint64_t generation =
        atomic_load_explicit(&core->tick.generation, memory_order_acquire);
    if (blending && blending->generation < generation)
        generation = blending->generation;
    td_edge_timeline **link = &core->merge.retired;
    while (*link && (*link)->generation >= generation)
        link = &(*link)->retired;
    td_edge_timeline_free_list(*link);
    *link = NULL;
}

static void publish(td_edge_core *core, td_edge_timeline *next)
{
    td_edge_core_merge_state *merge = &core->merge;
    td_edge_timeline *old = merge->current;
    merge->current = next;
    atomic_store_explicit(&core->published, next, memory_order_release);
    if (old) {
        old->retired = merge->retired;
        merge->retired = old;
    }
    collect(core);
}

// Nothing is to come, in the same numbers as before.
td_err td_edge_core_reset(td_edge_core *core)
{
    td_edge_core_merge_state *merge = &core->merge;
    td_edge_timeline *none = calloc(1, sizeof *none);
    if (!none) return TD_ERR_NOMEM;
    none->generation = merge->current ? merge->current->generation + 1 : 1;
    none->first = td_edge_core_cursor(core);
    none->channels = core->settings.channels;
    atomic_fetch_add_explicit(&core->episode, 1, memory_order_release);
    td_edge_inflight_end_all(&merge->inflight, TD_EDGE_RESET);
    publish(core, none);
    note_ended(core,
               atomic_load_explicit(&core->tick.asked, memory_order_relaxed));
    return TD_OK;
}

// How many of the rows to come were known before.
static uint32_t overlap(const td_edge_timeline *old,
                        const td_edge_timeline *next)
{
    uint32_t known = td_edge_timeline_left(old, next->first);
    return known < next->rows ? known : next->rows;
}

// How many rows of a chunk are used.
static uint32_t rows_used(const td_edge_core *core,
                          const td_wire_tensor *actions)
{
    uint32_t rows = actions->shape[0];
    uint32_t most = core->settings.actions_per_chunk;
    return rows < most ? rows : most;
}

static void note_merged(td_edge_core *core, const td_wire_action *action,
                        const td_edge_chunk *chunk, td_edge_timeline *next,
                        td_edge_answer *answer)
{
    td_edge_core_merge_state *merge = &core->merge;
    answer->outcome = TD_EDGE_MERGED;
    answer->first = next->first;
    answer->rows = next->rows;
    answer->overlap_rows = overlap(merge->current, next);
    next->captured_ns = answer->sent.captured_ns;
    next->seq = action->ident.seq;
    next->chunk_first = chunk->first - chunk->past;
    merge->blends_refused += next->refused;
    if (next->blended == TD_ERR_TIMEOUT)
        merge->aggregate_late++;
    else if (next->blended != TD_OK)
        merge->aggregate_failed++;
    merge->merged_seq = action->ident.seq;
    merge->chunk_rows = rows_used(core, &action->actions);
}

// Whether its rows are to be joined; if not, why.
static bool is_useful(const td_edge_core *core, int64_t now_ns,
                      const td_wire_action *action, td_edge_answer *answer)
{
    int64_t age_ns = now_ns - answer->sent.captured_ns;
    if (action->error_code.size > 0)
        answer->outcome = TD_EDGE_REFUSED;
    else if (!has_shape(core, &action->actions))
        answer->outcome = TD_EDGE_MISSHAPEN;
    else if (!is_finite(&action->actions))
        answer->outcome = TD_EDGE_NOT_FINITE;
    else if (action->ident.seq < core->merge.merged_seq)
        answer->outcome = TD_EDGE_OVERTAKEN;
    else if (age_ns > core->settings.max_action_age_ns)
        answer->outcome = TD_EDGE_TOO_OLD;
    else
        return true;
    return false;
}

// How long an observation waited at the server for one of its own: as long as
// it waited there, and the answer before it had not come.
static int64_t age_of_original(td_edge_core *core, const td_wire_action *action,
                               const td_edge_sent *sent)
{
    td_edge_core_merge_state *merge = &core->merge;
    double queued_ns = 1e6 * (double)action->queue_time_ms;
    double shared_ns = (double)(merge->answered_ns - sent->put_ns);
    double behind_ns = fmin(queued_ns, shared_ns);
    if (behind_ns < (double)core->settings.period_ns) return 0;
    merge->serial = true;
    return (int64_t)behind_ns;
}

// Of an answer that was asked for twice nobody knows which of the two it is the
// answer to, and a word without pictures is quicker than an observation.
static bool has_trip(const td_edge_sent *sent)
{
    return !sent->repeated && sent->again == 0;
}

// That nothing is kept of what a robot asked for again is no fault of either:
// it observes instead, at once.
static bool is_refusal(const td_edge_answer *answer)
{
    return (answer->outcome == TD_EDGE_REFUSED && answer->sent.again == 0) ||
           answer->outcome == TD_EDGE_MISSHAPEN ||
           answer->outcome == TD_EDGE_NOT_FINITE;
}

// Every answer has a round trip; what `auto` guards against is the wait for a
// chunk, resends included.
static void learn(td_edge_core *core, int64_t now_ns, uint64_t merged_before,
                  const td_wire_action *action, const td_edge_answer *answer)
{
    td_edge_core_merge_state *merge = &core->merge;
    const td_edge_sent *sent = &answer->sent;
    int64_t behind_ns = age_of_original(core, action, sent);
    if (has_trip(sent))
        (void)td_edge_latency_add(&merge->trips, now_ns - sent->put_ns);
    merge->answered_ns = now_ns;
    if (answer->outcome == TD_EDGE_MERGED) {
        int64_t since_ns = td_edge_inflight_oldest(
            &merge->inflight, merged_before, sent->seq, sent->captured_ns);
        (void)td_edge_latency_add(&merge->waits, now_ns - since_ns - behind_ns);
        atomic_store_explicit(&core->refusals, 0, memory_order_relaxed);
    } else if (is_refusal(answer)) {
        note_refusal(core);
    }
    td_edge_core_advise(core);
}

void td_edge_core_answer_begin(td_edge_core *core, int64_t now_ns,
                               const char *server, const td_wire_action *action,
                               td_edge_merge_job *ret_job)
{
    td_edge_merge_job job = {.action = action, .now_ns = now_ns};
    if (!is_stray(core, server, action, &job.answer))
        job.useful = is_useful(core, now_ns, action, &job.answer);
    core->merge.blending = core->merge.current;
    *ret_job = job;
}

// `merged`, `blending` and what it points to are the merge thread's alone, or
// stay as they are until the answer ends.
td_err td_edge_core_answer_blend(const td_edge_core *core,
                                 td_edge_merge_job *job)
{
    if (!job->useful) return TD_OK;
    const td_wire_tensor *actions = &job->action->actions;
    uint32_t rows = rows_used(core, actions);
    size_t bytes = (size_t)rows * core->settings.channels * sizeof(float);
    float *data = malloc(bytes); // the wire's bytes may be unaligned
    if (!data) return TD_ERR_NOMEM;
    memcpy(data, actions->data, bytes);

    uint64_t cursor = td_edge_core_cursor(core);
    job->chunk =
        place_chunk(core, job->now_ns, cursor, data, rows, &job->answer.sent);
    td_err err = td_edge_timeline_merge(core->merge.blending, &job->chunk,
                                        cursor, &core->blend, &job->next);
    free(data);
    if (err != TD_ERR_EMPTY) return err;
    job->answer.outcome = TD_EDGE_EXPIRED;
    return TD_OK;
}

static void end_superseded(td_edge_core *core, uint64_t seq)
{
    td_edge_inflight_end(&core->merge.inflight, seq, TD_EDGE_SUPERSEDED);
    note_ended(core, seq);
}

// The seqs that the server let go end here too, and the tick may ask again.
static void end_all_superseded(td_edge_core *core, const td_wire_action *action)
{
    for (uint32_t i = 0; i < action->superseded_count; i++)
        end_superseded(core, action->superseded[i]);
}

// The answer was only late, and has come once before: whoever asked for it
// again has had it.
static void end_askers(td_edge_core *core, const td_wire_action *action)
{
    td_edge_sent asker;
    for (uint32_t i = 0; i < action->superseded_count; i++)
        if (td_edge_inflight_find(&core->merge.inflight, action->superseded[i],
                                  &asker) &&
            asker.again > 0 && asker.again == action->ident.seq)
            end_superseded(core, asker.seq);
}

// Where nothing is kept of what it asked for again it may as well not have been
// sent: an observation goes instead.
static void note_answered(td_edge_core *core, const td_edge_answer *answer)
{
    const td_edge_sent *sent = &answer->sent;
    if (answer->outcome == TD_EDGE_REFUSED && sent->again > 0)
        atomic_store_explicit(&core->skipped_seq, sent->seq,
                              memory_order_release);
    else
        note_ended(core, sent->seq);
}

// A new episode may have begun meanwhile, and has ended all that was on its
// way.
static bool is_over(td_edge_core *core, td_edge_merge_job *job)
{
    td_edge_answer *answer = &job->answer;
    if (answer->stray && answer->why_stray == TD_EDGE_STRAY_SEQ)
        end_askers(core, job->action);
    if (answer->stray) return true;
    if (job->action->ident.episode == td_edge_core_episode(core)) return false;
    answer->stray = true;
    answer->why_stray = TD_EDGE_STRAY_EPISODE;
    core->merge.strays[TD_EDGE_STRAY_EPISODE]++;
    free(TD_TAKE(job->next));
    return true;
}

td_edge_answer td_edge_core_answer_end(td_edge_core *core,
                                       td_edge_merge_job *job)
{
    const td_wire_action *action = job->action;
    uint64_t merged_before = core->merge.merged_seq;
    core->merge.blending = NULL;
    if (is_over(core, job)) return job->answer;
    if (job->next) {
        note_merged(core, action, &job->chunk, job->next, &job->answer);
        publish(core, TD_TAKE(job->next));
    }
    learn(core, job->now_ns, merged_before, action, &job->answer);
    td_edge_inflight_end(&core->merge.inflight, action->ident.seq,
                         job->answer.outcome);
    end_all_superseded(core, action);
    note_answered(core, &job->answer);
    return job->answer;
}

td_err td_edge_core_answer(td_edge_core *core, int64_t now_ns,
                           const char *server, const td_wire_action *action,
                           td_edge_answer *ret_answer)
{
    td_edge_merge_job job;
    td_edge_core_answer_begin(core, now_ns, server, action, &job);
    TD_TRY(td_edge_core_answer_blend(core, &job));
    *ret_answer = td_edge_core_answer_end(core, &job);
    return TD_OK;
}

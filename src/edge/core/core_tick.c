// SPDX-License-Identifier: Apache-2.0
// The core's tick thread: what to play, through the gate, and whether to ask.
//
// One tick: take the newest timeline; see whether the robot must stop (its
// driver is down, or limits were hit too many steps in a row); else follow the
// timeline from the row before to the row of the cursor, substep by substep;
// where there is no row, or it must stop, the fail-safe says what is wanted.
// Either way the wanted values pass the gate and become the command. Then the
// ask machine (pacing/ask.h) decides whether an observation is due.
//
// The cursor counts rows that were begun. It moves here and nowhere else.
//
// No lock, no allocation, no wait. What comes from the merge thread is read
// from atomics: first the newest seq that has ended, then the timeline, so that
// an answer that counts as ended has its rows in what is played. What others
// read, counters, cursor and generation, is atomic too.
#include "edge/core/internal.h"

#include <string.h>

static void bump(_Atomic uint64_t *count)
{
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
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

static size_t row_bytes(const td_edge_core *core)
{
    return core->settings.channels * sizeof(float);
}

// The gate leads from where the robot is: at the start, and after its driver
// was away, when anything may have moved it.
static void start_gate(td_edge_core *core, const td_edge_core_input *seen)
{
    td_edge_core_tick_state *tick = &core->tick;
    if (seen->driver_down) {
        tick->down_ns = seen->now_ns;
        tick->restart = true;
        return;
    }
    if (tick->gate.started && !tick->restart) return;
    if (!seen->reading || (tick->restart && seen->read_ns <= tick->down_ns))
        return;
    if (td_edge_gate_start(&tick->gate, seen->reading) == TD_OK)
        tick->restart = false;
}

// What the limits stopped goes on when the robot has come to rest and a newer
// chunk is there.
static bool limits_are_over(const td_edge_core_tick_state *tick)
{
    return tick->gate.consecutive == 0 &&
           tick->timeline->generation > tick->limited_generation;
}

// Once a policy step, so that it does not depend on the control rate; what the
// fail-safe's own commands meet does not count.
static void count_limited_steps(td_edge_core *core)
{
    td_edge_core_tick_state *tick = &core->tick;
    if (tick->substep != core->settings.substeps) return;
    bool limited =
        tick->step_limited && tick->reason == TD_EDGE_FAILSAFE_FOR_NONE;
    tick->limited_steps = limited ? tick->limited_steps + 1 : 0;
    tick->step_limited = false;
}

static td_edge_failsafe_reason must_stop(td_edge_core *core,
                                         const td_edge_core_input *seen)
{
    td_edge_core_tick_state *tick = &core->tick;
    if (seen->driver_down || tick->restart) return TD_EDGE_FAILSAFE_FOR_DRIVER;
    if (tick->reason == TD_EDGE_FAILSAFE_FOR_LIMITS && !limits_are_over(tick))
        return TD_EDGE_FAILSAFE_FOR_LIMITS;
    if (tick->limited_steps >= core->settings.max_limit_hits) {
        tick->limited_generation = tick->timeline->generation;
        return TD_EDGE_FAILSAFE_FOR_LIMITS;
    }
    return TD_EDGE_FAILSAFE_FOR_NONE;
}

// Where the way to the next row begins: at the row before, or where the
// fail-safe has led meanwhile.
static const float *start_of_way(const td_edge_core_tick_state *tick,
                                 const float *row)
{
    if (!tick->began) return row;
    return tick->reason == TD_EDGE_FAILSAFE_FOR_NONE ? tick->to : tick->command;
}

// Takes the row of the cursor as the next to go to. False: there is none.
static bool begin_row(td_edge_core *core)
{
    td_edge_core_tick_state *tick = &core->tick;
    uint64_t cursor = td_edge_core_cursor(core);
    const float *row = td_edge_timeline_row(tick->timeline, cursor);
    if (!row) return false;
    tick->chunk = tick->timeline->seq;
    tick->chunk_row = cursor - tick->timeline->chunk_first;
    memcpy(tick->from, start_of_way(tick, row), row_bytes(core));
    memcpy(tick->to, row, row_bytes(core));
    tick->began = true;
    tick->substep = 0;
    atomic_fetch_add_explicit(&tick->cursor, 1, memory_order_release);
    return true;
}

// The policy's command of this tick, between two of its rows.
static bool follow(td_edge_core *core)
{
    td_edge_core_tick_state *tick = &core->tick;
    uint32_t substeps = core->settings.substeps;
    if (tick->substep == substeps && !begin_row(core)) return false;
    td_edge_blend_between(core->settings.kinds, core->settings.channels,
                          tick->from, tick->to, ++tick->substep, substeps,
                          tick->wanted);
    return true;
}

// Before the first row there is nothing to hold, and nobody starves.
static td_edge_failsafe_reason choose(td_edge_core *core,
                                      const td_edge_core_input *seen)
{
    td_edge_core_tick_state *tick = &core->tick;
    count_limited_steps(core);
    td_edge_failsafe_reason reason = must_stop(core, seen);
    if (reason == TD_EDGE_FAILSAFE_FOR_NONE && tick->gate.started &&
        !follow(core) && tick->began)
        reason = TD_EDGE_FAILSAFE_FOR_STARVED;
    if (reason != TD_EDGE_FAILSAFE_FOR_NONE && tick->gate.started)
        td_edge_failsafe_row(&tick->failsafe, &tick->gate,
                             tick->began ? tick->to : NULL, tick->wanted);
    return reason;
}

static void note_fresh(td_edge_core *core, int64_t now_ns, td_edge_step *step)
{
    td_edge_core_tick_state *tick = &core->tick;
    step->fresh = true;
    step->age_ns = now_ns - tick->timeline->captured_ns;
    step->substep = tick->substep;
    step->chunk = tick->chunk;
    step->chunk_row = tick->chunk_row;
    atomic_store_explicit(&tick->warned, false, memory_order_relaxed);
    tick->empty_ticks = 0;
    bump(&tick->fresh);
}

static void note_stop(td_edge_core *core, td_edge_step *step)
{
    td_edge_core_tick_state *tick = &core->tick;
    bump(&tick->failsafes[step->failsafe]);
    step->starved = step->failsafe == TD_EDGE_FAILSAFE_FOR_STARVED;
    if (!step->starved) return;
    bump(&tick->starved);
    if (++tick->empty_ticks != core->settings.warn_after_empty_ticks) return;
    bump(&tick->warnings);
    atomic_store_explicit(&tick->warned, true, memory_order_relaxed);
}

static void pass_gate(td_edge_core_tick_state *tick, td_edge_step *step)
{
    if (td_edge_gate_pass(&tick->gate, tick->wanted, tick->command,
                          &tick->hits) != TD_OK)
        return; // not started, and nothing is commanded
    for (int i = 0; i < TD_EDGE_GATE_LIMIT_COUNT; i++)
        if (tick->hits.count[i] > 0) bump(&tick->limited[i]);
    if (step->fresh && tick->hits.consecutive > 0) tick->step_limited = true;
    step->command = tick->command;
    step->wanted = tick->wanted;
    step->hits = &tick->hits;
}

static void play(td_edge_core *core, const td_edge_core_input *seen,
                 td_edge_step *step)
{
    td_edge_core_tick_state *tick = &core->tick;
    start_gate(core, seen);
    step->failsafe = choose(core, seen);
    if (step->failsafe != TD_EDGE_FAILSAFE_FOR_NONE)
        note_stop(core, step);
    else if (tick->gate.started && tick->began)
        note_fresh(core, seen->now_ns, step);
    if (tick->began) pass_gate(tick, step);
    tick->reason = step->failsafe;
}

// A robot that was stopped needs a new chunk, whatever is left of the old one.
static uint32_t left_to_play(const td_edge_core_tick_state *tick, uint32_t left)
{
    bool stopped = tick->reason == TD_EDGE_FAILSAFE_FOR_LIMITS ||
                   tick->reason == TD_EDGE_FAILSAFE_FOR_DRIVER;
    return stopped ? 0 : left;
}

static void ask(td_edge_core *core, const td_edge_core_input *seen,
                uint64_t ended_seq, td_edge_step *step)
{
    td_edge_core_tick_state *tick = &core->tick;
    const td_edge_ask_input view = {
        .now_ns = seen->now_ns,
        .connection = seen->connection,
        .left = left_to_play(tick, step->left),
        .ended_seq = ended_seq,
        .skipped_seq =
            atomic_load_explicit(&core->skipped_seq, memory_order_acquire),
        .refusals = atomic_load_explicit(&core->refusals, memory_order_relaxed),
    };
    const td_edge_ask_advice advice = {
        .below_rows =
            atomic_load_explicit(&core->below_rows, memory_order_relaxed),
        .most =
            atomic_load_explicit(&core->most_unanswered, memory_order_relaxed),
        .apart_ns = atomic_load_explicit(&core->apart_ns, memory_order_relaxed),
        .resend_after_ns =
            atomic_load_explicit(&core->resend_after_ns, memory_order_relaxed),
    };
    td_edge_ask_decision decision =
        td_edge_ask_decide(&tick->ask, &view, &advice);
    if (!decision.ask) return;
    step->ask = true;
    step->seq = decision.seq;
    step->again = decision.again;
    if (decision.again > 0) bump(&tick->asked_again);
    step->must_go = decision.must_go || decision.resend;
    atomic_store_explicit(&tick->asked, decision.seq, memory_order_relaxed);
}

td_edge_step td_edge_core_tick(td_edge_core *core,
                               const td_edge_core_input *seen)
{
    td_edge_core_tick_state *tick = &core->tick;
    td_edge_step step = {0};
    // Before the timeline: an answer that has ended has its rows in it.
    uint64_t ended_seq =
        atomic_load_explicit(&core->ended_seq, memory_order_acquire);
    take_timeline(core);
    play(core, seen, &step);
    step.left =
        td_edge_timeline_left(tick->timeline, td_edge_core_cursor(core));
    ask(core, seen, ended_seq, &step);
    atomic_store_explicit(&tick->left, step.left, memory_order_relaxed);
    bump(&tick->ticks);
    return step;
}

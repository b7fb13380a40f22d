// SPDX-License-Identifier: Apache-2.0
// The tick, on a thread of its own or on that of a host that owns its loop.
// Nothing that it calls blocks, allocates or takes a lock: it exchanges slots
// and signals events.
#include "edge/shell.h"

#include <math.h>
#include <string.h>

#define STACK_BYTES ((size_t)64 << 10)

static td_edge_request request_of(const td_edge_step *step)
{
    return (td_edge_request){
        .seq = step->seq,
        .left = step->left,
        .must_go = step->must_go,
        .again = step->again,
    };
}

static void ask(td_edge *edge, const td_edge_step *step)
{
    td_edge_request *request = td_slot_back(edge->requests);
    *request = request_of(step);
    if (td_slot_publish(edge->requests))
        atomic_fetch_add_explicit(&edge->outbox_replaced, 1,
                                  memory_order_relaxed);
    if (step->again > 0) return; // no images
    atomic_store_explicit(&edge->asked_seq, step->seq, memory_order_release);
    // It makes the images while the driver reads.
    td_event_signal(&edge->publisher_wake);
}

static void command(td_edge *edge, const float *values)
{
    td_edge_command *back = td_slot_back(edge->commands);
    memcpy(back->values, values, edge->config.core.channels * sizeof(float));
    (void)td_slot_publish(edge->commands);
}

static td_edge_tick_input look(td_edge *edge, int64_t now_ns)
{
    (void)td_slot_refresh(edge->readings);
    const td_edge_reading *reading = td_slot_front(edge->readings);
    int64_t driven_ns =
        atomic_load_explicit(&edge->driven_ns, memory_order_acquire);
    return (td_edge_tick_input){
        .now_ns = now_ns,
        .connection =
            atomic_load_explicit(&edge->connection, memory_order_acquire),
        .reading = reading->read_ns > 0 ? reading->values : NULL,
        .read_ns = reading->read_ns,
        .driver_down = now_ns - driven_ns > edge->config.driver_limit_ns,
    };
}

static void trace(td_edge *edge, int64_t now_ns, int64_t lateness_ns,
                  const td_edge_step *step)
{
    td_edge_traced_tick tick = {
        .now_ns = now_ns,
        .lateness_ns = lateness_ns,
        .select_ns = td_clock_now_ns(&td_clock_monotonic) - now_ns,
        .cursor = td_edge_core_cursor(edge->core),
        .asked_seq = step->seq,
        .left = step->left,
        .asked = step->ask,
        .fresh = step->fresh,
        .held = step->command && !step->fresh,
        .starved = step->starved,
    };
    uint32_t channels = edge->config.core.channels;
    for (uint32_t i = 0; i < TD_EDGE_TRACE_CHANNELS && i < channels; i++) {
        tick.wanted[i] = step->fresh ? step->wanted[i] : NAN;
        if (!step->command) continue;
        tick.commanded[i] = step->command[i];
        if (step->hits->channel[i]) tick.limited |= (uint8_t)(1U << i);
    }
    tick.clamped = step->command && step->hits->consecutive > 0;
    td_edge_trace_tick(edge->config.trace, &tick);
}

// `policy_state` is what the policy is told, or NULL.
static void record(td_edge *edge, const td_edge_tick_input *seen,
                   const float *policy_state, const td_edge_step *step)
{
    const td_edge_rows_tick tick = {
        .now_ns = seen->now_ns,
        .missed = edge->skipped_ticks,
        .episode = td_edge_core_episode(edge->core),
        .state =
            edge->config.core.policy_states > 0 ? policy_state : seen->reading,
        .step = step,
    };
    edge->skipped_ticks = 0;
    td_edge_recorder_tick(edge->recorder, &tick);
}

static td_edge_step decide(td_edge *edge, const td_edge_tick_input *seen,
                           int64_t lateness_ns)
{
    td_edge_step step = td_edge_core_tick(edge->core, seen);
    td_hist_record(&edge->lateness_ns, lateness_ns);
    if (edge->config.trace) trace(edge, seen->now_ns, lateness_ns, &step);
    if (step.fresh) td_hist_record(&edge->age_ns, step.age_ns);
    return step;
}

static void tick_once(td_edge *edge, int64_t now_ns, int64_t lateness_ns)
{
    td_edge_tick_input seen = look(edge, now_ns);
    td_edge_step step = decide(edge, &seen, lateness_ns);
    const td_edge_reading *reading = td_slot_front(edge->readings);
    if (edge->recorder)
        record(edge, &seen,
               reading->has_policy_state ? reading->policy_state : NULL, &step);
    if (step.command) command(edge, step.command);
    if (step.ask) ask(edge, &step);
    td_event_signal(&edge->driver_wake);
}

int64_t td_edge_control_period_ns(const td_edge *edge)
{
    return edge->config.core.period_ns / edge->config.core.substeps;
}

// Counts the whole periods that went by while a tick was late.
static int64_t note_missed(td_edge *edge, int64_t lateness_ns)
{
    int64_t missed = lateness_ns / td_edge_control_period_ns(edge);
    if (missed > 0)
        atomic_fetch_add_explicit(&edge->missed_ticks, (uint64_t)missed,
                                  memory_order_relaxed);
    edge->skipped_ticks = missed > UINT32_MAX ? UINT32_MAX : (uint32_t)missed;
    return missed;
}

// A late tick is played at once; periods that it missed are not made up for,
// since the cursor counts steps and not time.
static int64_t next_due(td_edge *edge, int64_t due_ns, int64_t now_ns)
{
    int64_t missed = note_missed(edge, now_ns - due_ns);
    return due_ns + (missed + 1) * td_edge_control_period_ns(edge);
}

void td_edge_tick_run(void *user)
{
    td_edge *edge = user;
    td_thread_prefault_stack(STACK_BYTES);
    int64_t due_ns =
        td_clock_now_ns(&td_clock_monotonic) + td_edge_control_period_ns(edge);
    while (!atomic_load_explicit(&edge->stop_threads, memory_order_relaxed)) {
        td_clock_sleep_until(due_ns);
        int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
        tick_once(edge, now_ns, now_ns - due_ns);
        due_ns = next_due(edge, due_ns, now_ns);
    }
}

// How long after its time a host's call came; 0 for the first.
static int64_t pull_lateness_ns(td_edge *edge, int64_t now_ns)
{
    int64_t last_ns = edge->pulled_ns;
    edge->pulled_ns = now_ns;
    int64_t late_ns = now_ns - last_ns - td_edge_control_period_ns(edge);
    return last_ns == 0 || late_ns < 0 ? 0 : late_ns;
}

// The host has read before it calls: the state belongs to the cursor from
// before this tick.
td_edge_step td_edge_pull(td_edge *edge, const float *state)
{
    td_edge_outgoing reading;
    int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
    int64_t driven_ns =
        atomic_load_explicit(&edge->driven_ns, memory_order_relaxed);
    bool read = td_edge_driver_take(edge, state, now_ns, &reading);
    if (read) td_edge_driver_tell(edge, &reading);
    const td_edge_tick_input seen = {
        .now_ns = now_ns,
        .connection =
            atomic_load_explicit(&edge->connection, memory_order_acquire),
        .reading = read ? reading.state : NULL,
        .read_ns = now_ns,
        .driver_down = now_ns - driven_ns > edge->config.driver_limit_ns,
    };
    int64_t lateness_ns = pull_lateness_ns(edge, now_ns);
    (void)note_missed(edge, lateness_ns);
    td_edge_step step = decide(edge, &seen, lateness_ns);
    if (edge->recorder)
        record(edge, &seen,
               reading.has_policy_state ? reading.policy_state : NULL, &step);
    const td_edge_request request = request_of(&step);
    if (step.ask) td_edge_driver_ask(edge, &request);
    if (read) td_edge_driver_observe(edge, &reading);
    return step;
}

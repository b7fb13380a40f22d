// SPDX-License-Identifier: Apache-2.0
// The tick and the driver. Nothing that the tick calls blocks, allocates or
// takes a lock: it exchanges slots and signals events.
#include "base/log.h"
#include "edge/shell.h"

#include <math.h>
#include <string.h>

#define STACK_BYTES ((size_t)64 << 10)

static void ask(td_edge *edge, const td_edge_step *step)
{
    td_edge_asking *asking = td_slot_back(edge->askings);
    asking->seq = step->seq;
    asking->left = step->left;
    asking->must_go = step->must_go;
    if (td_slot_publish(edge->askings))
        atomic_fetch_add_explicit(&edge->outbox_replaced, 1,
                                  memory_order_relaxed);
    // It wakes up while the driver reads, and need not be waited for.
    td_event_signal(&edge->publisher_wake);
}

static void command(td_edge *edge, const float *values)
{
    td_edge_command *back = td_slot_back(edge->commands);
    memcpy(back->values, values, edge->config.core.channels * sizeof(float));
    (void)td_slot_publish(edge->commands);
}

static td_edge_seen look(td_edge *edge, int64_t now_ns)
{
    (void)td_slot_refresh(edge->readings);
    const td_edge_reading *reading = td_slot_front(edge->readings);
    int64_t driven_ns =
        atomic_load_explicit(&edge->driven_ns, memory_order_acquire);
    return (td_edge_seen){
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

static void tick_once(td_edge *edge, int64_t now_ns, int64_t lateness_ns)
{
    td_edge_seen seen = look(edge, now_ns);
    td_edge_step step = td_edge_core_tick(edge->core, &seen);
    if (edge->config.trace) trace(edge, now_ns, lateness_ns, &step);
    if (step.command) command(edge, step.command);
    if (step.ask) ask(edge, &step);
    td_event_signal(&edge->driver_wake);
    if (step.fresh) td_hist_record(&edge->age_ns, step.age_ns);
}

static int64_t control_period_ns(const td_edge *edge)
{
    return edge->config.core.period_ns / edge->config.core.substeps;
}

// A late tick is played at once; whole periods that went by are not made up
// for, since the cursor counts steps and not time.
static int64_t next_due(td_edge *edge, int64_t due_ns, int64_t now_ns)
{
    int64_t period_ns = control_period_ns(edge);
    int64_t missed = (now_ns - due_ns) / period_ns;
    if (missed > 0)
        atomic_fetch_add_explicit(&edge->missed_ticks, (uint64_t)missed,
                                  memory_order_relaxed);
    return due_ns + (missed + 1) * period_ns;
}

void td_edge_tick_run(void *user)
{
    td_edge *edge = user;
    td_thread_prefault_stack(STACK_BYTES);
    int64_t due_ns =
        td_clock_now_ns(&td_clock_monotonic) + control_period_ns(edge);
    while (!atomic_load_explicit(&edge->stop_threads, memory_order_relaxed)) {
        td_clock_sleep_until(due_ns);
        int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
        td_hist_record(&edge->lateness_ns, now_ns - due_ns);
        tick_once(edge, now_ns, now_ns - due_ns);
        due_ns = next_due(edge, due_ns, now_ns);
    }
}

static void note_failure(td_edge *edge, const char *what, td_err err)
{
    uint64_t count = atomic_fetch_add(&edge->driver_failed, 1) + 1;
    if ((count & (count - 1)) == 0)
        td_log_text(TD_LOG_WARN, "driver: %s: %s (%llu so far)", what,
                    td_err_text(err), (unsigned long long)count);
}

static bool is_finite(const float *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!isfinite(values[i])) return false;
    return true;
}

static bool write_command(td_edge *edge)
{
    const td_edge_command *front = td_slot_front(edge->commands);
    td_err err = td_robot_write(
        edge->robot, td_clock_now_ns(&td_clock_monotonic), front->values);
    if (err != TD_OK) note_failure(edge, "write", err);
    return err == TD_OK;
}

static bool read_state(td_edge *edge, td_edge_outgoing *reading)
{
    // The cursor before the state: a row played meanwhile may already show in
    // the state, and taking the older number only keeps a row too many.
    reading->episode = td_edge_core_episode(edge->core);
    reading->cursor = td_edge_core_cursor(edge->core);
    reading->captured_ns = td_clock_now_ns(&td_clock_monotonic);
    td_err err =
        td_robot_read(edge->robot, reading->captured_ns, reading->state);
    if (err == TD_OK && !is_finite(reading->state, edge->config.core.channels))
        err = TD_ERR_INVALID;
    if (err != TD_OK) note_failure(edge, "read", err);
    return err == TD_OK;
}

static void show_tick(td_edge *edge, const td_edge_outgoing *reading)
{
    td_edge_reading *back = td_slot_back(edge->readings);
    memcpy(back->values, reading->state,
           edge->config.core.channels * sizeof(float));
    back->read_ns = reading->captured_ns;
    (void)td_slot_publish(edge->readings);
}

static void observe(td_edge *edge, const td_edge_outgoing *reading)
{
    td_edge_outgoing *back = td_slot_back(edge->outbox);
    *back = *reading;
    back->asking = *(const td_edge_asking *)td_slot_front(edge->askings);
    if (td_slot_publish(edge->outbox))
        atomic_fetch_add_explicit(&edge->outbox_replaced, 1,
                                  memory_order_relaxed);
    td_event_signal(&edge->publisher_wake);
}

// Once a tick: the newest command out, the state in.
static void drive(td_edge *edge, bool commanded)
{
    td_edge_outgoing reading;
    bool written = !commanded || write_command(edge);
    bool asked = td_slot_refresh(edge->askings);
    if (!read_state(edge, &reading)) return;
    if (asked) observe(edge, &reading);
    show_tick(edge, &reading);
    if (written)
        atomic_store_explicit(&edge->driven_ns,
                              td_clock_now_ns(&td_clock_monotonic),
                              memory_order_release);
}

// When the tick goes quiet, the last command is sent again: the robot holds.
void td_edge_driver_run(void *user)
{
    td_edge *edge = user;
    bool commanded = false;
    while (!atomic_load_explicit(&edge->stop_threads, memory_order_relaxed)) {
        int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
        (void)td_event_wait_until(&edge->driver_wake,
                                  now_ns + 2 * control_period_ns(edge));
        if (td_slot_refresh(edge->commands)) commanded = true;
        drive(edge, commanded);
    }
}

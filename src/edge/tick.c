// SPDX-License-Identifier: Apache-2.0
// The tick and the driver. Nothing that the tick calls blocks, allocates or
// takes a lock: it exchanges slots, signals events and hands numbers to the
// log.
#include "base/log.h"
#include "edge/shell.h"

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

static void say(const td_edge *edge, const td_edge_step *step)
{
    if (step->warn)
        td_log(TD_LOG_WARN,
               "edge: no action for {} ticks: holding the last command",
               edge->config.core.warn_after_empty_ticks);
    if (step->recovered) td_log(TD_LOG_INFO, "edge: actions are back");
}

static void tick_once(td_edge *edge, int64_t now_ns)
{
    uint64_t connection =
        atomic_load_explicit(&edge->connection, memory_order_acquire);
    td_edge_step step = td_edge_core_tick(edge->core, now_ns, connection);
    if (step.command) command(edge, step.command);
    if (step.ask) ask(edge, &step);
    td_event_signal(&edge->driver_wake);
    say(edge, &step);
}

// A late tick is played at once; whole periods that went by are not made up
// for, since the cursor counts steps and not time.
static int64_t next_due(td_edge *edge, int64_t due_ns, int64_t now_ns)
{
    int64_t period_ns = edge->config.core.period_ns;
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
        td_clock_now_ns(&td_clock_monotonic) + edge->config.core.period_ns;
    while (!atomic_load_explicit(&edge->stop_threads, memory_order_relaxed)) {
        td_clock_sleep_until(due_ns);
        int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
        td_hist_record(&edge->lateness_ns, now_ns - due_ns);
        tick_once(edge, now_ns);
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

// Reads the state and hands the observation on. The cursor is read before the
// state: a row played meanwhile may already show in the state, and taking the
// older number only keeps a row too many.
static void observe(td_edge *edge, const td_edge_asking *asking)
{
    td_edge_outgoing *back = td_slot_back(edge->outbox);
    back->asking = *asking;
    back->cursor = td_edge_core_cursor(edge->core);
    back->captured_ns = td_clock_now_ns(&td_clock_monotonic);
    td_err err = td_robot_read(edge->robot, back->captured_ns, back->state);
    if (err != TD_OK) {
        note_failure(edge, "read", err);
        return;
    }
    if (td_slot_publish(edge->outbox))
        atomic_fetch_add_explicit(&edge->outbox_replaced, 1,
                                  memory_order_relaxed);
    td_event_signal(&edge->publisher_wake);
}

static void write_command(td_edge *edge)
{
    const td_edge_command *front = td_slot_front(edge->commands);
    td_err err = td_robot_write(
        edge->robot, td_clock_now_ns(&td_clock_monotonic), front->values);
    if (err != TD_OK) note_failure(edge, "write", err);
}

// When the tick goes quiet, the last command is sent again: the robot holds.
void td_edge_driver_run(void *user)
{
    td_edge *edge = user;
    bool commanded = false;
    while (!atomic_load_explicit(&edge->stop_threads, memory_order_relaxed)) {
        int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
        (void)td_event_wait_until(&edge->driver_wake,
                                  now_ns + 2 * edge->config.core.period_ns);
        if (td_slot_refresh(edge->commands)) commanded = true;
        if (commanded) write_command(edge);
        if (td_slot_refresh(edge->askings))
            observe(edge, td_slot_front(edge->askings));
    }
}

// SPDX-License-Identifier: Apache-2.0
// The tick, on the thread td-tick or on that of a host that owns its loop.
//
// Nothing that it calls blocks, allocates or takes a lock. What it exchanges
// with other threads lies in slots, rings and atomics that their owners hold:
// commands, requests and readings with the driver, the number of the asked
// observation with the publisher, rows with the recorder, what it did with the
// trace, the connection's number with the link. Signalling an event costs one
// atomic exchange, and a futex wake only when somebody sleeps.
//
// One tick: look (the newest reading, is the driver down, is there a server),
// decide (td_edge_core_tick), then pass on what was decided. A late tick is
// played at once; periods that it missed are not made up for, since the cursor
// counts steps and not time.
//
// Stop: a flag is set, the thread joined; it wakes by itself within a period.
// It ends before everything that it passes something on to. tick_test.c counts
// what it must not do.
#include "edge/loop/tick.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/sync/thread.h"

#include <math.h>
#include <stdlib.h>

#define STACK_BYTES ((size_t)64 << 10)

struct td_edge_tick {
    td_edge_tick_config config;
    _Atomic bool stopping;
    td_thread *thread;
    int64_t pulled_ns;      // td_edge_pull()'s caller's; 0: not yet
    uint32_t skipped_ticks; // since the last one
    td_hist lateness_ns, age_ns;
    _Atomic uint64_t missed;
};

td_err td_edge_tick_new(const td_edge_tick_config *config,
                        td_edge_tick **ret_tick)
{
    td_edge_tick *tick = calloc(1, sizeof *tick);
    if (!tick) return TD_ERR_NOMEM;
    tick->config = *config;
    td_hist_init(&tick->lateness_ns);
    td_hist_init(&tick->age_ns);
    *ret_tick = tick;
    return TD_OK;
}

void td_edge_tick_end(td_edge_tick *tick)
{
    atomic_store(&tick->stopping, true);
    if (tick->thread) td_thread_join(TD_TAKE(tick->thread));
}

void td_edge_tick_free(td_edge_tick *tick)
{
    td_edge_tick_end(tick);
    free(tick);
}

static td_edge_request request_of(const td_edge_step *step)
{
    return (td_edge_request){
        .seq = step->seq,
        .left = step->left,
        .must_go = step->must_go,
        .again = step->again,
    };
}

// The publisher makes the images while the driver reads.
static void ask(td_edge_tick *tick, const td_edge_step *step)
{
    const td_edge_request request = request_of(step);
    td_edge_driver_request(tick->config.driver, &request);
    if (step->again == 0) // else there are no images
        td_edge_publisher_prepare(tick->config.publisher, step->seq);
}

static void trace(td_edge_tick *tick, int64_t now_ns, int64_t lateness_ns,
                  const td_edge_step *step)
{
    td_edge_traced_tick traced = {
        .now_ns = now_ns,
        .lateness_ns = lateness_ns,
        .select_ns = td_clock_monotonic_ns() - now_ns,
        .cursor = td_edge_core_cursor(tick->config.core),
        .asked_seq = step->seq,
        .left = step->left,
        .asked = step->ask,
        .fresh = step->fresh,
        .held = step->command && !step->fresh,
        .starved = step->starved,
    };
    uint32_t channels = tick->config.channels;
    for (uint32_t i = 0; i < TD_EDGE_TRACE_CHANNELS && i < channels; i++) {
        traced.wanted[i] = step->fresh ? step->wanted[i] : NAN;
        if (!step->command) continue;
        traced.commanded[i] = step->command[i];
        if (step->hits->channel[i]) traced.limited |= (uint8_t)(1U << i);
    }
    traced.clamped = step->command && step->hits->consecutive > 0;
    td_edge_trace_tick(tick->config.trace, &traced);
}

// `policy_state` is NULL where it is not known now.
static void record(td_edge_tick *tick, const td_edge_core_input *seen,
                   const float *policy_state, const td_edge_step *step)
{
    const td_edge_rows_tick row = {
        .now_ns = seen->now_ns,
        .missed = tick->skipped_ticks,
        .episode = td_edge_core_episode(tick->config.core),
        .state = tick->config.policy_states > 0 ? policy_state : seen->reading,
        .step = step,
    };
    tick->skipped_ticks = 0;
    td_edge_recorder_tick(tick->config.recorder, &row);
}

static td_edge_step decide(td_edge_tick *tick, const td_edge_core_input *seen,
                           int64_t lateness_ns)
{
    td_edge_step step = td_edge_core_tick(tick->config.core, seen);
    td_hist_record(&tick->lateness_ns, lateness_ns);
    if (tick->config.trace) trace(tick, seen->now_ns, lateness_ns, &step);
    if (step.fresh) td_hist_record(&tick->age_ns, step.age_ns);
    return step;
}

static void tick_once(td_edge_tick *tick, int64_t now_ns, int64_t lateness_ns)
{
    td_edge_driver *driver = tick->config.driver;
    const td_edge_reading *reading = td_edge_driver_newest(driver);
    const td_edge_core_input seen = {
        .now_ns = now_ns,
        .connection = td_edge_link_connection(tick->config.link),
        .reading = reading->read_ns > 0 ? reading->values : NULL,
        .read_ns = reading->read_ns,
        .driver_down = td_edge_driver_is_down(driver, now_ns),
    };
    td_edge_step step = decide(tick, &seen, lateness_ns);
    if (tick->config.recorder)
        record(tick, &seen,
               reading->has_policy_state ? reading->policy_state : NULL, &step);
    if (step.command) td_edge_driver_command(driver, step.command);
    if (step.ask) ask(tick, &step);
    td_edge_driver_wake(driver);
}

// Counts the whole periods that went by while a tick was late.
static int64_t note_missed(td_edge_tick *tick, int64_t lateness_ns)
{
    int64_t missed = lateness_ns / tick->config.period_ns;
    if (missed > 0)
        atomic_fetch_add_explicit(&tick->missed, (uint64_t)missed,
                                  memory_order_relaxed);
    tick->skipped_ticks = missed > UINT32_MAX ? UINT32_MAX : (uint32_t)missed;
    return missed;
}

static int64_t next_due(td_edge_tick *tick, int64_t due_ns, int64_t now_ns)
{
    int64_t missed = note_missed(tick, now_ns - due_ns);
    return due_ns + (missed + 1) * tick->config.period_ns;
}

static void run(void *user)
{
    td_edge_tick *tick = user;
    td_thread_prefault_stack(STACK_BYTES);
    int64_t due_ns = td_clock_monotonic_ns() + tick->config.period_ns;
    while (!atomic_load_explicit(&tick->stopping, memory_order_relaxed)) {
        td_clock_sleep_until(due_ns);
        int64_t now_ns = td_clock_monotonic_ns();
        tick_once(tick, now_ns, now_ns - due_ns);
        due_ns = next_due(tick, due_ns, now_ns);
    }
}

// Of the tick alone a refusal is said: the driver asks for less, and a system
// that refuses it refuses the tick.
td_err td_edge_tick_start(td_edge_tick *tick, int realtime_priority, int cpu,
                          td_errinfo *info)
{
    const td_thread_config config = {
        .name = "td-tick",
        .realtime_priority = realtime_priority,
        .cpu = cpu,
    };
    TD_TRY(td_thread_start(&config, run, tick, &tick->thread, info));
    const char *refusal = td_thread_refusal(tick->thread);
    if (refusal) td_log_text(TD_LOG_WARN, "%s", refusal);
    return TD_OK;
}

// How long after its time a host's call came; 0 for the first.
static int64_t pull_lateness_ns(td_edge_tick *tick, int64_t now_ns)
{
    int64_t last_ns = tick->pulled_ns;
    tick->pulled_ns = now_ns;
    int64_t late_ns = now_ns - last_ns - tick->config.period_ns;
    return last_ns == 0 || late_ns < 0 ? 0 : late_ns;
}

// The host has read before it calls: the state belongs to the cursor from
// before this tick. Whether the driver was down is asked before it counts as
// driven.
td_edge_step td_edge_tick_pull(td_edge_tick *tick, const float *state)
{
    td_edge_driver *driver = tick->config.driver;
    td_edge_outgoing reading;
    int64_t now_ns = td_clock_monotonic_ns();
    bool down = td_edge_driver_is_down(driver, now_ns);
    bool read = td_edge_driver_take_state(driver, state, now_ns, &reading);
    const td_edge_core_input seen = {
        .now_ns = now_ns,
        .connection = td_edge_link_connection(tick->config.link),
        .reading = read ? reading.state : NULL,
        .read_ns = now_ns,
        .driver_down = down,
    };
    int64_t lateness_ns = pull_lateness_ns(tick, now_ns);
    (void)note_missed(tick, lateness_ns);
    td_edge_step step = decide(tick, &seen, lateness_ns);
    if (tick->config.recorder)
        record(tick, &seen,
               reading.has_policy_state ? reading.policy_state : NULL, &step);
    const td_edge_request request = request_of(&step);
    if (step.ask) td_edge_driver_take_request(driver, &request);
    if (read) td_edge_driver_observe(driver, &reading);
    return step;
}

td_edge_tick_stats td_edge_tick_stats_get(const td_edge_tick *tick)
{
    return (td_edge_tick_stats){
        .missed = atomic_load(&tick->missed),
        .lateness_ns = &tick->lateness_ns,
        .age_ns = &tick->age_ns,
    };
}

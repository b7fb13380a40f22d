// SPDX-License-Identifier: Apache-2.0
// The driver, on the thread td-driver: once a tick the newest command out and
// the state in.
//
// Three slots, each between two threads, newest wins, nobody waits: commands
// and requests from the tick, readings back to it. The tick signals `wake` when
// it is done. When the tick goes quiet the thread wakes by itself after two
// periods and writes the last command again: the robot holds.
//
// A command goes out before the state is read, so that it is not late; a user's
// controller needs the state first. A request waits (`waiting`) for a good
// reading and then goes to the publisher with it. What fails or is not finite
// is counted and said, and does not move `driven_ns`; by that time the tick
// sees whether the driver is down, and plays the fail-safe.
//
// In pull mode there is no thread: `waiting` and all else that is the driver's
// own belongs to the host's thread, which calls take_state, take_request and
// observe in its place.
//
// No lock. Stop: a flag is set and the thread woken. Drain: it is waited for,
// with a limit, because the robot's or the user's functions may never return.
// Free: when it has ended.
#include "edge/loop/driver.h"

#include "base/clock.h"
#include "base/finite.h"
#include "base/log.h"
#include "base/sync/event.h"
#include "base/sync/slot.h"
#include "base/sync/thread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// What to do.
typedef struct command {
    float values[TD_WIRE_MAX_CHANNELS];
} command;

struct td_edge_driver {
    td_edge_driver_config config;
    td_slot *commands; // from the tick, command
    td_slot *requests; // from the tick, td_edge_request
    td_slot *readings; // to the tick, td_edge_reading
    td_event wake;
    _Atomic bool stopping;
    _Atomic int64_t driven_ns; // when it last did all that it should
    td_thread *thread;
    td_edge_request waiting; // for a reading; the driver's own; seq 0: none
    td_hist control_ns;
    _Atomic uint64_t failed, replaced;
};

// A host begins when it likes.
td_err td_edge_driver_new(const td_edge_driver_config *config,
                          td_edge_driver **ret_driver)
{
    td_edge_driver *made = calloc(1, sizeof *made);
    if (!made) return TD_ERR_NOMEM;
    TD_AUTO(td_edge_driver) *driver = made;
    driver->config = *config;
    driver->driven_ns = config->pull ? INT64_MAX : td_clock_monotonic_ns();
    td_event_init(&driver->wake);
    td_hist_init(&driver->control_ns);
    TD_TRY(td_slot_new(sizeof(command), &driver->commands));
    TD_TRY(td_slot_new(sizeof(td_edge_request), &driver->requests));
    TD_TRY(td_slot_new(sizeof(td_edge_reading), &driver->readings));
    *ret_driver = TD_TAKE(driver);
    return TD_OK;
}

static void free_slot(td_slot *slot)
{
    if (slot) td_slot_free(slot);
}

void td_edge_driver_free(td_edge_driver *driver)
{
    free_slot(driver->commands);
    free_slot(driver->requests);
    free_slot(driver->readings);
    free(driver);
}

void td_edge_driver_stop(td_edge_driver *driver)
{
    atomic_store(&driver->stopping, true);
    td_event_signal(&driver->wake);
}

bool td_edge_driver_end(td_edge_driver *driver, int64_t until_ns)
{
    if (driver->thread && !td_thread_join_until(driver->thread, until_ns))
        return false;
    driver->thread = NULL;
    return true;
}

static void note_replaced(td_edge_driver *driver)
{
    atomic_fetch_add_explicit(&driver->replaced, 1, memory_order_relaxed);
}

void td_edge_driver_command(td_edge_driver *driver, const float *values)
{
    command *back = td_slot_back(driver->commands);
    memcpy(back->values, values, driver->config.channels * sizeof(float));
    (void)td_slot_publish(driver->commands);
}

void td_edge_driver_request(td_edge_driver *driver,
                            const td_edge_request *request)
{
    td_edge_request *back = td_slot_back(driver->requests);
    *back = *request;
    if (td_slot_publish(driver->requests)) note_replaced(driver);
}

void td_edge_driver_wake(td_edge_driver *driver)
{
    td_event_signal(&driver->wake);
}

const td_edge_reading *td_edge_driver_newest(td_edge_driver *driver)
{
    (void)td_slot_refresh(driver->readings);
    return td_slot_front(driver->readings);
}

bool td_edge_driver_is_down(const td_edge_driver *driver, int64_t now_ns)
{
    int64_t driven_ns =
        atomic_load_explicit(&driver->driven_ns, memory_order_acquire);
    return now_ns - driven_ns > driver->config.limit_ns;
}

static void note_driven(td_edge_driver *driver, int64_t now_ns)
{
    atomic_store_explicit(&driver->driven_ns, now_ns, memory_order_release);
}

// Hands numbers to the log: a host's own real-time thread may be here.
static bool note(td_edge_driver *driver, const char *what, td_err err)
{
    if (err == TD_OK) return true;
    uint64_t count = atomic_fetch_add(&driver->failed, 1) + 1;
    if (td_log_is_due(count))
        td_log(TD_LOG_WARN, "driver: {}: {} ({} so far)", what,
               td_err_text(err), count);
    return false;
}

// The cursor before the state: a row played meanwhile may already show in the
// state, and taking the older number only keeps a row too many.
static void begin_reading(const td_edge_driver *driver, int64_t now_ns,
                          td_edge_outgoing *reading)
{
    reading->episode = td_edge_core_episode(driver->config.core);
    reading->cursor = td_edge_core_cursor(driver->config.core);
    reading->captured_ns = now_ns;
    reading->has_policy_state = false;
}

static td_err check_reading(const td_edge_driver *driver, const float *state)
{
    return td_finite_f32(state, driver->config.channels) ? TD_OK
                                                         : TD_ERR_INVALID;
}

static td_err observe_state(const td_edge_driver *driver, float *ret_state)
{
    const td_edge_driver_config *config = &driver->config;
    for (uint32_t i = 0; i < config->policy_states; i++)
        ret_state[i] = NAN;
    if (config->policy_states > 0)
        TD_TRY(config->observe_state(config->observe_state_user, ret_state,
                                     config->policy_states));
    return td_finite_f32(ret_state, config->policy_states) ? TD_OK
                                                           : TD_ERR_INVALID;
}

static bool add_policy_state(td_edge_driver *driver, td_edge_outgoing *reading)
{
    reading->has_policy_state = note(
        driver, "observe_state", observe_state(driver, reading->policy_state));
    return reading->has_policy_state;
}

bool td_edge_driver_take_state(td_edge_driver *driver, const float *state,
                               int64_t now_ns, td_edge_outgoing *ret_reading)
{
    begin_reading(driver, now_ns, ret_reading);
    if (!note(driver, "state", check_reading(driver, state))) return false;
    memcpy(ret_reading->state, state, driver->config.channels * sizeof(float));
    note_driven(driver, now_ns);
    if (driver->config.records) (void)add_policy_state(driver, ret_reading);
    return true;
}

void td_edge_driver_take_request(td_edge_driver *driver,
                                 const td_edge_request *request)
{
    if (driver->waiting.seq > 0) note_replaced(driver);
    driver->waiting = *request;
}

// Where it is recorded the policy's state was asked for before.
static bool is_complete(td_edge_driver *driver, td_edge_outgoing *reading)
{
    if (reading->request.again > 0) return true;
    return driver->config.records ? reading->has_policy_state
                                  : add_policy_state(driver, reading);
}

void td_edge_driver_observe(td_edge_driver *driver, td_edge_outgoing *reading)
{
    if (driver->waiting.seq == 0) return;
    reading->request = driver->waiting;
    if (!is_complete(driver, reading)) return;
    driver->waiting.seq = 0;
    if (td_edge_publisher_send(driver->config.publisher, reading))
        note_replaced(driver);
}

static bool read_state(td_edge_driver *driver, td_edge_outgoing *reading)
{
    begin_reading(driver, td_clock_monotonic_ns(), reading);
    td_err err = td_robot_hardware_read(driver->config.robot,
                                        reading->captured_ns, reading->state);
    if (err == TD_OK) err = check_reading(driver, reading->state);
    return note(driver, "read", err);
}

static void show_tick(td_edge_driver *driver, const td_edge_outgoing *reading)
{
    const td_edge_driver_config *config = &driver->config;
    td_edge_reading *back = td_slot_back(driver->readings);
    memcpy(back->values, reading->state, config->channels * sizeof(float));
    memcpy(back->policy_state, reading->policy_state,
           config->policy_states * sizeof(float));
    back->has_policy_state = reading->has_policy_state;
    back->read_ns = reading->captured_ns;
    (void)td_slot_publish(driver->readings);
}

static bool write_values(td_edge_driver *driver, const float *values)
{
    return note(driver, "write",
                td_robot_hardware_write(driver->config.robot,
                                        td_clock_monotonic_ns(), values));
}

static const float *newest_command(const td_edge_driver *driver)
{
    const command *front = td_slot_front(driver->commands);
    return front->values;
}

// What the user's controller makes of the command. Its units are its own, so
// that only what is not finite can be refused.
static bool write_controlled(td_edge_driver *driver, const float *state)
{
    const td_edge_driver_config *config = &driver->config;
    const float *wanted = newest_command(driver);
    float out[TD_WIRE_MAX_CHANNELS];
    memcpy(out, wanted, config->channels * sizeof(float));
    int64_t start_ns = td_clock_monotonic_ns();
    td_err err = config->control(config->control_user, wanted, state,
                                 config->channels, out);
    td_hist_record(&driver->control_ns, td_clock_monotonic_ns() - start_ns);
    if (err == TD_OK && !td_finite_f32(out, config->channels))
        err = TD_ERR_INVALID;
    return note(driver, "control", err) && write_values(driver, out);
}

static void drive(td_edge_driver *driver, bool commanded)
{
    td_edge_outgoing reading;
    bool controlled = driver->config.control != NULL;
    bool written = true;
    if (commanded && !controlled)
        written = write_values(driver, newest_command(driver));
    if (td_slot_refresh(driver->requests))
        td_edge_driver_take_request(driver, td_slot_front(driver->requests));
    bool read = read_state(driver, &reading);
    if (commanded && controlled)
        written = write_controlled(driver, read ? reading.state : NULL);
    if (!read) return;
    if (driver->config.records) (void)add_policy_state(driver, &reading);
    td_edge_driver_observe(driver, &reading);
    show_tick(driver, &reading);
    if (written) note_driven(driver, td_clock_monotonic_ns());
}

static void run(void *user)
{
    td_edge_driver *driver = user;
    bool commanded = false;
    while (!atomic_load_explicit(&driver->stopping, memory_order_relaxed)) {
        int64_t quiet_ns = 2 * driver->config.period_ns;
        (void)td_event_wait_until(&driver->wake,
                                  td_clock_monotonic_ns() + quiet_ns);
        if (td_slot_refresh(driver->commands)) commanded = true;
        drive(driver, commanded);
    }
}

td_err td_edge_driver_start(td_edge_driver *driver, int realtime_priority,
                            td_errinfo *info)
{
    const td_thread_config config = {
        .name = "td-driver",
        .realtime_priority = realtime_priority,
        .cpu = -1,
    };
    return td_thread_start(&config, run, driver, &driver->thread, info);
}

td_edge_driver_stats td_edge_driver_stats_get(const td_edge_driver *driver)
{
    return (td_edge_driver_stats){
        .failed = atomic_load(&driver->failed),
        .replaced = atomic_load(&driver->replaced),
        .control_ns = &driver->control_ns,
    };
}

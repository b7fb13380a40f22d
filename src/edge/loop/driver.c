// SPDX-License-Identifier: Apache-2.0
// The driver: once a tick the newest command out and the state in. What fails
// or lies is counted, and does not count as driven: the tick notices.
#include "base/log.h"
#include "edge/shell.h"

#include <math.h>
#include <string.h>

static bool is_finite(const float *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!isfinite(values[i])) return false;
    return true;
}

// Hands numbers to the log: a host's own real-time thread may be here.
static bool note(td_edge *edge, const char *what, td_err err)
{
    if (err == TD_OK) return true;
    uint64_t count = atomic_fetch_add(&edge->driver_failed, 1) + 1;
    if (td_log_is_due(count))
        td_log(TD_LOG_WARN, "driver: {}: {} ({} so far)", what,
               td_err_text(err), count);
    return false;
}

static void note_driven(td_edge *edge, int64_t now_ns)
{
    atomic_store_explicit(&edge->driven_ns, now_ns, memory_order_release);
}

// The cursor before the state: a row played meanwhile may already show in the
// state, and taking the older number only keeps a row too many.
static void begin_reading(const td_edge *edge, int64_t now_ns,
                          td_edge_outgoing *reading)
{
    reading->episode = td_edge_core_episode(edge->core);
    reading->cursor = td_edge_core_cursor(edge->core);
    reading->captured_ns = now_ns;
    reading->has_policy_state = false;
}

static td_err check_reading(const td_edge *edge, const float *state)
{
    return is_finite(state, edge->config.core.channels) ? TD_OK
                                                        : TD_ERR_INVALID;
}

bool td_edge_driver_take(td_edge *edge, const float *state, int64_t now_ns,
                         td_edge_outgoing *ret_reading)
{
    begin_reading(edge, now_ns, ret_reading);
    if (!note(edge, "state", check_reading(edge, state))) return false;
    memcpy(ret_reading->state, state,
           edge->config.core.channels * sizeof(float));
    note_driven(edge, now_ns);
    return true;
}

static void note_replaced(td_edge *edge)
{
    atomic_fetch_add_explicit(&edge->outbox_replaced, 1, memory_order_relaxed);
}

void td_edge_driver_ask(td_edge *edge, const td_edge_request *request)
{
    if (edge->request.seq > 0) note_replaced(edge);
    edge->request = *request;
}

static td_err tell(const td_edge *edge, float *ret_state)
{
    const td_edge_config *config = &edge->config;
    for (uint32_t i = 0; i < config->core.policy_states; i++)
        ret_state[i] = NAN;
    if (config->core.policy_states > 0)
        TD_TRY(config->observe_state(config->observe_state_user, ret_state,
                                     config->core.policy_states));
    return is_finite(ret_state, config->core.policy_states) ? TD_OK
                                                            : TD_ERR_INVALID;
}

void td_edge_driver_tell(td_edge *edge, td_edge_outgoing *reading)
{
    if (edge->recorder)
        reading->has_policy_state =
            note(edge, "observe_state", tell(edge, reading->policy_state));
}

// Who records has asked already.
static bool has_policy_state(td_edge *edge, td_edge_outgoing *reading)
{
    return edge->recorder
               ? reading->has_policy_state
               : note(edge, "observe_state", tell(edge, reading->policy_state));
}

void td_edge_driver_observe(td_edge *edge, const td_edge_outgoing *reading)
{
    if (edge->request.seq == 0) return;
    td_edge_outgoing *back = td_slot_back(edge->outbox);
    *back = *reading;
    back->request = edge->request;
    if (edge->request.again == 0 && !has_policy_state(edge, back)) return;
    edge->request.seq = 0;
    if (td_slot_publish(edge->outbox)) note_replaced(edge);
    td_event_signal(&edge->publisher_wake);
}

static bool read_state(td_edge *edge, td_edge_outgoing *reading)
{
    begin_reading(edge, td_clock_now_ns(&td_clock_monotonic), reading);
    td_err err = td_robot_hardware_read(edge->robot, reading->captured_ns,
                                        reading->state);
    if (err == TD_OK) err = check_reading(edge, reading->state);
    return note(edge, "read", err);
}

static void show_tick(td_edge *edge, const td_edge_outgoing *reading)
{
    td_edge_reading *back = td_slot_back(edge->readings);
    memcpy(back->values, reading->state,
           edge->config.core.channels * sizeof(float));
    memcpy(back->policy_state, reading->policy_state,
           edge->config.core.policy_states * sizeof(float));
    back->has_policy_state = reading->has_policy_state;
    back->read_ns = reading->captured_ns;
    (void)td_slot_publish(edge->readings);
}

static bool write_values(td_edge *edge, const float *values)
{
    int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
    return note(edge, "write",
                td_robot_hardware_write(edge->robot, now_ns, values));
}

static const float *newest_command(const td_edge *edge)
{
    const td_edge_command *front = td_slot_front(edge->commands);
    return front->values;
}

// What the user's controller makes of the command. Its units are its own, so
// that only what is not finite can be refused.
static bool write_controlled(td_edge *edge, const float *state)
{
    const td_edge_config *config = &edge->config;
    float out[TD_WIRE_MAX_CHANNELS];
    memcpy(out, newest_command(edge), config->core.channels * sizeof(float));
    int64_t start_ns = td_clock_now_ns(&td_clock_monotonic);
    td_err err = config->control(config->control_user, newest_command(edge),
                                 state, config->core.channels, out);
    td_hist_record(&edge->control_ns,
                   td_clock_now_ns(&td_clock_monotonic) - start_ns);
    if (err == TD_OK && !is_finite(out, config->core.channels))
        err = TD_ERR_INVALID;
    return note(edge, "control", err) && write_values(edge, out);
}

static void take_request(td_edge *edge)
{
    if (td_slot_refresh(edge->requests))
        td_edge_driver_ask(edge, td_slot_front(edge->requests));
}

// A command goes out before the state is read, so that it is not late; a
// controller needs the state first.
static void drive(td_edge *edge, bool commanded)
{
    td_edge_outgoing reading;
    bool controlled = edge->config.control != NULL;
    bool written = true;
    if (commanded && !controlled)
        written = write_values(edge, newest_command(edge));
    take_request(edge);
    bool read = read_state(edge, &reading);
    if (commanded && controlled)
        written = write_controlled(edge, read ? reading.state : NULL);
    if (!read) return;
    td_edge_driver_tell(edge, &reading);
    td_edge_driver_observe(edge, &reading);
    show_tick(edge, &reading);
    if (written) note_driven(edge, td_clock_now_ns(&td_clock_monotonic));
}

// When the tick goes quiet, the last command is sent again: the robot holds.
void td_edge_driver_run(void *user)
{
    td_edge *edge = user;
    bool commanded = false;
    while (!atomic_load_explicit(&edge->stop_threads, memory_order_relaxed)) {
        int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
        (void)td_event_wait_until(&edge->driver_wake,
                                  now_ns + 2 * td_edge_control_period_ns(edge));
        if (td_slot_refresh(edge->commands)) commanded = true;
        drive(edge, commanded);
    }
}

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SIM_FACTORY_H
#define TD_SIM_FACTORY_H

// A planned factory in virtual time: what a plan gives when robots and servers
// carry it out.
//
// When a robot asks is decided by edge/rate and edge/components, who runs next
// and in which batch by server/dispatch (sched and arbiter), as in the real
// programs. Modelled are the robot's own time, the network, and a GPU that
// plays the service times of profiles. Events are observations, answers and
// ends of actions, not ticks, so that ten minutes of 64 robots take a second.
//
// An action qualifies if its System 1 answer was on time, the plan it follows
// was on time, and every obligation's latest due check was answered on time;
// all of it on the robot's clock, for each robot by itself.
//
// What goes wrong in a row is counted by edge/strikes and leads to what the
// task says; nobody clears a robot that was stopped.
//
// Pure but for memory: one thread, no clock. The same seed gives the same trace
// to the byte.

#include "plan/plan.h"
#include "tendon/wire.h"

typedef struct td_sim_factory_options {
    uint64_t seed;        // of the first run
    uint32_t runs;        // with seeds one after the other; figures are of
                          // all of them
    int64_t duration_ns;  // of each, warm-up with it
    int64_t warmup_ns;    // left out of every figure
    double action_jitter; // an action takes up to this part longer, or less
    bool deviates;        // that part is a deviation instead
    int64_t network_jitter_ns; // either way takes up to this longer, or less
    bool in_turn;              // servers take who comes first; else by deadline
    bool unphased; // streams begin anywhere in their period, by the seed; else
                   // at the phases of the plan
    double interference; // how much longer a model takes for each other one
                         // that runs on its GPU: 1 is fair slices of time
    double unsafe;       // part of the safety model's answers that are warnings
    double failing; // part of the monitor's that say that the task has failed
    bool trace;     // keep one
} td_sim_factory_options;

// One run of 80 s with 20 s of warm-up, 5 % and 3 ms of jitter, by deadline, at
// the plan's phases.
extern const td_sim_factory_options td_sim_factory_defaults;

// What became of the requests of a stream, or of several.
typedef struct td_sim_factory_tally {
    uint64_t on_time;
    uint64_t late; // answered, but late; or given up by the robot
    uint64_t lost; // a newer one took its place, or it was useless by its turn
} td_sim_factory_tally;

// The part that was on time; 1 where nothing was asked.
double td_sim_factory_met(const td_sim_factory_tally *tally);

// A component of a task, over all of its robots.
typedef struct td_sim_factory_component {
    td_sim_factory_tally tally;
    double p50_ms, p99_ms; // of answers
    double least_met;      // of the robot that fares worst
    uint32_t least_robot;  // index in the plan's; NONE: nothing was asked
} td_sim_factory_component;

typedef struct td_sim_factory_class {
    double actions_hz, qualified_hz;
    // Of all runs, warm-ups too: robots that stood still for good, as a human
    // was called or none; and tasks that were begun again.
    uint64_t stopped, restarts;
    td_sim_factory_component components[TD_WIRE_MAX_COMPONENTS];
} td_sim_factory_class;

typedef struct td_sim_factory_load {
    double busy;  // part of the time that something ran
    double batch; // how many ran together, on average
} td_sim_factory_load;

typedef struct td_sim_factory_result {
    double seconds; // that the figures are of
    double actions_hz, qualified_hz;
    double value_hz;               // qualified, weighted
    td_sim_factory_class *classes; // [class_count], as the plan's
    size_t class_count;
    td_sim_factory_tally *streams; // [stream_count], as the plan's
    size_t stream_count;
    td_sim_factory_load *servers; // [server_count], as the plan's
    size_t server_count;
    uint64_t events;
    char *trace; // one line an event; NULL when none was kept
    size_t trace_size;
    uint64_t trace_hash; // 0 when none was kept
} td_sim_factory_result;

// Runs the plan. Blocks for as long as it computes. INVALID for a plan that is
// not the factory's, or options that make no sense; what
// td_config_profiles_find() fails with; NOMEM. Free with
// td_sim_factory_result_done().
TD_NODISCARD td_err td_sim_factory_run(const td_config_factory *factory,
                                       const td_config_profiles *profiles,
                                       const td_plan *plan,
                                       const td_sim_factory_options *options,
                                       td_sim_factory_result *ret_result,
                                       td_errinfo *info);
void td_sim_factory_result_done(td_sim_factory_result *result);

// Whether every robot met the percentile of each of its components, and none
// was stopped for good. MISMATCH with the one that fell short most, or with the
// task.
TD_NODISCARD td_err td_sim_factory_holds(const td_config_factory *factory,
                                         const td_plan *plan,
                                         const td_sim_factory_result *result,
                                         td_errinfo *info);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SIM_SIM_H
#define TD_SIM_SIM_H

// The whole system in one process and in virtual time: the edge's and the
// server's own deciding cores, the real wire format, a network that delays,
// loses, doubles and reorders, a synthetic model. One thread, no sleep: a
// minute of robots takes milliseconds, and the same seed gives the same trace
// to the byte.

#include "edge/core/core.h"
#include "edge/pacing/components.h"
#include "engine/synthetic/model.h"
#include "net/inproc/inproc.h"
#include "server/core/core.h"

#define TD_SIM_MAX_ROBOTS 256
#define TD_SIM_MAX_COMPONENTS 4 // beside the policy

// A model of each robot beside its policy: a planner, a check. It answers
// every observation after a draw of `latency`.
typedef struct td_sim_component {
    td_edge_component pace;
    td_engine_latency latency;
} td_sim_component;

typedef struct td_sim_component_counts {
    uint64_t asked, answered;
    uint64_t late; // how often it went beyond its deadline
} td_sim_component_counts;

// What a robot did in a tick. Borrowed for the call.
typedef struct td_sim_tick {
    uint32_t robot;
    int64_t now_ns;
    uint64_t cursor; // steps executed
    const td_edge_step *step;
} td_sim_tick;

typedef struct td_sim_config {
    uint64_t seed;
    uint32_t robots;
    uint32_t joints;
    int64_t fps;
    int64_t duration_ns;
    uint64_t steps; // ends when every robot has executed so many; 0: never
    uint32_t chunk_rows;
    uint32_t max_batch;
    td_edge_core_settings
        edge; // each robot's; channels and period come from above
    td_engine_latency latency;
    td_sim_component components[TD_SIM_MAX_COMPONENTS];
    uint32_t component_count;
    // Above 0, chunks are of one path, and each is off it by a draw of this
    // deviation a joint; otherwise each starts at its observation's state.
    double chunk_noise;
    td_net_faults faults; // both ways, on observations and answers
    void (*watch)(void *user, const td_sim_tick *tick); // NULL: nobody does
    void *watch_user;
    bool trace; // keep one
} td_sim_config;

// Four robots of seven joints at 30 Hz for a minute, chunks of 50, inference of
// 80 ms, a network of 5 to 10 ms, plain settings.
td_sim_config td_sim_config_default(void);

typedef struct td_sim_result {
    int64_t virtual_ns;  // when it ended
    td_edge_counts edge; // all robots together
    td_sim_component_counts components[TD_SIM_MAX_COMPONENTS]; // likewise
    td_server_counts server;
    td_net_hub_stats net;
    char *trace; // owned; one line an event; NULL when none was kept
    size_t trace_size;
    uint64_t trace_hash; // 0 when none was kept
} td_sim_result;

// Runs to the end. Blocks for as long as it computes. INVALID for a
// configuration that makes no sense. Free with td_sim_result_done().
TD_NODISCARD td_err td_sim_run(const td_sim_config *config,
                               td_sim_result *ret_result, td_errinfo *info);
void td_sim_result_done(td_sim_result *result);

#endif

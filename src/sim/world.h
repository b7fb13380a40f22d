// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SIM_WORLD_H
#define TD_SIM_WORLD_H

// What the parts of a simulation share. Private to sim/.
//
// The transport's callbacks may not put, so they leave messages in a list, and
// the parts look at their lists when the loop lets them act.

#include "base/clock.h"
#include "edge/observe/observe.h"
#include "robot/hardware.h"
#include "sim/sim.h"

#define TD_SIM_TRACE_SEED 0xcbf29ce484222325U

typedef struct td_sim_trace {
    bool keep;
    char *text;
    size_t size, room;
    uint64_t hash; // FNV-1a
    td_err err;    // NOMEM: the first failure
} td_sim_trace;

typedef struct td_sim_mailbox_entry td_sim_mailbox_entry;
struct td_sim_mailbox_entry {
    td_sim_mailbox_entry *next;
    td_net_msg *msg;
};

typedef struct td_sim_mailbox {
    td_sim_mailbox_entry *first, **last;
} td_sim_mailbox;

typedef struct td_sim_robot td_sim_robot;
typedef struct td_sim_server td_sim_server;
typedef struct td_sim_components td_sim_components;

typedef struct td_sim_world {
    const td_sim_config *config;
    td_clock_virtual clock;
    td_net_hub *hub;
    td_wire_route route;
    td_wire_decoder *decoder;
    td_wire_encoder *encoder;
    td_engine_synthetic_model *model;
    td_sim_trace trace;
    td_sim_server *server;
    td_sim_robot *robots[TD_SIM_MAX_ROBOTS];
} td_sim_world;

// trace.c; without `keep` nothing is written
void td_sim_trace_line(td_sim_trace *trace, int64_t now_ns, const char *fmt,
                       ...) TD_PRINTF(3, 4);
void td_sim_trace_floats(td_sim_trace *trace, const float *values,
                         uint32_t count);

// mailbox.c
void td_sim_mailbox_init(td_sim_mailbox *mailbox);
// A subscriber's callback; `user` is a td_sim_mailbox.
void td_sim_mailbox_add(void *user, const td_net_sample *sample);
// Takes the oldest; NULL if none. Owned by the caller.
td_net_msg *td_sim_mailbox_take(td_sim_mailbox *mailbox);
// Sends what was encoded.
TD_NODISCARD td_err td_sim_mailbox_put(td_net_pub *pub,
                                       const td_wire_encoder *encoder);

// server.c
TD_NODISCARD td_err td_sim_server_new(td_sim_world *world,
                                      td_sim_server **ret_server,
                                      td_errinfo *info);
void td_sim_server_free(td_sim_server *server);
// Looks at what came and starts or ends a batch. Returns when it next has
// something to do by itself (INT64_MAX: nothing).
TD_NODISCARD td_err td_sim_server_act(td_sim_server *server, int64_t now_ns,
                                      int64_t *ret_due_ns, td_errinfo *info);
void td_sim_server_counts(const td_sim_server *server,
                          td_server_counts *ret_counts);

// robot.c
TD_NODISCARD td_err td_sim_robot_new(td_sim_world *world, uint32_t index,
                                     td_sim_robot **ret_robot,
                                     td_errinfo *info);
void td_sim_robot_free(td_sim_robot *robot);
TD_NODISCARD td_err td_sim_robot_act(td_sim_robot *robot, int64_t now_ns,
                                     int64_t *ret_due_ns, td_errinfo *info);
uint64_t td_sim_robot_cursor(const td_sim_robot *robot);
void td_sim_robot_counts(const td_sim_robot *robot, td_edge_counts *ret_counts);
const td_sim_components *td_sim_robot_components(const td_sim_robot *robot);

// components.c: borrows the robot's net, name and settings.
TD_NODISCARD td_err td_sim_components_new(td_sim_world *world, td_net *net,
                                          const char *robot,
                                          const td_edge_core_settings *settings,
                                          td_sim_components **ret_components,
                                          td_errinfo *info);
void td_sim_components_free(td_sim_components *self);
TD_NODISCARD td_err td_sim_components_act(td_sim_components *self,
                                          int64_t now_ns, int64_t *ret_due_ns,
                                          td_errinfo *info);
// Asks those that are due after a tick of the robot.
TD_NODISCARD td_err td_sim_components_tick(td_sim_components *self,
                                           bool policy_asked, bool connected,
                                           const td_edge_outgoing *seen,
                                           td_errinfo *info);
// Adds to sums[component_count].
void td_sim_components_count(const td_sim_components *self,
                             td_sim_component_counts *sums);

#endif

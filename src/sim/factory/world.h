// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SIM_FACTORY_WORLD_H
#define TD_SIM_FACTORY_WORLD_H

// What the parts of a simulated factory share. Private to sim/.

#include "base/clock.h"
#include "base/hist.h"
#include "base/rand.h"
#include "edge/pacing/components.h"
#include "edge/safety/strikes.h"
#include "server/core/dispatch.h"
#include "sim/factory.h"
#include "sim/factory/events.h"
#include "sim/world.h"

typedef struct td_sim_factory_world td_sim_factory_world;
typedef struct td_sim_factory_robot td_sim_factory_robot;
typedef struct td_sim_factory_server td_sim_factory_server;
typedef struct td_sim_factory_gpu td_sim_factory_gpu;
typedef struct td_sim_factory_request td_sim_factory_request;

typedef enum td_sim_factory_kind { // with the subject of each
    TD_SIM_FACTORY_ASK,            // robot: its token is there
    TD_SIM_FACTORY_CHECK,          // robot: an obligation is due
    TD_SIM_FACTORY_ACTED,          // robot: its action has ended
    TD_SIM_FACTORY_BACK,           // robot: it is where its task begins
    TD_SIM_FACTORY_LATE,           // stream, seq: not answered by its deadline
    TD_SIM_FACTORY_ARRIVES,        // request, at its server
    TD_SIM_FACTORY_ANSWERED,       // request, at its robot
    TD_SIM_FACTORY_RAN,            // gpu, generation: a run has ended
    TD_SIM_FACTORY_WAKE, // server: a batch may start though nothing came
} td_sim_factory_kind;

// What all runs add up to.
typedef struct td_sim_factory_sums {
    td_sim_factory_tally *streams; // as the plan's
    uint64_t *actions, *qualified; // by class
    uint64_t *stopped, *restarts;  // likewise
    td_hist *latencies;            // by class and component
    double *busy_ns, *ran_ns;      // by server; of members, the second
    uint64_t events;
} td_sim_factory_sums;

// One robot, one component.
typedef struct td_sim_factory_stream {
    td_sim_factory_robot *robot;
    td_sim_factory_server *server;
    const td_config_factory_component *component;
    const td_plan_stream *plan;
    td_sim_factory_tally *tally;
    td_hist *latency;
    uint32_t number; // of the component in its task
    uint32_t member; // in the server's dispatch
    int64_t deadline_ns;
    uint64_t seq; // of the newest request
    bool waiting; // for its answer
} td_sim_factory_stream;

struct td_sim_factory_request {
    td_sim_factory_request *next;  // of its run, or of those that are free
    td_sim_factory_request *older; // of all there are
    td_sim_factory_stream *stream;
    uint64_t seq;
    int64_t sent_ns;
    uint64_t ticket; // while it runs
};

// What a robot does about its next action.
typedef enum td_sim_factory_stage {
    TD_SIM_FACTORY_IDLE,
    TD_SIM_FACTORY_PACED,     // waits for its token
    TD_SIM_FACTORY_HALTED,    // an obligation is not met
    TD_SIM_FACTORY_PLANNING,  // waits for what comes before System 1
    TD_SIM_FACTORY_ASKING,    // waits for System 1
    TD_SIM_FACTORY_RETURNING, // goes back to where its task begins
} td_sim_factory_stage;

// What counts of an action beside the obligations.
typedef struct td_sim_factory_action {
    bool on_time, planned; // its answer, and the plan that it follows
} td_sim_factory_action;

struct td_sim_factory_robot {
    td_sim_factory_world *world;
    const td_config_factory_task *task;
    td_sim_factory_stream *streams; // one a component
    uint32_t number, task_number;
    td_rand rand;
    td_edge_rate rate; // of System 1
    td_edge_components parts;
    uint32_t goals;  // components that come before an action, a bit each
    uint32_t needed; // of those, whose answers System 1 waits for
    uint32_t missed; // components whose latest answer was late
    uint32_t warned; // those whose latest answer was a warning
    td_edge_strikes strikes;
    td_sim_factory_stage stage;
    bool acting, has_next;
    bool anew;    // its task is to begin again
    bool stopped; // for good: nobody clears it here
    td_sim_factory_action asked, now, next;
};

// A batch at work, or one request of an engine that batches continuously.
typedef struct td_sim_factory_batch {
    td_sim_factory_request *first;
    uint32_t count;
    double left;  // 1 to 0
    double noise; // its time beside the mean
    int64_t started_ns;
} td_sim_factory_batch;

struct td_sim_factory_server {
    td_sim_factory_world *world;
    td_sim_factory_gpu *gpu;
    const td_config_profile *profile;
    uint32_t number, model; // in the plan, in its dispatch
    td_server_dispatch *dispatch;
    td_rand rand;
    bool continuous;
    double mean_ns[TD_SCHED_MAX_BATCH + 1];
    uint64_t running; // batches, a bit each
    uint32_t members; // of them all
    td_sim_factory_batch batches[TD_SCHED_ARBITER_RUNS];
    int64_t wake_ns;
};

struct td_sim_factory_gpu {
    td_sim_factory_world *world;
    td_sim_factory_server **servers; // on it
    uint32_t server_count;
    int64_t seen_ns;     // up to when its batches are accounted for
    uint64_t generation; // of what it waits for
};

struct td_sim_factory_world {
    const td_config_factory *factory;
    const td_config_profiles *profiles;
    const td_plan *plan;
    const td_sim_factory_options *options;
    td_sim_factory_sums *sums;
    td_sim_trace *trace;
    int64_t way_ns; // of a message, either way, without jitter
    uint64_t last_seq;
    td_rand seed;
    td_sim_factory_events events;
    td_sim_factory_robot *robots;
    td_sim_factory_stream *streams;
    td_sim_factory_server *servers;
    td_sim_factory_gpu *gpus;
    uint32_t gpu_count;
    td_sim_factory_request *requests, *spare; // all, and those to use
    td_err err;                               // NOMEM: the first failure
};

// world.c: everything that the plan names, at the beginning of a run.
TD_NODISCARD td_err td_sim_factory_world_init(td_sim_factory_world *world,
                                              uint64_t seed, td_errinfo *info);
void td_sim_factory_world_done(td_sim_factory_world *world);

void td_sim_factory_world_put(td_sim_factory_world *world, int64_t at_ns,
                              td_sim_factory_kind kind, void *subject,
                              uint64_t tag);
// Sends a request of the stream on its way. Nothing where memory is out.
void td_sim_factory_world_send(td_sim_factory_stream *stream, int64_t now_ns);
// The request has ended on its robot's side.
void td_sim_factory_world_free(td_sim_factory_world *world,
                               td_sim_factory_request *request);
// How long a message of the robot, or to it, is on its way.
int64_t td_sim_factory_world_delay_ns(td_sim_factory_robot *robot);

// robot.c
TD_NODISCARD td_err td_sim_factory_robot_begin(td_sim_factory_robot *robot);
void td_sim_factory_robot_ask(td_sim_factory_robot *robot, int64_t now_ns);
void td_sim_factory_robot_check(td_sim_factory_robot *robot, int64_t now_ns);
void td_sim_factory_robot_acted(td_sim_factory_robot *robot, int64_t now_ns);
void td_sim_factory_robot_late(td_sim_factory_stream *stream, int64_t now_ns,
                               uint64_t seq);
// Consumes the request.
void td_sim_factory_robot_answered(td_sim_factory_request *request,
                                   int64_t now_ns);
void td_sim_factory_robot_lost(td_sim_factory_request *request, int64_t now_ns);
void td_sim_factory_robot_back(td_sim_factory_robot *robot, int64_t now_ns);
// Gives up what it asked, and begins its task again after its action.
void td_sim_factory_robot_restart(td_sim_factory_robot *robot, int64_t now_ns);
// Acts no more after this action.
void td_sim_factory_robot_stop(td_sim_factory_robot *robot, int64_t now_ns);
// A new plan comes before the next action.
void td_sim_factory_robot_replan(td_sim_factory_robot *robot);

// violation.c: what late answers, warnings and failures lead to.
void td_sim_factory_violation_begin(td_sim_factory_robot *robot);
// An answer of the stream, or none by its deadline. True: the robot does
// something else than go on.
bool td_sim_factory_violation_answer(td_sim_factory_stream *stream,
                                     bool on_time, int64_t now_ns);
// What the model said, where it is one that judges.
void td_sim_factory_violation_verdict(td_sim_factory_stream *stream,
                                      int64_t now_ns);

// server.c
TD_NODISCARD td_err td_sim_factory_server_open(td_sim_factory_server *server,
                                               td_errinfo *info);
void td_sim_factory_server_arrives(td_sim_factory_request *request,
                                   int64_t now_ns);
// Starts what may, and tells the GPU.
void td_sim_factory_server_schedule(td_sim_factory_server *server,
                                    int64_t now_ns);
// Starts what may; the GPU has been brought up to now, and looks after it.
void td_sim_factory_server_next(td_sim_factory_server *server, int64_t now_ns);
// The batch of that number has run.
void td_sim_factory_server_ran(td_sim_factory_server *server, uint32_t number,
                               int64_t now_ns);

// gpu.c: accounts for what has passed; ends what has ended; waits for the next.
void td_sim_factory_gpu_advance(td_sim_factory_gpu *gpu, int64_t now_ns);
void td_sim_factory_gpu_ran(td_sim_factory_gpu *gpu, int64_t now_ns);
void td_sim_factory_gpu_await(td_sim_factory_gpu *gpu, int64_t now_ns);

// sums.c
TD_NODISCARD td_err td_sim_factory_sums_init(td_sim_factory_sums *sums,
                                             const td_plan *plan);
void td_sim_factory_sums_done(td_sim_factory_sums *sums);
TD_NODISCARD td_err td_sim_factory_sums_result(
    const td_sim_factory_sums *sums, const td_plan *plan,
    const td_sim_factory_options *options, td_sim_factory_result *ret_result);

#endif

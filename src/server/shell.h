// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_SHELL_H
#define TD_SERVER_SHELL_H

// What the files of the server's shell share. Private to server/.
//
// Threads: a transport's callback takes an observation that is good all the way
// to the engine, which saves a hand-over; all else it leaves in an inbox or in
// the event queues, and signals `wake`. The loop's thread does everything else
// but run the model; it alone tells a robot what went wrong. The engine's
// thread answers, and starts the next batch, of whichever model of the device.
// The device's lock guards the cores of all its servers, the requests, the runs
// and the peers' boots; nobody holds it while waiting for the network.

#include "base/clock.h"
#include "base/sync/event.h"
#include "base/sync/queue.h"
#include "base/sync/thread.h"
#include "engine/blocking.h"
#include "engine/picture.h"
#include "server/core/dispatch.h"
#include "server/dispatch/score.h"
#include "server/model.h"
#include "server/registry/tokens.h"
#include "wire/outline.h"

#include <pthread.h>

// An observation on its way through the server.
typedef struct td_server_request td_server_request;
struct td_server_request {
    td_net_msg *msg; // owns the bytes that obs looks into; NULL: given back
    td_wire_outline outline; // and those that had to be joined
    td_wire_obs obs;
    td_engine_item item;
    td_errinfo why; // it failed
    td_engine_results results;
    struct td_server_peer *peer;
    size_t size; // bytes, as it came
    int64_t arrived_ns;
    int64_t started_ns;
    uint64_t chunk_id;        // of its answer
    td_engine_prefix *prefix; // kept, in use; NULL: none
    bool whole;               // in one: its prefix was lost
    uint64_t asker;           // anew: the seq that asked, whose noise it has
    td_server_request *next;  // free, to be told of, or to run alone
    float actions[];          // [chunk_rows x action_count]
};

// A batch on its way through an engine.
typedef struct td_server_run {
    td_server_model *server;
    uint32_t number;  // the dispatch's
    bool alone;       // a member of a batch that failed
    uint32_t members; // at its start; the batch has those that have not failed
    uint32_t moved;   // of those, to run again alone
    uint64_t depth;   // that waited then, with them
    td_engine_part part;
    int64_t started_ns;
    int64_t prefix_ns; // what the first half took
    td_engine_batch batch;
    td_wire_encoder *encoder;
    struct td_server_run *next; // free, or formed with this one
} td_server_run;

// What came from a client for the loop since it looked last.
typedef struct td_server_mail {
    td_net_msg *msg; // the newest observation
    int64_t arrived_ns;
    bool has_seq;
    uint64_t seq;
    uint64_t skipped[TD_WIRE_MAX_SUPERSEDED]; // displaced, the newest of them
    uint32_t skipped_count;
    uint64_t skipped_untold;  // displaced before those
    uint64_t skipped_unnamed; // displaced, and their seq is not known
    td_net_msg *reset;
} td_server_mail;

// Where the transport's callbacks leave it.
typedef struct td_server_inbox {
    pthread_mutex_t lock; // guards mail
    td_server_mail mail;
} td_server_inbox;

// A client's ends of the network.
typedef struct td_server_peer {
    td_server_model *server;
    uint32_t number; // in the core; guarded by the device's lock
    char id[TD_WIRE_MAX_NAME + 1];
    uint64_t boot, route; // guarded by the device's lock
    bool gone;            // from the core; guarded by the device's lock
    bool dormant; // gone from the core for its silence, but alive: what it
                  // sends brings it back; guarded by the device's lock
    bool leaving; // gone, but its last request still runs
    struct td_server_peer *next;            // dormant
    uint64_t told[TD_SERVER_OUTCOME_COUNT]; // errors sent to it
    uint64_t bad_resets;
    td_net_pub *action;
    td_net_decl *obs;
    td_net_decl *reset;
    td_server_inbox inbox;
} td_server_peer;

// A token that came or went.
typedef struct td_server_sighting {
    td_server_token token;
    bool alive;
} td_server_sighting;

#define TD_SERVER_REFUSALS 64

// Requests in the order in which they came.
typedef struct td_server_line {
    td_server_request *first, *last;
} td_server_line;

struct td_server_device {
    pthread_mutex_t lock; // guards everything below
    td_sched_cadence_settings cadence;
    td_server_score scores[2]; // of the policy before, and of this one
    td_server_score *score;    // this one's
    td_server_dispatch *dispatch;
    td_server_model
        *servers[TD_SCHED_MAX_MODELS]; // by their number in the dispatch
    td_server_line alone;              // members of batches that failed
    td_server_model *keeper;           // whose loop keeps time
    int64_t planned_ns;                // when it will look
};

struct td_server_model {
    td_server_device *device;
    bool owns_device;
    bool added;     // to the device
    uint32_t model; // number in the device's dispatch
    td_net *net;
    td_engine *engine;
    const td_engine_spec *spec;
    td_wire_route route; // its texts are the configuration's
    const char *id;
    uint64_t boot;
    uint32_t capacity;
    int64_t metrics_period_ns;
    int64_t opened_ns;

    td_net_decl *status, *watch, *token;
    td_net_pub *metrics;
    td_queue *queries;   // td_net_request *
    td_queue *sightings; // td_server_sighting; no flood of queries fills it
    td_event wake;
    td_thread *thread;
    _Atomic bool stop;
    _Atomic bool draining;     // nobody and nothing more is taken
    _Atomic bool blind;        // for some token that came or went
    _Atomic int64_t turned_ns; // the loop
    td_server_stats *stats;    // spreads are recorded under the device's lock
    td_server_events *events;  // NULL: nobody is told

    // The loop's own.
    td_server_peer **peers; // [capacity], by the core's numbers
    td_server_peer *dormant;
    td_server_tokens tokens;
    uint64_t refusals[TD_SERVER_REFUSALS];
    int64_t watched_ns; // declared anew; 0: never
    bool recounts;      // who sleeps: whether they are among the tokens
    td_wire_decoder *decoder;
    td_wire_encoder *encoder;
    td_engine_health health; // as of the last look
    bool was_ready;
    int64_t next_metrics_ns; // INT64_MAX: none

    pthread_mutex_t arrival_lock;
    td_wire_decoder *arrival_decoder; // guarded by arrival_lock

    // Guarded by the device's lock.
    td_server_core *core;
    td_server_request *free_requests;
    td_server_run *free_runs;
    td_server_line told; // ended, and their robots are to be told so
    uint64_t chunk_id;   // of the newest chunk
    uint32_t busy;       // requests that run; with any the server is not freed
    int64_t planned_ns;  // when the loop will look at the clients' silence
    bool stopping;       // no further batch is formed
    bool awaited;        // the loop waits for a running request to end
    bool changed;        // whom it takes: td_server_model_use()
    td_server_model_settings how; // the model is run
};

// peer.c: a client's declarations. Loop's thread only; blocks.
TD_NODISCARD td_err td_server_peer_open(td_server_model *server,
                                        uint32_t number,
                                        const td_wire_attach *attach,
                                        td_server_peer **ret_peer,
                                        td_errinfo *info);
void td_server_peer_close(td_server_peer *peer);
// One that nobody reads. Consumes it. Any thread.
void td_server_peer_drop_reset(td_server_model *server, td_net_msg *msg);

// arrive.c: from the network to the device.

// Takes a good observation to the engine and consumes it. False: it is not one,
// and the loop's to refuse. Transport's thread.
bool td_server_arrive(td_server_peer *peer, td_net_msg *msg,
                      int64_t arrived_ns);
// What the callbacks left. Loop's thread.
void td_server_arrive_inbox(td_server_model *server, td_server_peer *peer);
// The same of a peer that has no place in the core any more: refused.
void td_server_arrive_refused(td_server_model *server, td_server_peer *peer,
                              td_err code, const char *text);

// run.c: from the device to the answer. Those that are `_locked` want the
// device's lock held.

// Forms the batches that may start, to be started without the lock. NULL: none.
td_server_run *td_server_run_form_locked(td_server_device *device);
// Hands them to their engines. Any thread; never blocks.
void td_server_run_start(td_server_run *runs);
// Starts what time has made due. Loop's thread.
void td_server_run_look(td_server_device *device);

// record.c

void td_server_measure_arrival_locked(const td_server_request *request);
// Its batch has ended: for how long it had waited.
void td_server_measure_wait_locked(const td_server_request *request,
                                   int64_t now_ns);
// Answered: that, what the model took, and its part of the device's time.
void td_server_measure_answer_locked(const td_server_request *request,
                                     int64_t now_ns, int64_t service_ns,
                                     int64_t device_ns);
void td_server_measure_batch_locked(const td_server_run *run, int64_t now_ns);

// health.c

// The engine's health, which the core's state follows unless it drains.
td_engine_health td_server_health_locked(td_server_model *server);
// CLOSED, with why, while the engine is not there or the server drains. Any
// thread.
TD_NODISCARD td_err td_server_health_check(const td_server_model *server,
                                           td_errinfo *info);
// Ends what waits, and what the engine keeps, if it is not there.
void td_server_health_give_up_locked(td_server_model *server);
// The state is an event.
void td_server_health_say(td_server_model *server, td_wire_server_state state);
// What the engine's health makes of the server, and of what waits. Loop's
// thread.
void td_server_health_look(td_server_model *server);

// request.c

// NULL: no memory. Any thread.
td_server_request *td_server_request_new(td_server_model *server);
// One that nothing looks into any more.
void td_server_request_free(td_server_request *request);
void td_server_request_line_up(td_server_line *line,
                               td_server_request *request);
// No longer in use of a kept prefix.
void td_server_request_release_locked(td_server_model *server,
                                      td_server_request *request);
void td_server_request_recycle_locked(td_server_model *server,
                                      td_server_request *request);
void td_server_request_recycle(td_server_model *server,
                               td_server_request *request);
// What a client left behind.
void td_server_request_drop_locked(td_server_model *server,
                                   const td_server_core_dropped *dropped);
// Answered: kept, without its message, in place of the client's last.
void td_server_request_keep_locked(td_server_model *server,
                                   td_server_request *request);
// Has ended without an answer: the loop will tell its robot. `why` NULL: as the
// engine said.
void td_server_request_told_locked(td_server_model *server,
                                   td_server_request *request, td_err status,
                                   const char *why);
// Tells the robots of what has ended without an answer. Loop's thread.
void td_server_request_tell(td_server_model *server);
// Whoever sees to it that the peer stays; with an encoder of its own.
void td_server_request_put(td_server_peer *peer, td_wire_encoder *encoder,
                           const td_wire_action *action);

// device.c
TD_NODISCARD td_err td_server_device_add(td_server_device *device,
                                         td_server_model *server,
                                         const td_server_model_settings *how,
                                         td_errinfo *info);
// What holds for the clients of a model on this engine.
td_sched_cadence_settings td_server_device_cadence(td_server_device *device,
                                                   const td_engine *engine);
// No further batch of the server's model is formed.
void td_server_device_stop(td_server_device *device, td_server_model *server);
// Nothing of it waits or runs any more.
void td_server_device_remove(td_server_device *device, td_server_model *server);
// When this server's loop has to look after the device; INT64_MAX.
int64_t td_server_device_plan_ns(td_server_device *device,
                                 td_server_model *server);

// query.c: what is asked on the status key. Loop's thread only.

void td_server_query_take(td_server_model *server, td_net_request *query);
// Asks the core; it may deny it.
TD_NODISCARD td_err td_server_query_attach(td_server_model *server,
                                           const td_wire_attach *attach,
                                           uint32_t *ret_number,
                                           td_errinfo *info);

// reception.c: who is here. Loop's thread only.

// A client's numbers start.
void td_server_reception_show(td_server_model *server, uint32_t number,
                              const char *id);
// One that is dormant has its place back, under this number. False: nobody is.
bool td_server_reception_wake(td_server_model *server, td_wire_text id,
                              uint32_t number);
// That start of the client leaves.
void td_server_reception_leave(td_server_model *server, td_wire_text id,
                               uint64_t boot);

// Watches the clients' tokens. Blocks.
TD_NODISCARD td_err td_server_reception_watch(td_server_model *server,
                                              td_errinfo *info);
// Who came, asked or went.
void td_server_reception_events(td_server_model *server);
// Who sends nothing any more, and who is about to. Returns when to look again.
int64_t td_server_reception_silence(td_server_model *server, int64_t now_ns);
// What the clients left, and those that leave or may no longer stay.
void td_server_reception_look(td_server_model *server);
void td_server_reception_close(td_server_model *server);

// telemetry.c
void td_server_telemetry_count(td_server_model *server,
                               td_server_counter_id counter);
// The same of what could not be read, with a line now and then. Any thread.
void td_server_telemetry_bad(td_server_model *server,
                             td_server_counter_id counter, const char *what,
                             const char *why);
// There was no room for something that came. Any thread.
void td_server_telemetry_dropped(td_server_model *server);
// printf style. Any thread; the loop tells whoever listens.
void td_server_telemetry_event(td_server_model *server,
                               td_server_event_kind kind, const char *client,
                               const char *fmt, ...) TD_PRINTF(4, 5);
void td_server_telemetry_put(td_server_model *server, int64_t now_ns);

#endif

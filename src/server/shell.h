// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_SHELL_H
#define TD_SERVER_SHELL_H

// What the files of the server's shell share. Private to server/.
//
// Threads: a transport's callback takes an observation that is good all the way
// to the engine, which saves a hand-over; all else it leaves in an inbox or in
// the event queues, and signals `wake`. The loop's thread does everything else
// but run the model. The engine's thread answers, and starts the next batch.
// `lock` guards the core, the requests, peers' boots, `running` and `awaited`;
// nobody holds it while waiting for the network.

#include "base/clock.h"
#include "base/event.h"
#include "base/queue.h"
#include "base/thread.h"
#include "engine/picture.h"
#include "server/server.h"
#include "server/tokens.h"

#include <pthread.h>

// An observation on its way through the server.
typedef struct td_server_request td_server_request;
struct td_server_request {
    td_net_msg *msg; // owns the bytes that obs looks into
    td_wire_obs obs;
    td_engine_item item;
    struct td_server_peer *peer;
    int64_t arrived_ns;
    int64_t started_ns;
    td_server_request *next_free;
    float actions[]; // [chunk_rows x action_count]
};

// What decoding and checking an observation needs.
typedef struct td_server_reader {
    td_wire_decoder *decoder;
    td_engine_picture_reader *pictures;
} td_server_reader;

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
    td_server *server;
    uint32_t number;
    char id[TD_WIRE_MAX_NAME + 1];
    uint64_t boot; // guarded by the server's lock
    bool gone;     // from the core; guarded by the server's lock
    bool leaving;  // gone, but its last request still runs
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

struct td_server {
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
    _Atomic uint64_t events_dropped;
    _Atomic uint64_t puts_failed;
    _Atomic uint64_t bad_resets;
    _Atomic uint64_t bad_queries;
    _Atomic uint64_t bad_tokens;

    // The loop's own.
    td_server_peer **peers; // [capacity], by the core's numbers
    td_server_tokens tokens;
    td_server_reader reader;
    td_wire_encoder *encoder;

    pthread_mutex_t arrival_lock;
    td_server_reader arrival_reader; // guarded by arrival_lock

    // The engine's thread's own, while a batch runs.
    td_wire_encoder *answer_encoder;
    td_engine_batch batch;
    td_hist queue_ns, service_ns;
    uint64_t chunk_id; // of the newest chunk

    pthread_mutex_t lock;
    td_server_core *core;
    td_server_request *free_requests;
    bool running;         // a batch; while it does the server is not freed
    bool awaited;         // the loop waits for the running batch to end
    _Atomic bool refused; // the engine did not take the running batch
};

// peer.c: a client's declarations. Loop's thread only; blocks.
TD_NODISCARD td_err td_server_peer_open(td_server *server, uint32_t number,
                                        const td_wire_attach *attach,
                                        td_server_peer **ret_peer,
                                        td_errinfo *info);
void td_server_peer_close(td_server_peer *peer);

// run.c: from the network through the engine to the answer.

// Takes a good observation to the engine and consumes it. False: it is not one,
// and the loop's to refuse. Transport's thread.
bool td_server_run_arrival(td_server_peer *peer, td_net_msg *msg,
                           int64_t arrived_ns);
// What the callbacks left. Loop's thread.
void td_server_run_inbox(td_server *server, td_server_peer *peer);
// Starts a batch if none runs and something waits. Loop's thread.
void td_server_run_next(td_server *server);
// Answers the batch that the engine refused in a callback. Loop's thread.
void td_server_run_refused(td_server *server);
void td_server_run_recycle(td_server *server, td_server_request *request);

// telemetry.c
void td_server_telemetry_put(td_server *server, int64_t now_ns);

#endif

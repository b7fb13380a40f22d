// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLIENT_MODEL_H
#define TD_CLIENT_MODEL_H

// What the files of a connection's model share.
//
//   the program's  encodes and puts observations, takes results
//   transport's    decodes answers and enters them
//   td-model       finds a server and watches over it, sends what waited for
//                  one, joins large answers, ends what has expired
//
// Locks: `sending`, then `lock`. The first is held while the network is waited
// for, the second never.

#include "base/hist.h"
#include "base/rand.h"
#include "base/sync/event.h"
#include "base/sync/queue.h"
#include "base/sync/thread.h"
#include "client/connection.h"
#include "client/requests.h"
#include "edge/session/presence.h"
#include "media/jpeg.h"

typedef enum td_client_model_state {
    TD_CLIENT_MODEL_CONNECTING,
    TD_CLIENT_MODEL_ATTACHED,
    TD_CLIENT_MODEL_RECONNECTING,
    TD_CLIENT_MODEL_STOPPED,
} td_client_model_state;

// Of an observation that waits for a server.
typedef struct td_client_held {
    void *bytes;
    size_t size;
    uint64_t seq;
    int64_t held_ns;
    struct td_client_held *next; // newer
} td_client_held;

struct td_model {
    td_connection *connection;
    td_model *next; // of the connection's; guarded by its lock
    td_model_settings settings;
    char id[TD_WIRE_MAX_NAME + 1];
    char version[TD_WIRE_MAX_NAME + 1];
    char application[TD_WIRE_MAX_NAME + 1];
    td_wire_route route; // of these
    uint64_t boot;
    td_net_pub *pub;
    td_net_decl *actions;
    td_queue *large; // td_net_msg *, from the transport's thread to td-model
    td_event wake;   // td-model
    td_thread *thread;
    _Atomic int state; // td_client_model_state
    _Atomic uint64_t malformed, strangers, unkept;
    _Atomic uint64_t replies[TD_EDGE_REPLY_COUNT];

    pthread_mutex_t sending; // guards what follows
    td_wire_encoder *encoder;
    td_wire_obs obs;
    td_media_jpeg_encoder *jpegs[TD_WIRE_MAX_IMAGES];
    td_client_held *held; // the oldest; NULL: none waits

    pthread_mutex_t lock;   // guards what follows
    pthread_cond_t changed; // any of it, on CLOCK_MONOTONIC
    td_client_requests requests;
    char server[TD_WIRE_MAX_NAME + 1]; // whose answers count; "": nobody's
    uint64_t attached;                 // how often
    td_err why;                        // it has no server; OK: not asked yet
    td_errinfo why_text;
    bool doubts;        // what was sent has expired: is the server there?
    int64_t planned_ns; // when td-model looks again
    int fd;             // readable while a result waits; -1: nobody polls
    td_wire_decoder *decoder;
    td_wire_action action;
    td_hist round_trip_ns;

    // td-model's own.
    td_edge_finder *finder;
    td_edge_presence *presence;
    td_edge_server found;
    td_rand rand;
    uint32_t attempts; // in a row
    char said[sizeof((td_errinfo *)0)->text];
};

// model.c. Results wait, or the state is another: tells who waits for it.
void td_client_model_changed_locked(td_model *model);

// Ends what is due, and has td-model look at the server when it did not answer.
void td_client_model_expire_locked(td_model *model, int64_t now_ns);

// observation.c: fills model->obs, but for its seq, with views of what is
// given. INVALID, LIMIT.
TD_NODISCARD td_err td_client_observation_fill(
    td_model *model, const td_model_observation *input, td_errinfo *info);

// outbox.c: sends what waited for a server; td-model's. And frees it.
void td_client_outbox_flush(td_model *model);
void td_client_outbox_drop(td_model *model);

// inbox.c: an answer of the network's. Transport's thread; and what that left.
void td_client_inbox_on_action(void *user, const td_net_sample *sample);
void td_client_inbox_join(td_model *model);

// attach.c: the thread that finds a server, attaches and watches it.
TD_NODISCARD td_err td_client_attach_open(td_model *model, td_errinfo *info);
void td_client_attach_run(void *user);
void td_client_attach_close(td_model *model);

// result.c: one for the program. With a message, which is consumed on success,
// `action` is what it holds.
TD_NODISCARD td_err td_client_result_new_answer(td_net_msg *msg,
                                                const td_wire_action *action,
                                                td_model_result **ret_result);
TD_NODISCARD td_err td_client_result_new_end(const td_client_ended *ended,
                                             const char *detail,
                                             td_model_result **ret_result);

// Adds what was superseded: a copy. NOMEM.
TD_NODISCARD td_err td_client_result_add_superseded(td_model_result *result,
                                                    const uint64_t *seqs,
                                                    uint32_t count);

#endif

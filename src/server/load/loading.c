// SPDX-License-Identifier: Apache-2.0
// Stands in for a model while its engine loads: answers `status` with warming,
// and refuses who wants to attach by that word.
//
// Queries come on threads of the transport, which leave them in a queue; the
// thread td-loading answers them. There is no lock: the queue and the wake-up
// event are all that both touch, and the counts are atomic, since the model
// goes on counting where this ends.
//
// Shutdown: the declarations go, so that no more queries come; then the thread
// answers those that did, and ends.
#include "server/load/loading.h"

#include "base/log.h"
#include "base/sync/event.h"
#include "base/sync/queue.h"
#include "base/sync/thread.h"
#include "wire/msgpack/text.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define QUERIES 256

struct td_server_loading {
    td_server_loading_config config;
    char key[TD_WIRE_MAX_KEY]; // of the status
    td_net_decl *status, *token;
    td_queue *queries; // td_net_request *
    td_event wake;
    _Atomic bool stop;
    td_thread *thread;

    // The thread's own.
    td_wire_encoder *encoder;
    td_wire_decoder *decoder;
    td_wire_status answer;
};

static void complain(const td_server_loading *loading,
                     _Atomic uint64_t *counter, const char *what)
{
    uint64_t count = atomic_fetch_add(counter, 1) + 1;
    if (td_log_is_due(count))
        td_log_text(TD_LOG_WARN, "server: %s: warming: %s (%llu so far)",
                    loading->config.server_id, what, (unsigned long long)count);
}

// Transport's thread. Whoever finds no room asks again.
static void on_query(void *user, td_net_request *query)
{
    td_server_loading *loading = user;
    if (td_queue_push(loading->queries, &query) == TD_OK) {
        td_event_signal(&loading->wake);
        return;
    }
    complain(loading, &loading->config.counts->dropped, "no room for a query");
    td_net_request_free(query);
}

// Whether the attach is for this server; else another one answers it.
static bool is_asked(const td_server_loading *loading,
                     const td_wire_attach *attach)
{
    const td_server_loading_config *config = &loading->config;
    return td_wire_text_is(attach->server, config->server_id) &&
           (attach->server_boot == 0 || attach->server_boot == config->boot);
}

// Whether one with a payload is to be answered.
static bool is_mine(td_server_loading *loading, td_slice payload)
{
    td_wire_attach attach;
    td_errinfo info = {.text = ""};
    td_errinfo why;
    if (td_wire_attach_decode(loading->decoder, payload.data, payload.size,
                              &attach, &info) == TD_OK)
        return is_asked(loading, &attach);
    (void)td_fail(&why, TD_OK, "bad attach: %s", info.text);
    complain(loading, &loading->config.counts->bad_queries, why.text);
    return false;
}

static void answer(td_server_loading *loading, td_net_request *query)
{
    td_errinfo reason;
    td_slice payload = td_net_request_payload(query);
    loading->answer.has_attach = payload.size > 0;
    if (payload.size > 0 && !is_mine(loading, payload)) return;
    (void)td_fail(&reason, TD_OK, "server %s is warming",
                  loading->config.server_id);
    loading->answer.attach_reason = td_wire_text_of(reason.text);
    if (td_wire_status_encode(loading->encoder, &loading->answer, NULL) !=
        TD_OK)
        return;
    size_t count;
    const td_slice *parts = td_wire_encoder_parts(loading->encoder, &count);
    // An answer that does not go is one that is asked for again.
    (void)!td_net_reply(query, loading->key, parts, count);
}

static void answer_all(td_server_loading *loading)
{
    td_net_request *query;
    while (td_queue_pop(loading->queries, &query) == TD_OK) {
        answer(loading, query);
        td_net_request_free(query);
    }
}

static void loop(void *user)
{
    td_server_loading *loading = user;
    while (!atomic_load(&loading->stop)) {
        (void)td_event_wait_until(&loading->wake, INT64_MAX);
        answer_all(loading);
    }
    answer_all(loading);
}

static td_err make(td_server_loading *loading)
{
    const td_server_loading_config *config = &loading->config;
    td_event_init(&loading->wake);
    loading->answer = (td_wire_status){
        .model_id = td_wire_text_of(config->route.model),
        .model_version = td_wire_text_of(config->route.version),
        .server = td_wire_text_of(config->server_id),
        .server_boot = config->boot,
        .state = TD_WIRE_WARMING,
        .capacity = config->capacity,
    };
    TD_TRY(td_queue_new(QUERIES, sizeof(td_net_request *), &loading->queries));
    TD_TRY(td_wire_encoder_new(&loading->encoder));
    return td_wire_decoder_new(&loading->decoder);
}

static td_err start(td_server_loading *loading, td_net *net, td_errinfo *info)
{
    char token[TD_WIRE_MAX_KEY + 2 * TD_WIRE_MAX_NAME];
    const td_server_loading_config *config = &loading->config;
    const td_thread_config thread = {.name = "td-loading", .cpu = -1};
    TD_TRY(make(loading));
    TD_TRY(td_wire_key(&config->route, NULL, "status", loading->key, info));
    TD_TRY(td_thread_start(&thread, loop, loading, &loading->thread, info));
    TD_TRY(td_net_serve(net, loading->key, on_query, loading, &loading->status,
                        info));
    (void)snprintf(token, sizeof token, "%s/alive/%s/%llu", loading->key,
                   config->server_id, (unsigned long long)config->boot);
    return td_net_token(net, token, &loading->token, info);
}

td_err td_server_loading_open(td_net *net,
                              const td_server_loading_config *config,
                              td_server_loading **ret_loading, td_errinfo *info)
{
    TD_AUTO(td_server_loading) *loading = calloc(1, sizeof *loading);
    if (!loading) return TD_ERR_NOMEM;
    loading->config = *config;
    TD_TRY(start(loading, net, info));
    *ret_loading = TD_TAKE(loading);
    return TD_OK;
}

void td_server_loading_close(td_server_loading *loading)
{
    if (loading->status) (void)td_net_undeclare(loading->status);
    if (loading->token) (void)td_net_undeclare(loading->token);
    atomic_store(&loading->stop, true);
    td_event_signal(&loading->wake);
    if (loading->thread) td_thread_join(loading->thread);
    if (loading->decoder) td_wire_decoder_free(loading->decoder);
    if (loading->encoder) td_wire_encoder_free(loading->encoder);
    if (loading->queries) td_queue_free(loading->queries);
    free(loading);
}

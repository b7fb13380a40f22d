// SPDX-License-Identifier: Apache-2.0
// Answers, from the network into the model's requests.
//
// An answer is decoded where it arrives, on the transport's thread: that takes
// microseconds and saves a hand-over. Only a large one that came in pieces is
// left to td-model, through the queue `large`, since joining it takes longer.
//
// An answer counts if it is for this start of the client and comes from the
// server that this model is attached to; any other is dropped and counted.
// `lock` is held while a message is decoded and entered, never while the
// network is waited for. A message that is entered belongs to its result; any
// other is freed here.
//
// The end: the subscription is undeclared, which waits for a callback that
// runs; what is left in the queue is freed with the model.
#include "base/clock.h"
#include "base/log.h"
#include "client/model.h"

// As on the server's side: pieces up to this are joined at once.
#define JOIN_BYTES ((size_t)256 << 10)

static void complain(const td_model *model, uint64_t count, const char *what,
                     const char *text)
{
    if (!td_log_is_due(count)) return;
    td_log_text(TD_LOG_WARN, "model %s: %s: %s (%llu so far)", model->id, what,
                text, (unsigned long long)count);
}

static bool is_ours_locked(const td_model *model, const td_wire_action *action)
{
    return action->ident.boot == model->boot &&
           td_wire_text_is(action->server, model->server);
}

// Consumes the message if it is taken.
static td_err enter_locked(td_model *model, td_net_msg *msg)
{
    const td_wire_action *action = &model->action;
    int64_t now_ns = td_clock_monotonic_ns();
    td_model_result *result = NULL;
    TD_TRY(td_client_result_new_answer(msg, action, &result));
    for (uint32_t i = 0; i < action->superseded_count; i++)
        td_client_requests_supersede(&model->requests, action->superseded[i]);
    (void)td_client_requests_answer(&model->requests, now_ns, action->ident.seq,
                                    result->outcome == TD_MODEL_ERROR, result);
    td_client_model_changed_locked(model);
    return TD_OK;
}

static td_err read_locked(td_model *model, td_slice bytes, td_errinfo *info)
{
    return td_wire_action_decode(model->decoder, bytes.data, bytes.size,
                                 &model->action, info);
}

// Consumes the message.
static void take(td_model *model, td_net_msg *msg)
{
    td_slice bytes = {0};
    td_errinfo info = {.text = "out of memory"};
    td_err err = td_net_msg_bytes(msg, &bytes);
    bool ours = false;
    pthread_mutex_lock(&model->lock);
    if (err == TD_OK) err = read_locked(model, bytes, &info);
    if (err == TD_OK) ours = is_ours_locked(model, &model->action);
    if (ours) err = enter_locked(model, msg);
    pthread_mutex_unlock(&model->lock);
    if (ours && err == TD_OK) return;
    if (err != TD_OK)
        complain(model, atomic_fetch_add(&model->malformed, 1) + 1,
                 "answer dropped", info.text);
    else
        complain(model, atomic_fetch_add(&model->strangers, 1) + 1,
                 "answer dropped", "of another server or start");
    td_net_msg_free(msg);
}

void td_client_inbox_on_action(void *user, const td_net_sample *sample)
{
    td_model *model = user;
    td_net_msg *msg = NULL;
    if (td_net_keep(sample, &msg) != TD_OK) {
        atomic_fetch_add(&model->unkept, 1);
    } else if (sample->whole || sample->size <= JOIN_BYTES) {
        take(model, msg);
    } else if (td_queue_push(model->large, &msg) == TD_OK) {
        td_event_signal(&model->wake);
    } else {
        atomic_fetch_add(&model->unkept, 1);
        td_net_msg_free(msg);
    }
}

void td_client_inbox_join(td_model *model)
{
    td_net_msg *msg;
    while (td_queue_pop(model->large, &msg) == TD_OK)
        take(model, msg);
}

// SPDX-License-Identifier: Apache-2.0
// Observations, from the program's structs to the network, on the program's
// thread.
//
// What is sent is copied once: into a place that the transport lends in shared
// memory, or by the put. Raw pictures are compressed before, unless they may
// travel raw through shared memory; whether that is so is known only when the
// loan was given or refused, so compressing comes after it.
//
// An observation is entered in the requests before it is put, because its
// answer may be quicker than this thread. When the put fails it is taken out
// again, and the program gets the error.
//
// While there is no server the newest observation is held as bytes, and made
// again when there is one, since its ages have grown meanwhile. A newer one
// takes its place; with `every` it is held behind it.
//
// `sending` is held for all of it, so that observations leave in the order of
// their numbers; `lock` only for looks at the requests.
#include "base/clock.h"
#include "client/model.h"
#include "edge/api/api.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_OBSERVATION_BYTES                                                \
    TD_EDGE_API_UP_TO(td_model_observation, limit_ms)
#define LONGEST_MS (INT64_MAX / TD_NS_PER_MS)

static bool may_compress(const td_wire_image *image)
{
    return image->codec == TD_WIRE_RAW && image->shape[2] == 3;
}

static bool may_compress_any(const td_model *model)
{
    if (model->settings.jpeg_quality == 0) return false;
    for (uint32_t i = 0; i < model->obs.image_count; i++)
        if (may_compress(&model->obs.images[i])) return true;
    return false;
}

static td_err compress_one(td_model *model, uint32_t index, td_errinfo *info)
{
    td_media_jpeg_encoder **encoder = &model->jpegs[index];
    td_wire_image *image = &model->obs.images[index];
    td_slice jpeg;
    if (!*encoder)
        TD_TRY(td_media_jpeg_encoder_new((int)model->settings.jpeg_quality,
                                         TD_MEDIA_CHROMA_420, encoder));
    TD_TRY(td_media_jpeg_encode(*encoder, image->data, image->shape[0],
                                image->shape[1], &jpeg, info));
    *image = (td_wire_image){
        .name = image->name,
        .codec = TD_WIRE_JPEG,
        .data = jpeg.data,
        .size = jpeg.size,
    };
    return TD_OK;
}

static td_err encode(td_model *model, td_errinfo *info)
{
    return td_wire_obs_encode(model->encoder, &model->obs, info);
}

// An encoding before says whether the raw ones are what they claim to be.
static td_err compress(td_model *model, td_errinfo *info)
{
    for (uint32_t i = 0; i < model->obs.image_count; i++)
        if (may_compress(&model->obs.images[i]))
            TD_TRY(compress_one(model, i, info));
    return encode(model, info);
}

static bool borrow(td_model *model, td_net_loan **ret_loan)
{
    size_t size = td_wire_encoder_size(model->encoder);
    if (td_net_lend(model->pub, size, ret_loan) != TD_OK) return false;
    td_wire_encoder_join(model->encoder, (*ret_loan)->bytes);
    return true;
}

// The message, in a loan or as the encoder's parts (`*ret_loan` is NULL).
static td_err write_obs(td_model *model, td_net_loan **ret_loan,
                        td_errinfo *info)
{
    bool compresses = may_compress_any(model);
    TD_TRY(encode(model, info));
    if (compresses && !model->settings.raw_if_shared)
        TD_TRY(compress(model, info));
    if (borrow(model, ret_loan)) return TD_OK;
    *ret_loan = NULL;
    if (compresses && model->settings.raw_if_shared)
        TD_TRY(compress(model, info));
    return TD_OK;
}

static td_err put(td_model *model, td_net_loan *loan)
{
    if (loan) return td_net_loan_put(loan);
    size_t count;
    const td_slice *parts = td_wire_encoder_parts(model->encoder, &count);
    return td_net_put(model->pub, parts, count, NULL, NULL);
}

static int64_t limit_of(const td_model *model, int64_t limit_ms)
{
    if (limit_ms == 0) limit_ms = model->settings.limit_ms;
    return limit_ms < LONGEST_MS ? limit_ms * TD_NS_PER_MS : INT64_MAX;
}

// Before it is put, since the answer may be quicker than this thread. td-model
// is woken only if it would look too late.
static td_err ask(td_model *model, int64_t limit_ns, bool sent,
                  td_errinfo *info)
{
    td_err err = TD_OK;
    bool early = false;
    pthread_mutex_lock(&model->lock);
    if (atomic_load(&model->state) == TD_CLIENT_MODEL_STOPPED) {
        err = td_fail(info, TD_ERR_CLOSED, "the model was stopped");
    } else if (!td_client_requests_has_room(&model->requests)) {
        err = td_fail(info, TD_ERR_FULL,
                      "%u observations are open or their results not taken",
                      TD_CLIENT_REQUESTS_OPEN);
    } else {
        td_client_requests_ask(&model->requests, td_clock_monotonic_ns(),
                               limit_ns, sent);
        early = td_client_requests_due_ns(&model->requests) < model->planned_ns;
    }
    pthread_mutex_unlock(&model->lock);
    if (early) td_event_signal(&model->wake);
    return err;
}

static td_err send_now(td_model *model, int64_t limit_ns, td_errinfo *info)
{
    td_net_loan *loan = NULL;
    TD_TRY(write_obs(model, &loan, info));
    td_err err = ask(model, limit_ns, true, info);
    if (err != TD_OK) {
        if (loan) td_net_loan_free(loan);
        return err;
    }
    err = put(model, loan);
    if (err == TD_OK) return TD_OK;
    pthread_mutex_lock(&model->lock);
    td_client_requests_withdraw(&model->requests, model->obs.ident.seq);
    pthread_mutex_unlock(&model->lock);
    return td_fail(info, err, "the observation could not be sent: %s",
                   td_err_text(err));
}

static void free_held(td_client_held *held)
{
    free(held->bytes);
    free(held);
}
TD_AUTO_FREE(td_client_held, free_held)

void td_client_outbox_drop(td_model *model)
{
    while (model->held) {
        td_client_held *held = model->held;
        model->held = held->next;
        free_held(held);
    }
}

static void append(td_model *model, td_client_held *held)
{
    td_client_held **last = &model->held;
    while (*last)
        last = &(*last)->next;
    *last = held;
}

static td_err hold(td_model *model, int64_t limit_ns, td_errinfo *info)
{
    TD_TRY(encode(model, info));
    if (may_compress_any(model) && !model->settings.raw_if_shared)
        TD_TRY(compress(model, info));
    TD_AUTO(td_client_held) *held = calloc(1, sizeof *held);
    if (!held) return TD_ERR_NOMEM;
    held->size = td_wire_encoder_size(model->encoder);
    held->seq = model->obs.ident.seq;
    held->held_ns = td_clock_monotonic_ns();
    held->bytes = malloc(held->size);
    if (!held->bytes) return TD_ERR_NOMEM;
    td_wire_encoder_join(model->encoder, held->bytes);
    TD_TRY(ask(model, limit_ns, false, info));
    if (!model->connection->every) td_client_outbox_drop(model);
    append(model, TD_TAKE(held));
    return TD_OK;
}

// The next seq is only taken under `sending`.
static td_err observe(td_model *model, const td_model_observation *input,
                      uint64_t *ret_seq, td_errinfo *info)
{
    int64_t limit_ns = limit_of(model, input->limit_ms);
    TD_TRY(td_client_observation_fill(model, input, info));
    pthread_mutex_lock(&model->lock);
    model->obs.ident.seq = model->requests.next_seq;
    pthread_mutex_unlock(&model->lock);
    if (atomic_load(&model->state) == TD_CLIENT_MODEL_ATTACHED)
        TD_TRY(send_now(model, limit_ns, info));
    else
        TD_TRY(hold(model, limit_ns, info));
    *ret_seq = model->obs.ident.seq;
    return TD_OK;
}

td_err td_model_observe(td_model *model,
                        const td_model_observation *observation,
                        uint64_t *ret_seq, td_errinfo *info)
{
    td_model_observation input;
    TD_TRY(td_edge_api_struct("observation", observation,
                              FIRST_OBSERVATION_BYTES, sizeof input, &input,
                              info));
    pthread_mutex_lock(&model->sending);
    td_err err = observe(model, &input, ret_seq, info);
    pthread_mutex_unlock(&model->sending);
    return err;
}

static void grow_older(td_wire_obs *obs, int64_t us)
{
    if (obs->has_budget) obs->budget_us -= us;
    if (obs->state.has_age) obs->state.age_us += us;
    for (uint32_t i = 0; i < obs->tensor_count; i++)
        if (obs->tensors[i].tensor.has_age) obs->tensors[i].tensor.age_us += us;
}

static td_err read_held(td_model *model, const td_client_held *held)
{
    pthread_mutex_lock(&model->lock);
    td_err err = td_wire_obs_decode(model->decoder, held->bytes, held->size,
                                    &model->obs, NULL);
    pthread_mutex_unlock(&model->lock);
    if (err == TD_OK)
        grow_older(&model->obs,
                   (td_clock_monotonic_ns() - held->held_ns) / TD_NS_PER_US);
    return err;
}

static bool is_wanted(td_model *model, const td_client_held *held)
{
    pthread_mutex_lock(&model->lock);
    bool wanted = td_client_requests_sent(&model->requests, held->seq);
    pthread_mutex_unlock(&model->lock);
    return wanted;
}

// One that cannot be sent is reported when it expires.
void td_client_outbox_flush(td_model *model)
{
    pthread_mutex_lock(&model->sending);
    for (const td_client_held *held = model->held; held; held = held->next) {
        td_net_loan *loan = NULL;
        if (is_wanted(model, held) && read_held(model, held) == TD_OK &&
            write_obs(model, &loan, NULL) == TD_OK)
            (void)put(model, loan);
    }
    td_client_outbox_drop(model);
    pthread_mutex_unlock(&model->sending);
}

// SPDX-License-Identifier: Apache-2.0
// A new episode, by whoever wants one: any thread may call.
//
// Lock: one, held from the choice of the episode's number to its beginning, so
// that two who call at once begin two episodes with two numbers. Inside it the
// link's lock is taken. The message goes out after both: nobody waits for the
// network under a lock. Encoding comes before the beginning, so that a reason
// that is refused changes nothing, and with an encoder of the call's own.
//
// A message that could not be sent is counted and is no failure: the next
// observation carries the new number too.
//
// End: the publisher goes, then the rest; nobody may be inside.
#include "edge/session/resetter.h"

#include "wire/wire.h"

#include <pthread.h>
#include <stdlib.h>

static const td_net_qos reset_qos = {
    .priority = TD_NET_DATA_HIGH,
    .reliable = true,
    .express = true,
};

struct td_edge_resetter {
    td_edge_resetter_config config;
    td_net_pub *pub;
    pthread_mutex_t lock; // one beginning at a time
    _Atomic uint64_t failed;
};

td_err td_edge_resetter_open(const td_edge_resetter_config *config,
                             td_edge_resetter **ret_resetter, td_errinfo *info)
{
    char key[TD_WIRE_MAX_KEY];
    td_edge_resetter *made = calloc(1, sizeof *made);
    if (!made) return TD_ERR_NOMEM;
    TD_AUTO(td_edge_resetter) *resetter = made;
    resetter->config = *config;
    pthread_mutex_init(&resetter->lock, NULL);
    TD_TRY(td_wire_key(config->route, config->client, "reset", key, info));
    TD_TRY(td_net_publish(config->net, key, &reset_qos, &resetter->pub, info));
    *ret_resetter = TD_TAKE(resetter);
    return TD_OK;
}

void td_edge_resetter_leave(td_edge_resetter *resetter)
{
    if (resetter->pub) td_net_unpublish(TD_TAKE(resetter->pub));
}

void td_edge_resetter_close(td_edge_resetter *resetter)
{
    td_edge_resetter_leave(resetter);
    pthread_mutex_destroy(&resetter->lock);
    free(resetter);
}

static td_err begin(const td_edge_resetter *resetter, const char *reason,
                    td_wire_encoder *encoder, td_errinfo *info)
{
    const td_edge_resetter_config *config = &resetter->config;
    const td_wire_reset message = {
        .client = td_wire_text_of(config->client),
        .boot = config->boot,
        .route = config->generation,
        .episode = td_edge_core_episode(config->core) + 1,
        .reason = td_wire_text_of(reason),
    };
    TD_TRY(td_wire_reset_encode(encoder, &message, info));
    return td_edge_link_reset(config->link);
}

td_err td_edge_resetter_begin(td_edge_resetter *resetter, const char *reason,
                              td_errinfo *info)
{
    TD_AUTO(td_wire_encoder) *encoder = NULL;
    TD_TRY(td_wire_encoder_new(&encoder));
    pthread_mutex_lock(&resetter->lock);
    td_err err = begin(resetter, reason, encoder, info);
    pthread_mutex_unlock(&resetter->lock);
    TD_TRY(err);
    size_t count;
    const td_slice *parts = td_wire_encoder_parts(encoder, &count);
    if (td_net_put(resetter->pub, parts, count, NULL, NULL) != TD_OK)
        atomic_fetch_add(&resetter->failed, 1);
    return TD_OK;
}

uint64_t td_edge_resetter_failed(const td_edge_resetter *resetter)
{
    return atomic_load(&resetter->failed);
}

// SPDX-License-Identifier: Apache-2.0
// A new episode. The message only makes it sooner: a server also learns of it
// from the next observation.
#include "edge/shell.h"
#include "wire/wire.h"

static const td_net_qos reset_qos = {
    .priority = TD_NET_DATA_HIGH,
    .reliable = true,
    .express = true,
};

td_err td_edge_reset_open(td_edge *edge, td_errinfo *info)
{
    const td_edge_config *config = &edge->config;
    char key[TD_WIRE_MAX_KEY];
    TD_TRY(td_wire_key(&config->route, config->client, "reset", key, info));
    return td_net_publish(edge->net, key, &reset_qos, &edge->resets, info);
}

// With the lock. Encoding comes first: a reason that is refused changes
// nothing.
static td_err begin_episode(td_edge *edge, const char *reason,
                            td_wire_encoder *encoder, td_errinfo *info)
{
    const td_edge_config *config = &edge->config;
    const td_wire_reset reset = {
        .client = td_wire_text_of(config->client),
        .boot = config->core.boot,
        .route = config->core.route,
        .episode = td_edge_core_episode(edge->core) + 1,
        .reason = td_wire_text_of(reason),
    };
    TD_TRY(td_wire_reset_encode(encoder, &reset, info));
    return td_edge_core_reset(edge->core);
}

// Any thread may be here, so that the encoder is this call's own.
td_err td_edge_reset(td_edge *edge, const char *reason, td_errinfo *info)
{
    TD_AUTO(td_wire_encoder) *encoder = NULL;
    TD_TRY(td_wire_encoder_new(&encoder));
    pthread_mutex_lock(&edge->lock);
    td_err err = begin_episode(edge, reason, encoder, info);
    pthread_mutex_unlock(&edge->lock);
    TD_TRY(err);
    size_t count;
    const td_slice *parts = td_wire_encoder_parts(encoder, &count);
    if (td_net_put(edge->resets, parts, count, NULL, NULL) != TD_OK)
        atomic_fetch_add(&edge->resets_failed, 1);
    return TD_OK;
}

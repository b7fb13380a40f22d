// SPDX-License-Identifier: Apache-2.0
#include "cli/episode.h"

#include "base/clock.h"
#include "base/sync/event.h"
#include "edge/record/recorder.h"
#include "net/zenoh/zenoh.h"
#include "wire/key.h"

#include <stdio.h>
#include <string.h>

// An episode of an hour takes a while to be saved.
#define PATIENCE_NS (60 * TD_NS_PER_S)
#define GRACE_NS (5 * TD_NS_PER_S) // for the transport to say that it is over

// Static: a late reply may still reach it.
static struct answer {
    td_event done;
    _Atomic bool came;
    char text[256];
} answer;

// Transport's thread.
static void on_reply(void *user, const td_net_sample *sample)
{
    (void)user;
    if (sample->is_error || !sample->whole) return;
    (void)snprintf(answer.text, sizeof answer.text, "%.*s",
                   (int)sample->head.size, (const char *)sample->head.data);
    answer.came = true;
}

static void on_done(void *user)
{
    (void)user;
    td_event_signal(&answer.done);
}

static td_err ask(td_net *net, const td_config_robot *config, const char *word,
                  td_errinfo *info)
{
    const td_wire_route route = {
        .cluster = config->cluster_uuid,
        .experiment = config->experiment_tag,
        .model = config->model_id,
        .version = config->model_version,
        .application = config->application_tag,
    };
    char key[TD_WIRE_MAX_KEY];
    int64_t over_ns = td_clock_monotonic_ns() + PATIENCE_NS;
    td_event_init(&answer.done);
    TD_TRY(td_wire_key(&route, config->client_uuid, "episode", key, info));
    TD_TRY(td_net_query(net, key, (td_slice){word, strlen(word)}, PATIENCE_NS,
                        on_reply, on_done, NULL, info));
    (void)td_event_wait_until(&answer.done, over_ns + GRACE_NS);
    if (answer.came || td_clock_monotonic_ns() < over_ns) return TD_OK;
    return td_fail(info, TD_ERR_TIMEOUT,
                   "no answer after %d s; a long episode may still be being "
                   "saved",
                   (int)(PATIENCE_NS / TD_NS_PER_S));
}

td_err td_cli_episode_request(const td_config_robot *config, const char *word,
                              td_errinfo *info)
{
    const td_net_zenoh_config net_config = {
        .mode = TD_NET_ZENOH_CLIENT,
        .connect = &config->endpoint,
        .connect_count = 1,
    };
    TD_AUTO(td_net) *net = NULL;
    TD_TRY(td_net_zenoh_open(&net_config, &net, info));
    TD_TRY(ask(net, config, word, info));
    if (!answer.came)
        return td_fail(info, TD_ERR_NOTFOUND, "no robot %s records at %s",
                       config->client_uuid, config->endpoint);
    if (strcmp(answer.text, TD_EDGE_EPISODE_OK) == 0) return TD_OK;
    return td_fail(info, TD_ERR_INVALID, "%s", answer.text);
}

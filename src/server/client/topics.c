// SPDX-License-Identifier: Apache-2.0
// A client's inbox is for what the loop must look at: very large observations
// in pieces, which take long to join, and those that are to be refused, since a
// callback must not put. It keeps the newest only: what a newer one displaces
// before the loop has looked at it is freed here, and its seq is remembered so
// that the robot can be told.
#include "server/shell.h"

#include <stdlib.h>
#include <string.h>

// Of more in pieces, which may be a tensor that has to be joined, the loop
// takes care: here other robots would wait for it.
#define JOIN_BYTES ((size_t)4 << 20)

static const td_net_qos action_qos = {
    .priority = TD_NET_INTERACTIVE_HIGH,
    .reliable = true,
    .express = true,
};

static void remember_skipped(td_server_mail *mail)
{
    if (!mail->has_seq) {
        mail->skipped_unnamed++;
        return;
    }
    if (mail->skipped_count == TD_WIRE_MAX_SUPERSEDED) {
        memmove(mail->skipped, mail->skipped + 1,
                sizeof mail->skipped - sizeof mail->skipped[0]);
        mail->skipped_count--;
        mail->skipped_untold++;
    }
    mail->skipped[mail->skipped_count++] = mail->seq;
}

static void leave_for_loop(td_server_inbox *inbox, td_net_msg *msg,
                           td_slice head, int64_t arrived_ns)
{
    uint64_t seq = 0;
    bool has_seq = td_wire_obs_peek(head.data, head.size, &seq) == TD_OK;
    pthread_mutex_lock(&inbox->lock);
    td_server_mail *mail = &inbox->mail;
    td_net_msg *displaced = mail->msg;
    if (displaced) remember_skipped(mail);
    mail->msg = msg;
    mail->arrived_ns = arrived_ns;
    mail->has_seq = has_seq;
    mail->seq = seq;
    pthread_mutex_unlock(&inbox->lock);
    if (displaced) td_net_msg_free(displaced);
}

// Transport's thread.
static void on_obs(void *user, const td_net_sample *sample)
{
    td_server_peer *peer = user;
    int64_t arrived_ns = td_clock_now_ns(&td_clock_monotonic);
    td_net_msg *msg = NULL;
    if (td_net_keep(sample, &msg) != TD_OK) {
        td_server_telemetry_dropped(peer->server);
        return;
    }
    bool quick = sample->whole || sample->size <= JOIN_BYTES;
    if (quick && td_server_arrive(peer, msg, arrived_ns)) return;
    leave_for_loop(&peer->inbox, msg, sample->head, arrived_ns);
    td_event_signal(&peer->server->wake);
}

void td_server_peer_drop_reset(td_server_model *server, td_net_msg *msg)
{
    td_server_telemetry_count(server, TD_SERVER_COUNT_RESETS_UNREAD);
    td_net_msg_free(msg);
}

// Transport's thread.
static void on_reset(void *user, const td_net_sample *sample)
{
    td_server_peer *peer = user;
    td_net_msg *msg = NULL;
    if (td_net_keep(sample, &msg) != TD_OK) {
        td_server_telemetry_dropped(peer->server);
        return;
    }
    pthread_mutex_lock(&peer->inbox.lock);
    td_net_msg *displaced = peer->inbox.mail.reset;
    peer->inbox.mail.reset = msg;
    pthread_mutex_unlock(&peer->inbox.lock);
    if (displaced) td_server_peer_drop_reset(peer->server, displaced);
    td_event_signal(&peer->server->wake);
}

static td_err declare(td_server_peer *peer, td_errinfo *info)
{
    td_server_model *server = peer->server;
    char key[TD_WIRE_MAX_KEY];
    TD_TRY(td_wire_key(&server->route, peer->id, "action", key, info));
    TD_TRY(td_net_publish(server->net, key, &action_qos, &peer->action, info));
    TD_TRY(td_wire_key(&server->route, peer->id, "reset", key, info));
    TD_TRY(
        td_net_subscribe(server->net, key, on_reset, peer, &peer->reset, info));
    TD_TRY(td_wire_key(&server->route, peer->id, "obs", key, info));
    return td_net_subscribe(server->net, key, on_obs, peer, &peer->obs, info);
}

td_err td_server_peer_open(td_server_model *server, uint32_t number,
                           const td_wire_attach *attach,
                           td_server_peer **ret_peer, td_errinfo *info)
{
    td_server_peer *peer = calloc(1, sizeof *peer);
    if (!peer) return TD_ERR_NOMEM;
    peer->server = server;
    peer->number = number;
    memcpy(peer->id, attach->client.data, attach->client.size);
    pthread_mutex_init(&peer->inbox.lock, NULL);
    td_err err = declare(peer, info);
    if (err != TD_OK) {
        td_server_peer_close(peer);
        return err;
    }
    *ret_peer = peer;
    return TD_OK;
}

// What came after the loop's last look goes with the client.
static void count_unread(const td_server_peer *peer)
{
    const td_server_mail *mail = &peer->inbox.mail;
    uint64_t unread = (mail->msg ? 1 : 0) + mail->skipped_count +
                      mail->skipped_untold + mail->skipped_unnamed;
    pthread_mutex_lock(&peer->server->device->lock);
    for (; unread > 0; unread--)
        td_server_core_stray(peer->server->core, TD_SERVER_DEPARTED);
    pthread_mutex_unlock(&peer->server->device->lock);
}

void td_server_peer_close(td_server_peer *peer)
{
    if (peer->obs) (void)td_net_undeclare(peer->obs);
    if (peer->reset) (void)td_net_undeclare(peer->reset);
    count_unread(peer);
    if (peer->action) td_net_unpublish(peer->action);
    if (peer->inbox.mail.msg) td_net_msg_free(peer->inbox.mail.msg);
    if (peer->inbox.mail.reset)
        td_server_peer_drop_reset(peer->server, peer->inbox.mail.reset);
    pthread_mutex_destroy(&peer->inbox.lock);
    free(peer);
}

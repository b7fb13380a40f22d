// SPDX-License-Identifier: Apache-2.0
// The transport's threads put, the loop takes. The lock is held for a copy of
// pointers and numbers; nothing is decoded, freed or signalled under it. A
// client's callbacks may come on several threads, so two may put at once: the
// later one wins, and the other counts as skipped.
#include "server/client/inbox.h"

#include <string.h>

void td_server_inbox_init(td_server_inbox *inbox)
{
    pthread_mutex_init(&inbox->lock, NULL);
}

void td_server_inbox_done(td_server_inbox *inbox)
{
    if (inbox->mail.msg) td_net_msg_free(inbox->mail.msg);
    if (inbox->mail.reset) td_net_msg_free(inbox->mail.reset);
    pthread_mutex_destroy(&inbox->lock);
}

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
        mail->skipped_unlisted++;
    }
    mail->skipped[mail->skipped_count++] = mail->seq;
}

void td_server_inbox_put(td_server_inbox *inbox, td_net_msg *msg, td_slice head,
                         int64_t arrived_ns)
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

td_net_msg *td_server_inbox_put_reset(td_server_inbox *inbox, td_net_msg *msg)
{
    pthread_mutex_lock(&inbox->lock);
    td_net_msg *displaced = inbox->mail.reset;
    inbox->mail.reset = msg;
    pthread_mutex_unlock(&inbox->lock);
    return displaced;
}

bool td_server_inbox_has_any(td_server_inbox *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    bool any = inbox->mail.msg || inbox->mail.reset;
    pthread_mutex_unlock(&inbox->lock);
    return any;
}

td_server_mail td_server_inbox_take(td_server_inbox *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    td_server_mail mail = inbox->mail;
    inbox->mail = (td_server_mail){0};
    pthread_mutex_unlock(&inbox->lock);
    return mail;
}

uint64_t td_server_inbox_count(const td_server_mail *mail)
{
    return (mail->msg ? 1 : 0) + mail->skipped_count + mail->skipped_unlisted +
           mail->skipped_unnamed;
}

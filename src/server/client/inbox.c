// SPDX-License-Identifier: Apache-2.0
// The transport's threads put, the loop takes. The lock is held for a copy of
// pointers and numbers; nothing is decoded, freed or signalled under it. A
// client's callbacks may come on several threads, so two may put at once: the
// later one wins, and the other counts as skipped.
#include "server/client/inbox.h"

#include <stdlib.h>
#include <string.h>

struct td_server_letter {
    td_net_msg *msg;
    int64_t arrived_ns;
    bool has_seq;
    uint64_t seq;
    td_server_letter *next;
};

void td_server_inbox_init(td_server_inbox *inbox, bool every)
{
    inbox->every = every;
    pthread_mutex_init(&inbox->lock, NULL);
}

void td_server_inbox_done(td_server_inbox *inbox)
{
    if (inbox->mail.msg) td_net_msg_free(inbox->mail.msg);
    if (inbox->mail.reset) td_net_msg_free(inbox->mail.reset);
    for (td_server_letter *next, *l = inbox->first; l; l = next) {
        next = l->next;
        td_net_msg_free(l->msg);
        free(l);
    }
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

static void set_first(td_server_mail *mail, const td_server_letter *letter)
{
    mail->msg = letter->msg;
    mail->arrived_ns = letter->arrived_ns;
    mail->has_seq = letter->has_seq;
    mail->seq = letter->seq;
}

// Returns what it displaced; NULL: nothing.
static td_net_msg *put_newest(td_server_inbox *inbox,
                              const td_server_letter *letter)
{
    td_net_msg *displaced = inbox->mail.msg;
    if (displaced) remember_skipped(&inbox->mail);
    set_first(&inbox->mail, letter);
    return displaced;
}

// Returns it where there is no room for it.
static td_net_msg *put_behind(td_server_inbox *inbox,
                              const td_server_letter *letter)
{
    if (inbox->letter_count == TD_SERVER_INBOX_LETTERS) return letter->msg;
    td_server_letter *kept = malloc(sizeof *kept);
    if (!kept) return letter->msg;
    *kept = *letter;
    if (inbox->last)
        inbox->last->next = kept;
    else
        inbox->first = kept;
    inbox->last = kept;
    inbox->letter_count++;
    return NULL;
}

bool td_server_inbox_put(td_server_inbox *inbox, td_net_msg *msg, td_slice head,
                         int64_t arrived_ns)
{
    td_server_letter letter = {.msg = msg, .arrived_ns = arrived_ns};
    letter.has_seq =
        td_wire_obs_peek(head.data, head.size, &letter.seq) == TD_OK;
    pthread_mutex_lock(&inbox->lock);
    bool behind = inbox->every && inbox->mail.msg;
    td_net_msg *out =
        behind ? put_behind(inbox, &letter) : put_newest(inbox, &letter);
    pthread_mutex_unlock(&inbox->lock);
    if (out) td_net_msg_free(out);
    return !behind || !out;
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
    td_server_letter *letter = inbox->first;
    if (letter) {
        set_first(&inbox->mail, letter);
        inbox->first = letter->next;
        if (!inbox->first) inbox->last = NULL;
        inbox->letter_count--;
    }
    pthread_mutex_unlock(&inbox->lock);
    free(letter);
    return mail;
}

uint64_t td_server_inbox_count(const td_server_inbox *inbox)
{
    const td_server_mail *mail = &inbox->mail;
    return (mail->msg ? 1 : 0) + mail->skipped_count + mail->skipped_unlisted +
           mail->skipped_unnamed + inbox->letter_count;
}

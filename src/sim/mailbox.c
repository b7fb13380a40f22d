// SPDX-License-Identifier: Apache-2.0
#include "sim/world.h"

#include <stdlib.h>

void td_sim_mailbox_init(td_sim_mailbox *mailbox)
{
    mailbox->first = NULL;
    mailbox->last = &mailbox->first;
}

void td_sim_mailbox_add(void *user, const td_net_sample *sample)
{
    td_sim_mailbox *mailbox = user;
    td_sim_mailbox_entry *entry = calloc(1, sizeof *entry);
    if (!entry || td_net_keep(sample, &entry->msg) != TD_OK) abort();
    *mailbox->last = entry;
    mailbox->last = &entry->next;
}

td_net_msg *td_sim_mailbox_take(td_sim_mailbox *mailbox)
{
    td_sim_mailbox_entry *entry = mailbox->first;
    if (!entry) return NULL;
    mailbox->first = entry->next;
    if (!mailbox->first) mailbox->last = &mailbox->first;
    td_net_msg *msg = entry->msg;
    free(entry);
    return msg;
}

td_err td_sim_mailbox_put(td_net_pub *pub, const td_wire_encoder *encoder)
{
    size_t count;
    const td_slice *parts = td_wire_encoder_parts(encoder, &count);
    return td_net_put(pub, parts, count, NULL, NULL);
}

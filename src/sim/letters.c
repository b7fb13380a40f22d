// SPDX-License-Identifier: Apache-2.0
#include "sim/world.h"

#include <stdlib.h>

void td_sim_letters_init(td_sim_letters *letters)
{
    letters->first = NULL;
    letters->last = &letters->first;
}

void td_sim_letters_add(void *user, const td_net_sample *sample)
{
    td_sim_letters *letters = user;
    td_sim_letter *letter = calloc(1, sizeof *letter);
    if (!letter || td_net_keep(sample, &letter->msg) != TD_OK) abort();
    *letters->last = letter;
    letters->last = &letter->next;
}

td_net_msg *td_sim_letters_take(td_sim_letters *letters)
{
    td_sim_letter *letter = letters->first;
    if (!letter) return NULL;
    letters->first = letter->next;
    if (!letters->first) letters->last = &letters->first;
    td_net_msg *msg = letter->msg;
    free(letter);
    return msg;
}

td_err td_sim_letters_put(td_net_pub *pub, const td_wire_encoder *encoder)
{
    size_t count;
    const td_slice *parts = td_wire_encoder_parts(encoder, &count);
    return td_net_put(pub, parts, count, NULL, NULL);
}

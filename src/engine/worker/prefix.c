// SPDX-License-Identifier: Apache-2.0
#include "engine/worker/prefix.h"

#include <stdlib.h>

td_engine_prefix *
td_engine_worker_prefix_new(td_engine_worker_prefixes *prefixes, uint64_t life)
{
    td_engine_prefix *prefix = malloc(sizeof *prefix);
    if (prefix)
        *prefix =
            (td_engine_prefix){.number = ++prefixes->numbers, .life = life};
    return prefix;
}

// What the process says of itself may be wrong, and then it gets none.
bool td_engine_worker_prefix_hand_over(td_engine_worker_prefixes *prefixes,
                                       td_worker_offer *offer,
                                       const td_worker_hello *hello)
{
    uint64_t done = __atomic_load_n(&hello->dropped, __ATOMIC_ACQUIRE);
    if (!prefixes->drop && prefixes->dropped == done) return false;
    while (prefixes->drop && prefixes->dropped - done < TD_WORKER_DROPS) {
        td_engine_prefix *prefix = prefixes->drop;
        prefixes->drop = prefix->next;
        offer->drops[prefixes->dropped++ % TD_WORKER_DROPS] = prefix->number;
        free(prefix);
    }
    __atomic_store_n(&offer->dropped, prefixes->dropped, __ATOMIC_RELEASE);
    return true;
}

void td_engine_worker_prefix_drop(td_engine_worker_prefixes *prefixes,
                                  td_engine_prefix *prefix,
                                  td_worker_offer *offer,
                                  const td_worker_hello *hello)
{
    if (!offer || prefix->life != prefixes->life) {
        free(prefix);
        return;
    }
    prefix->next = prefixes->drop;
    prefixes->drop = prefix;
    (void)td_engine_worker_prefix_hand_over(prefixes, offer, hello);
}

void td_engine_worker_prefix_forget(td_engine_worker_prefixes *prefixes)
{
    while (prefixes->drop) {
        td_engine_prefix *prefix = prefixes->drop;
        prefixes->drop = prefix->next;
        free(prefix);
    }
    prefixes->dropped = 0;
    prefixes->life++;
}

// SPDX-License-Identifier: Apache-2.0
// Prefixes: numbers that stand for what the process keeps.
//
// Dropping one takes no place among the batches and waits for nobody: its
// number goes into the offer, and the process lets it go when it looks for its
// next batch. Only one that is idle is woken for it, now and then.
#include "engine/worker/internal.h"

#include <stdlib.h>

td_engine_prefix *td_engine_worker_prefix_new(td_engine_worker_self *self,
                                              uint64_t life)
{
    td_engine_prefix *prefix = malloc(sizeof *prefix);
    if (prefix)
        *prefix = (td_engine_prefix){.number = ++self->prefixes, .life = life};
    return prefix;
}

// As many as there is room for; what the process says of itself may be wrong,
// and then it gets none.
static void hand_over_locked(td_engine_worker_self *self)
{
    td_worker_offer *offer = self->process.offer;
    uint64_t done =
        __atomic_load_n(&self->process.hello->dropped, __ATOMIC_ACQUIRE);
    while (self->drop && self->dropped - done < TD_WORKER_DROPS) {
        td_engine_prefix *prefix = self->drop;
        self->drop = prefix->next;
        offer->drops[self->dropped++ % TD_WORKER_DROPS] = prefix->number;
        free(prefix);
    }
    __atomic_store_n(&offer->dropped, self->dropped, __ATOMIC_RELEASE);
}

void td_engine_worker_prefix_drop(td_engine *engine, td_engine_prefix *prefix)
{
    td_engine_worker_self *self = (td_engine_worker_self *)engine;
    pthread_mutex_lock(&self->lock);
    if (prefix->life == self->life &&
        self->watch.phase == TD_ENGINE_WORKER_UP) {
        prefix->next = self->drop;
        self->drop = prefix;
        hand_over_locked(self);
    } else {
        free(prefix);
    }
    pthread_mutex_unlock(&self->lock);
}

void td_engine_worker_prefix_forget(td_engine_worker_self *self)
{
    while (self->drop) {
        td_engine_prefix *prefix = self->drop;
        self->drop = prefix->next;
        free(prefix);
    }
    self->dropped = 0;
    self->life++;
}

void td_engine_worker_prefix_remind(td_engine_worker_self *self)
{
    if (!self->agreed.prefix || self->watch.phase != TD_ENGINE_WORKER_UP)
        return;
    uint64_t done =
        __atomic_load_n(&self->process.hello->dropped, __ATOMIC_ACQUIRE);
    if (!self->drop && self->dropped == done) return;
    hand_over_locked(self);
    if (self->watch.running == 0) td_engine_worker_process_ring(&self->process);
}

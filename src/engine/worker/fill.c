// SPDX-License-Identifier: Apache-2.0
// Batches into the ring: the thread td-worker-fill, or whoever submits.
//
// Filling is decoding and copying, which takes milliseconds for compressed
// frames, so that it has a thread of its own: the next batch is written while
// one runs. A batch for an idle process that only has to be copied, and not
// much of it, is written by whoever submits it (td_engine_worker_fill_claim):
// there is nothing to overlap, and a hand-over less. Either way one batch is
// filled at a time, which `filling` says.
//
// A batch runs in rounds. Members that are no suspects (suspects.c) go together
// in the first; each suspect goes alone in one after that; those that are
// guilty are refused here. After a round the supervisor makes the slot WAITING
// again, and it comes back.
//
// self->lock is held to take a slot and to hand it on, and not while writing.
// When the process ends meanwhile, `lost` of the slot says so: the rest is not
// written, and the supervisor completes the batch.
//
// Stop: close() sets `filler_stop` when the supervisor has ended; the thread
// leaves at its next look for work.
#include "base/clock.h"
#include "engine/worker/internal.h"

// Copying this takes no longer than waking the filler for it may.
#define SHORT_BYTES ((size_t)2 << 20)

// One is filled at a time, by whichever thread.
static td_engine_worker_slot *next_locked(td_engine_worker_self *self)
{
    return self->filling ? NULL : td_engine_worker_slots_waiting(&self->slots);
}

static void begin_locked(td_engine_worker_self *self,
                         td_engine_worker_slot *slot,
                         td_engine_worker_writer *ret_writer)
{
    size_t index = (size_t)(slot - self->slots.each);
    slot->state = TD_ENGINE_WORKER_FILLING;
    slot->life = self->prefixes.life;
    self->filling = true;
    slot->has_suspects = self->suspects.count > 0;
    *ret_writer = (td_engine_worker_writer){.spec = &self->agreed,
                                            .layout = &self->layout,
                                            .pictures = self->pictures};
    td_engine_worker_write_begin(ret_writer, slot->operation,
                                 self->process.requests +
                                     index * self->layout.request_bytes);
}

// NULL when there will be nothing more.
static td_engine_worker_slot *take(td_engine_worker_self *self,
                                   td_engine_worker_writer *ret_writer)
{
    pthread_mutex_lock(&self->lock);
    td_engine_worker_slot *slot;
    while (!(slot = next_locked(self)) && !self->filler_stop)
        pthread_cond_wait(&self->work, &self->lock);
    if (slot) begin_locked(self, slot, ret_writer);
    pthread_mutex_unlock(&self->lock);
    return slot;
}

static void judge(td_engine_worker_self *self, td_engine_worker_slot *slot,
                  uint32_t index)
{
    td_engine_item *item = slot->batch->items[index];
    switch (
        td_engine_worker_suspects_find(&self->suspects, slot->hashes[index])) {
    case TD_ENGINE_WORKER_INNOCENT:
        break;
    case TD_ENGINE_WORKER_SUSPECT:
        slot->round_of[index] = slot->rounds++;
        break;
    case TD_ENGINE_WORKER_GUILTY:
        item->status = td_fail(item->info, TD_ERR_DENIED,
                               "this observation has ended %s twice and is not "
                               "run again",
                               self->name);
        slot->pending[index] = false;
        break;
    }
}

// Who runs in which round. Nobody is hashed while there is no suspect, nor one
// that is decoded without its observation.
static void arrange(td_engine_worker_self *self, td_engine_worker_slot *slot)
{
    slot->rounds = 1;
    for (uint32_t i = 0; i < slot->batch->count; i++)
        slot->round_of[i] = 0;
    if (!slot->has_suspects) return;
    for (uint32_t i = 0; i < slot->batch->count; i++)
        if (td_engine_worker_is_whole(slot->batch->items[i]))
            slot->hashes[i] =
                td_engine_worker_suspects_hash(slot->batch->items[i]->obs);
    pthread_mutex_lock(&self->lock);
    for (uint32_t i = 0; i < slot->batch->count; i++)
        if (td_engine_worker_is_whole(slot->batch->items[i]))
            judge(self, slot, i);
    pthread_mutex_unlock(&self->lock);
}

// The number of what is decoded, or of what will be made.
static td_err number_of(td_engine_worker_self *self,
                        td_engine_worker_slot *slot, uint32_t index,
                        uint64_t *ret_number)
{
    const td_engine_item *item = slot->batch->items[index];
    if (slot->operation == TD_WORKER_WHOLE) return TD_OK;
    if (slot->operation == TD_WORKER_DECODE) {
        if (!item->prefix) return TD_ERR_INVALID;
        if (item->prefix->life != slot->life)
            return td_fail(item->info, TD_ERR_NOTFOUND,
                           "its prefix went with a %s that ended", self->name);
        *ret_number = item->prefix->number;
        return TD_OK;
    }
    slot->made[index] =
        td_engine_worker_prefix_new(&self->prefixes, slot->life);
    if (!slot->made[index]) return TD_ERR_NOMEM;
    *ret_number = slot->made[index]->number;
    return TD_OK;
}

static td_err write_one(td_engine_worker_self *self,
                        td_engine_worker_slot *slot, uint32_t index,
                        td_engine_worker_writer *writer)
{
    const td_engine_item *item = slot->batch->items[index];
    uint64_t number = 0;
    TD_TRY(number_of(self, slot, index, &number));
    td_engine_worker_segments_place(&self->segments, self->process.hello,
                                    item->obs, writer->places);
    return td_engine_worker_write_member(writer, item, number, item->info);
}

static void write_round(td_engine_worker_self *self,
                        td_engine_worker_slot *slot,
                        td_engine_worker_writer *writer)
{
    slot->count = 0;
    for (uint32_t i = 0; i < slot->batch->count; i++) {
        if (!slot->pending[i] || slot->round_of[i] != slot->round) continue;
        if (atomic_load(&slot->lost)) return;
        td_err err = write_one(self, slot, i, writer);
        slot->batch->items[i]->status = err;
        slot->pending[i] = err == TD_OK;
        if (err == TD_OK) slot->members[slot->count++] = i;
    }
}

static void run_locked(td_engine_worker_self *self, td_engine_worker_slot *slot,
                       const td_engine_worker_writer *writer)
{
    slot->state = TD_ENGINE_WORKER_RUNNING;
    slot->generation = ++self->slots.generation;
    slot->found_idle = self->watch.running == 0;
    slot->rung_ns = td_clock_monotonic_ns();
    td_engine_worker_watch_submitted(&self->watch, slot->rung_ns);
    td_engine_worker_write_end(writer, slot->generation);
    td_engine_worker_process_ring(&self->process);
}

// What was written, to the process, or, when nothing could be, on.
static void hand_on(td_engine_worker_self *self, td_engine_worker_slot *slot,
                    const td_engine_worker_writer *writer)
{
    pthread_mutex_lock(&self->lock);
    self->filling = false;
    if (td_engine_worker_slots_waiting(&self->slots))
        pthread_cond_signal(&self->work);
    bool over = atomic_load(&slot->lost);
    if (!over && slot->count > 0) {
        run_locked(self, slot, writer);
    } else if (!over && slot->round + 1 < slot->rounds) {
        slot->round++;
        slot->state = TD_ENGINE_WORKER_WAITING;
    } else {
        slot->state = TD_ENGINE_WORKER_OVER;
        over = true;
    }
    pthread_mutex_unlock(&self->lock);
    if (over) td_engine_worker_wake(self);
}

void td_engine_worker_fill_slot(td_engine_worker_self *self,
                                td_engine_worker_slot *slot,
                                td_engine_worker_writer *writer)
{
    if (slot->round == 0) arrange(self, slot);
    write_round(self, slot, writer);
    hand_on(self, slot, writer);
}

void td_engine_worker_fill(void *user)
{
    td_engine_worker_self *self = user;
    td_engine_worker_writer writer;
    td_engine_worker_slot *slot;
    while ((slot = take(self, &writer)))
        td_engine_worker_fill_slot(self, slot, &writer);
}

// Whether writing it is no more than copying, and not of much.
static bool is_short(const td_engine_batch *batch)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        const td_wire_obs *obs = batch->items[i]->obs;
        for (uint32_t j = 0; obs && j < obs->image_count; j++) {
            if (obs->images[j].codec != TD_WIRE_RAW) return false;
            bytes += obs->images[j].size;
        }
        for (uint32_t j = 0; obs && j < obs->tensor_count; j++)
            bytes += obs->tensors[j].tensor.size;
    }
    return bytes <= SHORT_BYTES;
}

static bool is_alone_locked(const td_engine_worker_self *self,
                            const td_engine_worker_slot *slot)
{
    return !td_engine_worker_slots_busy(&self->slots, slot) && !self->filling &&
           self->suspects.count == 0;
}

bool td_engine_worker_fill_claim(td_engine_worker_self *self,
                                 td_engine_worker_slot *slot,
                                 td_engine_worker_writer *ret_writer)
{
    if (!is_alone_locked(self, slot) || !is_short(slot->batch)) return false;
    begin_locked(self, slot, ret_writer);
    return true;
}

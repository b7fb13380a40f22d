// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_WORKER_INTERNAL_H
#define TD_ENGINE_WORKER_INTERNAL_H

// What the files of the worker engine share. Private to engine/worker/.
//
// Two threads: the filler writes batches into the ring, so that decoding one
// overlaps running another; the supervisor owns the process, takes answers and
// calls `done`. A batch for an idle process that only has to be copied, and not
// much of it, is written by whoever submits it: there is nothing to overlap,
// and a hand-over less. `lock` is never held while waiting for anything, nor
// over `done`.

#include "base/sync/thread.h"
#include "engine/worker/process.h"
#include "engine/worker/ring/segments.h"
#include "engine/worker/ring/spec.h"
#include "engine/worker/slots.h"
#include "engine/worker/suspects.h"
#include "engine/worker/watch.h"
#include "engine/worker/worker.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct td_engine_worker_self {
    td_engine engine;
    td_engine_ops ops; // what this worker can do
    char name[160];    // "worker pi0/v1"
    char **argv;
    char python_path[4096];
    td_engine_worker_command command;
    td_worker_offer offer; // what every start begins with
    td_worker_spec agreed;
    td_engine_spec spec;
    td_engine_worker_layout layout;
    td_engine_picture_reader *pictures; // of who fills
    td_engine_worker_segments segments; // the supervisor changes it, with the
                                        // lock, while nobody fills
    int64_t segments_due_ns;            // the supervisor's: when to look again
    td_thread *supervisor, *filler;
    int wake_fd; // for the supervisor
    td_hist overhead_ns;
    _Atomic int health;
    _Atomic int pid;
    td_worker_hello hello; // the supervisor's copy
    bool is_lost; // the supervisor's: everybody knows that this process is lost
    uint32_t starved; // the supervisor's: batches in a row without memory

    pthread_mutex_t lock;             // guards everything below
    pthread_cond_t work;              // for the filler
    pthread_cond_t started;           // for open()
    td_engine_worker_process process; // the supervisor changes it
    td_engine_worker_watch watch;
    td_engine_worker_suspects suspects;
    td_engine_worker_slots slots;
    td_engine_worker_prefixes prefixes;
    bool filling;     // somebody does
    bool stopping;    // take nothing more, finish and stop
    bool filler_stop; // there will be nothing more to fill
    bool opened, failed;
    td_err why_failed;
    td_errinfo failure; // why the first start failed; how the last one ended
} td_engine_worker_self;

// The threads' functions.
void td_engine_worker_supervise(void *user);
void td_engine_worker_fill(void *user);

// Whether the caller, who has just submitted it, is to fill it: then with
// td_engine_worker_fill_slot(), at once. With the lock.
bool td_engine_worker_fill_claim(td_engine_worker_self *self,
                                 td_engine_worker_slot *slot,
                                 td_engine_worker_writer *ret_writer);

// Writes a round of the batch and rings, or has it completed where nothing of
// it could be written. Blocks while it decodes. Without the lock.
void td_engine_worker_fill_slot(td_engine_worker_self *self,
                                td_engine_worker_slot *slot,
                                td_engine_worker_writer *writer);

// Whether all that the model sees is there: what only asks for an answer once
// more says nothing.
static inline bool td_engine_worker_is_whole(const td_engine_item *item)
{
    return item->obs && !item->obs->has_again;
}

// Wakes the supervisor. Any thread.
void td_engine_worker_wake(const td_engine_worker_self *self);

// What a process that starts has to say. On the supervisor. FORMAT, VERSION,
// MISMATCH, INVALID, LIMIT, CLOSED: it is no use.
TD_NODISCARD td_err td_engine_worker_handshake(td_engine_worker_self *self,
                                               td_errinfo *info);

// After the watch has changed, with the lock.
void td_engine_worker_set_health(td_engine_worker_self *self);

#endif

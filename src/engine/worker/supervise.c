// SPDX-License-Identifier: Apache-2.0
// The supervisor: the thread td-worker, which owns the worker's process.
//
// It starts the process, shakes hands (handshake.c), takes answers, completes
// batches, reads what the process prints, and starts another when it has ended.
// When to do which is decided by watch.c, which is pure; this file only acts.
//
// It sleeps in poll() on four things: its own eventfd (td_engine_worker_wake:
// something is over, or close() began), the process' end, its answers, its
// output; and no longer than the watch says. Once a second it also looks for
// shared memory in which robots' frames lie (ring/segments.c).
//
// A process is lost when it ended, hangs, starts too slowly, answers with
// nonsense or has no memory three times in a row. lose() tells everybody at
// once: those whose observations it had are struck (suspects.c), all batches
// that wait or run fail with the reason, and a filler that is still writing is
// shown `lost` and leaves its batch to complete_over(). `is_lost` holds from
// then until the next start, so that nothing is told twice. Memory and eventfds
// are new for each start; the old ones go when nobody fills them any more.
//
// self->lock guards what the threads share (internal.h). It is held for a few
// assignments at a time, never in poll(), in start() or over `done`, inside
// which the next batch may be submitted.
//
// Stop: close() sets `stopping`, after which nothing more is taken. Drain: what
// was taken is answered, or lost with the process. End: the process is asked to
// end, after two seconds killed with all that it started, and reaped.
#include "base/clock.h"
#include "base/log.h"
#include "engine/worker/internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_NS (100 * TD_NS_PER_MS) // at least this often, at a batch too
#define GRACE_NS (2 * TD_NS_PER_S)
#define STARVED 3               // batches in a row for which it had no memory
#define SEGMENTS_NS TD_NS_PER_S // from one look for files of frames to the next

void td_engine_worker_set_health(td_engine_worker_self *self)
{
    atomic_store(&self->health,
                 (int)td_engine_worker_watch_health(&self->watch));
}

// Ends every member that has no outcome.
static void fail_pending(const td_engine_worker_slot *slot, td_err err,
                         const char *text)
{
    for (uint32_t i = 0; i < slot->batch->count; i++) {
        td_engine_item *item = slot->batch->items[i];
        if (slot->pending[i])
            item->status = td_fail(item->info, err, "%s", text);
    }
}

// What is over is completed outside the lock.
typedef struct completion {
    td_engine_done done; // NULL: it is not over
    void *user;
    td_engine_batch *batch;
} completion;

// The slot is free before `done`, which may submit the next batch.
static completion end_locked(td_engine_worker_slot *slot)
{
    for (uint32_t i = 0; i < slot->batch->count; i++)
        free(slot->made[i]); // of those that failed
    slot->state = TD_ENGINE_WORKER_FREE;
    return (completion){slot->done, slot->user, slot->batch};
}

static void complete(td_engine_worker_self *self, td_engine_worker_slot *slot)
{
    pthread_mutex_lock(&self->lock);
    completion over = end_locked(slot);
    pthread_mutex_unlock(&self->lock);
    over.done(over.user, over.batch);
}

// Those that were in the worker's hands: one, if it said which, or all of the
// batch that it said, or of the oldest.
static void strike_locked(td_engine_worker_self *self)
{
    const td_worker_hello *hello = self->process.hello;
    uint64_t running = __atomic_load_n(&hello->running, __ATOMIC_RELAXED);
    uint32_t member = __atomic_load_n(&hello->member, __ATOMIC_RELAXED);
    const td_engine_worker_slot *slot =
        td_engine_worker_slots_accused(&self->slots, running);
    if (!slot) return;
    bool known = slot->generation == running && member < slot->count;
    for (uint32_t i = 0; i < slot->count; i++) {
        if (known && i != member) continue;
        td_engine_item *item = slot->batch->items[slot->members[i]];
        if (!td_engine_worker_is_whole(item)) continue;
        td_engine_worker_suspects_strike(
            &self->suspects, td_engine_worker_suspects_hash(item->obs));
    }
}

static void fail_first_start(td_engine_worker_self *self, td_err err)
{
    if (self->opened) return;
    self->failed = true;
    self->why_failed = err;
    pthread_cond_broadcast(&self->started);
}

// It may be cut, and what is left must still be whole for a message.
static void say_failure(td_engine_worker_self *self, const char *how)
{
    td_errinfo text;
    (void)td_fail(&text, TD_OK, "%s %s", self->name, how);
    td_engine_worker_spec_text(text.text, sizeof text.text - 1,
                               self->failure.text);
}

// No answer will come from this process: everybody is told.
static void lose(td_engine_worker_self *self, td_err err, const char *how)
{
    td_engine_worker_slot *lost[TD_WORKER_SLOTS];
    pthread_mutex_lock(&self->lock);
    say_failure(self, how);
    if (self->watch.phase == TD_ENGINE_WORKER_UP) strike_locked(self);
    td_engine_worker_watch_ended(&self->watch, td_clock_monotonic_ns());
    td_engine_worker_set_health(self);
    size_t count = td_engine_worker_slots_lose(&self->slots, lost);
    int64_t rest_ns = td_engine_worker_watch_rest_ns(&self->watch);
    bool again = self->opened && !self->stopping;
    fail_first_start(self, err);
    pthread_mutex_unlock(&self->lock);
    self->is_lost = true;
    for (size_t i = 0; i < count; i++) {
        fail_pending(lost[i], TD_ERR_CLOSED, self->failure.text);
        complete(self, lost[i]);
    }
    if (again)
        td_log_text(TD_LOG_WARN, "%s; it starts again in %.1f s",
                    self->failure.text, (double)rest_ns / TD_NS_PER_S);
}

static void give_up(td_engine_worker_self *self, td_err err, const char *why)
{
    td_engine_worker_process_kill(&self->process);
    lose(self, err, why);
}

static void start(td_engine_worker_self *self)
{
    td_errinfo info = {""};
    td_engine_worker_process process;
    td_err err = td_engine_worker_process_start(&self->command, &self->offer,
                                                &process, &info);
    pthread_mutex_lock(&self->lock);
    td_engine_worker_watch_started(&self->watch, td_clock_monotonic_ns());
    td_engine_worker_prefix_forget(&self->prefixes);
    td_engine_worker_segments_forget(&self->segments);
    if (err == TD_OK) self->process = process;
    pthread_mutex_unlock(&self->lock);
    self->is_lost = false;
    self->starved = 0;
    if (err != TD_OK) {
        lose(self, err, info.text);
        return;
    }
    atomic_store(&self->pid, process.pid);
    td_log_text(TD_LOG_INFO, "%s: starts as process %d", self->name,
                (int)process.pid);
}

// After a round: the next one, or the end.
static completion end_round_locked(td_engine_worker_self *self,
                                   td_engine_worker_slot *slot)
{
    for (uint32_t i = 0; i < slot->count; i++) {
        slot->pending[slot->members[i]] = false;
        // It survived that one, alone; of two halves, the second.
        if (slot->round > 0 && slot->operation != TD_WORKER_PREFIX)
            td_engine_worker_suspects_clear(&self->suspects,
                                            slot->hashes[slot->members[i]]);
    }
    if (slot->round + 1 == slot->rounds) return end_locked(slot);
    slot->round++;
    slot->state = TD_ENGINE_WORKER_WAITING;
    pthread_cond_signal(&self->work);
    return (completion){0};
}

static td_err read_round(const td_engine_worker_self *self,
                         td_engine_worker_slot *slot,
                         const td_worker_result *result,
                         int64_t *ret_service_ns)
{
    const td_engine_worker_reader reader = {&self->agreed, &self->layout,
                                            slot->operation, result};
    td_engine_item *items[TD_ENGINE_MAX_BATCH];
    for (uint32_t i = 0; i < slot->count; i++)
        items[i] = slot->batch->items[slot->members[i]];
    TD_TRY(td_engine_worker_read(&reader, items, slot->count, ret_service_ns));
    for (uint32_t i = 0; i < slot->count; i++)
        if (slot->operation == TD_WORKER_PREFIX && items[i]->status == TD_OK)
            items[i]->prefix = TD_TAKE(slot->made[slot->members[i]]);
    return TD_OK;
}

// One that leaks does not get better by itself.
static bool is_starved(td_engine_worker_self *self,
                       const td_engine_worker_slot *slot)
{
    bool fed = false;
    for (uint32_t i = 0; i < slot->count; i++)
        fed |= slot->batch->items[slot->members[i]]->status != TD_ERR_NOMEM;
    self->starved = fed ? 0 : self->starved + 1;
    return self->starved >= STARVED;
}

static void take_answer(td_engine_worker_self *self,
                        td_engine_worker_slot *slot,
                        const td_worker_result *result)
{
    int64_t seen_ns = td_clock_monotonic_ns();
    int64_t service_ns = 0;
    if (read_round(self, slot, result, &service_ns) != TD_OK) {
        give_up(self, TD_ERR_FORMAT, "answered with nonsense");
        return;
    }
    int64_t passed_ns = seen_ns - slot->rung_ns;
    if (service_ns > passed_ns) service_ns = passed_ns; // it cannot be
    if (slot->found_idle)
        td_hist_record(&self->overhead_ns, passed_ns - service_ns);
    slot->batch->service_ns += service_ns;
    bool starved = is_starved(self, slot);
    pthread_mutex_lock(&self->lock);
    td_engine_worker_watch_answered(&self->watch, seen_ns, service_ns);
    completion over = end_round_locked(self, slot);
    pthread_mutex_unlock(&self->lock);
    if (over.done) over.done(over.user, over.batch);
    if (starved) give_up(self, TD_ERR_NOMEM, "has run out of memory");
}

// Which slots are in this state, a bit each. Only the supervisor takes one out
// of RUNNING or OVER, so for it they stay so.
static uint32_t slots_in(td_engine_worker_self *self,
                         td_engine_worker_slot_state state)
{
    uint32_t found = 0;
    pthread_mutex_lock(&self->lock);
    for (size_t i = 0; i < TD_WORKER_SLOTS; i++)
        if (self->slots.each[i].state == state) found |= 1U << i;
    pthread_mutex_unlock(&self->lock);
    return found;
}

// One that begins to run meanwhile rings again.
static void take_answers(td_engine_worker_self *self)
{
    uint32_t running = slots_in(self, TD_ENGINE_WORKER_RUNNING);
    for (size_t i = 0; i < TD_WORKER_SLOTS && !self->is_lost; i++) {
        td_engine_worker_slot *slot = &self->slots.each[i];
        const td_worker_result *result =
            (const void *)(self->process.results +
                           i * self->layout.result_bytes);
        if (running >> i & 1 &&
            td_engine_worker_read_ready(result, slot->generation))
            take_answer(self, slot, result);
    }
}

static void on_answer(td_engine_worker_self *self)
{
    if (self->is_lost) return;
    if (self->watch.phase == TD_ENGINE_WORKER_STARTING) {
        td_errinfo info = {""};
        td_err err = td_engine_worker_handshake(self, &info);
        if (err != TD_OK) give_up(self, err, info.text);
        return;
    }
    if (self->watch.phase == TD_ENGINE_WORKER_UP) take_answers(self);
}

static bool drain(int fd)
{
    uint64_t count;
    return read(fd, &count, sizeof count) == sizeof count;
}

static void on_end(td_engine_worker_self *self)
{
    char how[640];
    if (drain(self->process.answer_fd)) on_answer(self); // its last
    atomic_store(&self->pid, 0);
    td_engine_worker_process_reap(&self->process, self->name, how, sizeof how);
    if (!self->is_lost) lose(self, TD_ERR_CLOSED, how);
}

// What the filler left for us.
static void complete_over(td_engine_worker_self *self)
{
    uint32_t over = slots_in(self, TD_ENGINE_WORKER_OVER);
    for (size_t i = 0; i < TD_WORKER_SLOTS; i++) {
        td_engine_worker_slot *slot = &self->slots.each[i];
        if (!(over >> i & 1)) continue;
        fail_pending(slot, TD_ERR_CLOSED, self->failure.text);
        complete(self, slot);
    }
}

static void wait_until(td_engine_worker_self *self, int64_t until_ns)
{
    int64_t left_ns = until_ns - td_clock_monotonic_ns();
    if (left_ns > LOOK_NS) left_ns = LOOK_NS;
    if (left_ns < 0) left_ns = 0;
    struct timespec left = {.tv_nsec = (long)left_ns};
    td_engine_worker_process *process = &self->process;
    struct pollfd fds[] = {{process->answer_fd, POLLIN, 0},
                           {process->pid_fd, POLLIN, 0},
                           {self->wake_fd, POLLIN, 0},
                           {process->output_fd, POLLIN, 0}};
    if (ppoll(fds, TD_COUNT_OF(fds), &left, NULL) <= 0) return;
    if (fds[0].revents && drain(process->answer_fd)) on_answer(self);
    if (fds[2].revents && drain(self->wake_fd)) complete_over(self);
    if (fds[3].revents)
        td_engine_worker_process_read_output(process, self->name);
    if (fds[1].revents) on_end(self);
}

// Where frames lie that need not be copied. What a batch may point to stays.
static void tend_segments(td_engine_worker_self *self)
{
    int64_t now = td_clock_monotonic_ns();
    if (now < self->segments_due_ns) return;
    self->segments_due_ns = now + SEGMENTS_NS;
    td_engine_worker_segments_change change;
    td_engine_worker_segments_scan(&self->segments, &change);
    pthread_mutex_lock(&self->lock);
    bool may = self->watch.phase == TD_ENGINE_WORKER_UP && !self->filling;
    if (self->watch.running > 0) change.gone = 0;
    if (may && td_engine_worker_segments_apply(&self->segments, &change,
                                               self->process.offer))
        td_engine_worker_process_ring(&self->process);
    pthread_mutex_unlock(&self->lock);
}

static void say_limit(char ret_text[128], const char *what, int64_t limit_ns,
                      const char *setting)
{
    (void)snprintf(ret_text, 128, "%s for %.1f s (%s)", what,
                   (double)limit_ns / (double)TD_NS_PER_S, setting);
}

// A process that has nothing else to do is woken to drop prefixes.
static void remind_locked(td_engine_worker_self *self)
{
    if (!self->agreed.prefix || self->watch.phase != TD_ENGINE_WORKER_UP)
        return;
    bool left = td_engine_worker_prefix_hand_over(
        &self->prefixes, self->process.offer, self->process.hello);
    if (left && self->watch.running == 0)
        td_engine_worker_process_ring(&self->process);
}

static bool goes_on_locked(const td_engine_worker_self *self)
{
    bool busy = td_engine_worker_slots_busy(&self->slots, NULL);
    return !self->failed && (!self->stopping || busy);
}

// Does what is due, and says when to look again. False: it is the end.
static bool decide(td_engine_worker_self *self, int64_t *ret_until_ns)
{
    char why[128];
    int64_t until_ns = 0;
    pthread_mutex_lock(&self->lock);
    if (!goes_on_locked(self)) {
        pthread_mutex_unlock(&self->lock);
        return false;
    }
    const td_worker_hello *hello = self->process.hello;
    uint64_t beat = hello ? __atomic_load_n(&hello->beat, __ATOMIC_RELAXED) : 0;
    bool ended = self->process.pid == 0;
    bool free_memory = ended && hello && !self->filling;
    int64_t hang_ns = td_engine_worker_watch_hang_ns(&self->watch);
    td_engine_worker_verdict verdict = td_engine_worker_watch_decide(
        &self->watch, td_clock_monotonic_ns(), beat, &until_ns);
    if (free_memory) td_engine_worker_process_release(&self->process);
    remind_locked(self);
    bool may_start = !self->process.hello && !self->stopping;
    pthread_mutex_unlock(&self->lock);
    switch (verdict) {
    case TD_ENGINE_WORKER_WAIT:
        break;
    case TD_ENGINE_WORKER_START:
        if (may_start) start(self);
        break;
    case TD_ENGINE_WORKER_TOO_LATE:
        say_limit(why, "was not ready", self->watch.limits.start_ns, "start_s");
        give_up(self, TD_ERR_TIMEOUT, why);
        break;
    case TD_ENGINE_WORKER_HANGS:
        say_limit(why, "stood still", hang_ns, "answer_s");
        give_up(self, TD_ERR_TIMEOUT, why);
        break;
    }
    *ret_until_ns = verdict == TD_ENGINE_WORKER_WAIT
                        ? until_ns
                        : td_clock_monotonic_ns() + LOOK_NS;
    return true;
}

// Its output is read meanwhile, so that it cannot wait for us.
static void wait_for_end(td_engine_worker_self *self, int64_t until_ns)
{
    td_engine_worker_process *process = &self->process;
    struct pollfd end = {process->pid_fd, POLLIN, 0};
    while (td_clock_monotonic_ns() < until_ns && poll(&end, 1, 10) == 0)
        td_engine_worker_process_read_output(process, self->name);
}

static void end_process(td_engine_worker_self *self)
{
    td_engine_worker_process *process = &self->process;
    char how[640];
    if (process->pid > 0) {
        td_engine_worker_process_ask_to_end(process);
        if (!self->is_lost)
            wait_for_end(self, td_clock_monotonic_ns() + GRACE_NS);
        td_engine_worker_process_kill(process);
        td_engine_worker_process_reap(process, self->name, how, sizeof how);
    }
    atomic_store(&self->pid, 0);
    td_engine_worker_process_release(process);
}

void td_engine_worker_supervise(void *user)
{
    td_engine_worker_self *self = user;
    int64_t until_ns = 0;
    while (decide(self, &until_ns)) {
        wait_until(self, until_ns);
        tend_segments(self);
    }
    end_process(self);
}

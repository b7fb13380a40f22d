// SPDX-License-Identifier: Apache-2.0
// An engine that is another process: td_engine_ops over worker/ring and two
// threads.
//
// Life cycle. open() starts the two threads and waits until the first process
// is up or has failed. From then on the process may end and be started again
// any number of times; the engine stays, and says so in health(). close() sets
// `stopping`, after which nothing more is taken; the supervisor answers what
// was taken, or loses it with the process, ends the process and returns; only
// then is the filler stopped, since a batch for another round is its work. With
// both joined nobody uses the rest, and it is freed.
//
// One batch. submit() takes a free slot (slots.c). Who fills (fill.c) decodes
// and copies its members into the ring and rings the process' bell: the thread
// td-worker-fill, or the caller itself where the process is idle and there is
// little to copy. The process answers; the supervisor (supervise.c, thread
// td-worker) reads, frees the slot and calls `done`.
//
// Lock order: there is one lock, self->lock, and no other is taken under it. It
// is never held while decoding, waiting, doing I/O that may block, or over
// `done`. What it guards is said in internal.h; what lies above it there
// belongs to one thread, or does not change after open().
#include "engine/worker/worker.h"

#include "base/clock.h"
#include "engine/worker/internal.h"
#include "engine/worker/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

void td_engine_worker_wake(const td_engine_worker_self *self)
{
    const uint64_t one = 1;
    (void)!write(self->wake_fd, &one, sizeof one);
}

static void stop_threads(td_engine_worker_self *self)
{
    pthread_mutex_lock(&self->lock);
    self->stopping = true;
    pthread_mutex_unlock(&self->lock);
    td_engine_worker_wake(self);
    if (self->supervisor) td_thread_join(self->supervisor);
    pthread_mutex_lock(&self->lock);
    self->filler_stop = true;
    pthread_cond_signal(&self->work);
    pthread_mutex_unlock(&self->lock);
    if (self->filler) td_thread_join(self->filler);
}

static void close_worker(td_engine *engine)
{
    td_engine_worker_self *self = (td_engine_worker_self *)engine;
    stop_threads(self);
    if (self->wake_fd >= 0) (void)close(self->wake_fd);
    if (self->pictures) td_engine_picture_reader_free(self->pictures);
    td_engine_worker_prefix_forget(&self->prefixes);
    for (size_t i = 0; self->argv && self->argv[i]; i++)
        free(self->argv[i]);
    free(self->argv);
    pthread_cond_destroy(&self->work);
    pthread_cond_destroy(&self->started);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static void td_engine_worker_self_free(td_engine_worker_self *self)
{
    close_worker(&self->engine);
}
TD_AUTO_FREE(td_engine_worker_self, td_engine_worker_self_free)

static td_err copy_command(td_engine_worker_self *self,
                           const char *const *command)
{
    size_t count = 0;
    while (command[count])
        count++;
    self->argv = calloc(count + 1, sizeof *self->argv);
    if (!self->argv) return TD_ERR_NOMEM;
    for (size_t i = 0; i < count; i++) {
        self->argv[i] = strdup(command[i]);
        if (!self->argv[i]) return TD_ERR_NOMEM;
    }
    self->command.argv = (const char *const *)self->argv;
    return TD_OK;
}

static td_err set_command(td_engine_worker_self *self,
                          const td_engine_worker_settings *settings,
                          td_errinfo *info)
{
    bool given = settings->command && settings->command[0];
    bool python = settings->python && settings->python[0];
    if (given == python)
        return td_fail(info, TD_ERR_INVALID,
                       "a worker needs a command or a Python callable, and "
                       "not both");
    const char *run[] = {"python3",
                         "-m",
                         "tendon.worker",
                         settings->python,
                         settings->batched ? "--batched" : NULL,
                         NULL};
    TD_TRY(copy_command(self, given ? settings->command : run));
    if (td_engine_worker_launch_python_path(self->python_path,
                                            sizeof self->python_path))
        self->command.python_path = self->python_path;
    self->command.memory_bytes = settings->memory_bytes;
    self->command.name = self->name;
    return TD_OK;
}

static td_err put_text(char *field, size_t size, const char *text,
                       const char *what, td_errinfo *info)
{
    size_t length = text ? strlen(text) : 0;
    if (length >= size)
        return td_fail(info, TD_ERR_LIMIT, "%s: at most %zu bytes", what,
                       size - 1);
    memcpy(field, text ? text : "", length + 1);
    return TD_OK;
}

static td_err make_offer(td_engine_worker_self *self,
                         const td_engine_config *config, td_errinfo *info)
{
    const td_engine_worker_settings *settings = config->settings;
    td_worker_offer *offer = &self->offer;
    offer->magic = TD_WORKER_MAGIC;
    offer->version = TD_WORKER_VERSION;
    offer->step_period_us = config->step_period_us;
    offer->spec = settings->spec;
    TD_TRY(put_text(offer->model_id, sizeof offer->model_id, config->model_id,
                    "model_id", info));
    TD_TRY(put_text(offer->model_version, sizeof offer->model_version,
                    config->model_version, "model_version", info));
    TD_TRY(put_text(offer->device, sizeof offer->device, config->device,
                    "device", info));
    TD_TRY(put_text(offer->pretrained_path, sizeof offer->pretrained_path,
                    config->pretrained_path, "pretrained_path", info));
    self->spec.model_id = offer->model_id;
    self->spec.model_version = offer->model_version;
    self->spec.step_period_us = config->step_period_us;
    (void)snprintf(self->name, sizeof self->name, "worker %s/%s",
                   offer->model_id, offer->model_version);
    return TD_OK;
}

static td_engine_worker_self *self_new(void)
{
    td_engine_worker_self *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->ops = td_engine_worker;
    self->engine.ops = &self->ops;
    self->process = TD_ENGINE_WORKER_NO_PROCESS;
    self->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->health = TD_ENGINE_WARMING;
    td_hist_init(&self->overhead_ns);
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->work, NULL);
    pthread_cond_init(&self->started, NULL);
    return self;
}

static td_err start_threads(td_engine_worker_self *self, td_errinfo *info)
{
    td_thread_config filler = {.name = "td-worker-fill", .cpu = -1};
    td_thread_config supervisor = {.name = "td-worker", .cpu = -1};
    TD_TRY(td_thread_start(&filler, td_engine_worker_fill, self, &self->filler,
                           info));
    return td_thread_start(&supervisor, td_engine_worker_supervise, self,
                           &self->supervisor, info);
}

static td_err wait_for_first_start(td_engine_worker_self *self,
                                   td_errinfo *info)
{
    pthread_mutex_lock(&self->lock);
    while (!self->opened && !self->failed)
        pthread_cond_wait(&self->started, &self->lock);
    td_err err = self->failed ? self->why_failed : TD_OK;
    if (err != TD_OK) (void)td_fail(info, err, "%s", self->failure.text);
    pthread_mutex_unlock(&self->lock);
    return err;
}

static void offer_more(td_engine_worker_self *self);

static td_err open_worker(const td_engine_config *config,
                          td_engine **ret_engine, td_errinfo *info)
{
    const td_engine_worker_settings *settings = config->settings;
    TD_AUTO(td_engine_worker_self) *self = self_new();
    if (!self) return TD_ERR_NOMEM;
    if (self->wake_fd < 0) return td_fail(info, TD_ERR_IO, "eventfd");
    TD_TRY(make_offer(self, config, info));
    TD_TRY(set_command(self, settings, info));
    TD_TRY(td_engine_picture_reader_new(&self->pictures));
    td_engine_worker_limits limits = {settings->start_ns, settings->answer_ns};
    td_engine_worker_watch_init(&self->watch, &limits, td_clock_monotonic_ns());
    TD_TRY(start_threads(self, info));
    TD_TRY(wait_for_first_start(self, info));
    offer_more(self);
    *ret_engine = &TD_TAKE(self)->engine;
    return TD_OK;
}

static const td_engine_spec *spec_worker(const td_engine *engine)
{
    return &((const td_engine_worker_self *)engine)->spec;
}

static td_err take_locked(td_engine_worker_self *self,
                          td_worker_operation operation, td_engine_batch *batch,
                          td_engine_done done, void *user,
                          td_engine_worker_slot **ret_slot)
{
    if (self->stopping || self->watch.phase != TD_ENGINE_WORKER_UP)
        return TD_ERR_CLOSED;
    td_engine_worker_slot *slot =
        td_engine_worker_slots_take(&self->slots, operation, batch, done, user);
    if (!slot) return TD_ERR_BUSY;
    batch->service_ns = 0;
    *ret_slot = slot;
    return TD_OK;
}

static td_err take(td_engine *engine, td_worker_operation operation,
                   td_engine_batch *batch, td_engine_done done, void *user)
{
    td_engine_worker_self *self = (td_engine_worker_self *)engine;
    if (batch->count == 0 || batch->count > self->spec.max_batch)
        return TD_ERR_INVALID;
    td_engine_worker_slot *slot = NULL;
    td_engine_worker_writer writer;
    bool ours = false;
    pthread_mutex_lock(&self->lock);
    td_err err = take_locked(self, operation, batch, done, user, &slot);
    if (err == TD_OK) ours = td_engine_worker_fill_claim(self, slot, &writer);
    if (err == TD_OK && !ours) pthread_cond_signal(&self->work);
    pthread_mutex_unlock(&self->lock);
    if (ours) td_engine_worker_fill_slot(self, slot, &writer);
    return err;
}

static td_err submit_worker(td_engine *engine, td_engine_batch *batch,
                            td_engine_done done, void *user)
{
    return take(engine, TD_WORKER_WHOLE, batch, done, user);
}

static td_err prefix_worker(td_engine *engine, td_engine_batch *batch,
                            td_engine_done done, void *user)
{
    return take(engine, TD_WORKER_PREFIX, batch, done, user);
}

static td_err decode_worker(td_engine *engine, td_engine_batch *batch,
                            td_engine_done done, void *user)
{
    return take(engine, TD_WORKER_DECODE, batch, done, user);
}

// A batch that is there already says so by itself.
static void warm_worker(td_engine *engine)
{
    td_engine_worker_self *self = (td_engine_worker_self *)engine;
    pthread_mutex_lock(&self->lock);
    if (self->watch.phase == TD_ENGINE_WORKER_UP && self->watch.running == 0) {
        self->process.offer->expected++;
        td_engine_worker_process_ring(&self->process);
    }
    pthread_mutex_unlock(&self->lock);
}

static void drop_worker(td_engine *engine, td_engine_prefix *prefix)
{
    td_engine_worker_self *self = (td_engine_worker_self *)engine;
    pthread_mutex_lock(&self->lock);
    bool up = self->watch.phase == TD_ENGINE_WORKER_UP;
    td_engine_worker_prefix_drop(&self->prefixes, prefix,
                                 up ? self->process.offer : NULL,
                                 self->process.hello);
    pthread_mutex_unlock(&self->lock);
}

// What not every worker can.
static void offer_more(td_engine_worker_self *self)
{
    if (self->agreed.prefix) {
        self->ops.prefix = prefix_worker;
        self->ops.decode = decode_worker;
        self->ops.drop = drop_worker;
    }
    if (self->agreed.expects) self->ops.warm = warm_worker;
}

static td_engine_health health_worker(const td_engine *engine)
{
    const td_engine_worker_self *self = (const td_engine_worker_self *)engine;
    return (td_engine_health)atomic_load(&self->health);
}

const td_hist *td_engine_worker_overhead_ns(const td_engine *engine)
{
    return &((const td_engine_worker_self *)engine)->overhead_ns;
}

int td_engine_worker_pid(const td_engine *engine)
{
    return atomic_load(&((const td_engine_worker_self *)engine)->pid);
}

const td_engine_ops td_engine_worker = {
    .name = "worker",
    .open = open_worker,
    .close = close_worker,
    .spec = spec_worker,
    .submit = submit_worker,
    .health = health_worker,
};

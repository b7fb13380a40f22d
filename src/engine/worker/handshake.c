// SPDX-License-Identifier: Apache-2.0
// How a process that was started becomes one that answers.
//
// It says what its model is (DESCRIBED), we agree with the manifest
// (ring/spec.c), lay the ring out and make its memory; it warms up and is
// READY, from when on batches are taken. What was agreed at the first start
// holds for all that follow: a process that says something else after a restart
// is no use.
//
// On the supervisor's thread. self->lock is taken where the ring appears and
// where the process comes up, since others look at both.
#include "base/clock.h"
#include "base/log.h"
#include "engine/worker/internal.h"

static td_err make_ring(td_engine_worker_self *self,
                        const td_worker_spec *theirs, td_errinfo *info)
{
    td_worker_spec agreed;
    const td_worker_spec *ours =
        self->opened ? &self->agreed : &self->offer.spec;
    TD_TRY(td_engine_worker_spec_agree(ours, theirs, &agreed, info));
    if (!self->opened) {
        TD_TRY(td_engine_worker_layout_make(&agreed, &self->layout, info));
        self->agreed = agreed;
        td_engine_worker_spec_of(&self->agreed, &self->spec);
        self->spec.environment_count = self->hello.environment_count;
    }
    pthread_mutex_lock(&self->lock);
    td_err err = td_engine_worker_process_make_ring(
        &self->process, &self->agreed, &self->layout, info);
    pthread_mutex_unlock(&self->lock);
    return err;
}

static void come_up(td_engine_worker_self *self, int64_t warm_ns)
{
    pthread_mutex_lock(&self->lock);
    int64_t now_ns = td_clock_monotonic_ns();
    int64_t took_ns = now_ns - self->watch.since_ns;
    if (warm_ns > took_ns) warm_ns = took_ns; // it cannot be
    td_engine_worker_watch_came_up(&self->watch, now_ns, warm_ns);
    td_engine_worker_set_health(self);
    td_engine_worker_slots_begin(&self->slots);
    self->opened = true;
    pthread_cond_broadcast(&self->started);
    pthread_mutex_unlock(&self->lock);
    td_log_text(TD_LOG_INFO, "%s: ready after %.1f s", self->name,
                (double)took_ns / (double)TD_NS_PER_S);
}

td_err td_engine_worker_handshake(td_engine_worker_self *self, td_errinfo *info)
{
    td_worker_hello *hello = &self->hello;
    TD_TRY(td_engine_worker_spec_read(self->process.hello, hello, info));
    bool has_ring = self->process.requests != NULL;
    switch ((td_worker_hello_phase)hello->phase) {
    case TD_WORKER_LOADING:
        break;
    case TD_WORKER_DESCRIBED:
        return has_ring ? TD_OK : make_ring(self, &hello->spec, info);
    case TD_WORKER_READY:
        if (!has_ring)
            return td_fail(info, TD_ERR_FORMAT, "is ready before it was heard");
        come_up(self, hello->warm_ns);
        break;
    case TD_WORKER_FAILED:
        return td_fail(info, TD_ERR_CLOSED, "cannot: %s", hello->error);
    }
    return TD_OK;
}

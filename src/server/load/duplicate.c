// SPDX-License-Identifier: Apache-2.0
// Whether the same server is running already: its liveliness token is there.
//
// Tokens are reported on a thread of the transport, which counts them under
// `lock` and signals; the caller's thread waits for that, and for the question
// that says who is alive now, until its patience ends. One whose token is still
// there although it died has until then to go. Everything is undeclared before
// it returns.
#include "server/load/duplicate.h"

#include "base/clock.h"
#include "base/sync/event.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_NS (1 * TD_NS_PER_S)

typedef struct look {
    td_event changed;
    pthread_mutex_t lock; // guards the rest
    bool asked;
    uint32_t alive;
    uint64_t boot; // of one of them
} look;

// Transport's thread.
static void on_alive(void *user, const char *key, bool alive)
{
    look *self = user;
    const char *slash = strrchr(key, '/');
    pthread_mutex_lock(&self->lock);
    if (alive) self->boot = slash ? strtoull(slash + 1, NULL, 10) : 0;
    if (alive)
        self->alive++;
    else if (self->alive > 0)
        self->alive--;
    td_event_signal(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static void on_reply(void *user, const td_net_sample *sample)
{
    (void)user, (void)sample;
}

// Transport's thread.
static void on_asked(void *user)
{
    look *self = user;
    pthread_mutex_lock(&self->lock);
    self->asked = true;
    td_event_signal(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static void read_look(look *self, bool *ret_asked, uint32_t *ret_alive)
{
    pthread_mutex_lock(&self->lock);
    *ret_asked = self->asked;
    *ret_alive = self->alive;
    pthread_mutex_unlock(&self->lock);
}

// Tokens come on their own time; what comes back from a question that was asked
// after the watch began comes after them.
static td_err wait_for_end(look *self, td_net *net, const char *status,
                           int64_t patience_ns, uint32_t *ret_alive,
                           td_errinfo *info)
{
    bool asked = false;
    TD_TRY(td_net_query(net, status, (td_slice){0}, ASK_NS, on_reply, on_asked,
                        self, info));
    int64_t until_ns = td_clock_monotonic_ns() + patience_ns;
    for (;;) {
        read_look(self, &asked, ret_alive);
        bool late = td_clock_monotonic_ns() >= until_ns;
        if (asked && (*ret_alive == 0 || late)) return TD_OK;
        (void)td_event_wait_until(&self->changed, asked ? until_ns : INT64_MAX);
    }
}

static td_err watch(look *self, td_net *net, const td_wire_route *route,
                    const char *server_id, int64_t patience_ns,
                    uint32_t *ret_alive, td_errinfo *info)
{
    char status[TD_WIRE_MAX_KEY];
    char tokens[TD_WIRE_MAX_KEY + 2 * TD_WIRE_MAX_NAME];
    td_net_decl *decl = NULL;
    TD_TRY(td_wire_key(route, NULL, "status", status, info));
    (void)snprintf(tokens, sizeof tokens, "%s/alive/%s/*", status, server_id);
    TD_TRY(td_net_watch(net, tokens, on_alive, self, &decl, info));
    td_err err = wait_for_end(self, net, status, patience_ns, ret_alive, info);
    (void)td_net_undeclare(decl);
    return err;
}

td_err td_server_duplicate_refuse(td_net *net, const td_wire_route *route,
                                  const char *server_id, int64_t patience_ns,
                                  td_errinfo *info)
{
    look self = {.lock = PTHREAD_MUTEX_INITIALIZER};
    uint32_t alive = 0;
    td_event_init(&self.changed);
    td_err err = watch(&self, net, route, server_id, patience_ns, &alive, info);
    pthread_mutex_lock(&self.lock); // the last callback has let it go
    pthread_mutex_unlock(&self.lock);
    pthread_mutex_destroy(&self.lock);
    if (err != TD_OK || alive == 0) return err;
    return td_fail(info, TD_ERR_EXISTS,
                   "server %s of %s/%s/%s is already running (boot %llu): stop "
                   "it, or give this one another server_id",
                   server_id, route->model, route->version, route->application,
                   (unsigned long long)self.boot);
}

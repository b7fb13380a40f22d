// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_CONTEXT_H
#define TD_SERVER_CONTEXT_H

// What every part of a model works with: who it is, and what it is joined to.
//
// model.c fills it before the parts are made and changes nothing until they are
// freed, so any thread reads it without a lock. Everything is borrowed. A
// part's own state is behind its own header, never here.

#include "base/sync/event.h"
#include "engine/engine.h"
#include "net/net.h"
#include "server/core/core.h"
#include "server/report/events.h"
#include "server/report/stats.h"

#include <pthread.h>

typedef struct td_server_context {
    const char *id;
    uint64_t boot;
    td_wire_route route;
    uint32_t capacity; // clients at a time
    int64_t opened_ns;

    td_net *net;
    td_engine *engine;
    const td_engine_spec *spec;
    td_server_stats *stats;
    td_server_events *events; // NULL: nobody is notified
    td_event *wake;           // of the loop
    pthread_mutex_t *lock;    // the device's; guards the core
    td_server_core *core;
} td_server_context;

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_MODEL_H
#define TD_SERVER_MODEL_H

// One model at work: joins the network, the deciding core and an engine.
//
// Robots attach by a query on the status key; only then does the server
// subscribe to that robot's observations, and it subscribes to no stranger's.

#include "net/net.h"
#include "server/core/core.h"
#include "server/dispatch/device.h"
#include "server/report/events.h"
#include "server/report/view.h"

typedef struct td_server_model td_server_model;

typedef struct td_server_model_config {
    td_wire_route route; // all texts are borrowed while it is open
    td_server_settings settings;
    td_server_device *device; // NULL: one of its own, with the defaults
    td_server_model_settings model;
    int64_t metrics_period_ns; // 0: no metrics
    td_server_events *events;  // where it reports what happens; NULL: nowhere
    td_server_tap tap;       // who is notified of each number as it is recorded
    uint64_t bad_queries;    // so far, while it was loading
    uint64_t events_dropped; // likewise
} td_server_model_config;

// Opens the doors: status, liveliness, the loop's thread. Borrows the session,
// the device, the events and the engine, which must be idle, until it is
// closed. Owned by the caller.
TD_NODISCARD td_err td_server_model_open(td_net *net, td_engine *engine,
                                         const td_server_model_config *config,
                                         td_server_model **ret_model,
                                         td_errinfo *info);

// Takes no more work, waits for what runs, says goodbye and frees. Blocks.
void td_server_model_close(td_server_model *model);
TD_AUTO_FREE(td_server_model, td_server_model_close)

// Changes which clients it takes, what they are allowed and how the model is
// run, from now on; the id, the boot and the capacity stay as they were. The
// texts are borrowed in place of the ones before. A client that is no
// longer allowed is detached. INVALID. Any thread but the loop's.
TD_NODISCARD td_err td_server_model_use(td_server_model *model,
                                        const td_server_settings *settings,
                                        const td_server_model_settings *how);

// Begins to end: the status says draining, nobody and nothing more is taken,
// and what waits starts without waiting for a fuller batch. Any thread.
void td_server_model_drain(td_server_model *model);

// Whether nothing that could run waits, and nothing runs. Any thread.
bool td_server_model_drained(td_server_model *model);

// What happened so far. Any thread.
typedef struct td_server_model_report {
    td_server_counts counts;
    uint32_t clients;
    uint64_t events_dropped; // queries, tokens and messages for which there was
                             // no room
    uint64_t puts_failed;
} td_server_model_report;

void td_server_model_report_get(td_server_model *model,
                                td_server_model_report *ret_report);

// What it shows now: `view` gets everything but what the model is. The spreads
// are of the last `window_ns`; of the clients see td_server_view_read(), and
// free with td_server_view_done(). Any thread. NOMEM.
TD_NODISCARD td_err td_server_model_view(td_server_model *model, int64_t now_ns,
                                         int64_t window_ns, const char *client,
                                         td_server_view *view);

// The numbers themselves. Borrowed while it is open.
const td_server_stats *td_server_model_stats(const td_server_model *model);

// When its loop last came round; it does so every second at least. Any thread.
int64_t td_server_model_looped_ns(const td_server_model *model);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_SERVER_H
#define TENDON_SERVER_H

// A server in your own process: what `tendon serve` does, with functions of
// yours in the places of models, scores and whoever looks at the numbers.
//
//   td_server_open("manifest.yaml", &server, &info);
//   td_server_use_model(server, "my-policy", infer, &policy, &info);
//   td_server_start(server, &info); // loads, warms up and listens
//   td_server_wait(server, -1);     // until td_server_stop()
//   td_server_drain(server, 5000, &info);
//   td_server_close(server);
//
// Threads: unless a function says otherwise, call it on any thread, but never
// inside a function of yours; td_server_stop() may be called anywhere. A
// function of yours must not throw. What happens is said where td_log_to()
// (tendon/robot.h) says. docs/c-api.md has an example and what is promised to
// stay.

#include "tendon/err.h"
#include "tendon/infer.h"
#include "tendon/score.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct td_server td_server;

// Reads a manifest, or the same YAML as text, and checks it; nothing is loaded
// yet. Blocks on the file. Owned by the caller. IO, FORMAT, LIMIT, INVALID
// (with the file's line and field), NOMEM.
TD_NODISCARD td_err td_server_open(const char *path, td_server **ret_host,
                                   td_errinfo *info);
TD_NODISCARD td_err td_server_open_text(const char *yaml, td_server **ret_host,
                                        td_errinfo *info);

// The function that runs a model with `engine: {kind: callback}`; what it takes
// and gives is in the manifest. It and what `user` points to are borrowed until
// the server is closed. Before td_server_start(): BUSY. NOTFOUND (the manifest
// has no such model with a callback engine), EXISTS (it has its function).
TD_NODISCARD td_err td_server_use_model(td_server *server, const char *model_id,
                                        td_infer_function infer, void *user,
                                        td_errinfo *info);

// A score of your own: of the requests that wait, the one with the highest goes
// first, one whose score is not finite last (counted: `score_not_finite`).
// Asked while a server decides, once for each that waits: it must be pure and
// must not wait, for every robot does; what it took is the spread `score_ms`,
// and one that is slow is warned of once.
typedef double (*td_server_score_fn)(void *user,
                                     const td_score_request *request);

// Changes who goes first, from now on or from the start; nothing that waits is
// lost. `yaml` has fields of the manifest's `scheduling` ("strategy:
// round_robin"); what it does not give stays, but for score and plugin, which
// are none then. NULL: all of them stay but the score. `score` takes the place
// of the published one, NULL: there is none; what it points to is borrowed
// until another one is in use. FORMAT, INVALID (with the field; or a score for
// a strategy without one, or two scores), BUSY (while it starts) and what the
// plug-in's loading returns: then nothing was changed.
TD_NODISCARD td_err td_server_use_scheduling(td_server *server,
                                             const char *yaml,
                                             td_server_score_fn score,
                                             void *user, td_errinfo *info);

// Loads every model, warms it up and opens its doors. Blocks until all are
// open. Once for each server: EXISTS, also if one of its models runs already,
// here or elsewhere. INVALID for a callback engine without its function;
// CANCELLED if td_server_stop() came first; what a model or the network said.
// After a failure close it.
TD_NODISCARD td_err td_server_start(td_server *server, td_errinfo *info);

// Blocks until td_server_stop() was called, at most `timeout_ms` (negative: no
// limit). Whether it was. One thread waits.
bool td_server_wait(td_server *server, int64_t timeout_ms);

// Makes td_server_start() and td_server_wait() return; the servers go on until
// the server is drained or closed. Any thread, functions of yours and signal
// handlers too; never blocks.
void td_server_stop(td_server *server);

// Takes nobody and nothing more, and waits until what waits and runs has been
// answered, at most `timeout_ms` (negative: no limit). TIMEOUT; EMPTY if it was
// not started.
TD_NODISCARD td_err td_server_drain(td_server *server, int64_t timeout_ms,
                                    td_errinfo *info);

// Stops and frees. No other call may be running. Blocks until the functions
// have returned; afterwards none is called any more.
void td_server_close(td_server *server);

// "stopped", "warming", "ready", "draining" or "degraded": of the model, or of
// the worst of all with NULL. Never NULL; "stopped" for a model that is not
// here.
const char *td_server_state(td_server *server, const char *model_id);

// By what numbers are told apart. Asked with NULL: of all.
typedef struct td_server_labels {
    size_t size; // sizeof(td_server_labels)
    const char *server, *model, *client;
    const char *error; // of `dispatch_errors`: "TIMEOUT"
} td_server_labels;

// How a number was spread, in the unit of its name; all 0 when the count is.
typedef struct td_server_spread {
    size_t size; // sizeof(td_server_spread), set before
    uint64_t count;
    double mean, min, max;
    double p50, p95, p99;
} td_server_spread;

// A spread of docs/metrics.md ("inference_latency_ms") over the last seconds
// (1 to 600), of all servers, clients and models with these labels together.
// `labels` may be NULL. NOTFOUND (no such number), UNSUPPORTED (it is no
// spread; or not told apart so), INVALID (the window).
TD_NODISCARD td_err td_server_get_stats(td_server *server, const char *name,
                                        const td_server_labels *labels,
                                        double window_s,
                                        td_server_spread *ret_spread,
                                        td_errinfo *info);

// Any number of docs/metrics.md as it is now: a gauge ("queue_depth") or a
// counter, added up, or the newest value of a spread. NOTFOUND, UNSUPPORTED,
// EMPTY (a spread without a value).
TD_NODISCARD td_err td_server_get_latest(td_server *server, const char *name,
                                         const td_server_labels *labels,
                                         double *ret_value, td_errinfo *info);

// Called with each value of a spread and each step of a counter as they are
// recorded, and with each gauge once a second; labels that it has not are NULL.
// Texts are borrowed for the call.
typedef void (*td_server_metric_fn)(void *user, const char *name, double value,
                                    const td_server_labels *labels);

// What happened (docs/metrics.md, "Events"). `server` and `client` are empty
// where it is nobody's in particular.
typedef struct td_server_event {
    size_t size;     // of the library's struct
    uint64_t number; // from 1
    const char *kind, *server, *client, *text;
} td_server_event;
typedef void (*td_server_event_fn)(void *user, const td_server_event *event);

// Who is told, on a thread of its own that may block: what it cannot keep up
// with is dropped and counted, and no server waits. NULL: nobody. At any time
// but while the server starts: BUSY. Blocks until a function that is being
// called has returned.
TD_NODISCARD td_err td_server_on_metric(td_server *server,
                                        td_server_metric_fn function,
                                        void *user);
TD_NODISCARD td_err td_server_on_event(td_server *server,
                                       td_server_event_fn function, void *user);

// How many values were dropped so. Never blocks.
uint64_t td_server_dropped(const td_server *server);

#ifdef __cplusplus
}
#endif

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_PROCESS_PROCESS_H
#define TD_SERVER_PROCESS_PROCESS_H

// Everything that a manifest asks for, at work: sessions, devices, engines and
// servers. One thread at a time, unless a function says otherwise.

#include "server/load/loading.h"
#include "server/load/settings.h"
#include "server/process/link.h"
#include "server/process/stream.h"
#include "server/report/admin.h"
#include "tendon/server.h"

#include <pthread.h>

// A function for the callback engines of a model.
typedef struct td_server_model_function {
    const char *model_id;
    td_server_engine_function function;
} td_server_model_function;

// A score function of the program's own.
typedef struct td_server_score_hook {
    td_server_score_fn ask; // NULL: none
    void *user;
} td_server_score_hook;

// What no manifest can hold. Borrowed while the process is open.
typedef struct td_server_extras {
    const td_server_model_function *functions;
    size_t function_count;
    td_server_listeners listeners;
    bool listens_later;              // others may come while it runs
    bool (*is_stopping)(void *user); // NULL: never; asked while it opens
    void *user;                      // its own
    td_net *net; // instead of those that the manifest asks for; NULL
} td_server_extras;

// One entry of the manifest at work.
typedef struct td_server_entry {
    td_net *net; // the first entry's with this endpoint
    bool owns_net;
    td_server_link *links;
    td_server_device *device; // the first entry's with this name
    bool owns_device;
    td_server_loading *loading; // while the engine is loaded
    td_server_loading_counts loading_counts;
    td_engine *engine;
    td_server_model *model;
    td_server_allowance *clients;
} td_server_entry;

// Who goes first, now. The texts are the manifest's or those of `text`.
typedef struct td_server_policy {
    td_config_scheduling scheduling;
    td_config_scheduling *text; // that it was changed to, owned; NULL
    td_sched_policy sched;      // what the scheduler goes by
    td_server_plugin *plugin;   // of the policy; NULL: none
    td_server_score_hook score;
} td_server_policy;

typedef struct td_server_process {
    const td_server_extras *extras;
    td_config_manifest *manifest; // that it was started with
    td_config_manifest *live;     // whose live fields it goes by; may be the
                                  // same
    td_server_entry *entries;     // one for each server of the manifest
    td_server_about *about;       // likewise
    uint64_t boot;
    bool has_policy;
    td_server_policy policy;
    td_server_events *events;
    td_server_admin *admin;   // NULL: not asked for
    td_server_stream *stream; // NULL: nobody listens
    _Atomic uint64_t dropped; // values and events that they missed

    pthread_mutex_t shown_lock; // guards `shown`; held while one is read
    td_server_model **shown;    // by entry; NULL: it is not open
} td_server_process;

// Nothing is opened yet. The manifest is consumed, on failure too. Owned by the
// caller. NOMEM.
TD_NODISCARD td_err td_server_process_new(td_config_manifest *manifest,
                                          const td_server_extras *extras,
                                          td_server_process **ret_process);

// Loads every model, warms it up and opens its doors; until then its status
// says that it is warming. EXISTS if one of the servers runs already; CANCELLED
// if it is to stop; INVALID for a callback engine without a function, or a
// function without one. Close it in any case. Blocks.
TD_NODISCARD td_err td_server_process_open(td_server_process *process,
                                           td_errinfo *info);

// Takes nobody and nothing more, and waits until what waits and runs has been
// answered. False: not by `until_ns`. Blocks.
bool td_server_process_drain(td_server_process *process, int64_t until_ns);

// Says what each server has done, and frees all.
void td_server_process_close(td_server_process *process);
TD_AUTO_FREE(td_server_process, td_server_process_close)

// Whether the manifest's callback engines and the functions fit each other.
// INVALID with the model's name.
TD_NODISCARD td_err td_server_process_check_functions(
    const td_config_manifest *manifest, const td_server_extras *extras,
    td_errinfo *info);
// NULL: there is none.
const td_server_engine_function *
td_server_process_find_function(const td_server_extras *extras,
                                const char *model_id);

// policy.c

// What `scheduling` and the score come to. FORMAT, LIMIT, INVALID and what the
// plug-in's loading returns.
TD_NODISCARD td_err td_server_policy_make(
    const td_config_scheduling *scheduling, td_server_score_hook score,
    td_server_policy *ret_policy, td_errinfo *info);
void td_server_policy_done(td_server_policy *policy);
// Changes the policy, at once where devices are open: fields of `scheduling` as
// YAML (NULL: all stay) and the score. See td_server_use_scheduling().
TD_NODISCARD td_err td_server_policy_use(td_server_process *process,
                                         const char *yaml,
                                         td_server_score_hook score,
                                         td_errinfo *info);
// Puts `next` in the place of the policy, which is in `next` afterwards.
void td_server_policy_swap(td_server_process *process, td_server_policy *next);

// reload.c: takes on what can change of the manifest at `path`, and says of
// each difference whether it was. A broken one changes nothing. Blocks.
void td_server_process_reload(td_server_process *process, const char *path);

// expose.c: how all of it is seen. Opened before the models, so that it shows
// that they load; closed after their servers.
TD_NODISCARD td_err td_server_process_expose(td_server_process *process,
                                             td_errinfo *info);
void td_server_process_unexpose(td_server_process *process);
// The entry's server is there; NULL: about to be closed. Blocks while it is
// read.
void td_server_process_show_model(td_server_process *process, size_t index,
                                  td_server_model *model);

#endif

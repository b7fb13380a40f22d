// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_PROCESS_API_H
#define TD_SERVER_PROCESS_API_H

// What the files of the C API share, and what its tests look at.

#include "base/sync/event.h"
#include "server/process/process.h"

#define TD_SERVER_MAX_FUNCTIONS 64 // a manifest has no more servers

typedef enum td_server_phase {
    TD_SERVER_OPEN,
    TD_SERVER_STARTING,
    TD_SERVER_STARTED,
    TD_SERVER_START_FAILED, // to start
} td_server_phase;

struct td_server {
    td_server_process *process;
    td_event wake;
    _Atomic bool stop;

    pthread_mutex_t lock; // guards everything below, and the process's policy
    td_server_phase phase;
    td_server_extras extras; // the process's from the start on
    td_server_model_function functions[TD_SERVER_MAX_FUNCTIONS];
};

// api.c: on a network of the caller's, which is borrowed; NULL: on those that
// the manifest asks for. Consumes the manifest, on failure too.
TD_NODISCARD td_err td_server_open_on(td_net *net, td_config_manifest *manifest,
                                      td_server **ret_server, td_errinfo *info);

#endif

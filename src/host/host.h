// SPDX-License-Identifier: Apache-2.0
#ifndef TD_HOST_HOST_H
#define TD_HOST_HOST_H

// What the files of the C API share, and what its tests look at.

#include "base/sync/event.h"
#include "host/house.h"

#define TD_HOST_MAX_FUNCTIONS 64 // a manifest has no more servers

typedef enum td_host_phase {
    TD_HOST_OPEN,
    TD_HOST_STARTING,
    TD_HOST_STARTED,
    TD_HOST_FAILED, // to start
} td_host_phase;

struct td_host {
    td_host_house *house;
    td_event wake;
    _Atomic bool stop;

    pthread_mutex_t lock; // guards everything below, and the house's plan
    td_host_phase phase;
    td_host_extras extras; // the house's from the start on
    td_host_function functions[TD_HOST_MAX_FUNCTIONS];
};

// host.c: on a network of the caller's, which is borrowed; NULL: on those that
// the manifest asks for. Consumes the manifest, on failure too.
TD_NODISCARD td_err td_host_open_on(td_net *net, td_config_manifest *manifest,
                                    td_host **ret_host, td_errinfo *info);

#endif

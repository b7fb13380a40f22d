// SPDX-License-Identifier: Apache-2.0
#ifndef TD_NET_ZENOH_ZENOH_H
#define TD_NET_ZENOH_ZENOH_H

// The real transport, through the Rust crate.

#include "net/net.h"

typedef enum td_net_zenoh_mode {
    TD_NET_ZENOH_PEER,
    TD_NET_ZENOH_CLIENT,
    TD_NET_ZENOH_ROUTER,
} td_net_zenoh_mode;

typedef struct td_net_zenoh_config {
    td_net_zenoh_mode mode;
    // Endpoints as Zenoh writes them: "tcp/127.0.0.1:7447",
    // "unixsock-stream//run/tendon.sock". Listening on a port in use is an
    // error; connecting is tried again, with jitter, until it works.
    const char *const *listen;
    size_t listen_count;
    const char *const *connect;
    size_t connect_count;
    bool shared_memory;    // offer it to peers on this machine
    size_t shm_pool_bytes; // 0: 16 MiB, all of it locked in memory
} td_net_zenoh_config;

// Opens a session and goes on connecting behind it: a robot may start before
// its server. Waits at most 200 ms for the first connection. EXISTS when a
// listening address is in use, INVALID for an endpoint that is not one. Owned
// by the caller. Not after a fork without exec.
TD_NODISCARD td_err td_net_zenoh_open(const td_net_zenoh_config *config,
                                      td_net **ret_net, td_errinfo *info);

// Panics caught at the border to Rust, ever, in this process. Should be 0.
uint64_t td_net_zenoh_panics(void);

// Why shared memory was asked for and is not offered, with what to do about it;
// NULL otherwise. Borrowed while the session is open.
const char *td_net_zenoh_shm_refusal(const td_net *net);

// Removes shared memory that dead processes left on this machine, as a session
// with shared memory does when it opens. Blocks for a directory's reading.
void td_net_zenoh_sweep(void);

// Zenoh's version, "1.10.2".
const char *td_net_zenoh_version(void);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLIENT_CONNECTION_H
#define TD_CLIENT_CONNECTION_H

// A network session under a client's name, shared by its models.

#include "net/net.h"
#include "tendon/connect.h"
#include "tendon/wire.h"

#include <pthread.h>
#include <stdatomic.h>

struct td_connection {
    td_net *net;
    bool net_is_ours;
    char cluster[TD_WIRE_MAX_NAME + 1];
    char experiment[TD_WIRE_MAX_NAME + 1];
    char client[TD_WIRE_MAX_NAME + 1];
    char *client_type;     // NULL: not said
    bool every;            // constant
    _Atomic uint32_t refs; // the program's, and one for each model

    pthread_mutex_t lock; // guards `models`
    td_model *models;
};

// On a network of the caller's, which is borrowed; NULL: on the one that the
// settings ask for.
TD_NODISCARD td_err td_client_connection_open_on(
    td_net *net, const td_connection_settings *settings,
    td_connection **ret_connection, td_errinfo *info);

// A model joins, with a reference, and leaves. EXISTS.
TD_NODISCARD td_err td_client_connection_add(td_connection *connection,
                                             td_model *model, td_errinfo *info);
void td_client_connection_remove(td_connection *connection, td_model *model);

// A number for each start of a model: it grows, in this process always and from
// one to the next as the wall clock does. Any thread.
uint64_t td_client_connection_boot(void);

#endif

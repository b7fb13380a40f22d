// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_CLIENT_POOL_H
#define TD_SERVER_CLIENT_POOL_H

// The requests of one model: where they come from and go back to.
//
// The pool grows to what all clients need at once, and stays. Those that are
// `_locked` want the device's lock held, which guards the pool.

#include "server/context.h"

typedef struct td_server_pool td_server_pool;

// Owned by the caller; free it when no request is out any more. NOMEM.
TD_NODISCARD td_err td_server_pool_new(const td_server_context *ctx,
                                       td_server_pool **ret_pool);
void td_server_pool_free(td_server_pool *pool);

// A request without a message, of nobody; NULL: no memory. Any thread.
td_server_request *td_server_pool_take(td_server_pool *pool);

// Gives back the request, its message and its use of a kept prefix.
void td_server_pool_return_locked(td_server_pool *pool,
                                  td_server_request *request);
void td_server_pool_return(td_server_pool *pool, td_server_request *request);

// Gives back what a client left behind.
void td_server_pool_return_dropped_locked(
    td_server_pool *pool, const td_server_core_dropped *dropped);

// The request no longer uses a kept prefix.
void td_server_pool_release_locked(td_server_pool *pool,
                                   td_server_request *request);

// Answered: kept, without its message, in place of the client's last.
void td_server_pool_keep_locked(td_server_pool *pool,
                                td_server_request *request);

#endif

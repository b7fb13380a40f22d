// SPDX-License-Identifier: Apache-2.0
// The log belongs to the process, not to a client: it runs while there is one.
#include "base/log.h"

#include "client/client.h"

#include <stdlib.h>

typedef struct listener {
    td_client_log_fn log;
    void *user;
} listener;

static void pass_on(void *user, td_log_level level, const char *line)
{
    const listener *to = user;
    to->log(to->user, (td_client_level)level, line);
}

void td_client_log_hold(void)
{
    td_log_hold();
}

void td_client_log_release(void)
{
    td_log_release();
}

td_err td_client_log(td_client_log_fn log, void *user, td_client_level level)
{
    static _Atomic(listener *) current;
    listener *next = NULL;
    if (log) {
        next = malloc(sizeof *next);
        if (!next) return TD_ERR_NOMEM;
        *next = (listener){log, user};
    }
    td_err err = td_log_route(next ? pass_on : NULL, next, (td_log_level)level);
    free(err == TD_OK ? atomic_exchange(&current, next) : next);
    return err;
}

// SPDX-License-Identifier: Apache-2.0
// The log belongs to the process: it runs while a robot, a connection or a
// server is open.
#include "base/log.h"

#include "tendon/library.h"

#include <stdatomic.h>
#include <stdlib.h>

typedef struct listener {
    td_log_to_fn log;
    void *user;
} listener;

static void pass_on(void *user, td_log_level level, const char *line)
{
    const listener *to = user;
    to->log(to->user, (td_level)level, line);
}

td_err td_log_to(td_log_to_fn log, void *user, td_level level)
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

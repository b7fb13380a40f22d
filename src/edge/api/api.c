// SPDX-License-Identifier: Apache-2.0
#include "edge/api/api.h"

#include "base/log.h"
#include "tendon/library.h"
#include "tendon/robot.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_(number) #number
#define TEXT(number) TEXT_(number)

uint32_t td_version(void)
{
    return TD_API_VERSION;
}

const char *td_version_text(void)
{
    return TEXT(TD_API_VERSION_MAJOR) "." TEXT(TD_API_VERSION_MINOR) "." TEXT(
        TD_API_VERSION_PATCH);
}

td_err td_edge_api_struct(const char *what, const void *argument, size_t first,
                          size_t known, void *ret_copy, td_errinfo *info)
{
    size_t size;
    memcpy(&size, argument, sizeof size);
    if (size < first)
        return td_fail(info, TD_ERR_INVALID,
                       "%s: size must be that of the struct, %zu, got %zu",
                       what, known, size);
    const unsigned char *bytes = argument;
    for (size_t i = known; i < size; i++)
        if (bytes[i])
            return td_fail(info, TD_ERR_VERSION,
                           "%s: has members that are newer than this library, "
                           "%s",
                           what, td_version_text());
    memset(ret_copy, 0, known);
    memcpy(ret_copy, argument, size < known ? size : known);
    return TD_OK;
}

const char *td_edge_api_text(const char *argument, const char *variable)
{
    return argument ? argument : getenv(variable);
}

td_err td_edge_api_missing(const char *field, const char *variable,
                           td_errinfo *info)
{
    return td_fail(info, TD_ERR_INVALID,
                   "%s: is missing: give it, or set %s in the environment",
                   field, variable);
}

td_err td_edge_api_chunk(const char *field, const char *argument,
                         const char *variable,
                         char ret_chunk[TD_WIRE_MAX_NAME + 1], td_errinfo *info)
{
    const char *text = td_edge_api_text(argument, variable);
    if (!text) return td_edge_api_missing(field, variable, info);
    TD_TRY(td_wire_key_check(field, text, info));
    memcpy(ret_chunk, text, strlen(text) + 1);
    return TD_OK;
}

void td_edge_api_number_match(void *user, const char *name, double value)
{
    td_edge_api_number *wanted = user;
    if (strcmp(name, wanted->name) != 0) return;
    wanted->found = true;
    wanted->value = value;
}

td_err td_edge_api_number_get(const td_edge_api_number *number,
                              double *ret_value)
{
    if (!number->found) return TD_ERR_NOTFOUND;
    *ret_value = number->value;
    return TD_OK;
}

// The log belongs to the process: it runs while a robot, a connection or a
// server is open.
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

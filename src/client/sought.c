// SPDX-License-Identifier: Apache-2.0
#include "client/sought.h"

#include <string.h>

void td_client_sought_look(void *user, const char *name, double value)
{
    td_client_sought *sought = user;
    if (strcmp(name, sought->name) != 0) return;
    sought->found = true;
    sought->value = value;
}

td_err td_client_sought_get(const td_client_sought *sought, double *ret_value)
{
    if (!sought->found) return TD_ERR_NOTFOUND;
    *ret_value = sought->value;
    return TD_OK;
}

// SPDX-License-Identifier: Apache-2.0
#include "edge/api/number.h"

#include <string.h>

void td_edge_number_look(void *user, const char *name, double value)
{
    td_edge_number *sought = user;
    if (strcmp(name, sought->name) != 0) return;
    sought->found = true;
    sought->value = value;
}

td_err td_edge_number_get(const td_edge_number *sought, double *ret_value)
{
    if (!sought->found) return TD_ERR_NOTFOUND;
    *ret_value = sought->value;
    return TD_OK;
}

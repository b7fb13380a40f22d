// SPDX-License-Identifier: Apache-2.0
#include "edge/api/number.h"

#include <string.h>

void td_edge_number_look(void *user, const char *name, double value)
{
    td_edge_number *wanted = user;
    if (strcmp(name, wanted->name) != 0) return;
    wanted->found = true;
    wanted->value = value;
}

td_err td_edge_number_get(const td_edge_number *wanted, double *ret_value)
{
    if (!wanted->found) return TD_ERR_NOTFOUND;
    *ret_value = wanted->value;
    return TD_OK;
}

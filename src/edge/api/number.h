// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_API_NUMBER_H
#define TD_EDGE_API_NUMBER_H

// One number out of a report that tells them all.
//
//     td_edge_number sought = {.name = name};
//     report(…, td_edge_number_look, &sought);
//     return td_edge_number_get(&sought, ret_value);

#include "base/err.h"

#include <stdbool.h>

typedef struct td_edge_number {
    const char *name; // borrowed
    bool found;
    double value;
} td_edge_number;

// A td_robot_number_fn and a td_model_number_fn; `user` is the sought.
void td_edge_number_look(void *user, const char *name, double value);

// NOTFOUND.
TD_NODISCARD td_err td_edge_number_get(const td_edge_number *sought,
                                       double *ret_value);

#endif

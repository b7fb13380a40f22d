// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_API_NUMBER_H
#define TD_EDGE_API_NUMBER_H

// One number out of a report of them all.
//
//     td_edge_number wanted = {.name = name};
//     report(…, td_edge_number_look, &wanted);
//     return td_edge_number_get(&wanted, ret_value);

#include "base/err.h"

#include <stdbool.h>

typedef struct td_edge_number {
    const char *name; // borrowed
    bool found;
    double value;
} td_edge_number;

// A td_robot_number_fn and a td_model_number_fn; `user` is a td_edge_number.
void td_edge_number_look(void *user, const char *name, double value);

// NOTFOUND.
TD_NODISCARD td_err td_edge_number_get(const td_edge_number *wanted,
                                       double *ret_value);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLIENT_SOUGHT_H
#define TD_CLIENT_SOUGHT_H

// One number out of a report that tells them all.
//
//     td_client_sought sought = {.name = name};
//     report(…, td_client_sought_look, &sought);
//     return td_client_sought_get(&sought, ret_value);

#include "base/err.h"

#include <stdbool.h>

typedef struct td_client_sought {
    const char *name; // borrowed
    bool found;
    double value;
} td_client_sought;

// A td_client_number_fn and a td_model_number_fn; `user` is the sought.
void td_client_sought_look(void *user, const char *name, double value);

// NOTFOUND.
TD_NODISCARD td_err td_client_sought_get(const td_client_sought *sought,
                                         double *ret_value);

#endif

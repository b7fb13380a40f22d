// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_CORE_FIT_H
#define TD_SERVER_CORE_FIT_H

// How old the values of an observation were when it was made, and may be: each
// tensor, the state too, may say its age. Whether it fits the model otherwise:
// core.h. Pure.

#include "base/err.h"
#include "tendon/wire.h"

typedef struct td_server_fit_limits {
    int64_t staleness_us; // an older value is refused
    int64_t alignment_us; // ages further apart than this are counted
} td_server_fit_limits;

#define TD_SERVER_FIT_LIMITS                                                   \
    {.staleness_us = 1000 * 1000, .alignment_us = 20 * 1000}

// Of those that say one. All zeros: none does.
typedef struct td_server_fit_ages {
    uint32_t count;
    td_wire_text oldest; // whose age is oldest_us
    int64_t oldest_us, youngest_us;
} td_server_fit_ages;

// Borrows the observation's names.
void td_server_fit_ages_of(const td_wire_obs *obs,
                           td_server_fit_ages *ret_ages);

// LIMIT, with the tensor, its age and how old it may be, for one that is
// stale.
TD_NODISCARD td_err td_server_fit_fresh(const td_server_fit_limits *settings,
                                        const td_server_fit_ages *ages,
                                        td_errinfo *info);

// Whether the ages are too far apart to be of one moment.
bool td_server_fit_misaligned(const td_server_fit_limits *settings,
                              const td_server_fit_ages *ages);

#endif

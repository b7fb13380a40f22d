// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_API_API_H
#define TD_EDGE_API_API_H

// What the C APIs of robots and of programs share: structs that grow, texts
// that may stand in the environment instead, one number of a report.

#include "base/err.h"
#include "tendon/wire.h"

#include <stdbool.h>

// How long a struct was that ended with `last`.
#define TD_EDGE_API_UP_TO(type, last)                                          \
    (offsetof(type, last) + sizeof(((type *)0)->last))

// Copies a struct that begins with its size: of an older version (at least
// `first` bytes; the rest is zeros), or of a newer one whose additions are not
// used. INVALID, VERSION, naming `what`.
TD_NODISCARD td_err td_edge_api_struct(const char *what, const void *argument,
                                       size_t first, size_t known,
                                       void *ret_copy, td_errinfo *info);

// `argument`, or the variable's value, or NULL. Borrowed.
const char *td_edge_api_text(const char *argument, const char *variable);

// The same as a chunk of a key, which must be there. INVALID, with the field
// and where it may be set.
TD_NODISCARD td_err td_edge_api_chunk(const char *field, const char *argument,
                                      const char *variable,
                                      char ret_chunk[TD_WIRE_MAX_NAME + 1],
                                      td_errinfo *info);

// INVALID: the field is neither an argument nor in the environment.
td_err td_edge_api_missing(const char *field, const char *variable,
                           td_errinfo *info);

// One number of a report that calls a function for each:
//
//     td_edge_api_number wanted = {.name = name};
//     report(…, td_edge_api_number_match, &wanted);
//     return td_edge_api_number_get(&wanted, ret_value);
typedef struct td_edge_api_number {
    const char *name; // borrowed
    bool found;
    double value;
} td_edge_api_number;

// A td_robot_number_fn and a td_model_number_fn; `user` is a
// td_edge_api_number.
void td_edge_api_number_match(void *user, const char *name, double value);

// NOTFOUND.
TD_NODISCARD td_err td_edge_api_number_get(const td_edge_api_number *number,
                                           double *ret_value);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_API_OPTIONS_H
#define TD_EDGE_API_OPTIONS_H

// What a program gives the C API: structs that grow, and texts that may stand
// in the environment instead.

#include "base/err.h"
#include "tendon/wire.h"

// How long a struct was that ended with `last`.
#define TD_EDGE_OPTIONS_UP_TO(type, last)                                      \
    (offsetof(type, last) + sizeof(((type *)0)->last))

// Copies a struct that begins with its size: of an older version (at least
// `first` bytes; the rest is zeros), or of a newer one whose additions are not
// used. INVALID, VERSION, naming `what`.
TD_NODISCARD td_err td_edge_options_struct(const char *what,
                                           const void *argument, size_t first,
                                           size_t known, void *ret_copy,
                                           td_errinfo *info);

// `given`, or the variable's value, or NULL. Borrowed.
const char *td_edge_options_text(const char *argument, const char *variable);

// The same as a chunk of a key, which must be there. INVALID, with the field
// and where it could be given.
TD_NODISCARD td_err td_edge_options_chunk(const char *field,
                                          const char *argument,
                                          const char *variable,
                                          char ret_chunk[TD_WIRE_MAX_NAME + 1],
                                          td_errinfo *info);

// Fails for a text that is nowhere.
td_err td_edge_options_nowhere(const char *field, const char *variable,
                               td_errinfo *info);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_LIBRARY_H
#define TD_BASE_LIBRARY_H

// Libraries of our own that are loaded when they are needed, so that processes
// without that need neither have them nor what they stand on.

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

// Loads `name` ("libtendon_video.so"): the file that the environment's
// `variable` names, or else what is beside the program or the library that this
// code is in, or where `cmake --install` puts it as seen from there, or where
// the system looks for libraries. It stays loaded. Any thread; blocks. NOTFOUND
// (there is none; says where it was looked for), IO (there is one that cannot
// be loaded; says why).
TD_NODISCARD td_err td_library_open(const char *name, const char *variable,
                                    void **ret_library, td_errinfo *info);

// A library that exports a table of functions, and words for those who lack it.
typedef struct td_library {
    const char *name;     // "libtendon_video.so"
    const char *variable; // of the environment, as above
    const char *entry;    // what it exports: a td_library_entry
    uint32_t version;     // which its user was compiled with, and
    size_t table_bytes;   // the size likewise
    const char *lack;     // "no videos"
    const char *missing;  // what to do when there is none
    const char *broken;   // and when it cannot be loaded
    const void *table;    // NULL until it is loaded; then for good
} td_library;

// NULL for another version or size than the library's own.
typedef const void *td_library_entry(uint32_t version, size_t table_bytes);

// Loads it and sets its table, unless it is there already; what failed may be
// tried again. Any thread; blocks. Who has called it with success may read
// the table without a lock. UNSUPPORTED (missing or broken), VERSION (of
// another release): each says "LACK without NAME:" and what to do.
TD_NODISCARD td_err td_library_load(td_library *library, td_errinfo *info);

#endif

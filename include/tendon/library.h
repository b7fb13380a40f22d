// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_LIBRARY_H
#define TENDON_LIBRARY_H

// The library itself: its version, and where it says what happens.

#include "tendon/err.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The version of this header. Programs that were built with an older one of the
// same major version go on working with a newer library (major 0: the same
// minor version).
#define TD_API_VERSION_MAJOR 0
#define TD_API_VERSION_MINOR 1
#define TD_API_VERSION_PATCH 0
#define TD_API_VERSION                                                         \
    (TD_API_VERSION_MAJOR * 1000000 + TD_API_VERSION_MINOR * 1000 +            \
     TD_API_VERSION_PATCH)

// The version of the library: as TD_API_VERSION, and "0.1.0". Never blocks.
uint32_t td_version(void);
const char *td_version_text(void);

typedef enum td_level {
    TD_LEVEL_DEBUG,
    TD_LEVEL_INFO,
    TD_LEVEL_WARN,
    TD_LEVEL_ERROR,
} td_level;

// Where this process says what happens: to `log`, a line a call, on a
// thread that may block; NULL: to standard error, as it is from the start. Only
// lines of `level` and above. BUSY while a robot, connection or server is open;
// NOMEM.
typedef void (*td_log_to_fn)(void *user, td_level level, const char *line);
TD_NODISCARD td_err td_log_to(td_log_to_fn log, void *user, td_level level);

#ifdef __cplusplus
}
#endif

#endif

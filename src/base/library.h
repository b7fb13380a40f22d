// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_LIBRARY_H
#define TD_BASE_LIBRARY_H

// Libraries of our own that are loaded when they are needed, so that processes
// without that need neither have them nor what they stand on.

#include "base/err.h"

// Loads `name` ("libtendon_video.so"): the file that the environment's
// `variable` names, or else what is beside the program or the library that this
// code is in, or where `cmake --install` puts it as seen from there, or where
// the system looks for libraries. It stays loaded. Any thread; blocks. NOTFOUND
// (there is none; says where it was looked for), IO (there is one that cannot
// be loaded; says why).
TD_NODISCARD td_err td_library_open(const char *name, const char *variable,
                                    void **ret_library, td_errinfo *info);

#endif

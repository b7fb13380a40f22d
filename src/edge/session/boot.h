// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_SESSION_BOOT_H
#define TD_EDGE_SESSION_BOOT_H

// The number of this start: greater than that of every start before.

#include "base/err.h"

// The number after the one kept in `path`, or the wall clock in milliseconds
// where that is greater, written back before it is used. When the file cannot
// be written the wall clock alone is used, and IO with the reason in `info`
// comes with a valid number. Blocks on the disk.
td_err td_edge_boot_next(const char *path, int64_t wall_ms, uint64_t *ret_boot,
                         td_errinfo *info);

#endif

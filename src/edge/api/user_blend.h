// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_API_USER_BLEND_H
#define TD_EDGE_API_USER_BLEND_H

// A user's blend of all the steps that two chunks know, on a thread of its own:
// one that blocks, or that waits for an interpreter's lock, costs a chunk no
// more than a limit.

#include "edge/core/blend.h"
#include "tendon/robot.h"

typedef td_err (*td_edge_user_blend_fn)(void *user,
                                        const td_robot_overlap *overlap,
                                        float *ret_rows);

typedef struct td_edge_user_blend_config {
    td_edge_user_blend_fn fn;
    void *user;       // for fn, borrowed
    size_t most_rows; // of a chunk
    size_t channels;
    int64_t limit_ns; // how long a chunk waits for it
} td_edge_user_blend_config;

typedef struct td_edge_user_blend td_edge_user_blend;

// Starts the thread. Owned by the caller. NOMEM, LIMIT.
TD_NODISCARD td_err
td_edge_user_blend_open(const td_edge_user_blend_config *config,
                        td_edge_user_blend **ret_blend, td_errinfo *info);

// What the edge calls, with the blend for its `user`. One thread; blocks up to
// the limit. What the function leaves unset is not a number. TIMEOUT if it is
// late, or still at an earlier chunk; IO if it fails.
TD_NODISCARD td_err td_edge_user_blend_all(void *user,
                                           const td_edge_overlap *overlap,
                                           float *ret_rows);

// Blocks until the function has returned.
void td_edge_user_blend_close(td_edge_user_blend *blend);
TD_AUTO_FREE(td_edge_user_blend, td_edge_user_blend_close)

#endif

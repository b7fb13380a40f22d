// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_OBSERVE_POOL_H
#define TD_EDGE_OBSERVE_POOL_H

// The frames of one camera: so many pictures, each shared by count between who
// sends it and who records it, so that it is taken once and copied never.
//
// All storage is made at the start. One thread takes frames to fill; any thread
// lets go.

#include "net/net.h"

#include <stdatomic.h>

typedef struct td_edge_frame {
    // When the robot was asked for it, so that one which took long to come is
    // old. 0: there is none yet.
    int64_t captured_ns;
    size_t jpeg; // as in td_robot_picture: its bytes; 0: height x width x RGB
    uint8_t *bytes;    // the loan's, or in the pool
    td_net_loan *loan; // where it lies, so that a put need not copy it; or NULL
    _Atomic uint32_t holders; // the pool's own
} td_edge_frame;

typedef struct td_edge_pool td_edge_pool;

// `count` frames with room for `bytes` each. Owned by the caller. INVALID if
// either is 0, NOMEM.
TD_NODISCARD td_err td_edge_pool_new(uint32_t count, size_t bytes,
                                     td_edge_pool **ret_pool);
void td_edge_pool_free(td_edge_pool *pool);
TD_AUTO_FREE(td_edge_pool, td_edge_pool_free)

// A frame that nobody holds, held by the caller; NULL: all are. Ends the loans
// of all that nobody holds. One thread; never blocks.
td_edge_frame *td_edge_pool_take(td_edge_pool *pool);

// Moves a frame that was just taken to a loan, which becomes the pool's.
void td_edge_pool_lend(td_edge_frame *frame, td_net_loan *loan);

// One holder more, by who holds it; one less. Any thread; never blocks.
void td_edge_pool_hold(td_edge_frame *frame);
void td_edge_pool_drop(td_edge_frame *frame);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_SYNTHETIC_SHARED_H
#define TD_ENGINE_SYNTHETIC_SHARED_H

// What runs at the same time on a device that batches continuously: who comes
// joins at once, and while n run each goes on at the rate 1 / t(n). Pure: the
// time is an argument, and never goes back. All zeros is one that takes no
// time.

#include "engine/engine.h"
#include <stdint.h>

#define TD_ENGINE_SYNTHETIC_NEVER_NS INT64_MAX

// What joins: one request, or some that stay together and end together.
typedef struct td_engine_synthetic_share {
    void *user;
    uint32_t members;
    int64_t start_ns; // before that it is prepared, which slows nobody down
    double left;      // of its work; t(n) x left is the time it takes among n
} td_engine_synthetic_share;

typedef struct td_engine_synthetic_shared {
    int64_t time_ns[TD_ENGINE_MAX_BATCH + 1]; // t(n); [0] is not used
    int64_t now_ns;
    td_engine_synthetic_share shares[TD_ENGINE_MAX_BATCH]; // as they came
    uint32_t count;
    uint32_t members; // of all shares
} td_engine_synthetic_shared;

// Of at least one member; of all together there are at most
// TD_ENGINE_MAX_BATCH. A start that is past is now.
void td_engine_synthetic_shared_join(td_engine_synthetic_shared *shared,
                                     const td_engine_synthetic_share *share);

// When something starts or ends next, if nobody joins. NEVER: nothing is left.
int64_t
td_engine_synthetic_shared_next_ns(const td_engine_synthetic_shared *shared);

// Takes out the first that ends by `now_ns`, and returns whose it was; the time
// then stands at that end. NULL: none does, and the time stands at `now_ns`.
void *td_engine_synthetic_shared_ended(td_engine_synthetic_shared *shared,
                                       int64_t now_ns);

// Batches on a device that runs one at a time, in the order of submission. What
// is not the device's, such as copying and unpacking, is done for the next
// while the one before runs. Pure: the time is an argument.

// All zeros: nothing was submitted yet.
typedef struct td_engine_synthetic_serial {
    int64_t prepared_ns; // when the newest was, or will be
    int64_t free_ns;     // when the device is
} td_engine_synthetic_serial;

// Takes in a batch, and returns when it will be through.
int64_t td_engine_synthetic_serial_take(td_engine_synthetic_serial *serial,
                                        int64_t submitted_ns,
                                        int64_t prepare_ns, int64_t device_ns);

#endif

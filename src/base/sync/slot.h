// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_SYNC_SLOT_H
#define TD_BASE_SYNC_SLOT_H

// Newest-wins slot: one writer, one reader, the latest value only.
//
// Three buffers: the writer fills its own, then swaps it with the middle one;
// the reader swaps the middle one in when it is fresh. Both sides are wait-free
// and never see a value half written. All storage is made at the start.

#include "base/err.h"

#include <stdbool.h>

typedef struct td_slot td_slot;

// Three zeroed values of `value_bytes`, each on cache lines of its own. Owned
// by the caller. INVALID if 0.
TD_NODISCARD td_err td_slot_new(size_t value_bytes, td_slot **ret_slot);
void td_slot_free(td_slot *slot);
TD_AUTO_FREE(td_slot, td_slot_free)

// The buffer to fill next. It still holds an older value. Writer thread only;
// never blocks.
void *td_slot_back(td_slot *slot);

// Makes the back buffer the newest value. Returns true if the one it replaced
// was never read. Writer thread only; never blocks.
bool td_slot_publish(td_slot *slot);

// Moves to the newest value; false if it is the same as the last time. Reader
// thread only; never blocks.
bool td_slot_refresh(td_slot *slot);

// The value that the last refresh moved to, borrowed until the next one; zeros
// before the first. Reader thread only.
const void *td_slot_front(const td_slot *slot);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_ARENA_H
#define TD_BASE_ARENA_H

// Memory in many pieces that is freed at once, such as all that is read from
// one document. One thread at a time.

#include "base/err.h"

typedef struct td_arena {
    struct td_arena_block *blocks; // the first one is being filled; NULL: none
} td_arena;

// Frees all that was taken from an arena in place; {0} is an empty one.
void td_arena_done(td_arena *arena);

// One on the heap. Owned by the caller. NOMEM.
TD_NODISCARD td_err td_arena_new(td_arena **ret_arena);
void td_arena_free(td_arena *arena);
TD_AUTO_FREE(td_arena, td_arena_free)

// Zeroed and aligned for any type; borrowed until the arena is freed. NULL when
// there is no memory.
void *td_arena_alloc(td_arena *arena, size_t count, size_t bytes);

// A copy of so many bytes of text, ended by NUL; `text` may be NULL for none.
char *td_arena_copy(td_arena *arena, const char *text, size_t bytes);
char *td_arena_print(td_arena *arena, const char *fmt, ...) TD_PRINTF(2, 3);

#endif

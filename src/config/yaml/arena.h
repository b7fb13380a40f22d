// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_YAML_ARENA_H
#define TD_CONFIG_YAML_ARENA_H

// Memory of one document: everything read from it is freed at once.

#include "base/err.h"

typedef struct td_config_arena td_config_arena;

// Owned by the caller. NOMEM.
TD_NODISCARD td_err td_config_arena_new(td_config_arena **ret_arena);
void td_config_arena_free(td_config_arena *arena);
TD_AUTO_FREE(td_config_arena, td_config_arena_free)

// Zeroed and aligned for any type; borrowed until the arena is freed. NULL when
// there is no memory.
void *td_config_arena_alloc(td_config_arena *arena, size_t count, size_t bytes);
char *td_config_arena_copy(td_config_arena *arena, const char *text,
                           size_t bytes);
char *td_config_arena_print(td_config_arena *arena, const char *fmt, ...)
    TD_PRINTF(2, 3);

#endif

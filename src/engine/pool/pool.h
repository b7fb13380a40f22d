// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_POOL_POOL_H
#define TD_ENGINE_POOL_POOL_H

// Several engines of one model as one that runs as many batches side by side:
// worker processes, or threads that call one function.
//
// It offers no halves: a prefix would be of one of them alone.

#include "engine/engine.h"

// `settings` of the td_engine_config.
typedef struct td_engine_pool_settings {
    const char *kind;     // of each
    const void *settings; // of each
    uint32_t count;       // 1 to TD_ENGINE_MAX_BATCH
} td_engine_pool_settings;

extern const td_engine_ops td_engine_pool;

#endif

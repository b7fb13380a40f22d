// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_ENGINE_H
#define TD_ENGINE_ENGINE_H

// The engines by name, and thin helpers around include/tendon/engine.h.

#include "base/err.h"
#include "tendon/engine.h" // IWYU pragma: export

// Opens the named engine. Owned by the caller. Blocks while it loads. NOTFOUND
// with the known names, or what its open() returns.
TD_NODISCARD td_err td_engine_open(const char *name,
                                   const td_engine_config *config,
                                   td_engine **ret_engine, td_errinfo *info);

// Finishes what was submitted and frees. Blocks. Not inside `done`.
void td_engine_close(td_engine *engine);
TD_AUTO_FREE(td_engine, td_engine_close)

// Whether the engine works in two halves: prefix(), decode() and drop().
bool td_engine_splits(const td_engine *engine);

// What health() says; READY of an engine without it. Any thread; never blocks.
td_engine_health td_engine_health_of(const td_engine *engine);

// The seed of all noise of one request. The same three give the same seed on
// every machine. Any thread; never blocks.
uint64_t td_engine_seed(td_wire_text client, uint64_t episode, uint64_t seq);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_RESULTS_H
#define TD_ENGINE_RESULTS_H

// Filling a td_engine_results: only with what an answer can carry. One thread
// at a time.

#include "base/err.h"
#include "tendon/engine.h"

#define TD_ENGINE_RESULTS_MOST_BYTES (32u << 20)

// Copies the tensor. FORMAT (a name that is invalid or taken, a shape that does
// not fit the bytes), LIMIT (too many, too large), NOMEM; then nothing was
// added.
TD_NODISCARD td_err td_engine_results_add(td_engine_results *results,
                                          td_wire_text name,
                                          const td_wire_tensor *tensor,
                                          td_errinfo *info);

// Copies the text, in place of the one before. FORMAT, LIMIT, NOMEM.
TD_NODISCARD td_err td_engine_results_set_text(td_engine_results *results,
                                               td_wire_text text,
                                               td_errinfo *info);

// Empty again; the memory stays.
void td_engine_results_clear(td_engine_results *results);

// Gives the memory back.
void td_engine_results_done(td_engine_results *results);

#endif

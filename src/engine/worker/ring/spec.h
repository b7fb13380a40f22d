// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_WORKER_RING_SPEC_H
#define TD_ENGINE_WORKER_RING_SPEC_H

// What a worker says of its model, against what the manifest says. Pure.

#include "base/err.h"
#include "tendon/engine.h"
#include "tendon/worker.h"

// Copies a hello and checks the copy: magic, version, counts, names, kinds.
// Its error, if it has one, can be printed as it is. FORMAT, VERSION.
TD_NODISCARD td_err td_engine_worker_spec_read(const td_worker_hello *shared,
                                               td_worker_hello *ret_hello,
                                               td_errinfo *info);

// What holds when both have spoken: what only one of them says, or what both
// say alike; 50 rows, batches of 1 and 1 MiB of results where neither says.
// MISMATCH naming both sides, INVALID for channels that neither names.
TD_NODISCARD td_err td_engine_worker_spec_agree(const td_worker_spec *manifest,
                                                const td_worker_spec *worker,
                                                td_worker_spec *ret_spec,
                                                td_errinfo *info);

// Fills everything but the model's name, version and period. Borrows names.
void td_engine_worker_spec_of(const td_worker_spec *from,
                              td_engine_spec *ret_spec);

#define TD_ENGINE_WORKER_TEXT_BYTES 512

// A text out of a field that need not end: what is not printable ASCII or whole
// UTF-8 becomes '?'. `size` is less than TD_ENGINE_WORKER_TEXT_BYTES.
void td_engine_worker_spec_text(const char *field, size_t size,
                                char ret_text[TD_ENGINE_WORKER_TEXT_BYTES]);

#endif

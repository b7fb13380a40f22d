// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_PROBE_H
#define TD_ENGINE_PROBE_H

// A batch that any model takes, with members that all ask the same: a state of
// zeros and black pictures. For warming up and for measuring.

#include "engine/engine.h"

typedef struct td_engine_probe td_engine_probe;

// Of an engine with this spec, which is borrowed. Owned by the caller. NOMEM.
TD_NODISCARD td_err td_engine_probe_new(const td_engine_spec *spec,
                                        td_engine_probe **ret_probe);
void td_engine_probe_free(td_engine_probe *probe);
TD_AUTO_FREE(td_engine_probe, td_engine_probe_free)

// Asks an idle engine that is READY with `count` members, and blocks until they
// are answered. `ret_ns` (optional) is the time from submit() to done. What
// submit() returns or a member's status is, with the engine's reason.
TD_NODISCARD td_err td_engine_probe_run(td_engine_probe *probe,
                                        td_engine *engine, uint32_t count,
                                        int64_t *ret_ns, td_errinfo *info);

// Runs a model before anybody asks it: what is slow the first time is slow
// here, and a model that cannot answer is found out. Asks an idle engine that
// is READY for a batch of one and, where it takes more, for a full one: a state
// of zeros and black pictures. Blocks until they are answered. `ret_ns` (may be
// NULL) is what the batch of one took, once more where that is longer than what
// a chunk lasts a robot. What submit() returns or a member's status is, with
// the engine's reason.
TD_NODISCARD td_err td_engine_probe_warm_up(td_engine *engine, int64_t *ret_ns,
                                            td_errinfo *info);

// How long a robot plays a full chunk of the model's, in nanoseconds; 0: it
// gives no chunks.
int64_t td_engine_probe_lasts(const td_engine_spec *spec);

#endif

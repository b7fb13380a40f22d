// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_WARMUP_H
#define TD_ENGINE_WARMUP_H

// Runs a model before anybody asks it: what is slow the first time is slow
// here, and a model that cannot answer is found out.

#include "engine/engine.h"

// Asks an idle engine that is READY for a batch of one and, where it takes
// more, for a full one: a state of zeros and black pictures. Blocks until they
// are answered. What submit() returns or a member's status is, with the
// engine's reason.
TD_NODISCARD td_err td_engine_warmup(td_engine *engine, td_errinfo *info);

#endif

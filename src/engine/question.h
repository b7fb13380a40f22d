// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_QUESTION_H
#define TD_ENGINE_QUESTION_H

// A batch that any model takes, with members that all ask the same: a state of
// zeros and black pictures. For warming up and for measuring.

#include "engine/engine.h"

typedef struct td_engine_question td_engine_question;

// Of an engine with this spec, which is borrowed. Owned by the caller. NOMEM.
TD_NODISCARD td_err td_engine_question_new(const td_engine_spec *spec,
                                           td_engine_question **ret_question);
void td_engine_question_free(td_engine_question *question);
TD_AUTO_FREE(td_engine_question, td_engine_question_free)

// Asks an idle engine that is READY with `count` members, and blocks until they
// are answered. `ret_ns` (optional) is the time from submit() to done. What
// submit() returns or a member's status is, with the engine's reason.
TD_NODISCARD td_err td_engine_question_ask(td_engine_question *question,
                                           td_engine *engine, uint32_t count,
                                           int64_t *ret_ns, td_errinfo *info);

#endif

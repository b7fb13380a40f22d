// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_CALLBACK_CALLBACK_H
#define TD_ENGINE_CALLBACK_CALLBACK_H

// A function of the program's own as an engine (tendon/infer.h), on a thread of
// the engine's.
//
// While a call hangs the engine is BROKEN, and READY again when it returns. It
// cannot be ended from here: what it has stays with it until then.

#include "engine/engine.h"
#include "tendon/infer.h"

// `settings` of the td_engine_config. What the spec's texts, the config's texts
// and `user` point to is borrowed while the engine is open.
typedef struct td_engine_callback_settings {
    const td_engine_spec *spec; // all but what the config says
    td_infer_function infer;
    void *user;
    int64_t answer_ns; // a call that takes longer, and longer than ten times
                       // the longest before, hangs; 0: none does
} td_engine_callback_settings;

extern const td_engine_ops td_engine_callback;

#endif

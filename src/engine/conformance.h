// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_CONFORMANCE_H
#define TD_ENGINE_CONFORMANCE_H

// What every engine must do, whichever it is. Run it from the engine's own
// test.

#include "engine/engine.h"

// Runs the suite on the named engine, whose max_batch is at least 2. Returns
// how many tests failed.
int td_engine_conformance(const char *name, const td_engine_config *config);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_SYNTHETIC_SYNTHETIC_H
#define TD_ENGINE_SYNTHETIC_SYNTHETIC_H

// The synthetic model as an engine: it sleeps for as long as the model says and
// gives the model's answer. Opened with td_engine_synthetic_settings.
//
// With `halves` it works in two, to stand in for policies that do: a prefix
// takes 0.7 of the drawn time and keeps the state and the cursor, a decode
// takes 0.3.
//
// Batches run one at a time, each prepared while the one before runs; or, with
// `continuous`, whatever is submitted joins what runs and slows it down.

#include "engine/synthetic/model.h"

#define TD_ENGINE_SYNTHETIC_PREFIX_SHARE 0.7

extern const td_engine_ops td_engine_synthetic;

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_OPS_OPS_CASES_H
#define TD_ENGINE_NATIVE_OPS_OPS_CASES_H

// What every backend must compute, whichever it is: the cases of
// tests/golden/ops.json against the numbers of PyTorch. Run it from the
// backend's own test.

#include "engine/native/ops/ops.h"

// Runs all cases. An answer may be off by `tolerance` of the largest value of
// its case. What the backend does not support is counted, and said. Returns how
// many cases failed, or -1 when the backend does not open.
int td_ops_cases(const td_ops *ops, const td_ops_config *config,
                 double tolerance);

#endif

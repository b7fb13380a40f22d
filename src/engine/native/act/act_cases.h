// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_ACT_ACT_CASES_H
#define TD_ENGINE_NATIVE_ACT_ACT_CASES_H

// ACT against what LeRobot answers with the same weights and observations
// (tests/golden/act), on whichever backend. Run it from the backend's own test.

#include "engine/native/ops/ops.h"

typedef struct td_native_act_backend {
    const td_ops *ops;
    td_ops_config config;
    double tolerance; // largest difference to LeRobot, of the largest value
} td_native_act_backend;

// Returns how many tests failed.
int td_native_act_cases(const td_native_act_backend *backend);

#endif

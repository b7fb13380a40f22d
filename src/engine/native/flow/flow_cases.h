// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_FLOW_FLOW_CASES_H
#define TD_ENGINE_NATIVE_FLOW_FLOW_CASES_H

// Policies that denoise against LeRobot's own (tests/golden/flows), on any
// backend.

#include "engine/native/ops/ops.h"

typedef struct td_native_flow_backend {
    const td_ops *ops;
    td_ops_config config;
    double tolerance; // of the largest value
} td_native_flow_backend;

// Runs the cases whose name begins so. Returns how many tests failed.
int td_native_flow_cases(const td_native_flow_backend *backend,
                         const char *kind);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CHECKPOINT_NORMS_H
#define TD_ENGINE_NATIVE_CHECKPOINT_NORMS_H

// The statistics of a normaliser, or of its inverse, and what they do to
// values: LeRobot's formulas in float32, its rounding too. Nothing is clipped.

#include "engine/native/checkpoint/policy.h"
#include "engine/native/checkpoint/safetensors.h"

// name, the two statistics that it needs
#define TD_NATIVE_MODES(X)                                                     \
    X(IDENTITY, NULL, NULL)                                                    \
    X(MEAN_STD, "mean", "std")                                                 \
    X(MIN_MAX, "min", "max")                                                   \
    X(QUANTILES, "q01", "q99")                                                 \
    X(QUANTILE10, "q10", "q90")

typedef enum td_native_mode {
#define TD_NATIVE_MODE_ENUM(name, low, high) TD_NATIVE_##name,
    TD_NATIVE_MODES(TD_NATIVE_MODE_ENUM)
#undef TD_NATIVE_MODE_ENUM
        TD_NATIVE_MODE_COUNT
} td_native_mode;

// One feature's. MEAN_STD is (x - low) / span, and back x * high + low; the
// others are 2 * (x - low) / span - 1, and back (x + 1) * span / 2 + low.
typedef struct td_native_norm {
    td_native_mode mode; // IDENTITY: nothing happens, and there are no numbers
    uint32_t count;
    float *low, *high; // [count]
    float *span;       // [count]: never 0
} td_native_norm;

typedef struct td_native_norms {
    td_native_norm state, env, action;
    td_native_norm cameras[TD_WIRE_MAX_IMAGES]; // of three values each
} td_native_norms;

// Reads a step's configuration and its statistics, which may be NULL: then, and
// where they are silent on a feature, nothing happens to it, as with LeRobot.
// Owned by the caller. FORMAT, MISMATCH, UNSUPPORTED, NOMEM.
TD_NODISCARD td_err td_native_norms_new(const td_json_at *config,
                                        const td_native_safetensors *stats,
                                        const td_native_policy *policy,
                                        td_native_norms **ret_norms,
                                        td_errinfo *info);
void td_native_norms_free(td_native_norms *norms);
TD_AUTO_FREE(td_native_norms, td_native_norms_free)

// In place, rows of norm->count values. Any thread.
void td_native_norm_apply(const td_native_norm *norm, uint32_t rows,
                          float *values);
void td_native_norm_undo(const td_native_norm *norm, uint32_t rows,
                         float *values);

// "MEAN_STD"
const char *td_native_mode_name(td_native_mode mode);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_PIPELINE_ENSEMBLE_H
#define TD_ENGINE_NATIVE_PIPELINE_ENSEMBLE_H

// LeRobot's temporal ensemble, kept here for each client: a step that several
// chunks have spoken of is their weighted mean, exp(-coefficient * i) for the
// i-th that spoke, the oldest first.
//
// LeRobot asks at every step and takes one action each time; here chunks are
// asked for at any step, and the cursor of an observation says which.
//
// Pure, but for memory. One thread at a time.

#include "base/err.h"
#include "tendon/wire.h"

#define TD_NATIVE_ENSEMBLE_CLIENTS 4096 // the one unheard of longest gives way

typedef struct td_native_ensemble td_native_ensemble;

// For chunks of so many rows and columns. Owned by the caller. NOMEM.
TD_NODISCARD td_err td_native_ensemble_new(double coefficient, uint32_t rows,
                                           uint32_t cols,
                                           td_native_ensemble **ret_ensemble);
void td_native_ensemble_free(td_native_ensemble *ensemble);
TD_AUTO_FREE(td_native_ensemble, td_native_ensemble_free)

// Takes the chunk that answers this observation, and makes it the ensemble's.
// Another boot or episode, or a cursor that goes back, begins anew. NOMEM.
TD_NODISCARD td_err td_native_ensemble_join(td_native_ensemble *ensemble,
                                            const td_wire_obs *obs,
                                            float *actions);

#endif

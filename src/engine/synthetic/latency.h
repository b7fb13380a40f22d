// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_SYNTHETIC_LATENCY_H
#define TD_ENGINE_SYNTHETIC_LATENCY_H

// How long a batch takes, drawn from a declared distribution or from measured
// samples. Pure once made.

#include "base/err.h"
#include "base/rand.h"

#include <stddef.h>

typedef enum td_engine_latency_kind {
    TD_ENGINE_LATENCY_NONE,
    TD_ENGINE_LATENCY_FIXED,
    TD_ENGINE_LATENCY_NORMAL,    // never below 0
    TD_ENGINE_LATENCY_LOGNORMAL, // ms and std_ms are its own mean and deviation
    TD_ENGINE_LATENCY_PROFILE,
} td_engine_latency_kind;

// The samples of one batch size.
typedef struct td_engine_latency_size {
    uint32_t n;
    const double *ms;
    size_t count; // at least 1
} td_engine_latency_size;

// How long a batch of n takes on the device: a draw, plus (n - 1) x
// per_batch_ms. Before that come prepare_ms that are not the device's, so that
// one batch is prepared while another runs.
//
// With a profile a batch takes one sample of its own size, or of the next
// larger size that was measured, or beyond all of them of the largest, plus
// per_batch_ms for each member above it.
typedef struct td_engine_latency {
    td_engine_latency_kind kind;
    double ms;
    double std_ms;
    double per_batch_ms;
    double prepare_ms;
    const td_engine_latency_size *sizes; // of a profile; n grows
    size_t size_count;                   // at most TD_ENGINE_MAX_BATCH
} td_engine_latency;

typedef struct td_engine_synthetic_latency td_engine_synthetic_latency;

// Copies what it needs. Owned by the caller. INVALID with what is wrong in
// `info`, NOMEM.
TD_NODISCARD td_err td_engine_synthetic_latency_new(
    const td_engine_latency *settings,
    td_engine_synthetic_latency **ret_latency, td_errinfo *info);
void td_engine_synthetic_latency_free(td_engine_synthetic_latency *latency);
TD_AUTO_FREE(td_engine_synthetic_latency, td_engine_synthetic_latency_free)

// Before the device takes a batch, of any size.
int64_t td_engine_synthetic_latency_prepare_ns(
    const td_engine_synthetic_latency *latency);

// A draw for a batch of `n`, at least 1.
int64_t
td_engine_synthetic_latency_draw_ns(const td_engine_synthetic_latency *latency,
                                    td_rand *rand, uint32_t n);

// What such a batch takes on average.
int64_t
td_engine_synthetic_latency_mean_ns(const td_engine_synthetic_latency *latency,
                                    uint32_t n);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_SYNTHETIC_MODEL_H
#define TD_ENGINE_SYNTHETIC_MODEL_H

// The synthetic model without its thread: what it answers and how long that
// takes. Pure once made: it reads no clock and sleeps nowhere, so that the
// simulator uses it too.
//
// The answer is a known function of the observation, which any receiver can
// check. With the observation's state s (float32) and cursor c, for row k and
// channel j of kind linear or angle:
//
//   action[k][j] = s[j % states] + 0.1 (sin(w (c + k) + p) - sin(w c + p))
//   w = 2 pi 0.25 step_period_s        p = 0.7 j
//
// in double, rounded to float32 at the end. Channels of kind quaternion and
// hold keep s[j % states] in every row. So row 0 is the state itself, and
// chunks of successive cursors fit together. A receiver that computes it its
// own way agrees within 1e-6 of values around 1. In numpy:
//
//   k, j = np.arange(rows)[:, None], np.arange(channels)[None, :]
//   wave = lambda n: 0.1 * np.sin(w * n + 0.7 * j)
//   actions = (s[j % len(s)] + wave(c + k) - wave(c)).astype("<f4")

#include "engine/engine.h"
#include "engine/synthetic/latency.h"

// `settings` of the td_engine_config. Borrowed for the call only.
typedef struct td_engine_synthetic_settings {
    td_wire_channel actions[TD_WIRE_MAX_CHANNELS];
    uint32_t action_count;
    td_wire_channel states[TD_WIRE_MAX_CHANNELS];
    uint32_t state_count;
    td_wire_camera cameras[TD_WIRE_MAX_IMAGES];
    uint32_t camera_count;
    uint32_t chunk_rows;
    uint32_t max_batch;
    bool continuous; // a batch joins what runs, instead of waiting for its end
    td_engine_latency latency;
    uint64_t seed;     // of the latency draws
    bool check_images; // decode every image; FORMAT for one that is not whole
    bool halves;       // a prefix and a decode by themselves, too
} td_engine_synthetic_settings;

typedef struct td_engine_synthetic_model td_engine_synthetic_model;

// Copies what it needs. Owned by the caller. INVALID with what is wrong in
// `info`, NOMEM.
TD_NODISCARD td_err td_engine_synthetic_model_new(
    const td_engine_config *config, td_engine_synthetic_model **ret_model,
    td_errinfo *info);
void td_engine_synthetic_model_free(td_engine_synthetic_model *model);
TD_AUTO_FREE(td_engine_synthetic_model, td_engine_synthetic_model_free)

// Borrowed from the model.
const td_engine_spec *
td_engine_synthetic_model_spec(const td_engine_synthetic_model *model);

// What comes before the device takes a batch, of any size.
int64_t
td_engine_synthetic_model_prepare_ns(const td_engine_synthetic_model *model);

// Draws how long a batch of n takes on the device. `n` is at least 1.
int64_t
td_engine_synthetic_model_latency_ns(const td_engine_synthetic_model *model,
                                     td_rand *rand, uint32_t n);

// What such a batch takes on average.
int64_t
td_engine_synthetic_model_estimate_ns(const td_engine_synthetic_model *model,
                                      uint32_t n);

// The observation's state, state_count floats. MISMATCH when it is not that
// many float32; then nothing is written.
TD_NODISCARD td_err
td_engine_synthetic_model_state(const td_engine_synthetic_model *model,
                                const td_wire_obs *obs, float *ret_state);

// The state from which a chunk at this cursor follows 0.1 sin(w n + p), n being
// the step; state_count floats. Chunks from such states are of one path.
void td_engine_synthetic_model_path(const td_engine_synthetic_model *model,
                                    uint64_t cursor, float *ret_state);

// The answer to a state at a cursor: chunk_rows x action_count floats. Any
// thread; never blocks.
void td_engine_synthetic_model_answer(const td_engine_synthetic_model *model,
                                      const float *state, uint64_t cursor,
                                      float *ret_actions);

#endif

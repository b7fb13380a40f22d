// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_DATASET_EVALUATE_H
#define TD_CLI_DATASET_EVALUATE_H

// Asks a policy what it would have done in a recorded session: at its frames,
// one after the other, or as a robot does that plays the answers
// (sim/player.h).
// Either way no time passes but what the policy takes.

#include "config/robot/robot.h"
#include "dataset/read/compare.h"
#include "dataset/read/reader.h"
#include "tendon/engine.h"

typedef struct td_cli_evaluate_config {
    td_engine *engine; // READY; borrowed, as is all of this
    td_dataset_reader *reader;
    int64_t episode;              // -1: all
    uint32_t every;               // ask at every so many frames, at least 1
    bool plays;                   // instead: what a robot would have played,
    int64_t latency_ns;           // with answers that come so late
    const td_config_robot *robot; // whose settings; NULL: plain ones
    bool (*stop)(void);           // asked before each
    // After each, of an episode's `frame`: what was recorded for it and what
    // the first row of the chunk says, or what is played (NULL: nothing yet).
    void (*on_frame)(void *user, uint64_t row, uint32_t episode,
                     const float *recorded, const float *predicted);
    void *user;
} td_cli_evaluate_config;

typedef struct td_cli_evaluate_sums {
    // Every row of every chunk that its episode still has a recorded action
    // for: of the engine's channels and chunk rows.
    td_dataset_compare chunks;
    td_dataset_compare played; // what was played, one step a frame
    uint64_t asked;
    uint64_t fresh, held; // frames: played of the policy; held by the fail-safe
    uint64_t clamped;     // frames that the gate changed
} td_cli_evaluate_sums;

// NOMEM. Free with td_cli_evaluate_sums_done().
TD_NODISCARD td_err td_cli_evaluate_sums_init(td_cli_evaluate_sums *sums,
                                              const td_engine_spec *spec);
void td_cli_evaluate_sums_done(td_cli_evaluate_sums *sums);

// Adds to the sums. Blocks. CANCELLED, MISMATCH (dataset, policy and robot do
// not fit; names what), or the engine's and the player's own.
TD_NODISCARD td_err td_cli_evaluate(const td_cli_evaluate_config *config,
                                    td_cli_evaluate_sums *sums,
                                    td_errinfo *info);

#endif

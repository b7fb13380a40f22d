// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_DATASET_PLAY_H
#define TD_CLI_DATASET_PLAY_H

// A robot in virtual time that plays what a policy answers, with the same
// deciding core as a real one (edge/core.h): it asks when half a chunk is left,
// one observation at a time, and holds when nothing is. No limits, no thread.

#include "base/err.h"
#include "tendon/engine.h"

typedef struct td_cli_play td_cli_play;

// Of the policy's channels, a tick each 1 / `fps` s. Owned by the caller.
// INVALID (a quaternion that is not whole), NOMEM.
TD_NODISCARD td_err td_cli_play_new(const td_engine_spec *spec, uint32_t fps,
                                    int64_t latency_ns, td_cli_play **ret_play,
                                    td_errinfo *info);
void td_cli_play_free(td_cli_play *play);
TD_AUTO_FREE(td_cli_play, td_cli_play_free)

typedef struct td_cli_played {
    const float *command; // borrowed until the next tick; NULL: none yet
    bool fresh;           // of the policy; otherwise it holds
    bool asks;            // with an observation of what is seen now,
    td_wire_ident ident;  // of this name
} td_cli_played;

// One tick further. `reading` is where the joints are.
void td_cli_play_tick(td_cli_play *play, const float *reading,
                      td_cli_played *ret_played);

// The answer to what the last tick asked comes `latency_ns` after it; the first
// at once, since a robot waits for that. Borrowed until a tick asks again.
void td_cli_play_answer(td_cli_play *play, const td_engine_item *answer);

// What went wrong with one that came: NOMEM.
td_err td_cli_play_error(const td_cli_play *play);

#endif

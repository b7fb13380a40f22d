// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_FLOW_GUIDE_H
#define TD_ENGINE_NATIVE_FLOW_GUIDE_H

// Real-time chunking as LeRobot has it: how much each row of a new chunk is
// guided by what is left of the one before. Pure.

#include "base/json/read.h"

typedef enum td_native_guide_schedule {
    TD_NATIVE_GUIDE_ZEROS,  // rows that will be played, and no other
    TD_NATIVE_GUIDE_ONES,   // all rows to the horizon alike
    TD_NATIVE_GUIDE_LINEAR, // less and less after those that will be played
    TD_NATIVE_GUIDE_EXP,
} td_native_guide_schedule;

typedef struct td_native_guide {
    td_native_guide_schedule schedule;
    float most;          // largest weight of the guidance
    uint32_t horizon;    // where nobody asks for another
    bool trained;        // the policy takes promised rows as they are
    uint32_t most_delay; // that it was trained for
} td_native_guide;

// rtc_config of a policy's config.json; LeRobot's own where it is null. What
// has no mode is guided. FORMAT, LIMIT, UNSUPPORTED.
TD_NODISCARD td_err td_native_guide_read(const td_json_at *config,
                                         td_native_guide *ret_guide,
                                         td_errinfo *info);

// The weight of each of `rows` rows: `left` rows are left of the chunk before,
// of which `delay` will have been played.
void td_native_guide_weights(const td_native_guide *guide, uint32_t delay,
                             uint32_t horizon, uint32_t left, uint32_t rows,
                             float *ret_weights);

// How much a step is guided at a time from 1 (noise) to 0.
float td_native_guide_strength(const td_native_guide *guide, double time);

#endif

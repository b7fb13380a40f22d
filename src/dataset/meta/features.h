// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_META_FEATURES_H
#define TD_DATASET_META_FEATURES_H

// What a recorder's schema is in a dataset: its features, new or there already.

#include "dataset/meta/frame.h"
#include "dataset/meta/info.h"

// What was really done, a column each: its name, its dtype, and its field in
// td_dataset_unsaved.
#define TD_DATASET_EXTRAS(X)                                                   \
    X("tendon.held", BOOL, held)                                               \
    X("tendon.clamped", BOOL, clamped)                                         \
    X("tendon.failsafe", BOOL, failsafe)                                       \
    X("tendon.age_s", F32, age_s)                                              \
    X("tendon.chunk", I64, chunk)                                              \
    X("tendon.step", I64, step)                                                \
    X("tendon.missing", I64, missing)

#define TD_DATASET_MAX_KEY (TD_DATASET_MAX_NAME + 32)

// "observation.images.NAME".
void td_dataset_features_key(const td_dataset_camera *camera,
                             char ret_key[TD_DATASET_MAX_KEY]);

// The camera behind a feature; camera_count when it is none of them.
uint32_t td_dataset_features_camera(const td_dataset_schema *schema,
                                    const char *key);

// A new dataset of that schema. Owned by the caller. NOMEM.
TD_NODISCARD td_err td_dataset_features_new(const td_dataset_schema *schema,
                                            td_dataset_info **ret_info,
                                            td_errinfo *info);

// Whether a dataset has columns for what was really done: LeRobot's have not.
bool td_dataset_features_say_what_was_done(const td_dataset_info *dataset);

// Whether such a recorder can go on with that dataset. LeRobot's may lack what
// was really done, and have their own name for the type of the robot. MISMATCH,
// naming the field and both values.
TD_NODISCARD td_err td_dataset_features_check(const td_dataset_schema *schema,
                                              const td_dataset_info *dataset,
                                              td_errinfo *info);

#endif

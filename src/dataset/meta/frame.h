// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_META_FRAME_H
#define TD_DATASET_META_FRAME_H

// What is recorded: the schema of a whole dataset, and one frame of it for
// each step of the robot.
//
// In the dataset the channels are `observation.state` and `action`, a camera
// NAME is `observation.images.NAME`, and what was really done stands in columns
// of its own, which begin with `tendon.`.

#include "base/err.h"
#include "media/video.h"

#include <stdbool.h>

#define TD_DATASET_MAX_CHANNELS 1024
#define TD_DATASET_MAX_CAMERAS 32 // each has a bit in `tendon.missing`
#define TD_DATASET_MAX_NAME 128
#define TD_DATASET_MAX_TASK 4096

typedef struct td_dataset_camera {
    const char *name; // without "observation.images."
    uint32_t height;
    uint32_t width;
} td_dataset_camera;

typedef struct td_dataset_schema {
    uint32_t fps;
    const char *robot_type; // NULL: not said
    td_media_codec codec;
    const char *const *state; // a name each, such as "shoulder_pan.pos"
    uint32_t state_count;
    const char *const *action;
    uint32_t action_count;
    const td_dataset_camera *cameras;
    uint32_t camera_count;
} td_dataset_schema;

typedef enum td_dataset_image_kind {
    TD_DATASET_IMAGE_MISSING, // the last one is repeated, and its bit set
    TD_DATASET_IMAGE_RGB,     // height x width x 3 bytes
    TD_DATASET_IMAGE_JPEG,
} td_dataset_image_kind;

typedef struct td_dataset_image {
    td_dataset_image_kind kind;
    td_slice bytes; // borrowed; of the camera's size
} td_dataset_image;

// What was really done in this step.
typedef struct td_dataset_done {
    bool held;     // no action was due: the robot held
    bool clamped;  // the gate changed the action
    bool failsafe; // the fail-safe spoke
    float age_s;   // of the observation that the action came from; -1: none
    int64_t chunk; // the chunk that the action came from; -1: none
    int64_t step;  // and its row; -1: none
} td_dataset_done;

// `tendon.missing` has a bit for each camera whose picture is a repeated one,
// and this one where state and action are: the row itself was lost.
#define TD_DATASET_MISSING_ROW (INT64_C(1) << 32)

// All of it borrowed.
typedef struct td_dataset_frame {
    const char *task;    // what the robot shall do, in words
    const float *state;  // as read, state_count
    const float *action; // as executed, action_count; a row with a value that
                         // is not finite counts as lost
    bool lost;           // the row was lost: the one before it is repeated
    const td_dataset_image *images; // one a camera, in the schema's order
    td_dataset_done done;
} td_dataset_frame;

// INVALID, naming the field and what it may be.
TD_NODISCARD td_err td_dataset_schema_check(const td_dataset_schema *schema,
                                            td_errinfo *info);

#endif

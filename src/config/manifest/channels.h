// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_MANIFEST_CHANNELS_H
#define TD_CONFIG_MANIFEST_CHANNELS_H

// What the manifest and the robot's file have in common: channels and cameras.

#include "base/err.h"

// The most of each that a message can carry.
#define TD_CONFIG_MAX_CAMERAS 16
#define TD_CONFIG_MAX_CHANNELS 256
#define TD_CONFIG_MAX_ROWS 4096

// In the order of td_wire_channel_kind and td_robot_kind.
typedef enum td_config_channel_kind {
    TD_CONFIG_LINEAR,
    TD_CONFIG_ANGLE,
    TD_CONFIG_QUATERNION,
    TD_CONFIG_HOLD,
} td_config_channel_kind;

typedef struct td_config_channel {
    const char *name;
    td_config_channel_kind kind;
} td_config_channel;

typedef struct td_config_camera {
    const char *name;
    int64_t height, width;
} td_config_camera;

// For the tables of the files that hold them.
struct td_config_table;
extern const struct td_config_table td_config_channel_table;
extern const struct td_config_table td_config_camera_table;
extern const char *const td_config_channel_kinds[];

// Finds a quaternion that is not four channels in a row. `first` points to
// `count` structs of `stride` bytes that begin as td_config_channel does. NULL
// when all is well, else the name of the first channel that is wrong.
const char *td_config_channels_check(const void *first, size_t stride,
                                     size_t count);

#endif

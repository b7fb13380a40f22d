// SPDX-License-Identifier: Apache-2.0
#include "config/manifest/channels.h"

#include "config/yaml/table.h"

const char *const td_config_channel_kinds[] = {"linear", "angle", "quaternion",
                                               "hold", NULL};

static const td_config_field channel_rows[] = {
    TD_ROW_ENUM(td_config_channel, kind, "linear", td_config_channel_kinds,
                "how values between two steps are made"),
};

const td_config_table td_config_channel_table = {
    .fields = channel_rows,
    .field_count = TD_COUNT_OF(channel_rows),
    .bytes = sizeof(td_config_channel),
};

static const td_config_field camera_rows[] = {
    TD_ROW_INTEGER(td_config_camera, height, "480", 32, 8192, "pixels"),
    TD_ROW_INTEGER(td_config_camera, width, "640", 64, 8192, "pixels"),
};

const td_config_table td_config_camera_table = {
    .fields = camera_rows,
    .field_count = TD_COUNT_OF(camera_rows),
    .bytes = sizeof(td_config_camera),
};

static const td_config_channel *channel_at(const void *first, size_t stride,
                                           size_t index)
{
    return (const td_config_channel *)((const char *)first + index * stride);
}

const char *td_config_channels_check(const void *first, size_t stride,
                                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const td_config_channel *start = channel_at(first, stride, i);
        if (start->kind != TD_CONFIG_QUATERNION) continue;
        for (size_t end = i + 4; i + 1 < end; i++)
            if (i + 1 == count ||
                channel_at(first, stride, i + 1)->kind != TD_CONFIG_QUATERNION)
                return start->name;
    }
    return NULL;
}

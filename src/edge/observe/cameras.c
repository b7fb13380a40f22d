// SPDX-License-Identifier: Apache-2.0
#include "edge/observe/cameras.h"

#include "base/log.h"

td_err td_edge_cameras_open(td_edge_cameras *cameras,
                            const td_edge_cameras_config *config,
                            td_errinfo *info)
{
    *cameras =
        (td_edge_cameras){.wire = config->cameras, .count = config->count};
    for (uint32_t i = 0; i < config->count; i++)
        TD_TRY(td_edge_camera_open(config->robot, i, &config->cameras[i],
                                   config->period_ns[i], config->kept,
                                   &cameras->each[i], info));
    return TD_OK;
}

void td_edge_cameras_stop(const td_edge_cameras *cameras)
{
    for (uint32_t i = 0; i < cameras->count; i++)
        if (cameras->each[i]) td_edge_camera_stop(cameras->each[i]);
}

static bool end_one(const td_edge_cameras *cameras, uint32_t index,
                    int64_t until_ns)
{
    td_wire_text name = cameras->wire[index].name;
    if (!cameras->each[index] ||
        td_edge_camera_end(cameras->each[index], until_ns))
        return true;
    td_log_text(TD_LOG_ERROR,
                "edge: cannot close: camera %.*s's frame() has not returned",
                (int)name.size, name.data);
    return false;
}

bool td_edge_cameras_end(const td_edge_cameras *cameras, int64_t until_ns)
{
    bool ended = true;
    for (uint32_t i = 0; i < cameras->count; i++)
        ended &= end_one(cameras, i, until_ns);
    return ended;
}

void td_edge_cameras_close(td_edge_cameras *cameras)
{
    for (uint32_t i = 0; i < cameras->count; i++)
        if (cameras->each[i]) td_edge_camera_close(cameras->each[i]);
    *cameras = (td_edge_cameras){0};
}

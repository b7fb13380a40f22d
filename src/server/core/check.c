// SPDX-License-Identifier: Apache-2.0
#include "server/core/check.h"

#include "wire/msgpack/text.h"

static const td_wire_camera *find_camera(const td_engine_spec *spec,
                                         td_wire_text name)
{
    for (uint32_t i = 0; i < spec->camera_count; i++)
        if (td_wire_text_same(spec->cameras[i].name, name))
            return &spec->cameras[i];
    return NULL;
}

td_err td_server_check_pictures(const td_engine_spec *spec,
                                const td_wire_obs *obs, td_errinfo *info)
{
    for (uint32_t i = 0; i < obs->image_count; i++) {
        const td_wire_image *image = &obs->images[i];
        const td_wire_camera *camera = find_camera(spec, image->name);
        if (camera) TD_TRY(td_engine_picture_check(image, camera, info));
    }
    return TD_OK;
}

// SPDX-License-Identifier: Apache-2.0
#include "edge/frames.h"

#include "base/clock.h"
#include "media/jpeg.h"

#include <stdlib.h>
#include <string.h>

typedef struct camera {
    const td_wire_camera *wire;
    size_t size;                 // height x width x 3
    uint8_t *rgb;                // its own buffer
    uint8_t *into;               // where its next frame goes
    td_media_jpeg_encoder *jpeg; // NULL: raw
    bool chosen;
} camera;

struct td_edge_frames {
    camera cameras[TD_WIRE_MAX_IMAGES];
    uint32_t count;
};

static td_err camera_init(camera *cam, const td_edge_config *config,
                          uint32_t index)
{
    cam->wire = &config->profile.cameras[index];
    cam->size = (size_t)cam->wire->height * cam->wire->width * 3;
    cam->rgb = malloc(cam->size);
    if (!cam->rgb) return TD_ERR_NOMEM;
    if (config->raw_images) return TD_OK;
    return td_media_jpeg_encoder_new(config->jpeg_quality, TD_MEDIA_CHROMA_420,
                                     &cam->jpeg);
}

td_err td_edge_frames_new(const td_edge_config *config,
                          td_edge_frames **ret_frames)
{
    td_edge_frames *frames = calloc(1, sizeof *frames);
    if (!frames) return TD_ERR_NOMEM;
    frames->count = config->profile.camera_count;
    td_err err = TD_OK;
    for (uint32_t i = 0; i < frames->count && err == TD_OK; i++)
        err = camera_init(&frames->cameras[i], config, i);
    if (err == TD_OK)
        *ret_frames = frames;
    else
        td_edge_frames_free(frames);
    return err;
}

void td_edge_frames_free(td_edge_frames *frames)
{
    for (uint32_t i = 0; i < frames->count; i++) {
        free(frames->cameras[i].rgb);
        if (frames->cameras[i].jpeg)
            td_media_jpeg_encoder_free(frames->cameras[i].jpeg);
    }
    free(frames);
}

void td_edge_frames_choose(td_edge_frames *frames,
                           const bool wanted[TD_WIRE_MAX_IMAGES])
{
    for (uint32_t i = 0; i < frames->count; i++) {
        frames->cameras[i].chosen = wanted[i];
        frames->cameras[i].into = frames->cameras[i].rgb;
    }
}

td_err td_edge_frames_take(td_edge_frames *frames, td_robot *robot)
{
    for (uint32_t i = 0; i < frames->count; i++) {
        const camera *cam = &frames->cameras[i];
        if (!cam->chosen) continue;
        TD_TRY(td_robot_frame(robot, i, td_clock_now_ns(&td_clock_monotonic),
                              cam->into));
    }
    return TD_OK;
}

static td_err show(const camera *cam, td_wire_image *ret_image,
                   td_errinfo *info)
{
    const td_wire_camera *wire = cam->wire;
    if (!cam->jpeg) {
        *ret_image = (td_wire_image){
            .name = wire->name,
            .codec = TD_WIRE_RAW,
            .shape = {wire->height, wire->width, 3},
            .data = cam->rgb,
            .size = cam->size,
        };
        return TD_OK;
    }
    td_slice jpeg;
    TD_TRY(td_media_jpeg_encode(cam->jpeg, cam->rgb, wire->height, wire->width,
                                &jpeg, info));
    // Without a shape it travels as plain bytes, which every server reads.
    *ret_image = (td_wire_image){
        .name = wire->name,
        .codec = TD_WIRE_JPEG,
        .data = jpeg.data,
        .size = jpeg.size,
    };
    return TD_OK;
}

td_err td_edge_frames_show(td_edge_frames *frames, td_wire_obs *obs,
                           td_errinfo *info)
{
    for (uint32_t i = 0; i < frames->count; i++) {
        if (!frames->cameras[i].chosen) continue;
        TD_TRY(show(&frames->cameras[i], &obs->images[obs->image_count], info));
        obs->image_count++;
    }
    return TD_OK;
}

static camera *camera_of(td_edge_frames *frames, const void *rgb)
{
    for (uint32_t i = 0; i < frames->count; i++)
        if (frames->cameras[i].rgb == rgb) return &frames->cameras[i];
    return NULL;
}

void td_edge_frames_place(td_edge_frames *frames, const td_slice *parts,
                          size_t count, uint8_t *bytes)
{
    for (size_t i = 0; i < count; i++) {
        camera *cam = camera_of(frames, parts[i].data);
        if (cam)
            cam->into = bytes;
        else
            memcpy(bytes, parts[i].data, parts[i].size);
        bytes += parts[i].size;
    }
}

// SPDX-License-Identifier: Apache-2.0
// From the newest frames of the cameras to the images of one observation.
//
// A frame is what a camera gave: pixels, or a JPEG of the camera's own. An
// image is what travels: raw pixels or a JPEG, of the size that the server
// wants. For each camera that the server wants, `take` borrows the newest frame
// and, where its pixels will be needed, finds them: it decodes a JPEG and makes
// it smaller. `make` turns them into images, once for each codec that is tried;
// a camera's own JPEG of the right size is an image as it stands. `fill` enters
// the images into the observation.
//
// Decoders, resizers and buffers are made when they are first needed and kept:
// for a server that wants another size they are made again.
//
// Frames stay borrowed from their cameras until the next `take`, and images
// point into frames or into buffers of this file; so whoever hands images to
// the transport without a copy must have them back before the next `take`
// (publisher.c). A frame that lies in a loan of the transport is put from there
// (`loans`), and `lend` tells the cameras whether to take the next ones so.
//
// No lock: everything here is the publisher's thread's own.
#include "edge/observe/frames.h"

#include "base/clock.h"

#include <stdlib.h>

typedef struct picture {
    const td_wire_camera *wire;
    td_edge_camera *camera;
    td_net_pub *lender; // as the camera was told; NULL: none
    td_media_size size; // wanted; height 0: it is not
    const td_edge_frame *frame;
    const uint8_t *rgb; // of that size: the frame's own, `decoded` or
                        // `smaller`; NULL: a JPEG that nobody has looked into
    td_media_jpeg_decoder *decoder; // with `decoded`: from the first JPEG on
    uint8_t *decoded;               // of the camera's size
    td_media_resizer *resizer;      // to that size; NULL: it is the camera's
    uint8_t *smaller;
    td_media_jpeg_encoder *jpeg; // NULL: raw only
    td_wire_image image;
} picture;

struct td_edge_frames {
    picture pictures[TD_WIRE_MAX_IMAGES];
    uint32_t count;
    bool made, raw; // the images
};

static td_err picture_init(picture *pic, const td_edge_frames_config *config,
                           uint32_t index)
{
    pic->wire = &config->cameras->wire[index];
    pic->camera = config->cameras->each[index];
    if (config->codec == TD_EDGE_CODEC_RAW) return TD_OK;
    return td_media_jpeg_encoder_new(config->jpeg_quality, config->jpeg_chroma,
                                     &pic->jpeg);
}

static void unscale(picture *pic)
{
    if (pic->resizer) td_media_resizer_free(TD_TAKE(pic->resizer));
    free(TD_TAKE(pic->smaller));
}

td_err td_edge_frames_new(const td_edge_frames_config *config,
                          td_edge_frames **ret_frames)
{
    td_edge_frames *frames = calloc(1, sizeof *frames);
    if (!frames) return TD_ERR_NOMEM;
    frames->count = config->cameras->count;
    td_err err = TD_OK;
    for (uint32_t i = 0; i < frames->count && err == TD_OK; i++)
        err = picture_init(&frames->pictures[i], config, i);
    if (err == TD_OK)
        *ret_frames = frames;
    else
        td_edge_frames_free(frames);
    return err;
}

void td_edge_frames_free(td_edge_frames *frames)
{
    for (uint32_t i = 0; i < frames->count; i++) {
        picture *pic = &frames->pictures[i];
        unscale(pic);
        free(pic->decoded);
        if (pic->decoder) td_media_jpeg_decoder_free(pic->decoder);
        if (pic->jpeg) td_media_jpeg_encoder_free(pic->jpeg);
    }
    free(frames);
}

static size_t bytes_of(td_media_size size)
{
    return (size_t)size.height * size.width * 3;
}

static td_err scale_to(picture *pic, td_media_size size, td_errinfo *info)
{
    const td_media_size own = {pic->wire->height, pic->wire->width};
    if (size.height == pic->size.height && size.width == pic->size.width)
        return TD_OK;
    unscale(pic);
    pic->size = (td_media_size){0};
    if (size.height != own.height || size.width != own.width) {
        td_err err = td_media_resizer_new(own, size, &pic->resizer);
        if (err != TD_OK)
            return td_fail(info, err, "camera %.*s: %ux%u to %ux%u",
                           (int)pic->wire->name.size, pic->wire->name.data,
                           own.height, own.width, size.height, size.width);
        pic->smaller = malloc(bytes_of(size));
        if (!pic->smaller) return TD_ERR_NOMEM;
    }
    pic->size = size;
    return TD_OK;
}

static td_err decode(picture *pic, td_errinfo *info)
{
    const td_media_size own = {pic->wire->height, pic->wire->width};
    if (!pic->decoder) TD_TRY(td_media_jpeg_decoder_new(&pic->decoder));
    if (!pic->decoded) pic->decoded = malloc(bytes_of(own));
    if (!pic->decoded) return TD_ERR_NOMEM;
    return td_media_jpeg_decode(pic->decoder,
                                (td_slice){pic->frame->bytes, pic->frame->jpeg},
                                own.height, own.width, pic->decoded, info);
}

// Finds the pixels of what was taken, once.
static td_err prepare_rgb(picture *pic, td_errinfo *info)
{
    if (pic->rgb) return TD_OK;
    const uint8_t *rgb = pic->frame->bytes;
    if (pic->frame->jpeg > 0) {
        TD_TRY(decode(pic, info));
        rgb = pic->decoded;
    }
    if (pic->resizer) {
        td_media_resize(pic->resizer, rgb, pic->smaller);
        rgb = pic->smaller;
    }
    pic->rgb = rgb;
    return TD_OK;
}

// A camera's own JPEG goes as it is where its size is the wanted one.
static bool is_ready_made(const picture *pic)
{
    return pic->frame->jpeg > 0 && !pic->resizer;
}

static td_err take(picture *pic, int64_t now_ns, td_errinfo *info)
{
    pic->frame = td_edge_camera_newest(pic->camera);
    if (!td_edge_camera_is_fresh(pic->camera, pic->frame, now_ns))
        return td_fail(info, TD_ERR_EMPTY, "camera %.*s has no new frame",
                       (int)pic->wire->name.size, pic->wire->name.data);
    pic->rgb = NULL;
    return is_ready_made(pic) ? TD_OK : prepare_rgb(pic, info);
}

td_err td_edge_frames_take(td_edge_frames *frames,
                           const td_media_size wanted[TD_WIRE_MAX_IMAGES],
                           int64_t now_ns, td_errinfo *info)
{
    td_err result = TD_OK;
    frames->made = false;
    for (uint32_t i = 0; i < frames->count; i++) {
        picture *pic = &frames->pictures[i];
        pic->frame = NULL;
        if (wanted[i].height == 0) continue;
        TD_TRY(scale_to(pic, wanted[i], info));
        td_err err = take(pic, now_ns, info);
        if (err != TD_OK) result = err; // of the others too it is to be known
    }
    return result;
}

bool td_edge_frames_is_stale(const td_edge_frames *frames, uint32_t camera,
                             int64_t now_ns)
{
    const picture *pic = &frames->pictures[camera];
    return pic->frame &&
           !td_edge_camera_is_fresh(pic->camera, pic->frame, now_ns);
}

bool td_edge_frames_are_fresh(const td_edge_frames *frames, int64_t now_ns)
{
    for (uint32_t i = 0; i < frames->count; i++)
        if (td_edge_frames_is_stale(frames, i, now_ns)) return false;
    return true;
}

td_err
td_edge_frames_pixels(td_edge_frames *frames,
                      td_edge_similar_image ret_images[TD_WIRE_MAX_IMAGES],
                      uint32_t *ret_count, td_errinfo *info)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < frames->count; i++) {
        picture *pic = &frames->pictures[i];
        if (!pic->frame) continue;
        TD_TRY(prepare_rgb(pic, info));
        ret_images[count++] = (td_edge_similar_image){
            pic->rgb, pic->size.height, pic->size.width};
    }
    *ret_count = count;
    return TD_OK;
}

static td_err make_raw(picture *pic, td_errinfo *info)
{
    TD_TRY(prepare_rgb(pic, info));
    pic->image = (td_wire_image){
        .name = pic->wire->name,
        .codec = TD_WIRE_RAW,
        .shape = {pic->size.height, pic->size.width, 3},
        .data = pic->rgb,
        .size = bytes_of(pic->size),
    };
    return TD_OK;
}

// Without a shape it travels as plain bytes, which every server reads.
static td_err make_jpeg(picture *pic, td_errinfo *info)
{
    td_slice jpeg = {pic->frame->bytes, pic->frame->jpeg};
    if (!is_ready_made(pic))
        TD_TRY(td_media_jpeg_encode(pic->jpeg, pic->rgb, pic->size.height,
                                    pic->size.width, &jpeg, info));
    pic->image = (td_wire_image){
        .name = pic->wire->name,
        .codec = TD_WIRE_JPEG,
        .data = jpeg.data,
        .size = jpeg.size,
    };
    return TD_OK;
}

td_err td_edge_frames_make(td_edge_frames *frames, bool raw, td_errinfo *info)
{
    if (frames->made && frames->raw == raw) return TD_OK;
    frames->made = false;
    for (uint32_t i = 0; i < frames->count; i++) {
        picture *pic = &frames->pictures[i];
        if (!pic->frame) continue;
        TD_TRY(raw ? make_raw(pic, info) : make_jpeg(pic, info));
    }
    frames->made = true;
    frames->raw = raw;
    return TD_OK;
}

// As the last one went, so will the next.
static bool goes_as_it_is(const picture *pic, bool raw)
{
    return pic->frame && !pic->resizer && raw == (pic->frame->jpeg == 0);
}

void td_edge_frames_lend(td_edge_frames *frames, bool raw, td_net_pub *pub)
{
    for (uint32_t i = 0; i < frames->count; i++) {
        picture *pic = &frames->pictures[i];
        td_net_pub *lender = goes_as_it_is(pic, raw) ? pub : NULL;
        if (lender == pic->lender) continue;
        pic->lender = lender;
        td_edge_camera_lend(pic->camera, lender);
    }
}

size_t td_edge_frames_loans(const td_edge_frames *frames,
                            td_net_loan *ret_loans[TD_WIRE_MAX_IMAGES])
{
    size_t count = 0;
    for (uint32_t i = 0; i < frames->count; i++) {
        const picture *pic = &frames->pictures[i];
        if (!pic->frame) continue;
        if (!pic->frame->loan || pic->image.data != pic->frame->loan->bytes)
            return 0;
        ret_loans[count++] = pic->frame->loan;
    }
    return count;
}

void td_edge_frames_fill(const td_edge_frames *frames, td_wire_obs *obs)
{
    obs->image_count = 0;
    for (uint32_t i = 0; i < frames->count; i++)
        if (frames->pictures[i].frame)
            obs->images[obs->image_count++] = frames->pictures[i].image;
}

void td_edge_frames_skew(const td_edge_frames *frames, int64_t state_ns,
                         td_hist *skew_ns)
{
    for (uint32_t i = 0; i < frames->count; i++) {
        const td_edge_frame *frame = frames->pictures[i].frame;
        if (frame)
            td_hist_record(skew_ns, llabs(frame->captured_ns - state_ns));
    }
}

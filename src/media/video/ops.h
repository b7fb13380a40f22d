// SPDX-License-Identifier: Apache-2.0
#ifndef TD_MEDIA_VIDEO_OPS_H
#define TD_MEDIA_VIDEO_OPS_H

// What crosses between a program and libtendon_video.so, which alone has libav
// in it: the functions of media/video.h as a table. The words of media/video.h
// hold for them.

#include "media/video.h"

typedef struct td_media_video_encoder_ops {
    td_err (*open)(const td_media_video_encoder_config *config,
                   td_media_video_encoder **ret_encoder, td_errinfo *info);
    void (*close)(td_media_video_encoder *encoder);
    const td_media_video_params *(*params)(
        const td_media_video_encoder *encoder);
    td_err (*add_rgb)(td_media_video_encoder *encoder, const uint8_t *rgb,
                      td_errinfo *info);
    td_err (*add_jpeg)(td_media_video_encoder *encoder, td_slice jpeg,
                       td_errinfo *info);
    td_err (*repeat)(td_media_video_encoder *encoder, td_errinfo *info);
    const uint8_t *(*picked)(const td_media_video_encoder *encoder);
    td_err (*end)(td_media_video_encoder *encoder, td_errinfo *info);
} td_media_video_encoder_ops;

typedef struct td_media_video_decoder_ops {
    // By its path, or in memory where `path` is NULL.
    td_err (*open)(const char *path, td_slice file,
                   td_media_video_decoder **ret_decoder, td_errinfo *info);
    void (*close)(td_media_video_decoder *decoder);
    td_media_video_facts (*facts)(const td_media_video_decoder *decoder);
    td_err (*picture)(td_media_video_decoder *decoder, double at_s,
                      uint8_t *ret_rgb, td_errinfo *info);
} td_media_video_decoder_ops;

typedef struct td_media_video_ops {
    const td_media_video_encoder_ops *encoder;
    const td_media_video_decoder_ops *decoder;
    td_err (*join)(const char *old, const td_media_video_params *params,
                   td_media_video_source source, void *user, int fd,
                   uint64_t *ret_frames, td_errinfo *info);
    td_err (*check)(td_media_codec codec, td_errinfo *info);
} td_media_video_ops;

// Raised with every change to what crosses that their size does not show.
#define TD_MEDIA_VIDEO_OPS_VERSION 1
#define TD_MEDIA_VIDEO_OPS_BYTES                                               \
    (sizeof(td_media_video_ops) + sizeof(td_media_video_encoder_ops) +         \
     sizeof(td_media_video_decoder_ops) +                                      \
     sizeof(td_media_video_encoder_config) + sizeof(td_media_video_params) +   \
     sizeof(td_media_video_packet) + sizeof(td_media_video_facts))

// All that the library exports: a td_library_entry. Makes libav and its codecs
// silent in this process. NULL for another version or size than its own.
__attribute__((visibility("default"))) const void *
td_media_video_library(uint32_t version, size_t ops_bytes);

#endif

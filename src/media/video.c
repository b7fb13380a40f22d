// SPDX-License-Identifier: Apache-2.0
// Videos, as far as the program itself is concerned: loads the library that has
// them and passes calls on.
//
// libtendon_video.so links libav and its 130 libraries; a process that neither
// records nor reads videos loads none of them. The first call that needs it
// loads it, from where base/library.h looks or where TENDON_VIDEO_LIBRARY says,
// and asks for its table of functions by version and size, so that a library of
// another release is refused and not called. What is missing is said in words
// with what to do.
//
// `loading` guards loading. `ops` is written once, under it; whoever has an
// encoder or a decoder has seen it since, and reads it without the lock. The
// library is never unloaded.
#include "media/video.h"

#include "base/library.h"
#include "media/video/ops.h"

static td_library library = {
    .name = "libtendon_video.so",
    .variable = "TENDON_VIDEO_LIBRARY",
    .entry = "td_media_video_library",
    .version = TD_MEDIA_VIDEO_OPS_VERSION,
    .table_bytes = TD_MEDIA_VIDEO_OPS_BYTES,
    .lack = "no videos",
    .missing = "build it with `make all`, put it beside the program",
    .broken = "install FFmpeg, which it needs (Debian and Ubuntu: apt install "
              "ffmpeg)",
};

// For whoever has loaded it: what is opened here was opened by it.
static const td_media_video_ops *ops(void)
{
    return library.table;
}

td_err td_media_video_load(td_errinfo *info)
{
    return td_library_load(&library, info);
}

td_err td_media_codec_check(td_media_codec codec, td_errinfo *info)
{
    TD_TRY(td_media_video_load(info));
    return ops()->check(codec, info);
}

td_err td_media_video_encoder_open(const td_media_video_encoder_config *config,
                                   td_media_video_encoder **ret_encoder,
                                   td_errinfo *info)
{
    TD_TRY(td_media_video_load(info));
    return ops()->encoder->open(config, ret_encoder, info);
}

void td_media_video_encoder_close(td_media_video_encoder *encoder)
{
    ops()->encoder->close(encoder);
}

const td_media_video_params *
td_media_video_encoder_params(const td_media_video_encoder *encoder)
{
    return ops()->encoder->params(encoder);
}

td_err td_media_video_encoder_add_rgb(td_media_video_encoder *encoder,
                                      const uint8_t *rgb, td_errinfo *info)
{
    return ops()->encoder->add_rgb(encoder, rgb, info);
}

td_err td_media_video_encoder_add_jpeg(td_media_video_encoder *encoder,
                                       td_slice jpeg, td_errinfo *info)
{
    return ops()->encoder->add_jpeg(encoder, jpeg, info);
}

td_err td_media_video_encoder_repeat(td_media_video_encoder *encoder,
                                     td_errinfo *info)
{
    return ops()->encoder->repeat(encoder, info);
}

const uint8_t *
td_media_video_encoder_picked(const td_media_video_encoder *encoder)
{
    return ops()->encoder->picked(encoder);
}

td_err td_media_video_encoder_end(td_media_video_encoder *encoder,
                                  td_errinfo *info)
{
    return ops()->encoder->end(encoder, info);
}

td_err td_media_video_join(const char *old, const td_media_video_params *params,
                           td_media_video_source source, void *user, int fd,
                           uint64_t *ret_frames, td_errinfo *info)
{
    TD_TRY(td_media_video_load(info));
    return ops()->join(old, params, source, user, fd, ret_frames, info);
}

td_err td_media_video_decoder_open(const char *path,
                                   td_media_video_decoder **ret_decoder,
                                   td_errinfo *info)
{
    TD_TRY(td_media_video_load(info));
    return ops()->decoder->open(path, (td_slice){NULL, 0}, ret_decoder, info);
}

td_err td_media_video_decoder_open_memory(td_slice file,
                                          td_media_video_decoder **ret_decoder,
                                          td_errinfo *info)
{
    TD_TRY(td_media_video_load(info));
    return ops()->decoder->open(NULL, file, ret_decoder, info);
}

void td_media_video_decoder_close(td_media_video_decoder *decoder)
{
    ops()->decoder->close(decoder);
}

td_media_video_facts
td_media_video_decoder_facts(const td_media_video_decoder *decoder)
{
    return ops()->decoder->facts(decoder);
}

td_err td_media_video_decoder_picture(td_media_video_decoder *decoder,
                                      double at_s, uint8_t *ret_rgb,
                                      td_errinfo *info)
{
    return ops()->decoder->picture(decoder, at_s, ret_rgb, info);
}

// SPDX-License-Identifier: Apache-2.0
#include "media/size.h"
#include "media/video/av.h"
#include "media/video/codec.h"
#include "media/video/header.h"
#include "media/video/library.h"
#include "media/video/planes.h"

#include <libavutil/frame.h>
#include <stdlib.h>
#include <string.h>

#define BLACK 16 // of limited range
#define NO_COLOUR 128

struct td_media_video_encoder {
    td_media_video_encoder_config config;
    td_media_video_params params;
    uint8_t head[TD_MEDIA_VIDEO_MAX_HEAD];
    AVCodecContext *codec;
    AVFrame *last;  // the picture that was added last
    AVFrame *spare; // where the next one goes: a JPEG may be refused half-way
    AVPacket *packet;
    td_media_video_planer *planer;
    int64_t added;
    int64_t handed; // packets
    bool ended;
};

static td_err check(const td_media_video_encoder_config *config,
                    td_errinfo *info)
{
    TD_TRY(td_media_size_check(config->height, config->width, info));
    if (config->fps < 1 || config->fps > TD_MEDIA_VIDEO_MAX_FPS)
        return td_fail(info, TD_ERR_INVALID, "%u Hz, 1 to %d can be recorded",
                       config->fps, TD_MEDIA_VIDEO_MAX_FPS);
    if (config->height % 2 || config->width % 2)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "a video of %u x %u: both sides must be even",
                       config->height, config->width);
    return TD_OK;
}

static td_err make_black(const td_media_video_encoder_config *config,
                         AVFrame **ret_frame)
{
    AVFrame *frame = *ret_frame = av_frame_alloc();
    if (!frame) return TD_ERR_NOMEM;
    frame->format = AV_PIX_FMT_YUV420P;
    frame->height = (int)config->height;
    frame->width = (int)config->width;
    if (av_frame_get_buffer(frame, 0) < 0) return TD_ERR_NOMEM;
    for (int i = 0; i < 3; i++)
        memset(frame->data[i], i == 0 ? BLACK : NO_COLOUR,
               (size_t)frame->linesize[i] *
                   (size_t)(i == 0 ? frame->height : frame->height / 2));
    return TD_OK;
}

static td_err take_params(td_media_video_encoder *encoder, td_errinfo *info)
{
    const td_media_video_encoder_config *config = &encoder->config;
    size_t size = 0;
    TD_TRY(td_media_video_header(
        config->codec,
        (td_slice){encoder->codec->extradata,
                   (size_t)encoder->codec->extradata_size},
        encoder->head, sizeof encoder->head, &size, info));
    encoder->params = (td_media_video_params){
        .codec = config->codec,
        .height = config->height,
        .width = config->width,
        .fps = config->fps,
        .head = {encoder->head, size},
    };
    return TD_OK;
}

static td_err open_parts(td_media_video_encoder *encoder,
                         const td_media_video_encoder_config *config,
                         td_errinfo *info)
{
    encoder->config = *config;
    encoder->packet = av_packet_alloc();
    if (!encoder->packet) return TD_ERR_NOMEM;
    TD_TRY(make_black(config, &encoder->last));
    TD_TRY(make_black(config, &encoder->spare));
    TD_TRY(td_media_video_planer_new(config->height, config->width,
                                     config->pick_step, &encoder->planer));
    TD_TRY(td_media_video_codec_open(config, &encoder->codec, info));
    return take_params(encoder, info);
}

static const td_media_video_params *
params_of(const td_media_video_encoder *encoder)
{
    return &encoder->params;
}

static const uint8_t *picked(const td_media_video_encoder *encoder)
{
    return td_media_video_planer_picked(encoder->planer);
}

static td_err hand_out(td_media_video_encoder *encoder, td_errinfo *info)
{
    const AVPacket *packet = encoder->packet;
    if (!encoder->config.sink) return TD_OK; // being closed
    if (packet->pts != encoder->handed)
        return td_fail(info, TD_ERR_INTERNAL,
                       "the encoder's packets are out of order");
    const td_media_video_packet ours = {
        .data = {packet->data, (size_t)packet->size},
        .frame = encoder->handed++,
        .key = packet->flags & AV_PKT_FLAG_KEY,
    };
    return encoder->config.sink(encoder->config.user, &ours, info);
}

static td_err drain(td_media_video_encoder *encoder, td_errinfo *info)
{
    for (;;) {
        int code = avcodec_receive_packet(encoder->codec, encoder->packet);
        if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return TD_OK;
        if (code < 0) return td_media_video_av_fail(info, code, "encoding");
        td_err err = hand_out(encoder, info);
        av_packet_unref(encoder->packet);
        TD_TRY(err);
    }
}

static td_err send(td_media_video_encoder *encoder, td_errinfo *info)
{
    encoder->last->pts = encoder->added;
    int code = avcodec_send_frame(encoder->codec, encoder->last);
    if (code < 0) return td_media_video_av_fail(info, code, "encoding");
    encoder->added++;
    return drain(encoder, info);
}

static td_err send_spare(td_media_video_encoder *encoder, td_errinfo *info)
{
    AVFrame *frame = encoder->spare;
    encoder->spare = encoder->last;
    encoder->last = frame;
    return send(encoder, info);
}

// The codec may still hold an older picture there.
static td_err make_room(td_media_video_encoder *encoder,
                        td_media_video_planes *ret_planes)
{
    AVFrame *frame = encoder->spare;
    if (encoder->ended) return TD_ERR_CLOSED;
    if (av_frame_make_writable(frame) < 0) return TD_ERR_NOMEM;
    *ret_planes = (td_media_video_planes){
        .data = {frame->data[0], frame->data[1], frame->data[2]},
        .stride = {frame->linesize[0], frame->linesize[1], frame->linesize[2]},
    };
    return TD_OK;
}

static td_err add_rgb(td_media_video_encoder *encoder, const uint8_t *rgb,
                      td_errinfo *info)
{
    td_media_video_planes planes;
    TD_TRY(make_room(encoder, &planes));
    TD_TRY(td_media_video_planer_rgb(encoder->planer, rgb, &planes, info));
    return send_spare(encoder, info);
}

static td_err add_jpeg(td_media_video_encoder *encoder, td_slice jpeg,
                       td_errinfo *info)
{
    td_media_video_planes planes;
    TD_TRY(make_room(encoder, &planes));
    TD_TRY(td_media_video_planer_jpeg(encoder->planer, jpeg, &planes, info));
    return send_spare(encoder, info);
}

static td_err repeat(td_media_video_encoder *encoder, td_errinfo *info)
{
    if (encoder->ended) return TD_ERR_CLOSED;
    return send(encoder, info);
}

static td_err end(td_media_video_encoder *encoder, td_errinfo *info)
{
    if (encoder->ended) return TD_OK;
    encoder->ended = true;
    int code = avcodec_send_frame(encoder->codec, NULL);
    if (code < 0) return td_media_video_av_fail(info, code, "encoding");
    TD_TRY(drain(encoder, info));
    if (encoder->handed == encoder->added) return TD_OK;
    return td_fail(info, TD_ERR_INTERNAL,
                   "the encoder lost %lld of %lld pictures",
                   (long long)(encoder->added - encoder->handed),
                   (long long)encoder->added);
}

// SVT-AV1 waits for ever when it is closed before its end, or had no picture;
// an end that failed has left packets in it.
static void finish_codec(td_media_video_encoder *encoder)
{
    encoder->config.sink = NULL;
    if (encoder->added == 0) (void)send(encoder, NULL);
    (void)end(encoder, NULL);
    (void)drain(encoder, NULL);
}

static void close_encoder(td_media_video_encoder *encoder)
{
    if (encoder->codec) finish_codec(encoder);
    avcodec_free_context(&encoder->codec);
    av_packet_free(&encoder->packet);
    av_frame_free(&encoder->last);
    av_frame_free(&encoder->spare);
    if (encoder->planer) td_media_video_planer_free(encoder->planer);
    free(encoder);
}

static td_err open_encoder(const td_media_video_encoder_config *config,
                           td_media_video_encoder **ret_encoder,
                           td_errinfo *info)
{
    TD_TRY(check(config, info));
    td_media_video_encoder *encoder = calloc(1, sizeof *encoder);
    if (!encoder) return TD_ERR_NOMEM;
    td_err err = open_parts(encoder, config, info);
    if (err == TD_OK)
        *ret_encoder = encoder;
    else
        close_encoder(encoder);
    return err;
}

const td_media_video_encoder_ops td_media_video_library_encoder = {
    .open = open_encoder,
    .close = close_encoder,
    .params = params_of,
    .add_rgb = add_rgb,
    .add_jpeg = add_jpeg,
    .repeat = repeat,
    .picked = picked,
    .end = end,
};

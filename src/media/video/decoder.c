// SPDX-License-Identifier: Apache-2.0
#include "media/size.h"
#include "media/video/file.h"
#include "media/video/library.h"

#include <libavcodec/avcodec.h>
#include <libavutil/frame.h>
#include <libswscale/swscale.h>
#include <math.h>
#include <stdlib.h>

struct td_media_video_decoder {
    td_media_video_file *file;
    AVCodecContext *codec;
    AVPacket *packet;
    AVFrame *frame; // the one that was decoded last
    bool has_frame;
    int64_t read_dts; // of the packet read last
    bool drained;     // the file's last packet is in
    struct SwsContext *scaler;
};

static td_err open_codec(td_media_video_decoder *decoder, td_errinfo *info)
{
    const AVCodecParameters *params = decoder->file->stream->codecpar;
    const AVCodec *codec = avcodec_find_decoder(params->codec_id);
    if (!codec)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "libavcodec was built without a decoder for %s",
                       avcodec_get_name(params->codec_id));
    decoder->codec = avcodec_alloc_context3(codec);
    if (!decoder->codec ||
        avcodec_parameters_to_context(decoder->codec, params) < 0)
        return TD_ERR_NOMEM;
    decoder->codec->max_pixels = TD_MEDIA_MAX_PIXELS;
    decoder->codec->thread_count = 1;
    decoder->codec->err_recognition = AV_EF_EXPLODE | AV_EF_BITSTREAM;
    int code = avcodec_open2(decoder->codec, codec, NULL);
    if (code < 0) return td_media_video_av_fail(info, code, codec->name);
    return TD_OK;
}

static td_err open_parts(td_media_video_decoder *decoder, const char *path,
                         td_slice memory, td_errinfo *info)
{
    decoder->read_dts = INT64_MIN;
    decoder->packet = av_packet_alloc();
    decoder->frame = av_frame_alloc();
    if (!decoder->packet || !decoder->frame) return TD_ERR_NOMEM;
    TD_TRY(td_media_video_file_open(path, memory, &decoder->file, info));
    return open_codec(decoder, info);
}

static void close_decoder(td_media_video_decoder *decoder)
{
    sws_freeContext(decoder->scaler);
    avcodec_free_context(&decoder->codec);
    av_packet_free(&decoder->packet);
    av_frame_free(&decoder->frame);
    if (decoder->file) td_media_video_file_close(decoder->file);
    free(decoder);
}

static td_err open_decoder(const char *path, td_slice file,
                           td_media_video_decoder **ret_decoder,
                           td_errinfo *info)
{
    td_media_video_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder) return TD_ERR_NOMEM;
    td_err err = open_parts(decoder, path, file, info);
    if (err == TD_OK)
        *ret_decoder = decoder;
    else
        close_decoder(decoder);
    return err;
}

static td_media_video_facts facts_of(const td_media_video_decoder *decoder)
{
    return td_media_video_file_facts(decoder->file);
}

// Gives the codec the file's next packet, or tells it that there is none.
static td_err feed(td_media_video_decoder *decoder, td_errinfo *info)
{
    int code = 0;
    td_err err = td_media_video_file_read(decoder->file, decoder->packet, info);
    if (err != TD_OK && err != TD_ERR_EMPTY) return err;
    decoder->drained = err == TD_ERR_EMPTY;
    if (err == TD_OK) decoder->read_dts = decoder->packet->dts;
    code = avcodec_send_packet(decoder->codec,
                               err == TD_OK ? decoder->packet : NULL);
    av_packet_unref(decoder->packet);
    if (code < 0 && code != AVERROR_EOF)
        return td_media_video_av_fail(info, code, "decoding");
    return TD_OK;
}

// Decodes the next picture. NOTFOUND after the last.
static td_err advance(td_media_video_decoder *decoder, td_errinfo *info)
{
    decoder->has_frame = false;
    for (;;) {
        int code = avcodec_receive_frame(decoder->codec, decoder->frame);
        if (code == AVERROR_EOF ||
            (code == AVERROR(EAGAIN) && decoder->drained))
            return TD_ERR_NOTFOUND;
        if (code < 0 && code != AVERROR(EAGAIN))
            return td_media_video_av_fail(info, code, "decoding");
        if (code == 0) break;
        TD_TRY(feed(decoder, info));
    }
    decoder->has_frame = true;
    return TD_OK;
}

// Whether a key frame lies between what was read and `target`, so that it is
// quicker to begin there.
static bool key_is_ahead(const td_media_video_decoder *decoder, int64_t target)
{
    AVStream *stream = decoder->file->stream;
    int next =
        av_index_search_timestamp(stream, decoder->read_dts, AVSEEK_FLAG_ANY) +
        1;
    int key = av_index_search_timestamp(stream, target, AVSEEK_FLAG_BACKWARD);
    return key > next;
}

static td_err seek(td_media_video_decoder *decoder, int64_t target,
                   td_errinfo *info)
{
    int code =
        av_seek_frame(decoder->file->format, decoder->file->stream->index,
                      target, AVSEEK_FLAG_BACKWARD);
    if (code < 0) return td_media_video_av_fail(info, code, "seeking");
    avcodec_flush_buffers(decoder->codec);
    decoder->has_frame = false;
    decoder->drained = false;
    decoder->read_dts = INT64_MIN;
    return TD_OK;
}

static double time_of(const td_media_video_decoder *decoder,
                      const AVFrame *frame)
{
    return (double)frame->best_effort_timestamp *
           av_q2d(decoder->file->stream->time_base);
}

static td_err find(td_media_video_decoder *decoder, double at_s,
                   td_errinfo *info)
{
    AVRational unit = decoder->file->stream->time_base;
    int64_t target = llround(at_s / av_q2d(unit));
    bool behind = decoder->has_frame && time_of(decoder, decoder->frame) <=
                                            at_s + TD_MEDIA_VIDEO_TOLERANCE_S;
    if (!behind || key_is_ahead(decoder, target))
        TD_TRY(seek(decoder, target, info));
    while (!decoder->has_frame ||
           time_of(decoder, decoder->frame) < at_s - TD_MEDIA_VIDEO_TOLERANCE_S)
        TD_TRY(advance(decoder, info));
    bool there =
        time_of(decoder, decoder->frame) <= at_s + TD_MEDIA_VIDEO_TOLERANCE_S;
    return there ? TD_OK : TD_ERR_NOTFOUND;
}

static td_err make_scaler(td_media_video_decoder *decoder)
{
    const AVFrame *frame = decoder->frame;
    bool full = frame->color_range == AVCOL_RANGE_JPEG;
    decoder->scaler = sws_getCachedContext(
        decoder->scaler, frame->width, frame->height,
        (enum AVPixelFormat)frame->format, frame->width, frame->height,
        AV_PIX_FMT_RGB24, SWS_BILINEAR, NULL, NULL, NULL);
    if (!decoder->scaler) return TD_ERR_NOMEM;
    sws_setColorspaceDetails(
        decoder->scaler, sws_getCoefficients(frame->colorspace), full,
        sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16, 1 << 16);
    return TD_OK;
}

static td_err to_rgb(td_media_video_decoder *decoder, uint8_t *ret_rgb,
                     td_errinfo *info)
{
    const AVFrame *frame = decoder->frame;
    const AVCodecParameters *params = decoder->file->stream->codecpar;
    uint8_t *out[4] = {ret_rgb};
    int stride[4] = {params->width * 3};
    if (frame->width != params->width || frame->height != params->height)
        return td_fail(
            info, TD_ERR_MISMATCH, "a picture of %d x %d in a video of %d x %d",
            frame->height, frame->width, params->height, params->width);
    TD_TRY(make_scaler(decoder));
    int code = sws_scale(decoder->scaler, (const uint8_t *const *)frame->data,
                         frame->linesize, 0, frame->height, out, stride);
    if (code < 0) return td_media_video_av_fail(info, code, "to RGB");
    return TD_OK;
}

static td_err picture(td_media_video_decoder *decoder, double at_s,
                      uint8_t *ret_rgb, td_errinfo *info)
{
    if (!isfinite(at_s) || at_s < 0 || at_s > INT32_MAX) {
        return td_fail(info, TD_ERR_NOTFOUND, "no picture at %g s", at_s);
    }
    td_err err = find(decoder, at_s, info);
    if (err == TD_ERR_NOTFOUND)
        return td_fail(info, err, "no picture at %.6f s", at_s);
    TD_TRY(err);
    return to_rgb(decoder, ret_rgb, info);
}

const td_media_video_decoder_ops td_media_video_library_decoder = {
    .open = open_decoder,
    .close = close_decoder,
    .facts = facts_of,
    .picture = picture,
};

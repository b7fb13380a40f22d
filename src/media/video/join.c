// SPDX-License-Identifier: Apache-2.0
#include "media/size.h"
#include "media/video/av.h"
#include "media/video/codec.h"
#include "media/video/file.h"
#include "media/video/library.h"

#include <inttypes.h>
#include <libavutil/mathematics.h>
#include <string.h>

#define AV1_PREFIX_BYTES 4 // before the sequence header, in an MP4

typedef struct mp4_output {
    td_media_video_place place;
    AVIOContext *io;
    AVFormatContext *format;
    AVPacket *packet;
    AVRational frame_time;
    int64_t frames;
} mp4_output;

static void close_output(mp4_output *output)
{
    av_packet_free(&output->packet);
    avformat_free_context(output->format);
    if (output->io) td_media_video_av_close(output->io);
}

static td_err set_codec(AVCodecParameters *codec,
                        const td_media_video_params *params)
{
    codec->codec_type = AVMEDIA_TYPE_VIDEO;
    codec->codec_id = td_media_video_codec_id(params->codec);
    codec->height = (int)params->height;
    codec->width = (int)params->width;
    codec->format = AV_PIX_FMT_YUV420P;
    codec->extradata =
        av_mallocz(params->head.size + AV_INPUT_BUFFER_PADDING_SIZE);
    if (!codec->extradata) return TD_ERR_NOMEM;
    memcpy(codec->extradata, params->head.data, params->head.size);
    codec->extradata_size = (int)params->head.size;
    return TD_OK;
}

static td_err open_output(mp4_output *output,
                          const td_media_video_params *params, td_errinfo *info)
{
    TD_TRY(td_media_video_av_open(&output->place, true, &output->io));
    output->packet = av_packet_alloc();
    if (!output->packet ||
        avformat_alloc_output_context2(&output->format, NULL, "mp4", NULL) < 0)
        return TD_ERR_NOMEM;
    AVStream *stream = avformat_new_stream(output->format, NULL);
    if (!stream) return TD_ERR_NOMEM;
    output->frame_time = (AVRational){1, (int)params->fps};
    output->format->pb = output->io;
    // Nothing of the day or of libav's version: equal packets, equal files.
    output->format->flags |= AVFMT_FLAG_CUSTOM_IO | AVFMT_FLAG_BITEXACT;
    stream->time_base = output->frame_time;
    stream->avg_frame_rate = av_inv_q(output->frame_time);
    TD_TRY(set_codec(stream->codecpar, params));
    int code = avformat_write_header(output->format, NULL);
    if (code < 0) return td_media_video_av_fail(info, code, "writing the head");
    return TD_OK;
}

// `packet` holds its data and whether it is a key.
static td_err put(mp4_output *output, AVPacket *packet, td_errinfo *info)
{
    const AVStream *stream = output->format->streams[0];
    packet->stream_index = 0;
    packet->pts =
        av_rescale_q(output->frames, output->frame_time, stream->time_base);
    packet->dts = packet->pts;
    packet->duration = av_rescale_q(1, output->frame_time, stream->time_base);
    packet->pos = -1;
    int code = av_write_frame(output->format, packet);
    if (code < 0) return td_media_video_av_fail(info, code, "writing a packet");
    output->frames++;
    return TD_OK;
}

static bool same_head(const AVCodecParameters *old,
                      const td_media_video_params *params)
{
    size_t skip = params->codec == TD_MEDIA_CODEC_AV1 ? AV1_PREFIX_BYTES : 0;
    return (size_t)old->extradata_size == params->head.size + skip &&
           memcmp(old->extradata + skip, params->head.data,
                  params->head.size) == 0;
}

static td_err check_old(const td_media_video_file *file, const char *path,
                        const td_media_video_params *params, td_errinfo *info)
{
    td_media_video_facts facts = td_media_video_file_facts(file);
    if (strcmp(facts.codec, td_media_codec_name(params->codec)) != 0 ||
        facts.height != params->height || facts.width != params->width)
        return td_fail(info, TD_ERR_MISMATCH,
                       "%s is %s of %u x %u, what follows %s of %u x %u", path,
                       facts.codec, facts.height, facts.width,
                       td_media_codec_name(params->codec), params->height,
                       params->width);
    if (!same_head(file->stream->codecpar, params))
        return td_fail(info, TD_ERR_MISMATCH,
                       "%s was encoded with other settings", path);
    return TD_OK;
}

// Frame k of the old file is at k/fps, or it is not one of ours.
static td_err put_old(mp4_output *output, const td_media_video_file *file,
                      AVPacket *packet, td_errinfo *info)
{
    int64_t due = av_rescale_q(output->frames, output->frame_time,
                               file->stream->time_base);
    if (packet->pts != due)
        return td_fail(info, TD_ERR_MISMATCH,
                       "frame %" PRId64 " is not at %" PRId64 "/%d s",
                       output->frames, output->frames, output->frame_time.den);
    return put(output, packet, info);
}

static td_err copy_old(mp4_output *output, const char *path,
                       const td_media_video_params *params, td_errinfo *info)
{
    TD_AUTO(td_media_video_file) *file = NULL;
    TD_TRY(td_media_video_file_open(path, (td_slice){NULL, 0}, &file, info));
    TD_TRY(check_old(file, path, params, info));
    for (;;) {
        td_err err = td_media_video_file_read(file, output->packet, info);
        if (err == TD_ERR_EMPTY) break;
        if (err == TD_OK) err = put_old(output, file, output->packet, info);
        av_packet_unref(output->packet);
        TD_TRY(err);
    }
    if ((uint64_t)output->frames == td_media_video_file_facts(file).frames)
        return TD_OK;
    return td_fail(info, TD_ERR_FORMAT, "%s: damaged or cut short", path);
}

static td_err put_new(mp4_output *output, const td_media_video_packet *ours,
                      td_errinfo *info)
{
    AVPacket *packet = output->packet;
    if (ours->data.size > INT32_MAX - AV_INPUT_BUFFER_PADDING_SIZE)
        return td_fail(info, TD_ERR_LIMIT, "a packet of %zu bytes",
                       ours->data.size);
    if (av_new_packet(packet, (int)ours->data.size) < 0) return TD_ERR_NOMEM;
    memcpy(packet->data, ours->data.data, ours->data.size);
    packet->flags = ours->key ? AV_PKT_FLAG_KEY : 0;
    td_err err = put(output, packet, info);
    av_packet_unref(packet);
    return err;
}

static td_err copy_new(mp4_output *output, td_media_video_source source,
                       void *user, td_errinfo *info)
{
    for (;;) {
        td_media_video_packet packet = {.frame = 0};
        td_err err = source(user, &packet, info);
        if (err == TD_ERR_EMPTY) return TD_OK;
        TD_TRY(err);
        TD_TRY(put_new(output, &packet, info));
    }
}

static td_err join(mp4_output *output, const char *old,
                   const td_media_video_params *params,
                   td_media_video_source source, void *user, td_errinfo *info)
{
    TD_TRY(open_output(output, params, info));
    if (old) TD_TRY(copy_old(output, old, params, info));
    TD_TRY(copy_new(output, source, user, info));
    int code = av_write_trailer(output->format);
    if (code >= 0) code = output->io->error;
    if (code < 0) return td_media_video_av_fail(info, code, "writing the end");
    return TD_OK;
}

td_err td_media_video_library_join(const char *old,
                                   const td_media_video_params *params,
                                   td_media_video_source source, void *user,
                                   int fd, uint64_t *ret_frames,
                                   td_errinfo *info)
{
    if (params->fps < 1 || params->fps > TD_MEDIA_VIDEO_MAX_FPS ||
        params->head.size < 1 || params->head.size > TD_MEDIA_VIDEO_MAX_HEAD)
        return td_fail(info, TD_ERR_INVALID, "a video of %u Hz, head of %zu",
                       params->fps, params->head.size);
    TD_TRY(td_media_size_check(params->height, params->width, info));
    mp4_output output = {.place = {.fd = fd}};
    td_err err = join(&output, old, params, source, user, info);
    if (err == TD_OK) *ret_frames = (uint64_t)output.frames;
    close_output(&output);
    return err;
}

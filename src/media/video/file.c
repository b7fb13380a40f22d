// SPDX-License-Identifier: Apache-2.0
#include "media/video/file.h"

#include "media/size.h"
#include "media/video/boxes.h"

#include <errno.h>
#include <fcntl.h>
#include <libavcodec/avcodec.h>
#include <libavutil/dict.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static td_err open_path(td_media_video_place *place, const char *path,
                        td_errinfo *info)
{
    struct stat about;
    place->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (place->fd < 0)
        return td_fail(info, errno == ENOENT ? TD_ERR_NOTFOUND : TD_ERR_IO,
                       "%s", strerror(errno));
    if (fstat(place->fd, &about) != 0)
        return td_fail(info, TD_ERR_IO, "%s", strerror(errno));
    if (!S_ISREG(about.st_mode))
        return td_fail(info, TD_ERR_FORMAT, "not a file");
    place->size = about.st_size;
    return TD_OK;
}

// A file may name others as the place of its samples.
static int open_nothing(AVFormatContext *format, AVIOContext **io,
                        const char *url, int flags, AVDictionary **options)
{
    (void)format, (void)io, (void)url, (void)flags, (void)options;
    return AVERROR(EPERM);
}

static td_err open_format(td_media_video_file *file, td_errinfo *info)
{
    AVDictionary *options = NULL;
    file->format = avformat_alloc_context();
    if (!file->format) return TD_ERR_NOMEM;
    file->format->pb = file->io;
    file->format->flags |= AVFMT_FLAG_CUSTOM_IO;
    file->format->io_open = open_nothing;
    // Off: it copies the index once for each edit that a file claims.
    if (av_dict_set(&options, "advanced_editlist", "0", 0) < 0)
        return TD_ERR_NOMEM;
    int code = avformat_open_input(&file->format, "",
                                   av_find_input_format("mov"), &options);
    av_dict_free(&options);
    if (code < 0) // frees the format
        return td_media_video_av_fail(info, code, "not an MP4");
    return TD_OK;
}

static td_err check_codec(const AVCodecParameters *codec, td_errinfo *info)
{
    switch (codec->codec_id) {
    case AV_CODEC_ID_AV1:
    case AV_CODEC_ID_H264:
    case AV_CODEC_ID_HEVC:
        break;
    default:
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "a video in %s; av1, h264 and hevc are read",
                       avcodec_get_name(codec->codec_id));
    }
    if (codec->width < 1 || codec->height < 1)
        return td_fail(info, TD_ERR_FORMAT, "a video without a size");
    return td_media_size_check((uint32_t)codec->height, (uint32_t)codec->width,
                               info);
}

static td_err find_stream(td_media_video_file *file, td_errinfo *info)
{
    for (unsigned i = 0; i < file->format->nb_streams; i++) {
        AVStream *stream = file->format->streams[i];
        bool ours =
            !file->stream && stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO;
        if (ours) file->stream = stream;
        if (!ours) stream->discard = AVDISCARD_ALL;
    }
    if (!file->stream) return td_fail(info, TD_ERR_FORMAT, "no video in it");
    return check_codec(file->stream->codecpar, info);
}

static td_err open_inside(td_media_video_file *file, td_errinfo *info)
{
    TD_TRY(td_media_video_boxes_check(&file->place, info));
    TD_TRY(td_media_video_av_open(&file->place, false, &file->io));
    TD_TRY(open_format(file, info));
    return find_stream(file, info);
}

td_err td_media_video_file_open(const char *path, td_slice memory,
                                td_media_video_file **ret_file,
                                td_errinfo *info)
{
    TD_AUTO(td_media_video_file) *file = calloc(1, sizeof *file);
    td_errinfo why = {""};
    if (!file) return TD_ERR_NOMEM;
    file->place = (td_media_video_place){-1, memory, (int64_t)memory.size, 0};
    td_err err = path ? open_path(&file->place, path, &why) : TD_OK;
    if (err == TD_OK) err = open_inside(file, &why);
    if (err == TD_ERR_NOMEM) return err;
    if (err != TD_OK)
        return td_fail(info, err, "%s: %s", path ? path : "video", why.text);
    *ret_file = TD_TAKE(file);
    return TD_OK;
}

void td_media_video_file_close(td_media_video_file *file)
{
    avformat_close_input(&file->format);
    if (file->io) td_media_video_av_close(file->io);
    if (file->place.fd >= 0) close(file->place.fd);
    free(file);
}

td_err td_media_video_file_read(td_media_video_file *file, AVPacket *packet,
                                td_errinfo *info)
{
    for (;;) {
        int code = av_read_frame(file->format, packet);
        if (code == AVERROR_EOF) return TD_ERR_EMPTY;
        if (code < 0)
            return td_media_video_av_fail(info, code, "reading a packet");
        // libav hands out what is left of a packet that is cut short.
        if (packet->flags & AV_PKT_FLAG_CORRUPT) {
            av_packet_unref(packet);
            return td_fail(info, TD_ERR_FORMAT, "a packet is cut short");
        }
        if (packet->stream_index == file->stream->index) return TD_OK;
        av_packet_unref(packet);
    }
}

static double constant_rate(const AVStream *stream)
{
    AVRational rate = stream->avg_frame_rate;
    return rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 0;
}

td_media_video_facts td_media_video_file_facts(const td_media_video_file *file)
{
    const AVCodecParameters *codec = file->stream->codecpar;
    td_media_video_facts facts = {
        .height = (uint32_t)codec->height,
        .width = (uint32_t)codec->width,
        .fps = constant_rate(file->stream),
        .frames = (uint64_t)avformat_index_get_entries_count(file->stream),
    };
    snprintf(facts.codec, sizeof facts.codec, "%s",
             avcodec_get_name(codec->codec_id));
    return facts;
}

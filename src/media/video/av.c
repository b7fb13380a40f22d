// SPDX-License-Identifier: Apache-2.0
#include "media/video/av.h"

#include <errno.h>
#include <libavutil/error.h>
#include <libavutil/log.h>
#include <libavutil/mem.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES (64 << 10)

void td_media_video_av_quiet(void)
{
    av_log_set_level(AV_LOG_QUIET);
    (void)setenv("SVT_LOG", "1", 0);
}

static td_err meaning(int code)
{
    switch (code) {
    case AVERROR(ENOMEM):
        return TD_ERR_NOMEM;
    case AVERROR(ENOSPC):
    case AVERROR(EDQUOT):
        return TD_ERR_FULL;
    case AVERROR(EIO):
        return TD_ERR_IO;
    case AVERROR_EOF:
    case AVERROR_INVALIDDATA:
        return TD_ERR_FORMAT;
    case AVERROR_PATCHWELCOME:
    case AVERROR(ENOSYS):
        return TD_ERR_UNSUPPORTED;
    default:
        return TD_ERR_INTERNAL;
    }
}

td_err td_media_video_av_fail(td_errinfo *info, int code, const char *what)
{
    char text[AV_ERROR_MAX_STRING_SIZE] = "";
    av_strerror(code, text, sizeof text);
    return td_fail(info, meaning(code), "%s: %s", what, text);
}

static ssize_t read_some(const td_media_video_place *place, int64_t at,
                         uint8_t *bytes, size_t size)
{
    if (at >= place->size) return 0;
    if ((uint64_t)(place->size - at) < size) size = (size_t)(place->size - at);
    if (place->fd >= 0) return pread(place->fd, bytes, size, at);
    memcpy(bytes, (const uint8_t *)place->memory.data + at, size);
    return (ssize_t)size;
}

td_err td_media_video_place_read(const td_media_video_place *place, int64_t at,
                                 void *ret_bytes, size_t size, size_t *ret_size,
                                 td_errinfo *info)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = read_some(place, at + (int64_t)done,
                                (uint8_t *)ret_bytes + done, size - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return td_fail(info, TD_ERR_IO, "reading: %s", strerror(errno));
        if (got == 0) break;
        done += (size_t)got;
    }
    *ret_size = done;
    return TD_OK;
}

static int on_read(void *user, uint8_t *bytes, int size)
{
    td_media_video_place *place = user;
    size_t got = 0;
    if (td_media_video_place_read(place, place->at, bytes, (size_t)size, &got,
                                  NULL) != TD_OK)
        return AVERROR(EIO);
    place->at += (int64_t)got;
    return got ? (int)got : AVERROR_EOF;
}

static int on_write(void *user, uint8_t *bytes, int size)
{
    td_media_video_place *place = user;
    for (int done = 0; done < size;) {
        ssize_t put =
            pwrite(place->fd, bytes + done, (size_t)(size - done), place->at);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return AVERROR(errno);
        done += (int)put;
        place->at += put;
    }
    if (place->size < place->at) place->size = place->at;
    return size;
}

static int64_t on_seek(void *user, int64_t offset, int whence)
{
    td_media_video_place *place = user;
    int64_t at = offset;
    if (whence & AVSEEK_SIZE) return place->size;
    whence &= ~AVSEEK_FORCE;
    if (whence == SEEK_CUR) at += place->at;
    if (whence == SEEK_END) at += place->size;
    if (at < 0) return AVERROR(EINVAL);
    return place->at = at;
}

td_err td_media_video_av_open(td_media_video_place *place, bool writable,
                              AVIOContext **ret_io)
{
    uint8_t *buffer = av_malloc(BUFFER_BYTES);
    if (!buffer) return TD_ERR_NOMEM;
    AVIOContext *io = avio_alloc_context(buffer, BUFFER_BYTES, writable, place,
                                         writable ? NULL : on_read,
                                         writable ? on_write : NULL, on_seek);
    if (!io) {
        av_free(buffer);
        return TD_ERR_NOMEM;
    }
    *ret_io = io;
    return TD_OK;
}

void td_media_video_av_close(AVIOContext *io)
{
    av_freep(&io->buffer); // libav may have made it another one
    avio_context_free(&io);
}

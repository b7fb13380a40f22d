// SPDX-License-Identifier: Apache-2.0
#ifndef TD_MEDIA_VIDEO_FILE_H
#define TD_MEDIA_VIDEO_FILE_H

// A video file opened for its packets, within the limits.

#include "media/video.h"
#include "media/video/av.h"

#include <libavformat/avformat.h>

typedef struct td_media_video_file {
    td_media_video_place place;
    AVIOContext *io;
    AVFormatContext *format;
    AVStream *stream; // the one with pictures
} td_media_video_file;

// By its path, or in memory where `path` is NULL (borrowed). Owned by the
// caller. Errors as td_media_video_decoder_open().
TD_NODISCARD td_err td_media_video_file_open(const char *path, td_slice memory,
                                             td_media_video_file **ret_file,
                                             td_errinfo *info);
void td_media_video_file_close(td_media_video_file *file);
TD_AUTO_FREE(td_media_video_file, td_media_video_file_close)

// The next packet with pictures. EMPTY after the last, FORMAT.
TD_NODISCARD td_err td_media_video_file_read(td_media_video_file *file,
                                             AVPacket *packet,
                                             td_errinfo *info);

td_media_video_facts td_media_video_file_facts(const td_media_video_file *file);

#endif

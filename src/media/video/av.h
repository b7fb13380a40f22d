// SPDX-License-Identifier: Apache-2.0
#ifndef TD_MEDIA_VIDEO_AV_H
#define TD_MEDIA_VIDEO_AV_H

// What the parts of media/video share of libav: its errors, and how it reads
// and writes. libav opens nothing by itself here; bytes come from and go to a
// place of ours.

#include "base/err.h"

#include <libavformat/avio.h>
#include <stdbool.h>

// Keeps libav and its codecs from writing on stderr, which is a setting of the
// whole process: libav's log level, and SVT_LOG in the environment (a value of
// the user's stays). SVT-AV1 writes a dozen lines for each encoder and has no
// other way. Once, when this library is loaded; a program whose
// other threads use the environment at that moment sets SVT_LOG itself before.
void td_media_video_av_quiet(void);

// The error `code` of libav as one of ours, "WHAT: its text".
td_err td_media_video_av_fail(td_errinfo *info, int code, const char *what);

// Where the bytes of a file are: behind a descriptor, or in memory.
typedef struct td_media_video_place {
    int fd;          // -1: in memory
    td_slice memory; // read only
    int64_t size;    // of what is read
    int64_t at;
} td_media_video_place;

// Reads at most `size` bytes at `at`; fewer only at the end. IO.
TD_NODISCARD td_err td_media_video_place_read(const td_media_video_place *place,
                                              int64_t at, void *ret_bytes,
                                              size_t size, size_t *ret_size,
                                              td_errinfo *info);

// The place, as libav reads (or, where `writable`, writes) it; borrows it.
// NOMEM.
TD_NODISCARD td_err td_media_video_av_open(td_media_video_place *place,
                                           bool writable, AVIOContext **ret_io);
void td_media_video_av_close(AVIOContext *io);

#endif

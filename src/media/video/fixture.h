// SPDX-License-Identifier: Apache-2.0
#ifndef TD_MEDIA_VIDEO_FIXTURE_H
#define TD_MEDIA_VIDEO_FIXTURE_H

// Videos for tests: moving pictures, kept packets, files that go away.

#include "media/video.h"

#define VIDEO_HEIGHT 64
#define VIDEO_WIDTH 96
#define VIDEO_BYTES (VIDEO_HEIGHT * VIDEO_WIDTH * 3)
#define VIDEO_FPS 30
#define VIDEO_MAX_PACKETS 256

// What an encoder handed out, and a source of it for a join.
typedef struct kept_packets {
    td_media_video_packet packets[VIDEO_MAX_PACKETS];
    size_t count;
    size_t next;
} kept_packets;

td_err keep_packet(void *user, const td_media_video_packet *packet,
                   td_errinfo *info);
td_err next_packet(void *user, td_media_video_packet *ret_packet,
                   td_errinfo *info);
void free_packets(kept_packets *kept);

// Frame `k`: slopes of colour that move with k.
void draw_picture(uint8_t *rgb, int k);
double mean_difference(const uint8_t *a, const uint8_t *b);

// An encoder of frames of that size into `kept`.
td_media_video_encoder *open_encoder(td_media_codec codec, kept_packets *kept);

// Encodes frames first to first + count, and joins them to the file `old`
// (NULL: none). The path of the new file, which is removed with
// remove_video().
char *make_video(td_media_codec codec, const char *old, int first, int count);
void remove_video(char *path);

#endif

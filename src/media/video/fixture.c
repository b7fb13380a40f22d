// SPDX-License-Identifier: Apache-2.0
#include "media/video/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

td_err keep_packet(void *user, const td_media_video_packet *packet,
                   td_errinfo *info)
{
    kept_packets *kept = user;
    if (kept->count == VIDEO_MAX_PACKETS)
        return td_fail(info, TD_ERR_FULL, "no room for a packet");
    void *copy = malloc(packet->data.size);
    if (!copy) return TD_ERR_NOMEM;
    memcpy(copy, packet->data.data, packet->data.size);
    kept->packets[kept->count] = *packet;
    kept->packets[kept->count++].data.data = copy;
    return TD_OK;
}

td_err next_packet(void *user, td_media_video_packet *ret_packet,
                   td_errinfo *info)
{
    (void)info;
    kept_packets *kept = user;
    if (kept->next == kept->count) return TD_ERR_EMPTY;
    *ret_packet = kept->packets[kept->next++];
    return TD_OK;
}

void free_packets(kept_packets *kept)
{
    for (size_t i = 0; i < kept->count; i++)
        free((void *)(uintptr_t)kept->packets[i].data.data);
    *kept = (kept_packets){.count = 0};
}

void draw_picture(uint8_t *rgb, int k)
{
    for (int i = 0; i < VIDEO_HEIGHT * VIDEO_WIDTH; i++) {
        int x = i % VIDEO_WIDTH, y = i / VIDEO_WIDTH;
        *rgb++ = (uint8_t)(x * 2);
        *rgb++ = (uint8_t)(20 + y * 3);
        *rgb++ = (uint8_t)(k * 5);
    }
}

double mean_difference(const uint8_t *a, const uint8_t *b)
{
    double sum = 0;
    for (int i = 0; i < VIDEO_BYTES; i++)
        sum += abs(a[i] - b[i]);
    return sum / VIDEO_BYTES;
}

td_media_video_encoder *open_encoder(td_media_codec codec, kept_packets *kept)
{
    td_media_video_encoder *encoder = NULL;
    td_errinfo info = {""};
    const td_media_video_encoder_config config = {
        .codec = codec,
        .height = VIDEO_HEIGHT,
        .width = VIDEO_WIDTH,
        .fps = VIDEO_FPS,
        .pick_step = 3,
        .sink = keep_packet,
        .user = kept,
    };
    td_err err = td_media_video_encoder_open(&config, &encoder, &info);
    if (err != TD_OK) fail_msg("%s: %s", td_err_name(err), info.text);
    return encoder;
}

char *make_video(td_media_codec codec, const char *old, int first, int count)
{
    static uint8_t rgb[VIDEO_BYTES];
    kept_packets kept = {.count = 0};
    td_media_video_encoder *encoder = open_encoder(codec, &kept);
    uint64_t frames = 0;
    td_errinfo info = {""};
    char *path = strdup("/tmp/td-video-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (int k = first; k < first + count; k++) {
        draw_picture(rgb, k);
        assert_int_equal(td_media_video_encoder_add_rgb(encoder, rgb, &info),
                         TD_OK);
    }
    assert_int_equal(td_media_video_encoder_end(encoder, &info), TD_OK);
    td_err err =
        td_media_video_join(old, td_media_video_encoder_params(encoder),
                            next_packet, &kept, fd, &frames, &info);
    if (err != TD_OK) fail_msg("%s: %s", td_err_name(err), info.text);
    assert_true(frames >= (uint64_t)count);
    close(fd);
    td_media_video_encoder_close(encoder);
    free_packets(&kept);
    return path;
}

void remove_video(char *path)
{
    unlink(path);
    free(path);
}

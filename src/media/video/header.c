// SPDX-License-Identifier: Apache-2.0
#include "media/video/header.h"

#include <string.h>

#define LENGTH_BYTES 4
#define HIGH_PROFILE 100

static td_err strange(td_errinfo *info)
{
    td_fail(info, TD_ERR_UNSUPPORTED,
            "the encoder's header has an unknown form");
    return TD_ERR_UNSUPPORTED;
}

// The next unit with its length before it.
static td_err take_unit(td_slice *rest, td_slice *ret_unit, td_errinfo *info)
{
    const uint8_t *bytes = rest->data;
    if (!bytes || rest->size < LENGTH_BYTES) return strange(info);
    size_t size = (size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 |
                  (size_t)bytes[2] << 8 | bytes[3];
    if (size < LENGTH_BYTES || size > UINT16_MAX ||
        size > rest->size - LENGTH_BYTES)
        return strange(info);
    *ret_unit = (td_slice){bytes + LENGTH_BYTES, size};
    *rest = (td_slice){bytes + LENGTH_BYTES + size,
                       rest->size - LENGTH_BYTES - size};
    return TD_OK;
}

static uint8_t *put_unit(uint8_t *out, td_slice unit)
{
    *out++ = (uint8_t)(unit.size >> 8);
    *out++ = (uint8_t)unit.size;
    memcpy(out, unit.data, unit.size);
    return out + unit.size;
}

// AVCDecoderConfigurationRecord: eight bits, 4:2:0, lengths of four bytes.
static td_err h264_head(td_slice own, uint8_t *ret_head, size_t room,
                        size_t *ret_size, td_errinfo *info)
{
    td_slice sequence = {NULL, 0}, picture = {NULL, 0};
    uint8_t *out = ret_head;
    TD_TRY(take_unit(&own, &sequence, info));
    TD_TRY(take_unit(&own, &picture, info));
    if (sequence.size + picture.size + 16 > room) return strange(info);
    const uint8_t *profile = (const uint8_t *)sequence.data + 1;
    *out++ = 1;
    memcpy(out, profile, 3); // profile, what it keeps to, level
    out += 3;
    *out++ = 0xfc | (LENGTH_BYTES - 1);
    *out++ = 0xe0 | 1;
    out = put_unit(out, sequence);
    *out++ = 1;
    out = put_unit(out, picture);
    if (profile[0] >= HIGH_PROFILE) {
        static const uint8_t sampling[] = {0xfc | 1, 0xf8, 0xf8, 0};
        memcpy(out, sampling, sizeof sampling);
        out += sizeof sampling;
    }
    *ret_size = (size_t)(out - ret_head);
    return TD_OK;
}

td_err td_media_video_header(td_media_codec codec, td_slice own,
                             uint8_t *ret_head, size_t room, size_t *ret_size,
                             td_errinfo *info)
{
    if (!own.data || own.size < 1 || own.size > room) return strange(info);
    bool done = ((const uint8_t *)own.data)[0] == 1; // by a newer libav
    if (codec == TD_MEDIA_CODEC_H264 && !done)
        return h264_head(own, ret_head, room, ret_size, info);
    memcpy(ret_head, own.data, own.size);
    *ret_size = own.size;
    return TD_OK;
}

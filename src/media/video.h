// SPDX-License-Identifier: Apache-2.0
#ifndef TD_MEDIA_VIDEO_H
#define TD_MEDIA_VIDEO_H

// Pictures to and from video files: MP4, constant frame rate, frame k at k/fps
// seconds, YUV 4:2:0 of limited range, a key frame at least every second one.
//
// An encoder hands out packets, one a picture and in the order of the pictures,
// so that whoever records may keep them where they survive; a file is made of
// packets later, without encoding again. Files are read through limits: their
// streams, their codec and the size of their pictures are held against them
// before a decoder is opened. One thread at a time uses one of these things;
// each call may block.
//
// All of it is in a library of its own, libtendon_video.so, so that libav and
// its codecs are only in processes that have videos: the first call that opens
// something loads it. UNSUPPORTED where it is missing or libav is, VERSION
// where it is of another release, with what to do.

#include "base/err.h"

#include <stdbool.h>

#define TD_MEDIA_VIDEO_MAX_FPS 1000
#define TD_MEDIA_VIDEO_MAX_HEAD 4096
#define TD_MEDIA_VIDEO_TOLERANCE_S 1e-4 // as LeRobot's

// What is written; read are hevc files too. The text is LeRobot's
// `video.codec`.
#define TD_MEDIA_CODECS(X)                                                     \
    X(AV1, "av1")                                                              \
    X(H264, "h264")

typedef enum td_media_codec {
#define TD_MEDIA_CODEC_ENUM(name, text) TD_MEDIA_CODEC_##name,
    TD_MEDIA_CODECS(TD_MEDIA_CODEC_ENUM)
#undef TD_MEDIA_CODEC_ENUM
        TD_MEDIA_CODEC_COUNT
} td_media_codec;

// "av1"; never NULL. NOTFOUND for another text.
const char *td_media_codec_name(td_media_codec codec);
TD_NODISCARD td_err td_media_codec_find(const char *name,
                                        td_media_codec *ret_codec);

// Loads the library, for those who want to know ahead. Once there it stays;
// what failed may be tried again. Any thread; blocks. UNSUPPORTED, VERSION.
TD_NODISCARD td_err td_media_video_load(td_errinfo *info);

// Whether this machine can make such videos; loads the library. Any thread.
// UNSUPPORTED, VERSION.
TD_NODISCARD td_err td_media_codec_check(td_media_codec codec,
                                         td_errinfo *info);

// What a file says before its first packet.
typedef struct td_media_video_params {
    td_media_codec codec;
    uint32_t height;
    uint32_t width;
    uint32_t fps;
    td_slice head; // the codec's own header, at most TD_MEDIA_VIDEO_MAX_HEAD
} td_media_video_params;

typedef struct td_media_video_packet {
    td_slice data;
    int64_t frame; // 0, 1, 2, …
    bool key;      // can be decoded without the one before it
} td_media_video_packet;

// Called with each packet, on the thread that adds the picture; the packet is
// borrowed until it returns. Its error ends the call that made the packet.
typedef td_err (*td_media_video_sink)(void *user,
                                      const td_media_video_packet *packet,
                                      td_errinfo *info);

typedef struct td_media_video_encoder td_media_video_encoder;

typedef struct td_media_video_encoder_config {
    td_media_codec codec;
    uint32_t height; // both even
    uint32_t width;
    uint32_t fps;
    uint32_t pick_step; // see td_media_video_encoder_picked(); 0: none
    td_media_video_sink sink;
    void *user;
} td_media_video_encoder_config;

// The codec's threads are as many as one core can use, of ordinary priority
// and with the caller's affinity. Owned by the caller. INVALID, LIMIT,
// UNSUPPORTED (a size that the codec does not take; a codec that this machine's
// libraries do not have), NOMEM, INTERNAL.
TD_NODISCARD td_err td_media_video_encoder_open(
    const td_media_video_encoder_config *config,
    td_media_video_encoder **ret_encoder, td_errinfo *info);

// Whether it was ended or not. Waits for the codec's threads, which compute and
// never block on anything outside: a picture or two.
void td_media_video_encoder_close(td_media_video_encoder *encoder);
TD_AUTO_FREE(td_media_video_encoder, td_media_video_encoder_close)

// Known from the start. Borrowed from the encoder.
const td_media_video_params *
td_media_video_encoder_params(const td_media_video_encoder *encoder);

// Adds the next picture: height x width x RGB; a JPEG, whose planes are used as
// they are where they are 4:2:0; the last one again, or black before the first.
// What is added is the caller's again on return; its packet may come with a
// later one (H.264: none, AV1: some twenty pictures later). A JPEG that is
// refused is not added: FORMAT, MISMATCH, LIMIT. INTERNAL, NOMEM, and what the
// sink returns.
TD_NODISCARD td_err td_media_video_encoder_add_rgb(
    td_media_video_encoder *encoder, const uint8_t *rgb, td_errinfo *info);
TD_NODISCARD td_err td_media_video_encoder_add_jpeg(
    td_media_video_encoder *encoder, td_slice jpeg, td_errinfo *info);
TD_NODISCARD td_err td_media_video_encoder_repeat(
    td_media_video_encoder *encoder, td_errinfo *info);

// Every pick_step-th pixel of every pick_step-th row of the picture that was
// added last, RGB, exactly as a decoded picture has them; of
// ceil(height / step) x ceil(width / step). Borrowed until the next one.
const uint8_t *
td_media_video_encoder_picked(const td_media_video_encoder *encoder);

// Hands out the packets that are still to come; nothing is added afterwards.
TD_NODISCARD td_err td_media_video_encoder_end(td_media_video_encoder *encoder,
                                               td_errinfo *info);

// The next packet, borrowed until the one after it. EMPTY after the last; any
// other error ends the join.
typedef td_err (*td_media_video_source)(void *user,
                                        td_media_video_packet *ret_packet,
                                        td_errinfo *info);

// Writes an MP4 into `fd` (empty, open for writing; neither synced nor closed):
// the packets of the file `old` (NULL: none), then those of `source`, whose
// frames are counted on from there. MISMATCH (`old` has another codec, head,
// size or frame rate), FORMAT (`old` is damaged), FULL (no room on the disk),
// IO, and what the source returns.
TD_NODISCARD td_err td_media_video_join(const char *old,
                                        const td_media_video_params *params,
                                        td_media_video_source source,
                                        void *user, int fd,
                                        uint64_t *ret_frames, td_errinfo *info);

typedef struct td_media_video_facts {
    char codec[16]; // "av1", "h264" or "hevc"
    uint32_t height;
    uint32_t width;
    double fps; // 0: not constant
    uint64_t frames;
} td_media_video_facts;

typedef struct td_media_video_decoder td_media_video_decoder;

// A file, or one in memory (borrowed until closed). Owned by the caller.
// NOTFOUND, IO, FORMAT (damaged or cut short, no video in it), LIMIT,
// UNSUPPORTED (another codec), NOMEM.
TD_NODISCARD td_err td_media_video_decoder_open(
    const char *path, td_media_video_decoder **ret_decoder, td_errinfo *info);
TD_NODISCARD td_err td_media_video_decoder_open_memory(
    td_slice file, td_media_video_decoder **ret_decoder, td_errinfo *info);
void td_media_video_decoder_close(td_media_video_decoder *decoder);
TD_AUTO_FREE(td_media_video_decoder, td_media_video_decoder_close)

td_media_video_facts
td_media_video_decoder_facts(const td_media_video_decoder *decoder);

// The picture whose time is within the tolerance of `at_s`, into height x width
// x 3 bytes of the caller's. Fast where times ascend; going back decodes from
// the key frame before. NOTFOUND (no picture at that time), FORMAT (damaged or
// cut short), LIMIT, MISMATCH (the picture has another size than the file
// says), NOMEM.
TD_NODISCARD td_err
td_media_video_decoder_picture(td_media_video_decoder *decoder, double at_s,
                               uint8_t *ret_rgb, td_errinfo *info);

#endif

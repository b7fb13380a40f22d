// SPDX-License-Identifier: Apache-2.0
#include "media/video/codec.h"

#include "media/video/av.h"

#include <libavutil/opt.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GROUP 2 // a key frame every second frame, as LeRobot wants to seek

typedef struct option {
    const char *name;
    const char *value;
} option;

#define MAX_OPTIONS 5

static const struct {
    enum AVCodecID id;
    const char *encoder;
    option options[MAX_OPTIONS];
} codecs[] = {
    [TD_MEDIA_CODEC_AV1] =
        {
            AV_CODEC_ID_AV1,
            "libsvtav1",
            {{"preset", "12"},
             {"crf", "30"},
             // lp: threads for one core. pin: 0, or they all sit on core 0.
             // Its low-delay mode would give packets 3 pictures later instead
             // of 16, and makes files twice as large.
             {"svtav1-params", "lp=1:pin=0"}},
        },
    [TD_MEDIA_CODEC_H264] =
        {
            AV_CODEC_ID_H264,
            "libx264",
            {{"preset", "veryfast"},
             {"crf", "30"},
             {"tune", "zerolatency"},
             // Packets as MP4 has them.
             {"x264-params", "annexb=0"}},
        },
};

enum AVCodecID td_media_video_codec_id(td_media_codec codec)
{
    return codecs[codec].id;
}

static td_err set_options(AVCodecContext *codec,
                          const td_media_video_encoder_config *config,
                          td_errinfo *info)
{
    const option *options = codecs[config->codec].options;
    codec->width = (int)config->width;
    codec->height = (int)config->height;
    codec->time_base = (AVRational){1, (int)config->fps};
    codec->framerate = (AVRational){(int)config->fps, 1};
    codec->pix_fmt = AV_PIX_FMT_YUV420P;
    codec->gop_size = GROUP;
    codec->max_b_frames = 0;
    codec->thread_count = 1;
    codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    for (int i = 0; i < MAX_OPTIONS && options[i].name; i++) {
        int code =
            av_opt_set(codec->priv_data, options[i].name, options[i].value, 0);
        if (code < 0)
            return td_media_video_av_fail(info, code, options[i].name);
    }
    return TD_OK;
}

td_err td_media_video_codec_check(td_media_codec codec, td_errinfo *info)
{
    const char *name = codecs[codec].encoder;
    if (avcodec_find_encoder_by_name(name)) return TD_OK;
    return td_fail(info, TD_ERR_UNSUPPORTED,
                   "libavcodec was built without %s: install an FFmpeg that "
                   "has it, or record with another codec than %s",
                   name, td_media_codec_name(codec));
}

// SVT-AV1 raises its threads to the highest real-time priority where it may,
// which is wherever it runs as root: above the control tick. It may not while
// the thread that opens it lacks CAP_SYS_NICE. A thread made meanwhile starts
// without the capability and keeps so.

// The kernel's own calls are a thread's; a library's would be the process's.
static struct __user_cap_header_struct this_thread(void)
{
    return (struct __user_cap_header_struct){_LINUX_CAPABILITY_VERSION_3, 0};
}

// Whether it was set before.
static bool set_capability(bool on)
{
    struct __user_cap_header_struct thread = this_thread();
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};
    const uint32_t bit = CAP_TO_MASK(CAP_SYS_NICE);
    if (syscall(SYS_capget, &thread, sets) != 0) return false;
    bool before = sets[CAP_TO_INDEX(CAP_SYS_NICE)].effective & bit;
    sets[CAP_TO_INDEX(CAP_SYS_NICE)].effective &= ~bit;
    if (on) sets[CAP_TO_INDEX(CAP_SYS_NICE)].effective |= bit;
    if (syscall(SYS_capset, &thread, sets) != 0) return false;
    return before;
}

td_err td_media_video_codec_open(const td_media_video_encoder_config *config,
                                 AVCodecContext **ret_codec, td_errinfo *info)
{
    TD_TRY(td_media_video_codec_check(config->codec, info));
    const char *name = codecs[config->codec].encoder;
    const AVCodec *encoder = avcodec_find_encoder_by_name(name);
    AVCodecContext *codec = avcodec_alloc_context3(encoder);
    if (!codec) return TD_ERR_NOMEM;
    td_err err = set_options(codec, config, info);
    if (err == TD_OK) {
        bool could_raise = set_capability(false);
        int code = avcodec_open2(codec, encoder, NULL);
        if (could_raise) (void)set_capability(true);
        if (code < 0)
            err = td_fail(info, TD_ERR_UNSUPPORTED,
                          "%s does not take %u x %u at %u Hz", name,
                          config->height, config->width, config->fps);
    }
    if (err != TD_OK) avcodec_free_context(&codec);
    if (err == TD_OK) *ret_codec = codec;
    return err;
}

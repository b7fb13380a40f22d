// SPDX-License-Identifier: Apache-2.0
#include "media/video.h"

#include <string.h>

static const char *const names[] = {
#define CODEC_NAME(name, text) [TD_MEDIA_CODEC_##name] = (text),
    TD_MEDIA_CODECS(CODEC_NAME)
#undef CODEC_NAME
};

const char *td_media_codec_name(td_media_codec codec)
{
    return names[codec];
}

td_err td_media_codec_find(const char *name, td_media_codec *ret_codec)
{
    for (int i = 0; i < TD_MEDIA_CODEC_COUNT; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *ret_codec = (td_media_codec)i;
        return TD_OK;
    }
    return TD_ERR_NOTFOUND;
}

// SPDX-License-Identifier: Apache-2.0
#include "base/library_fixture.h"
#include "media/video/fixture.h"
#include "media/video/ops.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VARIABLE "TENDON_VIDEO_LIBRARY"

// What stands in the way of the first load.
static void missing_library_says_what_to_do(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *given; // in the environment
        td_err err;
        const char *words;
    } cases[] = {
        {"none", "/nowhere/video.so", TD_ERR_UNSUPPORTED, "or name it in"},
        {"not a library", "/etc/passwd", TD_ERR_UNSUPPORTED, "install FFmpeg"},
        {"another one", TD_OTHER_LIBRARY, TD_ERR_VERSION, "another release"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_errinfo info = {""};
        assert_int_equal(setenv(VARIABLE, cases[i].given, 1), 0);
        td_err err = td_media_video_load(&info);
        if (err != cases[i].err || !strstr(info.text, cases[i].words) ||
            !strstr(info.text, "libtendon_video.so"))
            fail_msg("%s: %s, \"%s\"", cases[i].name, td_err_name(err),
                     info.text);
    }
    assert_int_equal(unsetenv(VARIABLE), 0);
}

static void nothing_opens_without_it(void **state)
{
    (void)state;
    td_media_video_encoder *encoder = NULL;
    td_media_video_decoder *decoder = NULL;
    uint64_t frames = 7;
    const td_media_video_encoder_config config = {
        .height = VIDEO_HEIGHT, .width = VIDEO_WIDTH, .fps = VIDEO_FPS};
    const td_media_video_params params = {.fps = VIDEO_FPS};
    assert_int_equal(setenv(VARIABLE, "/nowhere/video.so", 1), 0);
    assert_int_equal(td_media_codec_check(TD_MEDIA_CODEC_AV1, NULL),
                     TD_ERR_UNSUPPORTED);
    assert_int_equal(td_media_video_encoder_open(&config, &encoder, NULL),
                     TD_ERR_UNSUPPORTED);
    assert_int_equal(td_media_video_decoder_open("a.mp4", &decoder, NULL),
                     TD_ERR_UNSUPPORTED);
    assert_int_equal(
        td_media_video_decoder_open_memory((td_slice){"", 0}, &decoder, NULL),
        TD_ERR_UNSUPPORTED);
    assert_int_equal(
        td_media_video_join(NULL, &params, NULL, NULL, -1, &frames, NULL),
        TD_ERR_UNSUPPORTED);
    assert_null(encoder);
    assert_null(decoder);
    assert_int_equal(frames, 7);
    assert_int_equal(unsetenv(VARIABLE), 0);
}

static void threads_that_come_at_once_share_one_load(void **state)
{
    (void)state;
    assert_threads_load(td_media_video_load);
}

static void every_codec_can_be_made(void **state)
{
    (void)state;
    for (int i = 0; i < TD_MEDIA_CODEC_COUNT; i++) {
        td_errinfo info = {""};
        if (td_media_codec_check((td_media_codec)i, &info) != TD_OK)
            fail_msg("%s", info.text);
    }
}

static void codecs_are_silenced(void **state)
{
    (void)state;
    assert_non_null(getenv("SVT_LOG"));
}

static void library_has_this_version_and_size_only(void **state)
{
    (void)state;
    void *library = dlopen(TD_VIDEO_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    __typeof__(&td_media_video_library) entry =
        (__typeof__(entry))dlsym(library, "td_media_video_library");
    assert_non_null(entry);
    assert_non_null(
        entry(TD_MEDIA_VIDEO_OPS_VERSION, TD_MEDIA_VIDEO_OPS_BYTES));
    assert_null(
        entry(TD_MEDIA_VIDEO_OPS_VERSION + 1, TD_MEDIA_VIDEO_OPS_BYTES));
    assert_null(
        entry(TD_MEDIA_VIDEO_OPS_VERSION, TD_MEDIA_VIDEO_OPS_BYTES + 8));
    assert_null(dlsym(library, "td_fail"));
}

static int set_up(void **state)
{
    (void)state;
    return unsetenv("SVT_LOG") || unsetenv(VARIABLE);
}

// In this order: once loaded, it stays.
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_library_says_what_to_do),
        cmocka_unit_test(nothing_opens_without_it),
        cmocka_unit_test(threads_that_come_at_once_share_one_load),
        cmocka_unit_test(every_codec_can_be_made),
        cmocka_unit_test(codecs_are_silenced),
        cmocka_unit_test(library_has_this_version_and_size_only),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "media/video.h"

#include "media/jpeg.h"
#include "media/video/fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define STEP 3 // of the fixture's encoder
#define PICKED                                                                 \
    ((size_t)((VIDEO_HEIGHT + STEP - 1) / STEP) *                              \
     ((VIDEO_WIDTH + STEP - 1) / STEP) * 3)

static const td_media_codec codecs[] = {TD_MEDIA_CODEC_AV1,
                                        TD_MEDIA_CODEC_H264};

static uint8_t picture[VIDEO_BYTES], decoded[VIDEO_BYTES];
static kept_packets kept;

static int teardown(void **state)
{
    (void)state;
    free_packets(&kept);
    return 0;
}

static void end(td_media_video_encoder *encoder)
{
    assert_int_equal(td_media_video_encoder_end(encoder, NULL), TD_OK);
    td_media_video_encoder_close(encoder);
}

static void add(td_media_video_encoder *encoder, int k)
{
    draw_picture(picture, k);
    assert_int_equal(td_media_video_encoder_add_rgb(encoder, picture, NULL),
                     TD_OK);
}

static void a_codec_is_found_by_its_name(void **state)
{
    (void)state;
    td_media_codec codec = TD_MEDIA_CODEC_COUNT;
    for (size_t i = 0; i < TD_COUNT_OF(codecs); i++) {
        assert_int_equal(
            td_media_codec_find(td_media_codec_name(codecs[i]), &codec), TD_OK);
        assert_int_equal(codec, codecs[i]);
    }
    assert_int_equal(td_media_codec_find("mpeg2", &codec), TD_ERR_NOTFOUND);
}

static void each_picture_gives_one_packet_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(codecs); i++) {
        td_media_video_encoder *encoder = open_encoder(codecs[i], &kept);
        for (int k = 0; k < 7; k++)
            add(encoder, k);
        end(encoder);
        assert_int_equal(kept.count, 7);
        assert_true(kept.packets[0].key);
        for (int k = 0; k < 7; k++) {
            assert_int_equal(kept.packets[k].frame, k);
            assert_true(kept.packets[k].key || kept.packets[k - 1].key);
        }
        free_packets(&kept);
    }
}

static void check_pictures(const char *path, td_media_codec codec, int count)
{
    TD_AUTO(td_media_video_decoder) *decoder = NULL;
    assert_int_equal(td_media_video_decoder_open(path, &decoder, NULL), TD_OK);
    td_media_video_facts facts = td_media_video_decoder_facts(decoder);
    assert_string_equal(facts.codec, td_media_codec_name(codec));
    assert_int_equal(facts.height, VIDEO_HEIGHT);
    assert_int_equal(facts.width, VIDEO_WIDTH);
    assert_int_equal(facts.frames, count);
    assert_float_equal(facts.fps, VIDEO_FPS, 1e-9);
    for (int k = 0; k < count; k++) {
        assert_int_equal(td_media_video_decoder_picture(
                             decoder, k / (double)VIDEO_FPS, decoded, NULL),
                         TD_OK);
        draw_picture(picture, k);
        assert_true(mean_difference(picture, decoded) < 3);
    }
}

static void a_joined_file_has_every_picture_at_its_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(codecs); i++) {
        char *first = make_video(codecs[i], NULL, 0, 9);
        char *both = make_video(codecs[i], first, 9, 8);
        char *all = make_video(codecs[i], both, 17, 1);
        check_pictures(first, codecs[i], 9);
        check_pictures(all, codecs[i], 18);
        remove_video(first);
        remove_video(both);
        remove_video(all);
    }
}

static void pictures_are_found_forwards_and_backwards(void **state)
{
    (void)state;
    static const int order[] = {0, 1, 2, 2, 7, 3, 11, 10, 0, 11, 5, 6};
    for (size_t i = 0; i < TD_COUNT_OF(codecs); i++) {
        char *path = make_video(codecs[i], NULL, 0, 12);
        TD_AUTO(td_media_video_decoder) *decoder = NULL;
        assert_int_equal(td_media_video_decoder_open(path, &decoder, NULL),
                         TD_OK);
        for (size_t k = 0; k < TD_COUNT_OF(order); k++) {
            assert_int_equal(
                td_media_video_decoder_picture(
                    decoder, order[k] / (double)VIDEO_FPS, decoded, NULL),
                TD_OK);
            draw_picture(picture, order[k]);
            assert_true(mean_difference(picture, decoded) < 3);
        }
        remove_video(path);
    }
}

static void a_time_between_pictures_has_none(void **state)
{
    (void)state;
    static const double times_s[] = {-0.1,     0.0002, 0.0165,
                                     4 / 30.0, 1e9,    1e300};
    char *path = make_video(TD_MEDIA_CODEC_H264, NULL, 0, 4);
    TD_AUTO(td_media_video_decoder) *decoder = NULL;
    assert_int_equal(td_media_video_decoder_open(path, &decoder, NULL), TD_OK);
    for (size_t i = 0; i < TD_COUNT_OF(times_s); i++)
        assert_int_equal(
            td_media_video_decoder_picture(decoder, times_s[i], decoded, NULL),
            TD_ERR_NOTFOUND);
    assert_int_equal(td_media_video_decoder_picture(decoder, 1 / 30.0 + 0.9e-4,
                                                    decoded, NULL),
                     TD_OK);
    remove_video(path);
}

// What a full decode of the JPEG has at those places.
static void check_picked(const td_media_video_encoder *encoder,
                         const uint8_t *rgb)
{
    const uint8_t *picked = td_media_video_encoder_picked(encoder);
    size_t at = 0;
    for (size_t y = 0; y < VIDEO_HEIGHT; y += STEP)
        for (size_t x = 0; x < VIDEO_WIDTH; x += STEP, at += 3)
            assert_memory_equal(picked + at, rgb + (y * VIDEO_WIDTH + x) * 3,
                                3);
    assert_int_equal(at, PICKED);
}

static void picked_pixels_are_those_of_the_decoded_picture(void **state)
{
    (void)state;
    static const td_media_chroma chromas[] = {
        TD_MEDIA_CHROMA_420, TD_MEDIA_CHROMA_422, TD_MEDIA_CHROMA_444};
    TD_AUTO(td_media_jpeg_decoder) *decoder = NULL;
    TD_AUTO(td_media_video_encoder) *encoder =
        open_encoder(TD_MEDIA_CODEC_H264, &kept);
    assert_int_equal(td_media_jpeg_decoder_new(&decoder), TD_OK);
    for (int i = 0; i < VIDEO_BYTES; i++)
        picture[i] = (uint8_t)(i * 2654435761u >> 24);
    for (size_t i = 0; i < TD_COUNT_OF(chromas); i++) {
        TD_AUTO(td_media_jpeg_encoder) *jpegs = NULL;
        td_slice jpeg = {NULL, 0};
        assert_int_equal(td_media_jpeg_encoder_new(90, chromas[i], &jpegs),
                         TD_OK);
        assert_int_equal(td_media_jpeg_encode(jpegs, picture, VIDEO_HEIGHT,
                                              VIDEO_WIDTH, &jpeg, NULL),
                         TD_OK);
        assert_int_equal(td_media_jpeg_decode(decoder, jpeg, VIDEO_HEIGHT,
                                              VIDEO_WIDTH, decoded, NULL),
                         TD_OK);
        assert_int_equal(td_media_video_encoder_add_jpeg(encoder, jpeg, NULL),
                         TD_OK);
        check_picked(encoder, decoded);
    }
    assert_int_equal(td_media_video_encoder_add_rgb(encoder, picture, NULL),
                     TD_OK);
    check_picked(encoder, picture);
}

// A black one, a JPEG, a damaged one (which is not added), the JPEG again.
static void add_story(td_media_video_encoder *encoder, td_slice jpeg)
{
    td_slice cut = {jpeg.data, jpeg.size / 2};
    td_errinfo info = {""};
    assert_int_equal(td_media_video_encoder_repeat(encoder, NULL), TD_OK);
    assert_int_equal(td_media_video_encoder_picked(encoder)[0], 0);
    assert_int_equal(td_media_video_encoder_add_jpeg(encoder, jpeg, NULL),
                     TD_OK);
    assert_int_equal(td_media_video_encoder_add_jpeg(encoder, cut, &info),
                     TD_ERR_FORMAT);
    assert_non_null(strstr(info.text, "damaged JPEG"));
    assert_int_equal(td_media_video_encoder_repeat(encoder, NULL), TD_OK);
    assert_int_equal(td_media_video_encoder_end(encoder, NULL), TD_OK);
    assert_int_equal(td_media_video_encoder_repeat(encoder, NULL),
                     TD_ERR_CLOSED);
}

static void a_damaged_picture_leaves_the_last_one_to_repeat(void **state)
{
    (void)state;
    TD_AUTO(td_media_jpeg_encoder) *jpegs = NULL;
    TD_AUTO(td_media_video_decoder) *decoder = NULL;
    td_media_video_encoder *encoder = open_encoder(TD_MEDIA_CODEC_AV1, &kept);
    char path[] = "/tmp/td-video-XXXXXX";
    int fd = mkstemp(path);
    uint64_t frames = 0;
    td_slice jpeg = {NULL, 0};
    draw_picture(picture, 20);
    assert_int_equal(td_media_jpeg_encoder_new(95, TD_MEDIA_CHROMA_420, &jpegs),
                     TD_OK);
    assert_int_equal(td_media_jpeg_encode(jpegs, picture, VIDEO_HEIGHT,
                                          VIDEO_WIDTH, &jpeg, NULL),
                     TD_OK);
    add_story(encoder, jpeg);
    assert_int_equal(td_media_video_join(NULL,
                                         td_media_video_encoder_params(encoder),
                                         next_packet, &kept, fd, &frames, NULL),
                     TD_OK);
    assert_int_equal(frames, 3);
    assert_int_equal(td_media_video_decoder_open(path, &decoder, NULL), TD_OK);
    static const uint8_t black[VIDEO_BYTES];
    for (int k = 0; k < 3; k++) {
        assert_int_equal(
            td_media_video_decoder_picture(decoder, k / 30.0, decoded, NULL),
            TD_OK);
        assert_true(mean_difference(k == 0 ? black : picture, decoded) < 3);
    }
    td_media_video_encoder_close(encoder);
    close(fd);
    unlink(path);
}

static void what_cannot_be_encoded_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t height, width, fps;
        td_err err;
    } cases[] = {
        {"no height", 0, 64, 30, TD_ERR_LIMIT},
        {"a huge one", 9000, 64, 30, TD_ERR_LIMIT},
        {"an odd width", 64, 65, 30, TD_ERR_UNSUPPORTED},
        {"no time", 64, 64, 0, TD_ERR_INVALID},
        {"too fast", 64, 64, 1001, TD_ERR_INVALID},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_media_video_encoder *encoder = NULL;
        td_errinfo info = {""};
        const td_media_video_encoder_config config = {
            .codec = TD_MEDIA_CODEC_AV1,
            .height = cases[i].height,
            .width = cases[i].width,
            .fps = cases[i].fps,
            .sink = keep_packet,
            .user = &kept,
        };
        td_err err = td_media_video_encoder_open(&config, &encoder, &info);
        if (err != cases[i].err || info.text[0] == '\0')
            fail_msg("%s: %s, \"%s\"", cases[i].name, td_err_name(err),
                     info.text);
        assert_null(encoder);
    }
}

static int refused;

static td_err refuse_packet(void *user, const td_media_video_packet *packet,
                            td_errinfo *info)
{
    (void)user, (void)packet;
    refused++;
    return td_fail(info, TD_ERR_FULL, "no room in the journal");
}

static td_media_video_encoder *open_refused(td_media_codec codec)
{
    td_media_video_encoder *encoder = NULL;
    const td_media_video_encoder_config config = {
        .codec = codec,
        .height = VIDEO_HEIGHT,
        .width = VIDEO_WIDTH,
        .fps = VIDEO_FPS,
        .sink = refuse_packet,
    };
    assert_int_equal(td_media_video_encoder_open(&config, &encoder, NULL),
                     TD_OK);
    return encoder;
}

static void an_error_of_the_sink_comes_back(void **state)
{
    (void)state;
    TD_AUTO(td_media_video_encoder) *encoder =
        open_refused(TD_MEDIA_CODEC_H264);
    td_errinfo info = {""};
    draw_picture(picture, 0);
    assert_int_equal(td_media_video_encoder_add_rgb(encoder, picture, &info),
                     TD_ERR_FULL);
    assert_string_equal(info.text, "no room in the journal");
}

// AV1's packets come when its threads have them: with a picture or with the
// end. Those behind a refused one are still in the encoder, which must let go
// of them.
static void an_encoder_whose_packets_are_refused_can_be_closed(void **state)
{
    (void)state;
    td_media_video_encoder *encoder = open_refused(TD_MEDIA_CODEC_AV1);
    refused = 0;
    int failed = 0;
    for (int k = 0; k < 12; k++) {
        draw_picture(picture, k);
        failed += td_media_video_encoder_add_rgb(encoder, picture, NULL) ==
                  TD_ERR_FULL;
    }
    failed += td_media_video_encoder_end(encoder, NULL) == TD_ERR_FULL;
    assert_true(refused > 0);
    assert_int_equal(failed, refused);
    td_media_video_encoder_close(encoder);
}

// As root SVT-AV1 would make them real-time threads above all others.
static void the_encoders_threads_are_ordinary_ones(void **state)
{
    (void)state;
    TD_AUTO(td_media_video_encoder) *encoder =
        open_encoder(TD_MEDIA_CODEC_AV1, &kept);
    DIR *threads = opendir("/proc/self/task");
    int count = 0, ours = sched_getscheduler(0);
    assert_non_null(threads);
    for (struct dirent *entry; (entry = readdir(threads));) {
        int id = (int)strtol(entry->d_name, NULL, 10);
        if (id == 0) continue;
        assert_int_equal(sched_getscheduler(id), ours);
        count++;
    }
    closedir(threads);
    assert_true(count > 1);
    assert_non_null(encoder);
}

static void a_file_of_other_settings_is_not_joined_to(void **state)
{
    (void)state;
    char *path = make_video(TD_MEDIA_CODEC_H264, NULL, 0, 3);
    td_media_video_encoder *encoder = open_encoder(TD_MEDIA_CODEC_AV1, &kept);
    td_media_video_params params = *td_media_video_encoder_params(encoder);
    td_errinfo info = {""};
    uint64_t frames = 0;
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    add(encoder, 0);
    assert_int_equal(td_media_video_encoder_end(encoder, NULL), TD_OK);
    assert_int_equal(td_media_video_join(path, &params, next_packet, &kept, fd,
                                         &frames, &info),
                     TD_ERR_MISMATCH);
    assert_non_null(strstr(info.text, "h264"));
    close(fd);
    td_media_video_encoder_close(encoder);
    remove_video(path);
}

static void a_full_disk_is_said(void **state)
{
    (void)state;
    td_media_video_encoder *encoder = open_encoder(TD_MEDIA_CODEC_H264, &kept);
    td_errinfo info = {""};
    uint64_t frames = 0;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (int k = 0; k < 5; k++)
        add(encoder, k);
    assert_int_equal(td_media_video_encoder_end(encoder, NULL), TD_OK);
    assert_int_equal(
        td_media_video_join(NULL, td_media_video_encoder_params(encoder),
                            next_packet, &kept, fd, &frames, &info),
        TD_ERR_FULL);
    close(fd);
    td_media_video_encoder_close(encoder);
}

static td_slice read_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = lseek(fd, 0, SEEK_END);
    assert_true(size > 0);
    void *bytes = malloc((size_t)size);
    assert_non_null(bytes);
    assert_int_equal(pread(fd, bytes, (size_t)size, 0), size);
    close(fd);
    return (td_slice){bytes, (size_t)size};
}

// Opens it and reads every picture: how that ends.
static td_err try_file(td_slice file, td_errinfo *info)
{
    TD_AUTO(td_media_video_decoder) *decoder = NULL;
    TD_TRY(td_media_video_decoder_open_memory(file, &decoder, info));
    for (int k = 0; k < 6; k++)
        TD_TRY(
            td_media_video_decoder_picture(decoder, k / 30.0, decoded, info));
    return TD_OK;
}

static void a_file_cut_anywhere_is_refused_in_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(codecs); i++) {
        char *path = make_video(codecs[i], NULL, 0, 6);
        td_slice file = read_file(path);
        assert_int_equal(try_file(file, NULL), TD_OK);
        for (size_t size = 0; size < file.size; size++) {
            td_errinfo info = {""};
            td_slice cut = {file.data, size};
            assert_int_equal(try_file(cut, &info), TD_ERR_FORMAT);
            assert_non_null(strstr(info.text, "cut short"));
        }
        free((void *)(uintptr_t)file.data);
        remove_video(path);
    }
}

static uint8_t *find_box(td_slice file, const char *name)
{
    uint8_t *at = memmem(file.data, file.size, name, 4);
    assert_non_null(at);
    return at;
}

static void what_a_file_claims_is_held_against_limits(void **state)
{
    (void)state;
    static const struct {
        const char *box;
        size_t at; // from the box's name
        uint8_t bytes[4];
        td_err err;
        const char *words;
    } cases[] = {
        {"stsz", 12, {0x7f, 0, 0, 0}, TD_ERR_LIMIT, "samples in a file"},
        {"moov", 0, {'m', 'o', 'o', 'f'}, TD_ERR_UNSUPPORTED, "fragments"},
        {"moov", 0, {'n', 'o', 'n', 'e'}, TD_ERR_FORMAT, "no index"},
        {"mdat", 0, {'f', 'r', 'e', 'e'}, TD_OK, ""},
        {"stsd", 44, {0x40, 0, 0x40, 0}, TD_ERR_LIMIT, "at most"},
        {"stsd", 16, {'v', 'p', '0', '9'}, TD_ERR_UNSUPPORTED, "vp9"},
        {"trak", 0, {'n', 'o', 'n', 'e'}, TD_ERR_FORMAT, "no video"},
    };
    char *path = make_video(TD_MEDIA_CODEC_AV1, NULL, 0, 6);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_slice file = read_file(path);
        td_errinfo info = {""};
        uint8_t *at = find_box(file, cases[i].box);
        memcpy(at + cases[i].at, cases[i].bytes, 4);
        td_err err = try_file(file, &info);
        if (err != cases[i].err || !strstr(info.text, cases[i].words))
            fail_msg("%s: %s, \"%s\"", cases[i].box, td_err_name(err),
                     info.text);
        free((void *)(uintptr_t)file.data);
    }
    remove_video(path);
}

static void a_file_that_is_not_there_is_said(void **state)
{
    (void)state;
    td_media_video_decoder *decoder = NULL;
    td_errinfo info = {""};
    assert_int_equal(
        td_media_video_decoder_open("/nowhere/at.mp4", &decoder, &info),
        TD_ERR_NOTFOUND);
    assert_non_null(strstr(info.text, "/nowhere/at.mp4"));
    assert_int_equal(td_media_video_decoder_open("/tmp", &decoder, &info),
                     TD_ERR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_codec_is_found_by_its_name),
        cmocka_unit_test_teardown(each_picture_gives_one_packet_in_order,
                                  teardown),
        cmocka_unit_test(a_joined_file_has_every_picture_at_its_time),
        cmocka_unit_test(pictures_are_found_forwards_and_backwards),
        cmocka_unit_test(a_time_between_pictures_has_none),
        cmocka_unit_test_teardown(
            picked_pixels_are_those_of_the_decoded_picture, teardown),
        cmocka_unit_test_teardown(
            a_damaged_picture_leaves_the_last_one_to_repeat, teardown),
        cmocka_unit_test(what_cannot_be_encoded_is_refused),
        cmocka_unit_test(an_error_of_the_sink_comes_back),
        cmocka_unit_test(an_encoder_whose_packets_are_refused_can_be_closed),
        cmocka_unit_test_teardown(the_encoders_threads_are_ordinary_ones,
                                  teardown),
        cmocka_unit_test_teardown(a_file_of_other_settings_is_not_joined_to,
                                  teardown),
        cmocka_unit_test_teardown(a_full_disk_is_said, teardown),
        cmocka_unit_test(a_file_cut_anywhere_is_refused_in_words),
        cmocka_unit_test(what_a_file_claims_is_held_against_limits),
        cmocka_unit_test(a_file_that_is_not_there_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

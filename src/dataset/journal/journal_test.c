// SPDX-License-Identifier: Apache-2.0
#include "dataset/journal/journal.h"
#include "dataset/journal/unsaved.h"

#include "dataset/disk/sync_fixture.h"

enum { FRAMES = 6, CAMERAS = 2, MOST_PIXELS = 128 };

static const td_dataset_camera cameras[CAMERAS] = {{"front", 4, 6},
                                                   {"wrist", 2, 2}};
static const char *const state_names[] = {"a.pos", "b.pos", "c.pos"};
static const char *const action_names[] = {"a.pos", "b.pos"};
static const td_dataset_schema schema = {
    .fps = 30,
    .robot_type = "arm",
    .codec = TD_MEDIA_CODEC_H264,
    .state = state_names,
    .state_count = TD_COUNT_OF(state_names),
    .action = action_names,
    .action_count = TD_COUNT_OF(action_names),
    .cameras = cameras,
    .camera_count = CAMERAS,
};

static const char *task_of(uint32_t frame)
{
    return frame == 2 || frame == 3 ? "put it down" : "pick it up";
}

static void add_row(td_dataset_journal *journal, uint32_t i)
{
    float state[] = {(float)i, (float)i + 0.25f, -1};
    float action[] = {(float)i + 0.5f, 7};
    td_dataset_journal_row row = {.missing = i == 1,
                                  .chunk = (int64_t)i * 10,
                                  .step = i,
                                  .age_s = 0.5f * (float)i,
                                  .held = i == 2,
                                  .clamped = i == 3,
                                  .failsafe = i == 4};
    if (i == 0 || strcmp(task_of(i), task_of(i - 1)) != 0)
        ok(td_dataset_journal_task_add(journal, task_of(i), &why));
    ok(td_dataset_journal_row_add(journal, &row, state, action, &why));
}

static void add_camera(td_dataset_journal *journal, uint32_t camera, uint32_t i)
{
    uint8_t pixels[MOST_PIXELS];
    size_t pixel_bytes = td_dataset_journal_pixel_bytes(&cameras[camera]);
    char data[32];
    memset(pixels, (int)(camera * 100 + i), sizeof pixels);
    ok(td_dataset_journal_pixels_add(journal, camera,
                                     (td_slice){pixels, pixel_bytes}, &why));
    int size = snprintf(data, sizeof data, "packet %u of %u", i, camera);
    td_media_video_packet packet = {
        .data = {data, (size_t)size}, .frame = i, .key = i % 2 == 0};
    ok(td_dataset_journal_packet_add(journal, camera, &packet, &why));
}

static td_dataset_disk_path folder(void)
{
    return at_home("episode");
}

static td_dataset_journal *entry(void)
{
    td_dataset_journal *journal = NULL;
    ok(td_dataset_journal_new(folder().text, &schema, &journal, &why));
    for (uint32_t k = 0; k < CAMERAS; k++)
        ok(td_dataset_journal_video_begin(journal, k, (td_slice){"head", 4},
                                          &why));
    for (uint32_t i = 0; i < FRAMES; i++) {
        add_row(journal, i);
        for (uint32_t k = 0; k < CAMERAS; k++)
            add_camera(journal, k, i);
    }
    return journal;
}

static void assert_camera(const td_dataset_unsaved *unsaved, uint32_t k)
{
    char data[32];
    td_slice pixels;
    td_media_video_packet packet;
    TD_AUTO(td_dataset_unsaved_camera) *camera = NULL;
    ok(td_dataset_unsaved_camera_open(unsaved, k, &camera, &why));
    const td_media_video_params *params =
        td_dataset_unsaved_camera_params(camera);
    assert_int_equal(params->codec, schema.codec);
    assert_int_equal(params->width, cameras[k].width);
    assert_int_equal(params->head.size, 4);
    for (uint32_t i = 0; i < unsaved->frames; i++) {
        ok(td_dataset_unsaved_packet(camera, &packet, &why));
        ok(td_dataset_unsaved_pixels(camera, i, &pixels, &why));
        int size = snprintf(data, sizeof data, "packet %u of %u", i, k);
        assert_int_equal(packet.frame, i);
        assert_int_equal(packet.key, i % 2 == 0);
        assert_int_equal(packet.data.size, size);
        assert_memory_equal(packet.data.data, data, (size_t)size);
        assert_int_equal(pixels.size,
                         td_dataset_journal_pixel_bytes(&cameras[k]));
        assert_int_equal(((const uint8_t *)pixels.data)[0], k * 100 + i);
    }
    assert_int_equal(td_dataset_unsaved_packet(camera, &packet, &why),
                     TD_ERR_EMPTY);
    assert_int_equal(
        td_dataset_unsaved_pixels(camera, unsaved->frames, &pixels, &why),
        TD_ERR_FORMAT);
}

static void assert_episode(const td_dataset_unsaved *unsaved)
{
    for (size_t i = 0; i < unsaved->frames; i++) {
        assert_true(unsaved->state[i * 3] == (float)i);
        assert_true(unsaved->state[i * 3 + 1] == (float)i + 0.25f);
        assert_true(unsaved->action[i * 2] == (float)i + 0.5f);
        assert_int_equal(unsaved->missing[i], i == 1);
        assert_int_equal(unsaved->chunk[i], i * 10);
        assert_int_equal(unsaved->step[i], i);
        assert_true(unsaved->age_s[i] == 0.5f * (float)i);
        assert_int_equal(unsaved->held[i], i == 2);
        assert_int_equal(unsaved->clamped[i], i == 3);
        assert_int_equal(unsaved->failsafe[i], i == 4);
        assert_string_equal(unsaved->tasks[unsaved->task[i]],
                            task_of((uint32_t)i));
    }
    if (unsaved->frames == 0) return;
    for (uint32_t k = 0; k < CAMERAS; k++)
        assert_camera(unsaved, k);
}

static uint32_t frames_there(void)
{
    TD_AUTO(td_dataset_unsaved) *unsaved = NULL;
    ok(td_dataset_unsaved_load(folder().text, false, NULL, &unsaved, &why));
    assert_episode(unsaved);
    return unsaved->frames;
}

static void an_episode_comes_back_as_it_was_written(void **state)
{
    (void)state;
    TD_AUTO(td_dataset_journal) *journal = entry();
    TD_AUTO(td_dataset_unsaved) *unsaved = NULL;
    ok(td_dataset_unsaved_load(folder().text, false, NULL, &unsaved, &why));
    assert_int_equal(unsaved->frames, FRAMES);
    assert_false(unsaved->ended);
    assert_int_equal(unsaved->task_count, 2); // the first one came back
    assert_string_equal(unsaved->schema->robot_type, "arm");
    assert_string_equal(unsaved->schema->state[2], "c.pos");
    assert_string_equal(unsaved->schema->cameras[1].name, "wrist");
    assert_episode(unsaved);
}

// A file cut at every byte, from its end to `least`, where nothing is left.
static void cut(const char *name, off_t least)
{
    td_dataset_journal_close(entry());
    td_dataset_disk_path file;
    struct stat found;
    ok(td_dataset_disk_join(folder().text, name, &file, &why));
    assert_int_equal(stat(file.text, &found), 0);
    uint32_t before = FRAMES;
    for (off_t size = found.st_size; size >= least; size--) {
        assert_int_equal(truncate(file.text, size), 0);
        uint32_t there = frames_there();
        assert_true(there == before || there + 1 == before);
        assert_true(size == found.st_size || there < FRAMES);
        before = there;
    }
    assert_int_equal(before, 0);
    ok(td_dataset_disk_remove(folder().text, &why));
}

static off_t head_bytes(void)
{
    td_dataset_journal *journal = NULL;
    ok(td_dataset_journal_new(folder().text, &schema, &journal, &why));
    off_t size = (off_t)td_dataset_journal_bytes(journal);
    td_dataset_journal_close(journal);
    ok(td_dataset_disk_remove(folder().text, &why));
    return size;
}

static void a_cut_anywhere_costs_only_the_frames_behind_it(void **state)
{
    (void)state;
    cut("rows", head_bytes());
    cut("0.video", 0);
    cut("1.video", 0);
    cut("0.pixels", 0);
    cut("1.pixels", 0);
}

static void a_journal_without_a_beginning_is_refused(void **state)
{
    (void)state;
    TD_AUTO(td_dataset_unsaved) *unsaved = NULL;
    off_t size = head_bytes();
    td_dataset_journal_close(entry());
    td_dataset_disk_path rows = at_home("episode/rows");
    assert_int_equal(truncate(rows.text, size - 1), 0);
    assert_int_equal(
        td_dataset_unsaved_load(folder().text, false, NULL, &unsaved, &why),
        TD_ERR_FORMAT);
    assert_int_equal(truncate(rows.text, 0), 0);
    assert_int_equal(
        td_dataset_unsaved_load(folder().text, false, NULL, &unsaved, &why),
        TD_ERR_FORMAT);
    assert_int_equal(td_dataset_journal_seal(folder().text, 3, &why),
                     TD_ERR_FORMAT);
}

static void the_end_says_which_episode_it_is(void **state)
{
    (void)state;
    TD_AUTO(td_dataset_journal) *journal = entry();
    TD_AUTO(td_dataset_unsaved) *unsaved = NULL;
    ok(td_dataset_journal_end(journal, 41, &why));
    ok(td_dataset_unsaved_load(folder().text, false, NULL, &unsaved, &why));
    assert_true(unsaved->ended);
    assert_int_equal(unsaved->number, 41);
    assert_int_equal(unsaved->frames, FRAMES);
}

static void a_torn_journal_can_be_sealed(void **state)
{
    (void)state;
    struct stat found;
    TD_AUTO(td_dataset_unsaved) *unsaved = NULL;
    td_dataset_journal_close(entry());
    td_dataset_disk_path rows = at_home("episode/rows");
    assert_int_equal(stat(rows.text, &found), 0);
    assert_int_equal(truncate(rows.text, found.st_size - 3), 0);
    ok(td_dataset_journal_seal(folder().text, 7, &why));
    ok(td_dataset_unsaved_load(folder().text, false, NULL, &unsaved, &why));
    assert_true(unsaved->ended);
    assert_int_equal(unsaved->number, 7);
    assert_int_equal(unsaved->frames, FRAMES - 1);
    assert_episode(unsaved);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_home, remove_home)

static void a_power_cut_leaves_a_journal_its_name(void **state)
{
    (void)state;
    td_dataset_journal *journal = NULL;
    ok(td_dataset_journal_new(folder().text, &schema, &journal, &why));
    assert_true(is_synced(home, 0));
    assert_true(is_synced(folder().text, 0));
    td_dataset_journal_close(journal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_episode_comes_back_as_it_was_written),
        TEST(a_cut_anywhere_costs_only_the_frames_behind_it),
        TEST(a_journal_without_a_beginning_is_refused),
        TEST(the_end_says_which_episode_it_is),
        TEST(a_torn_journal_can_be_sealed),
        TEST(a_power_cut_leaves_a_journal_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "dataset/disk/staging.h"
#include "dataset/journal/entries.h"
#include "dataset/journal/journal.h"
#include "dataset/read/reader.h"
#include "dataset/verify/verify.h"
#include "dataset/write/save.h"
#include "dataset/write/writer.h"

#include "dataset/disk/sync_fixture.h"

#include <math.h>

enum { SIDE = 64, CHANNELS = 2 };

static const char *const names[CHANNELS] = {"a.pos", "b.pos"};
static const td_dataset_camera cameras[] = {{"front", SIDE, SIDE}};
static uint8_t rgb[SIDE * SIDE * 3];

static td_dataset_writer_config config_of(const char *folder)
{
    return (td_dataset_writer_config){
        .folder = folder,
        .schema = {.fps = 30,
                   .robot_type = "arm",
                   .codec = TD_MEDIA_CODEC_H264,
                   .state = names,
                   .state_count = CHANNELS,
                   .action = names,
                   .action_count = CHANNELS,
                   .cameras = cameras,
                   .camera_count = TD_COUNT_OF(cameras)},
        .reserve_bytes = 1,
    };
}

static td_dataset_disk_path folder(void)
{
    return at_home("arm");
}

static td_dataset_writer *open_writer(void)
{
    td_dataset_writer *writer = NULL;
    td_dataset_disk_path path = folder();
    td_dataset_writer_config config = config_of(path.text);
    ok(td_dataset_writer_open(&config, &writer, &why));
    return writer;
}

static const td_dataset_image picture = {TD_DATASET_IMAGE_RGB,
                                         {rgb, sizeof rgb}};
static const td_dataset_image none = {TD_DATASET_IMAGE_MISSING, {NULL, 0}};

static td_err add(td_dataset_writer *writer, float value, const char *task,
                  const td_dataset_image *image)
{
    const float state[CHANNELS] = {value, value + 0.5f};
    const float action[CHANNELS] = {-value, 1};
    const td_dataset_frame frame = {
        .task = task,
        .state = state,
        .action = action,
        .images = image,
        .done = {.age_s = 0.25f, .chunk = 3, .step = (int64_t)value},
    };
    return td_dataset_writer_add(writer, &frame, &why);
}

static uint32_t record(td_dataset_writer *writer, uint32_t frames,
                       const char *task)
{
    uint32_t number = 0;
    ok(td_dataset_writer_begin(writer, &why));
    for (uint32_t i = 0; i < frames; i++) {
        memset(rgb, (int)(i * 20), sizeof rgb);
        ok(add(writer, (float)i, task, &picture));
    }
    ok(td_dataset_writer_end(writer, &number, &why));
    return number;
}

static td_dataset_reader *open_reader(void)
{
    td_dataset_reader *reader = NULL;
    ok(td_dataset_reader_open(folder().text, &reader, &why));
    return reader;
}

static void on_fault(void *user, const td_dataset_fault *fault)
{
    (void)user;
    print_message("%s: %s\n", fault->file, fault->what);
}

static void assert_sound(void)
{
    uint32_t faults = 0;
    const td_dataset_verify_hooks hooks = {.fault = on_fault};
    ok(td_dataset_verify(folder().text, &hooks, &faults, &why));
    assert_int_equal(faults, 0);
}

static int64_t whole_at(td_dataset_reader *reader, uint64_t row,
                        const char *key)
{
    td_dataset_reading at;
    td_dataset_type type;
    const void *values = NULL;
    size_t count = 0;
    ok(td_dataset_reader_seek(reader, row, &at, &why));
    ok(td_dataset_reader_values(reader, key, &type, &values, &count));
    assert_int_equal(type, TD_DATASET_I64);
    assert_int_equal(count, 1);
    return *(const int64_t *)values;
}

static float state_at(td_dataset_reader *reader, uint64_t row)
{
    td_dataset_reading at;
    float state[CHANNELS];
    ok(td_dataset_reader_seek(reader, row, &at, &why));
    ok(td_dataset_reader_floats(reader, "observation.state", CHANNELS, state));
    return state[0];
}

static void finished_episodes_are_in_the_dataset(void **state)
{
    (void)state;
    td_dataset_writer *writer = open_writer();
    assert_int_equal(record(writer, 3, "pick"), 0);
    assert_int_equal(record(writer, 2, "place"), 1);
    assert_int_equal(record(writer, 1, "pick"), 2);
    assert_int_equal(td_dataset_writer_report(writer).episodes, 3);
    assert_int_equal(td_dataset_writer_report(writer).total_frames, 6);
    td_dataset_writer_close(writer);
    assert_sound();
    TD_AUTO(td_dataset_reader) *reader = open_reader();
    assert_int_equal(td_dataset_reader_tasks(reader)->count, 2);
    assert_int_equal(whole_at(reader, 4, "task_index"), 1);
    assert_int_equal(whole_at(reader, 4, "tendon.chunk"), 3);
    assert_true(state_at(reader, 2) == 2);
    assert_true(state_at(reader, 5) == 0);
}

static void an_open_episode_is_not_in_the_dataset(void **state)
{
    (void)state;
    TD_AUTO(td_dataset_writer) *writer = open_writer();
    ok(td_dataset_writer_begin(writer, &why));
    ok(add(writer, 1, "pick", &picture));
    assert_false(td_dataset_disk_exists(folder().text));
    assert_true(td_dataset_writer_report(writer).recording);
    assert_true(td_dataset_writer_report(writer).bytes > 0);
    assert_int_equal(td_dataset_writer_begin(writer, &why), TD_ERR_BUSY);
    ok(td_dataset_writer_discard(writer, &why));
    assert_int_equal(record(writer, 1, "pick"), 0);
}

static uint64_t file_bytes(const char *name)
{
    struct stat found;
    td_dataset_disk_path path = at_home(".arm.recording/episode");
    ok(td_dataset_disk_join(path.text, name, &path, &why));
    assert_int_equal(stat(path.text, &found), 0);
    return (uint64_t)found.st_size;
}

// The pixels alone are only in the journal.
static void an_episode_takes_the_room_of_its_end_too(void **state)
{
    (void)state;
    TD_AUTO(td_dataset_writer) *writer = open_writer();
    ok(td_dataset_writer_begin(writer, &why));
    ok(add(writer, 1, "pick", &picture));
    ok(add(writer, 2, "pick", &picture));
    uint64_t kept = file_bytes("rows") + file_bytes("0.video");
    assert_int_equal(td_dataset_writer_report(writer).bytes,
                     2 * kept + file_bytes("0.pixels"));
}

static void a_power_cut_does_not_bring_back_what_was_discarded(void **state)
{
    (void)state;
    TD_AUTO(td_dataset_writer) *writer = open_writer();
    ok(td_dataset_writer_begin(writer, &why));
    ok(add(writer, 1, "pick", &picture));
    size_t before = synced_count;
    ok(td_dataset_writer_discard(writer, &why));
    assert_true(is_synced(at_home(".arm.recording").text, before));
}

static void calls_out_of_order_are_refused(void **state)
{
    (void)state;
    uint32_t number = 9;
    TD_AUTO(td_dataset_writer) *writer = open_writer();
    assert_int_equal(add(writer, 1, "pick", &picture), TD_ERR_INVALID);
    assert_int_equal(td_dataset_writer_end(writer, &number, &why),
                     TD_ERR_INVALID);
    ok(td_dataset_writer_discard(writer, &why));
    ok(td_dataset_writer_begin(writer, &why));
    assert_int_equal(add(writer, 1, "", &picture), TD_ERR_INVALID);
    assert_int_equal(td_dataset_writer_end(writer, &number, &why),
                     TD_ERR_EMPTY);
    assert_int_equal(number, 9);
    assert_int_equal(record(writer, 1, "pick"), 0);
}

static void a_resumed_dataset_goes_on_in_new_files(void **state)
{
    (void)state;
    td_dataset_writer *writer = open_writer();
    (void)record(writer, 3, "pick");
    (void)record(writer, 3, "pick");
    td_dataset_writer_close(writer);
    writer = open_writer();
    assert_int_equal(record(writer, 2, "place"), 2);
    td_dataset_writer_close(writer);
    assert_sound();
    TD_AUTO(td_dataset_reader) *reader = open_reader();
    const td_dataset_episode *items = td_dataset_reader_episodes(reader)->items;
    assert_int_equal(items[1].data.file, 0);
    assert_int_equal(items[2].data.file, 1);
    assert_int_equal(items[2].meta.file, 1);
    assert_int_equal(items[2].videos[0].at.file, 1);
    assert_true(items[1].videos[0].from_s > 0.09);
    assert_true(items[2].videos[0].from_s == 0);
    assert_int_equal(td_dataset_reader_tasks(reader)->count, 2);
}

static void a_file_in_the_way_is_not_replaced(void **state)
{
    (void)state;
    static const char *const strays[] = {
        "arm/data/chunk-000/file-001.parquet",
        "arm/videos/observation.images.front/chunk-000/file-001.mp4",
    };
    td_dataset_disk_path path = folder();
    td_dataset_writer_config config = config_of(path.text);
    td_dataset_writer *writer = open_writer();
    (void)record(writer, 1, "pick");
    td_dataset_writer_close(writer);
    for (size_t i = 0; i < TD_COUNT_OF(strays); i++) {
        td_dataset_disk_path stray = at_home(strays[i]);
        write_text(stray.text, "mine");
        assert_int_equal(td_dataset_writer_open(&config, &writer, &why),
                         TD_ERR_EXISTS);
        assert_non_null(strstr(why.text, stray.text));
        assert_text(stray.text, "mine");
        ok(td_dataset_disk_remove(stray.text, &why));
    }
    writer = open_writer();
    assert_int_equal(record(writer, 1, "pick"), 1);
    td_dataset_writer_close(writer);
}

static void a_missing_picture_is_repeated_and_marked(void **state)
{
    (void)state;
    static const td_dataset_image bad = {TD_DATASET_IMAGE_JPEG, {"no", 2}};
    static const td_dataset_image small = {TD_DATASET_IMAGE_RGB, {rgb, 12}};
    const td_dataset_image *images[] = {&none, &picture, &none, &bad, &small};
    uint32_t number = 0;
    uint8_t shown[SIDE * SIDE * 3];
    td_dataset_writer *writer = open_writer();
    memset(rgb, 200, sizeof rgb);
    ok(td_dataset_writer_begin(writer, &why));
    for (size_t i = 0; i < TD_COUNT_OF(images); i++)
        ok(add(writer, 1, "pick", images[i]));
    ok(td_dataset_writer_end(writer, &number, &why));
    assert_int_equal(td_dataset_writer_report(writer).missing[0], 4);
    assert_int_equal(td_dataset_writer_report(writer).bad[0], 2);
    td_dataset_writer_close(writer);
    assert_sound();
    TD_AUTO(td_dataset_reader) *reader = open_reader();
    for (uint64_t i = 0; i < TD_COUNT_OF(images); i++) {
        assert_int_equal(whole_at(reader, i, "tendon.missing"), i != 1);
        ok(td_dataset_reader_picture(reader, "observation.images.front", shown,
                                     &why));
        assert_in_range(shown[sizeof shown / 3], i ? 190 : 0, i ? 210 : 8);
    }
}

static void a_lost_row_is_repeated_and_marked(void **state)
{
    (void)state;
    uint32_t number = 0;
    const float values[CHANNELS] = {5, 5};
    td_dataset_writer *writer = open_writer();
    ok(td_dataset_writer_begin(writer, &why));
    ok(add(writer, 1, "pick", &picture));
    ok(add(writer, NAN, "pick", &picture));
    const td_dataset_frame lost = {.task = "pick",
                                   .state = values,
                                   .action = values,
                                   .lost = true,
                                   .images = &picture};
    ok(td_dataset_writer_add(writer, &lost, &why));
    ok(td_dataset_writer_end(writer, &number, &why));
    td_dataset_writer_close(writer);
    assert_sound();
    TD_AUTO(td_dataset_reader) *reader = open_reader();
    for (uint64_t i = 0; i < 3; i++) {
        assert_true(state_at(reader, i) == 1);
        assert_int_equal(whole_at(reader, i, "tendon.missing"),
                         i ? TD_DATASET_MISSING_ROW : 0);
    }
}

static void on_saved(void *user, uint32_t episode, uint32_t frames)
{
    uint32_t *saved = user;
    saved[0] = episode;
    saved[1] = frames;
}

static void on_dropped(void *user)
{
    uint32_t *saved = user;
    saved[2]++;
}

static void on_left(void *user, const char *text)
{
    (void)user;
    fail_msg("%s", text);
}

static void what_was_not_ended_is_saved_by_repair(void **state)
{
    (void)state;
    uint32_t saved[3] = {0};
    const td_dataset_save_hooks hooks = {.saved = on_saved,
                                         .dropped = on_dropped,
                                         .left = on_left,
                                         .user = saved};
    td_dataset_writer *writer = open_writer();
    (void)record(writer, 2, "pick");
    ok(td_dataset_writer_begin(writer, &why));
    for (int i = 0; i < 4; i++)
        ok(add(writer, (float)i, "place", &picture));
    td_dataset_writer_close(writer);
    assert_int_equal(td_dataset_staging_unfinished(folder().text), 1);
    writer = open_writer(); // puts it aside
    assert_int_equal(record(writer, 1, "pick"), 1);
    assert_int_equal(td_dataset_save_leftovers(folder().text, &hooks, &why),
                     TD_ERR_BUSY);
    td_dataset_writer_close(writer);
    ok(td_dataset_save_leftovers(folder().text, &hooks, &why));
    assert_int_equal(saved[0], 2);
    assert_int_equal(saved[1], 4);
    assert_int_equal(saved[2], 0);
    assert_int_equal(td_dataset_staging_unfinished(folder().text), 0);
    assert_sound();
}

// Both under way and put aside, whatever it was that took its frames.
static void repair_says_what_it_drops(void **state)
{
    (void)state;
    uint32_t saved[3] = {0};
    const td_dataset_save_hooks hooks = {.saved = on_saved,
                                         .dropped = on_dropped,
                                         .left = on_left,
                                         .user = saved};
    td_dataset_writer *writer = open_writer();
    ok(td_dataset_writer_begin(writer, &why));
    td_dataset_writer_close(writer);
    ok(td_dataset_save_leftovers(folder().text, &hooks, &why));
    assert_int_equal(saved[2], 1);
    ok(td_dataset_save_leftovers(folder().text, &hooks, &why));
    assert_int_equal(saved[2], 1);
    writer = open_writer();
    ok(td_dataset_writer_begin(writer, &why));
    td_dataset_writer_close(writer);
    assert_int_equal(rename(at_home(".arm.recording/episode").text,
                            at_home(".arm.recording/unfinished-000").text),
                     0);
    ok(td_dataset_save_leftovers(folder().text, &hooks, &why));
    assert_int_equal(saved[2], 2);
    assert_int_equal(saved[1], 0);
    assert_int_equal(td_dataset_staging_unfinished(folder().text), 0);
}

typedef struct counted_calls {
    uint64_t done, total;
    uint32_t times, saved, left;
    char why[512];
} counted_calls;

static void on_progress(void *user, uint64_t done, uint64_t total)
{
    counted_calls *to = user;
    assert_true(done > to->done && done <= total);
    to->done = done;
    to->total = total;
    to->times++;
}

static void note_saved(void *user, uint32_t episode, uint32_t frames)
{
    counted_calls *to = user;
    (void)episode, (void)frames;
    to->saved++;
}

static void note_left(void *user, const char *text)
{
    counted_calls *to = user;
    (void)snprintf(to->why, sizeof to->why, "%s", text);
    to->left++;
}

static td_dataset_save_hooks count_calls(counted_calls *to)
{
    return (td_dataset_save_hooks){.saved = note_saved,
                                   .dropped = on_dropped,
                                   .left = note_left,
                                   .user = to,
                                   .progress = on_progress};
}

static void repair_says_how_far_it_is(void **state)
{
    (void)state;
    counted_calls calls = {0};
    const td_dataset_save_hooks hooks = count_calls(&calls);
    td_dataset_writer *writer = open_writer();
    ok(td_dataset_writer_begin(writer, &why));
    for (int i = 0; i < 64; i++)
        ok(add(writer, (float)i, "place", &picture));
    td_dataset_writer_close(writer);
    ok(td_dataset_save_leftovers(folder().text, &hooks, &why));
    assert_int_equal(calls.saved, 1);
    assert_true(calls.times >= 3);
    assert_int_equal(calls.done, calls.total);
}

// A tendon of another version recorded here and died.
static void leave_foreign_journal(const char *head)
{
    td_dataset_entries rows;
    const uint32_t kind = TD_DATASET_JOURNAL_HEAD;
    ok(td_dataset_disk_make_folder(at_home(".arm.recording/episode").text,
                                   &why));
    ok(td_dataset_entries_new(at_home(".arm.recording/episode/rows").text,
                              &rows, &why));
    ok(td_dataset_entries_add(&rows, (td_slice){&kind, sizeof kind},
                              (td_slice){head, strlen(head)}));
    td_dataset_entries_done(&rows);
}

static void a_journal_of_another_version_is_put_aside_and_kept(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "{\"version\": 2, \"schema\": {\"fps\": 30}}",
        "{\"version\": 2, \"cameras\": []}",
        "{\"version\": 1, \"schema\": {\"new\": true}}",
        "not even JSON",
    };
    for (uint32_t i = 0; i < TD_COUNT_OF(heads); i++) {
        counted_calls calls = {0};
        const td_dataset_save_hooks hooks = count_calls(&calls);
        leave_foreign_journal(heads[i]);
        td_dataset_writer *writer = open_writer();
        assert_int_equal(record(writer, 1, "pick"), i);
        td_dataset_writer_close(writer);
        assert_int_equal(td_dataset_staging_unfinished(folder().text), i + 1);
        ok(td_dataset_save_leftovers(folder().text, &hooks, &why));
        assert_int_equal(calls.left, i + 1);
        assert_non_null(strstr(calls.why, "journal"));
        assert_int_equal(td_dataset_staging_unfinished(folder().text), i + 1);
    }
    assert_sound();
}

static void a_journal_that_does_not_come_back_whole_is_kept(void **state)
{
    (void)state;
    td_dataset_disk_path path = folder();
    td_dataset_writer_config config = config_of(path.text);
    td_dataset_writer *writer = open_writer();
    ok(td_dataset_writer_begin(writer, &why));
    ok(add(writer, 1, "pick", &picture));
    td_dataset_writer_close(writer); // without its end
    TD_AUTO(td_dataset_staging) *staging = NULL;
    TD_AUTO(td_dataset_append) *append = NULL;
    ok(td_dataset_staging_open(path.text, &staging, &why));
    const td_dataset_append_config appending = {.staging = staging,
                                                .schema = &config.schema};
    ok(td_dataset_append_open(&appending, &append, &why));
    assert_int_equal(td_dataset_save_episode(staging, append, &why), TD_ERR_IO);
    assert_true(td_dataset_disk_exists(staging->episode.text));
    assert_false(td_dataset_disk_exists(path.text));
}

static void another_schema_is_refused(void **state)
{
    (void)state;
    static const char *const other_names[CHANNELS] = {"a.pos", "c.pos"};
    static const td_dataset_camera large[] = {{"front", SIDE, 2 * SIDE}};
    static const td_dataset_camera renamed[] = {{"top", SIDE, SIDE}};
    td_dataset_disk_path path = folder();
    td_dataset_writer_config cases[] = {
        config_of(path.text), config_of(path.text), config_of(path.text),
        config_of(path.text), config_of(path.text), config_of(path.text),
    };
    static const char *const texts[] = {
        "fps: the dataset has 30, this recorder 15",
        "robot_type: the dataset has arm, this recorder leg",
        "observation.state: names[1]: the dataset has b.pos, this recorder "
        "c.pos",
        "action: shape: the dataset has 2, this recorder 1",
        "observation.images.front: shape: the dataset has 64x64x3, this "
        "recorder 64x128x3",
        "observation.images.front: the dataset has it, this recorder does not",
    };
    cases[0].schema.fps = 15;
    cases[1].schema.robot_type = "leg";
    cases[2].schema.state = other_names;
    cases[3].schema.action_count = 1;
    cases[4].schema.cameras = large;
    cases[5].schema.cameras = renamed;
    td_dataset_writer *writer = open_writer();
    (void)record(writer, 1, "pick");
    td_dataset_writer_close(writer);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        assert_int_equal(td_dataset_writer_open(&cases[i], &writer, &why),
                         TD_ERR_MISMATCH);
        assert_non_null(strstr(why.text, texts[i]));
    }
}

static void a_schema_that_cannot_be_is_refused(void **state)
{
    (void)state;
    static const td_dataset_camera odd[] = {{"front", 63, 64}};
    static const td_dataset_camera twice[] = {{"front", SIDE, SIDE},
                                              {"front", SIDE, SIDE}};
    static const td_dataset_camera climbing[] = {{"../x", SIDE, SIDE}};
    td_dataset_disk_path path = folder();
    td_dataset_writer_config cases[] = {
        config_of(path.text), config_of(path.text), config_of(path.text),
        config_of(path.text), config_of(path.text),
    };
    cases[0].schema.fps = 0;
    cases[1].schema.state_count = 0;
    cases[2].schema.cameras = odd;
    cases[3].schema.cameras = twice;
    cases[3].schema.camera_count = 2;
    cases[4].schema.cameras = climbing;
    td_dataset_writer *writer = NULL;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++)
        assert_int_equal(td_dataset_writer_open(&cases[i], &writer, &why),
                         TD_ERR_INVALID);
    assert_true(td_dataset_disk_is_empty(home));
}

static void a_disk_with_too_little_room_is_refused(void **state)
{
    (void)state;
    td_dataset_disk_path path = folder();
    td_dataset_writer *writer = NULL;
    td_dataset_writer_config config = config_of(path.text);
    config.reserve_bytes = UINT64_C(1) << 62;
    assert_int_equal(td_dataset_writer_open(&config, &writer, &why),
                     TD_ERR_FULL);
    assert_non_null(strstr(why.text, "MB are free"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_home, remove_home)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(finished_episodes_are_in_the_dataset),
        TEST(an_open_episode_is_not_in_the_dataset),
        TEST(an_episode_takes_the_room_of_its_end_too),
        TEST(a_power_cut_does_not_bring_back_what_was_discarded),
        TEST(calls_out_of_order_are_refused),
        TEST(a_resumed_dataset_goes_on_in_new_files),
        TEST(a_file_in_the_way_is_not_replaced),
        TEST(a_missing_picture_is_repeated_and_marked),
        TEST(a_lost_row_is_repeated_and_marked),
        TEST(what_was_not_ended_is_saved_by_repair),
        TEST(repair_says_what_it_drops),
        TEST(repair_says_how_far_it_is),
        TEST(a_journal_of_another_version_is_put_aside_and_kept),
        TEST(a_journal_that_does_not_come_back_whole_is_kept),
        TEST(another_schema_is_refused),
        TEST(a_schema_that_cannot_be_is_refused),
        TEST(a_disk_with_too_little_room_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// The memory that a worker shares, without any process: where everything goes,
// what is written there, and what is read, within bounds whatever the other
// process has written.
//
// The tests lay a ring out in plain memory, write batches with
// td_engine_worker_write_*, play the worker by setting fields of its results,
// and read. Tables hold what must be refused, a row for each field.
#include "engine/worker/ring/ring.h"

#include "engine/results.h"
#include "media/jpeg.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEIGHT 48
#define WIDTH 64
#define PIXELS (HEIGHT * WIDTH * 3)

static const td_worker_spec spec = {
    .camera_count = 2,
    .state_count = 3,
    .action_count = 2,
    .chunk_rows = 5,
    .max_batch = 2,
    .values_bytes = 1000,
    .cameras = {{"front", HEIGHT, WIDTH}, {"wrist", HEIGHT, WIDTH}},
};
static td_engine_worker_layout layout;
static td_engine_worker_writer writer;
static uint8_t *requests, *results;
static uint8_t front[PIXELS], wrist[PIXELS];
static float state_values[3] = {1, 2, 3};
static td_errinfo info;
static td_engine_results results_read;

static int setup(void **state)
{
    (void)state;
    if (td_engine_worker_layout_make(&spec, &layout, NULL) != TD_OK) return -1;
    requests = aligned_alloc(TD_WORKER_PAGE, layout.request_bytes);
    results = aligned_alloc(TD_WORKER_PAGE, layout.result_bytes);
    memset(results, 0, layout.result_bytes);
    memset(front, 10, sizeof front);
    memset(wrist, 20, sizeof wrist);
    writer = (td_engine_worker_writer){.spec = &spec, .layout = &layout};
    td_engine_worker_write_begin(&writer, TD_WORKER_WHOLE, requests);
    return td_engine_picture_reader_new(&writer.pictures) == TD_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    td_engine_picture_reader_free(writer.pictures);
    td_engine_results_done(&results_read);
    free(requests);
    free(results);
    return 0;
}

static td_wire_obs make_obs(void)
{
    return (td_wire_obs){
        .ident = {.boot = 1, .episode = 2, .seq = 3},
        .client = td_wire_text_of("robot-1"),
        .cursor = 4,
        .task = td_wire_text_of("wave"),
        .state = {.dtype = TD_WIRE_F32,
                  .rank = 1,
                  .shape = {3},
                  .data = state_values,
                  .size = sizeof state_values},
        .images = {{.name = td_wire_text_of("wrist"),
                    .codec = TD_WIRE_RAW,
                    .shape = {HEIGHT, WIDTH, 3},
                    .data = wrist,
                    .size = sizeof wrist},
                   {.name = td_wire_text_of("front"),
                    .codec = TD_WIRE_RAW,
                    .shape = {HEIGHT, WIDTH, 3},
                    .data = front,
                    .size = sizeof front}},
        .image_count = 2,
    };
}

static td_err write_obs(const td_wire_obs *obs)
{
    td_engine_item item = {.obs = obs, .seed = 99};
    return td_engine_worker_write_member(&writer, &item, 0, &info);
}

static const td_worker_batch *batch(void)
{
    return (const void *)requests;
}

static void assert_text(td_worker_text text, const char *want)
{
    assert_int_equal(text.size, strlen(want));
    assert_memory_equal(requests + text.offset, want, text.size);
}

static void nothing_overlaps_and_all_is_aligned(void **state)
{
    (void)state;
    const uint64_t parts[] = {layout.states, layout.images[0], layout.images[1],
                              layout.extra, layout.request_bytes};
    const uint64_t sizes[] = {layout.state_bytes, layout.image_bytes[0],
                              layout.image_bytes[1],
                              TD_ENGINE_WORKER_EXTRA_BYTES};
    assert_true(layout.states >= sizeof(td_worker_batch));
    for (size_t i = 0; i < TD_COUNT_OF(sizes); i++) {
        assert_int_equal(parts[i] % 64, 0);
        assert_true(parts[i] + spec.max_batch * sizes[i] <= parts[i + 1]);
    }
    assert_true(layout.actions >= sizeof(td_worker_result));
    assert_true(layout.actions + spec.max_batch * layout.actions_bytes <=
                layout.values);
    assert_int_equal(layout.values_bytes, 1024);
    assert_int_equal(layout.values % 64, 0);
    assert_true(layout.values + spec.max_batch * layout.values_bytes <=
                layout.result_bytes);
    assert_int_equal(layout.requests, 2 * TD_WORKER_PAGE);
    assert_int_equal(layout.results,
                     layout.requests + 2 * layout.request_bytes);
    assert_int_equal(layout.file_bytes,
                     layout.results + 2 * layout.result_bytes);
    assert_int_equal(layout.results % TD_WORKER_PAGE, 0);
}

static void what_no_machine_holds_is_refused(void **state)
{
    (void)state;
    td_worker_spec huge = spec;
    huge.max_batch = 64;
    huge.camera_count = 16;
    for (uint32_t i = 0; i < 16; i++)
        huge.cameras[i].height = huge.cameras[i].width = 8192;
    assert_int_equal(td_engine_worker_layout_make(&huge, &layout, &info),
                     TD_ERR_LIMIT);
}

static void a_member_stands_where_its_item_says(void **state)
{
    (void)state;
    td_wire_obs obs = make_obs();
    static const double force[2] = {5, 6};
    obs.tensors[0] = (td_wire_named){td_wire_text_of("force"),
                                     {.dtype = TD_WIRE_F64,
                                      .rank = 1,
                                      .shape = {2},
                                      .data = force,
                                      .size = 16}};
    obs.tensor_count = 1;
    obs.metadata[0] =
        (td_wire_pair){td_wire_text_of("tool"), td_wire_text_of("hammer")};
    obs.metadata_count = 1;
    obs.has_rtc = true;
    obs.rtc_base_chunk = 8;
    obs.rtc_delay_steps = 2;
    obs.rtc_prefix = obs.state;
    assert_int_equal(write_obs(&obs), TD_OK);
    td_engine_worker_write_end(&writer, 77);

    assert_int_equal(batch()->generation, 77);
    assert_int_equal(batch()->count, 1);
    const td_worker_item *item = &batch()->items[0];
    assert_int_equal(item->seed, 99);
    assert_int_equal(item->cursor, 4);
    assert_int_equal(item->boot, 1);
    assert_int_equal(item->episode, 2);
    assert_int_equal(item->seq, 3);
    assert_text(item->client, "robot-1");
    assert_text(item->task, "wave");
    assert_memory_equal(requests + item->state.offset, state_values, 12);
    assert_memory_equal(requests + item->images[0], front, PIXELS);
    assert_memory_equal(requests + item->images[1], wrist, PIXELS);
    assert_int_equal(item->tensor_count, 1);
    assert_text(item->tensors[0].name, "force");
    assert_int_equal(item->tensors[0].tensor.dtype, TD_WIRE_F64);
    assert_int_equal(item->tensors[0].tensor.age_us, -1);
    assert_memory_equal(requests + item->tensors[0].tensor.offset, force, 16);
    assert_int_equal(item->metadata_count, 1);
    assert_text(item->metadata[0].text, "hammer");
    assert_int_equal(item->has_rtc, 1);
    assert_int_equal(item->rtc_base_chunk, 8);
    assert_int_equal(item->rtc_delay_steps, 2);
    assert_memory_equal(requests + item->rtc_prefix.offset, state_values, 12);
}

static void a_picture_that_lies_in_a_segment_stays_there(void **state)
{
    (void)state;
    td_wire_obs obs = make_obs();
    const uint64_t place = UINT64_C(3) << TD_WORKER_SEGMENT_SHIFT | 70;
    writer.places[0] = place; // the wrist's, which comes first
    assert_int_equal(write_obs(&obs), TD_OK);
    const td_worker_item *item = &batch()->items[0];
    assert_int_equal(item->images[1], place);
    assert_memory_equal(requests + item->images[0], front, PIXELS);
    obs.images[0].shape[1] = WIDTH / 2;
    assert_int_equal(write_obs(&obs), TD_ERR_MISMATCH);
    assert_non_null(strstr(info.text, "images.wrist"));
}

// Its prefix is made of the rest, and stays with the worker.
static void to_be_decoded_it_brings_only_what_may_change(void **state)
{
    (void)state;
    td_wire_obs obs = make_obs();
    obs.tensor_count = 1;
    obs.has_rtc = true;
    obs.rtc_prefix = obs.state;
    const td_engine_item whole = {.obs = &obs, .seed = 9};
    const td_engine_item bare = {.seed = 10};
    td_engine_worker_write_begin(&writer, TD_WORKER_DECODE, requests);
    assert_int_equal(td_engine_worker_write_member(&writer, &whole, 7, &info),
                     TD_OK);
    assert_int_equal(td_engine_worker_write_member(&writer, &bare, 8, &info),
                     TD_OK);
    td_engine_worker_write_end(&writer, 1);
    assert_int_equal(batch()->operation, TD_WORKER_DECODE);
    const td_worker_item *items = batch()->items;
    assert_int_equal(items[0].prefix, 7);
    assert_int_equal(items[0].seed, 9);
    assert_int_equal(items[0].state.rank, 0);
    assert_int_equal(items[0].tensor_count, 0);
    assert_int_equal(items[0].images[0], 0);
    assert_text(items[0].task, "wave");
    assert_memory_equal(requests + items[0].rtc_prefix.offset, state_values,
                        12);
    assert_int_equal(items[1].prefix, 8);
    assert_int_equal(items[1].client.size, 0);
}

static void members_stand_at_even_distances(void **state)
{
    (void)state;
    td_wire_obs obs = make_obs();
    assert_int_equal(write_obs(&obs), TD_OK);
    assert_int_equal(write_obs(&obs), TD_OK);
    const td_worker_item *items = batch()->items;
    assert_int_equal(items[1].images[0] - items[0].images[0],
                     layout.image_bytes[0]);
    assert_int_equal(items[1].state.offset - items[0].state.offset,
                     layout.state_bytes);
}

static void a_jpeg_is_decoded_in_its_place(void **state)
{
    (void)state;
    td_media_jpeg_encoder *encoder = NULL;
    td_media_jpeg_decoder *decoder = NULL;
    td_slice jpeg = {0};
    static uint8_t want[PIXELS];
    td_wire_obs obs = make_obs();
    for (size_t i = 0; i < PIXELS; i++)
        front[i] = (uint8_t)(i / 100);
    assert_int_equal(
        td_media_jpeg_encoder_new(90, TD_MEDIA_CHROMA_444, &encoder), TD_OK);
    assert_int_equal(
        td_media_jpeg_encode(encoder, front, HEIGHT, WIDTH, &jpeg, NULL),
        TD_OK);
    assert_int_equal(td_media_jpeg_decoder_new(&decoder), TD_OK);
    assert_int_equal(
        td_media_jpeg_decode(decoder, jpeg, HEIGHT, WIDTH, want, NULL), TD_OK);
    td_media_jpeg_decoder_free(decoder);
    obs.images[1].codec = TD_WIRE_JPEG;
    obs.images[1].data = jpeg.data;
    obs.images[1].size = jpeg.size;
    assert_int_equal(write_obs(&obs), TD_OK);
    td_media_jpeg_encoder_free(encoder);
    assert_memory_equal(requests + batch()->items[0].images[0], want, PIXELS);
}

static void no_wrist(td_wire_obs *obs)
{
    obs->images[0].name = td_wire_text_of("waist");
}

static void short_front(td_wire_obs *obs)
{
    obs->images[1].size--;
}

static void no_jpeg(td_wire_obs *obs)
{
    obs->images[1].codec = TD_WIRE_JPEG;
}

static void short_state(td_wire_obs *obs)
{
    obs->state.size -= sizeof(float);
}

static void large_tensor(td_wire_obs *obs)
{
    static const char bytes[64];
    obs->tensors[0].tensor =
        (td_wire_tensor){.data = bytes, .size = SIZE_MAX / 2};
    obs->tensor_count = 1;
}

static void a_member_that_does_not_fit_leaves_nothing(void **state)
{
    (void)state;
    static const struct {
        void (*spoil)(td_wire_obs *obs);
        td_err err;
        const char *text;
    } cases[] = {
        {no_wrist, TD_ERR_MISMATCH, "images.wrist: is missing"},
        {short_front, TD_ERR_FORMAT,
         "images.front: has 9215 bytes, its shape 9216"},
        {no_jpeg, TD_ERR_FORMAT, "images.front: "},
        {short_state, TD_ERR_MISMATCH,
         "state: 8 bytes of <f4, the model wants 3 x <f4"},
        {large_tensor, TD_ERR_LIMIT, "tensors and texts: no room for "},
    };
    td_wire_obs good = make_obs();
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_wire_obs obs = make_obs();
        cases[i].spoil(&obs);
        uint64_t used = writer.used;
        assert_int_equal(write_obs(&obs), cases[i].err);
        assert_int_equal(
            strncmp(info.text, cases[i].text, strlen(cases[i].text)), 0);
        assert_int_equal(writer.used, used);
        assert_int_equal(writer.count, 0);
    }
    assert_int_equal(write_obs(&good), TD_OK);
    assert_int_equal(writer.count, 1);
}

// One answer of a worker, in the results, and what is made of it.
static td_worker_result *result(void)
{
    return (void *)results;
}

static float actions[10];
static td_engine_item item_read;

static td_err read_as(td_worker_operation operation)
{
    const td_engine_worker_reader reader = {&spec, &layout, operation,
                                            result()};
    td_engine_item *items[] = {&item_read};
    int64_t service_ns = -1;
    td_engine_results_clear(&results_read);
    item_read = (td_engine_item){
        .actions = actions, .info = &info, .results = &results_read};
    info.text[0] = '\0';
    td_err err = td_engine_worker_read(&reader, items, 1, &service_ns);
    assert_true(err != TD_OK || service_ns >= 0);
    return err;
}

static td_err read_one(void)
{
    return read_as(TD_WORKER_WHOLE);
}

static void answer_well(void)
{
    float *rows = (void *)(results + layout.actions);
    memset(results, 0, layout.result_bytes);
    result()->generation = 7;
    result()->count = 1;
    result()->service_ns = 1000;
    result()->answers[0].rows = 5;
    for (int i = 0; i < 10; i++)
        rows[i] = (float)i;
}

// Two results and a text, one after another.
static void give_more(void)
{
    td_worker_answer *answer = &result()->answers[0];
    const td_worker_value values[] = {
        {"force", TD_WIRE_F64, 1, {2}},
        {"", TD_WORKER_TEXT, 1, {7}},
        {"grip", TD_WIRE_U8, 2, {3, 1}},
    };
    uint8_t *at = results + layout.values;
    memcpy(answer->values, values, sizeof values);
    answer->value_count = 3;
    memcpy(at, (double[]){5, 6}, 16);
    memcpy(at + 64, (char[]){'g', 'o', ' ', 'l', 'e', 'f', 't'}, 7);
    memcpy(at + 128, (uint8_t[]){1, 2, 3}, 3);
}

static void results_stand_one_after_another(void **state)
{
    (void)state;
    answer_well();
    give_more();
    assert_int_equal(read_one(), TD_OK);
    assert_int_equal(item_read.status, TD_OK);
    assert_int_equal(results_read.count, 2);
    const td_wire_named *named = results_read.named;
    assert_true(td_wire_text_is(named[0].name, "force"));
    assert_int_equal(named[0].tensor.dtype, TD_WIRE_F64);
    assert_memory_equal(named[0].tensor.data, ((double[]){5, 6}), 16);
    assert_true(td_wire_text_is(results_read.text, "go left"));
    assert_true(td_wire_text_is(named[1].name, "grip"));
    assert_int_equal(named[1].tensor.shape[0], 3);
    assert_memory_equal(named[1].tensor.data, "\1\2\3", 3);
}

static void a_prefix_says_what_it_takes(void **state)
{
    (void)state;
    answer_well();
    result()->answers[0].rows = 0;
    result()->answers[0].prefix_bytes = 12345;
    assert_int_equal(read_as(TD_WORKER_PREFIX), TD_OK);
    assert_int_equal(item_read.status, TD_OK);
    assert_int_equal(item_read.prefix_bytes, 12345);
    result()->answers[0].prefix_bytes = 0; // nothing takes nothing
    assert_int_equal(read_as(TD_WORKER_PREFIX), TD_OK);
    assert_int_equal(item_read.prefix_bytes, 1);
}

static void an_answer_is_copied(void **state)
{
    (void)state;
    answer_well();
    assert_true(td_engine_worker_read_ready(result(), 7));
    assert_int_equal(read_one(), TD_OK);
    assert_int_equal(item_read.status, TD_OK);
    assert_int_equal(item_read.rows, 5);
    assert_true(actions[9] == 9);
}

static void an_answer_of_another_generation_is_none(void **state)
{
    (void)state;
    answer_well();
    assert_false(td_engine_worker_read_ready(result(), 8));
    assert_false(td_engine_worker_read_ready(result(), 6));
}

static void no_rows(void)
{
    result()->answers[0].rows = 0;
}
static void many_rows(void)
{
    result()->answers[0].rows = UINT32_MAX;
}
static void failed(void)
{
    result()->answers[0].status = TD_ERR_NOMEM;
}
static void no_status(void)
{
    result()->answers[0].status = 1 << 30;
}

static void not_finite(void)
{
    float *rows = (void *)(results + layout.actions);
    rows[3] = NAN;
}

static void says_why(void)
{
    failed();
    memset(result()->answers[0].error, 0xff, TD_WORKER_ERROR_BYTES);
    memcpy(result()->answers[0].error, "\xc3\xa4, no", 7);
}

static void many_values(void)
{
    result()->answers[0].value_count = 33;
}
static void no_dtype(void)
{
    give_more();
    result()->answers[0].values[1].dtype = TD_WIRE_BOOL + 1;
}
static void no_rank(void)
{
    give_more();
    result()->answers[0].values[2].rank = 9;
}
static void text_of_two_sides(void)
{
    give_more();
    result()->answers[0].values[1].rank = 2;
}
static void beyond_the_room(void)
{
    give_more();
    result()->answers[0].values[2].shape[0] = 1024 - 128 + 1;
}
static void beyond_everything(void)
{
    give_more();
    for (int i = 0; i < 8; i++)
        result()->answers[0].values[2].shape[i] = UINT32_MAX;
    result()->answers[0].values[2].rank = 8;
}
static void no_value_name(void)
{
    give_more();
    memset(result()->answers[0].values[0].name, 0xff, 64);
}
static void twice(void)
{
    give_more();
    memcpy(result()->answers[0].values[2].name, "force", 6);
}
static void not_utf8(void)
{
    give_more();
    memset(results + layout.values + 64, 0xff, 7);
}

static void a_member_that_makes_no_sense_fails(void **state)
{
    (void)state;
    static const struct {
        void (*spoil)(void);
        td_err err;
        const char *text;
    } cases[] = {
        {no_rows, TD_ERR_FORMAT, "the worker gave 0 rows, a chunk has 1 to 5"},
        {many_rows, TD_ERR_FORMAT,
         "the worker gave 4294967295 rows, a chunk has 1 to 5"},
        {not_finite, TD_ERR_FORMAT,
         "the worker's row 1 is not finite in channel 1"},
        {failed, TD_ERR_NOMEM, "the worker could not answer this"},
        {says_why, TD_ERR_NOMEM, "\xc3\xa4, no"},
        {no_status, TD_ERR_INTERNAL, "the worker could not answer this"},
        {many_values, TD_ERR_FORMAT, "the worker gave 33 results, at most 32"},
        {no_dtype, TD_ERR_FORMAT,
         "the worker's result 1 is malformed or too large"},
        {no_rank, TD_ERR_FORMAT,
         "the worker's result 2 is malformed or too large"},
        {text_of_two_sides, TD_ERR_FORMAT,
         "the worker's result 1 is malformed or too large"},
        {beyond_the_room, TD_ERR_FORMAT,
         "the worker's result 2 is malformed or too large"},
        {beyond_everything, TD_ERR_FORMAT,
         "the worker's result 2 is malformed or too large"},
        {no_value_name, TD_ERR_FORMAT,
         "results: a name is not printable UTF-8"},
        {twice, TD_ERR_FORMAT, "results: force: is there twice"},
        {not_utf8, TD_ERR_FORMAT, "text: text is not valid UTF-8"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        answer_well();
        cases[i].spoil();
        assert_int_equal(read_one(), TD_OK);
        assert_int_equal(item_read.status, cases[i].err);
        assert_string_equal(info.text, cases[i].text);
        assert_int_equal(item_read.rows, 0);
        assert_int_equal(results_read.count, 0);
    }
}

static void another_count_refuses_the_whole_batch(void **state)
{
    (void)state;
    answer_well();
    result()->count = UINT32_MAX;
    assert_int_equal(read_one(), TD_ERR_FORMAT);
    result()->count = 0;
    assert_int_equal(read_one(), TD_ERR_FORMAT);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(nothing_overlaps_and_all_is_aligned),
        TEST(what_no_machine_holds_is_refused),
        TEST(a_member_stands_where_its_item_says),
        TEST(a_picture_that_lies_in_a_segment_stays_there),
        TEST(to_be_decoded_it_brings_only_what_may_change),
        TEST(members_stand_at_even_distances),
        TEST(a_jpeg_is_decoded_in_its_place),
        TEST(a_member_that_does_not_fit_leaves_nothing),
        TEST(an_answer_is_copied),
        TEST(results_stand_one_after_another),
        TEST(a_prefix_says_what_it_takes),
        TEST(an_answer_of_another_generation_is_none),
        TEST(a_member_that_makes_no_sense_fails),
        TEST(another_count_refuses_the_whole_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

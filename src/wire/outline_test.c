// SPDX-License-Identifier: Apache-2.0
// In whatever pieces an observation comes, it is the one that was sent, and
// what is refused in one piece is refused in many, with the same words.
#include "wire/outline.h"

#include "wire/msgpack/literal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ID "'seq_id': 7, 'client_uuid': 'r1'"
#define STATE "'state': {'dtype': '<f4', 'shape': [2], 'data': <8*00>}"
#define DEPTH "{'dtype': '|u1', 'shape': [2000], 'data': <2000*07>}"
#define RAW "{'codec': 'raw', 'shape': [10, 20, 9], 'data': <1800*02>}"

// Small and large, with and without a map, and one that looks as if cut out.
#define OBS                                                                    \
    "{" ID ", " STATE ", 'task': 'fold', 'tensors': {'depth': " DEPTH "}, "    \
    "'images': {'a': <1500*01>, 'b': " RAW ", 'c': <40*03>, 'd': <1*00>, "     \
    "'e': <1024*05>}}"

static td_wire_decoder *decoder;
static td_wire_outline outline;
static msgpack_sbuffer message;

static int setup(void **state)
{
    (void)state;
    msgpack_sbuffer_init(&message);
    return td_wire_decoder_new(&decoder) != TD_OK;
}

static int teardown(void **state)
{
    (void)state;
    msgpack_sbuffer_destroy(&message);
    td_wire_outline_done(&outline);
    td_wire_decoder_free(decoder);
    return 0;
}

// Each in memory of its own, exactly as long as it is.
static struct {
    td_slice at[8192];
    void *memory[8192];
    size_t count;
} cut; // into these

static void add_piece(size_t from, size_t size)
{
    void *memory = malloc(size ? size : 1);
    assert_non_null(memory);
    memcpy(memory, message.data + from, size);
    cut.memory[cut.count] = memory;
    cut.at[cut.count++] = (td_slice){memory, size};
}

static void free_pieces(void)
{
    for (size_t i = 0; i < cut.count; i++)
        free(cut.memory[i]);
    cut.count = 0;
}

static void cut_at(size_t size, size_t at)
{
    add_piece(0, at);
    add_piece(at, size - at);
}

static void cut_every(size_t size, size_t each)
{
    for (size_t at = 0; at < size; at += each)
        add_piece(at, size - at < each ? size - at : each);
}

static td_err decode(td_wire_obs *ret_obs, td_errinfo *info)
{
    return td_wire_obs_decode_pieces(decoder, &outline, cut.at, cut.count,
                                     ret_obs, info);
}

static void same_bytes(const void *got, const void *want, size_t size)
{
    if (size > 0) assert_memory_equal(got, want, size);
}

static void same_image(const td_wire_image *got, const td_wire_image *want)
{
    uint8_t bytes[4096];
    assert_int_equal(got->name.size, want->name.size);
    same_bytes(got->name.data, want->name.data, want->name.size);
    assert_int_equal(got->codec, want->codec);
    same_bytes(got->shape, want->shape, sizeof want->shape);
    assert_int_equal(got->size, want->size);
    td_wire_image_copy(got, 0, got->size, bytes);
    same_bytes(bytes, want->data, want->size);
    td_slice head = td_wire_image_head(got);
    assert_in_range(head.size, 1, want->size);
    same_bytes(head.data, want->data, head.size);
}

static void same_obs(const td_wire_obs *got, const td_wire_obs *want)
{
    assert_int_equal(got->ident.seq, want->ident.seq);
    assert_int_equal(got->task.size, want->task.size);
    same_bytes(got->task.data, want->task.data, want->task.size);
    assert_int_equal(got->state.size, want->state.size);
    same_bytes(got->state.data, want->state.data, want->state.size);
    assert_int_equal(got->tensor_count, want->tensor_count);
    for (uint32_t i = 0; i < want->tensor_count; i++)
        same_bytes(got->tensors[i].tensor.data, want->tensors[i].tensor.data,
                   want->tensors[i].tensor.size);
    assert_int_equal(got->image_count, want->image_count);
    for (uint32_t i = 0; i < want->image_count; i++)
        same_image(&got->images[i], &want->images[i]);
}

static void assert_same(const td_wire_obs *want)
{
    td_wire_obs got;
    assert_int_equal(decode(&got, NULL), TD_OK);
    same_obs(&got, want);
    free_pieces();
}

static void write_message(const char *text, td_wire_obs *ret_obs)
{
    td_wire_literal(&message, text);
    assert_int_equal(
        td_wire_obs_decode(decoder, message.data, message.size, ret_obs, NULL),
        TD_OK);
}

static void it_may_be_cut_anywhere(void **state)
{
    (void)state;
    td_wire_obs want;
    write_message(OBS, &want);
    for (size_t at = 0; at <= message.size; at++) {
        cut_at(message.size, at);
        assert_same(&want);
    }
    for (size_t each = 1; each < message.size; each += 1 + each / 3) {
        cut_every(message.size, each);
        assert_same(&want);
    }
}

static void an_image_in_one_piece_stays_there(void **state)
{
    (void)state;
    td_wire_obs want, got;
    write_message(OBS, &want);
    const char *second = (const char *)want.images[1].data;
    size_t at = (size_t)(second - message.data) + 1000;
    cut_at(message.size, at);
    assert_int_equal(decode(&got, NULL), TD_OK);
    const char *first = cut.at[0].data;
    assert_ptr_equal(got.images[0].data,
                     first +
                         ((const char *)want.images[0].data - message.data));
    assert_null(got.images[1].data);
    assert_int_equal(td_wire_image_head(&got.images[1]).size, 1000);
    const char *last = cut.at[1].data;
    assert_ptr_equal(got.images[4].data,
                     last + ((const char *)want.images[4].data - message.data) -
                         at);

    uint8_t part[100];
    td_wire_image_copy(&got.images[1], 950, sizeof part, part);
    assert_memory_equal(part, second + 950, sizeof part);
    free_pieces();
}

static void what_is_cut_short_is_refused_alike(void **state)
{
    (void)state;
    td_wire_obs obs;
    write_message(OBS, &obs);
    for (size_t size = 2; size < message.size; size++) {
        td_errinfo whole = {""}, parts = {""};
        td_err err =
            td_wire_obs_decode(decoder, message.data, size, &obs, &whole);
        assert_int_not_equal(err, TD_OK);
        cut_at(size, size / 2);
        assert_int_equal(decode(&obs, &parts), err);
        assert_string_equal(parts.text, whole.text);
        free_pieces();
    }
}

static void what_is_wrong_is_refused_alike(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[1, 2, 3]",
        "{'images': {'a': <1500*01>}}",
        "{" ID ", " STATE ", 'images': {'a': @1500}}",
        "{" ID ", " STATE ", 'images': <1500*01>}",
        "{" ID ", " STATE ", 'images': [<1500*01>]}",
        "{" ID ", " STATE ", 'images': {'a': <1500*01>, 'a': <1500*01>}}",
        "{" ID ", " STATE ", 'images': {'a': {'codec': 'raw', "
        "'shape': [1, 2, 3], 'data': <1500*01>}}}",
        "{" ID ", " STATE ", 'images': {'a': {'codec': 'jpeg', "
        "'data': <0*00>}}, 'task': 'a long one to fill the pieces'}",
        "{" ID ", 'schema': 99, " STATE ", 'images': {'a': <1500*01>}}",
        "{" ID ", " STATE ", 'task': <1500*01>}",
        "{" ID ", " STATE ", {'images': 1}: <1500*01>}",
    };
    for (size_t i = 0; i < TD_COUNT_OF(texts); i++) {
        td_wire_obs obs;
        td_errinfo whole = {""}, parts = {""};
        message.size = 0;
        td_wire_literal(&message, texts[i]);
        td_err err = td_wire_obs_decode(decoder, message.data, message.size,
                                        &obs, &whole);
        assert_int_not_equal(err, TD_OK);
        cut_every(message.size, 1 + message.size / 3);
        assert_int_equal(decode(&obs, &parts), err);
        assert_string_equal(parts.text, whole.text);
        free_pieces();
    }
}

static void bytes_after_the_message_are_counted_alike(void **state)
{
    (void)state;
    td_wire_obs obs;
    td_errinfo info = {""};
    write_message(OBS, &obs);
    msgpack_sbuffer_write(&message, "more", 4);
    cut_at(message.size, 3000);
    assert_int_equal(decode(&obs, &info), TD_ERR_FORMAT);
    assert_string_equal(info.text, "obs: 4 bytes after the message");
    free_pieces();
}

static void binaries_beyond_the_most_images_are_joined(void **state)
{
    (void)state;
    char text[1024];
    size_t used = (size_t)snprintf(text, sizeof text, "%s",
                                   "{" ID ", " STATE
                                   ", 'images': {'a': {'codec': 'jpeg'");
    for (int i = 0; i < TD_WIRE_MAX_IMAGES + 1; i++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 ", 'x%d': <1024*09>", i);
    (void)snprintf(text + used, sizeof text - used, "%s",
                   ", 'data': <1500*01>}, 'b': <1500*02>}}");
    td_wire_obs want;
    write_message(text, &want);
    cut_every(message.size, 700);
    assert_same(&want);
}

static void members_without_end_do_not_cost_much(void **state)
{
    (void)state;
    td_wire_obs obs;
    td_errinfo info = {""};
    static const uint8_t head[] = {0xdf, 0xff, 0xff, 0xff, 0xff};
    size_t size = TD_WIRE_MAX_BYTES - sizeof head;
    uint8_t *nils = malloc(size);
    assert_non_null(nils);
    memset(nils, 0xc0, size);
    const td_slice pieces[] = {{head, sizeof head}, {nils, size}};
    assert_int_equal(
        td_wire_obs_decode_pieces(decoder, &outline, pieces, 2, &obs, &info),
        TD_ERR_LIMIT);
    free(nils);
}

static void more_than_the_most_bytes_are_refused_unread(void **state)
{
    (void)state;
    td_wire_obs obs;
    td_errinfo info = {""};
    const td_slice pieces[] = {{NULL, TD_WIRE_MAX_BYTES}, {NULL, 1}};
    assert_int_equal(
        td_wire_obs_decode_pieces(decoder, &outline, pieces, 2, &obs, &info),
        TD_ERR_LIMIT);
    assert_non_null(strstr(info.text, "obs: "));
    assert_null(outline.bytes);
}

static void its_memory_is_used_again(void **state)
{
    (void)state;
    td_wire_obs want;
    write_message(OBS, &want);
    cut_every(message.size, 500);
    td_wire_obs got;
    assert_int_equal(decode(&got, NULL), TD_OK);
    const uint8_t *bytes = outline.bytes;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(decode(&got, NULL), TD_OK);
        assert_ptr_equal(outline.bytes, bytes);
    }
    free_pieces();
}

static void a_large_one_is_let_go(void **state)
{
    (void)state;
    td_wire_obs obs;
    write_message("{" ID ", " STATE ", 'tensors': {'cloud': {'dtype': '|u1', "
                  "'shape': [90000], 'data': <90000*07>}}}",
                  &obs);
    cut_at(message.size, 1000);
    assert_int_equal(decode(&obs, NULL), TD_OK);
    td_wire_outline_trim(&outline);
    assert_null(outline.bytes);
    free_pieces();
    message.size = 0;
    write_message(OBS, &obs);
    cut_at(message.size, 1000);
    assert_int_equal(decode(&obs, NULL), TD_OK);
    td_wire_outline_trim(&outline);
    assert_non_null(outline.bytes);
    free_pieces();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(it_may_be_cut_anywhere),
        TEST(an_image_in_one_piece_stays_there),
        TEST(what_is_cut_short_is_refused_alike),
        TEST(what_is_wrong_is_refused_alike),
        TEST(bytes_after_the_message_are_counted_alike),
        TEST(binaries_beyond_the_most_images_are_joined),
        TEST(members_without_end_do_not_cost_much),
        TEST(more_than_the_most_bytes_are_refused_unread),
        TEST(its_memory_is_used_again),
        TEST(a_large_one_is_let_go),
    };
    return cmocka_run_group_tests_name("wire/outline", tests, NULL, NULL);
}

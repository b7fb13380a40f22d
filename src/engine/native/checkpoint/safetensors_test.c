// SPDX-License-Identifier: Apache-2.0
// Safetensors files, most of them in memory: what is read and where it lies, a
// table of headers that must be refused with the words they are refused with,
// files that are cut at any byte, every dtype as floats, and values that are
// not finite.
#include "engine/native/checkpoint/safetensors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ROOM 4096

// A file in memory: the header's length, the header, padded with space as
// safetensors does it, and data of rising bytes.
typedef struct file {
    _Alignas(8) uint8_t bytes[ROOM];
    size_t size;
    uint8_t *data;
} file;

static void make(file *made, const char *header, size_t data_bytes)
{
    size_t length = (strlen(header) + 7) / 8 * 8;
    memset(made->bytes, ' ', sizeof made->bytes);
    memset(made->bytes, 0, 8);
    made->bytes[0] = (uint8_t)length;
    made->bytes[1] = (uint8_t)(length >> 8);
    memcpy(made->bytes + 8, header, strlen(header));
    made->data = made->bytes + 8 + length;
    for (size_t i = 0; i < data_bytes; i++)
        made->data[i] = (uint8_t)i;
    made->size = 8 + length + data_bytes;
}

static td_err parse(const file *made, td_native_safetensors **ret_file,
                    td_errinfo *info)
{
    return td_native_safetensors_parse((td_slice){made->bytes, made->size},
                                       "x.safetensors", ret_file, info);
}

static void tensors_are_found_by_name_and_lie_where_they_say(void **state)
{
    (void)state;
    file made;
    make(
        &made,
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"b.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],"
        "\"data_offsets\":[0,24]},"
        "\"nothing\":{\"dtype\":\"F32\",\"shape\":[0,4],"
        "\"data_offsets\":[24,24]},"
        "\"a.bias\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[24,32]}}",
        32);
    td_native_safetensors *opened = NULL;
    assert_int_equal(parse(&made, &opened, NULL), TD_OK);

    size_t count = 0;
    const td_native_tensor *all = td_native_safetensors_all(opened, &count);
    assert_int_equal(count, 3);
    assert_string_equal(all[0].name, "a.bias");
    assert_string_equal(all[2].name, "nothing");

    const td_native_tensor *found =
        td_native_safetensors_find(opened, "b.weight");
    assert_non_null(found);
    assert_ptr_equal(found->data, made.data);
    assert_int_equal(found->dtype, TD_NATIVE_F32);
    assert_int_equal(found->count, 6);
    assert_true(td_native_tensor_has_shape(found, 2, (const uint64_t[]){2, 3}));
    assert_false(
        td_native_tensor_has_shape(found, 2, (const uint64_t[]){3, 2}));
    assert_int_equal(td_native_safetensors_find(opened, "a.bias")->count, 1);
    assert_null(td_native_safetensors_find(opened, "c"));
    td_native_safetensors_close(opened);
}

#define ONE(dtype, shape, offsets)                                             \
    "{\"t\":{\"dtype\":\"" dtype "\",\"shape\":" shape                         \
    ",\"data_offsets\":" offsets "}}"
#define TWO(first, second)                                                     \
    "{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" first           \
    "},\"u\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" second "}}"

static const struct {
    const char *name;
    const char *header;
    size_t data_bytes;
    td_err err;
    const char *says;
} bad[] = {
    {"no JSON", "hello", 0, TD_ERR_FORMAT, "x.safetensors:1: "},
    {"no object", "[1]", 0, TD_ERR_FORMAT, "is no JSON object"},
    {"a name twice",
     "{\"t\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
     "\"t\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
     0, TD_ERR_FORMAT, "duplicate"},
    {"no tensor", "{\"t\":7}", 0, TD_ERR_FORMAT, "t: must have dtype"},
    {"a member more",
     "{\"t\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":1}}",
     0, TD_ERR_FORMAT, "t: must have dtype"},
    {"an unknown dtype", ONE("F8_E4M3", "[4]", "[0,4]"), 4, TD_ERR_UNSUPPORTED,
     "t: dtype: is F8_E4M3"},
    {"a dtype that is no text",
     "{\"t\":{\"dtype\":3,\"shape\":[0],\"data_offsets\":[0,0]}}", 0,
     TD_ERR_FORMAT, "t: dtype: must be a text"},
    {"a negative side", ONE("U8", "[-1]", "[0,4]"), 4, TD_ERR_FORMAT,
     "t: shape: must be whole"},
    {"a side that is no number", ONE("U8", "[\"4\"]", "[0,4]"), 4,
     TD_ERR_FORMAT, "t: shape: must be whole"},
    {"nine sides", ONE("U8", "[1,1,1,1,1,1,1,1,4]", "[0,4]"), 4, TD_ERR_LIMIT,
     "t: shape: has 9 sides"},
    {"sides beyond 64 bits",
     ONE("U8", "[4611686018427387904,4611686018427387904]", "[0,4]"), 4,
     TD_ERR_LIMIT, "t: shape: is beyond"},
    {"bytes beyond 64 bits", ONE("F64", "[4611686018427387904]", "[0,4]"), 4,
     TD_ERR_FORMAT, "not those of its shape"},
    {"one offset", ONE("U8", "[4]", "[4]"), 4, TD_ERR_FORMAT,
     "t: data_offsets: must be two"},
    {"a negative offset", ONE("U8", "[4]", "[-4,0]"), 4, TD_ERR_FORMAT,
     "t: data_offsets: must be two"},
    {"offsets the wrong way", ONE("U8", "[4]", "[4,0]"), 4, TD_ERR_FORMAT,
     "lie outside"},
    {"an end outside", ONE("U8", "[4]", "[1,5]"), 4, TD_ERR_FORMAT,
     "1 to 5 lie outside the 4 bytes"},
    {"fewer bytes than the shape", ONE("F32", "[2]", "[0,4]"), 4, TD_ERR_FORMAT,
     "hold 4 bytes"},
    {"not aligned",
     "{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
     "\"u\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}",
     5, TD_ERR_UNSUPPORTED, "u: data_offsets: are not aligned to F32"},
    {"an overlap", TWO("[0,4]", "[2,6]"), 6, TD_ERR_FORMAT,
     "u: its data overlap"},
    {"the same place twice", TWO("[0,4]", "[0,4]"), 4, TD_ERR_FORMAT,
     "its data overlap"},
    {"a hole", TWO("[0,4]", "[5,9]"), 9, TD_ERR_FORMAT, "u: a hole is before"},
    {"a hole at the begin", ONE("U8", "[4]", "[1,5]"), 5, TD_ERR_FORMAT,
     "t: a hole is before"},
    {"bytes of nobody", ONE("U8", "[4]", "[0,4]"), 7, TD_ERR_FORMAT,
     "3 bytes at its end belong to no tensor"},
    {"nested deeply",
     "{\"t\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]"
     "]"
     "]]]]]]]]]]]]]}",
     0, TD_ERR_LIMIT, "nested deeper than 32"},
};

static void what_is_wrong_is_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(bad); i++) {
        file made;
        td_native_safetensors *opened = NULL;
        td_errinfo info = {""};
        make(&made, bad[i].header, bad[i].data_bytes);
        td_err err = parse(&made, &opened, &info);
        if (err != bad[i].err || !strstr(info.text, bad[i].says))
            fail_msg("%s: %s: %s", bad[i].name, td_err_name(err), info.text);
        assert_null(opened);
    }
}

static void a_file_that_is_cut_anywhere_is_refused(void **state)
{
    (void)state;
    file made;
    make(&made, TWO("[0,4]", "[4,8]"), 8);
    for (size_t size = 0; size < made.size; size++) {
        td_native_safetensors *opened = NULL;
        td_slice bytes = {made.bytes, size};
        assert_int_not_equal(
            td_native_safetensors_parse(bytes, "x", &opened, NULL), TD_OK);
    }
}

static void a_huge_header_is_refused_before_it_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint8_t length[8];
        td_err err;
    } cases[] = {
        {"all of it", {255, 255, 255, 255, 255, 255, 255, 255}, TD_ERR_LIMIT},
        {"one above", {1, 0, 0, 1}, TD_ERR_LIMIT},
        {"beyond the file", {0, 0, 0, 1}, TD_ERR_FORMAT},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        file made;
        td_native_safetensors *opened = NULL;
        make(&made, "{}", 0);
        memcpy(made.bytes, cases[i].length, 8);
        assert_int_equal(parse(&made, &opened, NULL), cases[i].err);
    }
}

static const td_native_tensor *only(const file *made,
                                    td_native_safetensors **ret_file)
{
    assert_int_equal(parse(made, ret_file, NULL), TD_OK);
    return td_native_safetensors_find(*ret_file, "t");
}

static void every_dtype_is_read_as_floats(void **state)
{
    (void)state;
    static const uint16_t half[] = {0x3c00, 0xc000, 0x0001, 0x83ff, 0x7bff, 0};
    static const uint16_t brain[] = {0x3f80, 0xc000, 0x0001, 0x7f7f, 0x4049, 0};
    static const float single[] = {1, -2, 0x1p-149f, 3.25f};
    static const double full[] = {1, -2, 0.1, 1e300};
    static const int64_t whole[] = {-3, 1LL << 40, 7};
    static const uint8_t bytes[] = {0, 1, 255, 3};
    static const struct {
        const char *header;
        const void *data;
        size_t bytes;
        float values[6];
    } cases[] = {
        {ONE("F16", "[6]", "[0,12]"),
         half,
         sizeof half,
         {1, -2, 0x1p-24f, -0x3ffp-24f, 65504, 0}},
        {ONE("BF16", "[6]", "[0,12]"),
         brain,
         sizeof brain,
         {1, -2, 0x1p-133f, 0x1.fep127f, 3.140625f, 0}},
        {ONE("F32", "[4]", "[0,16]"),
         single,
         sizeof single,
         {1, -2, 0x1p-149f, 3.25f}},
        {ONE("F64", "[4]", "[0,32]"),
         full,
         sizeof full,
         {1, -2, 0.1f, INFINITY}},
        {ONE("I64", "[3]", "[0,24]"), whole, sizeof whole, {-3, 0x1p40f, 7}},
        {ONE("U8", "[4]", "[0,4]"), bytes, sizeof bytes, {0, 1, 255, 3}},
        {ONE("I8", "[4]", "[0,4]"), bytes, sizeof bytes, {0, 1, -1, 3}},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        file made;
        td_native_safetensors *opened = NULL;
        float values[6] = {0};
        make(&made, cases[i].header, cases[i].bytes);
        memcpy(made.data, cases[i].data, cases[i].bytes);
        const td_native_tensor *tensor = only(&made, &opened);
        td_native_tensor_read(tensor, 1, tensor->count - 1, values + 1);
        td_native_tensor_read(tensor, 0, 1, values);
        assert_memory_equal(values, cases[i].values, sizeof values);
        td_native_safetensors_close(opened);
    }
}

static void what_is_not_finite_is_found_wherever_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        uint8_t bad[8];
        size_t each;
    } cases[] = {
        {ONE("F32", "[64]", "[0,256]"), {0, 0, 0xc0, 0x7f}, 4},
        {ONE("F32", "[64]", "[0,256]"), {0, 0, 0x80, 0xff}, 4},
        {ONE("F16", "[64]", "[0,128]"), {0, 0x7c}, 2},
        {ONE("F16", "[64]", "[0,128]"), {1, 0xfc}, 2},
        {ONE("BF16", "[64]", "[0,128]"), {0xc0, 0x7f}, 2},
        {ONE("F64", "[64]", "[0,512]"), {0, 0, 0, 0, 0, 0, 0xf8, 0x7f}, 8},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++)
        for (size_t at = 0; at < 64; at += 21) {
            file made;
            td_native_safetensors *opened = NULL;
            td_errinfo info = {""};
            char says[64];
            make(&made, cases[i].header, 64 * cases[i].each);
            memset(made.data, 0x3b, 64 * cases[i].each);
            const td_native_tensor *tensor = only(&made, &opened);
            assert_int_equal(td_native_tensor_check_finite(tensor, NULL),
                             TD_OK);
            memcpy(made.data + at * cases[i].each, cases[i].bad, cases[i].each);
            assert_int_equal(td_native_tensor_check_finite(tensor, &info),
                             TD_ERR_FORMAT);
            (void)snprintf(says, sizeof says, "t: value %zu is not finite", at);
            assert_string_equal(info.text, says);
            td_native_safetensors_close(opened);
        }
}

static void a_shape_is_written_out(void **state)
{
    (void)state;
    char text[TD_NATIVE_SHAPE_BYTES];
    const uint64_t most[TD_NATIVE_MAX_RANK] = {
        UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
        UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    td_native_tensor_shape_text(3, (const uint64_t[]){64, 3, 7}, text);
    assert_string_equal(text, "[64, 3, 7]");
    td_native_tensor_shape_text(0, NULL, text);
    assert_string_equal(text, "[]");
    td_native_tensor_shape_text(TD_NATIVE_MAX_RANK, most, text);
    assert_int_equal(text[strlen(text) - 1], ']');
}

static void a_file_is_mapped_and_a_missing_one_named(void **state)
{
    (void)state;
    char path[] = "/tmp/tendon-safetensors-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    td_native_safetensors *opened = NULL;
    td_errinfo info = {""};
    assert_int_equal(td_native_safetensors_open(path, &opened, &info),
                     TD_ERR_FORMAT);
    file made;
    make(&made, ONE("U8", "[4]", "[0,4]"), 4);
    assert_int_equal(write(fd, made.bytes, made.size), made.size);
    (void)close(fd);
    assert_int_equal(td_native_safetensors_open(path, &opened, &info), TD_OK);
    assert_non_null(td_native_safetensors_find(opened, "t"));
    td_native_safetensors_close(opened);
    (void)unlink(path);
    opened = NULL;
    assert_int_equal(td_native_safetensors_open(path, &opened, &info),
                     TD_ERR_NOTFOUND);
    assert_non_null(strstr(info.text, path));
    assert_int_equal(td_native_safetensors_open("/tmp", &opened, &info),
                     TD_ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_found_by_name_and_lie_where_they_say),
        cmocka_unit_test(what_is_wrong_is_refused_by_name),
        cmocka_unit_test(a_file_that_is_cut_anywhere_is_refused),
        cmocka_unit_test(a_huge_header_is_refused_before_it_is_read),
        cmocka_unit_test(every_dtype_is_read_as_floats),
        cmocka_unit_test(what_is_not_finite_is_found_wherever_it_is),
        cmocka_unit_test(a_shape_is_written_out),
        cmocka_unit_test(a_file_is_mapped_and_a_missing_one_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

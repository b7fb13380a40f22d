// SPDX-License-Identifier: Apache-2.0
#include "wire/msgpack/scan.h"

#include "wire/msgpack/literal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static td_err scan(const void *data, size_t size, td_errinfo *info)
{
    td_wire_at at = {.name = td_wire_text_of("obs"), .info = info};
    return td_wire_scan(&at, data, size);
}

#define BYTES(text) text, sizeof(text) - 1

static const struct {
    const char *name;
    const char *data;
    size_t size;
    td_err err;
    const char *info;
} cases[] = {
    {"no bytes", BYTES(""), TD_ERR_FORMAT, "obs: is cut short"},
    {"an empty map", BYTES("\x80"), TD_OK, ""},
    {"an array", BYTES("\x91\x01"), TD_ERR_FORMAT, "obs: is not a map"},
    {"text", BYTES("\xa1x"), TD_ERR_FORMAT, "obs: is not a map"},
    {"every plain head",
     BYTES("\x8b\x01\xc0\x02\xc2\x03\xc3\x04\xca\0\0\0\0\x05\xcb\0\0\0\0\0\0\0"
           "\0\x06\xcc\0\x07\xcd\0\0\x08\xd0\0\x09\xd1\0\0\x0a\xe0\x0b\x7f"),
     TD_OK, ""},
    {"every wide head",
     BYTES("\x8a\x01\xd9\x01x\x02\xda\0\x01x\x03\xdb\0\0\0\x01x\x04\xc4\x01x"
           "\x05\xc5\0\x01x\x06\xc6\0\0\0\x01x\x07\xdc\0\0\x08\xdd\0\0\0\0"
           "\x09\xde\0\0\x0a\xdf\0\0\0\0"),
     TD_OK, ""},
    {"one byte after", BYTES("\x80\xc0"), TD_ERR_FORMAT,
     "obs: 1 bytes after the message"},
    {"a value is missing", BYTES("\x81\xa1x"), TD_ERR_FORMAT,
     "obs: is cut short"},
    {"a number is cut", BYTES("\x81\xa1x\xcf\0\0"), TD_ERR_FORMAT,
     "obs: is cut short"},
    {"a text of 2 GB", BYTES("\x81\xa1x\xdb\x80\0\0\0yyyy"), TD_ERR_FORMAT,
     "obs: is cut short"},
    {"a binary of 4 GB", BYTES("\x81\xa1x\xc6\xff\xff\xff\xffyyyy"),
     TD_ERR_FORMAT, "obs: is cut short"},
    {"a binary one byte too long", BYTES("\x81\xa1x\xc4\x05yyyy"),
     TD_ERR_FORMAT, "obs: is cut short"},
    {"an array of 2 G members", BYTES("\x81\xa1x\xdd\x80\0\0\0\xc0\xc0"),
     TD_ERR_LIMIT, "obs: more than 4096 members announced"},
    {"a map of 4 G members", BYTES("\xdf\xff\xff\xff\xff\xa1x\xc0"),
     TD_ERR_LIMIT, "obs: more than 4096 members announced"},
    {"depth of 8", BYTES("\x81\xa1x\x91\x91\x91\x91\x91\x91\x91\xc0"), TD_OK,
     ""},
    {"depth of 9", BYTES("\x81\xa1x\x91\x91\x91\x91\x91\x91\x91\x91\xc0"),
     TD_ERR_LIMIT, "obs: is nested deeper than 8"},
    {"an extension", BYTES("\x81\xa1x\xd4\x01\x01"), TD_ERR_FORMAT,
     "obs: holds an extension type"},
    {"a timestamp", BYTES("\x81\xa1x\xd6\xff\0\0\0\0"), TD_ERR_FORMAT,
     "obs: holds an extension type"},
    {"the byte that is never used", BYTES("\x81\xa1x\xc1"), TD_ERR_FORMAT,
     "obs: is not MessagePack"},
};

static void only_whole_bounded_maps_pass(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_errinfo info = {0};
        // On the heap and exactly as long, so that a sanitizer sees one byte
        // too far.
        char *data = malloc(cases[i].size + !cases[i].size);
        assert_non_null(data);
        memcpy(data, cases[i].data, cases[i].size);
        td_err err = scan(data, cases[i].size, &info);
        free(data);
        print_message("%s: %s\n", cases[i].name, info.text);
        assert_int_equal(err, cases[i].err);
        assert_string_equal(info.text, cases[i].info);
    }
}

static void members_are_counted_over_the_whole_message(void **state)
{
    (void)state;
    for (size_t extra = 0; extra < 2; extra++) {
        msgpack_sbuffer bytes;
        msgpack_sbuffer_init(&bytes);
        msgpack_packer out;
        msgpack_packer_init(&out, &bytes, msgpack_sbuffer_write);
        msgpack_pack_map(&out, 2);
        for (int k = 0; k < 2; k++) {
            size_t members = 2047 + (k ? extra : 0);
            msgpack_pack_int(&out, k);
            msgpack_pack_array(&out, members);
            for (size_t i = 0; i < members; i++)
                msgpack_pack_nil(&out);
        }
        assert_int_equal(scan(bytes.data, bytes.size, NULL),
                         extra ? TD_ERR_LIMIT : TD_OK);
        msgpack_sbuffer_destroy(&bytes);
    }
}

static void too_many_bytes_are_not_looked_at(void **state)
{
    (void)state;
    td_errinfo info = {0};
    assert_int_equal(scan("", TD_WIRE_MAX_BYTES + 1, &info), TD_ERR_LIMIT);
    assert_string_equal(info.text, "obs: 67108865 bytes, limit 67108864");
}

static const struct {
    const char *name, *literal;
    td_err err;
    uint64_t seq;
} peeks[] = {
    {"first", "{'seq_id': 5}", TD_OK, 5},
    {"after others", "{'a': [1, {'b': 'c'}], 'd': <9*00>, 'seq_id': 70000}",
     TD_OK, 70000},
    {"64 bits", "{'seq_id': 18446744073709551615}", TD_OK, UINT64_MAX},
    {"not there", "{'seq': 5}", TD_ERR_EMPTY, 0},
    {"only inside", "{'a': {'seq_id': 5}}", TD_ERR_EMPTY, 0},
    {"negative", "{'seq_id': -5}", TD_ERR_EMPTY, 0},
    {"text", "{'seq_id': '5'}", TD_ERR_EMPTY, 0},
    {"not a map", "['seq_id', 5]", TD_ERR_EMPTY, 0},
};

static void the_seq_is_found_in_the_first_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(peeks); i++) {
        msgpack_sbuffer bytes;
        msgpack_sbuffer_init(&bytes);
        td_wire_literal(&bytes, peeks[i].literal);
        uint64_t seq = 0;
        print_message("%s\n", peeks[i].name);
        assert_int_equal(td_wire_obs_peek(bytes.data, bytes.size, &seq),
                         peeks[i].err);
        assert_int_equal(seq, peeks[i].seq);
        assert_int_equal(td_wire_obs_peek(bytes.data, bytes.size - 1, &seq),
                         TD_ERR_EMPTY);
        msgpack_sbuffer_destroy(&bytes);
    }
}

static void a_positive_signed_seq_is_a_seq(void **state)
{
    (void)state;
    uint64_t seq = 0;
    assert_int_equal(
        td_wire_obs_peek(BYTES("\x82\xa6seq_id\xd1\x01\x02"), &seq), TD_OK);
    assert_int_equal(seq, 258);
    assert_int_equal(
        td_wire_obs_peek(BYTES("\x81\xa6seq_id\xd1\xff\x02"), &seq),
        TD_ERR_EMPTY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_whole_bounded_maps_pass),
        cmocka_unit_test(members_are_counted_over_the_whole_message),
        cmocka_unit_test(too_many_bytes_are_not_looked_at),
        cmocka_unit_test(the_seq_is_found_in_the_first_bytes),
        cmocka_unit_test(a_positive_signed_seq_is_a_seq),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "wire/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SIXTY_FOUR                                                             \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
    const char *name, *chunk, *fault; // NULL: none
} chunks[] = {
    {"letters, digits and marks", "Az09._-", NULL},
    {"64 bytes", SIXTY_FOUR, NULL},
    {"65 bytes", SIXTY_FOUR "x", "longer than 64"},
    {"nothing", "", "is empty"},
    {"missing", NULL, "is missing"},
    {"hidden", ".x", "starts with '.'"},
    {"dot inside", "v1.2", NULL},
    {"slash", "a/b", "other than A-Z"},
    {"star", "*", "other than A-Z"},
    {"dollar", "$x", "other than A-Z"},
    {"question mark", "a?", "other than A-Z"},
    {"hash", "a#", "other than A-Z"},
    {"space", "a b", "other than A-Z"},
    {"beyond ASCII", "\xc3\xa9", "other than A-Z"},
};

static void a_chunk_is_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(chunks); i++) {
        td_errinfo info = {0};
        td_err err = td_wire_key_check("model", chunks[i].chunk, &info);
        print_message("%s: %s\n", chunks[i].name, info.text);
        assert_int_equal(err, chunks[i].fault ? TD_ERR_INVALID : TD_OK);
        if (!chunks[i].fault) continue;
        assert_memory_equal(info.text, "model: ", 7);
        assert_non_null(strstr(info.text, chunks[i].fault));
    }
}

static const td_wire_route route = {"cell", "exp1", "pi0", "v1", "pick"};

static void a_key_joins_its_chunks(void **state)
{
    (void)state;
    char key[TD_WIRE_MAX_KEY];
    assert_int_equal(td_wire_key(&route, "r1", "obs", key, NULL), TD_OK);
    assert_string_equal(key, "cell/exp1/pi0/v1/pick/r1/obs");
    assert_int_equal(td_wire_key(&route, "*", "action", key, NULL), TD_OK);
    assert_string_equal(key, "cell/exp1/pi0/v1/pick/*/action");
    assert_int_equal(td_wire_key(&route, NULL, "status", key, NULL), TD_OK);
    assert_string_equal(key, "cell/exp1/pi0/v1/pick/status");
}

static void the_longest_key_fits(void **state)
{
    (void)state;
    const td_wire_route longest = {SIXTY_FOUR, SIXTY_FOUR, SIXTY_FOUR,
                                   SIXTY_FOUR, SIXTY_FOUR};
    char key[TD_WIRE_MAX_KEY];
    assert_int_equal(td_wire_key(&longest, SIXTY_FOUR, SIXTY_FOUR, key, NULL),
                     TD_OK);
    assert_int_equal(strlen(key), 7 * 64 + 6);
}

static void a_bad_chunk_leaves_the_key_untouched(void **state)
{
    (void)state;
    char key[TD_WIRE_MAX_KEY] = "before";
    td_errinfo info = {0};
    td_wire_route bad = route;
    bad.version = "v/1";
    assert_int_equal(td_wire_key(&bad, "r1", "obs", key, &info),
                     TD_ERR_INVALID);
    assert_non_null(strstr(info.text, "version: 'v/1'"));
    assert_int_equal(td_wire_key(&route, "**", "obs", key, &info),
                     TD_ERR_INVALID);
    assert_non_null(strstr(info.text, "client: '**'"));
    assert_int_equal(td_wire_key(&route, "r1", "", key, &info), TD_ERR_INVALID);
    assert_string_equal(key, "before");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chunk_is_checked),
        cmocka_unit_test(a_key_joins_its_chunks),
        cmocka_unit_test(the_longest_key_fits),
        cmocka_unit_test(a_bad_chunk_leaves_the_key_untouched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

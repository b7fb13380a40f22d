// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

// The standard's own examples.
static const struct {
    const char *text;
    size_t times;
    const char *digest;
} cases[] = {
    {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", 1,
     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"aaaaaaaaaa", 100000,
     "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

static void digests_are_the_standards(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        td_sha256 hash;
        char text[TD_SHA256_TEXT];
        td_sha256_init(&hash);
        for (size_t k = 0; k < cases[i].times; k++)
            td_sha256_add(&hash, cases[i].text, strlen(cases[i].text));
        td_sha256_text(&hash, text);
        assert_string_equal(text, cases[i].digest);
    }
}

static void pieces_do_not_matter(void **state)
{
    (void)state;
    char data[300], whole[TD_SHA256_TEXT], parts[TD_SHA256_TEXT];
    memset(data, 'x', sizeof data);
    for (size_t cut = 0; cut <= sizeof data; cut++) {
        td_sha256 hash;
        td_sha256_init(&hash);
        td_sha256_add(&hash, data, sizeof data);
        td_sha256_text(&hash, whole);
        td_sha256_init(&hash);
        td_sha256_add(&hash, data, cut);
        td_sha256_add(&hash, data + cut, sizeof data - cut);
        td_sha256_text(&hash, parts);
        assert_string_equal(whole, parts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_the_standards),
        cmocka_unit_test(pieces_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

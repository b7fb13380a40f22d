// SPDX-License-Identifier: Apache-2.0
#include "server/intake/tokens.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LONGEST                                                                \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void a_key_is_read_from_its_end(void **state)
{
    static const struct {
        const char *name, *key;
        const char *client; // NULL: not a token
        uint64_t boot;
    } cases[] = {
        {"whole", "c/e/m/v/a/arm-0/alive/17", "arm-0", 17},
        {"as short as can be", "arm-0/alive/0", "arm-0", 0},
        {"the greatest boot", "x/arm-0/alive/18446744073709551615", "arm-0",
         UINT64_MAX},
        {"a boot beyond", "x/arm-0/alive/18446744073709551616", NULL, 0},
        {"a negative boot", "x/arm-0/alive/-1", NULL, 0},
        {"a signed boot", "x/arm-0/alive/+1", NULL, 0},
        {"a boot after a space", "x/arm-0/alive/ 1", NULL, 0},
        {"a boot with a tail", "x/arm-0/alive/1x", NULL, 0},
        {"a boot in words", "x/arm-0/alive/one", NULL, 0},
        {"no boot", "x/arm-0/alive/", NULL, 0},
        {"no client", "/alive/1", NULL, 0},
        {"nothing but a boot", "1", NULL, 0},
        {"nothing", "", NULL, 0},
        {"a server's", "c/e/m/v/a/status/alive/gpu-1/3", NULL, 0},
        {"dead", "x/arm-0/dead/1", NULL, 0},
        {"alive and more", "x/arm-0/alives/1", NULL, 0},
        {"the longest client", "x/" LONGEST "/alive/1", LONGEST, 1},
        {"a longer one", "x/" LONGEST "0/alive/1", NULL, 0},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_server_token token = {.boot = 99};
        print_message("%s\n", cases[i].name);
        td_err err = td_server_token_parse(cases[i].key, &token);
        if (!cases[i].client) {
            assert_int_equal(err, TD_ERR_FORMAT);
            assert_int_equal(token.boot, 99);
            continue;
        }
        assert_int_equal(err, TD_OK);
        assert_string_equal(token.client, cases[i].client);
        assert_int_equal(token.boot, cases[i].boot);
    }
}

static td_server_token token_of(int client, uint64_t boot)
{
    td_server_token token = {.boot = boot};
    (void)snprintf(token.client, sizeof token.client, "arm-%d", client);
    return token;
}

static void add(td_server_tokens *tokens, int client, uint64_t boot)
{
    const td_server_token token = token_of(client, boot);
    assert_int_equal(td_server_tokens_add(tokens, &token), TD_OK);
}

static void drop(td_server_tokens *tokens, int client, uint64_t boot)
{
    const td_server_token token = token_of(client, boot);
    td_server_tokens_remove(tokens, &token);
}

static bool has(const td_server_tokens *tokens, int client, uint64_t boot)
{
    const td_server_token token = token_of(client, boot);
    return td_server_tokens_has(tokens, token.client, boot);
}

static void a_start_is_there_once_until_it_goes(void **state)
{
    (void)state;
    td_server_tokens tokens = {0};
    add(&tokens, 0, 1);
    add(&tokens, 0, 1);
    add(&tokens, 0, 2);
    add(&tokens, 1, 1);
    assert_int_equal(tokens.count, 3);
    drop(&tokens, 0, 1);
    assert_int_equal(tokens.count, 2);
    assert_false(has(&tokens, 0, 1));
    assert_true(has(&tokens, 0, 2));
    assert_true(has(&tokens, 1, 1));
    drop(&tokens, 0, 1);
    drop(&tokens, 7, 7);
    assert_int_equal(tokens.count, 2);
    free(tokens.list);
}

static void hundreds_come_and_go(void **state)
{
    (void)state;
    td_server_tokens tokens = {0};
    for (int i = 0; i < 500; i++)
        add(&tokens, i, 1);
    for (int i = 0; i < 500; i += 2)
        drop(&tokens, i, 1);
    assert_int_equal(tokens.count, 250);
    for (int i = 0; i < 500; i++)
        assert_int_equal(has(&tokens, i, 1), i % 2);
    free(tokens.list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_read_from_its_end),
        cmocka_unit_test(a_start_is_there_once_until_it_goes),
        cmocka_unit_test(hundreds_come_and_go),
    };
    return cmocka_run_group_tests_name("server/tokens", tests, NULL, NULL);
}

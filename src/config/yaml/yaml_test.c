// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static td_arena *arena;

static int setup(void **state)
{
    (void)state;
    return td_arena_new(&arena) == TD_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    td_arena_free(arena);
    return 0;
}

static td_config_node *parsed(const char *text)
{
    td_config_node *root = NULL;
    td_errinfo info = {""};
    td_err err =
        td_config_yaml_parse(arena, "f", text, strlen(text), &root, &info);
    if (err != TD_OK) fail_msg("%s: %s", td_err_name(err), info.text);
    return root;
}

static void every_node_knows_its_line(void **state)
{
    (void)state;
    td_config_node *root = parsed("a: 1\n"
                                  "list:\n"
                                  "  - x\n"
                                  "  - y: 2\n"
                                  "    z: 3\n"
                                  "b:\n"
                                  "  \"quoted\"\n");
    assert_int_equal(root->kind, TD_CONFIG_MAPPING);
    assert_int_equal(root->count, 3);
    const td_config_node *list = td_config_node_get(root, "list");
    assert_int_equal(list->kind, TD_CONFIG_SEQUENCE);
    assert_int_equal(list->line, 2);
    assert_int_equal(list->first->line, 3);
    const td_config_node *map = list->first->next;
    assert_int_equal(map->line, 4);
    assert_int_equal(td_config_node_get(map, "z")->line, 5);
    const td_config_node *b = td_config_node_get(root, "b");
    assert_int_equal(b->line, 6);
    assert_true(b->quoted);
    assert_string_equal(b->text, "quoted");
}

static void a_null_member_counts_as_absent(void **state)
{
    (void)state;
    td_config_node *root = parsed("{a: , b: ~, c: null, d: \"\", e: nul}");
    assert_null(td_config_node_get(root, "a"));
    assert_null(td_config_node_get(root, "b"));
    assert_null(td_config_node_get(root, "c"));
    assert_non_null(td_config_node_get(root, "d"));
    assert_non_null(td_config_node_get(root, "e"));
    assert_null(td_config_node_get(root, "f"));
}

static void what_a_file_may_not_hold_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *error;
    } cases[] = {
        {"empty", "# nothing\n", "f:2: the file is empty"},
        {"key twice", "a: 1\nb: 2\na: 3\n",
         "f:3: a: given twice, first on line 1"},
        {"anchor", "a: 1\nb: &x [1]\n",
         "f:2: anchors (&name) are not taken: write the value out"},
        {"alias", "a: *x\n",
         "f:1: aliases (*name) are not taken: write the value out"},
        {"tag", "a: !!str 1\n",
         "f:1: tags (!name) are not taken: write the value alone"},
        {"list as a key", "? [a]\n: 1\n",
         "f:1: the name of a field must be plain text"},
        {"second document", "a: 1\n---\nb: 2\n",
         "f:2: a second document: one is taken"},
        {"zero byte", "a: \"x\\0y\"\n", "f:1: a zero byte in a text"},
        {"tab", "a:\n\t- b\n",
         "f:2: not YAML: found character that cannot start any token"},
        {"open bracket", "a: [1, 2\n",
         "f:2: not YAML: did not find expected ',' or ']'"},
        {"not UTF-8", "a: \xff\xfe\n",
         "f:1: not YAML: invalid leading UTF-8 octet"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_config_node *root = NULL;
        td_errinfo info = {""};
        td_err err = td_config_yaml_parse(arena, "f", cases[i].text,
                                          strlen(cases[i].text), &root, &info);
        if (err != TD_ERR_FORMAT || root ||
            strcmp(info.text, cases[i].error) != 0)
            fail_msg("%s: %s, %s", cases[i].name, td_err_name(err), info.text);
    }
}

static void no_bytes_at_all_are_an_empty_file(void **state)
{
    (void)state;
    td_config_node *root = NULL;
    td_errinfo info = {""};
    assert_int_equal(td_config_yaml_parse(arena, "f", NULL, 0, &root, &info),
                     TD_ERR_FORMAT);
    assert_string_equal(info.text, "f:1: the file is empty");
}

static void assert_limit(const char *text, size_t size, const char *error)
{
    td_config_node *root = NULL;
    td_errinfo info = {""};
    assert_int_equal(td_config_yaml_parse(arena, "f", text, size, &root, &info),
                     TD_ERR_LIMIT);
    assert_string_equal(info.text, error);
}

static void limits_hold(void **state)
{
    (void)state;
    size_t size = TD_CONFIG_YAML_MAX_BYTES + 1;
    char *text = malloc(size);
    assert_non_null(text);
    memset(text, '[', size);
    assert_limit(text, size, "f: larger than 1048576 bytes");
    assert_limit(text, size - 1, "f:1: nested too deeply");
    for (size_t i = 1; i < size; i++)
        text[i] = i % 2 ? 'x' : ',';
    assert_limit(text, 100000, "f:1: too many values");
    free(text);
}

static void a_file_that_is_not_there_is_named(void **state)
{
    (void)state;
    td_slice data = {0};
    td_errinfo info = {""};
    assert_int_equal(
        td_config_yaml_load(arena, "/nowhere/m.yaml", &data, &info), TD_ERR_IO);
    assert_string_equal(info.text,
                        "/nowhere/m.yaml: No such file or directory");
    assert_int_equal(td_config_yaml_load(arena, "/", &data, &info), TD_ERR_IO);
    assert_string_equal(info.text, "/: Is a directory");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_node_knows_its_line),
        TEST(a_null_member_counts_as_absent),
        TEST(what_a_file_may_not_hold_is_refused),
        TEST(no_bytes_at_all_are_an_empty_file),
        TEST(limits_hold),
        TEST(a_file_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef enum colour { RED, GREEN } colour;

typedef struct part {
    const char *name;
    double size;
} part;

typedef struct thing {
    const char *id;
    const char *note;
    const char *at;
    const char **from;
    size_t from_count;
    bool on;
    int64_t count;
    double share;
    colour paint;
    part inner;
    part *list;
    size_t list_count;
    part *map;
    size_t map_count;
} thing;

static const char *const colours[] = {"red", "green", NULL};

static const td_config_field part_rows[] = {
    TD_ROW_NUMBER(part, size, "1.5", 0, 10, "how large"),
};
static const td_config_table part_table = {part_rows, TD_COUNT_OF(part_rows),
                                           sizeof(part), NULL};

static const td_config_field thing_rows[] = {
    TD_ROW_CHUNK(thing, id, NULL, "who it is"),
    TD_ROW_TEXT(thing, note, "none", 1, 8, "a word"),
    TD_ROW_ENDPOINT(thing, at, "tcp/localhost:1", "where"),
    TD_ROW_ENDPOINTS(thing, from, from_count, 0, 2, "whence"),
    TD_ROW_BOOL(thing, on, "true", "whether"),
    TD_ROW_INTEGER(thing, count, "3", -5, 5, "how many"),
    TD_ROW_NUMBER(thing, share, "0.25", 0, 1, "how much"),
    TD_ROW_ENUM(thing, paint, "green", colours, "which"),
    TD_ROW_STRUCT(thing, inner, part, "{}", part_table, "inside"),
    TD_ROW_STRUCTS(thing, list, list_count, part, "[]", part_table, 0, 2,
                   "several"),
    TD_ROW_MAP(thing, map, map_count, part, "[one, two]", part_table, 1, 3,
               "named"),
    TD_ROW_REFUSED("later", "is not in this version"),
};
static const td_config_table thing_table = {thing_rows, TD_COUNT_OF(thing_rows),
                                            sizeof(thing), NULL};

static thing *parsed(const char *text)
{
    void *value = NULL;
    td_errinfo info = {""};
    td_err err = td_config_table_parse(&thing_table, "f", text, strlen(text),
                                       &value, &info);
    if (err != TD_OK) fail_msg("%s: %s", td_err_name(err), info.text);
    return value;
}

static void an_absent_field_holds_its_default(void **state)
{
    (void)state;
    thing *got = parsed("id: a\n");
    assert_string_equal(got->note, "none");
    assert_string_equal(got->at, "tcp/localhost:1");
    assert_int_equal(got->from_count, 0);
    assert_true(got->on);
    assert_int_equal(got->count, 3);
    assert_true(got->share == 0.25);
    assert_int_equal(got->paint, GREEN);
    assert_true(got->inner.size == 1.5);
    assert_int_equal(got->list_count, 0);
    assert_int_equal(got->map_count, 2);
    assert_string_equal(got->map[1].name, "two");
    assert_true(got->map[1].size == 1.5);
    td_config_table_free(got);
}

static void a_given_field_is_read(void **state)
{
    (void)state;
    thing *got = parsed("id: 007\n"
                        "note: \"two w\"\n"
                        "at: unixsock-stream//tmp/a\n"
                        "from: [tcp/a:1, tcp/b:2]\n"
                        "on: false\n"
                        "count: -5\n"
                        "share: 1e-3\n"
                        "paint: red\n"
                        "inner: {size: 2}\n"
                        "list: [{size: 3}, {}]\n"
                        "map: {x: {size: 4}, y: }\n"
                        "later: ~\n");
    assert_string_equal(got->id, "007");
    assert_string_equal(got->note, "two w");
    assert_string_equal(got->at, "unixsock-stream//tmp/a");
    assert_int_equal(got->from_count, 2);
    assert_string_equal(got->from[1], "tcp/b:2");
    assert_false(got->on);
    assert_int_equal(got->count, -5);
    assert_true(got->share == 1e-3);
    assert_int_equal(got->paint, RED);
    assert_true(got->inner.size == 2);
    assert_int_equal(got->list_count, 2);
    assert_true(got->list[0].size == 3);
    assert_true(got->list[1].size == 1.5);
    assert_int_equal(got->map_count, 2);
    assert_string_equal(got->map[0].name, "x");
    assert_true(got->map[0].size == 4);
    assert_true(got->map[1].size == 1.5);
    td_config_table_free(got);
}

#define CHUNK_RULE "must be 1 to 64 of A-Z a-z 0-9 . _ -, not starting with '.'"
static const struct {
    const char *text, *error;
} broken[] = {
    {"id: a/b", "f:2: id: " CHUNK_RULE ", got a/b"},
    {"id: .a", "f:2: id: " CHUNK_RULE ", got .a"},
    {"id: \"\"", "f:2: id: " CHUNK_RULE ", got \"\""},
    {"id: [a]", "f:2: id: " CHUNK_RULE ", got a list"},
    {"id: a\nnote: 123456789", "f:3: note: must be text of 1 to 8 bytes, "
                               "got 123456789"},
    {"id: a\nat: localhost", "f:3: at: must be protocol/address such as "
                             "tcp/192.168.1.50:7447, got localhost"},
    {"id: a\nfrom:\n - tcp/x\n - y/",
     "f:5: from[1]: must be protocol/address such as "
     "tcp/192.168.1.50:7447, got y/"},
    {"id: a\nfrom: tcp/x", "f:3: from: must be a list, got tcp/x"},
    {"id: a\nfrom: [a/b, a/b, a/b]",
     "f:3: from: must have 0 to 2 members, got 3"},
    {"id: a\non: yes", "f:3: on: must be true or false, got yes"},
    {"id: a\non: \"true\"", "f:3: on: must be true or false, got \"true\""},
    {"id: a\ncount: 6", "f:3: count: must be -5 to 5, got 6"},
    {"id: a\ncount: 2.5",
     "f:3: count: must be a whole number, -5 to 5, got 2.5"},
    {"id: a\ncount: 99999999999999999999",
     "f:3: count: must be -5 to 5, got 99999999999999999999"},
    {"id: a\nshare: nan", "f:3: share: must be 0 to 1, got nan"},
    {"id: a\nshare: 0x1", "f:3: share: must be 0 to 1, got 0x1"},
    {"id: a\nshare: 1.5", "f:3: share: must be 0 to 1, got 1.5"},
    {"id: a\npaint: blue", "f:3: paint: must be red, green, got blue"},
    {"id: a\ninner: 3", "f:3: inner: must be a map of fields, got 3"},
    {"id: a\ninner:\n  size: 11", "f:4: inner.size: must be 0 to 10, got 11"},
    {"id: a\nlist:\n- {}\n- size: x",
     "f:5: list[1].size: must be 0 to 10, got x"},
    {"id: a\nmap: {b: {size: -1}}", "f:3: map.b.size: must be 0 to 10, got -1"},
    {"id: a\nmap: x", "f:3: map: must be a map or a list of names, got x"},
    {"id: a\nmap: {}", "f:3: map: must have 1 to 3 members, got 0"},
    {"id: a\nmap: [x, y, x]", "f:3: map[2]: x is given twice"},
    {"id: a\nmap: [[x]]", "f:3: map[0]: must be a name, got a list"},
    {"id: a\nlater: 1", "f:3: later: is not in this version"},
    {"id: a\ncuont: 1", "f:3: cuont: no such field, did you mean count?"},
    {"id: a\ninner: {sise: 1}",
     "f:3: inner.sise: no such field, did you mean size?"},
    {"id: a\nelephant: 1", "f:3: elephant: no such field"},
    {"count: 1", "f:2: id: is missing, " CHUNK_RULE},
    {"- a", "f:2: must be a map of fields, got a list"},
    {"id: a\nnote: \"\\e[2J\\n\u00e9\u00e9\u00e9\"",
     "f:3: note: must be text of 1 to 8 bytes, "
     "got \"?[2J?\u00e9\u00e9\u00e9\""},
};

static void
a_bad_value_is_named_with_its_line_and_what_would_be_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(broken); i++) {
        char text[256];
        void *value = NULL;
        td_errinfo info = {""};
        snprintf(text, sizeof text, "# first line\n%s\n", broken[i].text);
        td_err err = td_config_table_parse(&thing_table, "f", text,
                                           strlen(text), &value, &info);
        if (err != TD_ERR_INVALID || value ||
            strcmp(info.text, broken[i].error) != 0)
            fail_msg("%s:\n got  %s\n want %s", broken[i].text, info.text,
                     broken[i].error);
    }
}

static void a_long_value_is_cut_between_characters(void **state)
{
    (void)state;
#define TEN "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"
    static const char text[] = "id: a" TEN TEN TEN TEN;
    void *value = NULL;
    td_errinfo info = {""};
    assert_int_equal(td_config_table_parse(&thing_table, "f", text,
                                           strlen(text), &value, &info),
                     TD_ERR_INVALID);
    const char *got = strstr(info.text, "got ");
    assert_non_null(got);
    assert_string_equal(got, "got a" TEN TEN "\u00e9\u00e9\u00e9"
                             "...");
}

static void a_long_path_leaves_room_for_the_error(void **state)
{
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%01000d/m.yaml", 0);
    void *value = NULL;
    td_errinfo info = {""};
    assert_int_equal(td_config_table_parse(&thing_table, path, "id: a\non: 1",
                                           11, &value, &info),
                     TD_ERR_INVALID);
    assert_non_null(
        strstr(info.text, "/m.yaml:2: on: must be true or false, got 1"));
}

static void help_names_every_field_that_is_taken(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    td_config_table_help(&thing_table, out);
    fclose(out);
    assert_non_null(strstr(text, "not starting with '.' (required)\n"));
    assert_non_null(strstr(text, "map: names, each a map of fields (default "));
    assert_non_null(strstr(text, "count: -5 to 5 (default 3)\n    how many\n"));
    assert_non_null(strstr(text, "paint: red, green (default green)\n"));
    assert_non_null(strstr(text, "inner: a map of fields (default {})\n"
                                 "    inside\n"
                                 "  size: 0 to 10 (default 1.5)\n"));
    assert_null(strstr(text, "later"));
    free(text);
}

static void page_has_a_row_for_every_field(void **state)
{
    static const char *const rows[] = {
        "| field | takes | default | what it is for |\n|---|---|---|---|\n",
        "| `count` | -5 to 5 | `3` | how many |\n",
        "| `inner.size` | 0 to 10 | `1.5` | ",
        "| `later` | not taken | | ",
    };
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    td_config_page_write(&thing_table, out);
    fclose(out);
    for (size_t i = 0; i < TD_COUNT_OF(rows); i++)
        if (!strstr(text, rows[i])) fail_msg("no %s in\n%s", rows[i], text);
    free(text);
}

typedef struct drawer {
    int64_t count;
    double *sizes;
    size_t size_count;
    part *parts;
    size_t part_count;
} drawer;

static const td_config_field drawer_rows[] = {
    TD_ROW_INTEGER(drawer, count, "3", 0, 5, "how many"),
    TD_ROW_NUMBERS(drawer, sizes, size_count, "[]", 0, 9, 0, 3, "how large"),
    TD_ROW_REFUSED("parts", "each by its own name"),
    TD_ROW_REST(drawer, parts, part_count, part, part_table, 1, 2, "a part"),
};
static const td_config_table drawer_table = {
    drawer_rows, TD_COUNT_OF(drawer_rows), sizeof(drawer), NULL};

static td_err parse_drawer(const char *text, drawer **ret_drawer,
                           td_errinfo *info)
{
    void *value = NULL;
    td_err err = td_config_table_parse(&drawer_table, "f", text, strlen(text),
                                       &value, info);
    *ret_drawer = value;
    return err;
}

static void what_no_row_names_is_the_rest(void **state)
{
    (void)state;
    drawer *got = NULL;
    td_errinfo info = {""};
    assert_int_equal(parse_drawer("knob: {size: 2}\n"
                                  "sizes: [3, 0.5]\n"
                                  "empty: ~\n"
                                  "back: {}\n"
                                  "count: 1\n",
                                  &got, &info),
                     TD_OK);
    assert_int_equal(got->count, 1);
    assert_int_equal(got->size_count, 2);
    assert_true(got->sizes[1] == 0.5);
    assert_int_equal(got->part_count, 2);
    assert_string_equal(got->parts[0].name, "knob");
    assert_true(got->parts[0].size == 2);
    assert_string_equal(got->parts[1].name, "back");
    assert_true(got->parts[1].size == 1.5);
    td_config_table_free(got);
}

static void what_cannot_be_of_the_rest_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"count: 1", "f:1: parts: must have 1 to 2 members, got 0"},
        {"a: {}\nb: {}\nc: {}", "f:1: parts: must have 1 to 2 members, got 3"},
        {"a: {}\ncuont: 1", "f:2: cuont: no such field, did you mean count?"},
        {"a: {}\nelephant: 1", "f:2: elephant: must be a map of fields, got 1"},
        {"a:\n  sise: 1", "f:2: a.sise: no such field, did you mean size?"},
        {"parts: {a: {}}", "f:1: parts: each by its own name"},
        {"a: {}\nsizes: [1, x]", "f:2: sizes[1]: must be 0 to 9, got x"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        drawer *got = NULL;
        td_errinfo info = {""};
        td_err err = parse_drawer(cases[i].text, &got, &info);
        if (err != TD_ERR_INVALID || got ||
            strcmp(info.text, cases[i].error) != 0)
            fail_msg("%s:\n got  %s\n want %s", cases[i].text, info.text,
                     cases[i].error);
    }
}

static void schema_says_what_the_table_says(void **state)
{
    static const char *const parts[] = {
        "\"title\":\"things\",\"type\":\"object\"",
        "\"count\":{\"description\":\"how many\",\"default\":3,"
        "\"type\":\"integer\",\"minimum\":-5,\"maximum\":5}",
        "\"paint\":{\"description\":\"which\",\"default\":\"green\","
        "\"enum\":[\"red\",\"green\"]}",
        "\"later\":false",
        "\"required\":[\"id\"],\"additionalProperties\":false}\n",
        "\"minItems\":0,\"maxItems\":2,\"items\":{\"type\":\"object\"",
    };
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    td_config_schema_write(&thing_table, "things", out);
    fclose(out);
    for (size_t i = 0; i < TD_COUNT_OF(parts); i++)
        if (!strstr(text, parts[i])) fail_msg("no %s in\n%s", parts[i], text);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_no_row_names_is_the_rest),
        cmocka_unit_test(what_cannot_be_of_the_rest_is_refused),
        cmocka_unit_test(schema_says_what_the_table_says),
        cmocka_unit_test(an_absent_field_holds_its_default),
        cmocka_unit_test(a_given_field_is_read),
        cmocka_unit_test(
            a_bad_value_is_named_with_its_line_and_what_would_be_right),
        cmocka_unit_test(a_long_value_is_cut_between_characters),
        cmocka_unit_test(a_long_path_leaves_room_for_the_error),
        cmocka_unit_test(help_names_every_field_that_is_taken),
        cmocka_unit_test(page_has_a_row_for_every_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

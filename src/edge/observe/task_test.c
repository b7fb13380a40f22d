// SPDX-License-Identifier: Apache-2.0
#include "edge/observe/task.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_change_is_noticed_once(void **state)
{
    (void)state;
    TD_AUTO(td_edge_task) *task = NULL;
    td_edge_task_copy mine = {0};
    assert_int_equal(td_edge_task_new("fold the towel", &task, NULL), TD_OK);
    assert_true(td_edge_task_update(task, &mine));
    assert_string_equal(mine.text, "fold the towel");
    assert_false(td_edge_task_update(task, &mine));
    assert_int_equal(td_edge_task_set(task, "stack the cups", NULL), TD_OK);
    assert_true(td_edge_task_update(task, &mine));
    assert_string_equal(mine.text, "stack the cups");
    assert_int_equal(td_edge_task_set(task, "stack the cups", NULL), TD_OK);
    assert_false(td_edge_task_update(task, &mine)); // set, and the same
}

static void a_bad_task_changes_nothing(void **state)
{
    (void)state;
    TD_AUTO(td_edge_task) *task = NULL;
    td_edge_task_copy mine = {0};
    td_errinfo info;
    assert_int_equal(td_edge_task_new("fold", &task, NULL), TD_OK);
    assert_int_equal(td_edge_task_set(task, "\xff", &info), TD_ERR_FORMAT);
    assert_non_null(strstr(info.text, "task"));
    assert_true(td_edge_task_update(task, &mine));
    assert_string_equal(mine.text, "fold");
}

static void a_long_task_is_cut_between_characters(void **state)
{
    static const struct {
        const char *name, *task;
        size_t size;
        const char *cut;
    } cases[] = {
        {"it fits", "fold", 5, "fold"},
        {"one byte too long", "fold", 4, "fol"},
        {"inside a character of two bytes", "f\xc3\xbcll", 3, "f"},
        {"behind it", "f\xc3\xbcll", 4, "f\xc3\xbc"},
        {"inside one of four", "\xf0\x9f\xa4\x96!", 4, ""},
        {"empty: the other", "", 8, "default"},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        TD_AUTO(td_edge_task) *task = NULL;
        char cut[16];
        assert_int_equal(td_edge_task_new(cases[i].task, &task, NULL), TD_OK);
        td_edge_task_cut(task, "default", cases[i].size, cut);
        if (strcmp(cut, cases[i].cut) != 0)
            fail_msg("%s: \"%s\"", cases[i].name, cut);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_is_noticed_once),
        cmocka_unit_test(a_bad_task_changes_nothing),
        cmocka_unit_test(a_long_task_is_cut_between_characters),
    };
    return cmocka_run_group_tests_name("edge/task", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "engine/native/pipeline/prompt.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static td_native_prompt prompt;

static void begin(const char *task)
{
    td_wire_text text = {task, (uint32_t)strlen(task)};
    assert_int_equal(td_native_prompt_init(&prompt, text, NULL), TD_OK);
}

static void assert_text(const char *wanted)
{
    assert_int_equal(prompt.size, strlen(wanted));
    assert_memory_equal(prompt.text, wanted, prompt.size);
}

static void a_line_is_ended_once(void **state)
{
    (void)state;
    begin("pick");
    td_native_prompt_end_line(&prompt);
    td_native_prompt_end_line(&prompt);
    assert_text("pick\n");
    begin("");
    td_native_prompt_end_line(&prompt);
    assert_text("\n");
}

static void a_task_is_cleaned_and_the_state_follows(void **state)
{
    (void)state;
    const float values[] = {0, 1};
    begin("\xe3\x80\x80 \t pick_the\nred  cube\xc2\xa0\n");
    td_native_prompt_add_state(&prompt, values, 2);
    assert_text("Task: pick the red  cube, State: 128 255;\nAction: ");
    begin(" \n\xe2\x80\xa8 ");
    td_native_prompt_add_state(&prompt, values, 1);
    assert_text("Task: , State: 128;\nAction: ");
    begin("caf\xc3\xa9");
    td_native_prompt_add_state(&prompt, values, 0);
    assert_text("Task: caf\xc3\xa9, State: ;\nAction: ");
}

static void values_fall_into_256_steps_as_numpy_says(void **state)
{
    (void)state;
    const float values[] = {-INFINITY,  -1.0001f,  -1,      -0x1p-149f,
                            0,          0x1p-149f, 0x1p-7f, 0.9921874f,
                            0.9921875f, 1,         3e38f};
    begin("x");
    td_native_prompt_add_state(&prompt, values, TD_COUNT_OF(values));
    assert_text("Task: x, State: -1 -1 0 127 128 128 129 254 255 255 255;\n"
                "Action: ");
}

static void the_longest_task_and_state_find_room(void **state)
{
    (void)state;
    static char task[TD_WIRE_MAX_TEXT + 1];
    float values[TD_WIRE_MAX_CHANNELS];
    memset(task, 'x', sizeof task);
    for (size_t i = 0; i < TD_COUNT_OF(values); i++)
        values[i] = 1;
    td_wire_text most = {task, TD_WIRE_MAX_TEXT};
    assert_int_equal(td_native_prompt_init(&prompt, most, NULL), TD_OK);
    td_native_prompt_add_state(&prompt, values, TD_WIRE_MAX_CHANNELS);
    td_native_prompt_end_line(&prompt);
    assert_true(prompt.size <= sizeof prompt.text);
    td_wire_text more = {task, TD_WIRE_MAX_TEXT + 1};
    assert_int_equal(td_native_prompt_init(&prompt, more, NULL), TD_ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_ended_once),
        cmocka_unit_test(a_task_is_cleaned_and_the_state_follows),
        cmocka_unit_test(values_fall_into_256_steps_as_numpy_says),
        cmocka_unit_test(the_longest_task_and_state_find_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

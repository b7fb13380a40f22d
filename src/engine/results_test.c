// SPDX-License-Identifier: Apache-2.0
#include "engine/results.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static td_engine_results results;
static td_errinfo info;
static const float values[6] = {1, 2, 3, 4, 5, 6};

static int setup(void **state)
{
    (void)state;
    results = (td_engine_results){0};
    info.text[0] = '\0';
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    td_engine_results_done(&results);
    return 0;
}

static td_wire_tensor tensor_of(uint32_t rows, uint32_t columns)
{
    return (td_wire_tensor){.dtype = TD_WIRE_F32,
                            .rank = 2,
                            .shape = {rows, columns},
                            .data = values,
                            .size = (size_t)rows * columns * sizeof(float)};
}

static td_err add(const char *name, td_wire_tensor tensor)
{
    return td_engine_results_add(&results, td_wire_text_of(name), &tensor,
                                 &info);
}

static void what_is_added_is_a_copy(void **state)
{
    (void)state;
    char name[] = "value";
    float own[2] = {7, 8};
    td_wire_tensor tensor = tensor_of(1, 2);
    tensor.data = own;
    assert_int_equal(add(name, tensor), TD_OK);
    name[0] = 'x';
    own[1] = 0;
    assert_int_equal(results.count, 1);
    assert_true(td_wire_text_is(results.named[0].name, "value"));
    const td_wire_tensor *kept = &results.named[0].tensor;
    assert_int_equal(kept->rank, 2);
    assert_int_equal(kept->shape[1], 2);
    assert_memory_equal(kept->data, ((float[]){7, 8}), 8);
}

static void what_is_there_stays_as_it_grows(void **state)
{
    (void)state;
    static const uint8_t large[20000] = {9};
    const td_wire_tensor more = {.dtype = TD_WIRE_U8,
                                 .rank = 1,
                                 .shape = {sizeof large},
                                 .data = large,
                                 .size = sizeof large};
    assert_int_equal(add("first", tensor_of(2, 3)), TD_OK);
    assert_int_equal(
        td_engine_results_set_text(&results, td_wire_text_of("go left"), &info),
        TD_OK);
    assert_int_equal(add("second", more), TD_OK);
    assert_true(td_wire_text_is(results.named[0].name, "first"));
    assert_memory_equal(results.named[0].tensor.data, values, sizeof values);
    assert_true(td_wire_text_is(results.text, "go left"));
    assert_memory_equal(results.named[1].tensor.data, large, sizeof large);
}

static void cleared_it_is_empty_and_its_memory_is_used_again(void **state)
{
    (void)state;
    assert_int_equal(add("first", tensor_of(2, 3)), TD_OK);
    const uint8_t *memory = results.memory;
    td_engine_results_clear(&results);
    assert_int_equal(results.count, 0);
    assert_int_equal(add("first", tensor_of(1, 1)), TD_OK);
    assert_ptr_equal(results.named[0].tensor.data, memory);
}

static td_wire_tensor no_such_dtype(void)
{
    td_wire_tensor tensor = tensor_of(1, 1);
    tensor.dtype = (td_wire_dtype)(TD_WIRE_BOOL + 1);
    return tensor;
}

static td_wire_tensor no_rank(void)
{
    td_wire_tensor tensor = tensor_of(1, 1);
    tensor.rank = 0;
    return tensor;
}

static td_wire_tensor cut_short(void)
{
    td_wire_tensor tensor = tensor_of(2, 3);
    tensor.size--;
    return tensor;
}

static td_wire_tensor too_large(void)
{
    td_wire_tensor tensor = tensor_of(1u << 12, 1u << 12);
    return tensor;
}

static td_wire_tensor small(void)
{
    return tensor_of(1, 1);
}

static void what_an_answer_cannot_carry_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        td_wire_tensor (*make)(void);
        td_err err;
        const char *text;
    } cases[] = {
        {"", small, TD_ERR_FORMAT, "results: a name is empty"},
        {"a\nb", small, TD_ERR_FORMAT,
         "results: a name is not printable UTF-8"},
        {"first", small, TD_ERR_FORMAT, "results: first: is there twice"},
        {"x", no_such_dtype, TD_ERR_FORMAT, "results: x: dtype 10 of rank 2"},
        {"x", no_rank, TD_ERR_FORMAT, "results: x: dtype 0 of rank 0"},
        {"x", cut_short, TD_ERR_FORMAT,
         "results: x: its shape needs 24 bytes, got 23"},
        {"x", too_large, TD_ERR_LIMIT,
         "results: 67108865 bytes more than the "
         "9 there are, at most 33554432"},
    };
    assert_int_equal(add("first", tensor_of(1, 1)), TD_OK);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        assert_int_equal(add(cases[i].name, cases[i].make()), cases[i].err);
        assert_string_equal(info.text, cases[i].text);
        assert_int_equal(results.count, 1);
    }
}

static void there_are_as_many_as_a_message_holds(void **state)
{
    (void)state;
    char name[16];
    for (int i = 0; i < TD_WIRE_MAX_TENSORS; i++) {
        (void)snprintf(name, sizeof name, "r%d", i);
        assert_int_equal(add(name, tensor_of(1, 1)), TD_OK);
    }
    assert_int_equal(add("more", tensor_of(1, 1)), TD_ERR_LIMIT);
    assert_string_equal(info.text, "results: more than 32");
}

static void a_text_that_is_none_leaves_the_one_before(void **state)
{
    (void)state;
    static char long_text[TD_WIRE_MAX_TEXT + 1];
    memset(long_text, 'a', sizeof long_text);
    assert_int_equal(
        td_engine_results_set_text(&results, td_wire_text_of("one"), &info),
        TD_OK);
    assert_int_equal(
        td_engine_results_set_text(&results, td_wire_text_of("\xff"), &info),
        TD_ERR_FORMAT);
    assert_string_equal(info.text, "text: text is not valid UTF-8");
    assert_int_equal(
        td_engine_results_set_text(
            &results, (td_wire_text){long_text, sizeof long_text}, &info),
        TD_ERR_LIMIT);
    assert_true(td_wire_text_is(results.text, "one"));
}

static void nothing_at_all_is_something(void **state)
{
    (void)state;
    assert_int_equal(
        td_engine_results_set_text(&results, (td_wire_text){0}, &info), TD_OK);
    assert_int_equal(add("none", tensor_of(0, 5)), TD_OK);
    assert_int_equal(results.named[0].tensor.size, 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_is_added_is_a_copy),
        TEST(what_is_there_stays_as_it_grows),
        TEST(cleared_it_is_empty_and_its_memory_is_used_again),
        TEST(what_an_answer_cannot_carry_is_refused),
        TEST(there_are_as_many_as_a_message_holds),
        TEST(a_text_that_is_none_leaves_the_one_before),
        TEST(nothing_at_all_is_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void what_is_taken_is_zero_and_aligned(void **state)
{
    (void)state;
    td_arena arena = {0};
    for (size_t bytes = 0; bytes < 9000; bytes += 37) {
        unsigned char *taken = td_arena_alloc(&arena, 1, bytes);
        assert_non_null(taken);
        assert_int_equal((uintptr_t)taken % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(taken[i], 0);
        memset(taken, 0xff, bytes);
    }
    td_arena_done(&arena);
    assert_null(arena.blocks);
}

static void a_size_that_overflows_is_refused(void **state)
{
    (void)state;
    td_arena arena = {0};
    assert_null(td_arena_alloc(&arena, SIZE_MAX, 2));
    assert_null(td_arena_alloc(&arena, 1, SIZE_MAX));
    td_arena_done(&arena);
}

static void texts_are_ended_by_nul(void **state)
{
    (void)state;
    td_arena *arena = NULL;
    assert_int_equal(td_arena_new(&arena), TD_OK);
    assert_string_equal(td_arena_copy(arena, "robots", 5), "robot");
    assert_string_equal(td_arena_copy(arena, NULL, 0), "");
    assert_string_equal(td_arena_print(arena, "%s-%d", "robot", 7), "robot-7");
    td_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_taken_is_zero_and_aligned),
        cmocka_unit_test(a_size_that_overflows_is_refused),
        cmocka_unit_test(texts_are_ended_by_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

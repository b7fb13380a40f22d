// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/assign.h"

#include "base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

#define MOST 6

static double sum(const double *worth, size_t rows, size_t columns,
                  const size_t *column_of)
{
    double total = 0;
    for (size_t i = 0; i < rows; i++)
        total += worth[i * columns + column_of[i]];
    return total;
}

static void the_best_pairs_are_taken_though_a_row_gets_less(void **state)
{
    (void)state;
    // In turn, the first row would take 9 and leave 1.
    static const double worth[] = {9, 8, 9, 1};
    size_t column_of[2];
    assert_int_equal(td_plan_assign(worth, 2, 2, column_of), TD_OK);
    assert_int_equal(column_of[0], 1);
    assert_int_equal(column_of[1], 0);
}

static void no_rows_are_assigned_at_once(void **state)
{
    (void)state;
    size_t none = 7;
    assert_int_equal(td_plan_assign(NULL, 0, 3, &none), TD_OK);
    assert_int_equal(none, 7);
}

// Tries every way that is left.
static double best_of(const double *worth, size_t rows, size_t columns,
                      size_t row, uint32_t taken)
{
    double best = row == rows ? 0 : -1e9;
    for (size_t j = 0; row < rows && j < columns; j++) {
        if (taken & 1u << j) continue;
        double total = worth[row * columns + j] +
                       best_of(worth, rows, columns, row + 1, taken | 1u << j);
        if (total > best) best = total;
    }
    return best;
}

static void draw(td_rand *rand, double *worth, size_t count)
{
    for (size_t i = 0; i < count; i++)
        worth[i] = (double)(td_rand_u64(rand) % 13) - 4;
}

static void random_problems_are_solved_as_by_trying_all(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 1);
    for (int i = 0; i < 2000; i++) {
        double worth[MOST * MOST];
        size_t column_of[MOST];
        uint32_t used = 0;
        size_t columns = 1 + td_rand_u64(&rand) % MOST;
        size_t rows = 1 + td_rand_u64(&rand) % columns;
        draw(&rand, worth, rows * columns);
        assert_int_equal(td_plan_assign(worth, rows, columns, column_of),
                         TD_OK);
        for (size_t j = 0; j < rows; j++) {
            assert_true(column_of[j] < columns);
            assert_false(used & 1u << column_of[j]);
            used |= 1u << column_of[j];
        }
        assert_true(sum(worth, rows, columns, column_of) ==
                    best_of(worth, rows, columns, 0, 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_pairs_are_taken_though_a_row_gets_less),
        cmocka_unit_test(no_rows_are_assigned_at_once),
        cmocka_unit_test(random_problems_are_solved_as_by_trying_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

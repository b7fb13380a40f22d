// SPDX-License-Identifier: Apache-2.0
#include "base/hist.h"

#include "base/rand.h"
#include "base/sync/thread.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { VALUES = 20000, CONCURRENT_VALUES = 200000 };

static td_hist hist, other, whole;

static int setup(void **state)
{
    (void)state;
    td_hist_init(&hist);
    td_hist_init(&other);
    td_hist_init(&whole);
    return 0;
}

// Spread over all magnitudes up to 2^bits.
static int64_t random_value(td_rand *rand, unsigned bits)
{
    unsigned shift = 64 - bits + (unsigned)(td_rand_u64(rand) % bits);
    return (int64_t)(td_rand_u64(rand) >> shift);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void empty_has_zeros(void **state)
{
    (void)state;
    assert_int_equal(td_hist_count(&hist), 0);
    assert_int_equal(td_hist_min(&hist), 0);
    assert_int_equal(td_hist_max(&hist), 0);
    assert_int_equal(td_hist_quantile(&hist, 0.5), 0);
    assert_true(td_hist_mean(&hist) == 0);
}

static const struct {
    const char *name;
    int64_t value;
    int64_t recorded;
} singles[] = {
    {"zero", 0, 0},
    {"negative counts as 0", -5, 0},
    {"below the first octave", 127, 127},
    {"first octave", 128, 128},
    {"odd in a wide bucket", 1000003, 1000003},
    {"largest of the range", (INT64_C(1) << 40) - 1, (INT64_C(1) << 40) - 1},
    {"beyond the range", INT64_C(1) << 40, INT64_C(1) << 40},
    {"largest of all", INT64_MAX, INT64_MAX},
};

static void one_value_is_exact_at_every_quantile(void **state)
{
    for (size_t i = 0; i < TD_COUNT_OF(singles); i++) {
        setup(state);
        td_hist_record(&hist, singles[i].value);
        int64_t want = singles[i].recorded;
        if (td_hist_quantile(&hist, 0) != want ||
            td_hist_quantile(&hist, 0.5) != want ||
            td_hist_quantile(&hist, 1) != want || td_hist_min(&hist) != want ||
            td_hist_max(&hist) != want || td_hist_count(&hist) != 1)
            fail_msg("%s", singles[i].name);
    }
}

static void values_below_128_are_exact(void **state)
{
    (void)state;
    for (int64_t value = 0; value < 128; value++)
        td_hist_record(&hist, value);
    for (int64_t value = 0; value < 128; value++)
        assert_int_equal(td_hist_quantile(&hist, (double)(value + 1) / 128),
                         value);
}

// Each bucket's first value lies one above the top of the bucket below it:
// with a neighbour on either side, neither is mistaken for the other.
static void buckets_begin_at_powers_of_two(void **state)
{
    for (int bit = 7; bit < 40; bit++) {
        setup(state);
        int64_t edge = INT64_C(1) << bit;
        td_hist_record(&hist, edge - 1);
        td_hist_record(&hist, edge);
        td_hist_record(&hist, INT64_MAX);
        assert_int_equal(td_hist_quantile(&hist, 0.3), edge - 1);
        int64_t width = edge >> TD_HIST_SUB_BITS;
        assert_int_equal(td_hist_quantile(&hist, 0.5), edge + width - 1);
    }
}

static void quantiles_are_within_a_bucket_of_the_sorted_values(void **state)
{
    (void)state;
    static int64_t sorted[VALUES];
    td_rand rand;
    td_rand_init(&rand, 1);
    for (size_t i = 0; i < VALUES; i++) {
        sorted[i] = random_value(&rand, 40);
        td_hist_record(&hist, sorted[i]);
    }
    qsort(sorted, VALUES, sizeof sorted[0], compare);

    for (int k = 0; k <= 1000; k++) {
        double quantile = k / 1000.0;
        size_t rank = (size_t)ceil(quantile * VALUES);
        int64_t exact = sorted[rank > 0 ? rank - 1 : 0];
        int64_t got = td_hist_quantile(&hist, quantile);
        assert_true(got >= exact);
        assert_true(got - exact <= exact / 128);
    }
    assert_int_equal(td_hist_count(&hist), VALUES);
    assert_int_equal(td_hist_quantile(&hist, 0), sorted[0]);
    assert_int_equal(td_hist_min(&hist), sorted[0]);
    assert_int_equal(td_hist_quantile(&hist, 1), sorted[VALUES - 1]);
    assert_int_equal(td_hist_max(&hist), sorted[VALUES - 1]);
}

static void quantile_outside_0_to_1_is_the_nearer_end(void **state)
{
    (void)state;
    td_hist_record(&hist, 3);
    td_hist_record(&hist, 9);
    assert_int_equal(td_hist_quantile(&hist, -1), 3);
    assert_int_equal(td_hist_quantile(&hist, NAN), 3);
    assert_int_equal(td_hist_quantile(&hist, 2), 9);
}

static void values_beyond_the_range_are_not_made_smaller(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        td_hist_record(&hist, (INT64_C(1) << 40) + i);
    assert_int_equal(td_hist_quantile(&hist, 0.5), (INT64_C(1) << 40) + 3);
}

static void mean_is_exact(void **state)
{
    (void)state;
    td_hist_record(&hist, 1000001);
    td_hist_record(&hist, 2000002);
    assert_true(td_hist_mean(&hist) == 1500001.5);
}

static void the_count_to_a_value_is_within_a_bucket(void **state)
{
    (void)state;
    static const int64_t values[] = {0, 127, 1000000, 1000001, 2000000};
    uint64_t sum = 0;
    for (size_t i = 0; i < TD_COUNT_OF(values); i++) {
        td_hist_record(&hist, values[i]);
        sum += (uint64_t)values[i];
    }
    td_hist_record(&hist, INT64_MAX);
    assert_int_equal(td_hist_sum(&hist), sum + INT64_MAX);

    assert_int_equal(td_hist_count_to(&hist, -1), 0);
    assert_int_equal(td_hist_count_to(&hist, 0), 1);
    assert_int_equal(td_hist_count_to(&hist, 126), 1);
    assert_int_equal(td_hist_count_to(&hist, 127), 2);
    assert_int_equal(td_hist_count_to(&hist, 990000), 2);
    assert_int_equal(td_hist_count_to(&hist, 1000000), 4);
    assert_int_equal(td_hist_count_to(&hist, 1980000), 4);
    assert_int_equal(td_hist_count_to(&hist, 2000000), 5);
    assert_int_equal(td_hist_count_to(&hist, (INT64_C(1) << 39) - 1), 5);
    assert_int_equal(td_hist_count_to(&hist, INT64_MAX), 6);
}

static void merging_equals_recording_all(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 2);
    for (int i = 0; i < VALUES; i++) {
        int64_t value = random_value(&rand, 45);
        td_hist_record(i % 3 ? &hist : &other, value);
        td_hist_record(&whole, value);
    }
    td_hist_merge(&hist, &other);
    assert_memory_equal(&hist, &whole, sizeof hist);
}

static void merging_an_empty_one_changes_nothing(void **state)
{
    (void)state;
    td_hist_record(&hist, 5);
    td_hist_record(&whole, 5);
    td_hist_merge(&hist, &other);
    assert_memory_equal(&hist, &whole, sizeof hist);
}

static void since_holds_what_came_after_the_copy(void **state)
{
    (void)state;
    static td_hist delta;
    td_rand rand;
    td_rand_init(&rand, 3);
    for (int i = 0; i < VALUES; i++)
        td_hist_record(&hist, random_value(&rand, 45));
    td_hist_merge(&other, &hist);
    for (int i = 0; i < VALUES; i++) {
        int64_t value = random_value(&rand, 30);
        td_hist_record(&hist, value);
        td_hist_record(&whole, value);
    }
    td_hist_since(&hist, &other, &delta);
    assert_int_equal(td_hist_count(&delta), VALUES);
    assert_memory_equal(delta.buckets, whole.buckets, sizeof whole.buckets);
    assert_true(td_hist_mean(&delta) == td_hist_mean(&whole));
    assert_int_equal(td_hist_quantile(&delta, 0.5),
                     td_hist_quantile(&whole, 0.5));
    assert_true(td_hist_max(&delta) >= td_hist_max(&whole));
    assert_true(td_hist_max(&delta) <=
                td_hist_max(&whole) + td_hist_max(&whole) / 128 + 1);
}

static void since_is_empty_when_nothing_came(void **state)
{
    (void)state;
    td_hist_record(&hist, 5);
    td_hist_merge(&other, &hist);
    td_hist_since(&hist, &other, &whole);
    assert_int_equal(td_hist_count(&whole), 0);
    assert_int_equal(td_hist_quantile(&whole, 0.99), 0);
}

static void record_many(void *user)
{
    for (int64_t i = 0; i < CONCURRENT_VALUES; i++)
        td_hist_record(user, 1000 + i % 1000);
}

static void a_reader_sees_sane_numbers_while_another_thread_writes(void **state)
{
    (void)state;
    const td_thread_config config = {.name = "writer", .cpu = -1};
    td_thread *thread = NULL;
    assert_int_equal(
        td_thread_start(&config, record_many, &hist, &thread, NULL), TD_OK);

    uint64_t count = 0;
    bool is_sane = true;
    while (count < CONCURRENT_VALUES) {
        uint64_t before = count;
        count = td_hist_count(&hist);
        int64_t median = td_hist_quantile(&hist, 0.5);
        is_sane &= count >= before;
        is_sane &= count == 0 || (median >= 1000 && median < 2000);
    }
    td_thread_join(thread);
    assert_true(is_sane);
    assert_int_equal(td_hist_count(&hist), CONCURRENT_VALUES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(empty_has_zeros, setup),
        cmocka_unit_test_setup(one_value_is_exact_at_every_quantile, setup),
        cmocka_unit_test_setup(values_below_128_are_exact, setup),
        cmocka_unit_test_setup(buckets_begin_at_powers_of_two, setup),
        cmocka_unit_test_setup(
            quantiles_are_within_a_bucket_of_the_sorted_values, setup),
        cmocka_unit_test_setup(quantile_outside_0_to_1_is_the_nearer_end,
                               setup),
        cmocka_unit_test_setup(values_beyond_the_range_are_not_made_smaller,
                               setup),
        cmocka_unit_test_setup(mean_is_exact, setup),
        cmocka_unit_test_setup(the_count_to_a_value_is_within_a_bucket, setup),
        cmocka_unit_test_setup(merging_equals_recording_all, setup),
        cmocka_unit_test_setup(merging_an_empty_one_changes_nothing, setup),
        cmocka_unit_test_setup(since_holds_what_came_after_the_copy, setup),
        cmocka_unit_test_setup(since_is_empty_when_nothing_came, setup),
        cmocka_unit_test_setup(
            a_reader_sees_sane_numbers_while_another_thread_writes, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

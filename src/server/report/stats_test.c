// SPDX-License-Identifier: Apache-2.0
#include "server/report/stats.h"

#include "base/clock.h"
#include "base/sync/thread.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    CAPACITY = 4,
    THREADS = 4,
    EACH = 20000,
    LIVES = 3000,
};

#define NOW_NS (1000 * TD_NS_PER_S)
#define MINUTE_NS (60 * TD_NS_PER_S)

static td_server_client_numbers client; // as read last

static int setup(void **state)
{
    return td_server_stats_new(CAPACITY, (td_server_stats **)state);
}

static int teardown(void **state)
{
    td_server_stats_free(*state);
    return 0;
}

static void enter(td_server_stats *stats, uint32_t number, const char *id)
{
    assert_int_equal(td_server_stats_enter(stats, number, id, NOW_NS), TD_OK);
}

static bool look(const td_server_stats *stats, uint32_t number)
{
    return td_server_stats_client(stats, number, NOW_NS, MINUTE_NS, &client);
}

static td_server_numbers model_of(const td_server_stats *stats)
{
    td_server_numbers numbers;
    td_server_stats_model(stats, NOW_NS, MINUTE_NS, &numbers);
    return numbers;
}

static void a_value_is_the_clients_and_the_models(void **state)
{
    td_server_stats *stats = *state;
    enter(stats, 0, "arm-0");
    enter(stats, 1, "arm-1");
    for (int i = 0; i < 10; i++)
        td_server_stats_record(stats, TD_SERVER_SPREAD_WAIT, 0, NOW_NS, 10);
    td_server_stats_record(stats, TD_SERVER_SPREAD_WAIT, 1, NOW_NS, 14);
    assert_true(look(stats, 0));
    assert_string_equal(client.id, "arm-0");
    assert_int_equal(client.since_ns, NOW_NS);
    const td_server_stats_spread *spread =
        &client.numbers.spreads[TD_SERVER_SPREAD_WAIT];
    assert_int_equal(spread->count, 10);
    assert_true(spread->p50 == 10 && spread->max == 10);
    assert_true(look(stats, 1));
    assert_int_equal(spread->count, 1);
    td_server_numbers model = model_of(stats);
    spread = &model.spreads[TD_SERVER_SPREAD_WAIT];
    assert_int_equal(spread->count, 11);
    assert_true(spread->max == 14);
}

static void each_spread_of_clients_is_kept_for_clients(void **state)
{
    td_server_stats *stats = *state;
    enter(stats, 0, "arm-0");
    for (int i = 0; i < TD_SERVER_SPREAD_COUNT; i++)
        td_server_stats_record(stats, (td_server_spread_id)i, 0, NOW_NS, 10);
    assert_true(look(stats, 0));
    for (int i = 0; i < TD_SERVER_SPREAD_COUNT; i++)
        assert_int_equal(client.numbers.spreads[i].count,
                         td_server_spread_rows[i].by == TD_SERVER_BY_CLIENT);
}

static void a_value_below_zero_is_zero(void **state)
{
    td_server_stats *stats = *state;
    td_server_stats_record(stats, TD_SERVER_SPREAD_E2E, TD_SERVER_NOBODY,
                           NOW_NS, -5);
    assert_true(model_of(stats).spreads[TD_SERVER_SPREAD_E2E].max == 0);
}

static void a_value_is_within_its_bound(void **state)
{
    td_server_stats *stats = *state;
    size_t count;
    const uint64_t *bounds = td_server_stats_bounds(TD_SERVER_TIME, &count);
    assert_true(count <= TD_SERVER_STATS_BOUNDS);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        td_server_stats_record(stats, TD_SERVER_SPREAD_WAIT, TD_SERVER_NOBODY,
                               NOW_NS, (int64_t)bounds[i]);
        td_server_stats_record(stats, TD_SERVER_SPREAD_WAIT, TD_SERVER_NOBODY,
                               NOW_NS, (int64_t)bounds[i] + 1);
        sum += 2 * bounds[i] + 1;
    }
    td_server_numbers model = model_of(stats);
    const td_server_totals *totals = &model.totals[TD_SERVER_SPREAD_WAIT];
    assert_int_equal(totals->counts[0], 1);
    for (size_t i = 1; i < count; i++)
        assert_int_equal(totals->counts[i], 2);
    assert_int_equal(totals->counts[count], 1);
    assert_int_equal(totals->sum, sum);
}

static void errors_are_counted_by_name(void **state)
{
    td_server_stats *stats = *state;
    enter(stats, 2, "arm-2");
    td_server_stats_error(stats, 2, TD_ERR_CLOSED);
    td_server_stats_error(stats, 2, TD_ERR_CLOSED);
    td_server_stats_error(stats, 2, TD_ERR_IO);
    td_server_stats_error(stats, 3, (td_err)1234);
    assert_true(look(stats, 2));
    assert_int_equal(client.numbers.errors[TD_ERR_CLOSED], 2);
    assert_int_equal(client.numbers.errors[TD_ERR_IO], 1);
    assert_int_equal(client.numbers.counters[TD_SERVER_COUNT_DISPATCH_ERRORS],
                     3);
    td_server_numbers model = model_of(stats);
    assert_int_equal(model.counters[TD_SERVER_COUNT_DISPATCH_ERRORS], 4);
    assert_int_equal(model.errors[TD_ERR_INTERNAL], 1);
}

static void numbers_of_a_client_go_with_it(void **state)
{
    td_server_stats *stats = *state;
    assert_false(look(stats, 0));
    enter(stats, 0, "arm-0");
    td_server_stats_record(stats, TD_SERVER_SPREAD_WAIT, 0, NOW_NS, 10);
    td_server_stats_count(stats, TD_SERVER_COUNT_SEND_ERRORS, 0, 3);
    td_server_stats_leave(stats, 0);
    assert_false(look(stats, 0));
    td_server_stats_leave(stats, 0); // which is nothing
    enter(stats, 0, "arm-9");
    assert_true(look(stats, 0));
    assert_string_equal(client.id, "arm-9");
    assert_int_equal(client.numbers.counters[TD_SERVER_COUNT_SEND_ERRORS], 0);
    assert_int_equal(client.numbers.spreads[TD_SERVER_SPREAD_WAIT].count, 0);
    assert_int_equal(client.numbers.totals[TD_SERVER_SPREAD_WAIT].sum, 0);
    td_server_numbers model = model_of(stats);
    assert_int_equal(model.counters[TD_SERVER_COUNT_SEND_ERRORS], 3);
    assert_int_equal(model.counters[TD_SERVER_COUNT_CLIENT_DISCONNECTED], 1);
}

static void somebody_else_may_take_the_number_at_once(void **state)
{
    td_server_stats *stats = *state;
    enter(stats, 0, "arm-0");
    enter(stats, 0, "arm-1");
    assert_true(look(stats, 0));
    assert_string_equal(client.id, "arm-1");
    assert_int_equal(
        td_server_stats_counter(stats, TD_SERVER_COUNT_CLIENT_DISCONNECTED), 1);
}

static void who_left_is_remembered_for_a_while(void **state)
{
    td_server_stats *stats = *state;
    td_server_departed departed[TD_SERVER_STATS_DEPARTED];
    assert_int_equal(td_server_stats_departed(stats, departed), 0);
    for (int i = 0; i < 200; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "arm-%d", i);
        enter(stats, 0, i % 2 ? "comes-back" : id);
    }
    td_server_stats_leave(stats, 0);
    assert_int_equal(td_server_stats_departed(stats, departed),
                     TD_SERVER_STATS_DEPARTED);
    assert_string_equal(departed[0].id, "comes-back");
    assert_int_equal(departed[0].times, 100);
    assert_string_equal(departed[1].id, "arm-198");
    assert_int_equal(departed[1].times, 1);
    assert_string_equal(departed[63].id, "arm-74");
}

static void ids_that_come_and_go_take_no_memory(void **state)
{
    td_server_stats *stats = *state;
    for (uint32_t i = 0; i < CAPACITY; i++)
        enter(stats, i, "first");
    size_t before = mallinfo2().uordblks;
    for (uint32_t i = 0; i < 10000; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "arm-%u", i);
        enter(stats, i % CAPACITY, id);
        td_server_stats_record(stats, TD_SERVER_SPREAD_WAIT, i % CAPACITY,
                               NOW_NS, 10);
        td_server_stats_leave(stats, i % CAPACITY);
    }
    assert_int_equal(mallinfo2().uordblks, before);
}

static void a_number_out_of_range_is_nobody(void **state)
{
    td_server_stats *stats = *state;
    td_server_stats_count(stats, TD_SERVER_COUNT_SEND_ERRORS, CAPACITY, 1);
    td_server_stats_record(stats, TD_SERVER_SPREAD_WAIT, UINT32_MAX, NOW_NS, 1);
    assert_false(look(stats, CAPACITY));
    assert_int_equal(
        td_server_stats_counter(stats, TD_SERVER_COUNT_SEND_ERRORS), 1);
}

static void count_many(void *user)
{
    for (int i = 0; i < EACH; i++)
        td_server_stats_count(user, TD_SERVER_COUNT_PUTS_FAILED, 0, 1);
}

static void counters_of_many_threads_add_up(void **state)
{
    td_server_stats *stats = *state;
    enter(stats, 0, "arm-0");
    const td_thread_config config = {.name = "counter", .cpu = -1};
    td_thread *threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(
            td_thread_start(&config, count_many, stats, &threads[i], NULL),
            TD_OK);
    for (int i = 0; i < THREADS; i++)
        td_thread_join(threads[i]);
    assert_int_equal(
        td_server_stats_counter(stats, TD_SERVER_COUNT_PUTS_FAILED),
        THREADS * EACH);
    assert_true(look(stats, 0));
    assert_int_equal(client.numbers.counters[TD_SERVER_COUNT_PUTS_FAILED],
                     THREADS * EACH);
}

// Client "n" records the value n alone.
static void come_and_go(void *user)
{
    td_server_stats *stats = user;
    for (int life = 0; life < LIVES; life++) {
        char id[16];
        (void)snprintf(id, sizeof id, "%d", life);
        if (td_server_stats_enter(stats, 0, id, life) != TD_OK) return;
        for (int i = 0; i < 5; i++)
            td_server_stats_record(stats, TD_SERVER_SPREAD_PAYLOAD, 0, NOW_NS,
                                   life);
        td_server_stats_leave(stats, 0);
    }
}

static void a_reader_never_mixes_two_clients(void **state)
{
    td_server_stats *stats = *state;
    const td_thread_config config = {.name = "churn", .cpu = -1};
    td_thread *writer = NULL;
    assert_int_equal(
        td_thread_start(&config, come_and_go, stats, &writer, NULL), TD_OK);
    const char *wrong = NULL;
    while (!wrong && td_server_stats_counter(
                         stats, TD_SERVER_COUNT_CLIENT_DISCONNECTED) < LIVES) {
        if (!look(stats, 0)) continue;
        double life = strtod(client.id, NULL);
        const td_server_stats_spread *spread =
            &client.numbers.spreads[TD_SERVER_SPREAD_PAYLOAD];
        if (client.since_ns != (int64_t)life) wrong = "since";
        if (spread->count > 5) wrong = "count";
        if (spread->count > 0 && (spread->min != life || spread->max != life))
            wrong = "value";
    }
    td_thread_join(writer);
    if (wrong) fail_msg("the %s of another", wrong);
}

static void windows_of_several_add_up(void **state)
{
    td_server_stats *stats = *state;
    td_server_stats_spread spread;
    td_server_sum sum = TD_SERVER_SUM_EMPTY;
    enter(stats, 0, "arm-0");
    enter(stats, 1, "arm-1");
    td_server_stats_record(stats, TD_SERVER_SPREAD_WAIT, 0, NOW_NS, 3);
    td_server_stats_record(stats, TD_SERVER_SPREAD_WAIT, 1, NOW_NS, 9);
    static const char *const names[] = {"arm-0", "nobody", NULL};
    for (size_t i = 0; i < TD_COUNT_OF(names); i++)
        td_server_stats_add(stats, TD_SERVER_SPREAD_WAIT, names[i], NOW_NS,
                            MINUTE_NS, &sum);
    td_server_window_spread(&sum, &spread);
    assert_int_equal(spread.count, 3);
    assert_true(spread.min == 3 && spread.max == 9 && spread.mean == 5);
}

static void the_newest_value_is_known(void **state)
{
    td_server_stats *stats = *state;
    uint64_t value = 0;
    int64_t at_ns = 0;
    enter(stats, 0, "arm-0");
    assert_false(td_server_stats_newest(stats, TD_SERVER_SPREAD_WAIT, NULL,
                                        &value, &at_ns));
    td_server_stats_record(stats, TD_SERVER_SPREAD_WAIT, 0, NOW_NS, 3);
    td_server_stats_record(stats, TD_SERVER_SPREAD_WAIT, TD_SERVER_NOBODY,
                           NOW_NS + 1, 7);
    assert_true(td_server_stats_newest(stats, TD_SERVER_SPREAD_WAIT, NULL,
                                       &value, &at_ns));
    assert_int_equal(value, 7);
    assert_int_equal(at_ns, NOW_NS + 1);
    assert_true(td_server_stats_newest(stats, TD_SERVER_SPREAD_WAIT, "arm-0",
                                       &value, &at_ns));
    assert_int_equal(value, 3);
    td_server_stats_leave(stats, 0);
    assert_false(td_server_stats_newest(stats, TD_SERVER_SPREAD_WAIT, "arm-0",
                                        &value, &at_ns));
}

static char lines[512]; // what the tap heard, a line each

static void notify(void *user, const td_server_sample *sample)
{
    size_t used = strlen(lines);
    assert_ptr_equal(user, lines);
    (void)snprintf(lines + used, sizeof lines - used, "%s %s %s %g\n",
                   sample->row->name, sample->client ? sample->client : "-",
                   sample->error ? td_err_name(sample->error) : "-",
                   sample->value);
}

static void whoever_taps_is_told_of_each(void **state)
{
    td_server_stats *stats = *state;
    td_server_stats_tap(stats, &(td_server_tap){notify, lines});
    enter(stats, 0, "arm-0");
    td_server_stats_record(stats, TD_SERVER_SPREAD_WAIT, 0, NOW_NS, 1500);
    td_server_stats_record(stats, TD_SERVER_SPREAD_BATCH, TD_SERVER_NOBODY,
                           NOW_NS, 4);
    td_server_stats_count(stats, TD_SERVER_COUNT_DEVICE_US, 0, 70);
    td_server_stats_error(stats, 0, TD_ERR_IO);
    td_server_stats_leave(stats, 0);
    assert_string_equal(lines, "scheduling_wait_ms arm-0 - 1.5\n"
                               "batch_size - - 4\n"
                               "device_us arm-0 - 70\n"
                               "dispatch_errors arm-0 IO 1\n"
                               "client_disconnected arm-0 - 1\n");
}

#define STATS_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STATS_TEST(a_value_is_the_clients_and_the_models),
        STATS_TEST(each_spread_of_clients_is_kept_for_clients),
        STATS_TEST(a_value_below_zero_is_zero),
        STATS_TEST(a_value_is_within_its_bound),
        STATS_TEST(errors_are_counted_by_name),
        STATS_TEST(numbers_of_a_client_go_with_it),
        STATS_TEST(somebody_else_may_take_the_number_at_once),
        STATS_TEST(who_left_is_remembered_for_a_while),
        STATS_TEST(ids_that_come_and_go_take_no_memory),
        STATS_TEST(a_number_out_of_range_is_nobody),
        STATS_TEST(counters_of_many_threads_add_up),
        STATS_TEST(a_reader_never_mixes_two_clients),
        STATS_TEST(windows_of_several_add_up),
        STATS_TEST(the_newest_value_is_known),
        STATS_TEST(whoever_taps_is_told_of_each),
    };
    return cmocka_run_group_tests_name("server/stats", tests, NULL, NULL);
}

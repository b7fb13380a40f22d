// SPDX-License-Identifier: Apache-2.0
// A worker's own end (child.c) against servers that make no sense, and those
// that do: the test plays the server, on memory that it lays out itself.
//
// The handshake and rings that are out of bounds; the order of batches; answers
// and values in place; prefixes that are dropped, in the order that is
// promised; what is expected. Both ends are in this process, on real eventfds.
#include "engine/worker/ring/ring.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static const td_worker_spec spec = {
    .state_count = 1,
    .action_count = 2,
    .chunk_rows = 3,
    .max_batch = 4,
    .values_bytes = 256,
    .prefix = 1,
};
static td_engine_worker_layout layout;
static int ring_fd, bell_fd, answer_fd;
static uint8_t *memory; // the whole file
static td_worker_offer *offer;
static td_worker *worker;
static td_errinfo info;

static int setup(void **state)
{
    (void)state;
    char numbers[64];
    if (td_engine_worker_layout_make(&spec, &layout, NULL) != TD_OK) return -1;
    ring_fd = memfd_create("test", MFD_CLOEXEC);
    bell_fd = eventfd(1, EFD_CLOEXEC);
    answer_fd = eventfd(0, EFD_CLOEXEC);
    if (ftruncate(ring_fd, (off_t)layout.file_bytes) != 0) return -1;
    memory = mmap(NULL, layout.file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                  ring_fd, 0);
    void *start = memory;
    offer = start;
    *offer = (td_worker_offer){
        .magic = TD_WORKER_MAGIC,
        .version = TD_WORKER_VERSION,
        .phase = TD_WORKER_RING,
        .requests = layout.requests,
        .request_bytes = layout.request_bytes,
        .results = layout.results,
        .result_bytes = layout.result_bytes,
        .actions = layout.actions,
        .actions_bytes = layout.actions_bytes,
        .values = layout.values,
        .values_bytes = layout.values_bytes,
        .spec = spec,
    };
    (void)snprintf(numbers, sizeof numbers, "%d,%d,%d", ring_fd, bell_fd,
                   answer_fd);
    return setenv(TD_WORKER_ENV, numbers, 1);
}

static int teardown(void **state)
{
    (void)state;
    if (worker) td_worker_close(worker);
    worker = NULL;
    (void)munmap(memory, layout.file_bytes);
    (void)close(ring_fd);
    (void)close(bell_fd);
    (void)close(answer_fd);
    return 0;
}

static td_worker_batch *batch(size_t slot)
{
    void *at = memory + layout.requests + slot * layout.request_bytes;
    return at;
}

static void attach(void)
{
    assert_int_equal(td_worker_open(&worker, &info), TD_OK);
    assert_int_equal(td_worker_describe(worker, NULL, &info), TD_OK);
    td_worker_ready(worker, 0);
}

static void a_program_that_no_server_started_is_told(void **state)
{
    (void)state;
    (void)unsetenv(TD_WORKER_ENV);
    assert_int_equal(td_worker_open(&worker, &info), TD_ERR_NOTFOUND);
    (void)setenv(TD_WORKER_ENV, "1,2", 1);
    assert_int_equal(td_worker_open(&worker, &info), TD_ERR_NOTFOUND);
    (void)setenv(TD_WORKER_ENV, "1000,1001,1002", 1);
    assert_int_equal(td_worker_open(&worker, &info), TD_ERR_IO);
}

static void another_version_is_refused(void **state)
{
    (void)state;
    offer->version = 3;
    assert_int_equal(td_worker_open(&worker, &info), TD_ERR_VERSION);
    assert_string_equal(info.text,
                        "the server speaks version 3, this worker 2");
}

static void one_that_is_not_wanted_ends(void **state)
{
    (void)state;
    offer->phase = TD_WORKER_STOP;
    assert_int_equal(td_worker_open(&worker, &info), TD_OK);
    assert_int_equal(td_worker_describe(worker, NULL, &info), TD_ERR_CLOSED);
}

static void far_requests(void)
{
    offer->requests = layout.file_bytes;
}
static void early_requests(void)
{
    offer->requests = TD_WORKER_PAGE;
}
static void odd_requests(void)
{
    offer->requests++;
}
static void large_requests(void)
{
    offer->request_bytes = UINT64_MAX / 2 + 1;
}
static void small_requests(void)
{
    offer->request_bytes = TD_WORKER_PAGE;
}
static void far_results(void)
{
    offer->results += layout.result_bytes;
}
static void large_results(void)
{
    offer->result_bytes = UINT64_MAX;
}
static void early_actions(void)
{
    offer->actions = 0;
}
static void far_actions(void)
{
    offer->actions = layout.result_bytes;
}
static void wide_actions(void)
{
    offer->actions_bytes = UINT64_MAX / 4 + 1;
}
static void narrow_actions(void)
{
    offer->actions_bytes = 8;
}
static void early_values(void)
{
    offer->values = 0;
}
static void far_values(void)
{
    offer->values = layout.result_bytes;
}
static void wide_values(void)
{
    offer->values_bytes = UINT64_MAX / 4 * 4 - 63;
}
static void odd_values(void)
{
    offer->values_bytes = 60;
}
static void many_rows(void)
{
    offer->spec.chunk_rows = UINT32_MAX;
}
static void many_members(void)
{
    offer->spec.max_batch = 65;
}

static void a_ring_out_of_bounds_is_refused(void **state)
{
    (void)state;
    static void (*const spoils[])(void) = {
        far_requests,   early_requests, odd_requests,   large_requests,
        small_requests, far_results,    large_results,  early_actions,
        far_actions,    wide_actions,   narrow_actions, many_rows,
        many_members,   early_values,   far_values,     wide_values,
        odd_values,
    };
    const td_worker_offer good = *offer;
    for (size_t i = 0; i < TD_COUNT_OF(spoils); i++) {
        *offer = good;
        spoils[i]();
        assert_int_equal(td_worker_open(&worker, &info), TD_OK);
        td_err err = td_worker_describe(worker, NULL, &info);
        if (err != TD_ERR_FORMAT) fail_msg("row %zu: %s", i, td_err_name(err));
        td_worker_close(worker);
        worker = NULL;
    }
}

static void the_oldest_batch_goes_first(void **state)
{
    (void)state;
    const td_worker_batch *got = NULL;
    batch(0)->generation = 6;
    batch(1)->generation = 5;
    batch(0)->count = 2;
    batch(1)->count = 1;
    attach();
    assert_int_equal(td_worker_next(worker, &got), TD_OK);
    assert_int_equal(got->generation, 5);
    td_worker_done(worker, 0);
    assert_int_equal(td_worker_next(worker, &got), TD_OK);
    assert_int_equal(got->generation, 6);
    td_worker_done(worker, 0);
    offer->phase = TD_WORKER_STOP;
    assert_int_equal(td_worker_next(worker, &got), TD_ERR_CLOSED);
}

static void a_batch_that_cannot_be_is_refused(void **state)
{
    (void)state;
    const td_worker_batch *got = NULL;
    attach();
    for (uint64_t i = 0; i < 2; i++) {
        batch(0)->generation = i + 1;
        batch(0)->count = i == 0 ? 0 : 5;
        assert_int_equal(td_worker_next(worker, &got), TD_ERR_FORMAT);
    }
    batch(0)->generation = 3;
    batch(0)->count = 1;
    batch(0)->operation = 3;
    assert_int_equal(td_worker_next(worker, &got), TD_ERR_FORMAT);
}

static void an_offset_out_of_bounds_is_none(void **state)
{
    (void)state;
    const td_worker_batch *got = NULL;
    batch(1)->generation = 1;
    batch(1)->count = 1;
    attach();
    assert_int_equal(td_worker_next(worker, &got), TD_OK);
    assert_ptr_equal(td_worker_at(worker, 0, 8), got);
    assert_non_null(td_worker_at(worker, layout.request_bytes - 8, 8));
    assert_null(td_worker_at(worker, layout.request_bytes - 8, 9));
    assert_null(td_worker_at(worker, UINT64_MAX, 8));
    assert_null(td_worker_at(worker, 8, UINT64_MAX));
}

static void a_member_without_an_outcome_failed(void **state)
{
    (void)state;
    const td_worker_batch *got = NULL;
    batch(0)->generation = 9;
    batch(0)->count = 2;
    attach();
    assert_int_equal(td_worker_next(worker, &got), TD_OK);
    td_worker_answer_member(worker, 1, TD_OK, 3, NULL);
    td_worker_done(worker, 1234);
    void *at = memory + layout.results;
    const td_worker_result *result = at;
    assert_int_equal(result->generation, 9);
    assert_int_equal(result->service_ns, 1234);
    assert_int_equal(result->count, 2);
    assert_int_equal(result->answers[0].status, TD_ERR_INTERNAL);
    assert_int_equal(result->answers[1].status, TD_OK);
    assert_int_equal(result->answers[1].rows, 3);
}

static const td_worker_result *begin_batch(uint32_t count)
{
    const td_worker_batch *got = NULL;
    batch(0)->generation = 9;
    batch(0)->count = count;
    attach();
    assert_int_equal(td_worker_next(worker, &got), TD_OK);
    void *at = memory + layout.results;
    return at;
}

static void values_go_one_after_another(void **state)
{
    (void)state;
    const td_worker_result *result = begin_batch(2);
    const uint8_t *place = (const uint8_t *)td_worker_actions(worker, 0) -
                           layout.actions + layout.values;
    const td_worker_value first = {"a", TD_WIRE_F32, 2, {2, 3}};
    const td_worker_value text = {"", TD_WORKER_TEXT, 1, {65}};
    assert_ptr_equal(td_worker_answer_value(worker, 0, &first), place);
    assert_ptr_equal(td_worker_answer_value(worker, 0, &text), place + 64);
    assert_ptr_equal(td_worker_answer_value(worker, 0, &first), place + 192);
    assert_ptr_equal(td_worker_answer_value(worker, 1, &first), place + 256);
    assert_int_equal(result->answers[0].value_count, 3);
    assert_string_equal(result->answers[0].values[0].name, "a");
}

static void a_value_for_which_there_is_no_room_is_refused(void **state)
{
    (void)state;
    static const td_worker_value cases[] = {
        {"large", TD_WIRE_U8, 1, {257}},
        {"huge", TD_WIRE_F64, 3, {UINT32_MAX, UINT32_MAX, UINT32_MAX}},
        {"dtype", TD_WIRE_BOOL + 1, 1, {1}},
        {"flat", TD_WIRE_U8, 0, {0}},
        {"deep", TD_WIRE_U8, 9, {1}},
        {"text", TD_WORKER_TEXT, 2, {1, 1}},
    };
    const td_worker_value nothing = {"none", TD_WIRE_U8, 1, {0}};
    const td_worker_result *result = begin_batch(1);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++)
        assert_null(td_worker_answer_value(worker, 0, &cases[i]));
    assert_int_equal(result->answers[0].value_count, 0);
    for (int i = 0; i < TD_WIRE_MAX_TENSORS; i++)
        assert_non_null(td_worker_answer_value(worker, 0, &nothing));
    assert_null(td_worker_answer_value(worker, 0, &nothing));
}

typedef struct drops {
    uint64_t numbers[8];
    size_t count;
} drops;

static void on_drop(void *user, uint64_t prefix)
{
    drops *seen = user;
    if (seen->count < TD_COUNT_OF(seen->numbers))
        seen->numbers[seen->count] = prefix;
    seen->count++;
}

static void drops_are_seen_once_before_the_next_batch(void **state)
{
    (void)state;
    const td_worker_batch *got = NULL;
    drops seen = {0};
    void *page = memory + TD_WORKER_PAGE;
    const td_worker_hello *hello = page;
    attach();
    td_worker_on_drop(worker, on_drop, &seen);
    offer->drops[0] = 41;
    offer->drops[1] = 42;
    offer->dropped = 2;
    batch(0)->generation = 1;
    batch(0)->count = 1;
    assert_int_equal(td_worker_next(worker, &got), TD_OK);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.numbers[0], 41);
    assert_int_equal(seen.numbers[1], 42);
    assert_int_equal(hello->dropped, 2);
    td_worker_done(worker, 0);
    offer->phase = TD_WORKER_STOP; // with no batch, too
    offer->drops[2] = 43;
    offer->dropped = 3;
    assert_int_equal(td_worker_next(worker, &got), TD_ERR_CLOSED);
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.numbers[2], 43);
}

// A server that, while its worker lets 41 go, drops 42 and then gives a batch.
static void on_drop_go_on(void *user, uint64_t prefix)
{
    on_drop(user, prefix);
    if (prefix != 41) return;
    offer->drops[1] = 42;
    offer->dropped = 2;
    batch(0)->count = 1;
    batch(0)->generation = 1;
    assert_int_equal(eventfd_write(bell_fd, 1), 0);
}

static void what_was_dropped_before_a_batch_is_gone_when_it_runs(void **state)
{
    (void)state;
    const td_worker_batch *got = NULL;
    drops seen = {0};
    attach();
    td_worker_on_drop(worker, on_drop_go_on, &seen);
    offer->drops[0] = 41;
    offer->dropped = 1;
    assert_int_equal(td_worker_next(worker, &got), TD_OK);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.numbers[1], 42);
}

static void on_expect(void *user)
{
    ++*(int *)user;
}

static void what_is_expected_is_said_once_and_not_too_late(void **state)
{
    (void)state;
    const td_worker_batch *got = NULL;
    int calls = 0;
    attach();
    td_worker_on_expect(worker, on_expect, &calls);
    offer->expected = 1;
    batch(0)->generation = 1;
    batch(0)->count = 1;
    assert_int_equal(td_worker_next(worker, &got), TD_OK);
    assert_int_equal(calls, 0); // it was there
    td_worker_done(worker, 0);
    offer->expected = 2;
    offer->phase = TD_WORKER_STOP;
    for (int i = 0; i < 2; i++)
        assert_int_equal(td_worker_next(worker, &got), TD_ERR_CLOSED);
    assert_int_equal(calls, 1);
}

static void more_drops_than_there_can_be_are_none(void **state)
{
    (void)state;
    const td_worker_batch *got = NULL;
    drops seen = {0};
    attach();
    td_worker_on_drop(worker, on_drop, &seen);
    offer->dropped = UINT64_MAX;
    offer->phase = TD_WORKER_STOP;
    assert_int_equal(td_worker_next(worker, &got), TD_ERR_CLOSED);
    assert_int_equal(seen.count, 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_program_that_no_server_started_is_told),
        TEST(another_version_is_refused),
        TEST(one_that_is_not_wanted_ends),
        TEST(a_ring_out_of_bounds_is_refused),
        TEST(the_oldest_batch_goes_first),
        TEST(a_batch_that_cannot_be_is_refused),
        TEST(an_offset_out_of_bounds_is_none),
        TEST(a_member_without_an_outcome_failed),
        TEST(values_go_one_after_another),
        TEST(a_value_for_which_there_is_no_room_is_refused),
        TEST(drops_are_seen_once_before_the_next_batch),
        TEST(what_was_dropped_before_a_batch_is_gone_when_it_runs),
        TEST(more_drops_than_there_can_be_are_none),
        TEST(what_is_expected_is_said_once_and_not_too_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

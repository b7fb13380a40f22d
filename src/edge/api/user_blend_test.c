// SPDX-License-Identifier: Apache-2.0
#include "edge/api/user_blend.h"

#include "base/clock.h"
#include "base/sync/event.h"
#include "base/sync/thread.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 3
#define CHANNELS 2

// A user's function, and what it does wrong.
static struct fake_server {
    atomic_bool blocks, fails, lazy, left;
    td_event entered, unblock;
} fake_server;

static td_err sum(void *user, const td_robot_overlap *overlap, float *ret_rows)
{
    struct fake_server *self = user;
    td_event_signal(&self->entered);
    if (atomic_load(&self->blocks))
        (void)td_event_wait_until(&self->unblock, INT64_MAX);
    atomic_store(&self->left, true);
    if (atomic_load(&self->fails)) return TD_ERR_TIMEOUT;
    if (atomic_load(&self->lazy)) return TD_OK;
    for (uint32_t i = 0; i < overlap->rows * overlap->count; i++)
        ret_rows[i] =
            (float)overlap->first + overlap->old_rows[i] + overlap->new_rows[i];
    return TD_OK;
}

static const float old_rows[] = {1, 2, 3, 4, 5, 6};
static const float new_rows[] = {10, 20, 30, 40, 50, 60};
static const td_edge_overlap overlap = {
    .first = 100,
    .rows = ROWS,
    .channels = CHANNELS,
    .old_rows = old_rows,
    .new_rows = new_rows,
};
static float rows[ROWS * CHANNELS];

static int setup(void **state)
{
    (void)state;
    fake_server = (struct fake_server){0};
    td_event_init(&fake_server.entered);
    td_event_init(&fake_server.unblock);
    memset(rows, 0, sizeof rows);
    return 0;
}

static td_edge_user_blend *open_with(int64_t limit_ns)
{
    const td_edge_user_blend_config config = {
        .fn = sum,
        .user = &fake_server,
        .most_rows = ROWS,
        .channels = CHANNELS,
        .limit_ns = limit_ns,
    };
    td_edge_user_blend *blend = NULL;
    assert_int_equal(td_edge_user_blend_open(&config, &blend, NULL), TD_OK);
    return blend;
}

static void rows_are_those_of_the_function(void **state)
{
    static const float expected[] = {111, 122, 133, 144, 155, 166};
    (void)state;
    td_edge_user_blend *blend = open_with(60 * TD_NS_PER_S);
    for (int i = 0; i < 100; i++) {
        memset(rows, 0, sizeof rows);
        assert_int_equal(td_edge_user_blend_all(blend, &overlap, rows), TD_OK);
        assert_memory_equal(rows, expected, sizeof rows);
    }
    td_edge_user_blend_close(blend);
}

static void what_is_left_unset_is_not_a_number(void **state)
{
    (void)state;
    atomic_store(&fake_server.lazy, true);
    td_edge_user_blend *blend = open_with(60 * TD_NS_PER_S);
    assert_int_equal(td_edge_user_blend_all(blend, &overlap, rows), TD_OK);
    for (size_t i = 0; i < TD_COUNT_OF(rows); i++)
        assert_true(isnan(rows[i]));
    td_edge_user_blend_close(blend);
}

static void a_failure_is_no_lateness(void **state)
{
    (void)state;
    atomic_store(&fake_server.fails, true);
    td_edge_user_blend *blend = open_with(60 * TD_NS_PER_S);
    assert_int_equal(td_edge_user_blend_all(blend, &overlap, rows), TD_ERR_IO);
    assert_true(rows[0] == 0);
    td_edge_user_blend_close(blend);
}

static void one_that_is_late_is_asked_again_once_it_has_returned(void **state)
{
    (void)state;
    atomic_store(&fake_server.blocks, true);
    td_edge_user_blend *blend = open_with(TD_NS_PER_MS);
    while (!td_event_wait_until(&fake_server.entered, 0))
        assert_int_equal(td_edge_user_blend_all(blend, &overlap, rows),
                         TD_ERR_TIMEOUT);
    assert_int_equal(td_edge_user_blend_all(blend, &overlap, rows),
                     TD_ERR_TIMEOUT);
    assert_true(rows[0] == 0);
    atomic_store(&fake_server.blocks, false);
    td_event_signal(&fake_server.unblock);
    while (td_edge_user_blend_all(blend, &overlap, rows) != TD_OK)
        ;
    assert_true(rows[0] == 111);
    td_edge_user_blend_close(blend);
}

static void unblock(void *user)
{
    (void)user;
    td_event_signal(&fake_server.unblock);
}

static void close_waits_for_the_function(void **state)
{
    const td_thread_config config = {.name = "unblocks", .cpu = -1};
    (void)state;
    td_thread *thread = NULL;
    atomic_store(&fake_server.blocks, true);
    td_edge_user_blend *blend = open_with(1);
    while (!td_event_wait_until(&fake_server.entered, 0))
        assert_int_equal(td_edge_user_blend_all(blend, &overlap, rows),
                         TD_ERR_TIMEOUT);
    assert_int_equal(td_thread_start(&config, unblock, NULL, &thread, NULL),
                     TD_OK);
    td_edge_user_blend_close(blend);
    assert_true(atomic_load(&fake_server.left));
    td_thread_join(thread);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rows_are_those_of_the_function, setup),
        cmocka_unit_test_setup(what_is_left_unset_is_not_a_number, setup),
        cmocka_unit_test_setup(a_failure_is_no_lateness, setup),
        cmocka_unit_test_setup(
            one_that_is_late_is_asked_again_once_it_has_returned, setup),
        cmocka_unit_test_setup(close_waits_for_the_function, setup),
    };
    return cmocka_run_group_tests_name("client/blend", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// A client's inbox, with a loop that never looks. What reaches it is what the
// callback could not take: here observations with a number and no client.
#include "server/intake/intake.h"
#include "server/model_fixture.h"

#include <stdlib.h>

static td_server_client *sender;
static size_t goal;

// The inbox's present content; its message stays where it is.
static td_server_mail look(void)
{
    td_server_inbox *inbox = &sender->topics->inbox;
    pthread_mutex_lock(&inbox->lock);
    td_server_mail seen = inbox->mail;
    pthread_mutex_unlock(&inbox->lock);
    return seen;
}

static bool has_taken_all(world *w)
{
    (void)w;
    td_server_mail seen = look();
    return seen.msg && seen.skipped_count + seen.skipped_unlisted +
                               seen.skipped_unnamed + 1 ==
                           goal;
}

static const td_engine_spec spec = {.chunk_rows = 1, .action_count = 1};

// {"seq_id": seq}
static void send_bad(client *c, uint8_t seq)
{
    const char bytes[] = {'\x81', '\xa6', 's', 'e',    'q',
                          '_',    'i',    'd', '\xcc', (char)seq};
    client_send_bytes(c->obs, bytes, sizeof bytes);
}

// As much of a model as the intake uses.
typedef struct stand {
    world *world;
    td_server_context ctx;
    td_event wake;
    td_server_device *device;
    td_server_dispatch *dispatch;
    td_server_pool *pool;
    td_server_notify *notify;
    td_server_health *health;
    td_server_intake *intake;
    td_server_client sender;
    client *client;
} stand;

static stand at;

static void make_core(void)
{
    static const td_server_settings settings = {.server_id = "gpu-1",
                                                .capacity = 1};
    assert_int_equal(
        td_server_dispatch_new(&td_server_device_defaults, &at.dispatch, NULL),
        TD_OK);
    const td_server_core_model model = {
        .spec = &spec,
        .dispatch = at.dispatch,
        .cadence = TD_SCHED_CADENCE_DEFAULTS,
    };
    assert_int_equal(td_server_core_new(&settings, &model, &at.ctx.core),
                     TD_OK);
}

static void make_intake(void)
{
    td_server_context *ctx = &at.ctx;
    assert_int_equal(
        td_server_device_open(&td_server_device_defaults, &at.device, NULL),
        TD_OK);
    ctx->lock = td_server_device_lock(at.device);
    assert_int_equal(td_server_pool_new(ctx, &at.pool), TD_OK);
    assert_int_equal(td_server_notify_new(ctx, at.pool, &at.notify), TD_OK);
    assert_int_equal(td_server_health_new(ctx, at.notify, &at.health), TD_OK);
    assert_int_equal(td_server_intake_new(ctx, at.device, at.pool, at.notify,
                                          at.health, &at.intake),
                     TD_OK);
}

static int stand_setup(void **state)
{
    int rc = world_setup(state);
    at = (stand){.world = *state};
    at.ctx = (td_server_context){
        .net = at.world->net,
        .route = at.world->config.route,
        .spec = &spec,
        .wake = &at.wake,
    };
    td_event_init(&at.wake);
    make_core();
    make_intake();
    at.client = client_open(at.world, 0, "arm-0", 1);
    sender = &at.sender;
    at.sender = (td_server_client){.id = "arm-0"};
    if (td_server_intake_open_client(at.intake, sender, NULL) != TD_OK)
        return -1;
    return rc;
}

static int stand_teardown(void **state)
{
    if (sender) td_server_topics_close(TD_TAKE(sender));
    td_server_intake_free(at.intake);
    td_server_health_free(at.health);
    td_server_notify_free(at.notify);
    td_server_pool_free(at.pool);
    td_server_device_close(at.device);
    td_server_core_free(at.ctx.core);
    td_server_dispatch_free(at.dispatch);
    return world_teardown(state);
}

static void the_newest_stays_and_the_others_are_named(void **state)
{
    (void)state;
    for (uint64_t seq = 1; seq <= 5; seq++)
        send_bad(at.client, (uint8_t)seq);
    goal = 5;
    world_until(at.world, has_taken_all);
    td_server_mail seen = look();
    assert_true(seen.has_seq);
    assert_int_equal(seen.seq, 5);
    assert_int_equal(seen.skipped_count, 4);
    assert_int_equal(seen.skipped_unlisted, 0);
    assert_int_equal(seen.skipped_unnamed, 0);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(seen.skipped[i], i + 1);
}

static void of_more_than_can_be_named_the_newest_are(void **state)
{
    (void)state;
    goal = TD_WIRE_MAX_SUPERSEDED + 11;
    for (uint64_t seq = 1; seq <= goal; seq++)
        send_bad(at.client, (uint8_t)seq);
    world_until(at.world, has_taken_all);
    td_server_mail seen = look();
    assert_int_equal(seen.seq, goal);
    assert_int_equal(seen.skipped_count, TD_WIRE_MAX_SUPERSEDED);
    assert_int_equal(seen.skipped_unlisted, 10);
    assert_int_equal(seen.skipped_unnamed, 0);
    for (uint32_t i = 0; i < TD_WIRE_MAX_SUPERSEDED; i++)
        assert_int_equal(seen.skipped[i], i + 11);
}

static void what_has_no_number_is_only_counted(void **state)
{
    (void)state;
    goal = 3;
    client_send_bytes(at.client->obs, "\xc1", 1);
    client_send_bytes(at.client->obs, "\xc1", 1);
    send_bad(at.client, 1);
    world_until(at.world, has_taken_all);
    td_server_mail seen = look();
    assert_int_equal(seen.seq, 1);
    assert_int_equal(seen.skipped_count, 0);
    assert_int_equal(seen.skipped_unnamed, 2);
}

static void what_nobody_has_read_departs_with_the_client(void **state)
{
    (void)state;
    goal = 3;
    client_send_bytes(at.client->obs, "\xc1", 1);
    send_bad(at.client, 1);
    send_bad(at.client, 2);
    world_until(at.world, has_taken_all);
    td_server_topics_close(TD_TAKE(sender));
    td_server_counts counts;
    td_server_core_counts(at.ctx.core, &counts);
    assert_int_equal(counts.received, 3);
    assert_int_equal(counts.outcomes[TD_SERVER_DEPARTED], 3);
}

#define STAND_TEST(test)                                                       \
    cmocka_unit_test_setup_teardown(test, stand_setup, stand_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAND_TEST(the_newest_stays_and_the_others_are_named),
        STAND_TEST(of_more_than_can_be_named_the_newest_are),
        STAND_TEST(what_has_no_number_is_only_counted),
        STAND_TEST(what_nobody_has_read_departs_with_the_client),
    };
    return cmocka_run_group_tests_name("server/inbox", tests, NULL, NULL);
}

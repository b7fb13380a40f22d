// SPDX-License-Identifier: Apache-2.0
// Clients that fall silent: who is gone, who sleeps, who comes back.
#include "server/model_fixture.h"

#include <stdatomic.h>

static client *attached(world *w, const char *id)
{
    client *c = client_open(w, 0, id, 1);
    assert_true(client_attach(c, "gpu-1"));
    return c;
}

// A device that takes so much silence for an absence.
static td_server_device *open_device(world *w, int64_t gone_ns)
{
    td_server_device_settings settings = td_server_device_defaults;
    td_server_device *device = NULL;
    settings.clients = MAX_CLIENTS;
    settings.cadence.gone_ns = gone_ns;
    settings.cadence.wake_ahead_ns = 0;
    settings.cadence.wake_samples = 1;
    assert_int_equal(td_server_device_open(&settings, &device, NULL), TD_OK);
    w->config.device = device;
    return device;
}

static td_server_device *open_impatient(world *w)
{
    return open_device(w, 20 * TD_NS_PER_MS);
}

static bool one_is_gone(world *w)
{
    return w->report.counts.gone > 0 && w->report.clients == 0;
}

static void a_silent_client_that_lives_comes_back_by_sending(void **state)
{
    world *w = *state;
    td_server_device *device = open_impatient(w);
    world_open(w);
    client *c = attached(w, "arm-0");
    client_send_seq(c, 1);
    assert_int_equal(client_hear(c)->ident.seq, 1);
    world_until(w, one_is_gone);
    assert_true(client_matched(c)); // the server still listens
    client_send_seq(c, 2);
    assert_int_equal(client_hear(c)->ident.seq, 2);
    assert_int_equal(c->answer.error_code.size, 0);
    world_until(w, is_idle);
    td_server_counts counts = world_counts(w);
    assert_true(counts.attached >= 2);
    assert_int_equal(counts.outcomes[TD_SERVER_ANSWERED], 2);
    world_close(w);
    td_server_device_close(device);
}

static void a_silent_client_comes_back_by_attaching(void **state)
{
    world *w = *state;
    td_server_device *device = open_impatient(w);
    world_open(w);
    client *c = attached(w, "arm-0");
    world_until(w, one_is_gone);
    assert_true(client_attach(c, "gpu-1"));
    client_send_seq(c, 1);
    assert_int_equal(client_hear(c)->ident.seq, 1);
    world_close(w);
    td_server_device_close(device);
}

static void a_place_that_was_given_away_is_refused_by_reason(void **state)
{
    world *w = *state;
    td_server_device *device = open_device(w, TD_NS_PER_S / 2);
    w->config.settings.capacity = 1;
    world_open_gated(w);
    client *c = attached(w, "arm-0");
    world_until(w, one_is_gone);
    client *quick = client_open(w, 1, "arm-1", 1);
    assert_true(client_attach(quick, "gpu-1"));
    client_send_seq(quick, 1); // one that runs is not silent
    world_until(w, is_running_one);
    client_send_seq(c, 1);
    assert_true(td_wire_text_is(client_hear(c)->error_code, "DENIED"));
    assert_int_equal(c->answer.ident.seq, 1);
    gate_finish(&w->gate, TD_OK);
    (void)client_hear(quick);
    world_until(w, is_idle);
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_REFUSED], 1);
    world_close(w);
    td_server_device_close(device);
}

static bool is_gone_whoever_else_sends(world *w)
{
    static uint64_t seq;
    client_send_seq(&w->clients[0], ++seq);
    return w->report.counts.gone >= 2;
}

static void who_has_lost_its_place_does_not_speak_for_who_has_it(void **state)
{
    world *w = *state;
    td_server_device *device = open_impatient(w);
    w->config.settings.capacity = 1;
    world_open(w);
    (void)attached(w, "arm-0");
    world_until(w, one_is_gone);
    client *silent = client_open(w, 1, "arm-1", 1);
    assert_true(client_attach(silent, "gpu-1"));
    world_until(w, is_gone_whoever_else_sends);
    world_close(w);
    td_server_device_close(device);
}

static bool is_unmatched(world *w)
{
    return !client_matched(&w->clients[1]);
}

static void a_silent_client_that_dies_is_forgotten(void **state)
{
    world *w = *state;
    td_server_device *device = open_impatient(w);
    world_open(w);
    client *c = attached(w, "arm-0");
    client *witness = client_open(w, 1, "arm-0", 2);
    world_until(w, one_is_gone);
    assert_true(client_matched(witness));
    client_close(c);
    world_until(w, is_unmatched);
    world_close(w);
    td_server_device_close(device);
}

static void a_silent_client_that_leaves_is_no_longer_listened_to(void **state)
{
    world *w = *state;
    td_server_device *device = open_impatient(w);
    world_open(w);
    client *c = attached(w, "arm-0");
    (void)client_open(w, 1, "arm-0", 2);
    world_until(w, one_is_gone);
    assert_true(client_leave(c, "gpu-1")); // it has another server
    world_until(w, is_unmatched);
    world_close(w);
    td_server_device_close(device);
}

static uint64_t count_unseen(const world *w)
{
    return td_server_stats_counter(td_server_model_stats(w->server),
                                   TD_SERVER_COUNT_EVENTS_DROPPED);
}

// More changes than the server can take note of while its loop stands.
static void come_and_go_too_often(world *w)
{
    static const char key[] = "lab/trial/act/v1/demo/arm-9/alive/1";
    td_net *net = NULL;
    assert_int_equal(td_net_inproc_open(w->hub, "other", &net, NULL), TD_OK);
    while (count_unseen(w) == 0) {
        td_net_decl *token = NULL;
        assert_int_equal(td_net_token(net, key, &token, NULL), TD_OK);
        assert_int_equal(td_net_undeclare(token), TD_OK);
    }
    td_net_close(net);
}

static void who_went_while_nobody_could_look_is_missed_after_all(void **state)
{
    world *w = *state;
    td_server_device *device = open_impatient(w);
    world_open(w);
    client *c = attached(w, "arm-0");
    (void)client_open(w, 1, "arm-0", 2);
    world_until(w, one_is_gone);
    pthread_mutex_lock(td_server_device_lock(device));
    come_and_go_too_often(w);
    uint64_t unseen = count_unseen(w);
    client_close(c);
    while (count_unseen(w) == unseen)
        td_clock_sleep_until(td_clock_now_ns(&td_clock_monotonic) +
                             TD_NS_PER_MS);
    pthread_mutex_unlock(td_server_device_lock(device));
    world_until(w, is_unmatched);
    world_close(w);
    td_server_device_close(device);
}

static bool was_warmed(world *w)
{
    return atomic_load(&w->gate.warmed) > 0;
}

static void an_engine_is_warmed_for_who_is_expected(void **state)
{
    world *w = *state;
    td_server_device *device = open_device(w, 60 * TD_NS_PER_S);
    w->gate.tells = true;
    world_open_gated(w);
    client *c = attached(w, "arm-0");
    for (uint64_t seq = 1; seq <= 2; seq++) {
        client_send_seq(c, seq);
        world_until(w, is_running_one);
        gate_finish(&w->gate, TD_OK);
        (void)client_hear(c);
    }
    world_until(w, was_warmed);
    assert_false(is_running_one(w)); // and nothing runs that is not there
    assert_true(world_counts(w).expected > 0);
    world_close(w);
    td_server_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_silent_client_that_lives_comes_back_by_sending),
        WORLD_TEST(a_silent_client_comes_back_by_attaching),
        WORLD_TEST(a_place_that_was_given_away_is_refused_by_reason),
        WORLD_TEST(who_has_lost_its_place_does_not_speak_for_who_has_it),
        WORLD_TEST(a_silent_client_that_dies_is_forgotten),
        WORLD_TEST(a_silent_client_that_leaves_is_no_longer_listened_to),
        WORLD_TEST(who_went_while_nobody_could_look_is_missed_after_all),
        WORLD_TEST(an_engine_is_warmed_for_who_is_expected),
    };
    return cmocka_run_group_tests_name("server/server_silent", tests, NULL,
                                       NULL);
}

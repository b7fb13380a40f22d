// SPDX-License-Identifier: Apache-2.0
// Whom a server takes, and how they leave.
#include "server/core/core_fixture.h"

static void assert_denied(fixture *h, const char *client, uint64_t boot,
                          const char *text)
{
    uint64_t refused = server_counts(h->core).refused_attach;
    uint32_t clients = td_server_core_clients(h->core);
    td_server_core_dropped dropped;
    td_errinfo info = {""};
    assert_int_equal(fixture_attach(h, client, boot, &dropped, &info),
                     TD_ERR_DENIED);
    assert_string_equal(info.text, text);
    assert_int_equal(td_server_core_clients(h->core), clients);
    assert_int_equal(dropped.count, 0);
    assert_int_equal(server_counts(h->core).refused_attach, refused + 1);
}

static void a_stranger_is_refused_by_name(void **state)
{
    fixture *h = *state;
    assert_denied(h, "arm-7", 1,
                  "client arm-7 is not in the manifest of server gpu-1: list "
                  "it under clients, or set accept_unknown");
    assert_denied(h, "arm-", 1,
                  "client arm- is not in the manifest of server gpu-1: list "
                  "it under clients, or set accept_unknown");
    assert_int_equal(td_server_core_clients(h->core), 0);
}

static void a_stranger_is_taken_where_all_are_welcome(void **state)
{
    fixture *h = *state;
    td_server_core_free(h->core);
    h->settings.accept_unknown = true;
    h->core = server_new(&h->settings, &h->spec, h->dispatch);
    fixture_attached(h, "arm-7", 1);
    assert_int_equal(td_server_core_clients(h->core), 1);
    char name[TD_WIRE_MAX_NAME + 2] = {0};
    memset(name, 'x', sizeof name - 1);
    assert_denied(h, name, 1, "client_uuid is too long");
    name[TD_WIRE_MAX_NAME] = 0;
    fixture_attached(h, name, 1);
    td_server_core_dropped dropped;
    assert_int_equal(fixture_detach(h, name, 1, &dropped), TD_OK);
}

static void a_full_server_refuses_until_somebody_leaves(void **state)
{
    fixture *h = *state;
    td_server_client *first = fixture_attached(h, "arm-0", 1);
    fixture_attached(h, "arm-1", 1);
    assert_denied(h, "arm-2", 1,
                  "server gpu-1 has its 2 clients and takes no more");
    td_server_core_dropped dropped;
    assert_int_equal(fixture_detach(h, "arm-0", 1, &dropped), TD_OK);
    assert_int_equal(first->presence, TD_SERVER_LEFT);
    assert_int_equal(fixture_attached(h, "arm-2", 1)->number, first->number);
    assert_int_equal(server_counts(h->core).attached, 3);
    assert_int_equal(server_counts(h->core).departed, 1);
}

static void a_server_that_is_not_ready_refuses(void **state)
{
    fixture *h = *state;
    td_server_core_set_state(h->core, TD_WIRE_WARMING);
    assert_denied(h, "arm-0", 1, "server gpu-1 is warming");
    td_server_core_set_state(h->core, TD_WIRE_DRAINING);
    assert_denied(h, "arm-0", 1, "server gpu-1 is draining");
    td_server_core_set_state(h->core, TD_WIRE_DEGRADED);
    fixture_attached(h, "arm-0", 1);
}

static void a_new_server_is_warming(void **state)
{
    fixture *h = *state;
    TD_AUTO(td_server_core) *core = NULL;
    const td_server_core_model model = model_of(&h->spec, h->dispatch);
    assert_int_equal(td_server_core_new(&h->settings, &model, &core), TD_OK);
    td_wire_status status;
    td_server_core_status(core, &status);
    assert_int_equal(status.state, TD_WIRE_WARMING);
}

static void a_server_without_room_is_not_made(void **state)
{
    fixture *h = *state;
    td_server_settings none = h->settings;
    none.capacity = 0;
    td_server_core *core = NULL;
    const td_server_core_model model = model_of(&h->spec, h->dispatch);
    assert_int_equal(td_server_core_new(&none, &model, &core), TD_ERR_INVALID);
    assert_null(core);
}

static void asking_again_with_the_same_boot_changes_nothing(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 5);
    fixture_taken(h, client, 5, 0, 3);
    assert_ptr_equal(fixture_attached(h, "arm-0", 5), client);
    assert_int_equal(td_server_core_clients(h->core), 1);
    assert_int_equal(server_counts(h->core).attached, 1);
    assert_int_equal(fixture_run_next(h), 3);
}

static void an_older_start_is_refused_by_name(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 5);
    fixture_taken(h, client, 5, 0, 1);
    assert_denied(h, "arm-0", 4,
                  "a newer start of client arm-0 (boot 5) is attached; this "
                  "one has boot 4");
    assert_int_equal(fixture_run_next(h), 1);
}

static void a_newer_start_takes_the_client_over(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 5);
    fixture_taken(h, client, 5, 7, 8);
    fixture_taken(h, client, 5, 7, 9);
    td_server_core_dropped dropped;
    assert_int_equal(fixture_attach(h, "arm-0", 6, &dropped, NULL), TD_OK);
    assert_int_equal(dropped.count, 1);
    assert_int_equal(dropped.requests[0]->obs.ident.seq, 9);
    assert_ptr_equal(dropped.requests[0], &h->requests[1]);
    assert_int_equal(fixture_count(h, TD_SERVER_DEPARTED), 1);

    assert_int_equal(fixture_run_next(h), 0);
    fixture_taken(h, client, 6, 0, 1); // its seqs and episodes start again
    assert_int_equal(fixture_run_next(h), 1);
    td_wire_action answer = {.ident = {.boot = 6}};
    td_server_core_add_superseded(client, &answer);
    assert_int_equal(answer.superseded_count, 0);
}

static void only_the_attached_start_can_leave(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 5);
    fixture_taken(h, client, 5, 0, 1);
    td_server_core_dropped dropped;
    assert_int_equal(fixture_detach(h, "arm-0", 4, &dropped), TD_ERR_NOTFOUND);
    assert_int_equal(fixture_detach(h, "arm-1", 5, &dropped), TD_ERR_NOTFOUND);
    assert_int_equal(client->presence, TD_SERVER_ATTACHED);
    assert_int_equal(fixture_detach(h, "arm-0", 5, &dropped), TD_OK);
    assert_int_equal(client->presence, TD_SERVER_LEFT);
    assert_int_equal(dropped.requests[0]->obs.ident.seq, 1);
    assert_int_equal(fixture_count(h, TD_SERVER_DEPARTED), 1);
    assert_int_equal(td_server_core_clients(h->core), 0);
    assert_int_equal(fixture_detach(h, "arm-0", 5, &dropped), TD_ERR_NOTFOUND);
}

static void nobody_leaves_while_running(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 5);
    fixture_taken(h, client, 5, 0, 1);
    assert_int_equal(fixture_run_next(h), 1);
    fixture_taken(h, client, 5, 0, 2);
    td_server_core_dropped dropped;
    assert_int_equal(fixture_detach(h, "arm-0", 5, &dropped), TD_ERR_BUSY);
    assert_int_equal(fixture_count(h, TD_SERVER_WAITING), 1);
    fixture_done(h, TD_SERVER_FAILED);
    assert_int_equal(fixture_detach(h, "arm-0", 5, &dropped), TD_OK);
    assert_int_equal(dropped.requests[0]->obs.ident.seq, 2);
    assert_int_equal(fixture_count(h, TD_SERVER_FAILED), 1);
}

int main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_stranger_is_refused_by_name),
        TEST(a_stranger_is_taken_where_all_are_welcome),
        TEST(a_full_server_refuses_until_somebody_leaves),
        TEST(a_server_that_is_not_ready_refuses),
        TEST(a_new_server_is_warming),
        TEST(a_server_without_room_is_not_made),
        TEST(asking_again_with_the_same_boot_changes_nothing),
        TEST(an_older_start_is_refused_by_name),
        TEST(a_newer_start_takes_the_client_over),
        TEST(only_the_attached_start_can_leave),
        TEST(nobody_leaves_while_running),
    };
    return cmocka_run_group_tests_name("server/core_attach", tests, NULL, NULL);
}

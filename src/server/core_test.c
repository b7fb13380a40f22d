// SPDX-License-Identifier: Apache-2.0
// Whom a server takes, and what becomes of what they send.
#include "server/core_fixture.h"

static char payloads[8];

// What a test server is made of; zeroed and set up by house_open().
typedef struct house {
    td_engine_spec spec;
    td_server_settings settings;
    td_server_core *core;
} house;

static void house_open(house *h)
{
    model_describe(&h->spec);
    h->settings = server_settings();
    h->core = server_new(&h->settings, &h->spec);
}

static int setup(void **state)
{
    static house h;
    house_open(&h);
    *state = &h;
    return 0;
}

static int teardown(void **state)
{
    house *h = *state;
    td_server_core_free(h->core);
    return 0;
}

static td_err attach(house *h, const char *client, uint64_t boot,
                     uint32_t *ret_client, td_sched_request *ret_dropped,
                     td_errinfo *info)
{
    const td_wire_attach asked = {
        .client = td_wire_text_of(client),
        .server = td_wire_text_of("gpu-1"),
        .boot = boot,
    };
    return td_server_core_attach(h->core, &asked, ret_client, ret_dropped,
                                 info);
}

static uint32_t attached(house *h, const char *client, uint64_t boot)
{
    uint32_t number = 99;
    td_sched_request dropped;
    assert_int_equal(attach(h, client, boot, &number, &dropped, NULL), TD_OK);
    return number;
}

static void assert_denied(house *h, const char *client, uint64_t boot,
                          const char *text)
{
    uint64_t refused = server_counts(h->core).refused_attach;
    uint32_t number = 99;
    td_sched_request dropped;
    td_errinfo info = {""};
    assert_int_equal(attach(h, client, boot, &number, &dropped, &info),
                     TD_ERR_DENIED);
    assert_string_equal(info.text, text);
    assert_int_equal(number, 99);
    assert_null(dropped.payload);
    assert_int_equal(server_counts(h->core).refused_attach, refused + 1);
}

static td_server_outcome observe(house *h, uint32_t client, uint64_t boot,
                                 uint64_t episode, uint64_t seq,
                                 td_sched_request *ret_displaced)
{
    const td_wire_ident ident = {.boot = boot, .episode = episode, .seq = seq};
    return td_server_core_observe(h->core, client, 1000, &ident,
                                  &payloads[seq % 8], ret_displaced);
}

// Observes what must be taken; returns the seq that it displaced, 0: none.
static uint64_t taken(house *h, uint32_t client, uint64_t boot,
                      uint64_t episode, uint64_t seq)
{
    td_sched_request displaced;
    assert_int_equal(observe(h, client, boot, episode, seq, &displaced),
                     TD_SERVER_WAITING);
    if (!displaced.payload) return 0;
    assert_ptr_equal(displaced.payload, &payloads[displaced.seq % 8]);
    return displaced.seq;
}

static uint64_t run_next(house *h)
{
    uint32_t client;
    td_sched_request request;
    if (td_server_core_next(h->core, 1, &client, &request) == 0) return 0;
    return request.seq;
}

static uint64_t count_of(const house *h, td_server_outcome outcome)
{
    return server_counts(h->core).outcomes[outcome];
}

static void a_stranger_is_refused_by_name(void **state)
{
    house *h = *state;
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
    house *h = *state;
    td_server_core_free(h->core);
    h->settings.accept_unknown = true;
    h->core = server_new(&h->settings, &h->spec);
    attached(h, "arm-7", 1);
    assert_int_equal(td_server_core_clients(h->core), 1);
    char name[TD_WIRE_MAX_NAME + 2] = {0};
    memset(name, 'x', sizeof name - 1);
    assert_denied(h, name, 1, "client_uuid is too long");
    name[TD_WIRE_MAX_NAME] = 0;
    attached(h, name, 1);
    uint32_t number;
    td_sched_request dropped;
    assert_int_equal(td_server_core_detach(h->core, name, 1, &number, &dropped),
                     TD_OK);
}

static void a_full_server_refuses_until_somebody_leaves(void **state)
{
    house *h = *state;
    uint32_t first = attached(h, "arm-0", 1);
    attached(h, "arm-1", 1);
    assert_denied(h, "arm-2", 1,
                  "server gpu-1 has its 2 clients and takes no more");
    uint32_t number;
    td_sched_request dropped;
    assert_int_equal(
        td_server_core_detach(h->core, "arm-0", 1, &number, &dropped), TD_OK);
    assert_int_equal(number, first);
    assert_int_equal(attached(h, "arm-2", 1), first);
    assert_int_equal(server_counts(h->core).attached, 3);
    assert_int_equal(server_counts(h->core).departed, 1);
}

static void a_server_that_is_not_ready_refuses(void **state)
{
    house *h = *state;
    td_server_core_set_state(h->core, TD_WIRE_WARMING);
    assert_denied(h, "arm-0", 1, "server gpu-1 is warming");
    td_server_core_set_state(h->core, TD_WIRE_DRAINING);
    assert_denied(h, "arm-0", 1, "server gpu-1 is draining");
    td_server_core_set_state(h->core, TD_WIRE_DEGRADED);
    attached(h, "arm-0", 1);
}

static void a_new_server_is_warming(void **state)
{
    house *h = *state;
    TD_AUTO(td_server_core) *core = NULL;
    assert_int_equal(td_server_core_new(&h->settings, &h->spec, &core), TD_OK);
    td_wire_status status;
    td_server_core_status(core, &status);
    assert_int_equal(status.state, TD_WIRE_WARMING);
}

static void a_server_without_room_is_not_made(void **state)
{
    house *h = *state;
    td_server_settings none = h->settings;
    none.capacity = 0;
    td_server_core *core = NULL;
    assert_int_equal(td_server_core_new(&none, &h->spec, &core),
                     TD_ERR_INVALID);
    assert_null(core);
}

static void asking_again_with_the_same_boot_changes_nothing(void **state)
{
    house *h = *state;
    uint32_t number = attached(h, "arm-0", 5);
    taken(h, number, 5, 0, 3);
    assert_int_equal(attached(h, "arm-0", 5), number);
    assert_int_equal(td_server_core_clients(h->core), 1);
    assert_int_equal(server_counts(h->core).attached, 1);
    assert_int_equal(run_next(h), 3);
}

static void an_older_start_is_refused_by_name(void **state)
{
    house *h = *state;
    uint32_t number = attached(h, "arm-0", 5);
    taken(h, number, 5, 0, 1);
    assert_denied(h, "arm-0", 4,
                  "a newer start of client arm-0 (boot 5) is attached; this "
                  "one has boot 4");
    assert_int_equal(run_next(h), 1);
}

static void a_newer_start_takes_the_client_over(void **state)
{
    house *h = *state;
    uint32_t number = attached(h, "arm-0", 5);
    taken(h, number, 5, 7, 8);
    taken(h, number, 5, 7, 9);
    td_sched_request dropped;
    uint32_t again = 99;
    assert_int_equal(attach(h, "arm-0", 6, &again, &dropped, NULL), TD_OK);
    assert_int_equal(again, number);
    assert_int_equal(dropped.seq, 9);
    assert_ptr_equal(dropped.payload, &payloads[1]);
    assert_int_equal(count_of(h, TD_SERVER_DEPARTED), 1);

    assert_int_equal(run_next(h), 0);
    taken(h, number, 6, 0, 1); // its seqs and episodes start anew
    assert_int_equal(run_next(h), 1);
    uint64_t superseded[TD_WIRE_MAX_SUPERSEDED];
    assert_int_equal(td_server_core_superseded(h->core, number, superseded), 0);
}

static void only_the_attached_start_can_leave(void **state)
{
    house *h = *state;
    uint32_t number = attached(h, "arm-0", 5);
    taken(h, number, 5, 0, 1);
    uint32_t left = 99;
    td_sched_request dropped;
    assert_int_equal(
        td_server_core_detach(h->core, "arm-0", 4, &left, &dropped),
        TD_ERR_NOTFOUND);
    assert_int_equal(
        td_server_core_detach(h->core, "arm-1", 5, &left, &dropped),
        TD_ERR_NOTFOUND);
    assert_int_equal(left, 99);
    assert_int_equal(
        td_server_core_detach(h->core, "arm-0", 5, &left, &dropped), TD_OK);
    assert_int_equal(left, number);
    assert_int_equal(dropped.seq, 1);
    assert_int_equal(count_of(h, TD_SERVER_DEPARTED), 1);
    assert_int_equal(td_server_core_clients(h->core), 0);
    assert_int_equal(
        td_server_core_detach(h->core, "arm-0", 5, &left, &dropped),
        TD_ERR_NOTFOUND);
}

static void nobody_leaves_while_running(void **state)
{
    house *h = *state;
    uint32_t number = attached(h, "arm-0", 5);
    taken(h, number, 5, 0, 1);
    assert_int_equal(run_next(h), 1);
    taken(h, number, 5, 0, 2);
    uint32_t left;
    td_sched_request dropped;
    assert_int_equal(
        td_server_core_detach(h->core, "arm-0", 5, &left, &dropped),
        TD_ERR_BUSY);
    assert_int_equal(count_of(h, TD_SERVER_WAITING), 1);
    td_server_core_done(h->core, number, TD_SERVER_FAILED);
    assert_int_equal(
        td_server_core_detach(h->core, "arm-0", 5, &left, &dropped), TD_OK);
    assert_int_equal(dropped.seq, 2);
    assert_int_equal(count_of(h, TD_SERVER_FAILED), 1);
}

static void old_observations_are_counted_and_not_taken(void **state)
{
    house *h = *state;
    static const struct {
        const char *name;
        uint64_t boot, episode, seq;
        td_server_outcome outcome;
    } cases[] = {
        {"old_boot", 4, 9, 99, TD_SERVER_OLD_BOOT},
        {"old_episode", 5, 2, 99, TD_SERVER_OLD_EPISODE},
        {"old_seq", 5, 3, 10, TD_SERVER_OLD_SEQ}, // the same again
        {"old_seq", 5, 3, 9, TD_SERVER_OLD_SEQ},
        {"old_seq", 5, 4, 9, TD_SERVER_OLD_SEQ}, // they grow all boot long
    };
    uint32_t number = attached(h, "arm-0", 5);
    taken(h, number, 5, 3, 10);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        uint64_t before = count_of(h, cases[i].outcome);
        td_sched_request displaced;
        td_server_outcome outcome =
            observe(h, number, cases[i].boot, cases[i].episode, cases[i].seq,
                    &displaced);
        if (outcome != cases[i].outcome || displaced.payload ||
            strcmp(td_server_outcome_name(outcome), cases[i].name) != 0 ||
            count_of(h, cases[i].outcome) != before + 1)
            fail_msg("%s, row %zu", cases[i].name, i);
    }
    assert_int_equal(run_next(h), 10);
}

static void a_newer_observation_takes_the_place(void **state)
{
    house *h = *state;
    uint32_t number = attached(h, "arm-0", 5);
    assert_int_equal(taken(h, number, 5, 0, 1), 0);
    assert_int_equal(taken(h, number, 5, 0, 4), 1);
    assert_int_equal(count_of(h, TD_SERVER_SUPERSEDED), 1);
    assert_int_equal(run_next(h), 4);
    assert_int_equal(count_of(h, TD_SERVER_RUNNING), 1);
    td_server_core_done(h->core, number, TD_SERVER_ANSWERED);
    assert_int_equal(count_of(h, TD_SERVER_ANSWERED), 1);
    assert_int_equal(run_next(h), 0);
}

static void a_higher_episode_or_boot_starts_anew(void **state)
{
    house *h = *state;
    uint32_t number = attached(h, "arm-0", 5);
    taken(h, number, 5, 1, 10);
    assert_int_equal(taken(h, number, 5, 2, 11), 10);
    assert_int_equal(count_of(h, TD_SERVER_DEPARTED), 1);
    assert_int_equal(taken(h, number, 6, 0, 1), 11);
    assert_int_equal(count_of(h, TD_SERVER_DEPARTED), 2);
    assert_int_equal(count_of(h, TD_SERVER_SUPERSEDED), 0);
    assert_int_equal(run_next(h), 1);
}

static void a_reset_drops_what_waited(void **state)
{
    house *h = *state;
    static const struct {
        const char *name;
        uint64_t boot, episode;
        bool taken;
    } cases[] = {
        {"old boot", 4, 9, false},
        {"boot that never attached", 6, 9, false},
        {"present episode", 5, 3, false},
        {"old episode", 5, 2, false},
        {"next episode", 5, 4, true},
    };
    uint32_t number = attached(h, "arm-0", 5);
    taken(h, number, 5, 3, 1);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        const td_wire_reset reset = {.boot = cases[i].boot,
                                     .episode = cases[i].episode};
        td_sched_request dropped;
        td_server_core_reset(h->core, number, &reset, &dropped);
        if ((dropped.seq == 1) != cases[i].taken ||
            (dropped.payload != NULL) != cases[i].taken)
            fail_msg("%s", cases[i].name);
    }
    assert_int_equal(count_of(h, TD_SERVER_DEPARTED), 1);
    assert_int_equal(run_next(h), 0);
    td_sched_request displaced;
    assert_int_equal(observe(h, number, 5, 3, 2, &displaced),
                     TD_SERVER_OLD_EPISODE);
    assert_int_equal(taken(h, number, 5, 4, 3), 0);
}

static void assert_told(house *h, uint32_t client, const uint64_t *seqs,
                        uint32_t count)
{
    uint64_t told[TD_WIRE_MAX_SUPERSEDED];
    assert_int_equal(td_server_core_superseded(h->core, client, told), count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(told[i], seqs[i]);
}

static void superseded_seqs_are_told_once_with_the_next_answer(void **state)
{
    house *h = *state;
    uint32_t number = attached(h, "arm-0", 5);
    uint32_t other = attached(h, "arm-1", 1);
    taken(h, number, 5, 0, 1);
    td_server_core_ended(h->core, number, TD_SERVER_SUPERSEDED, 2);
    td_server_core_ended(h->core, number, TD_SERVER_MALFORMED, 3);
    td_server_core_ended(h->core, number, TD_SERVER_REFUSED, 4);
    taken(h, number, 5, 0, 5);
    taken(h, other, 1, 0, 1);
    assert_int_equal(run_next(h), 5);
    assert_int_equal(run_next(h), 1);
    assert_told(h, other, NULL, 0);
    assert_told(h, number, (uint64_t[]){2, 1}, 2);
    assert_told(h, number, NULL, 0);
    assert_int_equal(count_of(h, TD_SERVER_SUPERSEDED), 2);
    assert_int_equal(count_of(h, TD_SERVER_MALFORMED), 1);
    assert_int_equal(count_of(h, TD_SERVER_REFUSED), 1);
}

static void the_newest_superseded_seqs_are_told_when_they_are_many(void **state)
{
    house *h = *state;
    uint32_t number = attached(h, "arm-0", 5);
    const uint64_t last = TD_WIRE_MAX_SUPERSEDED + 11;
    for (uint64_t seq = 1; seq <= last; seq++)
        taken(h, number, 5, 0, seq);
    assert_int_equal(run_next(h), last);
    uint64_t newest[TD_WIRE_MAX_SUPERSEDED];
    for (uint64_t i = 0; i < TD_WIRE_MAX_SUPERSEDED; i++)
        newest[i] = last - TD_WIRE_MAX_SUPERSEDED + i;
    assert_told(h, number, newest, TD_WIRE_MAX_SUPERSEDED);
    assert_int_equal(count_of(h, TD_SERVER_SUPERSEDED), last - 1);
}

// Its seq will never be answered, and the robot is still the same start.
static void what_a_new_episode_drops_is_told_too(void **state)
{
    house *h = *state;
    uint32_t number = attached(h, "arm-0", 5);
    taken(h, number, 5, 1, 1);
    taken(h, number, 5, 2, 2);
    assert_int_equal(run_next(h), 2);
    assert_told(h, number, (uint64_t[]){1}, 1);
}

// The robot drops an answer to what it sent before, so that one tells nothing.
static void news_waits_for_an_answer_that_is_read(void **state)
{
    house *h = *state;
    uint32_t number = attached(h, "arm-0", 5);
    taken(h, number, 5, 1, 1);
    assert_int_equal(run_next(h), 1);
    taken(h, number, 5, 2, 2);
    taken(h, number, 5, 2, 3);
    assert_told(h, number, NULL, 0);
    td_server_core_done(h->core, number, TD_SERVER_ANSWERED);
    assert_int_equal(run_next(h), 3);
    taken(h, number, 6, 0, 1);
    taken(h, number, 6, 0, 2);
    assert_told(h, number, NULL, 0);
    td_server_core_done(h->core, number, TD_SERVER_ANSWERED);
    assert_int_equal(run_next(h), 2);
    assert_told(h, number, (uint64_t[]){1}, 1);
}

static void turns_go_round_and_batches_fill(void **state)
{
    house *h = *state;
    uint32_t first = attached(h, "arm-0", 1);
    uint32_t second = attached(h, "arm-1", 1);
    taken(h, first, 1, 0, 1);
    taken(h, second, 1, 0, 2);
    uint32_t clients[4];
    td_sched_request requests[4];
    assert_int_equal(td_server_core_next(h->core, 4, clients, requests), 2);
    assert_int_equal(clients[0], first);
    assert_int_equal(clients[1], second);
    assert_int_equal(requests[1].seq, 2);
    assert_int_equal(count_of(h, TD_SERVER_RUNNING), 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
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
        TEST(old_observations_are_counted_and_not_taken),
        TEST(a_newer_observation_takes_the_place),
        TEST(a_higher_episode_or_boot_starts_anew),
        TEST(a_reset_drops_what_waited),
        TEST(superseded_seqs_are_told_once_with_the_next_answer),
        TEST(the_newest_superseded_seqs_are_told_when_they_are_many),
        TEST(what_a_new_episode_drops_is_told_too),
        TEST(news_waits_for_an_answer_that_is_read),
        TEST(turns_go_round_and_batches_fill),
    };
    return cmocka_run_group_tests_name("server/core", tests, NULL, NULL);
}

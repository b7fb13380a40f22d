// SPDX-License-Identifier: Apache-2.0
// The life of a request: slots, queues, and how each ends.
#include "sched/sched_fixture.h"

static void newer_takes_the_place_and_inherits_the_wait(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_MODEL_DEADLINE);
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    uint32_t a = join(sched, 0, 0, false), b = join(sched, 1, 0, false);
    assert_null(submit_seq(sched, 10, a, 1).request.payload);
    (void)submit_seq(sched, 20, b, 2);
    td_sched_ended ended = submit_seq(sched, 30, a, 3);
    assert_int_equal(ended.outcome, TD_SCHED_SUPERSEDED);
    assert_int_equal(ended.request.seq, 1);
    assert_int_equal(ended.member, a);

    td_sched_pick pick;
    assert_int_equal(td_sched_next(sched, 40, ALL, 1, &pick), 1);
    assert_int_equal(pick.request.seq, 3); // its client waited longest
    assert_int_equal(pick.request.arrived_ns, 30);
    assert_int_equal(pick.request.waiting_since_ns, 10);
    assert_int_equal(count_of(sched, TD_SCHED_SUPERSEDED), 1);
}

static void one_of_a_slot_runs_while_the_next_waits(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_MODEL_DEADLINE);
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    uint32_t member = join(sched, 0, 0, false);
    td_sched_pick first, second;
    (void)submit_seq(sched, 0, member, 1);
    assert_int_equal(td_sched_next(sched, 0, ALL, 4, &first), 1);
    (void)submit_seq(sched, 1, member, 2);
    (void)submit_seq(sched, 2, member, 3);
    assert_int_equal(td_sched_next(sched, 3, ALL, 4, &second), 0);
    assert_int_equal(td_sched_waiting(sched), 1);
    assert_int_equal(td_sched_done(sched, 4, first.ticket, TD_SCHED_ANSWERED),
                     TD_SCHED_ANSWERED);
    assert_int_equal(td_sched_next(sched, 5, ALL, 4, &second), 1);
    assert_int_equal(second.request.seq, 3);
}

static void a_queue_runs_several_of_one_client(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_MODEL_DEADLINE);
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    uint32_t member = join(sched, 0, 0, true);
    for (uint64_t seq = 1; seq <= 3; seq++)
        assert_null(submit_seq(sched, 0, member, seq).request.payload);
    td_sched_pick picks[4];
    assert_int_equal(td_sched_next(sched, 0, ALL, 4, picks), 3);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(picks[i].request.seq, i + 1);
}

static void a_full_queue_drops_the_oldest_of_the_lowest_tier(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_PRIORITY_TIERED);
    settings.queue.size = 3;
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    uint32_t member = join(sched, 0, 0, true);
    static const uint32_t priorities[] = {0, 2, 2};
    td_sched_item item;
    for (uint64_t i = 0; i < 3; i++) {
        item = item_of(member, i + 1);
        item.priority = priorities[i];
        (void)submit(sched, 0, &item);
    }
    item = item_of(member, 4);
    td_sched_ended ended = submit(sched, 0, &item);
    assert_int_equal(ended.outcome, TD_SCHED_OVERFLOWED);
    assert_int_equal(ended.request.seq, 2);
    item = item_of(member, 5);
    item.priority = 0;
    assert_int_equal(submit(sched, 0, &item).request.seq, 3);
    item = item_of(member, 6); // all that wait are worth more
    item.priority = 2;
    assert_int_equal(td_sched_submit(sched, 0, &item, &ended),
                     TD_SCHED_REFUSED);
    assert_int_equal(count_of(sched, TD_SCHED_OVERFLOWED), 2);
    assert_int_equal(count_of(sched, TD_SCHED_REFUSED), 1);
    assert_int_equal(td_sched_waiting(sched), 3);
}

static void a_client_keeps_its_turn_when_its_oldest_is_dropped(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_ROUND_ROBIN);
    settings.queue.size = 3;
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    uint32_t loud = join(sched, 0, 0, true), slot = join(sched, 1, 0, false);
    for (uint64_t seq = 1; seq <= 3; seq++)
        (void)submit_seq(sched, 0, loud, seq);
    (void)submit_seq(sched, 0, slot, 10);
    assert_int_equal(submit_seq(sched, 0, loud, 4).request.seq, 1);
    assert_int_equal(run_one(sched, 0, ALL), 2);
    assert_int_equal(run_one(sched, 0, ALL), 10);
    assert_int_equal(run_one(sched, 0, ALL), 3);
}

static void other_rules_hold_for_those_that_wait(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_MODEL_DEADLINE);
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    uint32_t member = join(sched, 0, 0, true);
    (void)submit_seq(sched, 0, member, 1);
    assert_int_equal(td_sched_wake_ns(sched), 5000 * MS);
    td_sched_queue_settings queue = settings.queue;
    queue.ttl_ns = 20 * MS;
    queue.size = 1; // stays as it was
    assert_int_equal(td_sched_rules(sched, 0, &queue, &settings.flush), TD_OK);
    (void)submit_seq(sched, 0, member, 2);
    assert_int_equal(count_of(sched, TD_SCHED_WAITING), 2);
    td_sched_ended ended;
    assert_false(td_sched_drop(sched, 19 * MS, &ended));
    assert_true(td_sched_drop(sched, 20 * MS, &ended));
    assert_int_equal(ended.outcome, TD_SCHED_EXPIRED);
    queue.ttl_ns = 0;
    assert_int_equal(td_sched_rules(sched, 20 * MS, &queue, &settings.flush),
                     TD_ERR_INVALID);
    assert_true(td_sched_drop(sched, 20 * MS, &ended));
    assert_int_equal(count_of(sched, TD_SCHED_EXPIRED), 2);
}

static void a_full_queue_refuses_the_newest_if_told(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_MODEL_DEADLINE);
    settings.queue.size = 1;
    settings.queue.overflow = TD_SCHED_REJECT_NEWEST;
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    uint32_t member = join(sched, 0, 0, true);
    (void)submit_seq(sched, 0, member, 1);
    td_sched_item item = item_of(member, 2);
    td_sched_ended ended;
    assert_int_equal(td_sched_submit(sched, 0, &item, &ended),
                     TD_SCHED_REFUSED);
    assert_null(ended.request.payload);
    assert_int_equal(run_one(sched, 0, ALL), 1);
    (void)submit_seq(sched, 0, join(sched, 1, 0, false), 3); // not of the queue
}

static void what_waits_too_long_expires(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_MODEL_DEADLINE);
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    (void)submit_seq(sched, 7, join(sched, 0, 0, true), 1);
    (void)submit_seq(sched, 7, join(sched, 1, 0, false), 2);
    td_sched_ended ended;
    assert_int_equal(td_sched_wake_ns(sched), 5000 * MS + 7);
    assert_false(td_sched_drop(sched, 5000 * MS + 6, &ended));
    assert_true(td_sched_drop(sched, 5000 * MS + 7, &ended));
    assert_int_equal(ended.outcome, TD_SCHED_EXPIRED);
    assert_int_equal(ended.request.seq, 1);
    assert_false(td_sched_drop(sched, 90000 * MS, &ended)); // slots do not
    assert_int_equal(td_sched_waiting(sched), 1);
}

static void only_what_is_of_no_use_is_dropped(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_MODEL_DEADLINE);
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    td_sched_measured(sched, 0, 0, 1, 10 * MS);
    td_sched_item item = item_of(join(sched, 0, 0, false), 1);
    item.due_ns = 20 * MS;
    item.useless_ns = 120 * MS;
    (void)submit(sched, 0, &item);
    td_sched_ended ended;
    assert_false(td_sched_drop(sched, 110 * MS - 1, &ended)); // late, but used
    assert_true(td_sched_drop(sched, 110 * MS, &ended));
    assert_int_equal(ended.outcome, TD_SCHED_USELESS);
    assert_int_equal(count_of(sched, TD_SCHED_USELESS), 1);
}

static void a_failed_one_is_tried_again_after_a_pause(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_MODEL_DEADLINE);
    settings.queue.retries = 2;
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    (void)submit_seq(sched, 0, join(sched, 0, 0, true), 1);
    static const int64_t at_ms[] = {0, 10, 30};
    td_sched_pick pick;
    for (int i = 0; i < 3; i++) {
        int64_t now_ns = at_ms[i] * MS;
        if (i > 0) {
            assert_int_equal(td_sched_wake_ns(sched), now_ns);
            assert_int_equal(td_sched_next(sched, now_ns - 1, ALL, 1, &pick),
                             0);
        }
        assert_int_equal(td_sched_next(sched, now_ns, ALL, 1, &pick), 1);
        assert_int_equal(
            td_sched_done(sched, now_ns, pick.ticket, TD_SCHED_FAILED),
            i < 2 ? TD_SCHED_WAITING : TD_SCHED_FAILED);
    }
    assert_int_equal(count_of(sched, TD_SCHED_FAILED), 1);
    td_sched_counts counts;
    td_sched_count(sched, &counts);
    assert_int_equal(counts.retried, 2);
}

static void a_newer_one_is_worth_more_than_a_retry(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_MODEL_DEADLINE);
    settings.queue.retries = 5;
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    uint32_t member = join(sched, 0, 0, false);
    td_sched_pick pick;
    (void)submit_seq(sched, 0, member, 1);
    assert_int_equal(td_sched_next(sched, 0, ALL, 1, &pick), 1);
    (void)submit_seq(sched, 1, member, 2);
    assert_int_equal(td_sched_done(sched, 2, pick.ticket, TD_SCHED_FAILED),
                     TD_SCHED_FAILED);
    assert_int_equal(td_sched_next(sched, 3, ALL, 1, &pick), 1);
    assert_int_equal(td_sched_done(sched, 4, pick.ticket, TD_SCHED_FAILED),
                     TD_SCHED_WAITING);
    td_sched_ended ended = submit_seq(sched, 5, member, 3);
    assert_int_equal(ended.request.seq, 2); // the one that would be retried
    assert_int_equal(run_one(sched, 6, ALL), 3);
}

static void a_member_leaves_when_nothing_of_it_is_left(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_ROUND_ROBIN);
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    uint32_t member = join(sched, 0, 0, true);
    td_sched_pick pick;
    td_sched_ended ended;
    for (uint64_t seq = 1; seq <= 3; seq++)
        (void)submit_seq(sched, 0, member, seq);
    assert_int_equal(td_sched_next(sched, 0, ALL, 1, &pick), 1);
    assert_true(td_sched_clear(sched, member, &ended));
    assert_int_equal(ended.outcome, TD_SCHED_DEPARTED);
    assert_int_equal(td_sched_leave(sched, member), TD_ERR_BUSY);
    assert_true(td_sched_clear(sched, member, &ended));
    assert_false(td_sched_clear(sched, member, &ended));
    assert_int_equal(td_sched_leave(sched, member), TD_ERR_BUSY);
    (void)td_sched_done(sched, 0, pick.ticket, TD_SCHED_ANSWERED);
    assert_int_equal(td_sched_leave(sched, member), TD_OK);
    assert_int_equal(join(sched, 1, 0, true), member);
}

static void changing_the_strategy_loses_nothing(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_ROUND_ROBIN);
    settings.queue.retries = 1;
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    uint32_t a = join(sched, 0, 0, true), b = join(sched, 1, 1, true);
    uint32_t slot = join(sched, 2, 0, false);
    td_sched_pick held, retried;
    (void)submit_seq(sched, 0, slot, 100);
    assert_int_equal(td_sched_next(sched, 0, ALL, 1, &held), 1);
    (void)submit_seq(sched, 0, slot, 5); // waits for its slot
    (void)submit_seq(sched, 0, a, 4);
    assert_int_equal(td_sched_next(sched, 0, 1, 1, &retried), 1);
    (void)td_sched_done(sched, 0, retried.ticket, TD_SCHED_FAILED);
    for (uint64_t seq = 1; seq <= 3; seq++) {
        td_sched_item item = item_of(seq == 2 ? b : a, seq);
        item.priority = (uint32_t)(3 - seq); // 3 is of the highest tier
        (void)submit(sched, 0, &item);
    }
    td_sched_policy policy = settings.policy;
    for (int i = 0; i < TD_SCHED_STRATEGY_COUNT; i++) {
        policy.strategy = (td_sched_strategy)i;
        assert_int_equal(td_sched_use(sched, 0, &policy), TD_OK);
        assert_int_equal(td_sched_waiting(sched), 5);
    }
    policy.strategy = TD_SCHED_PRIORITY_TIERED;
    assert_int_equal(td_sched_use(sched, 0, &policy), TD_OK);
    assert_int_equal(run_one(sched, 0, ALL), 3);
    assert_int_equal(run_one(sched, 0, ALL), 2);
    assert_int_equal(run_one(sched, 0, ALL), 1);
    assert_int_equal(run_one(sched, 0, ALL), 0);
    (void)td_sched_done(sched, 0, held.ticket, TD_SCHED_ANSWERED);
    assert_int_equal(run_one(sched, 0, ALL), 5);
    assert_int_equal(run_one(sched, 10 * MS, ALL), 4);
    policy.tiers = 4;
    assert_int_equal(td_sched_use(sched, 0, &policy), TD_ERR_INVALID);
}

static void
more_kinds_of_batches_than_there_is_room_for_are_refused(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_MODEL_DEADLINE);
    settings.mixes = 2;
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    uint32_t queued = join(sched, 0, 0, true), slot = join(sched, 1, 0, false);
    td_sched_item item = item_of(queued, 1);
    td_sched_ended ended;
    item.mix = 11;
    (void)submit(sched, 0, &item);
    item = item_of(slot, 2);
    item.mix = 12;
    (void)submit(sched, 0, &item);
    item.mix = 13; // of the one that it takes the place of
    (void)submit(sched, 0, &item);
    item = item_of(queued, 3);
    item.mix = 14;
    assert_int_equal(td_sched_submit(sched, 0, &item, &ended),
                     TD_SCHED_REFUSED);
    assert_int_equal(run_one(sched, 0, ALL), 1);
    (void)submit(sched, 0, &item);
}

static void settings_without_sense_are_refused(void **state)
{
    (void)state;
    td_sched_settings bad = td_sched_defaults;
    bad.mixes = 65;
    td_sched *sched = NULL;
    td_errinfo info;
    assert_int_equal(td_sched_new(&bad, &sched, &info), TD_ERR_INVALID);
    assert_string_equal(info.text,
                        "mixes: at least 1, and with the tiers at most 64");
    bad = td_sched_defaults;
    bad.batch.most = 65;
    assert_int_equal(td_sched_new(&bad, &sched, &info), TD_ERR_INVALID);
    assert_null(sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newer_takes_the_place_and_inherits_the_wait),
        cmocka_unit_test(one_of_a_slot_runs_while_the_next_waits),
        cmocka_unit_test(a_queue_runs_several_of_one_client),
        cmocka_unit_test(a_full_queue_drops_the_oldest_of_the_lowest_tier),
        cmocka_unit_test(a_client_keeps_its_turn_when_its_oldest_is_dropped),
        cmocka_unit_test(other_rules_hold_for_those_that_wait),
        cmocka_unit_test(a_full_queue_refuses_the_newest_if_told),
        cmocka_unit_test(what_waits_too_long_expires),
        cmocka_unit_test(only_what_is_of_no_use_is_dropped),
        cmocka_unit_test(a_failed_one_is_tried_again_after_a_pause),
        cmocka_unit_test(a_newer_one_is_worth_more_than_a_retry),
        cmocka_unit_test(a_member_leaves_when_nothing_of_it_is_left),
        cmocka_unit_test(changing_the_strategy_loses_nothing),
        cmocka_unit_test(
            more_kinds_of_batches_than_there_is_room_for_are_refused),
        cmocka_unit_test(settings_without_sense_are_refused),
    };
    return cmocka_run_group_tests_name("sched/sched", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "sched/strategy/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static td_sched_share share_new(void)
{
    td_sched_share share;
    assert_int_equal(td_sched_share_init(&share, 4, 2, 3), TD_OK);
    td_sched_share_measured(&share, 10);
    return share;
}

static bool may_go(td_sched_share *share, uint32_t tier, uint32_t client)
{
    bool ahead = td_sched_share_tag_ns(share, tier, client) >
                 td_sched_share_limit_ns(share, tier);
    assert_int_equal(td_sched_share_ahead(share, tier, client), ahead);
    return !ahead;
}

static void one_may_be_a_few_runs_ahead_of_who_waits_longest(void **state)
{
    (void)state;
    td_sched_share share = share_new();
    td_sched_share_waits(&share, 0, 0);
    td_sched_share_waits(&share, 0, 1);
    for (int i = 0; i < 3; i++)
        td_sched_share_charge(&share, 0, 0, 10);
    assert_true(may_go(&share, 0, 0));
    td_sched_share_charge(&share, 0, 0, 10);
    assert_false(may_go(&share, 0, 0));
    assert_true(may_go(&share, 0, 1));
    td_sched_share_charge(&share, 0, 1, 10);
    assert_true(may_go(&share, 0, 0));
    td_sched_share_done(&share);
}

static void who_waits_alone_may_always_go(void **state)
{
    (void)state;
    td_sched_share share = share_new();
    td_sched_share_waits(&share, 0, 2);
    td_sched_share_charge(&share, 0, 2, 1000000);
    assert_true(may_go(&share, 0, 2));
    td_sched_share_done(&share);
}

static void a_pause_saves_nothing_up(void **state)
{
    (void)state;
    td_sched_share share = share_new();
    td_sched_share_waits(&share, 0, 0);
    td_sched_share_charge(&share, 0, 0, 1000);
    assert_true(may_go(&share, 0, 0));
    td_sched_share_waits(&share, 0, 1); // away all that time
    assert_int_equal(td_sched_share_tag_ns(&share, 0, 1), 1000);
    td_sched_share_done(&share);
}

static void leaving_for_a_moment_forgives_nothing(void **state)
{
    (void)state;
    td_sched_share share = share_new();
    td_sched_share_waits(&share, 0, 0);
    td_sched_share_waits(&share, 0, 1);
    td_sched_share_charge(&share, 0, 0, 500);
    td_sched_share_leaves(&share, 0, 0);
    td_sched_share_waits(&share, 0, 0);
    assert_false(may_go(&share, 0, 0));
    td_sched_share_leaves(&share, 0, 1); // a newer one takes its place
    td_sched_share_waits(&share, 0, 1);
    assert_int_equal(td_sched_share_tag_ns(&share, 0, 1), 0);
    td_sched_share_done(&share);
}

static void less_than_was_charged_is_given_back(void **state)
{
    (void)state;
    td_sched_share share = share_new();
    td_sched_share_waits(&share, 0, 0);
    td_sched_share_waits(&share, 0, 1);
    td_sched_share_charge(&share, 0, 1, 100);
    td_sched_share_charge(&share, 0, 0, 60);
    assert_false(may_go(&share, 0, 1)); // 60 + 3 runs
    td_sched_share_charge(&share, 0, 1, -20);
    assert_true(may_go(&share, 0, 1));
    td_sched_share_charge(&share, 0, 0, 100); // the other is the least now
    assert_false(may_go(&share, 0, 0));
    td_sched_share_done(&share);
}

static void what_is_forgiven_does_not_put_ahead(void **state)
{
    (void)state;
    td_sched_share share = share_new();
    td_sched_share_waits(&share, 0, 0);
    td_sched_share_waits(&share, 0, 1);
    td_sched_share_charge(&share, 0, 0, 500);
    assert_false(may_go(&share, 0, 0));
    td_sched_share_forgive(&share, 0, 0);
    assert_true(may_go(&share, 0, 0));
    td_sched_share_charge(&share, 0, 0, 10); // from here on it counts again
    assert_false(may_go(&share, 0, 0));
    assert_true(may_go(&share, 0, 1));
    td_sched_share_done(&share);
}

static void tiers_have_shares_of_their_own(void **state)
{
    (void)state;
    td_sched_share share = share_new();
    td_sched_share_waits(&share, 0, 0);
    td_sched_share_waits(&share, 1, 1);
    td_sched_share_charge(&share, 0, 0, 500);
    assert_true(may_go(&share, 0, 0));
    assert_true(may_go(&share, 1, 1));
    td_sched_share_done(&share);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_may_be_a_few_runs_ahead_of_who_waits_longest),
        cmocka_unit_test(who_waits_alone_may_always_go),
        cmocka_unit_test(a_pause_saves_nothing_up),
        cmocka_unit_test(leaving_for_a_moment_forgives_nothing),
        cmocka_unit_test(less_than_was_charged_is_given_back),
        cmocka_unit_test(what_is_forgiven_does_not_put_ahead),
        cmocka_unit_test(tiers_have_shares_of_their_own),
    };
    return cmocka_run_group_tests_name("sched/share", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Who goes first: what is published of each strategy, and our rules beyond it.
#include "sched/sched_fixture.h"

#include <string.h>

typedef struct arrival {
    uint32_t client; // from 0; queued; its seq is its place here, from 1
    int64_t at_ms;
    uint32_t priority;
    float urgency;
    uint32_t steps;
    int64_t expected_ms; // 0: not known
    int64_t due_ms;      // 0: none
    uint32_t model;
} arrival;

#define ANY .priority = 1, .steps = UNSET

static const struct order_case {
    const char *name;
    td_sched_strategy strategy;
    arrival in[7];
    int64_t now_ms;
    uint64_t out[7]; // seqs
} cases[] = {
    {"equal ones leave in order of arrival",
     TD_SCHED_DEADLINE_AWARE,
     {{0, 0, ANY}, {1, 0, ANY}, {2, 0, ANY}},
     1,
     {1, 2, 3}},
    {"the more urgent goes first",
     TD_SCHED_DEADLINE_AWARE,
     {{0, 0, ANY, .urgency = 0.2F},
      {1, 0, ANY, .urgency = 0.9F},
      {2, 0, ANY, .urgency = 0.5F}},
     0,
     {2, 3, 1}},
    {"the higher priority goes first, other things equal",
     TD_SCHED_MODEL_DEADLINE,
     {{0, 0, 2, .steps = UNSET},
      {1, 0, 0, .steps = UNSET},
      {2, 0, 1, .steps = UNSET}},
     0,
     {2, 3, 1}},
    {"priority is a factor, not a wall",
     TD_SCHED_MODEL_DEADLINE,
     {{0, 0, 0, .steps = UNSET}, {1, 0, 5, .urgency = 1, .steps = UNSET}},
     0,
     {2, 1}},
    {"who has no steps left goes first",
     TD_SCHED_DEADLINE_AWARE,
     {{0, 0, 1, .steps = 9}, {1, 0, 1, .steps = 3}, {2, 0, 1, .steps = 0}},
     0,
     {3, 2, 1}},
    {"whose client is overdue goes first",
     TD_SCHED_DEADLINE_AWARE,
     {{0, 0, ANY, .urgency = 1}, {1, 0, ANY, .expected_ms = 100}},
     200,
     {2, 1}},
    {"whose client is not yet overdue does not",
     TD_SCHED_DEADLINE_AWARE,
     {{0, 0, ANY, .urgency = 1}, {1, 0, ANY, .expected_ms = 100}},
     90,
     {1, 2}},
    {"age counts when the batch is formed",
     TD_SCHED_DEADLINE_AWARE,
     {{0, 0, ANY}, {1, 48, ANY, .urgency = 0.5F}},
     50,
     {1, 2}},
    {"age counts no further than the budget",
     TD_SCHED_DEADLINE_AWARE,
     {{0, 0, ANY}, {1, 940, ANY, .urgency = 0.1F}},
     1000,
     {2, 1}},
    {"tiers are walls",
     TD_SCHED_TIERED_DEADLINE,
     {{0, 0, 1, .urgency = 1, .steps = 0}, {1, 40, 0, .steps = UNSET}},
     50,
     {2, 1}},
    {"within a tier the score decides",
     TD_SCHED_TIERED_DEADLINE,
     {{0, 0, 1, .steps = UNSET},
      {1, 0, 1, .urgency = 1, .steps = UNSET},
      {2, 0, 0, .steps = UNSET}},
     0,
     {3, 2, 1}},
    {"strict tiers, in turn within",
     TD_SCHED_PRIORITY_TIERED,
     {{0, 0, 1, .urgency = 0, .steps = UNSET},
      {1, 1, 0, .steps = UNSET},
      {2, 2, 1, .urgency = 1, .steps = UNSET},
      {3, 3, 0, .steps = UNSET}},
     4,
     {2, 4, 1, 3}},
    {"a priority beyond the last tier is in the last",
     TD_SCHED_PRIORITY_TIERED,
     {{0, 0, 99, .steps = UNSET},
      {1, 1, 2, .steps = UNSET},
      {2, 2, 1, .steps = UNSET}},
     4,
     {3, 1, 2}},
    {"in turn is by arrival, whosever they are",
     TD_SCHED_PRIORITY_TIERED,
     {{0, 0, ANY}, {0, 0, ANY}, {1, 0, ANY}},
     0,
     {1, 2, 3}},
    {"one of each client in turn",
     TD_SCHED_ROUND_ROBIN,
     {{0, 0, ANY}, {0, 0, ANY}, {0, 0, ANY}, {1, 0, ANY}, {2, 0, ANY}},
     0,
     {1, 4, 5, 2, 3}},
    {"urgency does not change a turn",
     TD_SCHED_ROUND_ROBIN,
     {{0, 0, ANY}, {1, 0, ANY, .urgency = 1}, {0, 0, ANY}, {1, 0, ANY}},
     0,
     {1, 2, 3, 4}},
    // The engine takes 10 ms.
    {"among equal claims the earliest deadline goes first",
     TD_SCHED_MODEL_DEADLINE,
     {{0, 0, ANY, .due_ms = 90},
      {1, 0, ANY, .due_ms = 60},
      {2, 0, ANY, .due_ms = 30},
      {3, 0, ANY, .due_ms = 70}},
     20,
     {3, 2, 4, 1}},
    {"what cannot be met falls back, in order of arrival",
     TD_SCHED_MODEL_DEADLINE,
     {{0, 0, ANY, .due_ms = 10},
      {1, 0, ANY, .due_ms = 25},
      {2, 0, ANY, .due_ms = 15},
      {3, 0, ANY, .due_ms = 30}},
     20,
     {4, 1, 2, 3}},
    {"and goes before what has much time",
     TD_SCHED_MODEL_DEADLINE,
     {{0, 0, ANY, .due_ms = 300}, {1, 0, ANY, .due_ms = 10}},
     20,
     {2, 1}},
    {"an emergency that cannot be met falls back by nothing",
     TD_SCHED_MODEL_DEADLINE,
     {{0, 0, ANY, .due_ms = 30}, {1, 0, ANY, .due_ms = 10, .urgency = 1}},
     20,
     {2, 1}},
    {"urgency is worth time",
     TD_SCHED_MODEL_DEADLINE,
     {{0, 0, ANY, .due_ms = 110},
      {1, 0, ANY, .due_ms = 190, .urgency = 1},
      {2, 0, ANY, .due_ms = 200, .urgency = 1}},
     20,
     {2, 1, 3}},
    {"a deadline is worth what an age is",
     TD_SCHED_MODEL_DEADLINE,
     {{0, 0, ANY}, {1, 0, ANY, .due_ms = 55}, {2, 0, ANY, .due_ms = 65}},
     20,
     {2, 1, 3}},
    {"models take turns",
     TD_SCHED_MODEL_DEADLINE,
     {{0, 0, ANY, .urgency = 1},
      {1, 0, ANY, .urgency = 1},
      {2, 0, ANY, .model = 1},
      {3, 0, ANY, .model = 1}},
     0,
     {1, 3, 2, 4}},
    {"over all models the score decides",
     TD_SCHED_DEADLINE_AWARE,
     {{0, 0, ANY, .urgency = 0.5F},
      {1, 0, ANY, .urgency = 1},
      {2, 0, ANY, .urgency = 0.7F, .model = 1},
      {3, 0, ANY, .urgency = 0.2F, .model = 1}},
     0,
     {2, 3, 1, 4}},
};

static uint32_t submit_arrival(td_sched *sched, const arrival *a, uint64_t seq,
                               uint32_t *members)
{
    uint32_t *member = &members[a->client];
    if (*member == UINT32_MAX) *member = join(sched, a->client, a->model, true);
    td_sched_item item = item_of(*member, seq);
    item.priority = a->priority;
    item.urgency = a->urgency;
    item.steps = a->steps;
    if (a->expected_ms) item.expected_ns = a->expected_ms * MS;
    if (a->due_ms) item.due_ns = a->due_ms * MS;
    (void)submit(sched, a->at_ms * MS, &item);
    return *member;
}

static void run_case(const struct order_case *c)
{
    td_sched_settings settings = settings_of(c->strategy);
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    for (uint32_t model = 0; model < 2; model++)
        td_sched_measured(sched, 0, model, 1, 10 * MS);
    uint32_t members[8];
    memset(members, 0xff, sizeof members);
    uint32_t count = 0;
    for (; count < TD_COUNT_OF(c->in) &&
           (c->in[count].priority || c->in[count].steps);
         count++)
        (void)submit_arrival(sched, &c->in[count], count + 1, members);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t seq = run_one(sched, c->now_ms * MS, ALL);
        if (seq != c->out[i])
            fail_msg("%s: number %u is %u, not %u", c->name, i + 1,
                     (unsigned)seq, (unsigned)c->out[i]);
    }
    assert_int_equal(count_of(sched, TD_SCHED_ANSWERED), count);
}

static void each_strategy_keeps_its_published_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++)
        run_case(&cases[i]);
}

static void batches_flush_at_eight_or_after_ten_ms(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_BATCH_OPTIMIZED);
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    uint32_t member = join(sched, 0, 0, true);
    td_sched_pick picks[64];
    for (uint64_t seq = 1; seq <= 7; seq++)
        (void)submit_seq(sched, 5 * MS, member, seq);
    assert_int_equal(td_sched_next(sched, 14 * MS, ALL, 64, picks), 0);
    assert_int_equal(td_sched_wake_ns(sched), 15 * MS);
    (void)submit_seq(sched, 14 * MS, member, 8);
    assert_int_equal(td_sched_next(sched, 14 * MS, ALL, 64, picks), 8);
    for (uint64_t i = 0; i < 8; i++)
        assert_int_equal(picks[i].request.seq, i + 1);

    (void)submit_seq(sched, 20 * MS, member, 9);
    assert_int_equal(td_sched_next(sched, 30 * MS - 1, ALL, 64, picks), 0);
    assert_int_equal(td_sched_next(sched, 30 * MS, ALL, 64, picks), 1);
}

static void a_model_that_may_not_run_holds_nobody_up(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_MODEL_DEADLINE);
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    (void)submit_seq(sched, 0, join(sched, 0, 0, true), 1);
    (void)submit_seq(sched, 0, join(sched, 1, 1, true), 2);
    assert_int_equal(run_one(sched, 0, 2), 2);
    assert_int_equal(run_one(sched, 0, 2), 0);
    assert_int_equal(run_one(sched, 0, 1), 1);
}

static void a_batch_never_mixes_what_must_not_mix(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_DEADLINE_AWARE);
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    for (uint32_t i = 0; i < 8; i++) {
        td_sched_item item = item_of(join(sched, i, i / 4, true), i + 1);
        item.mix = i % 2;
        (void)submit(sched, 0, &item);
    }
    td_sched_pick picks[64];
    static const uint64_t expected[4][2] = {{1, 3}, {2, 4}, {5, 7}, {6, 8}};
    for (int batch = 0; batch < 4; batch++) {
        assert_int_equal(td_sched_next(sched, 0, ALL, 64, picks), 2);
        for (int i = 0; i < 2; i++)
            assert_int_equal(picks[i].request.seq, expected[batch][i]);
    }
}

static void a_batch_stops_growing_where_its_tightest_would_miss(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_MODEL_DEADLINE);
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    for (uint32_t n = 1; n <= 4; n++)
        td_sched_measured(sched, 0, 0, n, (int64_t)n * 10 * MS);
    for (uint32_t i = 0; i < 4; i++) {
        td_sched_item item = item_of(join(sched, i, 0, false), i + 1);
        item.due_ns = i == 0 ? 25 * MS : 1000 * MS;
        (void)submit(sched, 0, &item);
    }
    td_sched_pick picks[64];
    assert_int_equal(td_sched_next(sched, 0, ALL, 64, picks), 2);
    assert_int_equal(picks[0].request.seq, 1);
    assert_int_equal(td_sched_next(sched, 0, ALL, 64, picks), 2);
}

// Eight members that were answered together, half of whom came again `apart_ns`
// after that in the rounds before, the others at once.
static void answer_in_rounds(td_sched *sched, const uint32_t members[8],
                             int64_t apart_ns, int64_t *now_ns)
{
    td_sched_pick picks[8];
    for (int round = 0; round < 4; round++) {
        for (uint32_t i = 0; i < 8; i++) {
            if (i == 4) *now_ns += apart_ns;
            (void)submit_seq(sched, *now_ns, members[i], i + 1);
        }
        uint32_t count = td_sched_next(sched, *now_ns, ALL, 8, picks);
        assert_int_equal(count, 8);
        *now_ns += 17 * MS;
        for (uint32_t i = 0; i < count; i++)
            (void)td_sched_done(sched, *now_ns, picks[i].ticket,
                                TD_SCHED_ANSWERED);
    }
}

static void who_was_answered_together_is_waited_for_together(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_MODEL_DEADLINE);
    settings.batch = (td_sched_batch_rule){TD_SCHED_WAIT_SLACK, 8, 0};
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    for (uint32_t n = 1; n <= 8; n++)
        td_sched_measured(sched, 0, 0, n, (9 + n) * MS);
    uint32_t members[8];
    for (uint32_t i = 0; i < 8; i++)
        members[i] = join(sched, i, 0, false);
    int64_t now_ns = 100 * MS;
    answer_in_rounds(sched, members, MS, &now_ns);
    td_sched_pick picks[8];
    for (uint32_t i = 0; i < 4; i++)
        (void)submit_seq(sched, now_ns, members[i], 1);
    assert_int_equal(td_sched_next(sched, now_ns, ALL, 8, picks), 0);
    assert_in_range(td_sched_wake_ns(sched), now_ns + MS, now_ns + 2 * MS);
    // They do not come: those who are here go without them.
    assert_int_equal(td_sched_next(sched, now_ns + 3 * MS, ALL, 8, picks), 4);
}

static void a_batch_waits_for_one_who_is_expected_in_time(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_MODEL_DEADLINE);
    settings.batch = (td_sched_batch_rule){TD_SCHED_WAIT_SLACK, 8, 0};
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    td_sched_measured(sched, 0, 0, 1, 10 * MS);
    td_sched_measured(sched, 0, 0, 2, 11 * MS);
    uint32_t first = join(sched, 0, 0, false),
             second = join(sched, 1, 0, false);
    td_sched_item item = item_of(second, 1);
    item.expected_ns = 103 * MS;
    td_sched_pick picks[64];
    (void)submit(sched, 0, &item);
    assert_int_equal(td_sched_next(sched, 0, ALL, 64, picks), 1);
    (void)td_sched_done(sched, 10 * MS, picks[0].ticket, TD_SCHED_ANSWERED);

    (void)submit_seq(sched, 100 * MS, first, 2);
    assert_int_equal(td_sched_next(sched, 100 * MS, ALL, 64, picks), 0);
    assert_int_equal(td_sched_wake_ns(sched), 103 * MS);
    (void)submit_seq(sched, 102 * MS, second, 3);
    assert_int_equal(td_sched_next(sched, 102 * MS, ALL, 64, picks), 2);
}

static double calm_first(void *user, const td_score_request *request)
{
    (void)user;
    return -request->urgency;
}

static void a_score_of_ones_own_replaces_the_published(void **state)
{
    (void)state;
    static const char text[] = "(urgency > 0.9) * 1000 + priority * 10";
    td_sched_settings settings = settings_of(TD_SCHED_MODEL_DEADLINE);
    assert_int_equal(td_sched_expr_compile(text, strlen(text),
                                           td_sched_strategy_fields,
                                           &settings.policy.expr, NULL),
                     TD_OK);
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    uint32_t member = join(sched, 0, 0, true);
    td_sched_item item = item_of(member, 1);
    (void)submit(sched, 0, &item);
    item = item_of(member, 2);
    item.priority = 7;
    (void)submit(sched, 0, &item);
    item = item_of(member, 3);
    item.urgency = 0.95F;
    (void)submit(sched, 0, &item);
    assert_int_equal(run_one(sched, 0, ALL), 3);
    assert_int_equal(run_one(sched, 0, ALL), 2);

    td_sched_policy policy = settings.policy;
    policy.score = calm_first;
    item = item_of(member, 4);
    item.urgency = 0.95F;
    (void)submit(sched, 0, &item);
    assert_int_equal(td_sched_use(sched, 0, &policy), TD_OK);
    assert_int_equal(run_one(sched, 0, ALL), 1);
    assert_int_equal(run_one(sched, 0, ALL), 4);
}

static void a_client_cannot_take_over_by_shouting(void **state)
{
    (void)state;
    td_sched_settings settings = settings_of(TD_SCHED_TIERED_DEADLINE);
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    td_sched_member capped = {.queued = true,
                              .best_priority = 1,
                              .most_urgency = 0.5F,
                              .budget_ns = 50 * MS};
    uint32_t loud;
    assert_int_equal(td_sched_join(sched, &capped, &loud), TD_OK);
    uint32_t calm = join(sched, 1, 0, true);
    td_sched_item item = item_of(loud, 1);
    item.priority = 0;
    item.urgency = 100;
    (void)submit(sched, 0, &item);
    item = item_of(calm, 2);
    item.urgency = 0.6F;
    (void)submit(sched, 0, &item);
    assert_int_equal(run_one(sched, 0, ALL), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_strategy_keeps_its_published_order),
        cmocka_unit_test(batches_flush_at_eight_or_after_ten_ms),
        cmocka_unit_test(a_model_that_may_not_run_holds_nobody_up),
        cmocka_unit_test(a_batch_never_mixes_what_must_not_mix),
        cmocka_unit_test(a_batch_stops_growing_where_its_tightest_would_miss),
        cmocka_unit_test(a_batch_waits_for_one_who_is_expected_in_time),
        cmocka_unit_test(who_was_answered_together_is_waited_for_together),
        cmocka_unit_test(a_score_of_ones_own_replaces_the_published),
        cmocka_unit_test(a_client_cannot_take_over_by_shouting),
    };
    return cmocka_run_group_tests_name("sched/sched_order", tests, NULL, NULL);
}

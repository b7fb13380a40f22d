// SPDX-License-Identifier: Apache-2.0
#include "net/inproc/inproc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS TD_NS_PER_MS
#define START_NS (1000 * TD_NS_PER_S)

enum { MAX_SEEN = 16384 };

typedef struct seen {
    int64_t at_ns;
    uint64_t number;
} seen;

// A hub with sessions a and b, a publisher of numbers in a, and a subscriber in
// b that writes down which came when.
struct rig {
    td_clock_virtual clock;
    td_net_hub *hub;
    td_net *a, *b;
    td_net_pub *pub;
    td_net_decl *sub;
    uint64_t sent;
    size_t seen_count;
    seen seen[MAX_SEEN];
};

static void write_down(void *user, const td_net_sample *sample)
{
    struct rig *rig = user;
    seen *at = &rig->seen[rig->seen_count % MAX_SEEN];
    at->at_ns = td_clock_now_ns(&rig->clock.clock);
    memcpy(&at->number, sample->head.data, sizeof at->number);
    rig->seen_count++;
}

static struct rig *rig_alone(uint64_t seed)
{
    struct rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    td_clock_virtual_init(&rig->clock, START_NS);
    assert_int_equal(td_net_hub_new(&rig->clock, seed, &rig->hub), TD_OK);
    return rig;
}

static void rig_join(struct rig *rig, bool reliable,
                     const td_net_faults *faults)
{
    assert_int_equal(td_net_inproc_open(rig->hub, "a", &rig->a, NULL), TD_OK);
    assert_int_equal(td_net_inproc_open(rig->hub, "b", &rig->b, NULL), TD_OK);
    assert_int_equal(td_net_hub_faults(rig->hub, NULL, NULL, faults), TD_OK);
    td_net_qos qos = {.priority = TD_NET_DATA, .reliable = reliable};
    assert_int_equal(td_net_publish(rig->a, "n", &qos, &rig->pub, NULL), TD_OK);
    assert_int_equal(
        td_net_subscribe(rig->b, "n", write_down, rig, &rig->sub, NULL), TD_OK);
}

static struct rig *rig_new(uint64_t seed, bool reliable,
                           const td_net_faults *faults)
{
    struct rig *rig = rig_alone(seed);
    rig_join(rig, reliable, faults);
    return rig;
}

static void rig_free(struct rig *rig)
{
    td_net_unpublish(rig->pub);
    if (rig->sub) assert_int_equal(td_net_undeclare(rig->sub), TD_OK);
    td_net_close(rig->b);
    td_net_close(rig->a);
    td_net_hub_free(rig->hub);
    free(rig);
}

static void put(struct rig *rig)
{
    td_slice part = {&rig->sent, sizeof rig->sent};
    assert_int_equal(td_net_put(rig->pub, &part, 1, NULL, NULL), TD_OK);
    rig->sent++;
}

static void run_for(struct rig *rig, int64_t ns)
{
    td_net_hub_run_until(rig->hub, td_clock_now_ns(&rig->clock.clock) + ns);
}

static void put_each_ms(struct rig *rig, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put(rig);
        run_for(rig, MS);
    }
    run_for(rig, TD_NS_PER_S);
}

static td_net_hub_stats stats_of(const struct rig *rig)
{
    td_net_hub_stats stats;
    td_net_hub_stats_get(rig->hub, &stats);
    assert_int_equal(stats.put + stats.duplicated,
                     stats.delivered + stats.lost + stats.cut + stats.waiting);
    return stats;
}

static const td_net_faults rough = {.delay_ns = 2 * MS,
                                    .jitter_ns = 5 * MS,
                                    .loss = 0.5,
                                    .duplicate = 0.2,
                                    .reorder = 0.3};

static struct rig *rough_run(uint64_t seed)
{
    struct rig *rig = rig_new(seed, false, &rough);
    put_each_ms(rig, 1000);
    assert_in_range(rig->seen_count, 1, MAX_SEEN);
    return rig;
}

static bool same_run(const struct rig *one, const struct rig *other)
{
    return one->seen_count == other->seen_count &&
           memcmp(one->seen, other->seen,
                  one->seen_count * sizeof one->seen[0]) == 0;
}

static void same_seed_gives_the_same_deliveries(void **state)
{
    (void)state;
    struct rig *one = rough_run(7);
    struct rig *again = rough_run(7);
    struct rig *other = rough_run(8);
    assert_true(same_run(one, again));
    assert_false(same_run(one, other));
    rig_free(other);
    rig_free(again);
    rig_free(one);
}

static void ignore(void *user, const td_net_sample *sample)
{
    (void)user;
    (void)sample;
}

// The third session is there first, listens, and stops with messages still on
// their way to it.
static void one_session_more_changes_nothing_for_the_others(void **state)
{
    (void)state;
    struct rig *alone = rough_run(7);
    struct rig *crowded = rig_alone(7);
    td_net *c = NULL;
    td_net_decl *sub = NULL;
    assert_int_equal(td_net_inproc_open(crowded->hub, "c", &c, NULL), TD_OK);
    assert_int_equal(td_net_subscribe(c, "**", ignore, NULL, &sub, NULL),
                     TD_OK);
    rig_join(crowded, false, &rough);
    for (int i = 0; i < 500; i++) {
        put(crowded);
        run_for(crowded, MS);
    }
    assert_int_equal(td_net_undeclare(sub), TD_OK);
    put_each_ms(crowded, 500);
    assert_true(same_run(alone, crowded));
    td_net_close(c);
    rig_free(crowded);
    rig_free(alone);
}

static void session_reaches_itself_whatever_the_faults(void **state)
{
    (void)state;
    struct rig *rig =
        rig_new(1, false, &(td_net_faults){.delay_ns = MS, .loss = 1});
    td_net_decl *own = NULL;
    assert_int_equal(td_net_subscribe(rig->a, "n", write_down, rig, &own, NULL),
                     TD_OK);
    put(rig);
    run_for(rig, 0);
    assert_int_equal(rig->seen_count, 1);
    assert_int_equal(stats_of(rig).lost, 1);
    assert_int_equal(td_net_undeclare(own), TD_OK);
    rig_free(rig);
}

static void loss_and_doubling_keep_to_their_rates(void **state)
{
    (void)state;
    struct rig *rig =
        rig_new(3, false, &(td_net_faults){.loss = 0.3, .duplicate = 0.1});
    put_each_ms(rig, 10000);
    td_net_hub_stats stats = stats_of(rig);
    assert_int_equal(stats.put, 10000);
    assert_in_range(stats.lost, 2800, 3200);
    assert_int_equal(td_net_counts_get(rig->a).drops, stats.lost);
    assert_int_equal(td_net_counts_get(rig->b).drops, 0);
    assert_in_range(stats.duplicated, 600, 800);
    assert_int_equal(stats.delivered, rig->seen_count);
    rig_free(rig);
}

static void every_copy_is_accounted_for(void **state)
{
    (void)state;
    struct rig *rig = rig_new(5, false, &rough);
    for (int i = 0; i < 500; i++) {
        put(rig);
        assert_true(stats_of(rig).put == rig->sent);
        if (i % 100 == 50 || i % 100 == 70)
            assert_int_equal(
                td_net_hub_partition(rig->hub, "a", "b", i % 100 == 50), TD_OK);
        stats_of(rig);
        run_for(rig, MS);
        stats_of(rig);
    }
    assert_true(stats_of(rig).waiting > 0);
    assert_int_equal(td_net_undeclare(TD_TAKE(rig->sub)), TD_OK);
    assert_int_equal(stats_of(rig).waiting, 0);
    assert_int_equal(stats_of(rig).delivered, rig->seen_count);
    rig_free(rig);
}

static void reliable_is_never_lost_doubled_or_reordered(void **state)
{
    (void)state;
    struct rig *rig = rig_new(9, true, &rough);
    put_each_ms(rig, 2000);
    assert_int_equal(rig->seen_count, 2000);
    for (size_t i = 0; i < 2000; i++)
        assert_int_equal(rig->seen[i].number, i);
    assert_int_equal(stats_of(rig).lost + stats_of(rig).duplicated, 0);
    rig_free(rig);
}

static const struct {
    const char *name;
    td_net_faults faults;
    bool reordered;
} orders[] = {
    {"nothing asked for", {.delay_ns = 10 * MS}, false},
    {"reorder, no jitter", {.delay_ns = 10 * MS, .reorder = 0.3}, true},
    {"jitter within the gap", {.jitter_ns = MS / 2}, false},
    {"reorder with jitter", {.jitter_ns = 4 * MS, .reorder = 0.3}, true},
};

static void best_effort_is_reordered_when_asked_for(void **state)
{
    (void)state;
    for (size_t row = 0; row < TD_COUNT_OF(orders); row++) {
        struct rig *rig = rig_new(2, false, &orders[row].faults);
        for (int i = 0; i < 200; i++) {
            put(rig);
            run_for(rig, MS * 2 / 3);
        }
        run_for(rig, TD_NS_PER_S);
        assert_int_equal(rig->seen_count, 200);
        size_t swaps = 0;
        for (size_t i = 1; i < 200; i++)
            swaps += rig->seen[i].number < rig->seen[i - 1].number;
        if ((swaps > 0) != orders[row].reordered)
            fail_msg("%s: %zu out of order", orders[row].name, swaps);
        rig_free(rig);
    }
}

static int64_t trip_ns(struct rig *rig)
{
    int64_t sent_ns = td_clock_now_ns(&rig->clock.clock);
    put(rig);
    int64_t due_ns = 0;
    assert_true(td_net_hub_next_due(rig->hub, &due_ns));
    run_for(rig, TD_NS_PER_S);
    assert_int_equal(rig->seen[rig->seen_count - 1].at_ns, due_ns);
    assert_int_equal(td_clock_now_ns(&rig->clock.clock), sent_ns + TD_NS_PER_S);
    return due_ns - sent_ns;
}

static void later_faults_win(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        int64_t delay_ns, expected_ns;
    } steps[] = {
        {NULL, NULL, 2 * MS, 2 * MS}, {"b", "a", 9 * MS, 2 * MS},
        {"a", NULL, 3 * MS, 3 * MS},  {"a", "b", 4 * MS, 4 * MS},
        {NULL, "b", 5 * MS, 5 * MS},  {"a", NULL, 6 * MS, 6 * MS},
        {"c", NULL, 7 * MS, 6 * MS},
    };
    struct rig *rig = rig_new(1, true, &(td_net_faults){.delay_ns = MS});
    assert_int_equal(trip_ns(rig), MS);
    for (size_t i = 0; i < TD_COUNT_OF(steps); i++) {
        td_net_faults faults = {.delay_ns = steps[i].delay_ns};
        assert_int_equal(
            td_net_hub_faults(rig->hub, steps[i].from, steps[i].to, &faults),
            TD_OK);
        assert_int_equal(trip_ns(rig), steps[i].expected_ns);
    }
    rig_free(rig);
}

static void partition_loses_what_is_on_the_way_and_heals(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1, true, &(td_net_faults){.delay_ns = 5 * MS});
    bool matched = false;
    put(rig);
    assert_int_equal(td_net_hub_partition(rig->hub, "a", "b", true), TD_OK);
    put(rig);
    run_for(rig, TD_NS_PER_S);
    assert_int_equal(rig->seen_count, 0);
    assert_int_equal(stats_of(rig).cut, 2);
    assert_int_equal(td_net_matched(rig->pub, &matched), TD_OK);
    assert_false(matched);

    assert_int_equal(td_net_hub_partition(rig->hub, "b", "a", false), TD_OK);
    assert_int_equal(td_net_matched(rig->pub, &matched), TD_OK);
    assert_true(matched);
    put(rig);
    run_for(rig, TD_NS_PER_S);
    assert_int_equal(rig->seen_count, 1);
    assert_int_equal(rig->seen[0].number, 2);
    rig_free(rig);
}

static const struct {
    const char *name;
    td_net_faults faults;
} impossible[] = {
    {"negative delay", {.delay_ns = -1}},
    {"negative jitter", {.jitter_ns = -1}},
    {"loss below 0", {.loss = -0.1}},
    {"duplicate above 1", {.duplicate = 1.1}},
    {"reorder not a number", {.reorder = __builtin_nan("")}},
};

static void impossible_settings_are_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1, true, &(td_net_faults){0});
    for (size_t i = 0; i < TD_COUNT_OF(impossible); i++)
        if (td_net_hub_faults(rig->hub, NULL, NULL, &impossible[i].faults) !=
            TD_ERR_INVALID)
            fail_msg("%s is taken", impossible[i].name);
    assert_int_equal(td_net_hub_partition(rig->hub, "a", "nobody", true),
                     TD_ERR_NOTFOUND);
    assert_int_equal(td_net_hub_partition(rig->hub, "a", "a", true),
                     TD_ERR_INVALID);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_gives_the_same_deliveries),
        cmocka_unit_test(one_session_more_changes_nothing_for_the_others),
        cmocka_unit_test(session_reaches_itself_whatever_the_faults),
        cmocka_unit_test(loss_and_doubling_keep_to_their_rates),
        cmocka_unit_test(every_copy_is_accounted_for),
        cmocka_unit_test(reliable_is_never_lost_doubled_or_reordered),
        cmocka_unit_test(best_effort_is_reordered_when_asked_for),
        cmocka_unit_test(later_faults_win),
        cmocka_unit_test(partition_loses_what_is_on_the_way_and_heals),
        cmocka_unit_test(impossible_settings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

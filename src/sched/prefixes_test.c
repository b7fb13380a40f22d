// SPDX-License-Identifier: Apache-2.0
#include "sched/prefixes.h"

#include "base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define MEMBERS 8
#define MOST_BYTES 1000
#define AGE_NS 100

static char handles[4096];

static td_sched_prefixes *prefixes_new(void)
{
    td_sched_prefixes *prefixes = NULL;
    assert_int_equal(
        td_sched_prefixes_new(MEMBERS, MOST_BYTES, AGE_NS, &prefixes), TD_OK);
    return prefixes;
}

static const td_sched_prefix_ident first = {
    .version = 1, .boot = 2, .episode = 3, .seq = 4};

static void keep(td_sched_prefixes *prefixes, uint32_t member, int64_t now_ns,
                 uint64_t bytes)
{
    void *replaced;
    assert_int_equal(td_sched_prefixes_keep(prefixes, member, now_ns, &first,
                                            &handles[member], bytes, &replaced),
                     TD_OK);
    assert_null(replaced);
}

static void only_the_very_observation_is_served(void **state)
{
    (void)state;
    TD_AUTO(td_sched_prefixes) *prefixes = prefixes_new();
    keep(prefixes, 0, 0, 10);
    static const struct {
        const char *name;
        td_sched_prefix_ident ident;
        bool served;
    } cases[] = {
        {"the same", {1, 2, 3, 4}, true},
        {"another version", {9, 2, 3, 4}, false},
        {"another boot", {1, 9, 3, 4}, false},
        {"another episode", {1, 2, 9, 4}, false},
        {"another seq", {1, 2, 3, 9}, false},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        void *handle = td_sched_prefixes_use(prefixes, 0, &cases[i].ident);
        if ((handle == &handles[0]) != cases[i].served)
            fail_msg("%s", cases[i].name);
        if (handle) assert_null(td_sched_prefixes_release(prefixes, 0, 0));
    }
    assert_null(td_sched_prefixes_use(prefixes, 1, &first));
}

static void room_is_made_by_age_then_by_need(void **state)
{
    (void)state;
    TD_AUTO(td_sched_prefixes) *prefixes = prefixes_new();
    keep(prefixes, 0, 0, 100);
    keep(prefixes, 1, 50, 400);
    keep(prefixes, 2, 60, 400);
    assert_null(td_sched_prefixes_evict(prefixes, 90, 100)); // it fits
    // 0 is too old, whatever is needed; then 1 was used longest ago.
    assert_ptr_equal(td_sched_prefixes_evict(prefixes, 100, 500), &handles[0]);
    assert_ptr_equal(td_sched_prefixes_evict(prefixes, 100, 500), &handles[1]);
    assert_null(td_sched_prefixes_evict(prefixes, 100, 500));
    td_sched_prefixes_counts counts;
    td_sched_prefixes_count(prefixes, &counts);
    assert_int_equal(counts.ends[TD_SCHED_PREFIX_AGED], 1);
    assert_int_equal(counts.ends[TD_SCHED_PREFIX_EVICTED], 1);
    assert_int_equal(counts.bytes, 400);
}

static void using_one_makes_it_young_again(void **state)
{
    (void)state;
    TD_AUTO(td_sched_prefixes) *prefixes = prefixes_new();
    keep(prefixes, 0, 0, 500);
    keep(prefixes, 1, 10, 500);
    assert_non_null(td_sched_prefixes_use(prefixes, 0, &first));
    assert_null(td_sched_prefixes_release(prefixes, 0, 20));
    assert_ptr_equal(td_sched_prefixes_evict(prefixes, 30, 100), &handles[1]);
}

static void what_is_in_use_is_neither_evicted_nor_freed_by_a_reset(void **state)
{
    (void)state;
    TD_AUTO(td_sched_prefixes) *prefixes = prefixes_new();
    keep(prefixes, 0, 0, 900);
    assert_non_null(td_sched_prefixes_use(prefixes, 0, &first));
    assert_null(td_sched_prefixes_evict(prefixes, 1000, 900));
    assert_null(td_sched_prefixes_reset(prefixes, 0));
    assert_null(td_sched_prefixes_use(prefixes, 0, &first));
    void *replaced;
    assert_int_equal(td_sched_prefixes_keep(prefixes, 0, 0, &first, &handles[1],
                                            200, &replaced),
                     TD_ERR_LIMIT); // its bytes are still there
    keep(prefixes, 0, 0, 100);
    assert_ptr_equal(td_sched_prefixes_release(prefixes, 0, 1), &handles[0]);
    td_sched_prefixes_counts counts;
    td_sched_prefixes_count(prefixes, &counts);
    assert_int_equal(counts.bytes, 100);
}

static void a_newer_one_takes_the_place_of_the_older(void **state)
{
    (void)state;
    TD_AUTO(td_sched_prefixes) *prefixes = prefixes_new();
    keep(prefixes, 0, 0, 800);
    td_sched_prefix_ident second = first;
    second.seq++;
    void *replaced;
    assert_int_equal(td_sched_prefixes_keep(prefixes, 0, 0, &second,
                                            &handles[100], 800, &replaced),
                     TD_OK); // the older one's bytes are free for it
    assert_ptr_equal(replaced, &handles[0]);
    assert_null(td_sched_prefixes_use(prefixes, 0, &first));
    assert_ptr_equal(td_sched_prefixes_use(prefixes, 0, &second),
                     &handles[100]);
}

static void one_larger_than_everything_evicts_nothing(void **state)
{
    (void)state;
    TD_AUTO(td_sched_prefixes) *prefixes = prefixes_new();
    keep(prefixes, 0, 0, 10);
    assert_null(td_sched_prefixes_evict(prefixes, 1, MOST_BYTES + 1));
    void *replaced;
    assert_int_equal(td_sched_prefixes_keep(prefixes, 1, 1, &first, &handles[1],
                                            MOST_BYTES + 1, &replaced),
                     TD_ERR_LIMIT);
}

// What a test at random holds against the book.
typedef struct world {
    td_sched_prefixes *prefixes;
    bool out[sizeof handles]; // handles that came back
    uint64_t bytes[sizeof handles];
    uint32_t next;
    uint64_t held_bytes;
    bool in_use[MEMBERS];
    int64_t now_ns;
} world;

static void came_back(world *w, void *handle)
{
    if (!handle) return;
    size_t number = (size_t)((char *)handle - handles);
    assert_true(number < w->next);
    assert_false(w->out[number]); // once
    w->out[number] = true;
    w->held_bytes -= w->bytes[number];
}

static void keep_any(world *w, uint32_t member, uint64_t bytes)
{
    for (void *gone;
         (gone = td_sched_prefixes_evict(w->prefixes, w->now_ns, bytes));)
        came_back(w, gone);
    void *replaced;
    if (td_sched_prefixes_keep(w->prefixes, member, w->now_ns, &first,
                               &handles[w->next], bytes, &replaced) != TD_OK)
        return;
    w->bytes[w->next++] = bytes;
    w->held_bytes += bytes;
    came_back(w, replaced);
}

static void step(world *w, td_rand *rand)
{
    uint32_t member = (uint32_t)(td_rand_u64(rand) % MEMBERS);
    w->now_ns += (int64_t)(td_rand_u64(rand) % 20);
    switch (td_rand_u64(rand) % 4) {
    case 0:
        keep_any(w, member, 1 + td_rand_u64(rand) % 400);
        break;
    case 1:
        if (td_sched_prefixes_use(w->prefixes, member, &first))
            w->in_use[member] = true;
        break;
    case 2:
        if (!w->in_use[member]) break;
        w->in_use[member] = false;
        came_back(w, td_sched_prefixes_release(w->prefixes, member, w->now_ns));
        break;
    default:
        came_back(w, td_sched_prefixes_reset(w->prefixes, member));
    }
}

static void every_handle_comes_back_once_and_bytes_stay_bounded(void **state)
{
    (void)state;
    static world w;
    w = (world){.prefixes = prefixes_new()};
    td_rand rand;
    td_rand_init(&rand, 7);
    while (w.next < sizeof handles) {
        step(&w, &rand);
        td_sched_prefixes_counts counts;
        td_sched_prefixes_count(w.prefixes, &counts);
        assert_int_equal(counts.bytes, w.held_bytes);
        assert_true(counts.bytes <= MOST_BYTES);
        uint64_t ended = 0;
        for (int i = 0; i < TD_SCHED_PREFIX_END_COUNT; i++)
            ended += counts.ends[i];
        assert_int_equal(counts.kept, counts.present + ended);
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
        came_back(&w, td_sched_prefixes_reset(w.prefixes, i));
        if (w.in_use[i])
            came_back(&w, td_sched_prefixes_release(w.prefixes, i, w.now_ns));
    }
    for (uint32_t i = 0; i < w.next; i++)
        assert_true(w.out[i]);
    td_sched_prefixes_free(w.prefixes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_very_observation_is_served),
        cmocka_unit_test(room_is_made_by_age_then_by_need),
        cmocka_unit_test(using_one_makes_it_young_again),
        cmocka_unit_test(
            what_is_in_use_is_neither_evicted_nor_freed_by_a_reset),
        cmocka_unit_test(a_newer_one_takes_the_place_of_the_older),
        cmocka_unit_test(one_larger_than_everything_evicts_nothing),
        cmocka_unit_test(every_handle_comes_back_once_and_bytes_stay_bounded),
    };
    return cmocka_run_group_tests_name("sched/prefixes", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "edge/pacing/ask.h"

#include "base/clock.h"
#include "base/rand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { CHUNK = 50 };

static const int64_t period_ns = 20 * TD_NS_PER_MS;

static td_edge_ask_settings usual_settings(void)
{
    return (td_edge_ask_settings){
        .mode = TD_EDGE_ASK_THRESHOLD,
        .threshold = 0.5,
        .starve_target = 0.001,
        .max_unanswered = 1,
        .resend_min_ns = 100 * TD_NS_PER_MS,
        .resend_max_ns = 1000 * TD_NS_PER_MS,
        .period_ns = period_ns,
    };
}

typedef struct fixture {
    td_edge_ask ask;
    td_edge_ask_advice advice;
    td_edge_ask_input seen;
} fixture;

static fixture fixture_of(uint32_t max_unanswered)
{
    fixture f = {
        .advice = {.below_rows = 25,
                   .most = max_unanswered,
                   .resend_after_ns = 300 * TD_NS_PER_MS},
        .seen = {.connection = 1, .left = 25},
    };
    td_edge_ask_settings settings = usual_settings();
    settings.max_unanswered = max_unanswered;
    assert_int_equal(td_edge_ask_init(&f.ask, &settings, 0), TD_OK);
    return f;
}

static td_edge_ask_decision decide_at(fixture *f, int64_t ms)
{
    f->seen.now_ns = ms * TD_NS_PER_MS;
    return td_edge_ask_decide(&f->ask, &f->seen, &f->advice);
}

static void asks_when_no_more_rows_are_left(void **state)
{
    (void)state;
    fixture f = fixture_of(1);
    f.seen.left = 26;
    assert_false(decide_at(&f, 0).ask);
    f.seen.left = 25;
    td_edge_ask_decision decision = decide_at(&f, 20);
    assert_true(decision.ask);
    assert_int_equal(decision.seq, 1);
    assert_false(decision.must_go);
    assert_false(decision.resend);
}

static void empty_buffer_must_go(void **state)
{
    (void)state;
    fixture f = fixture_of(1);
    f.seen.left = 0;
    assert_true(decide_at(&f, 0).must_go);
}

static void nobody_is_asked_without_a_server(void **state)
{
    (void)state;
    fixture f = fixture_of(1);
    f.seen.connection = 0;
    f.seen.left = 0;
    for (int ms = 0; ms < 5000; ms += 20)
        assert_false(decide_at(&f, ms).ask);
}

static void one_at_a_time_until_it_ends(void **state)
{
    (void)state;
    fixture f = fixture_of(1);
    assert_true(decide_at(&f, 0).ask);
    assert_false(decide_at(&f, 20).ask);
    f.seen.ended_seq = 1;
    td_edge_ask_decision decision = decide_at(&f, 40);
    assert_true(decision.ask);
    assert_int_equal(decision.seq, 2);
    assert_false(decision.resend);
}

static void newest_is_sent_in_place_of_one_given_up(void **state)
{
    (void)state;
    fixture f = fixture_of(1);
    assert_true(decide_at(&f, 0).ask);
    assert_false(decide_at(&f, 299).ask);
    td_edge_ask_decision decision = decide_at(&f, 300);
    assert_true(decision.ask);
    assert_true(decision.resend);
    assert_int_equal(decision.seq, 2);
    f.seen.ended_seq = 1; // late, but it came: 2 is still unanswered
    assert_false(decide_at(&f, 320).ask);
    f.seen.ended_seq = 2;
    assert_false(decide_at(&f, 340).resend);
}

static fixture fixture_that_asks_again(void)
{
    fixture f = fixture_of(1);
    f.ask.settings.again = true;
    assert_int_equal(decide_at(&f, 0).again, 0);
    return f;
}

static void a_missed_answer_is_asked_for_once_more(void **state)
{
    (void)state;
    fixture f = fixture_that_asks_again();
    assert_false(decide_at(&f, 299).ask);
    td_edge_ask_decision decision = decide_at(&f, 300);
    assert_true(decision.ask && decision.resend);
    assert_int_equal(decision.seq, 2);
    assert_int_equal(decision.again, 1);
    assert_false(decide_at(&f, 599).ask);
    decision = decide_at(&f, 600); // that stays away, too
    assert_true(decision.ask && decision.resend);
    assert_int_equal(decision.seq, 3);
    assert_int_equal(decision.again, 0);
    assert_int_equal(decide_at(&f, 900).again, 3); // of the new observation
}

static void an_answer_that_came_again_ends_the_asking(void **state)
{
    (void)state;
    fixture f = fixture_that_asks_again();
    assert_int_equal(decide_at(&f, 300).again, 1);
    f.seen.ended_seq = 2; // with the one that asked for it
    td_edge_ask_decision decision = decide_at(&f, 320);
    assert_true(decision.ask);
    assert_false(decision.resend);
    assert_int_equal(decision.again, 0);
}

static void
after_asking_again_without_an_answer_it_observes_in_the_next_step(void **state)
{
    (void)state;
    fixture f = fixture_that_asks_again();
    assert_int_equal(decide_at(&f, 300).again, 1);
    f.seen.skipped_seq = 2;
    td_edge_ask_decision decision = decide_at(&f, 320);
    assert_true(decision.ask && decision.resend);
    assert_int_equal(decision.seq, 3);
    assert_int_equal(decision.again, 0);
}

static void who_has_nothing_left_observes(void **state)
{
    (void)state;
    fixture f = fixture_that_asks_again();
    f.seen.left = 0;
    td_edge_ask_decision decision = decide_at(&f, 300);
    assert_true(decision.ask && decision.resend && decision.must_go);
    assert_int_equal(decision.again, 0);
}

static void only_the_newest_is_asked_for_again(void **state)
{
    (void)state;
    fixture f = fixture_of(2);
    f.ask.settings.again = true;
    assert_int_equal(decide_at(&f, 0).seq, 1);
    assert_int_equal(decide_at(&f, 200).seq, 2);
    td_edge_ask_decision decision = decide_at(&f, 300); // 2 is still on its way
    assert_true(decision.ask && decision.resend);
    assert_int_equal(decision.again, 0);
}

static void given_up_is_not_sent_again_while_rows_are_enough(void **state)
{
    (void)state;
    fixture f = fixture_of(1);
    assert_true(decide_at(&f, 0).ask);
    f.seen.left = 40;
    assert_false(decide_at(&f, 2000).ask);
}

static void skipped_is_asked_for_again_in_the_next_step(void **state)
{
    (void)state;
    fixture f = fixture_of(1);
    assert_true(decide_at(&f, 0).ask);
    f.seen.skipped_seq = 1;
    assert_false(decide_at(&f, 1).ask); // a tick between two steps
    td_edge_ask_decision decision = decide_at(&f, 20);
    assert_true(decision.ask);
    assert_int_equal(decision.seq, 2);
    assert_false(decision.resend);
    assert_false(decide_at(&f, 40).ask);
}

static void skipped_does_not_end_an_older_one(void **state)
{
    (void)state;
    fixture f = fixture_of(2);
    assert_true(decide_at(&f, 0).ask);
    for (uint64_t seq = 2; seq < 6; seq++) {
        assert_int_equal(decide_at(&f, (int64_t)seq * 20).seq, seq);
        f.seen.skipped_seq = seq;
    }
    assert_true(decide_at(&f, 120).ask); // with the first there are two
    assert_false(decide_at(&f, 140).ask);
    f.seen.ended_seq = 1;
    assert_true(decide_at(&f, 160).ask);
    assert_false(decide_at(&f, 180).ask);
}

static void skipped_for_long_does_not_forget_an_older_one(void **state)
{
    (void)state;
    fixture f = fixture_of(2);
    uint64_t asked = 0;
    f.advice.resend_after_ns = INT64_MAX;
    assert_true(decide_at(&f, 0).ask);
    for (int ms = 20; ms < 5000; ms += 20)
        if (decide_at(&f, ms).ask) f.seen.skipped_seq = asked = f.ask.asked;
    assert_int_equal(asked, TD_EDGE_ASK_MAX_UNANSWERED);
    f.seen.ended_seq = 1;
    assert_true(decide_at(&f, 5000).ask);
}

static void new_connection_forgets_what_was_asked(void **state)
{
    (void)state;
    fixture f = fixture_of(1);
    assert_true(decide_at(&f, 0).ask);
    f.seen.refusals = 5; // of the server before
    assert_false(decide_at(&f, 20).ask);
    f.seen.connection = 2;
    td_edge_ask_decision decision = decide_at(&f, 40);
    assert_true(decision.ask);
    assert_false(decision.resend);
    assert_int_equal(decision.seq, 2);
    f.seen.refusals = 0;
    f.seen.connection = 0;
    assert_false(decide_at(&f, 60).ask);
    f.seen.connection = 3;
    assert_true(decide_at(&f, 80).ask);
}

static void several_go_at_every_step(void **state)
{
    (void)state;
    fixture f = fixture_of(4);
    for (int64_t i = 0; i < 10; i++)
        assert_int_equal(decide_at(&f, 20 * i).ask, i < 4);
    f.seen.ended_seq = 2;
    for (int64_t i = 10; i < 20; i++) // until 1 to 4 would be given up
        assert_int_equal(decide_at(&f, 100 + 10 * i).ask, i < 12);
}

static void several_are_kept_apart(void **state)
{
    (void)state;
    fixture f = fixture_of(4);
    f.advice.apart_ns = 60 * TD_NS_PER_MS;
    assert_true(decide_at(&f, 0).ask);
    assert_false(decide_at(&f, 20).ask);
    assert_false(decide_at(&f, 40).ask);
    assert_true(decide_at(&f, 59).ask); // the tick came a little early
    f.seen.ended_seq = 2;
    assert_true(decide_at(&f, 79).ask);
}

// 100 ms, then twice as much each time, up to a second.
static void refusing_server_is_asked_less_and_less(void **state)
{
    (void)state;
    static const int64_t wanted_ms[] = {0, 100, 300, 700, 1500, 2500, 3500};
    fixture f = fixture_of(1);
    f.seen.left = 0;
    size_t asked = 0;
    for (int64_t ms = 0; ms <= 3500; ms += 20) {
        td_edge_ask_decision decision = decide_at(&f, ms);
        if (!decision.ask) continue;
        assert_true(asked < TD_COUNT_OF(wanted_ms));
        assert_int_equal(ms, wanted_ms[asked++]);
        f.seen.ended_seq = decision.seq;
        f.seen.refusals++;
    }
    assert_int_equal(asked, TD_COUNT_OF(wanted_ms));
    f.seen.refusals = UINT32_MAX;
    assert_false(decide_at(&f, 4480).ask);
    f.seen.refusals = 0;
    assert_true(decide_at(&f, 4480).ask);
}

static void each_ask_takes_a_token(void **state)
{
    (void)state;
    fixture f = fixture_of(1);
    assert_int_equal(td_edge_rate_set(&f.ask.rate, 2, 0, 0), TD_OK);
    int asked = 0, resent = 0;
    for (int64_t ms = 0; ms < 10000; ms += 20) {
        td_edge_ask_decision decision = decide_at(&f, ms); // never answered
        asked += decision.ask;
        resent += decision.resend;
    }
    assert_int_equal(asked, 20);
    assert_int_equal(resent, 19);
}

// The same, with the state of each seq in a list.
typedef struct obvious {
    bool over[4096];
    int64_t asked_ms[4096];
    uint64_t asked, connection, began;
} obvious;

static bool obvious_decide(obvious *o, const fixture *f, int64_t ms)
{
    if (f->seen.connection != o->connection) {
        for (uint64_t seq = 1; seq <= o->asked; seq++)
            o->over[seq] = true;
        o->connection = f->seen.connection;
    }
    int unanswered = 0;
    for (uint64_t seq = 1; seq <= o->asked; seq++) {
        if (seq <= f->seen.ended_seq || ms - o->asked_ms[seq] >= 300)
            o->over[seq] = true;
        unanswered += !o->over[seq];
    }
    bool close = unanswered > 0 && ms + 10 - o->asked_ms[o->asked] < 60;
    if (o->connection == 0 || f->seen.left > 25 || unanswered >= 3 || close)
        return false;
    o->asked_ms[++o->asked] = ms;
    return true;
}

static void decides_as_the_obvious_does(void **state)
{
    (void)state;
    static obvious o;
    td_rand rand;
    td_rand_init(&rand, 31);
    fixture f = fixture_of(3);
    f.advice.apart_ns = 60 * TD_NS_PER_MS;
    for (int64_t ms = 0; ms < 100000; ms += 20) {
        uint64_t dice = td_rand_u64(&rand) % 100;
        f.seen.left = (uint32_t)(td_rand_u64(&rand) % 40);
        if (dice < 15 && f.seen.ended_seq < f.ask.asked) f.seen.ended_seq++;
        if (dice == 50) f.seen.connection = (uint64_t)ms;
        if (dice == 51) f.seen.connection = 0;
        bool wanted = obvious_decide(&o, &f, ms);
        td_edge_ask_decision decision = decide_at(&f, ms);
        assert_int_equal(decision.ask, wanted);
        assert_int_equal(decision.seq, wanted ? o.asked : 0);
        assert_int_equal(decision.must_go, wanted && f.seen.left == 0);
    }
    assert_true(o.asked > 500);
}

static const struct {
    const char *name;
    td_edge_ask_mode mode;
    double threshold;
    int64_t buffer_ms;
    uint32_t below;
} modes[] = {
    {"sequential", TD_EDGE_ASK_THRESHOLD, 0, 0, 0},
    {"half a chunk", TD_EDGE_ASK_THRESHOLD, 0.5, 0, 25},
    {"0.7", TD_EDGE_ASK_THRESHOLD, 0.7, 0, 35},
    {"0.58", TD_EDGE_ASK_THRESHOLD, 0.58, 0, 29},
    {"every step", TD_EDGE_ASK_THRESHOLD, 1, 0, CHUNK},
    {"no time is sequential", TD_EDGE_ASK_TIME, 0, 0, 0},
    {"less than a period", TD_EDGE_ASK_TIME, 0, 10, 0},
    {"5 rows are not below 5 periods", TD_EDGE_ASK_TIME, 0, 100, 4},
    {"5 rows are below 5.05 periods", TD_EDGE_ASK_TIME, 0, 101, 5},
    {"more than a chunk", TD_EDGE_ASK_TIME, 0, 5000, 249},
    {"auto before any answer", TD_EDGE_ASK_AUTO, 0, 0, 25},
};

static void modes_come_down_to_rows(void **state)
{
    (void)state;
    static const td_edge_latency none;
    for (size_t i = 0; i < TD_COUNT_OF(modes); i++) {
        td_edge_ask_settings settings = usual_settings();
        settings.mode = modes[i].mode;
        settings.threshold = modes[i].threshold;
        settings.buffer_time_ns = modes[i].buffer_ms * TD_NS_PER_MS;
        const td_edge_ask_measured nothing = {CHUNK, &none, &none, false};
        td_edge_ask_advice advice = td_edge_ask_advise(&settings, &nothing);
        if (advice.below_rows != modes[i].below)
            fail_msg("%s: %u", modes[i].name, advice.below_rows);
    }
}

static const struct {
    const char *name;
    uint32_t max_unanswered;
    bool serial;
    int64_t took_ms; // each answer, at 20 ms a row
    uint32_t below;
    int64_t apart_ms;
} autos[] = {
    {"quick", 1, false, 15, 1, 980},
    {"a row and a bit", 1, false, 21, 2, 960},
    {"a third of a chunk", 1, false, 320, 16, 680},
    {"half a chunk", 1, false, 500, 25, 500},
    {"more than half: as early as helps", 1, false, 600, 25, 600},
    {"more than a chunk: sequential", 1, false, 1100, 0, 1100},
    {"more than half, in two", 2, false, 600, 30, 400},
    {"more than half, one after the other", 2, true, 600, 25, 600},
    {"too long for two", 2, false, 800, 33, 400},
    {"longer than a chunk, in two", 2, false, 1100, 33, 550},
    {"longer than a chunk, one after the other", 2, true, 1100, 0, 1100},
    {"longer than two", 2, false, 2100, 0, 1050},
};

static void auto_asks_as_late_as_answers_allow(void **state)
{
    (void)state;
    static td_edge_latency waits;
    for (size_t i = 0; i < TD_COUNT_OF(autos); i++) {
        td_edge_ask_settings settings = usual_settings();
        settings.mode = TD_EDGE_ASK_AUTO;
        settings.max_unanswered = autos[i].max_unanswered;
        td_edge_latency_init(&waits);
        for (int k = 0; k < 100; k++)
            td_edge_latency_add(&waits, autos[i].took_ms * TD_NS_PER_MS);
        const td_edge_ask_measured measured = {CHUNK, &waits, &waits,
                                               autos[i].serial};
        td_edge_ask_advice advice = td_edge_ask_advise(&settings, &measured);
        if (advice.below_rows != autos[i].below ||
            advice.apart_ns != autos[i].apart_ms * TD_NS_PER_MS)
            fail_msg("%s: below %u, apart %lld ms", autos[i].name,
                     advice.below_rows,
                     (long long)(advice.apart_ns / TD_NS_PER_MS));
    }
}

static const struct {
    const char *name;
    int64_t trips_ms[2]; // 0: none yet
    int64_t after_ms;
} resends[] = {
    {"before the first round trip", {0}, 1000},
    {"after a first that was quick", {80}, 240},
    {"after a first that was slow", {900}, 1000},
    {"quick", {900, 5}, 100},
    {"usual", {900, 70}, 210},
    {"slow", {5, 900}, 1000},
};

static void resends_after_three_usual_round_trips(void **state)
{
    (void)state;
    static const td_edge_latency none;
    for (size_t i = 0; i < TD_COUNT_OF(resends); i++) {
        td_edge_ask_settings settings = usual_settings();
        td_edge_latency trips = {0};
        for (int k = 0; k < 2 && resends[i].trips_ms[k] > 0; k++)
            td_edge_latency_add(&trips, resends[i].trips_ms[k] * TD_NS_PER_MS);
        const td_edge_ask_measured measured = {CHUNK, &none, &trips, false};
        td_edge_ask_advice advice = td_edge_ask_advise(&settings, &measured);
        if (advice.resend_after_ns != resends[i].after_ms * TD_NS_PER_MS)
            fail_msg("%s", resends[i].name);
    }
}

static void settings_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    td_edge_ask_settings good = usual_settings();
    assert_int_equal(td_edge_ask_check(&good), TD_OK);
    td_edge_ask_settings bad[9];
    for (size_t i = 0; i < TD_COUNT_OF(bad); i++)
        bad[i] = good;
    bad[0].threshold = 1.1;
    bad[1].threshold = NAN;
    bad[2].mode = TD_EDGE_ASK_TIME;
    bad[2].buffer_time_ns = -1;
    bad[3].mode = TD_EDGE_ASK_AUTO;
    bad[3].starve_target = 0;
    bad[4].max_unanswered = 0;
    bad[5].max_unanswered = TD_EDGE_ASK_MAX_UNANSWERED + 1;
    bad[6].resend_min_ns = 0;
    bad[7].resend_max_ns = bad[7].resend_min_ns - 1;
    bad[8].period_ns = 0;
    for (size_t i = 0; i < TD_COUNT_OF(bad); i++) {
        td_edge_ask ask;
        if (td_edge_ask_init(&ask, &bad[i], 0) != TD_ERR_INVALID)
            fail_msg("bad[%zu] was taken", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_when_no_more_rows_are_left),
        cmocka_unit_test(empty_buffer_must_go),
        cmocka_unit_test(nobody_is_asked_without_a_server),
        cmocka_unit_test(one_at_a_time_until_it_ends),
        cmocka_unit_test(newest_is_sent_in_place_of_one_given_up),
        cmocka_unit_test(a_missed_answer_is_asked_for_once_more),
        cmocka_unit_test(an_answer_that_came_again_ends_the_asking),
        cmocka_unit_test(
            after_asking_again_without_an_answer_it_observes_in_the_next_step),
        cmocka_unit_test(who_has_nothing_left_observes),
        cmocka_unit_test(only_the_newest_is_asked_for_again),
        cmocka_unit_test(given_up_is_not_sent_again_while_rows_are_enough),
        cmocka_unit_test(skipped_is_asked_for_again_in_the_next_step),
        cmocka_unit_test(skipped_does_not_end_an_older_one),
        cmocka_unit_test(skipped_for_long_does_not_forget_an_older_one),
        cmocka_unit_test(new_connection_forgets_what_was_asked),
        cmocka_unit_test(several_go_at_every_step),
        cmocka_unit_test(several_are_kept_apart),
        cmocka_unit_test(refusing_server_is_asked_less_and_less),
        cmocka_unit_test(each_ask_takes_a_token),
        cmocka_unit_test(decides_as_the_obvious_does),
        cmocka_unit_test(modes_come_down_to_rows),
        cmocka_unit_test(auto_asks_as_late_as_answers_allow),
        cmocka_unit_test(resends_after_three_usual_round_trips),
        cmocka_unit_test(settings_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests_name("edge/ask", tests, NULL, NULL);
}

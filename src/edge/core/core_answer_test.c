// SPDX-License-Identifier: Apache-2.0
#include "base/rand.h"
#include "edge/core/core_fixture.h"
#include "edge/core/internal.h"

#include <math.h>

#define ROWS 4

static void foreign_answers_are_strays_and_change_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *server;
        td_wire_ident ident;
        td_edge_stray why;
    } cases[] = {
        {"foreign_server", "gpu-2", {7, 2, 5, 1}, TD_EDGE_STRAY_SERVER},
        {"foreign_server", "gpu-", {7, 2, 5, 1}, TD_EDGE_STRAY_SERVER},
        {"foreign_server", "", {7, 2, 5, 1}, TD_EDGE_STRAY_SERVER},
        {"foreign_boot", SERVER, {6, 2, 5, 1}, TD_EDGE_STRAY_BOOT},
        {"foreign_boot", SERVER, {8, 2, 5, 1}, TD_EDGE_STRAY_BOOT},
        {"foreign_route", SERVER, {7, 1, 5, 1}, TD_EDGE_STRAY_ROUTE},
        {"foreign_route", SERVER, {7, 3, 5, 1}, TD_EDGE_STRAY_ROUTE},
        {"foreign_episode", SERVER, {7, 2, 4, 1}, TD_EDGE_STRAY_EPISODE},
        {"foreign_episode", SERVER, {7, 2, 6, 1}, TD_EDGE_STRAY_EPISODE},
        {"unknown_seq", SERVER, {7, 2, 5, 0}, TD_EDGE_STRAY_SEQ},
        {"unknown_seq", SERVER, {7, 2, 5, 2}, TD_EDGE_STRAY_SEQ},
        {"unknown_seq", SERVER, {7, 2, 5, 257}, TD_EDGE_STRAY_SEQ},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        const td_edge_core_settings settings = robot_settings();
        TD_AUTO(td_edge_core) *core = robot_new(&settings);
        robot_tick(core, 0);
        robot_answer answer;
        answer_fill(&answer, 1, ROWS, 100);
        answer.action.ident = cases[i].ident;
        answer.action.server = td_wire_text_of(cases[i].server);
        answer.action.superseded[0] = 1;
        answer.action.superseded_count = 1;
        td_edge_answer result = robot_hear(core, 0, &answer.action);
        td_edge_counts counts = robot_counts(core);
        if (!result.stray || result.why_stray != cases[i].why ||
            strcmp(td_edge_stray_name(result.why_stray), cases[i].name) != 0 ||
            counts.strays[cases[i].why] != 1 ||
            counts.outcomes[TD_EDGE_PENDING] != 1 ||
            robot_tick(core, PERIOD_NS).ask ||
            robot_tick(core, PERIOD_NS).command)
            fail_msg("%s, row %zu", cases[i].name, i);
    }
}

static void an_answer_that_cannot_be_decoded_is_counted(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    td_edge_core_malformed(core);
    assert_int_equal(robot_counts(core).strays[TD_EDGE_STRAY_MALFORMED], 1);
    assert_string_equal(td_edge_stray_name(TD_EDGE_STRAY_MALFORMED),
                        "malformed");
}

static void a_second_answer_to_the_same_seq_is_unknown(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_tick(core, 0);
    assert_int_equal(robot_answered(core, 0, 1, ROWS, 100).outcome,
                     TD_EDGE_MERGED);
    td_edge_answer again = robot_answered(core, 0, 1, ROWS, 200);
    assert_true(again.stray);
    assert_int_equal(again.why_stray, TD_EDGE_STRAY_SEQ);
    assert_float_equal(robot_tick(core, 0).command[0], 100, 0);
}

static void an_older_answer_after_a_newer_is_overtaken(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_send(core, 1, 1000);
    robot_send(core, 2, 2000);
    td_edge_answer newer = robot_answered(core, 5000, 2, ROWS, 200);
    td_edge_answer older = robot_answered(core, 6000, 1, ROWS, 100);
    assert_int_equal(newer.outcome, TD_EDGE_MERGED);
    assert_int_equal(newer.sent.put_ns, 2000);
    assert_false(older.stray);
    assert_int_equal(older.outcome, TD_EDGE_OVERTAKEN);
    assert_int_equal(older.sent.put_ns, 1000);
    assert_int_equal(older.rows, 0);
    assert_float_equal(robot_tick(core, 6000).command[0], 200, 0);
}

static void an_overtaken_answer_leaves_the_robot_free_to_ask(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.ask.resend_min_ns = settings.ask.resend_max_ns = 100;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_tick(core, 0);
    robot_tick(core, 100);
    robot_answered(core, 110, 2, 1, 200);
    robot_answered(core, 110, 1, 1, 100);
    assert_true(robot_tick(core, 120).ask);
}

static void answers_in_order_are_blended_by_the_setting(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.aggregate = TD_EDGE_WEIGHTED_AVERAGE;
    settings.kinds[1] = TD_WIRE_HOLD;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_send(core, 1, 0);
    robot_send(core, 2, 0);
    robot_answered(core, 0, 1, ROWS, 100);
    robot_answered(core, 0, 2, ROWS, 200);
    const float *command = robot_tick(core, 0).command;
    assert_float_equal(command[0], 0.3 * 100 + 0.7 * 200, 1e-4);
    assert_float_equal(command[1], -200, 0);
}

static void superseded_seqs_end_with_the_answer_that_names_them(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    for (uint64_t seq = 1; seq <= 5; seq++)
        robot_send(core, seq, 0);
    robot_answered(core, 0, 1, ROWS, 100);
    robot_answer answer;
    answer_fill(&answer, 4, ROWS, 400);
    // One that ended, two that wait, itself, and one that nobody sent.
    const uint64_t superseded[] = {1, 2, 3, 4, 99};
    memcpy(answer.action.superseded, superseded, sizeof superseded);
    answer.action.superseded_count = TD_COUNT_OF(superseded);
    robot_hear(core, 0, &answer.action);

    td_edge_counts counts = robot_counts(core);
    assert_int_equal(counts.outcomes[TD_EDGE_SUPERSEDED], 2);
    assert_int_equal(counts.outcomes[TD_EDGE_MERGED], 2);
    assert_int_equal(counts.outcomes[TD_EDGE_PENDING], 1);
    assert_true(robot_answered(core, 0, 2, ROWS, 200).stray);
}

static void a_chunk_all_past_is_expired(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_send(core, 1, 0);
    robot_send(core, 2, 0);
    robot_answered(core, 0, 1, ROWS, 100);
    robot_tick(core, 0);
    robot_tick(core, 0);
    assert_int_equal(robot_answered(core, 0, 2, 2, 200).outcome,
                     TD_EDGE_EXPIRED);
    assert_float_equal(robot_tick(core, 0).command[0], 102, 0);
    assert_int_equal(robot_counts(core).outcomes[TD_EDGE_EXPIRED], 1);
}

static void a_chunk_of_another_shape_is_misshapen(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        td_wire_dtype dtype;
        uint32_t rank;
        uint32_t shape[3];
    } cases[] = {
        {"too few channels", TD_WIRE_F32, 2, {ROWS, CHANNELS - 1}},
        {"too many channels", TD_WIRE_F32, 2, {ROWS, CHANNELS + 1}},
        {"no rows", TD_WIRE_F32, 2, {0, CHANNELS}},
        {"a vector", TD_WIRE_F32, 1, {CHANNELS}},
        {"a batch", TD_WIRE_F32, 3, {1, ROWS, CHANNELS}},
        {"a batch of rows", TD_WIRE_F32, 3, {ROWS, CHANNELS, 1}},
        {"doubles", TD_WIRE_F64, 2, {ROWS, CHANNELS}},
        {"none", TD_WIRE_F32, 0, {0}},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        const td_edge_core_settings settings = robot_settings();
        TD_AUTO(td_edge_core) *core = robot_new(&settings);
        robot_tick(core, 0);
        robot_answer answer;
        answer_fill(&answer, 1, ROWS, 100);
        answer.action.actions.dtype = cases[i].dtype;
        answer.action.actions.rank = cases[i].rank;
        memcpy(answer.action.actions.shape, cases[i].shape,
               sizeof cases[i].shape);
        td_edge_answer result = robot_hear(core, 0, &answer.action);
        td_edge_step step = robot_tick(core, 0);
        if (result.stray || result.outcome != TD_EDGE_MISSHAPEN ||
            robot_counts(core).outcomes[TD_EDGE_MISSHAPEN] != 1 ||
            step.command || step.ask || !robot_tick(core, TD_NS_PER_S).ask)
            fail_msg("%s", cases[i].name);
    }
}

static void an_answer_beyond_the_age_limit_is_too_old(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.max_action_age_ns = TD_NS_PER_S;
    for (int trim = TD_EDGE_TRIM_STEPS; trim <= TD_EDGE_TRIM_TIME; trim++) {
        settings.trim = (td_edge_trim)trim;
        TD_AUTO(td_edge_core) *core = robot_new(&settings);
        // Captured a while before it was put: age counts from the capture.
        for (uint64_t seq = 1; seq <= 2; seq++)
            assert_true(td_edge_core_sent(
                core, &(td_edge_sent){.seq = seq,
                                      .episode = 5,
                                      .captured_ns = 0,
                                      .put_ns = TD_NS_PER_S}));
        assert_int_equal(
            robot_answered(core, TD_NS_PER_S + 1, 1, ROWS, 0).outcome,
            TD_EDGE_TOO_OLD);
        assert_int_equal(robot_answered(core, TD_NS_PER_S, 2, ROWS, 0).outcome,
                         TD_EDGE_MERGED);
    }
}

static void a_refusal_lets_the_robot_ask_again(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_tick(core, 0);
    assert_false(robot_tick(core, 1).ask);
    robot_answer answer;
    answer_fill(&answer, 1, ROWS, 100);
    answer.action.error_code = td_wire_text_of("MISMATCH");
    assert_int_equal(robot_hear(core, 2, &answer.action).outcome,
                     TD_EDGE_REFUSED);
    assert_false(robot_tick(core, 3).ask); // not at once
    td_edge_step step = robot_tick(core, TD_NS_PER_S);
    assert_null(step.command);
    assert_true(step.ask && step.must_go);
    assert_int_equal(step.seq, 2);
}

// Only the newest frees the robot to ask: an older one says nothing about it.
static void an_older_answer_does_not_end_the_wait_for_the_newest(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.ask.resend_min_ns = settings.ask.resend_max_ns = 100;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_tick(core, 0);
    robot_tick(core, 100);
    robot_answered(core, 110, 1, 1, 100);
    assert_false(robot_tick(core, 120).ask);
    robot_answered(core, 130, 2, 1, 200); // past: the one row was played
    assert_int_equal(robot_counts(core).outcomes[TD_EDGE_EXPIRED], 1);
    assert_true(robot_tick(core, 140).ask);
}

static void what_the_transport_did_not_take_may_be_asked_for_again(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_tick(core, 0);
    assert_false(robot_tick(core, 1).ask);
    td_edge_core_unsent(core, 1);
    assert_int_equal(robot_counts(core).outcomes[TD_EDGE_UNSENT], 1);
    assert_int_equal(robot_counts(core).outcomes[TD_EDGE_PENDING], 0);
    assert_true(robot_tick(core, TD_NS_PER_S).ask);
}

static void what_is_skipped_is_counted_and_asked_for_again(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    for (int why = 0; why < TD_EDGE_SKIP_COUNT; why++) {
        int64_t now_ns = why * TD_NS_PER_S;
        td_edge_step step = robot_tick_alone(core, now_ns, 1);
        assert_true(step.ask);
        assert_false(robot_tick_alone(core, now_ns + 1, 1).ask);
        td_edge_core_skipped(core, step.seq, (td_edge_skip)why);
    }
    td_edge_counts counts = robot_counts(core);
    for (int why = 0; why < TD_EDGE_SKIP_COUNT; why++)
        assert_int_equal(counts.skipped[why], 1);
    assert_int_equal(counts.asked, TD_EDGE_SKIP_COUNT);
    assert_int_equal(counts.sent, 0);
}

static void what_failed_is_asked_for_less_and_less(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    int64_t soon_ns = 2 * settings.period_ns;
    td_edge_core_skipped(core, robot_tick_alone(core, 0, 1).seq,
                         TD_EDGE_SKIP_STALE);
    td_edge_step step = robot_tick_alone(core, soon_ns, 1);
    assert_true(step.ask);
    td_edge_core_skipped(core, step.seq, TD_EDGE_SKIP_FAILED);
    assert_false(robot_tick_alone(core, 2 * soon_ns, 1).ask);
    assert_true(robot_tick_alone(core, TD_NS_PER_S + soon_ns, 1).ask);
}

static void what_falls_out_of_the_ring_is_unanswered(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    for (uint64_t seq = 1; seq <= TD_EDGE_INFLIGHT_MAX + 1; seq++)
        robot_send(core, seq, 0);
    assert_int_equal(robot_counts(core).outcomes[TD_EDGE_UNANSWERED], 1);
    assert_true(robot_answered(core, 0, 1, ROWS, 100).stray);
    assert_false(robot_answered(core, 0, 2, ROWS, 100).stray);
}

static void superseded_are_those_that_were_named_and_no_more(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    for (uint64_t seq = 1; seq <= 3; seq++)
        robot_send(core, seq, 0);
    robot_answer answer;
    answer_fill(&answer, 3, ROWS, 0);
    answer.action.superseded[0] = 1;
    answer.action.superseded[1] = 2;
    answer.action.superseded_count = 1;
    robot_hear(core, 0, &answer.action);
    assert_int_equal(robot_counts(core).outcomes[TD_EDGE_SUPERSEDED], 1);
    assert_int_equal(robot_counts(core).outcomes[TD_EDGE_PENDING], 1);
}

// The second observation is put at 10 ms, and the answer to the first comes at
// 50: so long it may have waited at the server for that one.
static td_edge_core *robot_that_waited(float queued_ms)
{
    td_edge_core_settings settings = robot_settings();
    settings.ask.mode = TD_EDGE_ASK_AUTO;
    settings.ask.max_unanswered = 3;
    td_edge_core *core = robot_new(&settings);
    robot_send(core, 1, 0);
    robot_send(core, 2, 10 * TD_NS_PER_MS);
    robot_answered(core, 50 * TD_NS_PER_MS, 1, ROWS, 0);
    robot_answer answer;
    answer_fill(&answer, 2, ROWS, 0);
    answer.action.queue_time_ms = queued_ms;
    robot_hear(core, 90 * TD_NS_PER_MS, &answer.action);
    return core;
}

static void time_behind_an_own_observation_is_not_waited_for(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        float queued_ms;
        int64_t wait_ns;
        uint32_t most; // to be unanswered from now on
    } cases[] = {
        {"none", 0, 80 * TD_NS_PER_MS, 3},
        {"less than a period", 9, 80 * TD_NS_PER_MS, 3},
        {"a period", 10, 70 * TD_NS_PER_MS, 1},
        {"two", 20, 60 * TD_NS_PER_MS, 1},
        {"longer than that", 70, 40 * TD_NS_PER_MS, 1},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        TD_AUTO(td_edge_core) *core = robot_that_waited(cases[i].queued_ms);
        assert_int_equal(core->merge.waits.size, 1);
        if (core->merge.waits.samples[0] != cases[i].wait_ns ||
            atomic_load(&core->most_unanswered) != cases[i].most)
            fail_msg("%s: %lld ns", cases[i].name,
                     (long long)core->merge.waits.samples[0]);
    }
}

static void a_server_just_found_is_not_judged_by_the_last(void **state)
{
    (void)state;
    TD_AUTO(td_edge_core) *core = robot_that_waited(70);
    td_edge_core_skipped(core, 3, TD_EDGE_SKIP_FAILED);
    assert_int_equal(atomic_load(&core->refusals), 1);
    td_edge_core_connected(core);
    assert_int_equal(atomic_load(&core->refusals), 0);
    assert_int_equal(atomic_load(&core->most_unanswered), 3);
}

static void an_answer_says_how_much_of_it_was_known_before(void **state)
{
    (void)state;
    static const struct {
        uint32_t before, rows, overlap;
    } cases[] = {{4, 6, 3}, {4, 4, 3}, {4, 3, 2}, {1, 4, 0}};
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        const td_edge_core_settings settings = robot_settings();
        TD_AUTO(td_edge_core) *core = robot_new(&settings);
        robot_send(core, 1, 0);
        robot_send(core, 2, 0);
        td_edge_answer first = robot_answered(core, 0, 1, cases[i].before, 0);
        assert_int_equal(first.overlap_rows, 0);
        robot_tick_alone(core, 0, 0);
        td_edge_answer second = robot_answered(core, 0, 2, cases[i].rows, 0);
        assert_int_equal(second.rows, cases[i].rows - 1);
        assert_int_equal(second.overlap_rows, cases[i].overlap);
    }
}

// Leaves the first of the rows as it is.
static td_err forget_a_row(void *user, const td_edge_overlap *overlap,
                           float *ret_rows)
{
    for (uint32_t i = 0; i < overlap->rows * CHANNELS; i++)
        ret_rows[i] = i < CHANNELS ? NAN : 0;
    return *(td_err *)user;
}

static void what_a_users_function_fails_at_is_counted(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        td_err says;
        uint64_t refused, late, failed;
    } cases[] = {
        {"it is in time", TD_OK, 2, 0, 0},
        {"it is late", TD_ERR_TIMEOUT, 0, 2, 0},
        {"it fails", TD_ERR_IO, 0, 0, 2},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_err says = cases[i].says;
        td_edge_core_settings settings = robot_settings();
        settings.aggregate = TD_EDGE_CUSTOM;
        settings.blend_all = forget_a_row;
        settings.blend_user = &says;
        TD_AUTO(td_edge_core) *core = robot_new(&settings);
        for (uint64_t seq = 1; seq <= 3; seq++) {
            robot_send(core, seq, 0);
            robot_answered(core, 0, seq, ROWS, 0);
        }
        td_edge_counts counts = robot_counts(core);
        if (counts.blends_refused != cases[i].refused ||
            counts.aggregate_late != cases[i].late ||
            counts.aggregate_failed != cases[i].failed)
            fail_msg("%s", cases[i].name);
    }
}

// An answer as a bad network, an old server or a wrong one might give it.
static void answer_at_random(td_edge_core *core, td_rand *rand, int64_t now_ns,
                             uint64_t asked)
{
    robot_answer answer;
    uint64_t back = td_rand_u64(rand) % 8;
    uint32_t rows = (uint32_t)(td_rand_u64(rand) % MAX_ROWS);
    answer_fill(&answer, asked > back ? asked - back : 0, rows, 0);
    td_wire_action *action = &answer.action;
    action->ident.episode = td_edge_core_episode(core);
    switch (td_rand_u64(rand) % 16) {
    case 0:
        action->ident.boot--;
        break;
    case 1:
        action->ident.route++;
        break;
    case 2:
        action->ident.episode--;
        break;
    case 3:
        action->server = td_wire_text_of("gpu-2");
        break;
    case 4:
        action->actions.shape[1]++;
        break;
    case 5:
        action->error_code = td_wire_text_of("BUSY");
        break;
    case 6:
        memset(answer.bytes + 1, 0xff, sizeof(float));
        break;
    default:
        break;
    }
    action->superseded_count = (uint32_t)(td_rand_u64(rand) % 4);
    for (uint32_t i = 0; i < action->superseded_count; i++)
        action->superseded[i] = td_rand_u64(rand) % (asked + 2);
    robot_hear(core, now_ns, action);
}

// Each answer was either a stray or the end of an observation, and every way to
// end has been seen.
static void assert_all_is_counted(const td_edge_counts *counts,
                                  uint64_t answers)
{
    uint64_t heard = 0;
    for (int i = 0; i < TD_EDGE_STRAY_MALFORMED; i++) {
        assert_true(counts->strays[i] > 0);
        heard += counts->strays[i];
    }
    for (int i = TD_EDGE_MERGED; i < TD_EDGE_OUTCOME_COUNT; i++) {
        assert_true(counts->outcomes[i] > 0);
        if (i != TD_EDGE_SUPERSEDED && i != TD_EDGE_UNANSWERED &&
            i != TD_EDGE_UNSENT && i != TD_EDGE_RESET)
            heard += counts->outcomes[i];
    }
    assert_int_equal(heard, answers);
}

static void live_at_random(uint64_t seed, td_edge_trim trim)
{
    td_rand rand;
    td_rand_init(&rand, seed);
    td_edge_core_settings settings = robot_settings();
    settings.trim = trim;
    settings.ask.threshold = 0.5;
    settings.max_action_age_ns = 12 * PERIOD_NS;
    settings.ask.resend_min_ns = settings.ask.resend_max_ns = 2 * PERIOD_NS;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    uint64_t asked = 0;
    uint64_t answers = 0;
    uint64_t cursor = 0;
    for (int64_t i = 0; i < 10000; i++) {
        int64_t now_ns = i * PERIOD_NS;
        td_edge_step step = robot_tick_alone(core, now_ns, 1);
        if (step.ask) asked = step.seq;
        if (step.ask && td_rand_unit(&rand) < 0.9)
            robot_send(core, asked, now_ns);
        if (td_rand_unit(&rand) < 0.01) td_edge_core_unsent(core, asked);
        if (td_rand_unit(&rand) < 0.0005)
            assert_int_equal(td_edge_core_reset(core), TD_OK);
        if (td_rand_unit(&rand) < 0.4) {
            answer_at_random(core, &rand, now_ns, asked);
            answers++;
        }
        cursor += step.fresh;
        assert_int_equal(td_edge_core_cursor(core), cursor);
        (void)robot_counts(core); // checks the sum
    }
    td_edge_counts counts = robot_counts(core);
    assert_all_is_counted(&counts, answers);
}

static void every_observation_ends_once_whatever_comes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        live_at_random(seed, TD_EDGE_TRIM_STEPS);
        live_at_random(seed, TD_EDGE_TRIM_TIME);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(foreign_answers_are_strays_and_change_nothing),
        cmocka_unit_test(an_answer_that_cannot_be_decoded_is_counted),
        cmocka_unit_test(a_second_answer_to_the_same_seq_is_unknown),
        cmocka_unit_test(an_older_answer_after_a_newer_is_overtaken),
        cmocka_unit_test(an_overtaken_answer_leaves_the_robot_free_to_ask),
        cmocka_unit_test(answers_in_order_are_blended_by_the_setting),
        cmocka_unit_test(superseded_seqs_end_with_the_answer_that_names_them),
        cmocka_unit_test(a_chunk_all_past_is_expired),
        cmocka_unit_test(a_chunk_of_another_shape_is_misshapen),
        cmocka_unit_test(an_answer_beyond_the_age_limit_is_too_old),
        cmocka_unit_test(a_refusal_lets_the_robot_ask_again),
        cmocka_unit_test(an_older_answer_does_not_end_the_wait_for_the_newest),
        cmocka_unit_test(
            what_the_transport_did_not_take_may_be_asked_for_again),
        cmocka_unit_test(what_is_skipped_is_counted_and_asked_for_again),
        cmocka_unit_test(what_failed_is_asked_for_less_and_less),
        cmocka_unit_test(what_falls_out_of_the_ring_is_unanswered),
        cmocka_unit_test(superseded_are_those_that_were_named_and_no_more),
        cmocka_unit_test(time_behind_an_own_observation_is_not_waited_for),
        cmocka_unit_test(a_server_just_found_is_not_judged_by_the_last),
        cmocka_unit_test(an_answer_says_how_much_of_it_was_known_before),
        cmocka_unit_test(what_a_users_function_fails_at_is_counted),
        cmocka_unit_test(every_observation_ends_once_whatever_comes),
    };
    return cmocka_run_group_tests_name("edge/core_answer", tests, NULL, NULL);
}

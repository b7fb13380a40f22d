// SPDX-License-Identifier: Apache-2.0
#include "sim/player.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FPS 10
#define PERIOD_NS (TD_NS_PER_S / FPS)
#define ROWS 10
#define FRAMES 30

#define NAMES                                                                  \
    "cluster_uuid: c\nexperiment_tag: e\nmodel_id: m\nmodel_version: v\n"      \
    "application_tag: a\nclient_uuid: r\nendpoint: tcp/127.0.0.1:7447\n"
#define HEAD NAMES "fps: 10\nactions_per_chunk: 10\n"
#define SLIDE "robot: {kind: synthetic, joints: [slide]}\n"

// A policy that says for each step the number of its frame, and one more for
// each frame that it was asked before: so that whose row it is can be seen.
#define MARK 0.001f

static td_engine_spec spec(void)
{
    return (td_engine_spec){
        .states = {{.name = td_wire_text_of("slide")}},
        .state_count = 1,
        .actions = {{.name = td_wire_text_of("slide")}},
        .action_count = 1,
        .chunk_rows = ROWS,
        .step_period_us = 1000000 / FPS,
    };
}

typedef struct played {
    float commands[FRAMES];
    bool held[FRAMES], clamped[FRAMES];
    uint64_t asked[4 * FRAMES]; // frames
    size_t asks;
    td_err err;
    td_errinfo info;
} played;

static td_config_robot *robot_of(const char *text)
{
    td_config_robot *robot = NULL;
    td_errinfo info = {""};
    if (td_config_robot_parse("robot.yaml", text, strlen(text), &robot,
                              &info) != TD_OK)
        fail_msg("%s", info.text);
    return robot;
}

static td_err answer(td_sim_player *player, played *into, const float *state,
                     const td_wire_ident *ident)
{
    uint64_t frame = td_sim_player_frame(player);
    float actions[ROWS];
    const td_wire_obs obs = {.ident = *ident,
                             .state = {.dtype = TD_WIRE_F32,
                                       .rank = 1,
                                       .shape = {1},
                                       .data = state,
                                       .size = sizeof *state}};
    const td_engine_item item = {.obs = &obs, .actions = actions, .rows = ROWS};
    if (!td_sim_player_send(player, &obs)) return TD_OK;
    for (uint32_t i = 0; i < ROWS; i++)
        actions[i] = (float)(frame + i) + MARK * (float)frame;
    assert_true(into->asks < TD_COUNT_OF(into->asked));
    into->asked[into->asks++] = frame;
    return td_sim_player_answer(player, &item);
}

// `stride`: how far the state moves in a frame.
static td_err play_all(const td_sim_player_config *config, float stride,
                       played *into)
{
    TD_AUTO(td_sim_player) *player = NULL;
    TD_TRY(td_sim_player_new(config, &player, &into->info));
    for (size_t frame = 0; frame < FRAMES;) {
        td_sim_played now;
        TD_TRY(td_sim_player_tick(player, &now, &into->info));
        const float state = stride * (float)td_sim_player_frame(player);
        if (now.asks) TD_TRY(answer(player, into, &state, &now.ident));
        if (!now.row) continue;
        into->commands[frame] = now.command[0];
        into->held[frame] = now.row->held;
        into->clamped[frame++] = now.row->clamped;
    }
    return TD_OK;
}

static played play(const char *file, int late, float stride)
{
    const td_engine_spec policy = spec();
    td_config_robot *robot = file ? robot_of(file) : NULL;
    const td_sim_player_config config = {
        .spec = &policy,
        .fps = FPS,
        .latency_ns = late * PERIOD_NS,
        .start = (float[]){0},
        .robot = robot,
    };
    played made = {.info = {""}};
    made.err = play_all(&config, stride, &made);
    if (robot) td_config_robot_free(robot);
    return made;
}

static played plays(const char *file, int late)
{
    played made = play(file, late, 1);
    if (made.err != TD_OK)
        fail_msg("%s: %s", td_err_name(made.err), made.info.text);
    return made;
}

static void refuses(const char *file, int late, td_err err, const char *why)
{
    played made = play(file, late, 1);
    assert_int_equal(made.err, err);
    if (!strstr(made.info.text, why))
        fail_msg("\"%s\" lacks \"%s\"", made.info.text, why);
}

static void frames_wait_until_there_is_something_to_play(void **state)
{
    (void)state;
    played made = plays(NULL, 3);
    assert_int_equal(made.asked[0], 0);
    assert_true(made.commands[0] == 0 && made.commands[1] == 1);
    assert_int_equal(made.asked[1], 5); // half of the chunk is left
    assert_false(made.held[FRAMES - 1]);
}

static void a_robot_asks_when_its_file_says(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        uint64_t second; // frame that it asks at
    } cases[] = {
        {"half", HEAD SLIDE, 5},
        {"threshold", HEAD SLIDE "chunk_size_threshold: 0.2\n", 8},
        {"sequential", HEAD SLIDE "chunk_size_threshold: 0\n", 10},
        {"time", HEAD SLIDE "buffer_time_s: 0.5\n", 6},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        played made = plays(cases[i].text, 1);
        if (made.asked[1] != cases[i].second)
            fail_msg("%s: asked at %d", cases[i].name, (int)made.asked[1]);
    }
}

static void chunks_join_as_the_file_says(void **state)
{
    (void)state;
    played latest = plays(HEAD SLIDE "aggregate_fn_name: latest_only\n", 1);
    played average = plays(HEAD SLIDE "aggregate_fn_name: average\n", 1);
    // Frame 6 is in the chunk of frame 0 and in that of frame 5.
    assert_float_equal(latest.commands[6], 6 + 5 * MARK, 1e-6);
    assert_float_equal(average.commands[6], 6 + 2.5 * MARK, 1e-6);
}

static void several_may_be_on_their_way(void **state)
{
    (void)state;
    const char *two = HEAD SLIDE
        "chunk_size_threshold: 1\nmax_unanswered: 2\nmax_action_age_s: 30\n";
    played made = plays(two, 4);
    size_t together = 0;
    for (size_t i = 2; i < made.asks; i++)
        together += made.asked[i] - made.asked[i - 1] < 4;
    assert_true(together > 0);
    for (size_t i = 0; i < FRAMES; i++)
        assert_false(made.held[i]);
}

static void a_limit_holds_the_policy_back(void **state)
{
    (void)state;
    played made = plays(HEAD "robot: {kind: synthetic, joints: {slide: "
                             "{max_speed: 5}}}\n",
                        1);
    for (size_t i = 1; i < FRAMES; i++) {
        assert_true(made.clamped[i]); // it wants one a frame, and may a half
        assert_float_equal(made.commands[i] - made.commands[i - 1], 0.5, 1e-6);
    }
}

static void a_robot_whose_limits_act_too_often_stops(void **state)
{
    (void)state;
    played made = plays(HEAD "robot: {kind: synthetic, joints: {slide: "
                             "{max: 4}}}\nmax_limit_hits: 3\n",
                        1);
    assert_false(made.held[7]); // 5, 6 and 7 are too much
    assert_true(made.held[8]);
    assert_true(made.commands[8] <= 4);
}

static void what_is_left_to_it_the_fail_safe_does(void **state)
{
    (void)state;
    const char *text =
        HEAD "robot: {kind: synthetic, joints: {slide: {failsafe: safe_pose, "
             "safe: -1}}}\nsafe_pose_speed: 2\nchunk_size_threshold: 0\n"
             "max_action_age_s: 30\n";
    played made = plays(text, 8);
    assert_false(made.held[9]);
    assert_true(made.held[10] && made.held[16]);
    assert_float_equal(made.commands[11] - made.commands[10], -0.2, 1e-6);
}

static void a_step_of_several_ticks_is_one_frame(void **state)
{
    (void)state;
    const char *text = HEAD SLIDE "control_hz: 40\nchunk_size_threshold: 0\n";
    played made = plays(text, 1);
    for (size_t i = 0; i < FRAMES; i++)
        assert_false(made.held[i]);
    for (size_t i = 0; i < ROWS; i++)
        assert_true(made.commands[i] == (float)i);
    assert_int_equal(made.asked[1], ROWS - 1); // as its last step begins
}

static void observations_that_are_alike_are_left_out(void **state)
{
    (void)state;
    const char *text = HEAD SLIDE "similarity: {enabled: true, state: 0.5}\n";
    played moving = play(text, 1, 1), still = play(text, 1, 0.01f);
    assert_int_equal(moving.err, TD_OK);
    assert_int_equal(still.err, TD_OK);
    assert_int_equal(moving.asked[1], 5);
    assert_int_equal(still.asked[1], 10); // nothing is left: it must go
}

static void what_does_not_fit_is_refused_by_name(void **state)
{
    (void)state;
    refuses(HEAD "robot: {kind: synthetic, joints: [turn]}\n", 1,
            TD_ERR_MISMATCH, "action_names[0]: this robot has \"turn\"");
    refuses(NAMES SLIDE "fps: 20\nactions_per_chunk: 10\n", 1, TD_ERR_MISMATCH,
            "fps: this robot has 20, the session 10");
    refuses(NAMES SLIDE "fps: 10\nactions_per_chunk: 50\n", 1, TD_ERR_MISMATCH,
            "this robot plays 50 a chunk");
}

static void a_robot_that_can_never_begin_says_why(void **state)
{
    (void)state;
    refuses(HEAD SLIDE "max_action_age_s: 0.1\n", 3, TD_ERR_INVALID,
            "8 answers came, the last was too_old");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_wait_until_there_is_something_to_play),
        cmocka_unit_test(a_robot_asks_when_its_file_says),
        cmocka_unit_test(chunks_join_as_the_file_says),
        cmocka_unit_test(several_may_be_on_their_way),
        cmocka_unit_test(a_limit_holds_the_policy_back),
        cmocka_unit_test(a_robot_whose_limits_act_too_often_stops),
        cmocka_unit_test(what_is_left_to_it_the_fail_safe_does),
        cmocka_unit_test(a_step_of_several_ticks_is_one_frame),
        cmocka_unit_test(observations_that_are_alike_are_left_out),
        cmocka_unit_test(what_does_not_fit_is_refused_by_name),
        cmocka_unit_test(a_robot_that_can_never_begin_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

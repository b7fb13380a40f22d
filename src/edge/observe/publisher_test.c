// SPDX-License-Identifier: Apache-2.0
#include "edge/edge_fixture.h"

static uint64_t enough; // for the predicates below

static bool has_merged_enough(world *w)
{
    return world_outcome(w, TD_EDGE_MERGED) >= enough;
}

static bool has_skipped_enough(world *w)
{
    return w->report.counts.skipped[TD_EDGE_SKIP_SIMILAR] >= enough;
}

static void want_top(td_wire_status *status)
{
    status->cameras[0] = (td_wire_camera){td_wire_text_of("top"), 48, 64};
}

static uint64_t seen[2]; // since the last look, JPEG and raw

static void look_at_codec(world *w, const td_wire_obs *obs)
{
    (void)w;
    assert_int_equal(obs->image_count, 1);
    seen[obs->images[0].codec == TD_WIRE_RAW]++;
}

// Some twenty more, after the first ones have tried both: all travel alike.
// Which is cheaper is the machine's to say, and codec_test's to decide.
static void watch_after_trials(world *w)
{
    enough = world_outcome(w, TD_EDGE_MERGED) + 4 * TD_EDGE_CODEC_TRIALS;
    world_until(w, has_merged_enough);
    seen[0] = seen[1] = 0;
    // Some of them may have been on their way.
    enough = world_outcome(w, TD_EDGE_MERGED) + 30;
    world_until(w, has_merged_enough);
    assert_true(seen[0] + seen[1] >= 20);
    assert_true(seen[0] == 0 || seen[1] == 0);
}

static void open_auto(world *w, size_t index, const char *id)
{
    w->config.codec = TD_EDGE_CODEC_AUTO;
    fake_server_open(w, index, id)->note_obs = look_at_codec;
}

static void auto_tries_both_where_a_place_is_lent_and_decides(void **state)
{
    world *w = *state;
    open_auto(w, 0, "gpu-1");
    seen[0] = seen[1] = 0;
    world_stream(w);
    enough = 2 * TD_EDGE_CODEC_TRIALS;
    world_until(w, has_merged_enough);
    assert_true(seen[0] > 0 && seen[1] > 0);
    watch_after_trials(w);
}

static void auto_takes_jpeg_where_none_is(void **state)
{
    world *w = *state;
    open_auto(w, 0, "gpu-1");
    w->fake_servers[0].edit_status = want_top;
    seen[0] = seen[1] = 0;
    world_stream(w);
    watch_after_trials(w);
    assert_int_equal(seen[1], 0);
}

static bool has_second_server(world *w)
{
    return w->fake_servers[1].observations > 0;
}

static void auto_decides_again_for_another_server(void **state)
{
    world *w = *state;
    open_auto(w, 0, "gpu-1");
    world_stream(w);
    watch_after_trials(w);
    open_auto(w, 1, "gpu-2");
    w->fake_servers[1].edit_status = want_top;
    fake_server_close(&w->fake_servers[0]);
    world_until(w, has_second_server);
    watch_after_trials(w);
    assert_int_equal(seen[1], 0);
}

static uint64_t urgent, calm; // observations that must go, and others

static void look_at_urgency(world *w, const td_wire_obs *obs)
{
    (void)w;
    if (obs->must_go)
        urgent++;
    else
        calm++;
}

// To this robot all observations are alike.
static void open_similar(world *w, double image_tolerance)
{
    urgent = calm = 0;
    w->config.similar = (td_edge_similar_settings){
        .on = true,
        .state_tolerance = 1e9,
        .image_tolerance = image_tolerance,
    };
    fake_server_open(w, 0, "gpu-1")->note_obs = look_at_urgency;
}

static void what_is_similar_goes_only_when_it_must(void **state)
{
    world *w = *state;
    open_similar(w, 256);
    world_stream(w);
    world_until(w, has_merged_twenty);
    assert_true(w->report.counts.skipped[TD_EDGE_SKIP_SIMILAR] > 0);
    assert_true(urgent >= 20);
    assert_int_equal(calm, 0); // the first is sent by an empty robot
}

static void a_picture_that_changed_goes(void **state)
{
    world *w = *state;
    open_similar(w, 0);
    world_stream(w);
    enough = 40;
    world_until(w, has_merged_enough);
    assert_int_equal(w->report.counts.skipped[TD_EDGE_SKIP_SIMILAR], 0);
    assert_true(calm > 0);
}

// With rows for seconds nothing must go, and all is similar.
static void stream_calmly(world *w)
{
    w->config.core.period_ns = 200 * TD_NS_PER_MS;
    w->config.core.ask.threshold = 1;
    w->config.profile.step_period_us = 200000;
    open_similar(w, 256);
    world_stream(w);
    enough = 2;
    world_until(w, has_skipped_enough);
    assert_int_equal(calm, 0);
}

static void another_server_is_sent_what_is_similar(void **state)
{
    world *w = *state;
    stream_calmly(w);
    fake_server_open(w, 1, "gpu-2")->note_obs = look_at_urgency;
    fake_server_close(&w->fake_servers[0]);
    world_until(w, has_second_server);
    assert_int_equal(calm, 1);
}

static bool has_other_task(world *w)
{
    return strcmp(w->fake_servers[0].task, "bow") == 0;
}

static void another_task_is_sent_what_is_similar(void **state)
{
    world *w = *state;
    stream_calmly(w);
    assert_int_equal(td_edge_set_task(w->edge, "bow", NULL), TD_OK);
    world_until(w, has_other_task);
    assert_int_equal(calm, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(auto_tries_both_where_a_place_is_lent_and_decides),
        WORLD_TEST(auto_takes_jpeg_where_none_is),
        WORLD_TEST(auto_decides_again_for_another_server),
        WORLD_TEST(what_is_similar_goes_only_when_it_must),
        WORLD_TEST(a_picture_that_changed_goes),
        WORLD_TEST(another_server_is_sent_what_is_similar),
        WORLD_TEST(another_task_is_sent_what_is_similar),
    };
    return cmocka_run_group_tests_name("edge/publisher", tests, NULL, NULL);
}

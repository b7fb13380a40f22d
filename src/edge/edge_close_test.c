// SPDX-License-Identifier: Apache-2.0
#include "edge/edge_fixture.h"

static void stopping_ends_a_search_without_a_server(void **state)
{
    world *w = *state;
    for (int i = 0; i < 10; i++) {
        world_open(w);
        world_run(w);
        world_stop(w);
        assert_int_equal(w->result, TD_OK);
        world_close(w);
    }
}

static bool was_left_alone(world *w)
{
    td_net_request *request = NULL;
    fake_server *p = &w->fake_servers[0];
    if (td_queue_pop(p->asked, &request) != TD_OK) return false;
    assert_int_equal(td_queue_push(p->asked, &request), TD_OK);
    return true;
}

static void stopping_ends_a_query_that_nobody_answers(void **state)
{
    world *w = *state;
    fake_server_open(w, 0, "gpu-1")->mute = true;
    world_open(w);
    world_run(w);
    world_until(w, was_left_alone);
    world_stop(w);
    assert_int_equal(w->result, TD_OK);
}

// The last word of a query races with a stop, and then with the end of all.
static void stopping_races_with_a_query(void **state)
{
    world *w = *state;
    fake_server *p = fake_server_open(w, 0, "gpu-1");
    for (int i = 0; i < 100; i++) {
        p->queries = 0;
        world_open(w);
        world_run(w);
        if (i % 2) world_until(w, has_asked);
        world_stop(w);
        world_close(w);
    }
}

static void opening_and_closing_leaves_nothing_behind(void **state)
{
    world *w = *state;
    (void)fake_server_open(w, 0, "gpu-1");
    for (int i = 0; i < 50; i++) {
        world_open(w);
        world_close(w);
    }
    for (int i = 0; i < 10; i++) {
        world_stream(w);
        world_stop(w);
        world_close(w);
    }
}

static void closing_in_a_flood_of_answers_is_safe(void **state)
{
    static const float rows[ROWS * CHANNELS] = {0};
    world *w = *state;
    (void)fake_server_open(w, 0, "gpu-1");
    td_wire_action action = world_stray(rows);
    for (int i = 0; i < 5; i++) {
        world_stream(w);
        for (int j = 0; j < 1000; j++) {
            world_inject(w, &action);
            world_inject_bytes(w, &j, sizeof j);
        }
        world_stop(w);
        world_close(w);
    }
}

// Its own functions never return: all else ends, and waits for nobody.
static void a_robot_that_blocks_for_ever_keeps_only_itself(void **state)
{
    world *w = *state;
    (void)fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_block_driver(w, true);
    world_block_camera(w, 0);
    world_until(w, is_blocked);
    world_stop(w);
    assert_false(td_edge_end(w->edge, 0));
    td_net_close(TD_TAKE(w->net)); // nothing is declared on it any more
    assert_false(td_edge_end(w->edge, 0));
    world_block_driver(w, false);
    assert_false(td_edge_end(w->edge, 0)); // the camera
    world_block_camera(w, -1);
    assert_true(td_edge_end(w->edge, INT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(stopping_ends_a_search_without_a_server),
        WORLD_TEST(stopping_ends_a_query_that_nobody_answers),
        WORLD_TEST(stopping_races_with_a_query),
        WORLD_TEST(opening_and_closing_leaves_nothing_behind),
        WORLD_TEST(closing_in_a_flood_of_answers_is_safe),
        WORLD_TEST(a_robot_that_blocks_for_ever_keeps_only_itself),
    };
    return cmocka_run_group_tests_name("edge/edge_close", tests, NULL, NULL);
}

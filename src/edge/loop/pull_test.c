// SPDX-License-Identifier: Apache-2.0
// What a host and its own code may do to a running edge: pull, control, reset,
// change the task.
#include "edge/edge_fixture.h"

#include <math.h>
#include <stdatomic.h>

// The host's robot: it is where it was last commanded to be.
static struct host {
    float state[CHANNELS];
    uint64_t fresh;
    td_edge_step last;
    bool in_order; // every fresh command was the row after the last
} host;

static void pull(world *w)
{
    host.last = td_edge_pull(w->edge, host.state);
    if (!host.last.command) return;
    const float *row = host.last.command;
    if (host.last.fresh && host.fresh++ > 0)
        host.in_order &= row[0] == host.state[0] + 1 && row[1] == -row[0];
    memcpy(host.state, row, sizeof host.state);
}

static bool has_pulled_a_hundred(world *w)
{
    pull(w);
    return host.fresh >= 100;
}

static int pull_setup(void **state)
{
    host = (struct host){.in_order = true};
    int rc = world_setup(state);
    ((world *)*state)->config.pull = true;
    return rc;
}

static void a_host_pulls_row_by_row(void **state)
{
    world *w = *state;
    (void)fake_server_open(w, 0, "gpu-1");
    world_open(w);
    pull(w);
    assert_null(host.last.command);
    world_run(w);
    world_until(w, has_pulled_a_hundred);
    assert_true(host.in_order);
    size_t count;
    (void)world_commands(w, &count);
    assert_int_equal(count, 0); // nobody else writes to the robot
}

static bool is_starved_by_silence(world *w)
{
    pull(w);
    return host.last.starved;
}

static void a_host_holds_when_nothing_is_left(void **state)
{
    world *w = *state;
    fake_server_open(w, 0, "gpu-1")->answers_left = 1;
    world_open(w);
    world_run(w);
    world_until(w, is_starved_by_silence);
    float held[CHANNELS];
    memcpy(held, host.state, sizeof held);
    pull(w);
    assert_non_null(host.last.command);
    assert_memory_equal(host.last.command, held, sizeof held);
}

static bool is_down(world *w)
{
    pull(w);
    return host.last.failsafe == TD_EDGE_FAILSAFE_FOR_DRIVER;
}

static void a_host_that_pauses_too_long_is_a_driver_that_is_down(void **state)
{
    world *w = *state;
    w->config.driver_limit_ns = 1;
    world_open(w);
    pull(w);
    assert_int_equal(host.last.failsafe, TD_EDGE_FAILSAFE_FOR_NONE);
    world_until(w, is_down);
}

static bool has_missed(world *w)
{
    pull(w);
    td_edge_report_get(w->edge, &w->report);
    return w->report.missed_ticks > 0;
}

static void periods_that_a_host_misses_are_counted(void **state)
{
    static const struct {
        const char *name;
        int64_t period_ns;
        bool missed;
    } cases[] = {
        {"a host that is always late", TD_NS_PER_US, true},
        {"a host that is never late", 3600 * TD_NS_PER_S, false},
    };
    world *w = *state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        print_message("%s\n", cases[i].name);
        w->config.core.period_ns = cases[i].period_ns;
        world_open(w);
        assert_false(has_missed(w)); // the first one is on time
        if (cases[i].missed)
            world_until(w, has_missed);
        else
            assert_false(has_missed(w));
        world_close(w);
    }
}

static void a_state_that_is_not_finite_is_counted_and_not_used(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    world *w = *state;
    w->config.driver_limit_ns = 1;
    world_open(w);
    pull(w);
    for (size_t i = 0; i < TD_COUNT_OF(bad); i++) {
        host.state[CHANNELS - 1] = bad[i];
        world_until(w, is_down);
        td_edge_report_get(w->edge, &w->report);
        assert_true(w->report.driver_failed > i);
        assert_null(host.last.command);
    }
}

static struct controller {
    td_err err;
    float scale, offset;
    atomic_uint blind; // calls without a state
} controller;

static td_err control(void *user, const float *command, const float *state,
                      uint32_t channels, float *ret_out)
{
    struct controller *self = user;
    if (!state) atomic_fetch_add(&self->blind, 1);
    for (uint32_t i = 0; i < channels; i++)
        ret_out[i] = self->scale * command[i] + self->offset;
    return self->err;
}

static int control_setup(void **state)
{
    controller = (struct controller){.scale = 2};
    int rc = world_setup(state);
    world *w = *state;
    w->config.control = control;
    w->config.control_user = &controller;
    return rc;
}

static void a_controller_makes_what_the_robot_is_given(void **state)
{
    world *w = *state;
    controller.offset = 0.5f;
    (void)fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_merged_twenty);
    world_stop(w);
    assert_true(td_hist_count(td_edge_times_get(w->edge).control_ns) > 0);
    world_close(w);
    size_t count;
    const float *commands = world_commands(w, &count);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        float row = (commands[i * CHANNELS] - 0.5f) / 2;
        assert_true(row >= 0 && row == floorf(row));
        assert_true(commands[i * CHANNELS + 1] == 0.5f - 2 * row);
    }
}

static bool has_failed_often(world *w)
{
    return w->report.driver_failed >= 10;
}

static void a_controller_that_fails_or_lies_moves_nothing(void **state)
{
    static const struct {
        const char *name;
        td_err err;
        float offset;
    } cases[] = {
        {"fails", TD_ERR_IO, 0},
        {"lies", TD_OK, NAN},
    };
    world *w = *state;
    (void)fake_server_open(w, 0, "gpu-1");
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        print_message("%s\n", cases[i].name);
        controller.err = cases[i].err;
        controller.offset = cases[i].offset;
        world_stream(w);
        world_until(w, has_failed_often);
        world_stop(w);
        world_close(w);
        size_t count;
        (void)world_commands(w, &count);
        assert_int_equal(count, 0);
    }
}

static bool was_blind(world *w)
{
    (void)w;
    return atomic_load(&controller.blind) >= 3;
}

static void a_controller_knows_when_there_is_no_state(void **state)
{
    world *w = *state;
    (void)fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_merged_twenty);
    assert_int_equal(atomic_load(&controller.blind), 0);
    world_break_driver(w, true);
    world_until(w, was_blind);
}

static td_queue *letters; // td_net_msg *

// Transport's thread.
static void on_reset(void *user, const td_net_sample *sample)
{
    td_net_msg *msg = NULL;
    (void)user;
    if (td_net_keep(sample, &msg) != TD_OK) return;
    if (td_queue_push(letters, &msg) != TD_OK) td_net_msg_free(msg);
}

static uint64_t seen_episode;

static void note_episode(world *w, const td_wire_obs *obs)
{
    (void)w;
    seen_episode = obs->ident.episode;
}

static td_net_msg *letter;

static bool has_policy_state(world *w)
{
    (void)w;
    return letter || td_queue_pop(letters, &letter) == TD_OK;
}

static void assert_letter(world *w, uint64_t episode, const char *reason)
{
    td_slice bytes;
    td_wire_reset reset;
    world_until(w, has_policy_state);
    assert_int_equal(td_net_msg_bytes(letter, &bytes), TD_OK);
    assert_int_equal(
        td_wire_reset_decode(w->decoder, bytes.data, bytes.size, &reset, NULL),
        TD_OK);
    assert_true(td_wire_text_is(reset.client, "arm-0"));
    assert_int_equal(reset.boot, 7);
    assert_int_equal(reset.episode, episode);
    assert_true(td_wire_text_is(reset.reason, reason));
    td_net_msg_free(TD_TAKE(letter));
}

static bool is_in_episode_three(world *w)
{
    (void)w;
    return seen_episode == 3;
}

static uint64_t merged_before;

static bool was_merged_again(world *w)
{
    bool more = world_outcome(w, TD_EDGE_MERGED) > merged_before;
    merged_before = world_outcome(w, TD_EDGE_MERGED);
    return more;
}

static td_net_decl *resets_open(world *w)
{
    char key[TD_WIRE_MAX_KEY];
    td_net_decl *decl = NULL;
    assert_int_equal(td_queue_new(8, sizeof(td_net_msg *), &letters), TD_OK);
    world_key(w, w->config.client, "reset", key);
    assert_int_equal(
        td_net_subscribe(w->stranger, key, on_reset, NULL, &decl, NULL), TD_OK);
    return decl;
}

static void resets_close(td_net_decl *decl)
{
    assert_int_equal(td_net_undeclare(decl), TD_OK);
    td_queue_free(letters);
}

static void a_reset_is_sent_and_begins_the_next_episode(void **state)
{
    world *w = *state;
    td_net_decl *decl = resets_open(w);
    fake_server_open(w, 0, "gpu-1")->note_obs = note_episode;
    world_stream(w);
    world_until(w, has_merged_twenty);
    assert_int_equal(seen_episode, 1);
    assert_int_equal(td_edge_reset(w->edge, "the cup fell", NULL), TD_OK);
    assert_letter(w, 2, "the cup fell");
    assert_int_equal(td_edge_reset(w->edge, "", NULL), TD_OK);
    assert_letter(w, 3, "");
    world_until(w, is_in_episode_three);
    world_until(w, was_merged_again);
    assert_int_equal(td_edge_reset(w->edge, "\xff", NULL), TD_ERR_FORMAT);
    world_until(w, was_merged_again); // and nothing has changed
    assert_int_equal(seen_episode, 3);
    resets_close(decl);
}

static uint64_t sent_before;

static bool has_sent_five_more(world *w)
{
    return w->report.counts.sent >= sent_before + 5;
}

static void a_reset_arrives_where_observations_are_lost(void **state)
{
    world *w = *state;
    static const td_net_faults lossy = {.loss = 1};
    td_net_decl *decl = resets_open(w);
    fake_server *p = fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    assert_int_equal(td_net_hub_faults(w->hub, NULL, NULL, &lossy), TD_OK);
    assert_int_equal(td_edge_reset(w->edge, "the cup fell", NULL), TD_OK);
    assert_letter(w, 2, "the cup fell");
    fake_server_work(p); // what was sent before
    uint64_t seen = p->observations;
    sent_before = w->report.counts.sent;
    world_until(w, has_sent_five_more);
    assert_int_equal(p->observations, seen);
    resets_close(decl);
}

static bool has_the_new_task(world *w)
{
    return strcmp(w->fake_servers[0].task, "bow") == 0;
}

static void a_new_task_goes_with_the_next_observation(void **state)
{
    world *w = *state;
    (void)fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_merged_twenty);
    assert_string_equal(w->fake_servers[0].task, "wave");
    assert_int_equal(td_edge_set_task(w->edge, "bow", NULL), TD_OK);
    world_until(w, has_the_new_task);
    assert_int_equal(td_edge_set_task(w->edge, "\xff", NULL), TD_ERR_FORMAT);
}

// What the policy of this robot knows of it: more than its joints, by tens.
static struct policy_state {
    _Atomic bool fails;
    _Atomic uint32_t count; // numbers in the last observation
    _Atomic int first, last;
    _Atomic uint64_t seen;
} policy_state;

static td_err policy_state_read(void *user, float *ret_state, uint32_t channels)
{
    (void)user;
    if (atomic_load(&policy_state.fails)) return TD_ERR_IO;
    for (uint32_t i = 0; i < channels; i++)
        ret_state[i] = 10 * (float)(i + 1);
    return TD_OK;
}

static void note_policy_state(world *w, const td_wire_obs *obs)
{
    uint32_t count = obs->state.shape[0];
    float values[CHANNELS + 1] = {0};
    (void)w;
    memcpy(values, obs->state.data,
           (count < CHANNELS + 1 ? count : CHANNELS + 1) * sizeof values[0]);
    atomic_store(&policy_state.count, count);
    atomic_store(&policy_state.first, (int)values[0]);
    atomic_store(&policy_state.last, (int)values[CHANNELS]);
    atomic_fetch_add(&policy_state.seen, 1);
}

static int policy_state_setup(void **state)
{
    memset(&policy_state, 0, sizeof policy_state);
    int rc = world_setup(state);
    td_edge_config *config = &((world *)*state)->config;
    config->core.policy_states = config->profile.state_count = CHANNELS + 1;
    config->profile.states[CHANNELS] =
        (td_wire_channel){td_wire_text_of("force"), TD_WIRE_LINEAR};
    config->observe_state = policy_state_read;
    return rc;
}

static void a_policys_state_may_be_more_than_the_joints(void **state)
{
    world *w = *state;
    fake_server_open(w, 0, "gpu-1")->note_obs = note_policy_state;
    world_stream(w);
    world_until(w, has_merged_twenty);
    assert_int_equal(policy_state.count, CHANNELS + 1);
    assert_int_equal(policy_state.first, 10);
    assert_int_equal(policy_state.last, 10 * (CHANNELS + 1));
}

static bool has_failed_to_read(world *w)
{
    td_edge_report report;
    td_edge_report_get(w->edge, &report);
    return report.driver_failed >= 3;
}

static bool is_read_again(world *w)
{
    (void)w;
    return policy_state.seen > 0;
}

static void a_state_that_cannot_be_read_is_counted_and_waits(void **state)
{
    world *w = *state;
    atomic_store(&policy_state.fails, true);
    fake_server_open(w, 0, "gpu-1")->note_obs = note_policy_state;
    world_open(w);
    world_run(w);
    world_until(w, has_failed_to_read);
    assert_int_equal(policy_state.seen, 0);
    atomic_store(&policy_state.fails, false);
    world_until(w, is_read_again);
}

int main(void)
{
#define POLICY_STATE_TEST(test)                                                \
    cmocka_unit_test_setup_teardown(test, policy_state_setup, world_teardown)
#define PULL_TEST(test)                                                        \
    cmocka_unit_test_setup_teardown(test, pull_setup, world_teardown)
#define CONTROL_TEST(test)                                                     \
    cmocka_unit_test_setup_teardown(test, control_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        PULL_TEST(a_host_pulls_row_by_row),
        PULL_TEST(a_host_holds_when_nothing_is_left),
        PULL_TEST(a_host_that_pauses_too_long_is_a_driver_that_is_down),
        PULL_TEST(periods_that_a_host_misses_are_counted),
        PULL_TEST(a_state_that_is_not_finite_is_counted_and_not_used),
        CONTROL_TEST(a_controller_makes_what_the_robot_is_given),
        CONTROL_TEST(a_controller_that_fails_or_lies_moves_nothing),
        CONTROL_TEST(a_controller_knows_when_there_is_no_state),
        POLICY_STATE_TEST(a_policys_state_may_be_more_than_the_joints),
        POLICY_STATE_TEST(a_state_that_cannot_be_read_is_counted_and_waits),
        WORLD_TEST(a_reset_is_sent_and_begins_the_next_episode),
        WORLD_TEST(a_reset_arrives_where_observations_are_lost),
        WORLD_TEST(a_new_task_goes_with_the_next_observation),
    };
    return cmocka_run_group_tests_name("edge/pull", tests, NULL, NULL);
}

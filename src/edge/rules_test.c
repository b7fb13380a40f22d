// SPDX-License-Identifier: Apache-2.0
// Rules that are easy to get wrong and that no other test is about.
// docs/rules.md has them all, and which test is whose.
//
// In this program td_robot_hardware_write() and td_clock_sleep_until() are
// wrapped, so that a driver may be made to block and a tick to go quiet.
#include "edge/core/core_fixture.h"
#include "edge/edge_fixture.h"
#include "edge/observe/observe.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static td_slice encoded(int64_t captured_ns)
{
    const td_edge_core_settings settings = robot_settings();
    const td_edge_outgoing outgoing = {
        .request = {.seq = 3, .left = 20},
        .episode = 5,
        .cursor = 40,
        .captured_ns = captured_ns,
    };
    td_wire_obs obs;
    td_wire_encoder *encoder = NULL;
    td_edge_observe_fill(&settings, "arm-0", "wave", &outgoing,
                         captured_ns + 3 * TD_NS_PER_MS, &obs);
    assert_int_equal(obs.state.age_us, 3000);
    assert_int_equal(obs.priority, settings.priority);
    assert_int_equal(obs.budget_us, 20 * PERIOD_NS / TD_NS_PER_US);
    assert_int_equal(td_wire_encoder_new(&encoder), TD_OK);
    assert_int_equal(td_wire_obs_encode(encoder, &obs, NULL), TD_OK);
    size_t size = td_wire_encoder_size(encoder);
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    td_wire_encoder_join(encoder, bytes);
    td_wire_encoder_free(encoder);
    return (td_slice){bytes, size};
}

static void no_absolute_time_crosses_machines(void **state)
{
    (void)state;
    td_slice early = encoded(TD_NS_PER_S);
    td_slice late = encoded(1000000 * TD_NS_PER_S);
    assert_int_equal(early.size, late.size);
    assert_memory_equal(early.data, late.data, early.size);
    free((void *)(uintptr_t)early.data);
    free((void *)(uintptr_t)late.data);
}

#define TRIP_NS (10 * TD_NS_PER_MS)
#define CAPTURED_BEFORE_NS (500 * TD_NS_PER_MS)

// Plays chunks of `rows`, each observation captured long before it is put and
// answered soon after, and then one that is not answered. Returns when that was
// asked for, and how many rows were left.
static int64_t play_chunks(td_edge_core *core, uint32_t rows,
                           uint32_t *ret_left)
{
    int64_t now_ns = TD_NS_PER_S;
    for (int answers = 0;; now_ns += TD_NS_PER_MS) {
        td_edge_step step = robot_tick_alone(core, now_ns, 1);
        if (!step.ask) continue;
        *ret_left = step.left;
        if (answers++ == 20) return now_ns;
        const td_edge_sent sent = {
            .seq = step.seq,
            .episode = 5,
            .cursor = td_edge_core_cursor(core),
            .captured_ns = now_ns - CAPTURED_BEFORE_NS,
            .put_ns = now_ns,
        };
        assert_true(td_edge_core_sent(core, &sent));
        now_ns += TRIP_NS;
        robot_answered(core, now_ns, step.seq, rows, 0);
    }
}

static void two_round_trips_are_measured_and_never_mixed(void **state)
{
    (void)state;
    uint32_t left;
    td_edge_core_settings settings = robot_settings();
    settings.ask.resend_min_ns = TD_NS_PER_MS;
    settings.ask.resend_max_ns = 5 * TD_NS_PER_S;
    TD_AUTO(td_edge_core) *resends = robot_new(&settings);
    int64_t asked_ns = play_chunks(resends, 1, &left);
    int64_t again_ns = asked_ns + TD_NS_PER_MS;
    while (!robot_tick_alone(resends, again_ns, 1).ask)
        again_ns += TD_NS_PER_MS;
    assert_int_equal(again_ns - asked_ns, 3 * TRIP_NS); // put -> callback

    settings.ask.mode = TD_EDGE_ASK_AUTO;
    TD_AUTO(td_edge_core) *asks = robot_new(&settings);
    (void)play_chunks(asks, MAX_ROWS, &left);
    assert_true(left > MAX_ROWS / 4); // capture -> installed
}

static void a_value_that_is_not_finite_refuses_the_whole_chunk(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    const float value = NAN;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    assert_true(robot_tick(core, 0).ask);
    robot_answer answer;
    answer_fill(&answer, 1, 10, 100);
    memcpy(answer.bytes + 1 + 19 * sizeof value, &value, sizeof value);
    assert_int_equal(robot_hear(core, 0, &answer.action).outcome,
                     TD_EDGE_NOT_FINITE);
    assert_null(robot_tick(core, 0).command);
    assert_int_equal(td_edge_core_cursor(core), 0);
}

// A place where a thread can be made to stop, and where it is waited for.
typedef struct barrier {
    _Atomic bool closed, reached;
    td_event opened;
} barrier;

static barrier before_write, before_tick, in_blend;
static _Atomic(td_robot_hardware *) written_to; // the edge's own robot
static _Atomic uint64_t writes, changes;

static void barrier_close(barrier *b)
{
    td_event_init(&b->opened);
    atomic_store(&b->closed, true);
}

static void barrier_open(barrier *b)
{
    atomic_store(&b->closed, false);
    td_event_signal(&b->opened);
}

static void barrier_pass(barrier *b)
{
    if (!atomic_load(&b->closed)) return;
    atomic_store(&b->reached, true);
    (void)td_event_wait_until(&b->opened, INT64_MAX);
    atomic_store(&b->reached, false);
}

static _Atomic uint64_t blended, blended_elsewhere;

static void blend(void *user, uint64_t step, const float *old_row,
                  const float *new_row, uint32_t channels, float *ret_row)
{
    char name[16] = "";
    (void)user;
    (void)step;
    (void)old_row;
    (void)pthread_getname_np(pthread_self(), name, sizeof name);
    if (strcmp(name, "td-merge") != 0) atomic_fetch_add(&blended_elsewhere, 1);
    atomic_fetch_add(&blended, 1);
    barrier_pass(&in_blend);
    memcpy(ret_row, new_row, channels * sizeof *new_row);
}

static bool has_blended(world *w)
{
    (void)w;
    return atomic_load(&blended) > 100;
}

static void a_users_aggregation_runs_on_the_merge_thread_alone(void **state)
{
    world *w = *state;
    w->config.core.aggregate = TD_EDGE_CUSTOM;
    w->config.core.blend = blend;
    (void)fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_blended);
    assert_int_equal(atomic_load(&blended_elsewhere), 0);
}

#define HIGHEST 30

static bool has_played_beyond_it(world *w)
{
    return w->report.counts.fresh > 2 * HIGHEST;
}

// The tick's own commands: a driver that is late leaves some of them out.
static void assert_within_limits(const td_edge_trace *trace)
{
    td_edge_traced traced = td_edge_trace_read(trace);
    const float *last = NULL;
    assert_int_equal(traced.ticks_dropped, 0);
    for (size_t i = 0; i < traced.tick_count; i++) {
        const td_edge_traced_tick *tick = &traced.ticks[i];
        if (!tick->fresh && !tick->held) continue;
        assert_true(tick->commanded[0] <= HIGHEST);
        if (last) assert_true(fabsf(tick->commanded[1] - last[1]) <= 0.5001F);
        last = tick->commanded;
    }
    assert_non_null(last);
}

static void no_server_leads_beyond_the_robots_own_limits(void **state)
{
    world *w = *state;
    td_edge_trace_config config = td_edge_trace_defaults;
    config.channels = CHANNELS;
    TD_AUTO(td_edge_trace) *trace = NULL;
    assert_int_equal(td_edge_trace_new(&config, &trace), TD_OK);
    w->config.trace = trace;
    w->config.core.limits[0].max = HIGHEST;
    w->config.core.limits[1].max_step = 0.5;
    (void)fake_server_open(w, 0, "gpu-1"); // counts on and on, a step a tick
    world_stream(w);
    world_until(w, has_played_beyond_it);
    world_stop(w);
    world_close(w);
    td_edge_trace_drain(trace);
    assert_within_limits(trace);
}

td_err __real_td_robot_hardware_write(td_robot_hardware *robot, int64_t now_ns,
                                      const float *command);
td_err __wrap_td_robot_hardware_write(td_robot_hardware *robot, int64_t now_ns,
                                      const float *command);
void __real_td_clock_sleep_until(int64_t due_ns);
void __wrap_td_clock_sleep_until(int64_t due_ns);

td_err __wrap_td_robot_hardware_write(td_robot_hardware *robot, int64_t now_ns,
                                      const float *command)
{
    static float last[CHANNELS]; // driver's own
    if (robot == atomic_load(&written_to)) {
        if (last[0] != command[0] || last[1] != command[1])
            atomic_fetch_add(&changes, 1);
        memcpy(last, command, sizeof last);
        atomic_fetch_add(&writes, 1);
        barrier_pass(&before_write);
    }
    return __real_td_robot_hardware_write(robot, now_ns, command);
}

void __wrap_td_clock_sleep_until(int64_t due_ns)
{
    barrier_pass(&before_tick);
    __real_td_clock_sleep_until(due_ns);
}

static void begin(world *w)
{
    atomic_store(&written_to, w->robot);
    (void)fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_merged_twenty);
}

static uint64_t before; // of whatever is counted

static bool driver_blocks(world *w)
{
    (void)w;
    return atomic_load(&before_write.reached);
}

static bool ticks_on_and_holds(world *w)
{
    const td_edge_counts *counts = &w->report.counts;
    return counts->ticks > before + 100 &&
           counts->failsafes[TD_EDGE_FAILSAFE_FOR_DRIVER] > 0;
}

static bool plays_again(world *w)
{
    return w->report.counts.fresh > before;
}

static void a_driver_that_blocks_delays_itself(void **state)
{
    world *w = *state;
    w->config.driver_limit_ns = 20 * TD_NS_PER_MS;
    begin(w);
    barrier_close(&before_write);
    world_until(w, driver_blocks);
    before = w->report.counts.ticks;
    world_until(w, ticks_on_and_holds);
    assert_true(driver_blocks(w));
    before = w->report.counts.fresh;
    barrier_open(&before_write);
    world_until(w, plays_again);
}

static bool tick_is_quiet(world *w)
{
    (void)w;
    return atomic_load(&before_tick.reached);
}

static bool has_written_more(world *w)
{
    (void)w;
    return atomic_load(&writes) > before + 20;
}

static void a_driver_without_a_tick_sends_the_last_gated_command(void **state)
{
    world *w = *state;
    begin(w);
    barrier_close(&before_tick);
    world_until(w, tick_is_quiet);
    before = atomic_load(&writes);
    world_until(w, has_written_more); // the tick's last command among them
    uint64_t changed = atomic_load(&changes);
    before = atomic_load(&writes);
    world_until(w, has_written_more);
    assert_int_equal(atomic_load(&changes), changed);
    before = w->report.counts.fresh;
    barrier_open(&before_tick);
    world_until(w, plays_again);
}

static bool aggregation_blocks(world *w)
{
    (void)w;
    return atomic_load(&in_blend.reached);
}

static bool ticks_on_and_is_degraded(world *w)
{
    return w->report.counts.ticks > before + 100 &&
           w->report.state == TD_EDGE_DEGRADED;
}

// The session sees that it holds, and a new episode can begin: what is joined
// in the end is of no use any more.
static void a_users_aggregation_that_blocks_delays_nobody(void **state)
{
    world *w = *state;
    w->config.core.aggregate = TD_EDGE_CUSTOM;
    w->config.core.blend = blend;
    begin(w);
    barrier_close(&in_blend);
    world_until(w, aggregation_blocks);
    before = w->report.counts.ticks;
    world_until(w, ticks_on_and_is_degraded);
    assert_int_equal(td_edge_reset(w->edge, "", NULL), TD_OK);
    assert_true(aggregation_blocks(w));
    before = w->report.counts.fresh;
    barrier_open(&in_blend);
    world_until(w, plays_again);
    assert_true(w->report.counts.strays[TD_EDGE_STRAY_EPISODE] > 0);
}

static int rules_teardown(void **state)
{
    barrier_open(&in_blend);
    barrier_open(&before_write);
    barrier_open(&before_tick);
    return world_teardown(state);
}

#define RULES_TEST(test)                                                       \
    cmocka_unit_test_setup_teardown(test, world_setup, rules_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_absolute_time_crosses_machines),
        cmocka_unit_test(two_round_trips_are_measured_and_never_mixed),
        cmocka_unit_test(a_value_that_is_not_finite_refuses_the_whole_chunk),
        RULES_TEST(a_users_aggregation_runs_on_the_merge_thread_alone),
        RULES_TEST(a_users_aggregation_that_blocks_delays_nobody),
        RULES_TEST(no_server_leads_beyond_the_robots_own_limits),
        RULES_TEST(a_driver_that_blocks_delays_itself),
        RULES_TEST(a_driver_without_a_tick_sends_the_last_gated_command),
    };
    return cmocka_run_group_tests_name("edge/rules", tests, NULL, NULL);
}

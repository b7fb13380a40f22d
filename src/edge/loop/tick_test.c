// SPDX-License-Identifier: Apache-2.0
// Holds that the control tick allocates nothing, waits for nobody and touches
// no page for the first time.
#include "edge/edge_fixture.h"
#include "edge/loop/tick_witness.h"
#include "edge/record/episode_writer_fixture.h"

#ifdef WITNESS_IS_BLIND

static void the_tick_waits_for_nobody(void **state)
{
    (void)state;
    print_message("skipped: the sanitizer takes the place of malloc itself\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tick_waits_for_nobody),
    };
    return cmocka_run_group_tests_name("edge/tick", tests, NULL, NULL);
}

#else

#include "base/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WATCHED_TICKS 2000

static void assert_none(void)
{
    uint64_t sum = 0;
    for (witness_act act = 0; act < WITNESS_ACT_COUNT; act++) {
        uint64_t count = witness_count(act);
        if (count)
            print_error("%s: %llu (the last system call: %ld)\n",
                        witness_name(act), (unsigned long long)count,
                        witness_last_call());
        sum += count;
    }
    assert_int_equal(sum, 0);
}

static void assert_waited_for_nobody(void)
{
    assert_true(witness_is_filtered());
    assert_true(witness_ticks() >= WATCHED_TICKS);
    assert_none();
}

static void allocate(void)
{
    void *volatile memory = malloc(8);
    void *volatile larger = realloc(memory, 4096);
    free(larger);
    memory = calloc(2, 4);
    free(memory);
    memory = aligned_alloc(64, 64);
    free(memory);
    void *aligned = NULL;
    if (posix_memalign(&aligned, 64, 64) == 0) free(aligned);
}

static void wait_for_others(void)
{
    static pthread_rwlock_t both = PTHREAD_RWLOCK_INITIALIZER;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    static const struct timespec past = {0};
    sem_t sem;
    sem_init(&sem, 0, 1);
    sem_wait(&sem);
    sem_timedwait(&sem, &past);
    sem_destroy(&sem);
    pthread_rwlock_rdlock(&both);
    pthread_rwlock_unlock(&both);
    pthread_rwlock_wrlock(&both);
    pthread_rwlock_unlock(&both);
    pthread_mutex_lock(&lock);
    pthread_cond_timedwait(&never, &lock, &past);
    pthread_mutex_unlock(&lock);
    td_event event;
    td_event_init(&event);
    (void)td_event_wait_until(&event, 1);
}

static unsigned char *new_page(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    return page;
}

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static bool is_turned;

// A tick that does everything it must not.
static void misbehave(void *user)
{
    volatile unsigned char *page = user;
    for (int i = 0; i <= WITNESS_FIRST_TICKS; i++)
        td_clock_sleep_until(0);
    allocate();
    wait_for_others();
    *page = 1;
    td_clock_sleep_until(0);
    pthread_mutex_lock(&turn);
    while (!is_turned)
        pthread_cond_wait(&turned, &turn);
    pthread_mutex_unlock(&turn);
    (void)!write(STDERR_FILENO, "", 0);
}

static void every_forbidden_act_is_seen(void **state)
{
    (void)state;
    const td_thread_config config = {.name = "td-tick", .cpu = -1};
    td_thread *thread = NULL;
    unsigned char *page = new_page();
    witness_forget();
    assert_int_equal(td_thread_start(&config, misbehave, page, &thread, NULL),
                     TD_OK);
    int64_t until_ns = td_clock_monotonic_ns() + 30 * TD_NS_PER_S;
    while (witness_count(WITNESS_pthread_cond_wait) == 0 &&
           td_clock_monotonic_ns() < until_ns)
        sched_yield();
    pthread_mutex_lock(&turn);
    is_turned = true;
    pthread_cond_signal(&turned);
    pthread_mutex_unlock(&turn);
    td_thread_join(thread);
    (void)munmap(page, 4096);
    assert_true(witness_is_filtered());
    for (witness_act act = 0; act < WITNESS_ACT_COUNT; act++) {
        print_message("%s: %llu\n", witness_name(act),
                      (unsigned long long)witness_count(act));
        assert_true(witness_count(act) > 0);
    }
}

// What an intercepted function misses: the kernel's filter sees the call.
static void lock_within_libc(void *user)
{
    pthread_mutex_t *lock = user;
    for (int i = 0; i <= WITNESS_FIRST_TICKS; i++)
        td_clock_sleep_until(0);
    (void)pthread_mutex_clocklock(lock, CLOCK_MONOTONIC,
                                  &(struct timespec){.tv_sec = 1});
}

static void a_wait_that_nobody_intercepts_is_seen(void **state)
{
    (void)state;
    const td_thread_config config = {.name = "td-tick", .cpu = -1};
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    td_thread *thread = NULL;
    witness_forget();
    pthread_mutex_lock(&lock);
    assert_int_equal(
        td_thread_start(&config, lock_within_libc, &lock, &thread, NULL),
        TD_OK);
    td_thread_join(thread);
    pthread_mutex_unlock(&lock);
    assert_int_equal(witness_count(WITNESS_futex_wait), 0);
    assert_true(witness_count(WITNESS_system_call) > 0);
    assert_int_equal(witness_last_call(), SYS_futex);
}

static void acts_of_other_threads_are_not_counted(void **state)
{
    (void)state;
    unsigned char *page = new_page();
    witness_forget();
    allocate();
    wait_for_others();
    *(volatile unsigned char *)page = 1;
    (void)munmap(page, 4096);
    assert_none();
}

static int log_fd;

static int fast_setup(void **state)
{
    log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (log_fd < 0 || td_log_start(log_fd, TD_LOG_DEBUG) != TD_OK) return -1;
    witness_forget();
    int rc = world_setup(state);
    world *w = *state;
    w->config.core.period_ns = TD_NS_PER_MS;
    w->config.profile.step_period_us = 1000;
    w->config.metrics_period_ns = 10 * TD_NS_PER_MS;
    return rc;
}

static int fast_teardown(void **state)
{
    int rc = world_teardown(state);
    td_log_stop();
    close(log_fd);
    return rc;
}

static bool has_played(world *w)
{
    return w->report.counts.fresh >= WATCHED_TICKS &&
           witness_ticks() >= WATCHED_TICKS;
}

static void a_tick_that_plays_waits_for_nobody(void **state)
{
    world *w = *state;
    (void)fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_played);
    assert_waited_for_nobody();
}

static void a_tick_between_steps_waits_for_nobody(void **state)
{
    world *w = *state;
    w->config.core.period_ns = 10 * TD_NS_PER_MS;
    w->config.core.substeps = 10;
    w->config.core.kinds[1] = TD_WIRE_ANGLE;
    w->config.core.aggregate = TD_EDGE_WEIGHTED_AVERAGE;
    w->config.profile.step_period_us = 10000;
    w->config.profile.actions[1].kind = TD_WIRE_ANGLE;
    (void)fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_played);
    assert_waited_for_nobody();
}

// The ring is lapped, and what is kept grows meanwhile on another thread.
static void a_traced_tick_waits_for_nobody(void **state)
{
    world *w = *state;
    td_edge_trace_config config = td_edge_trace_defaults;
    td_edge_trace *trace = NULL;
    config.channels = CHANNELS;
    config.ring_ticks = 512;
    assert_int_equal(td_edge_trace_new(&config, &trace), TD_OK);
    w->config.trace = trace;
    (void)fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_played);
    assert_waited_for_nobody();
    world_stop(w);
    world_close(w);
    td_edge_trace_drain(trace);
    assert_true(td_edge_trace_read(trace).tick_count >= WATCHED_TICKS);
    td_edge_trace_free(trace);
}

static _Atomic bool disk_hangs;

static td_err add_when_it_goes(void *user, const td_dataset_frame *frame,
                               td_errinfo *info)
{
    while (atomic_load(&disk_hangs))
        td_clock_sleep_until(td_clock_monotonic_ns() + TD_NS_PER_MS);
    return store_add(user, frame, info);
}

static bool has_played_twice(world *w)
{
    return has_played(w) && witness_ticks() >= (uint64_t)2 * WATCHED_TICKS;
}

static void a_recorded_tick_waits_for_nobody(void **state)
{
    static memory_store stored;
    world *w = *state;
    w->config.record = store_sink(&stored);
    w->config.record.add = add_when_it_goes;
    w->config.record_begin = true;
    (void)fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_played);
    assert_true(stored.count > 0);
    atomic_store(&disk_hangs, true);
    world_until(w, has_played_twice);
    atomic_store(&disk_hangs, false);
    assert_waited_for_nobody();
}

static bool has_starved(world *w)
{
    return w->report.counts.starved >= 1000;
}

static void a_tick_without_a_server_waits_for_nobody(void **state)
{
    world *w = *state;
    fake_server *p = fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_merged_twenty);
    fake_server_close(p);
    world_until(w, has_starved);
    assert_int_equal(w->report.state, TD_EDGE_RECONNECTING);
    fake_server_reopen(p);
    world_until(w, is_streaming);
    world_until(w, has_played);
    assert_waited_for_nobody();
}

static bool has_acted(world *w)
{
    return w->report.counts.failsafes[TD_EDGE_FAILSAFE_FOR_DRIVER] > 0 &&
           witness_ticks() >= WATCHED_TICKS;
}

static void guard(world *w, const td_edge_failsafe_mode modes[CHANNELS])
{
    w->config.driver_limit_ns = 50 * TD_NS_PER_MS;
    for (size_t i = 0; i < CHANNELS; i++) {
        w->config.core.limits[i] = (td_edge_gate_channel){
            .min = -1e6, .max = 1e6, .max_step = 1, .max_accel_step = 0.1};
        w->config.core.failsafe[i] =
            (td_edge_failsafe_channel){.mode = modes[i], .safe_step = 0.01};
    }
}

static void a_tick_in_the_failsafe_waits_for_nobody(void **state)
{
    static const td_edge_failsafe_mode modes[][CHANNELS] = {
        {TD_EDGE_FAILSAFE_HOLD, TD_EDGE_FAILSAFE_ZERO_VELOCITY},
        {TD_EDGE_FAILSAFE_SAFE_POSE, TD_EDGE_FAILSAFE_REPEAT},
    };
    world *w = *state;
    (void)fake_server_open(w, 0, "gpu-1");
    for (size_t i = 0; i < TD_COUNT_OF(modes); i++) {
        witness_forget();
        guard(w, modes[i]);
        world_stream(w);
        world_until(w, has_merged_twenty);
        world_break_driver(w, true);
        world_until(w, has_acted);
        assert_waited_for_nobody();
        world_break_driver(w, false);
        world_stop(w);
        world_close(w);
    }
}

static bool has_played_in_a_flood(world *w)
{
    static const float rows[ROWS * CHANNELS];
    td_wire_action action = world_stray(rows);
    for (unsigned i = 0; i < 20; i++) {
        world_inject(w, &action);
        world_inject_bytes(w, &i, sizeof i);
    }
    return has_played(w) &&
           w->report.counts.strays[TD_EDGE_STRAY_MALFORMED] >= 1000;
}

static void a_tick_in_a_flood_waits_for_nobody(void **state)
{
    world *w = *state;
    (void)fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_played_in_a_flood);
    assert_waited_for_nobody();
}

static _Atomic bool host_stops;

// A host's own loop, under the name that is watched.
static void pull_on_time(void *user)
{
    static const float at[CHANNELS];
    int64_t due_ns = td_clock_monotonic_ns();
    td_thread_prefault_stack((size_t)64 << 10);
    while (!atomic_load(&host_stops)) {
        td_clock_sleep_until(due_ns += TD_NS_PER_MS);
        (void)td_edge_pull(user, at);
    }
}

static void a_host_that_pulls_waits_for_nobody(void **state)
{
    world *w = *state;
    const td_thread_config config = {.name = "td-tick", .cpu = -1};
    td_thread *host = NULL;
    w->config.pull = true;
    (void)fake_server_open(w, 0, "gpu-1");
    world_open(w);
    assert_int_equal(
        td_thread_start(&config, pull_on_time, w->edge, &host, NULL), TD_OK);
    world_run(w);
    world_until(w, has_played);
    assert_waited_for_nobody(); // before its end, which frees
    atomic_store(&host_stops, true);
    td_thread_join(host);
}

#define FAST_TEST(test)                                                        \
    cmocka_unit_test_setup_teardown(test, fast_setup, fast_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_forbidden_act_is_seen),
        cmocka_unit_test(a_wait_that_nobody_intercepts_is_seen),
        cmocka_unit_test(acts_of_other_threads_are_not_counted),
        FAST_TEST(a_tick_that_plays_waits_for_nobody),
        FAST_TEST(a_tick_between_steps_waits_for_nobody),
        FAST_TEST(a_traced_tick_waits_for_nobody),
        FAST_TEST(a_recorded_tick_waits_for_nobody),
        FAST_TEST(a_tick_without_a_server_waits_for_nobody),
        FAST_TEST(a_tick_in_the_failsafe_waits_for_nobody),
        FAST_TEST(a_tick_in_a_flood_waits_for_nobody),
        FAST_TEST(a_host_that_pulls_waits_for_nobody),
    };
    return cmocka_run_group_tests_name("edge/tick", tests, NULL, NULL);
}

#endif

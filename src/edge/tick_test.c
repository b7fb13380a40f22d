// SPDX-License-Identifier: Apache-2.0
// Holds that the control tick allocates nothing and waits for nobody. This
// program takes the place of the functions that could, for itself and for the
// libraries under it, and counts the calls that the tick's thread makes.
#include "edge/edge_fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER
#endif
#endif

#ifdef HAS_SANITIZER

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

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FIRST_TICKS 10 // not counted: what is there to be touched is touched

#define COUNTED(X)                                                             \
    X(malloc)                                                                  \
    X(calloc)                                                                  \
    X(realloc)                                                                 \
    X(free)                                                                    \
    X(posix_memalign)                                                          \
    X(aligned_alloc)                                                           \
    X(pthread_mutex_lock)                                                      \
    X(pthread_cond_wait)                                                       \
    X(pthread_cond_timedwait)                                                  \
    X(pthread_rwlock_rdlock)                                                   \
    X(pthread_rwlock_wrlock)                                                   \
    X(sem_wait)                                                                \
    X(sem_timedwait)                                                           \
    X(write)                                                                   \
    X(futex_wait)

enum {
#define COUNTED_ENUM(name) AT_##name,
    COUNTED(COUNTED_ENUM)
#undef COUNTED_ENUM
        COUNTED_COUNT
};

static const char *const names[] = {
#define COUNTED_NAME(name) #name,
    COUNTED(COUNTED_NAME)
#undef COUNTED_NAME
};

static _Atomic uint64_t counts[COUNTED_COUNT];
static _Thread_local bool is_tick;
static _Thread_local uint64_t ticks;

static void note(size_t which)
{
    if (is_tick && ticks > FIRST_TICKS) atomic_fetch_add(&counts[which], 1);
}

// INSTEAD(malloc, void *, (size_t size)) { ... } is linked in the place of
// malloc. REAL(malloc, ...) makes find_malloc(), whose place was taken.
#define INSTEAD(name, result, params)                                          \
    result our_##name params __asm__(#name);                                   \
    result our_##name params

#define REAL(name, result, params)                                             \
    static result(*_Atomic real_##name) params;                                \
    static result(*find_##name(void)) params                                   \
    {                                                                          \
        if (!real_##name) real_##name = dlsym(RTLD_NEXT, #name);               \
        return real_##name;                                                    \
    }

#define COUNT_CALL(name, result, params, args)                                 \
    REAL(name, result, params)                                                 \
    INSTEAD(name, result, params)                                              \
    {                                                                          \
        note(AT_##name);                                                       \
        return find_##name() args;                                             \
    }

COUNT_CALL(pthread_mutex_lock, int, (pthread_mutex_t * lock), (lock))
COUNT_CALL(pthread_cond_wait, int,
           (pthread_cond_t * cond, pthread_mutex_t *lock), (cond, lock))
COUNT_CALL(pthread_cond_timedwait, int,
           (pthread_cond_t * cond, pthread_mutex_t *lock,
            const struct timespec *until),
           (cond, lock, until))
COUNT_CALL(pthread_rwlock_rdlock, int, (pthread_rwlock_t * lock), (lock))
COUNT_CALL(pthread_rwlock_wrlock, int, (pthread_rwlock_t * lock), (lock))
COUNT_CALL(sem_wait, int, (sem_t * sem), (sem))
COUNT_CALL(sem_timedwait, int, (sem_t * sem, const struct timespec *until),
           (sem, until))
COUNT_CALL(write, ssize_t, (int fd, const void *bytes, size_t size),
           (fd, bytes, size))

// By their other names, since to look for them would allocate.
void *libc_malloc(size_t size) __asm__("__libc_malloc");
void *libc_calloc(size_t count, size_t size) __asm__("__libc_calloc");
void *libc_realloc(void *old, size_t size) __asm__("__libc_realloc");
void *libc_memalign(size_t align, size_t size) __asm__("__libc_memalign");
void libc_free(void *memory) __asm__("__libc_free");

INSTEAD(malloc, void *, (size_t size))
{
    note(AT_malloc);
    return libc_malloc(size);
}

INSTEAD(calloc, void *, (size_t count, size_t size))
{
    note(AT_calloc);
    return libc_calloc(count, size);
}

INSTEAD(realloc, void *, (void *old, size_t size))
{
    note(AT_realloc);
    return libc_realloc(old, size);
}

INSTEAD(free, void, (void *memory))
{
    note(AT_free);
    libc_free(memory);
}

INSTEAD(posix_memalign, int, (void **ret_memory, size_t align, size_t size))
{
    note(AT_posix_memalign);
    void *memory = libc_memalign(align, size);
    if (!memory) return ENOMEM;
    *ret_memory = memory;
    return 0;
}

INSTEAD(aligned_alloc, void *, (size_t align, size_t size))
{
    note(AT_aligned_alloc);
    return libc_memalign(align, size);
}

static bool is_futex_wait(long number, long operation)
{
    if (number != SYS_futex) return false;
    long command = operation & FUTEX_CMD_MASK;
    return command != FUTEX_WAKE && command != FUTEX_WAKE_BITSET;
}

REAL(syscall, long, (long number, ...))
INSTEAD(syscall, long, (long number, ...))
{
    long args[6];
    va_list list;
    va_start(list, number);
    for (size_t i = 0; i < TD_COUNT_OF(args); i++)
        args[i] = va_arg(list, long);
    va_end(list);
    if (is_futex_wait(number, args[1])) note(AT_futex_wait);
    return find_syscall()(number, args[0], args[1], args[2], args[3], args[4],
                          args[5]);
}

// How the tick is known, and counted.
REAL(pthread_setname_np, int, (pthread_t thread, const char *name))
INSTEAD(pthread_setname_np, int, (pthread_t thread, const char *name))
{
    is_tick = strcmp(name, "td-tick") == 0;
    return find_pthread_setname_np()(thread, name);
}

REAL(clock_nanosleep, int,
     (clockid_t clock, int flags, const struct timespec *until,
      struct timespec *rest))
INSTEAD(clock_nanosleep, int,
        (clockid_t clock, int flags, const struct timespec *until,
         struct timespec *rest))
{
    if (is_tick) ticks++;
    return find_clock_nanosleep()(clock, flags, until, rest);
}

static void forget(void)
{
    for (size_t i = 0; i < COUNTED_COUNT; i++)
        atomic_store(&counts[i], 0);
}

static void assert_none(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < COUNTED_COUNT; i++) {
        uint64_t count = atomic_load(&counts[i]);
        if (count)
            print_error("%s: %llu\n", names[i], (unsigned long long)count);
        sum += count;
    }
    assert_int_equal(sum, 0);
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

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static bool is_turned;

// A tick that does everything it must not.
static void misbehave(void *user)
{
    (void)user;
    for (int i = 0; i <= FIRST_TICKS; i++)
        td_clock_sleep_until(0);
    allocate();
    wait_for_others();
    pthread_mutex_lock(&turn);
    while (!is_turned)
        pthread_cond_wait(&turned, &turn);
    pthread_mutex_unlock(&turn);
    (void)!write(STDERR_FILENO, "", 0);
}

static void every_forbidden_call_is_seen(void **state)
{
    (void)state;
    const td_thread_config config = {.name = "td-tick", .cpu = -1};
    td_thread *thread = NULL;
    forget();
    assert_int_equal(td_thread_start(&config, misbehave, NULL, &thread, NULL),
                     TD_OK);
    int64_t until_ns = td_clock_now_ns(&td_clock_monotonic) + 30 * TD_NS_PER_S;
    while (atomic_load(&counts[AT_pthread_cond_wait]) == 0 &&
           td_clock_now_ns(&td_clock_monotonic) < until_ns)
        sched_yield();
    pthread_mutex_lock(&turn);
    is_turned = true;
    pthread_cond_signal(&turned);
    pthread_mutex_unlock(&turn);
    td_thread_join(thread);
    for (size_t i = 0; i < COUNTED_COUNT; i++) {
        print_message("%s: %llu\n", names[i],
                      (unsigned long long)atomic_load(&counts[i]));
        assert_true(atomic_load(&counts[i]) > 0);
    }
}

static void calls_of_other_threads_are_not_counted(void **state)
{
    (void)state;
    forget();
    allocate();
    wait_for_others();
    assert_none();
}

static int log_fd;

static int fast_setup(void **state)
{
    log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (log_fd < 0 || td_log_start(log_fd, TD_LOG_DEBUG) != TD_OK) return -1;
    forget();
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
    return w->report.counts.fresh >= 2000;
}

static void a_tick_that_plays_waits_for_nobody(void **state)
{
    world *w = *state;
    (void)puppet_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_played);
    assert_none();
}

static bool has_starved(world *w)
{
    return w->report.counts.starved >= 1000;
}

static void a_tick_without_a_server_waits_for_nobody(void **state)
{
    world *w = *state;
    puppet *p = puppet_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_merged_twenty);
    puppet_close(p);
    world_until(w, has_starved);
    assert_int_equal(w->report.state, TD_EDGE_RECONNECTING);
    puppet_reopen(p);
    world_until(w, is_streaming);
    world_until(w, has_played);
    assert_none();
}

static bool has_played_in_a_flood(world *w)
{
    static const float rows[ROWS * CHANNELS];
    td_wire_action action = world_stray(rows);
    for (unsigned i = 0; i < 20; i++) {
        world_shout(w, &action);
        world_shout_bytes(w, &i, sizeof i);
    }
    return has_played(w) &&
           w->report.counts.strays[TD_EDGE_STRAY_MALFORMED] >= 1000;
}

static void a_tick_in_a_flood_waits_for_nobody(void **state)
{
    world *w = *state;
    (void)puppet_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_played_in_a_flood);
    assert_none();
}

#define FAST_TEST(test)                                                        \
    cmocka_unit_test_setup_teardown(test, fast_setup, fast_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_forbidden_call_is_seen),
        cmocka_unit_test(calls_of_other_threads_are_not_counted),
        FAST_TEST(a_tick_that_plays_waits_for_nobody),
        FAST_TEST(a_tick_without_a_server_waits_for_nobody),
        FAST_TEST(a_tick_in_a_flood_waits_for_nobody),
    };
    return cmocka_run_group_tests_name("edge/tick", tests, NULL, NULL);
}

#endif

// SPDX-License-Identifier: Apache-2.0
// Counts what the control tick must not do, in two ways.
//
// By name: the functions that allocate, lock, wait or write are linked in the
// place of libc's own and count when the thread named td-tick calls them; then
// they call the real one. So a call is named in the failure of a test.
//
// By system call: a seccomp filter, which the tick's thread sets on itself
// after its first ticks, traps every system call but those that never wait. The
// trap's signal handler counts the call, which is refused: whatever way a wait
// is reached, it is seen. Page faults are counted by getrusage().
//
// The first ticks are let go: they touch what is there to be touched. Under a
// sanitizer, which takes malloc's place itself, there is nothing here.
#include "edge/loop/tick_witness.h"

#ifndef WITNESS_IS_BLIND

#include "base/err.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static const char *const names[] = {
#define WITNESS_TEXT(name) #name,
    WITNESS_ACTS(WITNESS_TEXT)
#undef WITNESS_TEXT
};

static _Atomic uint64_t counts[WITNESS_ACT_COUNT];
static _Atomic uint64_t watched_ticks;
static _Atomic long last_call;
static _Atomic bool filtered;

static _Thread_local bool is_tick;
static _Thread_local uint64_t ticks;
static _Thread_local long first_faults;

void witness_forget(void)
{
    for (size_t i = 0; i < WITNESS_ACT_COUNT; i++)
        atomic_store(&counts[i], 0);
    atomic_store(&watched_ticks, 0);
    atomic_store(&filtered, false);
}

const char *witness_name(witness_act act)
{
    return names[act];
}

uint64_t witness_count(witness_act act)
{
    return atomic_load(&counts[act]);
}

uint64_t witness_ticks(void)
{
    return atomic_load(&watched_ticks);
}

bool witness_is_filtered(void)
{
    return atomic_load(&filtered);
}

long witness_last_call(void)
{
    return atomic_load(&last_call);
}

static void note(witness_act act)
{
    if (is_tick && ticks > WITNESS_FIRST_TICKS)
        atomic_fetch_add(&counts[act], 1);
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
        note(WITNESS_##name);                                                  \
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
    note(WITNESS_malloc);
    return libc_malloc(size);
}

INSTEAD(calloc, void *, (size_t count, size_t size))
{
    note(WITNESS_calloc);
    return libc_calloc(count, size);
}

INSTEAD(realloc, void *, (void *old, size_t size))
{
    note(WITNESS_realloc);
    return libc_realloc(old, size);
}

INSTEAD(free, void, (void *memory))
{
    note(WITNESS_free);
    libc_free(memory);
}

INSTEAD(posix_memalign, int, (void **ret_memory, size_t align, size_t size))
{
    note(WITNESS_posix_memalign);
    void *memory = libc_memalign(align, size);
    if (!memory) return ENOMEM;
    *ret_memory = memory;
    return 0;
}

INSTEAD(aligned_alloc, void *, (size_t align, size_t size))
{
    note(WITNESS_aligned_alloc);
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
    if (is_futex_wait(number, args[1])) note(WITNESS_futex_wait);
    return find_syscall()(number, args[0], args[1], args[2], args[3], args[4],
                          args[5]);
}

#define LOAD(field)                                                            \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define IS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define ALLOW(name) IS(SYS_##name, 0, 1), RETURN(SECCOMP_RET_ALLOW)

// The first three are the tick's, getrusage is the witness's, and the rest is
// how a thread ends and a signal handler returns.
static struct sock_filter filter[] = {
    LOAD(nr),
    ALLOW(clock_nanosleep),
    ALLOW(clock_gettime),
    IS(SYS_futex, 0, 5),
    LOAD(args[1]), // the lower half, on little-endian machines
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, FUTEX_CMD_MASK & 0xffff),
    IS(FUTEX_WAKE, 1, 0),
    IS(FUTEX_WAKE_BITSET, 0, 1),
    RETURN(SECCOMP_RET_ALLOW),
    LOAD(nr),
    ALLOW(getrusage),
    ALLOW(exit),
    ALLOW(madvise),
    ALLOW(munmap),
    ALLOW(rt_sigprocmask),
    ALLOW(rt_sigreturn),
    RETURN(SECCOMP_RET_TRAP),
};

static void set_result(ucontext_t *context, long result)
{
#if defined(__x86_64__)
    context->uc_mcontext.gregs[REG_RAX] = result;
#elif defined(__aarch64__)
    context->uc_mcontext.regs[0] = (unsigned long long)result;
#endif
}

static long futex_limit(const ucontext_t *context)
{
#if defined(__x86_64__)
    return context->uc_mcontext.gregs[REG_R10];
#elif defined(__aarch64__)
    return (long)context->uc_mcontext.regs[3];
#endif
}

// On the tick's thread, in the place of the system call that was refused. A
// futex wait ends at once, as one does that may come back for no reason.
static void on_refused(int number, siginfo_t *info, void *user)
{
    (void)number;
    ucontext_t *context = user;
    note(WITNESS_system_call);
    atomic_store(&last_call, info->si_syscall);
    if (info->si_syscall != SYS_futex)
        set_result(context, -ENOSYS);
    else
        set_result(context, futex_limit(context) ? -ETIMEDOUT : -EAGAIN);
}

static void filter_this_thread(void)
{
    const struct sigaction action = {.sa_sigaction = on_refused,
                                     .sa_flags = SA_SIGINFO};
    const struct sock_fprog program = {TD_COUNT_OF(filter), filter};
    bool ok = sigaction(SIGSYS, &action, NULL) == 0 &&
              prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
              prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    atomic_store(&filtered, ok);
}

static long faults_so_far(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

// Between two ticks.
static void watch(void)
{
    if (++ticks < WITNESS_FIRST_TICKS) return;
    if (ticks == WITNESS_FIRST_TICKS) {
        filter_this_thread();
        first_faults = faults_so_far();
        return;
    }
    uint64_t faults = (uint64_t)(faults_so_far() - first_faults);
    atomic_store(&counts[WITNESS_page_fault], faults);
    atomic_fetch_add(&watched_ticks, 1);
}

// How the tick is known.
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
    if (is_tick) watch();
    return find_clock_nanosleep()(clock, flags, until, rest);
}

#endif

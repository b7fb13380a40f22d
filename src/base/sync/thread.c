// SPDX-License-Identifier: Apache-2.0
// Threads with a name, a priority and a processor, and what a real-time process
// asks of the kernel.
//
// td_thread_start() asks for what its config says and takes what it gets: a
// real-time priority or a processor that is refused is left out, and
// td_thread_refusal() says so in words, with the command that would allow it.
// An ordinary thread is given SCHED_OTHER explicitly, since it must not inherit
// a real-time creator's priority.
//
// `ended` is signalled when the thread's function has returned, so that
// td_thread_join_until() can wait for a time and give up without leaving the
// thread in doubt: after false it is still to be joined. Joining frees the
// thread.
//
// The rest are single requests: locking memory (asked for only where no limit
// could make a later allocation fail), keeping processors awake, keeping a
// thread off a processor, touching a stack before it is needed. Each is refused
// with what to do about it. No lock and no state of this file's own.
#include "base/sync/thread.h"

#include "base/sync/event.h"

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NAME_BYTES = 16, PAGE_BYTES = 4096 };

struct td_thread {
    pthread_t handle;
    void (*run)(void *user);
    void *user;
    td_event ended;
    char name[NAME_BYTES];
    char refusal[1024]; // empty: nothing was refused
};

// Both capabilities at once: setcap replaces those that the file had.
static void print_setcap(char *ret_text, size_t size)
{
    char program[256] = "tendon";
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) program[length] = '\0';
    snprintf(ret_text, size, "sudo setcap cap_sys_nice,cap_ipc_lock+ep %s",
             program);
}

static void add_refusal(td_thread *thread, const char *text)
{
    size_t used = strlen(thread->refusal);
    snprintf(thread->refusal + used, sizeof thread->refusal - used, "%s%s",
             used ? "; " : "", text);
}

static void refuse_priority(td_thread *thread, int priority)
{
    char setcap[320];
    print_setcap(setcap, sizeof setcap);
    char text[512];
    snprintf(text, sizeof text,
             "%s: real-time priority %d refused: run `%s`, or add the line "
             "`* - rtprio 99` to /etc/security/limits.conf and log in again",
             thread->name, priority, setcap);
    add_refusal(thread, text);
}

static void refuse_cpu(td_thread *thread, int cpu)
{
    char text[128];
    snprintf(text, sizeof text,
             "%s: CPU %d refused: choose one that `taskset -cp $$` lists",
             thread->name, cpu);
    add_refusal(thread, text);
}

static td_err check_config(const td_thread_config *config, td_errinfo *info)
{
    if (!config->name || strlen(config->name) >= NAME_BYTES)
        return td_fail(info, TD_ERR_INVALID,
                       "thread name \"%s\": must have at most %d characters",
                       config->name ? config->name : "", NAME_BYTES - 1);
    if (config->realtime_priority < 0 || config->realtime_priority > 99)
        return td_fail(info, TD_ERR_INVALID,
                       "thread %s: priority must be 0 to 99, got %d",
                       config->name, config->realtime_priority);
    if (config->cpu < -1)
        return td_fail(info, TD_ERR_INVALID,
                       "thread %s: CPU must be -1 or more, got %d",
                       config->name, config->cpu);
    return TD_OK;
}

static void *enter(void *user)
{
    td_thread *thread = user;
    pthread_setname_np(pthread_self(), thread->name);
    thread->run(thread->user);
    td_event_signal(&thread->ended);
    return NULL;
}

// Returns what pthread_create() does: EPERM means the priority, EINVAL the CPU.
static int create(td_thread *thread, int priority, int cpu)
{
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);
    if (rc != 0) return rc;

    // Explicit for ordinary threads too: they must not inherit a real-time
    // creator's priority.
    const struct sched_param param = {.sched_priority = priority};
    pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attr, priority > 0 ? SCHED_FIFO : SCHED_OTHER);
    pthread_attr_setschedparam(&attr, &param);
    if (cpu >= 0) {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET((size_t)cpu, &cpus);
        pthread_attr_setaffinity_np(&attr, sizeof cpus, &cpus);
    }

    rc = pthread_create(&thread->handle, &attr, enter, thread);
    pthread_attr_destroy(&attr);
    return rc;
}

static int create_with_what_is_allowed(td_thread *thread, int priority, int cpu)
{
    for (;;) {
        int rc = create(thread, priority, cpu);
        if (rc == EPERM && priority > 0) {
            refuse_priority(thread, priority);
            priority = 0;
        } else if (rc == EINVAL && cpu >= 0) {
            refuse_cpu(thread, cpu);
            cpu = -1;
        } else {
            return rc;
        }
    }
}

td_err td_thread_start(const td_thread_config *config, void (*run)(void *user),
                       void *user, td_thread **ret_thread, td_errinfo *info)
{
    TD_TRY(check_config(config, info));

    td_thread *thread = calloc(1, sizeof *thread);
    if (!thread) return TD_ERR_NOMEM;
    thread->run = run;
    thread->user = user;
    td_event_init(&thread->ended);
    snprintf(thread->name, sizeof thread->name, "%s", config->name);

    int rc = create_with_what_is_allowed(thread, config->realtime_priority,
                                         config->cpu);
    if (rc != 0) {
        free(thread);
        return td_fail(info, TD_ERR_LIMIT, "thread %s: cannot start: %s",
                       config->name, strerror(rc));
    }
    *ret_thread = thread;
    return TD_OK;
}

const char *td_thread_refusal(const td_thread *thread)
{
    return thread->refusal[0] ? thread->refusal : NULL;
}

void td_thread_join(td_thread *thread)
{
    pthread_join(thread->handle, NULL);
    free(thread);
}

bool td_thread_join_until(td_thread *thread, int64_t until_ns)
{
    if (!td_event_wait_until(&thread->ended, until_ns)) return false;
    td_thread_join(thread);
    return true;
}

static bool may_lock_without_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
        limit.rlim_cur == RLIM_INFINITY)
        return true;

    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    if (syscall(SYS_capget, &header, data) != 0) return false;
    return data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &
           CAP_TO_MASK(CAP_IPC_LOCK);
}

td_err td_thread_lock_memory(td_errinfo *info)
{
    // Asked first: below a limit the call itself may succeed, and a later
    // allocation then fails. Pages are locked when they are first touched:
    // filling every thread's stack and every pool at once takes seconds.
    if (may_lock_without_limit() &&
        mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0)
        return TD_OK;

    char setcap[320];
    print_setcap(setcap, sizeof setcap);
    return td_fail(info, TD_ERR_DENIED,
                   "locking memory refused: run `%s`, or add the line "
                   "`* - memlock unlimited` to /etc/security/limits.conf and "
                   "log in again",
                   setcap);
}

td_err td_thread_stay_awake(int32_t wake_us, int *ret_fd, td_errinfo *info)
{
    static const char device[] = "/dev/cpu_dma_latency";
    int fd = open(device, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && write(fd, &wake_us, sizeof wake_us) == sizeof wake_us) {
        *ret_fd = fd;
        return TD_OK;
    }
    int reason = errno;
    if (fd >= 0) (void)close(fd);
    return td_fail(info, TD_ERR_DENIED,
                   "keeping the CPUs awake refused (%s: %s): run `sudo chmod "
                   "o+rw %s`, or set realtime.wake_us to -1",
                   device, strerror(reason), device);
}

td_err td_thread_keep_off(int cpu, cpu_set_t *ret_before, td_errinfo *info)
{
    cpu_set_t before;
    CPU_ZERO(&before);
    if (sched_getaffinity(0, sizeof before, &before) != 0)
        return td_fail(info, TD_ERR_DENIED, "CPUs of this thread: %s",
                       strerror(errno));
    cpu_set_t others = before;
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_CLR((size_t)cpu, &others);
    if (CPU_COUNT(&others) == 0 ||
        sched_setaffinity(0, sizeof others, &others) != 0)
        return td_fail(info, TD_ERR_DENIED,
                       "CPU %d cannot be left to one thread: there is no other "
                       "to run on",
                       cpu);
    *ret_before = before;
    return TD_OK;
}

void td_thread_run_on(const cpu_set_t *cpus)
{
    (void)sched_setaffinity(0, sizeof *cpus, cpus);
}

void td_thread_prefault_stack(size_t bytes)
{
    volatile char *stack = alloca(bytes);
    for (size_t i = 0; i < bytes; i += PAGE_BYTES)
        stack[i] = 0;
}

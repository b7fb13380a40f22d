// SPDX-License-Identifier: Apache-2.0
#include "base/sync/thread.h"

#include "base/sync/event.h"

#include <linux/capability.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

enum { PRIORITY = 80, ABSENT_CPU = CPU_SETSIZE - 1 };
enum {
    PAGE_BYTES = 4096,
    STACK_BYTES = 64 * PAGE_BYTES,
    SPARE_BYTES = 16 * PAGE_BYTES
};

// What a thread finds out about itself.
struct witness {
    bool ran;
    char name[16];
    int policy;
    int priority;
    cpu_set_t cpus;
};

static void look(void *user)
{
    struct witness *witness = user;
    witness->ran = true;
    pthread_getname_np(pthread_self(), witness->name, sizeof witness->name);
    struct sched_param param;
    pthread_getschedparam(pthread_self(), &witness->policy, &param);
    witness->priority = param.sched_priority;
    sched_getaffinity(0, sizeof witness->cpus, &witness->cpus);
}

// Runs one thread to its end; `ret_refusal` is empty if nothing was refused.
static struct witness run(td_thread_config config, char ret_refusal[1024])
{
    struct witness witness = {0};
    td_thread *thread = NULL;
    td_errinfo info = {0};
    td_err err = td_thread_start(&config, look, &witness, &thread, &info);
    if (err != TD_OK) fail_msg("%s: %s", td_err_name(err), info.text);
    const char *refusal = td_thread_refusal(thread);
    snprintf(ret_refusal, 1024, "%s", refusal ? refusal : "");
    td_thread_join(thread);
    assert_true(witness.ran);
    return witness;
}

static struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
static struct rlimit rtprio, memlock;

static void set_caps(const struct __user_cap_data_struct *data)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

// Makes this thread one that may neither raise its priority nor lock memory.
static int drop_permissions(void **state)
{
    (void)state;
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    assert_int_equal(syscall(SYS_capget, &header, caps), 0);
    struct __user_cap_data_struct fewer[_LINUX_CAPABILITY_U32S_3];
    memcpy(fewer, caps, sizeof caps);
    fewer[CAP_TO_INDEX(CAP_SYS_NICE)].effective &= ~CAP_TO_MASK(CAP_SYS_NICE);
    fewer[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
    set_caps(fewer);

    getrlimit(RLIMIT_RTPRIO, &rtprio);
    getrlimit(RLIMIT_MEMLOCK, &memlock);
    setrlimit(RLIMIT_RTPRIO, &(struct rlimit){0, rtprio.rlim_max});
    setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){65536, memlock.rlim_max});
    return 0;
}

static int restore_permissions(void **state)
{
    (void)state;
    set_caps(caps);
    setrlimit(RLIMIT_RTPRIO, &rtprio);
    setrlimit(RLIMIT_MEMLOCK, &memlock);
    return 0;
}

static const struct {
    const char *name;
    td_thread_config config;
    const char *says;
} refused_configs[] = {
    {"no name", {NULL, 0, -1}, "name"},
    {"name of 16", {"sixteen-letters-", 0, -1}, "at most 15"},
    {"priority too low", {"t", -1, -1}, "got -1"},
    {"priority too high", {"t", 100, -1}, "got 100"},
    {"CPU too low", {"t", 0, -2}, "got -2"},
};

static void a_config_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(refused_configs); i++) {
        td_thread *thread = NULL;
        td_errinfo info = {0};
        td_err err = td_thread_start(&refused_configs[i].config, look, NULL,
                                     &thread, &info);
        if (err != TD_ERR_INVALID || thread ||
            !strstr(info.text, refused_configs[i].says))
            fail_msg("%s: %s", refused_configs[i].name, info.text);
    }
}

static void a_thread_bears_its_name(void **state)
{
    (void)state;
    char refusal[1024];
    struct witness witness =
        run((td_thread_config){"edge-tick-12345", 0, -1}, refusal);
    assert_string_equal(witness.name, "edge-tick-12345");
    assert_string_equal(refusal, "");
    assert_int_equal(witness.policy, SCHED_OTHER);
}

static void real_time_is_given_or_refused_in_words(void **state)
{
    (void)state;
    char refusal[1024];
    struct witness witness =
        run((td_thread_config){"tick", PRIORITY, -1}, refusal);
    bool is_given = refusal[0] == '\0';
    assert_int_equal(witness.policy, is_given ? SCHED_FIFO : SCHED_OTHER);
    assert_int_equal(witness.priority, is_given ? PRIORITY : 0);
}

static void refused_priority_leaves_an_ordinary_thread(void **state)
{
    (void)state;
    char refusal[1024];
    struct witness witness =
        run((td_thread_config){"tick", PRIORITY, -1}, refusal);
    assert_int_equal(witness.policy, SCHED_OTHER);
    assert_non_null(strstr(refusal, "tick: real-time priority 80 refused"));
    assert_non_null(strstr(refusal, "sudo setcap cap_sys_nice"));
    assert_non_null(strstr(refusal, "thread_test"));
    assert_non_null(strstr(refusal, "/etc/security/limits.conf"));
    assert_null(strchr(refusal, '\n'));
}

static int first_allowed_cpu(void)
{
    cpu_set_t cpus;
    assert_int_equal(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    int cpu = 0;
    while (!CPU_ISSET((size_t)cpu, &cpus))
        cpu++;
    return cpu;
}

static void a_thread_stays_on_its_cpu(void **state)
{
    (void)state;
    int cpu = first_allowed_cpu();
    char refusal[1024];
    struct witness witness = run((td_thread_config){"tick", 0, cpu}, refusal);
    assert_string_equal(refusal, "");
    assert_int_equal(CPU_COUNT(&witness.cpus), 1);
    assert_true(CPU_ISSET((size_t)cpu, &witness.cpus));
}

static void an_absent_cpu_is_refused_in_words(void **state)
{
    (void)state;
    char refusal[1024];
    struct witness witness =
        run((td_thread_config){"tick", 0, ABSENT_CPU}, refusal);
    assert_non_null(strstr(refusal, "tick: CPU 1023 refused"));
    assert_true(CPU_ISSET((size_t)first_allowed_cpu(), &witness.cpus));
}

static void two_refusals_stand_in_one_line(void **state)
{
    (void)state;
    char refusal[1024];
    run((td_thread_config){"tick", PRIORITY, ABSENT_CPU}, refusal);
    assert_non_null(strstr(refusal, "priority 80 refused"));
    assert_non_null(strstr(refusal, "CPU 1023 refused"));
    assert_null(strchr(refusal, '\n'));
}

static void memory_is_locked_or_denied_in_words(void **state)
{
    (void)state;
    td_errinfo info = {0};
    td_err err = td_thread_lock_memory(&info);
    if (err == TD_OK) {
        munlockall();
        assert_string_equal(info.text, "");
    } else {
        assert_int_equal(err, TD_ERR_DENIED);
        assert_non_null(strstr(info.text, "memlock"));
    }
}

static void memory_below_a_limit_is_not_locked(void **state)
{
    (void)state;
    td_errinfo info = {0};
    assert_int_equal(td_thread_lock_memory(&info), TD_ERR_DENIED);
    assert_non_null(strstr(info.text, "sudo setcap"));
    assert_non_null(strstr(info.text, "cap_ipc_lock"));
    assert_non_null(strstr(info.text, "memlock unlimited"));
}

struct faults {
    long before_use;
    long after_use;
};

static long faults_so_far(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

static void use_stack(void)
{
    volatile char stack[STACK_BYTES];
    for (size_t i = 0; i < sizeof stack; i += PAGE_BYTES)
        stack[i] = 1;
}

static void prefault_and_use(void *user)
{
    struct faults *faults = user;
    td_thread_prefault_stack(STACK_BYTES + SPARE_BYTES);
    faults->before_use = faults_so_far();
    use_stack();
    faults->after_use = faults_so_far();
}

static void a_cpu_is_left_to_one_thread(void **state)
{
    (void)state;
    cpu_set_t at_first, before, now;
    assert_int_equal(sched_getaffinity(0, sizeof at_first, &at_first), 0);
    if (CPU_COUNT(&at_first) < 2) skip();
    int cpu = 0;
    while (!CPU_ISSET((size_t)cpu, &at_first))
        cpu++;
    assert_int_equal(td_thread_keep_off(cpu, &before, NULL), TD_OK);
    struct witness beside = {0}, alone = {0};
    const td_thread_config any = {.name = "beside", .cpu = -1};
    const td_thread_config own = {.name = "alone", .cpu = cpu};
    td_thread *thread;
    assert_int_equal(td_thread_start(&any, look, &beside, &thread, NULL),
                     TD_OK);
    td_thread_join(thread);
    assert_int_equal(td_thread_start(&own, look, &alone, &thread, NULL), TD_OK);
    td_thread_join(thread);
    assert_false(CPU_ISSET((size_t)cpu, &beside.cpus));
    assert_true(CPU_ISSET((size_t)cpu, &alone.cpus));
    assert_int_equal(CPU_COUNT(&alone.cpus), 1);
    td_thread_run_on(&before);
    assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
    assert_true(CPU_EQUAL(&now, &at_first));
}

static void the_only_cpu_is_not_left(void **state)
{
    (void)state;
    cpu_set_t at_first, one, before;
    assert_int_equal(sched_getaffinity(0, sizeof at_first, &at_first), 0);
    int cpu = 0;
    while (!CPU_ISSET((size_t)cpu, &at_first))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    td_thread_run_on(&one);
    td_errinfo info = {""};
    assert_int_equal(td_thread_keep_off(cpu, &before, &info), TD_ERR_DENIED);
    assert_non_null(strstr(info.text, "there is no other"));
    td_thread_run_on(&at_first);
}

static void the_cpus_stay_awake_or_it_is_denied_in_words(void **state)
{
    (void)state;
    int fd = -1;
    int32_t held_us = -1;
    td_errinfo info = {""};
    td_err err = td_thread_stay_awake(7, &fd, &info);
    if (err == TD_ERR_DENIED) {
        assert_non_null(strstr(info.text, "/dev/cpu_dma_latency"));
        assert_int_equal(fd, -1);
        return;
    }
    assert_int_equal(err, TD_OK);
    assert_int_equal(read(fd, &held_us, sizeof held_us), sizeof held_us);
    assert_in_range(held_us, 0, 7); // the least that anyone asks for
    (void)close(fd);
}

static void a_prefaulted_stack_does_not_fault(void **state)
{
    (void)state;
    struct faults faults;
    td_thread *thread = NULL;
    const td_thread_config config = {"stack", 0, -1};
    assert_int_equal(
        td_thread_start(&config, prefault_and_use, &faults, &thread, NULL),
        TD_OK);
    td_thread_join(thread);
    assert_in_range(faults.after_use - faults.before_use, 0, 2);
}

static void wait_for_word(void *user)
{
    (void)td_event_wait_until(user, INT64_MAX);
}

static void a_thread_that_goes_on_is_not_joined(void **state)
{
    (void)state;
    td_event word;
    td_thread *thread = NULL;
    const td_thread_config config = {"patient", 0, -1};
    td_event_init(&word);
    assert_int_equal(
        td_thread_start(&config, wait_for_word, &word, &thread, NULL), TD_OK);
    assert_false(td_thread_join_until(thread, 0));
    td_event_signal(&word);
    assert_true(td_thread_join_until(thread, INT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_config_that_makes_no_sense_is_refused),
        cmocka_unit_test(a_thread_bears_its_name),
        cmocka_unit_test(a_thread_that_goes_on_is_not_joined),
        cmocka_unit_test(real_time_is_given_or_refused_in_words),
        cmocka_unit_test_setup_teardown(
            refused_priority_leaves_an_ordinary_thread, drop_permissions,
            restore_permissions),
        cmocka_unit_test(a_thread_stays_on_its_cpu),
        cmocka_unit_test(an_absent_cpu_is_refused_in_words),
        cmocka_unit_test_setup_teardown(two_refusals_stand_in_one_line,
                                        drop_permissions, restore_permissions),
        cmocka_unit_test(memory_is_locked_or_denied_in_words),
        cmocka_unit_test_setup_teardown(memory_below_a_limit_is_not_locked,
                                        drop_permissions, restore_permissions),
        cmocka_unit_test(a_cpu_is_left_to_one_thread),
        cmocka_unit_test(the_only_cpu_is_not_left),
        cmocka_unit_test(the_cpus_stay_awake_or_it_is_denied_in_words),
        cmocka_unit_test(a_prefaulted_stack_does_not_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include "base/sync/event.h"
#include "base/sync/thread.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { OUTPUT_BYTES = 1 << 20, FLOOD = 20000, EACH = 400 };

static char output[OUTPUT_BYTES];

// The linker sends the program's own calls of these here (--wrap).
static _Thread_local size_t allocations, wakes, formats, locks;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void __real_td_event_signal(td_event *event);
void __wrap_td_event_signal(td_event *event);
int __real_vsnprintf(char *text, size_t size, const char *fmt, va_list args);
int __wrap_vsnprintf(char *text, size_t size, const char *fmt, va_list args);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}
void *__wrap_calloc(size_t count, size_t size)
{
    allocations++;
    return __real_calloc(count, size);
}
void *__wrap_realloc(void *memory, size_t size)
{
    allocations++;
    return __real_realloc(memory, size);
}
void *__wrap_aligned_alloc(size_t align, size_t size)
{
    allocations++;
    return __real_aligned_alloc(align, size);
}
void __wrap_td_event_signal(td_event *event)
{
    wakes++;
    __real_td_event_signal(event);
}
int __wrap_vsnprintf(char *text, size_t size, const char *fmt, va_list args)
{
    formats++;
    return __real_vsnprintf(text, size, fmt, args);
}
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    locks++;
    return __real_pthread_mutex_lock(mutex);
}

static int start_to_memory(td_log_level level)
{
    int fd = memfd_create("log", 0);
    assert_true(fd >= 0);
    assert_int_equal(td_log_start(fd, level), TD_OK);
    return fd;
}

// Stops the log and leaves everything it wrote in `output`.
static void stop_and_read(int fd)
{
    td_log_stop();
    ssize_t size = pread(fd, output, sizeof output - 1, 0);
    assert_true(size >= 0);
    output[size] = '\0';
    close(fd);
}

// The text of a line "SECONDS LEVEL TEXT", from its first character on.
static const char *text_of(const char *line)
{
    int at = 0;
    sscanf(line, "%*u.%*3u %*5s %n", &at);
    return at ? line + at : "(not a line)";
}

// Whether the output is this one line.
static bool is_output_text(const char *text)
{
    const char *line = text_of(output);
    size_t size = strlen(text);
    return strncmp(line, text, size) == 0 && strcmp(line + size, "\n") == 0;
}

static void a_line_has_the_time_the_level_and_the_text(void **state)
{
    (void)state;
    int fd = start_to_memory(TD_LOG_DEBUG);
    td_log(TD_LOG_WARN, "edge: no chunk for {} s", 1.5);
    td_log(TD_LOG_ERROR, "edge: stopped");
    stop_and_read(fd);

    double warn_s, error_s;
    int end = 0;
    sscanf(output,
           "%lf warn  edge: no chunk for 1.5 s\n%lf error edge: stopped\n%n",
           &warn_s, &error_s, &end);
    assert_int_equal(end, strlen(output));
    assert_true(warn_s >= 0 && error_s >= warn_s);
    assert_non_null(strstr(output, " warn  edge"));
}

static void placeholders_are_filled_in_order(void **state)
{
    (void)state;
    const struct {
        const char *name;
        const char *fmt;
        td_log_arg args[2];
        size_t count;
        const char *text;
    } cases[] = {
        {"none", "plain", {{0}}, 0, "plain"},
        {"negative", "{}", {TD_LOG_ARG(-5)}, 1, "-5"},
        {"large", "{}", {TD_LOG_ARG(INT64_MIN)}, 1, "-9223372036854775808"},
        {"bool", "{}", {TD_LOG_ARG((_Bool)1)}, 1, "1"},
        {"float", "{}", {TD_LOG_ARG(0.25f)}, 1, "0.25"},
        {"not a number", "{}", {TD_LOG_ARG(__builtin_inf())}, 1, "inf"},
        {"string", "<{}>", {TD_LOG_ARG("obs")}, 1, "<obs>"},
        {"no string", "{}", {TD_LOG_ARG((char *)NULL)}, 1, "(null)"},
        {"side by side", "{}{}", {TD_LOG_ARG(1), TD_LOG_ARG(2)}, 2, "12"},
        {"too few arguments", "{} {}", {TD_LOG_ARG(1)}, 1, "1 {}"},
        {"too many arguments", "{}", {TD_LOG_ARG(1), TD_LOG_ARG(2)}, 2, "1"},
        {"control characters",
         "{}!",
         {TD_LOG_ARG("a\n\033[1mb")},
         1,
         "a  [1mb!"},
        {"control characters of two bytes",
         "a{}!",
         {TD_LOG_ARG("\xc2\x9b"
                     "2J\xc2\x80\xc2\x9f")},
         1,
         "a  2J    !"},
        {"characters like them",
         "{}",
         {TD_LOG_ARG("\xc2\xa0\xc3\x9b\xe2\x82\x9b\xc2")},
         1,
         "\xc2\xa0\xc3\x9b\xe2\x82\x9b\xc2"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        int fd = start_to_memory(TD_LOG_DEBUG);
        td_log_args(TD_LOG_INFO, cases[i].fmt, cases[i].args, cases[i].count);
        stop_and_read(fd);
        if (!is_output_text(cases[i].text))
            fail_msg("%s: %s", cases[i].name, output);
    }
}

static void all_six_arguments_arrive(void **state)
{
    (void)state;
    int fd = start_to_memory(TD_LOG_DEBUG);
    td_log(TD_LOG_INFO, "{} {} {} {} {} {}", 1, 2u, 3L, 4.5, "five", 6ULL);
    stop_and_read(fd);
    assert_true(is_output_text("1 2 3 4.5 five 6"));
}

static void text_is_copied_and_cut(void **state)
{
    (void)state;
    int fd = start_to_memory(TD_LOG_DEBUG);
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    td_log_text(TD_LOG_INFO, "key %s", text);
    memset(text, 'y', sizeof text - 1);
    stop_and_read(fd);

    const char *line = text_of(output);
    assert_int_equal(strncmp(line, "key xxx", 7), 0);
    assert_int_equal(strspn(line + 4, "x"), 595);
    assert_string_equal(line + 599, "\n");
}

static void lines_below_the_level_are_not_taken(void **state)
{
    (void)state;
    uint64_t before = td_log_dropped();
    int fd = start_to_memory(TD_LOG_WARN);
    td_log(TD_LOG_INFO, "no");
    td_log_text(TD_LOG_DEBUG, "no");
    td_log(TD_LOG_WARN, "yes");
    stop_and_read(fd);
    assert_true(is_output_text("yes"));
    assert_int_equal(td_log_dropped(), before);
}

static void lines_while_not_running_are_counted_and_reported(void **state)
{
    (void)state;
    uint64_t before = td_log_dropped();
    td_log(TD_LOG_ERROR, "lost");
    td_log_text(TD_LOG_ERROR, "lost");
    assert_int_equal(td_log_dropped(), before + 2);

    int fd = start_to_memory(TD_LOG_DEBUG);
    stop_and_read(fd);
    assert_true(is_output_text("log: 2 lines lost"));
}

static void only_one_log_runs_at_a_time(void **state)
{
    (void)state;
    int fd = start_to_memory(TD_LOG_DEBUG);
    assert_int_equal(td_log_start(fd, TD_LOG_DEBUG), TD_ERR_EXISTS);
    stop_and_read(fd);
    td_log_stop();
}

static void level_names_are_known(void **state)
{
    (void)state;
    static const char *const names[] = {"debug", "info", "warn", "error"};
    td_log_level level = TD_LOG_DEBUG;
    for (size_t i = 0; i < TD_COUNT_OF(names); i++) {
        assert_int_equal(td_log_level_parse(names[i], &level), TD_OK);
        assert_int_equal(level, i);
    }
    assert_int_equal(td_log_level_parse("loud", &level), TD_ERR_NOTFOUND);
    assert_int_equal(level, TD_LOG_ERROR);
}

static void td_log_does_nothing_that_could_wait(void **state)
{
    (void)state;
    allocations = wakes = formats = locks = 0;
    int fd = start_to_memory(TD_LOG_DEBUG);
    td_log_text(TD_LOG_INFO, "the counters do count");
    td_log_hold();
    bool counts = allocations > 0 && wakes > 0 && formats > 0 && locks > 0;
    td_log_release();

    allocations = wakes = formats = locks = 0;
    for (int i = 0; i < 100; i++)
        td_log(TD_LOG_INFO, "tick {} took {} us in {}", i, 1.5, "hold");
    size_t seen[] = {allocations, wakes, formats, locks};
    stop_and_read(fd);
    assert_true(counts);
    for (size_t i = 0; i < TD_COUNT_OF(seen); i++)
        assert_int_equal(seen[i], 0);
}

static void read_to_the_end(void *user)
{
    int fd = *(int *)user;
    size_t size = 0;
    ssize_t more;
    while ((more = read(fd, output + size, sizeof output - 1 - size)) > 0)
        size += (size_t)more;
    output[size] = '\0';
}

static td_thread *start(void (*run)(void *user), void *user)
{
    const td_thread_config config = {.name = "other", .cpu = -1};
    td_thread *thread = NULL;
    assert_int_equal(td_thread_start(&config, run, user, &thread, NULL), TD_OK);
    return thread;
}

// Adds up what the output says: lines, and lines said to be lost, each told
// where they are missing.
static void tally(uint64_t *ret_lines, uint64_t *ret_lost)
{
    unsigned long number;
    *ret_lines = *ret_lost = 0;
    for (char *line = strtok(output, "\n"); line; line = strtok(NULL, "\n")) {
        if (sscanf(text_of(line), "log: %lu lines lost", &number) == 1) {
            *ret_lost += number;
            continue;
        }
        assert_int_equal(sscanf(text_of(line), "line %lu", &number), 1);
        assert_int_equal(number, *ret_lines + *ret_lost);
        ++*ret_lines;
    }
}

static bool is_taken(int number)
{
    uint64_t before = td_log_dropped();
    td_log(TD_LOG_INFO, "line {}", number);
    return td_log_dropped() == before;
}

static void a_flood_is_dropped_counted_and_reported(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    uint64_t before = td_log_dropped();
    assert_int_equal(td_log_start(ends[1], TD_LOG_DEBUG), TD_OK);
    // Nobody reads yet, so that the pipe fills, then the queue.
    uint64_t sent = 0;
    while (sent < FLOOD)
        is_taken((int)sent++);
    assert_true(td_log_dropped() > before);

    td_thread *reader = start(read_to_the_end, &ends[0]);
    while (!is_taken((int)sent++))
        sched_yield();
    td_log_stop();
    close(ends[1]);
    td_thread_join(reader);
    close(ends[0]);

    uint64_t lines, lost;
    tally(&lines, &lost);
    assert_int_equal(lost, td_log_dropped() - before);
    assert_int_equal(lines + lost, sent);
}

static void an_output_that_goes_away_is_counted_and_survived(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    uint64_t before = td_log_dropped();
    assert_int_equal(td_log_start(ends[1], TD_LOG_DEBUG), TD_OK);
    td_log_text(TD_LOG_INFO, "nobody reads this");
    td_log_stop();
    close(ends[1]);
    assert_int_equal(td_log_dropped(), before + 1);

    int fd = start_to_memory(TD_LOG_DEBUG);
    stop_and_read(fd);
    assert_true(is_output_text("log: 1 lines lost"));
}

static void log_many(void *user)
{
    const char *name = user;
    for (int i = 0; i < EACH; i++)
        td_log(TD_LOG_INFO, "{} {}", name, i);
}

static void two_threads_lose_nothing_and_stay_in_order(void **state)
{
    (void)state;
    int fd = start_to_memory(TD_LOG_DEBUG);
    char names[2][2] = {"a", "b"};
    td_thread *threads[2] = {start(log_many, names[0]),
                             start(log_many, names[1])};
    td_thread_join(threads[0]);
    td_thread_join(threads[1]);
    stop_and_read(fd);

    int next[2] = {0};
    for (char *line = strtok(output, "\n"); line; line = strtok(NULL, "\n")) {
        const char *text = text_of(line);
        assert_in_range(text[0], 'a', 'b');
        assert_int_equal(atoi(text + 1), next[text[0] - 'a']++);
    }
    assert_int_equal(next[0], EACH);
    assert_int_equal(next[1], EACH);
}

static void colour_is_for_terminals_only(void **state)
{
    (void)state;
    int fd = start_to_memory(TD_LOG_DEBUG);
    td_log_text(TD_LOG_WARN, "plain");
    stop_and_read(fd);
    assert_null(strchr(output, '\033'));

    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) skip();
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0);
    assert_int_equal(td_log_start(terminal, TD_LOG_DEBUG), TD_OK);
    td_log_text(TD_LOG_WARN, "bright");
    td_log_stop();
    ssize_t size = read(master, output, sizeof output - 1);
    assert_true(size > 0);
    output[size] = '\0';
    close(terminal);
    close(master);
    assert_non_null(strstr(output, "\033[33mwarn \033[0m bright"));
}

// The writer thread's, until the log is stopped.
static void note_line(void *user, td_log_level level, const char *line)
{
    size_t used = strlen(user);
    snprintf((char *)user + used, sizeof output - used, "%d:%s;", (int)level,
             line);
}

static void a_sink_is_given_each_line_by_itself(void **state)
{
    (void)state;
    output[0] = '\0';
    assert_int_equal(td_log_start_sink(note_line, output, TD_LOG_INFO), TD_OK);
    td_log_text(TD_LOG_WARN, "no\033 %s", "chunk");
    td_log(TD_LOG_INFO, "row {}", 7);
    td_log_text(TD_LOG_DEBUG, "below the level");
    td_log_stop();
    assert_string_equal(output, "2:no  chunk;1:row 7;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_the_time_the_level_and_the_text),
        cmocka_unit_test(placeholders_are_filled_in_order),
        cmocka_unit_test(all_six_arguments_arrive),
        cmocka_unit_test(text_is_copied_and_cut),
        cmocka_unit_test(lines_below_the_level_are_not_taken),
        cmocka_unit_test(lines_while_not_running_are_counted_and_reported),
        cmocka_unit_test(only_one_log_runs_at_a_time),
        cmocka_unit_test(level_names_are_known),
        cmocka_unit_test(td_log_does_nothing_that_could_wait),
        cmocka_unit_test(a_flood_is_dropped_counted_and_reported),
        cmocka_unit_test(an_output_that_goes_away_is_counted_and_survived),
        cmocka_unit_test(two_threads_lose_nothing_and_stay_in_order),
        cmocka_unit_test(colour_is_for_terminals_only),
        cmocka_unit_test(a_sink_is_given_each_line_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

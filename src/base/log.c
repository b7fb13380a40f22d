// SPDX-License-Identifier: Apache-2.0
// The log: any thread hands over a line without waiting, one thread writes.
//
// td_log() copies a format and numbers into a queue of fixed entries;
// td_log_text() formats first, for those who may take the time. Neither
// allocates, neither takes a lock, neither waits: when the queue is full the
// line is dropped and counted, and the writer says in the log how many were
// lost and where. td_log() does not even wake the writer, as that may be a
// system call; the writer looks by itself every POLL_NS.
//
// The thread td-log formats, blanks control characters, and writes to a file
// descriptor or a sink of the user's. It blocks all signals, so that a reader
// of the log that goes away cannot end the process.
//
// State: `inlet` is the queue while lines are taken and NULL else; `lowest` and
// `dropped` are atomics; `writer` belongs to whoever starts and stops, and
// while the thread runs its lower half to the thread. `held_lock` guards
// `held`, the count of those inside this process who need the log running
// (td_log_hold).
//
// Stop: the inlet is closed to new lines, the writer is told, prints what is
// waiting and returns, and is joined. The queue stays for the life of the
// process: a line that was past the inlet when it closed may still be on its
// way in.
#include "base/log.h"

#include "base/clock.h"
#include "base/sync/event.h"
#include "base/sync/queue.h"
#include "base/sync/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define POLL_NS (20 * TD_NS_PER_MS)

enum { QUEUE_LINES = 1024, TEXT_BYTES = 600, LINE_BYTES = 1024 };

struct entry {
    int64_t at_ns;
    uint64_t lost; // all lines dropped until now
    td_log_level level;
    const char *fmt; // NULL: `text` is the line
    size_t arg_count;
    union {
        td_log_arg args[TD_LOG_MAX_ARGS];
        char text[TEXT_BYTES];
    };
};

static _Atomic(td_queue *) inlet; // NULL: not running
static _Atomic td_log_level lowest;
static _Atomic uint64_t dropped;

static struct {
    td_thread *thread;
    td_queue *queue;
    td_event wake;
    _Atomic bool stopping;

    // The writer thread's own while it runs.
    td_log_sink sink; // NULL: fd
    void *user;       // the sink's
    int fd;
    bool has_colour;
    int64_t start_ns;
    uint64_t lost; // of `dropped`, those already reported
} writer;

static const struct {
    const char *name;
    const char *colour;
} levels[] = {
    [TD_LOG_DEBUG] = {"debug", "\033[2m"},
    [TD_LOG_INFO] = {"info", ""},
    [TD_LOG_WARN] = {"warn", "\033[33m"},
    [TD_LOG_ERROR] = {"error", "\033[31m"},
};

td_err td_log_level_parse(const char *name, td_log_level *ret_level)
{
    for (size_t i = 0; i < TD_COUNT_OF(levels); i++) {
        if (strcmp(name, levels[i].name) != 0) continue;
        *ret_level = (td_log_level)i;
        return TD_OK;
    }
    return TD_ERR_NOTFOUND;
}

uint64_t td_log_dropped(void)
{
    return atomic_load(&dropped);
}

static void submit(struct entry *entry)
{
    td_queue *queue = atomic_load(&inlet);
    entry->at_ns = td_clock_monotonic_ns();
    entry->lost = td_log_dropped();
    if (!queue || td_queue_push(queue, entry) != TD_OK)
        atomic_fetch_add(&dropped, 1);
}

void td_log_args(td_log_level level, const char *fmt, const td_log_arg *args,
                 size_t count)
{
    if (level < atomic_load(&lowest)) return;
    if (count > TD_LOG_MAX_ARGS) count = TD_LOG_MAX_ARGS;

    struct entry entry;
    entry.level = level;
    entry.fmt = fmt;
    entry.arg_count = count;
    for (size_t i = 0; i < count; i++)
        entry.args[i] = args[i];
    submit(&entry);
}

void td_log_text(td_log_level level, const char *fmt, ...)
{
    if (level < atomic_load(&lowest)) return;

    struct entry entry;
    entry.level = level;
    entry.fmt = NULL;
    va_list args;
    va_start(args, fmt);
    vsnprintf(entry.text, sizeof entry.text, fmt, args);
    va_end(args);
    submit(&entry);
    td_event_signal(&writer.wake);
}

struct line {
    size_t used;
    char text[LINE_BYTES]; // cut to fit; the last byte is kept for its end
};

static void line_put(struct line *line, const char *text, size_t size)
{
    size_t room = LINE_BYTES - 1 - line->used;
    if (size > room) size = room;
    memcpy(line->text + line->used, text, size);
    line->used += size;
}

static void line_print(struct line *line, const char *fmt, ...) TD_PRINTF(2, 3);

static void line_print(struct line *line, const char *fmt, ...)
{
    char text[64];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    line_put(line, text, strlen(text));
}

static void put_arg(struct line *line, const td_log_arg *arg)
{
    switch (arg->kind) {
    case TD_LOG_INT:
        line_print(line, "%" PRId64, arg->i);
        break;
    case TD_LOG_FLOAT:
        line_print(line, "%.6g", arg->f);
        break;
    case TD_LOG_STR:
        line_put(line, arg->s, strlen(arg->s));
        break;
    }
}

static void put_formatted(struct line *line, const struct entry *entry)
{
    const char *rest = entry->fmt;
    for (size_t i = 0; i < entry->arg_count; i++) {
        const char *hole = strstr(rest, "{}");
        if (!hole) break;
        line_put(line, rest, (size_t)(hole - rest));
        put_arg(line, &entry->args[i]);
        rest = hole + 2;
    }
    line_put(line, rest, strlen(rest));
}

void td_log_blank(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        unsigned char next = i + 1 < size ? (unsigned char)text[i + 1] : 0;
        if (c < 0x20 || c == 0x7f) text[i] = ' ';
        if (c == 0xc2 && next >= 0x80 && next < 0xa0) // U+0080 to U+009F
            text[i] = text[i + 1] = ' ';
    }
}

static void put_text(struct line *line, const struct entry *entry)
{
    size_t from = line->used;
    if (entry->fmt)
        put_formatted(line, entry);
    else
        line_put(line, entry->text, strlen(entry->text));
    td_log_blank(line->text + from, line->used - from);
}

static void put_head(struct line *line, const struct entry *entry)
{
    double elapsed_s = (double)(entry->at_ns - writer.start_ns) / 1e9;
    const char *colour = writer.has_colour ? levels[entry->level].colour : "";
    line_print(line, "%.3f %s%-5s%s ", elapsed_s, colour,
               levels[entry->level].name, *colour ? "\033[0m" : "");
}

static bool write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, text, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        text += written;
        size -= (size_t)written;
    }
    return true;
}

static bool print(const struct entry *entry)
{
    struct line line;
    line.used = 0;
    if (writer.sink) {
        put_text(&line, entry);
        line.text[line.used] = '\0';
        writer.sink(writer.user, entry->level, line.text);
        return true;
    }
    put_head(&line, entry);
    put_text(&line, entry);
    line.text[line.used++] = '\n';
    return write_all(writer.fd, line.text, line.used);
}

static void report_lost(uint64_t lost, int64_t at_ns)
{
    if (lost <= writer.lost) return;

    const struct entry entry = {
        .at_ns = at_ns,
        .level = TD_LOG_WARN,
        .fmt = "log: {} lines lost",
        .arg_count = 1,
        .args = {td_log_arg_i((int64_t)(lost - writer.lost))},
    };
    if (print(&entry)) writer.lost = lost;
}

static void drain(void)
{
    struct entry entry;
    while (td_queue_pop(writer.queue, &entry) == TD_OK) {
        report_lost(entry.lost, entry.at_ns);
        if (!print(&entry)) atomic_fetch_add(&dropped, 1);
    }
    report_lost(td_log_dropped(), td_clock_monotonic_ns());
}

static void write_lines(void *user)
{
    (void)user;
    // A reader of the log that goes away must not end the process (SIGPIPE).
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);

    for (;;) {
        bool is_last = atomic_load(&writer.stopping);
        drain();
        if (is_last) return;
        int64_t now_ns = td_clock_monotonic_ns();
        td_event_wait_until(&writer.wake, now_ns + POLL_NS);
    }
}

static td_err start(td_log_sink sink, void *user, int fd, td_log_level level)
{
    if (writer.thread) return TD_ERR_EXISTS;
    if (!writer.queue)
        TD_TRY(td_queue_new(QUEUE_LINES, sizeof(struct entry), &writer.queue));

    writer.sink = sink;
    writer.user = user;
    writer.fd = fd;
    writer.has_colour = fd >= 0 && isatty(fd);
    writer.start_ns = td_clock_monotonic_ns();
    atomic_store(&writer.stopping, false);
    const td_thread_config config = {.name = "td-log", .cpu = -1};
    TD_TRY(td_thread_start(&config, write_lines, NULL, &writer.thread, NULL));

    atomic_store(&lowest, level);
    atomic_store(&inlet, writer.queue);
    return TD_OK;
}

td_err td_log_start(int fd, td_log_level level)
{
    return start(NULL, NULL, fd, level);
}

td_err td_log_start_sink(td_log_sink sink, void *user, td_log_level level)
{
    return start(sink, user, -1, level);
}

void td_log_stop(void)
{
    if (!writer.thread) return;
    atomic_store(&inlet, NULL);
    atomic_store(&writer.stopping, true);
    td_event_signal(&writer.wake);
    td_thread_join(writer.thread);
    writer.thread = NULL;
}

static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER; // guards `held`
static struct {
    size_t count;
    bool running; // started here
    td_log_sink sink;
    void *user;
    td_log_level level;
} held = {.level = TD_LOG_INFO};

void td_log_hold(void)
{
    pthread_mutex_lock(&held_lock);
    if (held.count++ == 0)
        held.running =
            start(held.sink, held.user, held.sink ? -1 : STDERR_FILENO,
                  held.level) == TD_OK;
    pthread_mutex_unlock(&held_lock);
}

void td_log_release(void)
{
    pthread_mutex_lock(&held_lock);
    if (--held.count == 0 && held.running) td_log_stop();
    pthread_mutex_unlock(&held_lock);
}

td_err td_log_route(td_log_sink sink, void *user, td_log_level level)
{
    td_err err = TD_ERR_BUSY;
    pthread_mutex_lock(&held_lock);
    if (held.count == 0) {
        held.sink = sink;
        held.user = user;
        held.level = level;
        err = TD_OK;
    }
    pthread_mutex_unlock(&held_lock);
    return err;
}

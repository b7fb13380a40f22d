// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_LOG_H
#define TD_BASE_LOG_H

// A log that real-time threads can use.
//
// td_log() copies a format and up to six numbers or static strings into a
// bounded lock-free queue: no lock, no allocation, no formatting. A writer
// thread formats and prints. When the queue is full the line is dropped and
// counted, and the next line that fits says how many were lost.
//
// td_log_text() formats on the calling thread, for everything that is not
// real-time and has strings that do not outlive the call.
//
// Lines look like "12.345 warn  edge: no chunk for 1.0 s"; where the output is
// not a terminal there is no colour.

#include "base/err.h"

#include <stdbool.h>

typedef enum td_log_level {
    TD_LOG_DEBUG,
    TD_LOG_INFO,
    TD_LOG_WARN,
    TD_LOG_ERROR,
} td_log_level;

// One argument of td_log(). Strings must be static.
typedef struct td_log_arg {
    enum { TD_LOG_INT, TD_LOG_FLOAT, TD_LOG_STR } kind;
    union {
        int64_t i;
        double f;
        const char *s;
    };
} td_log_arg;

#define TD_LOG_MAX_ARGS 6

// Starts the writer thread, which borrows `fd`. Lines below `level` are not
// taken; lines before it are lost and counted. Main thread. EXISTS while one
// runs.
TD_NODISCARD td_err td_log_start(int fd, td_log_level level);

// Where lines go that are not printed: without time, level and newline. On the
// writer thread; may block, and lines wait meanwhile.
typedef void (*td_log_sink)(void *user, td_log_level level, const char *line);

// The same with a function of the caller's in the place of a file.
TD_NODISCARD td_err td_log_start_sink(td_log_sink sink, void *user,
                                      td_log_level level);

// Prints what is waiting and stops the writer. Lines after it are lost and
// counted. Main thread; blocks.
void td_log_stop(void);

// For libraries in other people's programs: the log runs while somebody holds
// it, and is left alone where the program has started it by itself. Lines go
// where td_log_route() says: to `sink`, or to standard error with NULL, as it
// is from the start. Any thread. BUSY while it is held.
void td_log_hold(void);
void td_log_release(void);
TD_NODISCARD td_err td_log_route(td_log_sink sink, void *user,
                                 td_log_level level);

// "debug", "info", "warn", "error". NOTFOUND.
TD_NODISCARD td_err td_log_level_parse(const char *name,
                                       td_log_level *ret_level);

// `fmt` is static and has one "{}" for each argument. Any thread, real-time
// ones too; never blocks, allocates or formats.
void td_log_args(td_log_level level, const char *fmt, const td_log_arg *args,
                 size_t count);

// td_log(TD_LOG_WARN, "edge: no chunk for {} ms", waited_ms);
#define td_log(level, ...) TD_LOG_PICK(__VA_ARGS__)(level, __VA_ARGS__)

// printf style; formats here, cut to 600 bytes. Any thread that is not
// real-time.
void td_log_text(td_log_level level, const char *fmt, ...) TD_PRINTF(2, 3);

// Whether the count-th of its kind gets a line: the first, then every power of
// two, so that a flood of them does not fill the log.
static inline bool td_log_is_due(uint64_t count)
{
    return (count & (count - 1)) == 0;
}

// Blanks the control characters in `text`, those of two bytes (UTF-8) too: it
// is one line, and what a stranger sent cannot steer the terminal. Lines of the
// log are blanked by themselves. Any thread.
void td_log_blank(char *text, size_t size);

// How many lines were dropped because the queue was full, the log was not
// running or its output failed. Any thread.
uint64_t td_log_dropped(void);

#define TD_LOG_ARG(x)                                                          \
    _Generic((x),                                                              \
        float: td_log_arg_f,                                                   \
        double: td_log_arg_f,                                                  \
        const char *: td_log_arg_s,                                            \
        char *: td_log_arg_s,                                                  \
        default: td_log_arg_i)(x)

static inline td_log_arg td_log_arg_i(int64_t i)
{
    return (td_log_arg){.kind = TD_LOG_INT, .i = i};
}
static inline td_log_arg td_log_arg_f(double f)
{
    return (td_log_arg){.kind = TD_LOG_FLOAT, .f = f};
}
static inline td_log_arg td_log_arg_s(const char *s)
{
    return (td_log_arg){.kind = TD_LOG_STR, .s = s ? s : "(null)"};
}

#define TD_LOG_N(level, fmt, n, ...)                                           \
    td_log_args((level), (fmt), (const td_log_arg[]){__VA_ARGS__}, (n))
#define TD_LOG_0(level, fmt) td_log_args((level), (fmt), NULL, 0)
#define TD_LOG_1(level, fmt, a) TD_LOG_N(level, fmt, 1, TD_LOG_ARG(a))
#define TD_LOG_2(level, fmt, a, b)                                             \
    TD_LOG_N(level, fmt, 2, TD_LOG_ARG(a), TD_LOG_ARG(b))
#define TD_LOG_3(level, fmt, a, b, c)                                          \
    TD_LOG_N(level, fmt, 3, TD_LOG_ARG(a), TD_LOG_ARG(b), TD_LOG_ARG(c))
#define TD_LOG_4(level, fmt, a, b, c, d)                                       \
    TD_LOG_N(level, fmt, 4, TD_LOG_ARG(a), TD_LOG_ARG(b), TD_LOG_ARG(c),       \
             TD_LOG_ARG(d))
#define TD_LOG_5(level, fmt, a, b, c, d, e)                                    \
    TD_LOG_N(level, fmt, 5, TD_LOG_ARG(a), TD_LOG_ARG(b), TD_LOG_ARG(c),       \
             TD_LOG_ARG(d), TD_LOG_ARG(e))
#define TD_LOG_6(level, fmt, a, b, c, d, e, f)                                 \
    TD_LOG_N(level, fmt, 6, TD_LOG_ARG(a), TD_LOG_ARG(b), TD_LOG_ARG(c),       \
             TD_LOG_ARG(d), TD_LOG_ARG(e), TD_LOG_ARG(f))
#define TD_LOG_PICK_(a0, a1, a2, a3, a4, a5, a6, name, ...) name
#define TD_LOG_PICK(...)                                                       \
    TD_LOG_PICK_(__VA_ARGS__, TD_LOG_6, TD_LOG_5, TD_LOG_4, TD_LOG_3,          \
                 TD_LOG_2, TD_LOG_1, TD_LOG_0, )

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_ERR_H
#define TENDON_ERR_H

// Errors: one list makes the codes, their names and their texts.
//
// A function returns td_err and nothing else; outputs (`ret_x`) are untouched
// on failure. What a person needs beyond the code goes into an optional
// td_errinfo that the caller passes in, never into hidden thread state.

#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TD_ERRORS(X)                                                           \
    X(INVALID, "invalid argument")                                             \
    X(NOMEM, "out of memory")                                                  \
    X(FULL, "no room left")                                                    \
    X(EMPTY, "nothing there")                                                  \
    X(BUSY, "busy")                                                            \
    X(CLOSED, "closed")                                                        \
    X(TIMEOUT, "timed out")                                                    \
    X(NOTFOUND, "not found")                                                   \
    X(EXISTS, "already there")                                                 \
    X(DENIED, "not permitted")                                                 \
    X(IO, "input or output failed")                                            \
    X(FORMAT, "malformed data")                                                \
    X(LIMIT, "beyond a limit")                                                 \
    X(VERSION, "newer major version")                                          \
    X(MISMATCH, "the two sides do not fit")                                    \
    X(UNSUPPORTED, "not supported")                                            \
    X(CANCELLED, "cancelled")                                                  \
    X(INTERNAL, "internal error")

typedef enum td_err {
    TD_OK = 0,
#define TD_ERR_ENUM(name, text) TD_ERR_##name,
    TD_ERRORS(TD_ERR_ENUM)
#undef TD_ERR_ENUM
        TD_ERR_COUNT
} td_err;

// Detail for a person: "manifest.yaml:12: fps: must be 1 to 1000, got 0".
typedef struct td_errinfo {
    char text[512];
} td_errinfo;

#define TD_NODISCARD __attribute__((warn_unused_result))
#define TD_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

// "INVALID" and "invalid argument". Any thread; never NULL.
const char *td_err_name(td_err err);
const char *td_err_text(td_err err);

// Writes the detail (cut to fit; `info` may be NULL, and its own text may be an
// argument) and returns `err`, so that a failing function ends with
// `return td_fail(info, TD_ERR_X, "...", ...)`.
td_err td_fail(td_errinfo *info, td_err err, const char *fmt, ...)
    TD_PRINTF(3, 4);
td_err td_vfail(td_errinfo *info, td_err err, const char *fmt, va_list args);

#ifdef __cplusplus
}
#endif

#endif

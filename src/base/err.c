// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"

#include <stdbool.h>
#include <stdio.h>

static const struct {
    const char *name;
    const char *text;
} errors[TD_ERR_COUNT] = {[TD_OK] = {"OK", "ok"},
#define ERROR_ROW(name, text) [TD_ERR_##name] = {#name, text},
                          TD_ERRORS(ERROR_ROW)
#undef ERROR_ROW
};

static bool is_known(td_err err)
{
    return (unsigned)err < TD_ERR_COUNT;
}

const char *td_err_name(td_err err)
{
    return is_known(err) ? errors[err].name : "UNKNOWN";
}

const char *td_err_text(td_err err)
{
    return is_known(err) ? errors[err].text : "unknown error";
}

td_err td_fail(td_errinfo *info, td_err err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    td_vfail(info, err, fmt, args);
    va_end(args);
    return err;
}

td_err td_vfail(td_errinfo *info, td_err err, const char *fmt, va_list args)
{
    if (!info) return err;

    // Written aside first: a caller that adds "FILE: " in front of a detail
    // passes the old text as an argument.
    td_errinfo written;
    vsnprintf(written.text, sizeof written.text, fmt, args);
    *info = written;
    return err;
}

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_HTTP_QUERY_H
#define TD_BASE_HTTP_QUERY_H

// The parameters of a request, "window=60&model=act": taken apart, decoded and
// checked. Nothing is allocated. Whatever is wrong is refused with a line for
// whoever asked.

#include "base/err.h"

#define TD_QUERY_MAX 8       // parameters
#define TD_QUERY_MAX_NAME 32 // bytes of a name
#define TD_QUERY_MAX_TEXT 64 // bytes of a value, decoded

typedef struct td_query_field {
    char name[TD_QUERY_MAX_NAME + 1];
    char text[TD_QUERY_MAX_TEXT + 1]; // without control characters
} td_query_field;

typedef struct td_query {
    td_query_field fields[TD_QUERY_MAX];
    size_t count;
} td_query;

// FORMAT (not name=value, a bad escape, a control character, a name twice),
// LIMIT.
TD_NODISCARD td_err td_query_parse(const char *text, size_t size,
                                   td_query *ret_query, td_errinfo *info);

// NOTFOUND with the first parameter that is none of `names`, which end with
// NULL.
TD_NODISCARD td_err td_query_only(const td_query *query,
                                  const char *const *names, td_errinfo *info);

// The value, borrowed; NULL if it is not there.
const char *td_query_text(const td_query *query, const char *name);

// A whole number from `least`, which is not negative, to `most`; `ret_number`
// is untouched if it is not there. INVALID.
TD_NODISCARD td_err td_query_number(const td_query *query, const char *name,
                                    int64_t least, int64_t most,
                                    int64_t *ret_number, td_errinfo *info);

#endif

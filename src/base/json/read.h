// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_JSON_READ_H
#define TD_BASE_JSON_READ_H

// Reads JSON files with limits, and their members with errors that name file
// and member: "config.json: dim_model: must be 1 to 16384, got 0". A member
// that is asked for is required.

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define TD_JSON_READ_MAX_DEPTH 32

static inline void td_json_read_drop(json_t *json)
{
    json_decref(json);
}
TD_AUTO_FREE(json_t, td_json_read_drop)

// An object in a file. Borrowed.
typedef struct td_json_at {
    const char *file;
    const char *where; // before a member's name in errors: "steps[3].", or ""
    json_t *object;
} td_json_at;

// Reads a file whose top is an object; its size is looked at before. Owned:
// json_decref(). Blocks. NOTFOUND, IO, LIMIT, FORMAT, NOMEM.
TD_NODISCARD td_err td_json_read_file(const char *path, size_t most_bytes,
                                      json_t **ret_json, td_errinfo *info);

// The same of bytes; `file` is what errors call them.
TD_NODISCARD td_err td_json_read_bytes(td_slice bytes, size_t most_bytes,
                                       const char *file, json_t **ret_json,
                                       td_errinfo *info);

// One member each. FORMAT when it is missing or of another kind, LIMIT when it
// is outside. Texts and values are borrowed.
TD_NODISCARD td_err td_json_read_whole(const td_json_at *at, const char *name,
                                       uint32_t least, uint32_t most,
                                       uint32_t *ret_value, td_errinfo *info);
TD_NODISCARD td_err td_json_read_number(const td_json_at *at, const char *name,
                                        double *ret_value, td_errinfo *info);
TD_NODISCARD td_err td_json_read_bool(const td_json_at *at, const char *name,
                                      bool *ret_value, td_errinfo *info);
TD_NODISCARD td_err td_json_read_text(const td_json_at *at, const char *name,
                                      const char **ret_value, td_errinfo *info);
TD_NODISCARD td_err td_json_read_object(const td_json_at *at, const char *name,
                                        json_t **ret_value, td_errinfo *info);
TD_NODISCARD td_err td_json_read_array(const td_json_at *at, const char *name,
                                       json_t **ret_value, td_errinfo *info);

// Whether the member is null or not there.
bool td_json_read_is_null(const td_json_at *at, const char *name);

// "FILE: WHERENAME: what", as the others fail.
td_err td_json_read_fail(const td_json_at *at, const char *name,
                         td_errinfo *info, td_err err, const char *fmt, ...)
    TD_PRINTF(5, 6);

#endif

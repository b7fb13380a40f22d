// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CHECKPOINT_JSON_H
#define TD_ENGINE_NATIVE_CHECKPOINT_JSON_H

// The JSON files of a checkpoint, read with limits, and their members with
// errors that name file and member: "config.json: dim_model: must be 1 to
// 16384, got 0". Everything is required: LeRobot writes every field.

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define TD_NATIVE_JSON_MAX_BYTES (16u << 20)
#define TD_NATIVE_JSON_MAX_DEPTH 32

static inline void td_native_json_drop(json_t *json)
{
    json_decref(json);
}
TD_AUTO_FREE(json_t, td_native_json_drop)

// An object in a file. Borrowed.
typedef struct td_native_json {
    const char *file;
    const char *where; // before a member's name in errors: "steps[3].", or ""
    json_t *object;
} td_native_json;

// Reads a file whose top is an object. Owned: json_decref(). Blocks. NOTFOUND,
// IO, LIMIT, FORMAT, NOMEM.
TD_NODISCARD td_err td_native_json_load(const char *path, json_t **ret_json,
                                        td_errinfo *info);

// The same of bytes; `file` is what errors call them.
TD_NODISCARD td_err td_native_json_parse(td_slice bytes, const char *file,
                                         json_t **ret_json, td_errinfo *info);

// One member each. FORMAT when it is missing or of another kind, LIMIT when it
// is outside. Texts and values are borrowed.
TD_NODISCARD td_err td_native_json_whole(const td_native_json *at,
                                         const char *name, uint32_t least,
                                         uint32_t most, uint32_t *ret_value,
                                         td_errinfo *info);
TD_NODISCARD td_err td_native_json_number(const td_native_json *at,
                                          const char *name, double *ret_value,
                                          td_errinfo *info);
TD_NODISCARD td_err td_native_json_bool(const td_native_json *at,
                                        const char *name, bool *ret_value,
                                        td_errinfo *info);
TD_NODISCARD td_err td_native_json_text(const td_native_json *at,
                                        const char *name,
                                        const char **ret_value,
                                        td_errinfo *info);
TD_NODISCARD td_err td_native_json_object(const td_native_json *at,
                                          const char *name, json_t **ret_value,
                                          td_errinfo *info);
TD_NODISCARD td_err td_native_json_array(const td_native_json *at,
                                         const char *name, json_t **ret_value,
                                         td_errinfo *info);

// Whether the member is null or not there.
bool td_native_json_is_null(const td_native_json *at, const char *name);

// "FILE: WHERENAME: what", as the others fail.
td_err td_native_json_fail(const td_native_json *at, const char *name,
                           td_errinfo *info, td_err err, const char *fmt, ...)
    TD_PRINTF(5, 6);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_JSON_JSON_H
#define TD_BASE_JSON_JSON_H

// Writes JSON onto a stream, a value at a time; commas and quotes come by
// themselves. One thread at a time. Writing returns nothing; ask the stream
// (ferror) at the end.
//
// `name` is that of a member of an object, and NULL in an array or at the top.

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct td_json {
    FILE *out;
    const char *before; // the next value
} td_json;

// Borrows `out` as long as it is written to.
void td_json_init(td_json *json, FILE *out);

void td_json_object(td_json *json, const char *name);
void td_json_end_object(td_json *json);
void td_json_array(td_json *json, const char *name);
void td_json_end_array(td_json *json);

// UTF-8; what is not becomes U+FFFD. NULL is null.
void td_json_text(td_json *json, const char *name, const char *text);
void td_json_whole(td_json *json, const char *name, uint64_t value);
// To 6 digits; null if it is not finite.
void td_json_number(td_json *json, const char *name, double value);
void td_json_bool(td_json *json, const char *name, bool value);

#endif

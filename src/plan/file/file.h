// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_FILE_FILE_H
#define TD_PLAN_FILE_FILE_H

// The plan file, by tables: one row a member, for the writer and the reader.

#include "plan/plan.h"

#define TD_PLAN_FILE_VERSION 1

typedef enum td_plan_file_kind {
    TD_PLAN_FILE_TEXT,   // const char *
    TD_PLAN_FILE_BOOL,   // bool
    TD_PLAN_FILE_WHOLE,  // uint32_t
    TD_PLAN_FILE_INDEX,  // uint32_t; NONE is null
    TD_PLAN_FILE_NUMBER, // double, not below 0
    TD_PLAN_FILE_ADDED,  // likewise; 0 in files that are older than it
    TD_PLAN_FILE_CHOICE, // an enum; one of `choices`
} td_plan_file_kind;

typedef struct td_plan_file_field {
    const char *name; // NULL: the end of the table
    td_plan_file_kind kind;
    size_t offset;
    const char *const *choices; // ends with NULL
} td_plan_file_field;

extern const td_plan_file_field td_plan_file_plan[];
extern const td_plan_file_field td_plan_file_server[];
extern const td_plan_file_field td_plan_file_class[];
extern const td_plan_file_field td_plan_file_robot[];
// Beside them a stream has "server" and "standby", by their ids.
extern const td_plan_file_field td_plan_file_stream[];

#endif

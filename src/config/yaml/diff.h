// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_YAML_DIFF_H
#define TD_CONFIG_YAML_DIFF_H

// What differs between two documents that one table has read. Pure.

#include "config/yaml/table.h"

typedef enum td_config_change_kind {
    TD_CONFIG_CHANGED,
    TD_CONFIG_ADDED,   // a struct of a list that has no like in the older one
    TD_CONFIG_REMOVED, // one that has no like in the newer one
} td_config_change_kind;

// Every text is borrowed for the call.
typedef struct td_config_change {
    td_config_change_kind kind;
    const char *field;     // "models[0].clients"; REMOVED: of the older one
    const char *was, *now; // the values; empty where they are lists
    bool live;             // may change while it is used
} td_config_change;

typedef void (*td_config_on_change)(void *user, const td_config_change *change);

// Calls on_change for each field that differs, in the order of the table. Lists
// whose members nobody can tell apart are one field.
void td_config_diff(const td_config_table *table, const void *was,
                    const void *now, td_config_on_change on_change, void *user);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_YAML_VALUE_H
#define TD_CONFIG_YAML_VALUE_H

// Single values of a table: how each kind is read and what it takes.

#include "config/yaml/table.h"

#define TD_CONFIG_VALUE_TEXT 160

// Bytes that one value takes in its struct.
size_t td_config_value_bytes(const td_config_field *field);

// Reads a scalar of any kind but STRUCT. INVALID.
TD_NODISCARD td_err td_config_value_read(const td_config_location *location,
                                         const td_config_field *field,
                                         const td_config_node *node,
                                         void *ret_value);

bool td_config_value_same(const td_config_field *field, const void *a,
                          const void *b);

// The value as it would be written, fit to be printed. Of any kind but STRUCT.
void td_config_value_print(const td_config_field *field, const void *value,
                           char ret_text[TD_CONFIG_VALUE_TEXT]);

// What one value must be: "1 to 1000", "true or false".
void td_config_value_rule(const td_config_field *field,
                          char ret_text[TD_CONFIG_VALUE_TEXT]);

// What was found instead, fit to be printed: `0`, `"0"`, "a list".
void td_config_value_shown(const td_config_node *node,
                           char ret_text[TD_CONFIG_VALUE_TEXT]);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_YAML_SCHEMA_H
#define TD_CONFIG_YAML_SCHEMA_H

// A JSON Schema made from a table, for editors and checkers that do not know
// us. It says of each field what the table says; what only a check() knows is
// not in it.

#include "config/yaml/table.h"

void td_config_schema_write(const td_config_table *table, const char *title,
                            FILE *out);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_YAML_PAGE_H
#define TD_CONFIG_YAML_PAGE_H

// A page of Markdown made from a table: one row a field, by its path in the
// file. NAME stands for whatever name the file gives, [] for each of a list;
// "reloads" marks what may change while it is used.

#include "config/yaml/table.h"

void td_config_page_write(const td_config_table *table, FILE *out);

#endif

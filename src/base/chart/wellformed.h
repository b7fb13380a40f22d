// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_CHART_WELLFORMED_H
#define TD_BASE_CHART_WELLFORMED_H

// For tests: is a text the little of XML that charts are made of? One root,
// tags that close in order, attributes in double quotes, no bare '<' or '&'.

#include <stddef.h>

// NULL if it is; else what is wrong.
const char *td_chart_wellformed(const char *text);

// The file's text, ended by 0; NULL if it cannot be read. Owned by the caller.
char *td_chart_wellformed_load(const char *path, size_t *ret_size);

#endif

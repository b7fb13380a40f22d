// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_YAML_LOCATION_H
#define TD_CONFIG_YAML_LOCATION_H

// Where something stands in a document, and so in an error.

#include "config/yaml/yaml.h"

typedef struct td_config_location td_config_location;
struct td_config_location {
    const td_config_location *parent;
    const char *name; // NULL for a member of a list
    size_t index;
    int line;
    const char *file;
    td_arena *arena;
    td_errinfo *info;
};

// `field` NULL means the location itself; `node` gives the line when it has
// one.

// INVALID with "file:line: location.field: what" in its info.
td_err td_config_location_fail(const td_config_location *location,
                               const td_config_node *node, const char *field,
                               const char *fmt, ...) TD_PRINTF(4, 5);
td_err td_config_location_no_memory(const td_config_location *location);

// "file:line: location.field", for whoever finds out later that it is wrong.
// The arena's. NOMEM.
TD_NODISCARD td_err td_config_location_print(const td_config_location *location,
                                             const td_config_node *node,
                                             const char *field,
                                             const char **ret_where);

// Makes a relative path start at the document's folder. An empty one stays. The
// arena's. NOMEM.
TD_NODISCARD td_err td_config_location_beside(
    const td_config_location *location, const char **path);

// The end of a long path, so that an error keeps its own.
const char *td_config_location_shown_path(const char *file);

#endif

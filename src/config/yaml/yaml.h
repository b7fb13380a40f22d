// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_YAML_YAML_H
#define TD_CONFIG_YAML_YAML_H

// A YAML document as a tree of nodes that know their lines.
//
// Less than all of YAML, so that a file means what it looks like and no small
// file becomes a large tree: no anchors, aliases or tags, one document, no key
// twice.

#include "base/arena.h"

#include <stdbool.h>

#define TD_CONFIG_YAML_MAX_BYTES (1u << 20)
#define TD_CONFIG_YAML_MAX_DEPTH 16
#define TD_CONFIG_YAML_MAX_NODES 32768

typedef enum td_config_node_kind {
    TD_CONFIG_SCALAR,
    TD_CONFIG_SEQUENCE,
    TD_CONFIG_MAPPING,
} td_config_node_kind;

// Everything is the arena's.
typedef struct td_config_node td_config_node;
struct td_config_node {
    td_config_node_kind kind;
    int line;              // from 1; of the key for a member of a mapping
    bool quoted;           // a scalar in quotes, or a block of text
    const char *key;       // for a member of a mapping
    const char *text;      // of a scalar
    td_config_node *first; // of a sequence's or mapping's members, in order
    td_config_node *next;
    size_t count;
};

// Reads a whole document. `file` is what errors call it. FORMAT (not YAML, or
// more than we take), LIMIT, NOMEM, with "file:line: what" in `info`.
TD_NODISCARD td_err td_config_yaml_parse(td_arena *arena, const char *file,
                                         const void *data, size_t size,
                                         td_config_node **ret_root,
                                         td_errinfo *info);

// The bytes of a file, the arena's. Blocks. IO, LIMIT, NOMEM.
TD_NODISCARD td_err td_config_yaml_load(td_arena *arena, const char *path,
                                        td_slice *ret_data, td_errinfo *info);

// The member `key` of a mapping, or NULL. A member that is null ("key:",
// "key: ~") counts as absent.
const td_config_node *td_config_node_get(const td_config_node *node,
                                         const char *key);
bool td_config_node_is_null(const td_config_node *node);

#endif

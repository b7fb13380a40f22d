// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_MANIFEST_MANIFEST_H
#define TD_CONFIG_MANIFEST_MANIFEST_H

// The manifest that `tendon serve` reads: which models, for which robots,
// where.
//
// Every field has been checked and every absent one holds its default. Errors
// read "manifest.yaml:12: models[0].fps: must be 1 to 1000, got 0".

#include "config/manifest/model.h"
#include "config/yaml/diff.h"

typedef struct td_config_admin {
    const char *address;
    int64_t port; // 0: none
} td_config_admin;

typedef struct td_config_manifest {
    const char *cluster_uuid, *experiment_tag;
    td_config_scheduling scheduling;
    td_config_admin admin;
    td_config_model *models;
    size_t model_count; // at least 1
} td_config_manifest;

// Reads and checks a manifest. Owned by the caller, with everything it points
// to. Blocks on the file. IO, FORMAT (not YAML), LIMIT, INVALID (a field), with
// the line in `info`.
TD_NODISCARD td_err td_config_manifest_load(const char *path,
                                            td_config_manifest **ret_manifest,
                                            td_errinfo *info);

// The same from memory; `path` is what errors call it.
TD_NODISCARD td_err td_config_manifest_parse(const char *path, const void *data,
                                             size_t size,
                                             td_config_manifest **ret_manifest,
                                             td_errinfo *info);

void td_config_manifest_free(td_config_manifest *manifest);
TD_AUTO_FREE(td_config_manifest, td_config_manifest_free)

// What differs, and whether a running server can take it on: see
// td_config_diff(). An entry of `models` is the same as long as its names are.
void td_config_manifest_diff(const td_config_manifest *was,
                             const td_config_manifest *now,
                             td_config_on_change on_change, void *user);

// Every field, for help and docs.
extern const td_config_table td_config_manifest_table;

#endif

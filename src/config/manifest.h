// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_MANIFEST_H
#define TD_CONFIG_MANIFEST_H

// The manifest that `tendon serve` reads: which models, for which robots,
// where.
//
// Every field has been checked and every absent one holds its default. Errors
// read "manifest.yaml:12: server[0].fps: must be 1 to 1000, got 0".

#include "config/engine.h"

typedef enum td_config_mode {
    TD_CONFIG_PEER,
    TD_CONFIG_CLIENT,
    TD_CONFIG_ROUTER,
} td_config_mode;

typedef struct td_config_client {
    const char *client_uuid;
} td_config_client;

typedef struct td_config_server {
    const char *model_id, *model_version, *application_tag;
    const char *pretrained_path;
    const char *device;
    const char *server_id; // unique in the manifest; from the host name
    int64_t fps;
    const char *endpoint; // peer and router listen here, client connects
    td_config_mode mode;
    const char **connect; // endpoints to connect to as well
    size_t connect_count;
    bool shared_memory;
    td_config_client *clients;
    size_t client_count;
    bool accept_unknown; // take clients that are not listed
    int64_t capacity;    // clients; at least those listed
    td_config_engine engine;
} td_config_server;

typedef struct td_config_manifest {
    const char *cluster_uuid, *experiment_tag;
    td_config_server *server;
    size_t server_count; // at least 1
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

// Every field, for help and docs.
extern const struct td_config_table td_config_manifest_table;

#endif

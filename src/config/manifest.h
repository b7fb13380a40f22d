// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_MANIFEST_H
#define TD_CONFIG_MANIFEST_H

// The manifest that `tendon serve` reads: which models, for which robots,
// where.
//
// Every field has been checked and every absent one holds its default. Errors
// read "manifest.yaml:12: server[0].fps: must be 1 to 1000, got 0".

#include "config/parts.h"

#include <stdbool.h>

#define TD_CONFIG_MAX_BATCH 64

typedef enum td_config_mode {
    TD_CONFIG_PEER,
    TD_CONFIG_CLIENT,
    TD_CONFIG_ROUTER,
} td_config_mode;

typedef enum td_config_engine_kind {
    TD_CONFIG_SYNTHETIC,
} td_config_engine_kind;

typedef enum td_config_latency_kind {
    TD_CONFIG_LATENCY_NONE,
    TD_CONFIG_LATENCY_FIXED,
    TD_CONFIG_LATENCY_NORMAL,
    TD_CONFIG_LATENCY_LOGNORMAL,
    TD_CONFIG_LATENCY_PROFILE,
} td_config_latency_kind;

// How long a batch of n takes: a draw, plus (n - 1) x per_batch_ms.
typedef struct td_config_latency {
    td_config_latency_kind kind;
    double ms;     // mean
    double std_ms; // normal and lognormal
    double per_batch_ms;
    const char
        *file; // profile; a relative path starts at the manifest's folder
} td_config_latency;

typedef struct td_config_engine {
    td_config_engine_kind kind;
    td_config_channel *actions; // in order
    size_t action_count;
    td_config_channel *states; // the actions' unless given
    size_t state_count;
    td_config_camera *cameras;
    size_t camera_count;
    int64_t chunk; // rows
    int64_t max_batch;
    td_config_latency latency;
    int64_t seed;
    bool check_images;
} td_config_engine;

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

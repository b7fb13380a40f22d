// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_MANIFEST_MODEL_H
#define TD_CONFIG_MANIFEST_MODEL_H

// One model of a manifest: its names, where it runs, its clients.

#include "config/manifest/engine.h"
#include "config/manifest/scheduling.h"

typedef enum td_config_mode {
    TD_CONFIG_PEER,
    TD_CONFIG_CLIENT,
    TD_CONFIG_ROUTER,
} td_config_mode;

// What a robot may claim: what it sends beyond that counts as that.
typedef struct td_config_client {
    const char *client_uuid; // NULL: of all that are not listed
    double latency_budget_ms;
    int64_t highest_priority; // 0 is the highest
    double max_urgency;
} td_config_client;

typedef struct td_config_prefixes {
    int64_t mb;
    double age_s;
} td_config_prefixes;

typedef struct td_config_inputs {
    double alignment_ms, staleness_ms;
} td_config_inputs;

typedef struct td_config_model {
    const char *model_id, *model_version, *application_tag;
    const char *pretrained_path;
    const char *pretrained_name; // of native: as it is written, which may be a
                                 // name on the hub
    const char *device;          // models with the same one share it
    const char *server_id;       // unique in the manifest; from the host name
    int64_t fps;
    const char *endpoint; // peer and router listen here, client connects
    td_config_mode mode;
    const char **connect; // endpoints to connect to as well
    size_t connect_count;
    bool shared_memory;
    td_config_client *clients;
    size_t client_count;
    bool accept_unknown; // take clients that are not listed
    td_config_client unknown;
    int64_t capacity; // clients; at least those listed
    int64_t max_inflight;
    td_config_batch batch;
    bool precompute;
    td_config_prefixes prefixes;
    td_config_inputs inputs;
    td_config_engine engine;
} td_config_model;

extern const struct td_config_table td_config_model_table;

// Whether two entries name the same server of the same model.
bool td_config_model_same(const void *a, const void *b);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_MANIFEST_ENGINE_H
#define TD_CONFIG_MANIFEST_ENGINE_H

// What runs a model: the `engine` of a model in the manifest.
//
// To add a kind: its name in the enum and in engine.c, and its fields in rows.

#include "config/manifest/channels.h"

#include <stdbool.h>

#define TD_CONFIG_MAX_BATCH 64

typedef enum td_config_engine_kind {
    TD_CONFIG_SYNTHETIC,
    TD_CONFIG_WORKER,
    TD_CONFIG_CALLBACK, // a function of the program that serves it
    TD_CONFIG_NATIVE,   // a checkpoint that this program can run itself
} td_config_engine_kind;

typedef enum td_config_latency_kind {
    TD_CONFIG_LATENCY_NONE,
    TD_CONFIG_LATENCY_FIXED,
    TD_CONFIG_LATENCY_NORMAL,
    TD_CONFIG_LATENCY_LOGNORMAL,
    TD_CONFIG_LATENCY_PROFILE,
} td_config_latency_kind;

// How long a batch of n takes: prepare_ms that are not the device's, then a
// draw, plus (n - 1) x per_batch_ms.
typedef struct td_config_latency {
    td_config_latency_kind kind;
    double ms;     // mean
    double std_ms; // normal and lognormal
    double per_batch_ms;
    double prepare_ms;
    const char
        *file; // profile; a relative path starts at the manifest's folder
} td_config_latency;

// Of the temporal ensemble of LeRobot, with which each step of an answer is a
// mean of all chunks that spoke of it.
typedef struct td_config_ensemble {
    bool enabled;
    double coefficient;
} td_config_ensemble;

// Of a worker, what is not given is the worker's to say: no actions, no states,
// a chunk or max_batch of 0. Of native, actions and states are the
// checkpoint's, and chunk and cameras always.
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
    int64_t parallel; // batches side by side
    bool continuous;
    td_config_latency latency;
    int64_t seed;
    bool check_images;
    bool halves;
    const char *python;   // "policy.py:infer"; empty: command
    const char **command; // and its arguments
    size_t command_count;
    bool batched;
    bool rtc;
    double tolerance;
    int64_t results_kb; // 0: the worker's to say
    int64_t memory_mb;  // 0: no limit
    double start_s, answer_s;
    int64_t threads;       // 0: one for each CPU
    const char *tokenizer; // ""; that of the checkpoint's folder
    td_config_ensemble ensemble;
} td_config_engine;

extern const struct td_config_table td_config_engine_table;

#endif

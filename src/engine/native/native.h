// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_NATIVE_H
#define TD_ENGINE_NATIVE_NATIVE_H

// The native engine: a LeRobot checkpoint folder in, chunks out, in this
// process and without Python. `pretrained_path` is the folder.

#include "engine/engine.h"

// `settings` of the td_engine_config. Borrowed for the call only.
typedef struct td_engine_native_settings {
    td_wire_channel actions[TD_WIRE_MAX_CHANNELS]; // names are copied
    uint32_t action_count;                         // 0: as the checkpoint says
    td_wire_channel states[TD_WIRE_MAX_CHANNELS];
    uint32_t state_count; // 0: as the checkpoint says
    uint32_t max_batch;
    uint32_t threads;      // 0: one for each CPU that this process may use
    const char *tokenizer; // a tokenizer.json; NULL or "": the checkpoint's
    uint64_t prefix_bytes; // of prefixes that are kept; 0: none
    bool ensemble;         // answers then depend on a client's earlier ones
    double ensemble_coefficient;
} td_engine_native_settings;

extern const td_engine_ops td_engine_native;

// The same with halves: what an engine that td_engine_native opened has where
// its policy can be run so.
extern const td_engine_ops td_engine_native_halves;

// What it computes in on this device of a manifest's: "float32" or "bf16". Any
// thread.
const char *td_engine_native_precision(const char *device);

#endif

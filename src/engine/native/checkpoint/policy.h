// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CHECKPOINT_POLICY_H
#define TD_ENGINE_NATIVE_CHECKPOINT_POLICY_H

// What a checkpoint's config.json says of any policy: what it looks at and what
// it gives. What only one kind of policy has is read by that policy, from
// td_native_policy_options().
//
// To add a kind: a row in TD_NATIVE_POLICY_TYPES, and in policy.c what it does
// with pictures and which of its options nobody here understands.

#include "base/json/read.h"
#include "media/fit.h"
#include "tendon/wire.h"

#define TD_NATIVE_MAX_ROWS 4096

// name in config.json, whether it takes a text
#define TD_NATIVE_POLICY_TYPES(X)                                              \
    X(ACT, "act", false)                                                       \
    X(SMOLVLA, "smolvla", true)                                                \
    X(PI0, "pi0", true)                                                        \
    X(PI05, "pi05", true)

typedef enum td_native_policy_type {
#define TD_NATIVE_POLICY_ENUM(id, name, has_text) TD_NATIVE_POLICY_##id,
    TD_NATIVE_POLICY_TYPES(TD_NATIVE_POLICY_ENUM)
#undef TD_NATIVE_POLICY_ENUM
        TD_NATIVE_POLICY_COUNT
} td_native_policy_type;

typedef struct td_native_camera {
    const char *key;        // "observation.images.top", as the policy has it
    uint32_t height, width; // of its frames, three channels
    bool empty; // no robot has it: the policy stands something in for it
} td_native_camera;

// Everything is the policy's own.
typedef struct td_native_policy {
    td_native_policy_type type;
    char *file;                                   // the path of its config.json
    json_t *config;                               // the whole of it
    td_native_camera cameras[TD_WIRE_MAX_IMAGES]; // in the policy's order
    uint32_t camera_count;
    uint32_t state_dim;  // 0: it does not look at the robot's state
    uint32_t env_dim;    // 0: nor at the environment's
    const char *env_key; // "observation.environment_state", or NULL
    uint32_t action_dim; // columns of a chunk
    uint32_t chunk_rows;
    bool fits; // pictures of any size are brought to its own, with padding
    td_media_size fit; // that size, where it does
    td_media_place fit_place;
    const char **action_names; // [action_dim], or NULL: it does not say
} td_native_policy;

// Reads config.json of the folder. Owned: td_native_policy_done(). Blocks.
// NOTFOUND, IO, FORMAT, LIMIT, NOMEM; UNSUPPORTED for a type or an option that
// we do not know, by name.
TD_NODISCARD td_err td_native_policy_init(const char *folder,
                                          td_native_policy *ret_policy,
                                          td_errinfo *info);

// The same of a config.json that is read already, which is consumed; `file` is
// what errors call it.
TD_NODISCARD td_err td_native_policy_init_from(json_t *config, const char *file,
                                               td_native_policy *ret_policy,
                                               td_errinfo *info);
void td_native_policy_done(td_native_policy *policy);

// For reading a policy's own options with td_json_read_*.
td_json_at td_native_policy_options(const td_native_policy *policy);

const char *td_native_policy_name(td_native_policy_type type);
bool td_native_policy_has_text(td_native_policy_type type);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_ARCHITECTURE_H
#define TD_ENGINE_NATIVE_ARCHITECTURE_H

// What a kind of policy is to model.c, and how it gives its tensors to a side.
//
// To add one: a td_native_body_ops in a file of its own, and a row in model.c.

#include "engine/native/model.h"
#include "tendon/engine.h"

#define TD_NATIVE_NAME_BYTES 192 // of a tensor

typedef struct td_native_body_ops {
    td_native_policy_type type;

    // UNSUPPORTED, FORMAT, LIMIT for an option. Reads no weights.
    td_err (*check)(const td_native_checkpoint *of, td_errinfo *info);

    // Gives the weights, allocates for max_batch and fills in the model's
    // inputs and outputs. The body is freed also when this fails.
    td_err (*load)(td_native_model *model, td_errinfo *info);

    // Records one batch, between begin and end.
    td_err (*record)(td_native_model *model, uint32_t batch, td_errinfo *info);

    void (*free)(void *body);
} td_native_body_ops;

extern const td_native_body_ops td_native_act;

// The frames of one camera: of the first member, and bytes to the next.
typedef struct td_native_frames {
    uint8_t *host;
    size_t stride;
} td_native_frames;

struct td_native_model {
    const td_native_body_ops *ops;
    const td_native_checkpoint *checkpoint;
    const td_native_pipeline *pipeline;
    const td_ops *side_ops;
    td_ops_side *side;
    uint32_t max_batch;
    void *body;
    td_native_frames frames[TD_WIRE_MAX_IMAGES];
    float *state, *env, *actions; // of the first member; the next are behind
    td_ops_program *programs[TD_ENGINE_MAX_BATCH + 1]; // by batch size
};

// The name of a tensor, cut to fit, with which it is not found.
void td_native_body_name(char ret_name[TD_NATIVE_NAME_BYTES], const char *fmt,
                         ...) TD_PRINTF(2, 3);

// A view of new memory in the side's own type, for all members. NOMEM.
TD_NODISCARD td_err td_native_body_alloc(td_native_model *model, uint32_t rows,
                                         uint32_t cols, td_ops_view *ret_view,
                                         td_errinfo *info);

// The first members of such a view.
td_ops_view td_native_body_part(td_ops_view view, uint32_t batch);

// A float tensor of these sides, which must be finite. NOTFOUND, MISMATCH,
// UNSUPPORTED, FORMAT.
TD_NODISCARD td_err td_native_body_tensor(const td_native_model *model,
                                          const char *name, uint32_t rank,
                                          const uint64_t *shape,
                                          const td_native_tensor **ret_tensor,
                                          td_errinfo *info);

// The same as floats. Owned: free(). NOMEM.
TD_NODISCARD td_err td_native_body_floats(const td_native_model *model,
                                          const char *name, uint32_t rank,
                                          const uint64_t *shape,
                                          float **ret_floats, td_errinfo *info);

// The sides of a tensor of this rank, whatever they are. NOTFOUND, MISMATCH.
TD_NODISCARD td_err td_native_body_shape(const td_native_model *model,
                                         const char *name, uint32_t rank,
                                         uint64_t *ret_shape, td_errinfo *info);

// Elements from `first` on, for a side.
td_ops_source td_native_body_source(const td_native_tensor *tensor,
                                    uint64_t first);

// "PREFIX.weight" [out][in] and "PREFIX.bias" [out].
TD_NODISCARD td_err td_native_body_linear(td_native_model *model,
                                          const char *prefix, uint32_t in,
                                          uint32_t out,
                                          td_ops_linear_weight **ret_weight,
                                          td_errinfo *info);

// "PREFIX.weight" and "PREFIX.bias" of a LayerNorm.
TD_NODISCARD td_err td_native_body_norm(td_native_model *model,
                                        const char *prefix, uint32_t cols,
                                        td_ops_norm **ret_norm,
                                        td_errinfo *info);

#endif

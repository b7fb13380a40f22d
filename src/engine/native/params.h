// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_PARAMS_H
#define TD_ENGINE_NATIVE_PARAMS_H

// The parameters of a policy, from its checkpoint to the backend, by the names
// that PyTorch gave them. For whoever loads an architecture; one thread.

#include "engine/native/architecture.h"

#define TD_NATIVE_NAME_BYTES 192 // of a tensor

// The name of a tensor, cut to fit, with which it is not found.
void td_native_params_name(char ret_name[TD_NATIVE_NAME_BYTES], const char *fmt,
                           ...) TD_PRINTF(2, 3);

// A float tensor of these sides, which must be finite. NOTFOUND, MISMATCH,
// UNSUPPORTED, FORMAT.
TD_NODISCARD td_err td_native_params_tensor(const td_native_model *model,
                                            const char *name, uint32_t rank,
                                            const uint64_t *shape,
                                            const td_native_tensor **ret_tensor,
                                            td_errinfo *info);

// The same as floats. Owned: free(). NOMEM.
TD_NODISCARD td_err td_native_params_floats(const td_native_model *model,
                                            const char *name, uint32_t rank,
                                            const uint64_t *shape,
                                            float **ret_floats,
                                            td_errinfo *info);

// The sides of a tensor of this rank, whatever they are. NOTFOUND, MISMATCH.
TD_NODISCARD td_err td_native_params_shape(const td_native_model *model,
                                           const char *name, uint32_t rank,
                                           uint64_t *ret_shape,
                                           td_errinfo *info);

// Elements from `first` on, for a backend.
td_ops_source td_native_params_source(const td_native_tensor *tensor,
                                      uint64_t first);

// "PREFIX.weight" [out][in] and "PREFIX.bias" [out].
TD_NODISCARD td_err td_native_params_linear(td_native_model *model,
                                            const char *prefix, uint32_t in,
                                            uint32_t out,
                                            td_ops_linear_weight **ret_weight,
                                            td_errinfo *info);

// "PREFIX.weight" and "PREFIX.bias" of a LayerNorm.
TD_NODISCARD td_err td_native_params_norm(td_native_model *model,
                                          const char *prefix, uint32_t cols,
                                          td_ops_norm **ret_norm,
                                          td_errinfo *info);

// LayerNorm or RMS norm, with the epsilon of its own.
typedef struct td_native_params_norm_kind {
    uint32_t cols;
    float epsilon;
    td_ops_norm_kind kind;
    float base; // of an RMS norm, which has no bias
} td_native_params_norm_kind;

TD_NODISCARD td_err
td_native_params_norm_of(td_native_model *model, const char *prefix,
                         const td_native_params_norm_kind *kind,
                         td_ops_norm **ret_norm, td_errinfo *info);

// "PREFIX.NAME.weight" [out][in], and its bias.
typedef struct td_native_params_rows {
    const char *name;
    uint32_t out;
} td_native_params_rows;

// Weights that are one product, one below the other or gated.
typedef struct td_native_params_stack {
    const td_native_params_rows *rows;
    uint32_t count; // 1 to 1 + TD_OPS_MORE_PARTS
    uint32_t in;
    bool biased, gated;
} td_native_params_stack;

TD_NODISCARD td_err
td_native_params_stacked(td_native_model *model, const char *prefix,
                         const td_native_params_stack *stack,
                         td_ops_linear_weight **ret_weight, td_errinfo *info);

// How many layers there are: numbers from 0 on for which there is a tensor
// "PREFIX.NUMBER.REST". At most TD_NATIVE_MOST_LAYERS.
#define TD_NATIVE_MOST_LAYERS 128
uint32_t td_native_params_layers(const td_native_model *model,
                                 const char *prefix, const char *rest);

// A table of the backend's own type that members share. NOMEM.
TD_NODISCARD td_err td_native_params_table(td_native_model *model,
                                           uint32_t rows, uint32_t cols,
                                           const float *from,
                                           td_ops_view *ret_view,
                                           td_errinfo *info);

#endif

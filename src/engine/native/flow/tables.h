// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_FLOW_TABLES_H
#define TD_ENGINE_NATIVE_FLOW_TABLES_H

// What of a policy that denoises is known when it is loaded: embeddings of
// words, rotary angles, and what the time of each step comes to.

#include "engine/native/params.h"

// A tensor of words, [vocabulary][width], each times the square root of its
// width. NOTFOUND, MISMATCH, LIMIT.
TD_NODISCARD td_err td_native_flow_embedding(
    td_native_model *model, const char *name, td_ops_embedding **ret_embedding,
    uint32_t *ret_vocabulary, uint32_t *ret_width, td_errinfo *info);

// Cosines and sines of `positions`, F32 [positions][size].
TD_NODISCARD td_err td_native_flow_angles(td_native_model *model,
                                          uint32_t positions, uint32_t size,
                                          double base, td_ops_view *ret_angles,
                                          td_errinfo *info);

// The embedding of a time, [width]: sines and cosines whose periods go from
// `least` to `most`.
void td_native_flow_time(double time, uint32_t width, double least, double most,
                         float *ret_values);

// A layer "WEIGHT.weight" [width][2 width] of actions and a time beside each
// other.
typedef struct td_native_flow_times {
    const char *weight;
    uint32_t width, steps;
    double least, most; // periods
} td_native_flow_times;

// What the times of the steps add to it, with its bias: [steps][width] of the
// backend's own type.
TD_NODISCARD td_err td_native_flow_times_table(td_native_model *model,
                                               const td_native_flow_times *of,
                                               td_ops_view *ret_table,
                                               td_errinfo *info);

// A network of times on the processor, while a policy is loaded: of each step's
// time, and of the end's, a condition, silu(OUT silu(IN time)), of which the
// modulations of norms are made.
typedef struct td_native_flow_times_net td_native_flow_times_net;

// Borrows the model for as long as it lives. Owned by the caller.
TD_NODISCARD td_err td_native_flow_times_net_new(
    td_native_model *model, const td_native_flow_times *of, const char *in,
    const char *out, td_native_flow_times_net **ret_net, td_errinfo *info);
void td_native_flow_times_net_free(td_native_flow_times_net *net);
TD_AUTO_FREE(td_native_flow_times_net, td_native_flow_times_net_free)

// F32 [steps][2][3 width], by "NAME.weight" [3 width][width] and its bias: of
// each step its own, and that of the end.
TD_NODISCARD td_err td_native_flow_times_modulate(td_native_flow_times_net *net,
                                                  const char *name,
                                                  td_ops_view *ret_table,
                                                  td_errinfo *info);

#endif

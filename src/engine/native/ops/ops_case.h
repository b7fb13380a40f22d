// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_OPS_OPS_CASE_H
#define TD_ENGINE_NATIVE_OPS_OPS_CASE_H

// What the files that build cases of operations share (ops_cases.c).

#include "engine/native/ops/ops.h"

#include <jansson.h>

#define TD_OPS_CASE_NAME 48
#define TD_OPS_CASE_INPUTS 16
#define TD_OPS_CASE_IOS 5

// One case at work. What it gave the backend is kept until the backend is
// closed.
typedef struct td_ops_case {
    const td_ops *ops;
    td_ops_backend *backend;
    td_ops_dtype dtype;
    const json_t *sizes;
    char name[TD_OPS_CASE_NAME]; // "ops/12"
    float *kept[TD_OPS_CASE_INPUTS];
    size_t kept_count;
    td_ops_io in, out; // what comes from outside, and what leaves
    td_ops_io inputs[TD_OPS_CASE_IOS]; // what else comes, and its bytes
    size_t input_bytes[TD_OPS_CASE_IOS];
    uint32_t input_count;
    td_ops_view out_view;
    td_errinfo info;
} td_ops_case;

// Of the case's sizes; 0 and false where it has none of this name.
uint32_t td_ops_case_size(const td_ops_case *w, const char *name);
bool td_ops_case_is(const td_ops_case *w, const char *name, const char *value);
bool td_ops_case_holds(const td_ops_case *w, const char *name);

// Numbers of the case by the name of a part, "x": those of a weight where it
// has a rank. Kept with the case.
float *td_ops_case_numbers(td_ops_case *w, const char *part, uint32_t rank,
                           uint64_t inputs, size_t count);
td_ops_source td_ops_case_source(td_ops_case *w, const char *part,
                                 uint32_t rank, uint64_t inputs, size_t count);

// A view with a gap after each row and member, so that strides are used; and
// numbers of the case into one.
TD_NODISCARD td_err td_ops_case_room(td_ops_case *w, uint32_t batch,
                                     uint32_t rows, uint32_t cols,
                                     td_ops_view *ret_view);
TD_NODISCARD td_err td_ops_case_fill(td_ops_case *w, const char *part,
                                     td_ops_view view);

// What the case gives: opened before the graph begins, and given last, as it is
// through a linear that changes nothing.
TD_NODISCARD td_err td_ops_case_open_out(td_ops_case *w, uint32_t batch,
                                         uint32_t rows, uint32_t cols);
TD_NODISCARD td_err td_ops_case_give(td_ops_case *w);
TD_NODISCARD td_err td_ops_case_make_same(td_ops_case *w, uint32_t cols,
                                          td_ops_linear_weight **ret);
TD_NODISCARD td_err td_ops_case_give_as_it_is(td_ops_case *w, td_ops_view from,
                                              td_ops_linear_weight *same);

// Operations of policies that see and read (ops_token_cases.c).
TD_NODISCARD td_err td_ops_case_rms(td_ops_case *w);
TD_NODISCARD td_err td_ops_case_token(td_ops_case *w);
TD_NODISCARD td_err td_ops_case_grouped(td_ops_case *w);
TD_NODISCARD td_err td_ops_case_embed(td_ops_case *w);
TD_NODISCARD td_err td_ops_case_blocks(td_ops_case *w);
TD_NODISCARD td_err td_ops_case_step(td_ops_case *w);

#endif

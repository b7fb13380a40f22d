// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_FLOW_FLOW_H
#define TD_ENGINE_NATIVE_FLOW_FLOW_H

// What policies have in common that make a chunk out of noise, a step after the
// other (flow matching: SmolVLA, pi0, pi0.5): their inputs, the keys and values
// that their first half leaves for the second, and those that are kept.
//
// A prefix is rows: the state in front where the policy wants it there, a
// number of rows for each picture, then a text, which may be shorter than it
// could be: what lies beyond is not looked at. A graph of the first half is for
// one number of text rows (a bucket), and takes all texts that fit.
//
// One thread.

#include "engine/native/flow/graph.h"
#include "engine/native/flow/guide.h"
#include "media/fit.h"

#define TD_NATIVE_FLOW_BUCKETS 4
#define TD_NATIVE_FLOW_MOST_STATE 512 // numbers, padded

typedef struct td_native_flow_config {
    uint32_t picture_rows; // of one picture in the prefix
    uint32_t vocabulary;
    bool state_in_prefix;  // its first row; else the suffix's
    uint32_t state_width;  // numbers of a state, padded; 0: it wants none
    uint32_t action_width; // numbers of an action, padded
    uint32_t suffix_rows;
    uint32_t layers, kv_cols; // of the cache: k and v beside each other
    bool holds; // rows that a robot has promised may be given as they are
    td_native_guide guide;
} td_native_flow_config;

// What a kept prefix is on the host.
typedef struct td_native_flow_kept {
    uint32_t length;
    float state[TD_NATIVE_FLOW_MOST_STATE];
} td_native_flow_kept;

typedef struct td_native_flow {
    td_native_flow_config config;
    uint32_t cameras;    // that a robot has
    uint32_t side;       // pixels of a picture that the policy sees
    uint32_t text_rows;  // most
    uint32_t text_first; // row of the prefix
    uint32_t rows;       // most of a prefix
    uint32_t chunk;      // rows of actions
    td_media_fitter *fitters[TD_WIRE_MAX_IMAGES];
    uint8_t *frames[TD_WIRE_MAX_IMAGES]; // as robots send them

    // Inputs, a member after the other. `places` are positions of the prefix,
    // `own_places` of the suffix after it, `from_zero` of the suffix alone.
    td_ops_io pictures, ids, places, lengths, state;
    td_ops_io x, tail, weights, held, own_places, from_zero;
    td_native_flow_kept *members; // [max_batch]: what decode wants of each

    char *cache; // [member][layer][rows][kv_cols]
    size_t member_bytes;
    char *pool; // kept prefixes, one after the other
    uint32_t slots;
    td_native_flow_kept *kept; // [slots]
} td_native_flow;

// Takes memory for the model's max_batch and `kept` prefixes. To be ended with
// td_native_flow_done() also when this fails. UNSUPPORTED, LIMIT, NOMEM.
TD_NODISCARD td_err td_native_flow_load(td_native_model *model,
                                        const td_native_flow_config *config,
                                        td_native_flow *flow, td_errinfo *info);
void td_native_flow_done(td_native_flow *flow);

// Numbers of text rows for which there is a graph, the smallest first.
uint32_t td_native_flow_buckets(const td_native_flow *flow,
                                uint32_t ret_rows[TD_NATIVE_FLOW_BUCKETS]);

// The inputs of a member, whose frames are there. INVALID for a token that the
// policy does not know, LIMIT.
TD_NODISCARD td_err td_native_flow_observe(td_native_model *model,
                                           td_native_flow *flow,
                                           uint32_t member,
                                           const td_native_model_input *input,
                                           td_errinfo *info);

// What a member's chunk begins as, [chunk][action_width], to be written before
// each run; and after that what it is guided by, or nothing. INVALID for rows
// that a policy was not trained for.
float *td_native_flow_noise(const td_native_flow *flow, uint32_t member);
TD_NODISCARD td_err td_native_flow_guide(td_native_flow *flow, uint32_t member,
                                         const td_native_model_left *left,
                                         uint32_t columns, td_errinfo *info);
void td_native_flow_unguide(td_native_flow *flow, uint32_t member);

// The member's prefix to a slot below `slots`, and back.
TD_NODISCARD td_err td_native_flow_keep(td_native_model *model,
                                        td_native_flow *flow, uint32_t member,
                                        uint32_t slot, td_errinfo *info);
TD_NODISCARD td_err td_native_flow_restore(td_native_model *model,
                                           td_native_flow *flow, uint32_t slot,
                                           uint32_t member, td_errinfo *info);

// Views for a graph: the whole text's ids, positions and lengths of a prefix of
// `rows`, keys and values of a layer.
td_ops_view td_native_flow_places(const td_native_flow *flow,
                                  const td_native_graph *graph, uint32_t rows);
td_ops_view td_native_flow_lengths(const td_native_flow *flow,
                                   const td_native_graph *graph);
td_ops_view td_native_flow_cache(const td_native_flow *flow,
                                 const td_native_graph *graph, uint32_t layer,
                                 uint32_t rows);

// How a network looks at `count` pictures from number `first` on, of all
// members one after the other, and what they come to: rows of `to`.
typedef struct td_native_flow_look {
    td_err (*build)(const void *network, const td_native_graph *graph,
                    uint32_t first, uint32_t count, td_ops_view to);
    const void *network;
} td_native_flow_look;

// Looks at all pictures in one pass, or one after the other where pictures gain
// nothing from a pass that they share. `sums` are the whole prefix's.
TD_NODISCARD td_err td_native_flow_look_at_all(const td_native_flow *flow,
                                               const td_native_graph *graph,
                                               const td_native_flow_look *look,
                                               td_ops_view sums);

// Most pictures in a pass.
uint32_t td_native_flow_pass(const td_native_model *model);

// Adds the copies of a half's inputs.
TD_NODISCARD td_err td_native_flow_take_prefix(const td_native_flow *flow,
                                               const td_native_graph *graph);
TD_NODISCARD td_err td_native_flow_take_suffix(const td_native_flow *flow,
                                               const td_native_graph *graph);

// Adds step `index` of `steps`, whose velocity is in `v`.
TD_NODISCARD td_err td_native_flow_step(const td_native_flow *flow,
                                        const td_native_graph *graph,
                                        td_ops_view v, uint32_t index,
                                        uint32_t steps);

#endif

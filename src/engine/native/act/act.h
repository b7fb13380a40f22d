// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_ACT_ACT_H
#define TD_ENGINE_NATIVE_ACT_ACT_H

// ACT between its files: act_load.c fills this in, act.c builds graphs of it.
//
// d is the width of a token, T how many the encoder has: the latent, the state,
// the environment, and the pixels of each camera's features.

#include "engine/native/act/resnet.h"

#define TD_NATIVE_ACT_MAX_LAYERS 64

// Attention of x to itself. Positions are added to what makes q and k alone,
// and (x + p) W = x W + p W: the second part, with the biases, is a table.
typedef struct td_native_act_self {
    td_ops_linear_weight *qkv; // d to 3 d
    td_ops_view table;         // [rows][3 d]
    td_ops_linear_weight *out;
} td_native_act_self;

// Attention of the decoder to the encoder. The first layer's queries are no
// weight's, but a constant: see td_native_act.start.
typedef struct td_native_act_cross {
    td_ops_linear_weight *q;  // NULL in the first layer
    td_ops_view q_table;      // [chunk][d]; in the first layer the queries
    td_ops_linear_weight *kv; // d to 2 d
    td_ops_view kv_table;     // [T][2 d]
    td_ops_linear_weight *out;
} td_native_act_cross;

typedef struct td_native_act_layer {
    td_native_act_self self;   // not in the decoder's first
    td_native_act_cross cross; // in the decoder
    td_ops_linear_weight *up, *down;
    td_ops_norm *norms[3]; // the third in the decoder
} td_native_act_layer;

// Cameras in a row whose pictures have one size and one normalisation.
typedef struct td_native_act_cameras {
    uint32_t first, count;
    uint32_t height, width;
    td_ops_pixels pixels;
    td_ops_io frames; // [member][camera][height][width][3]
    td_native_resnet_shape shape;
} td_native_act_cameras;

// A sum that layers add to, and its norm.
typedef struct td_native_act_stream {
    td_ops_view sums[2]; // in turn
    td_ops_view normed;  // with norms before the layers
} td_native_act_stream;

typedef struct td_native_act_network {
    uint32_t width, heads, hidden, chunk, tokens;
    bool norm_first;
    td_ops_activation activation;

    td_native_resnet *resnet;
    td_native_act_cameras cameras[TD_WIRE_MAX_IMAGES];
    uint32_t camera_groups;
    td_ops_linear_weight *image_proj, *state_proj, *env_proj;
    td_ops_io state, env, actions;

    td_native_act_layer encoder[TD_NATIVE_ACT_MAX_LAYERS];
    td_native_act_layer decoder[TD_NATIVE_ACT_MAX_LAYERS];
    uint32_t encoder_layers, decoder_layers;
    td_ops_norm *encoder_norm; // with norms before the layers
    td_ops_norm *decoder_norm;
    td_ops_linear_weight *head;

    // The decoder begins with zeros, of which its first layer attends to
    // itself: whatever the observation, this is what comes out, [chunk][d].
    td_ops_view start;

    td_ops_dtype dtype;
    td_ops_view embedded; // [T][d] a member; row 0, the latent, never changes
    void *maps[TD_NATIVE_RESNET_MAPS];
    void *wide, *queries, *attended, *raised; // 3 d, d, d, hidden wide
    td_native_act_stream encoding, decoding;
} td_native_act_network;

// As td_native_architecture_ops; the network is the model's.
TD_NODISCARD td_err td_native_act_check(const td_native_checkpoint *of,
                                        td_errinfo *info);
TD_NODISCARD td_err td_native_act_load(td_native_model *model,
                                       td_errinfo *info);
void td_native_act_free(void *network);

#endif

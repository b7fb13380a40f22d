// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_ACT_RESNET_H
#define TD_ENGINE_NATIVE_ACT_RESNET_H

// The vision of ACT: a ResNet of torchvision's (18, 34, 50, 101, 152) with
// frozen batch norms, from pixels to its last map of features.

#include "engine/native/params.h"

typedef struct td_native_resnet td_native_resnet;

// Gives the backend the weights that begin with "PREFIX."; what kind of ResNet
// it is, the tensors say. `dilate`: the last stage keeps its size and looks
// wider. Owned by the caller. As td_native_params_tensor; NOMEM.
TD_NODISCARD td_err td_native_resnet_load(td_native_model *model,
                                          const char *prefix, bool dilate,
                                          td_native_resnet **ret_resnet,
                                          td_errinfo *info);
void td_native_resnet_free(td_native_resnet *resnet);
TD_AUTO_FREE(td_native_resnet, td_native_resnet_free)

// Of pictures of one size.
typedef struct td_native_resnet_shape {
    uint32_t rows, cols; // of the last map
    uint32_t channels;   // of its pixels
    size_t most;         // numbers of the largest map on the way
    uint32_t maps;       // that are needed at a time, at most MAPS
} td_native_resnet_shape;

#define TD_NATIVE_RESNET_MAPS 4

td_native_resnet_shape td_native_resnet_shape_of(const td_native_resnet *resnet,
                                                 uint32_t height,
                                                 uint32_t width);

typedef struct td_native_resnet_input {
    td_ops_view frames; // U8: pictures, height x width rows of 3
    td_ops_pixels pixels;
    uint32_t height, width;
    td_ops_dtype dtype;                // of the maps
    void *maps[TD_NATIVE_RESNET_MAPS]; // of `most` numbers a picture
} td_native_resnet_input;

// Adds to the graph; `ret_features` lies in one of the maps. As the backend's
// operations.
TD_NODISCARD td_err td_native_resnet_build(const td_native_resnet *resnet,
                                           const td_native_model *model,
                                           const td_native_resnet_input *input,
                                           td_ops_view *ret_features,
                                           td_errinfo *info);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_CALLBACK_VIEW_H
#define TD_ENGINE_CALLBACK_VIEW_H

// An item of a batch as the user's function sees it. One thread.

#include "engine/picture.h"
#include "tendon/engine.h"
#include "tendon/infer.h"

// One place in a batch, used again and again. Begins with zeros.
typedef struct td_engine_callback_member {
    td_infer_request request;
    td_engine_item *item;
    td_errinfo why;
    float state[TD_WIRE_MAX_CHANNELS];
    td_infer_image images[TD_WIRE_MAX_IMAGES];
    td_infer_tensor tensors[TD_WIRE_MAX_TENSORS];
    td_infer_pair metadata[TD_WIRE_MAX_METADATA];
    td_infer_tensor rtc_prefix;
    uint8_t *pixels; // of all cameras, once one had to be decoded; free()
    uint8_t *joined; // images that came in pieces; free()
    size_t room;     // bytes of it
} td_engine_callback_member;

// Fills the request from the item, which is borrowed while it is used: pictures
// of cameras are decoded, raw ones stay where they are if they came whole.
// MISMATCH, FORMAT and whatever else is wrong with a picture; NOMEM.
TD_NODISCARD td_err td_engine_callback_view(const td_engine_spec *spec,
                                            td_engine_picture_reader *pictures,
                                            td_engine_item *item,
                                            td_engine_callback_member *member,
                                            td_errinfo *info);

#endif

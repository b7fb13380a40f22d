// SPDX-License-Identifier: Apache-2.0
// The ResNet of torchvision (18, 34, 50, 101, 152) before its last pooling.
//
// What kind it is, the tensors say: blocks of two convolutions or of three,
// with a projection as their shortcut or without, as many as there are names.
// Each batch norm is frozen and so a scale and a bias for each channel, which
// are folded into the convolution before it when it is loaded.
//
// In a graph a block is its convolutions with ReLU, the last of which also adds
// the shortcut: the block's input, or its projection, fused into the same
// operation. Maps take turns in as many buffers as the longest block needs, its
// input among them. With `dilate` the last stage keeps its size and looks wider
// instead.
#include "engine/native/act/resnet.h"

#include <math.h>
#include <stdlib.h>

#define STAGES 4
#define MAX_BLOCKS 64
#define BATCH_NORM_EPSILON 1e-5f // torchvision's FrozenBatchNorm2d

typedef struct conv {
    td_ops_conv_weight *weight;
    uint32_t in, out, kernel, stride, pad, dilation;
} conv;

// Two convolutions, or three, and the shortcut around them.
typedef struct block {
    conv convs[3];
    uint32_t count;
    conv shortcut; // without a weight: the input itself
} block;

struct td_native_resnet {
    conv stem;
    block blocks[MAX_BLOCKS];
    uint32_t count;
};

// The four vectors of a batch norm.
typedef struct frozen {
    float *weight, *bias, *mean, *variance;
} frozen;

static void frozen_done(frozen *norm)
{
    free(norm->weight);
    free(norm->bias);
    free(norm->mean);
    free(norm->variance);
}

static td_err read_frozen(const td_native_model *model, const char *prefix,
                          uint64_t channels, frozen *norm, td_errinfo *info)
{
    const struct {
        const char *name;
        float **to;
    } each[] = {{"weight", &norm->weight},
                {"bias", &norm->bias},
                {"running_mean", &norm->mean},
                {"running_var", &norm->variance}};
    for (size_t i = 0; i < TD_COUNT_OF(each); i++) {
        char name[TD_NATIVE_NAME_BYTES];
        td_native_params_name(name, "%s.%s", prefix, each[i].name);
        TD_TRY(td_native_params_floats(model, name, 1, &channels, each[i].to,
                                       info));
    }
    return TD_OK;
}

// In place: y = x * weight + bias is what the norm does.
static td_err fold(frozen *norm, uint32_t channels, const char *prefix,
                   td_errinfo *info)
{
    for (uint32_t i = 0; i < channels; i++) {
        if (norm->variance[i] < 0)
            return td_fail(info, TD_ERR_FORMAT,
                           "%s.running_var: %g at %u is no variance", prefix,
                           (double)norm->variance[i], i);
        norm->weight[i] /= sqrtf(norm->variance[i] + BATCH_NORM_EPSILON);
        norm->bias[i] -= norm->mean[i] * norm->weight[i];
    }
    return TD_OK;
}

static td_err give_conv(td_native_model *model, const td_native_tensor *tensor,
                        const frozen *norm, conv *made, td_errinfo *info)
{
    const td_ops_conv_source source = {
        .weight = td_native_params_source(tensor, 0),
        .scale = norm->weight,
        .bias = norm->bias,
        .in = made->in,
        .out = made->out,
        .kernel = made->kernel,
        .stride = made->stride,
        .pad = made->pad,
        .dilation = made->dilation,
    };
    return model->ops->conv_weight(model->backend, &source, &made->weight,
                                   info);
}

// A convolution and the norm after it. Its sides are the tensor's; `made` says
// stride and dilation.
static td_err load_conv(td_native_model *model, const char *name,
                        const char *norm_prefix, conv *made, td_errinfo *info)
{
    uint64_t shape[4];
    const td_native_tensor *tensor = NULL;
    TD_TRY(td_native_params_shape(model, name, 4, shape, info));
    if (shape[2] != shape[3] || shape[2] > 7 || shape[2] % 2 == 0)
        return td_fail(info, TD_ERR_UNSUPPORTED, "%s: a kernel of %llu x %llu",
                       name, (unsigned long long)shape[2],
                       (unsigned long long)shape[3]);
    TD_TRY(td_native_params_tensor(model, name, 4, shape, &tensor, info));
    made->out = (uint32_t)shape[0];
    made->in = (uint32_t)shape[1];
    made->kernel = (uint32_t)shape[2];
    made->pad = made->kernel / 2 * made->dilation;
    frozen norm = {0};
    td_err err = read_frozen(model, norm_prefix, shape[0], &norm, info);
    if (err == TD_OK) err = fold(&norm, made->out, norm_prefix, info);
    if (err == TD_OK) err = give_conv(model, tensor, &norm, made, info);
    frozen_done(&norm);
    return err;
}

static bool has(const td_native_model *model, const char *prefix,
                const char *rest)
{
    char name[TD_NATIVE_NAME_BYTES];
    td_native_params_name(name, "%s%s", prefix, rest);
    return td_native_weights_find(model->checkpoint->weights, name) != NULL;
}

static td_err load_block(td_native_model *model, const char *prefix,
                         uint32_t stride, uint32_t dilation, block *made,
                         td_errinfo *info)
{
    char name[TD_NATIVE_NAME_BYTES], norm[TD_NATIVE_NAME_BYTES];
    made->count = has(model, prefix, ".conv3.weight") ? 3 : 2;
    uint32_t wide = made->count - 2; // which convolution has the stride
    for (uint32_t i = 0; i < made->count; i++) {
        made->convs[i].stride = i == wide ? stride : 1;
        made->convs[i].dilation = i == wide ? dilation : 1;
        td_native_params_name(name, "%s.conv%u.weight", prefix, i + 1);
        td_native_params_name(norm, "%s.bn%u", prefix, i + 1);
        TD_TRY(load_conv(model, name, norm, &made->convs[i], info));
    }
    if (!has(model, prefix, ".downsample.0.weight")) return TD_OK;
    made->shortcut.stride = stride;
    made->shortcut.dilation = 1;
    td_native_params_name(name, "%s.downsample.0.weight", prefix);
    td_native_params_name(norm, "%s.downsample.1", prefix);
    return load_conv(model, name, norm, &made->shortcut, info);
}

// Channels must go on from one to the next, and out as they came where the
// input is added.
static td_err check_block(const char *prefix, const block *made, uint32_t in,
                          td_errinfo *info)
{
    uint32_t channels = in;
    bool fits = true;
    for (uint32_t i = 0; i < made->count; i++) {
        fits &= made->convs[i].in == channels;
        channels = made->convs[i].out;
    }
    if (made->shortcut.weight)
        fits &= made->shortcut.in == in && made->shortcut.out == channels &&
                made->shortcut.kernel == 1;
    else
        fits &= in == channels;
    if (fits) return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH,
                   "%s: channels of its convolutions do not fit each other",
                   prefix);
}

static td_err load_stage(td_native_resnet *resnet, td_native_model *model,
                         const char *prefix, uint32_t stage, bool dilate,
                         uint32_t *channels, td_errinfo *info)
{
    for (uint32_t i = 0;; i++) {
        char name[TD_NATIVE_NAME_BYTES];
        td_native_params_name(name, "%s.layer%u.%u", prefix, stage, i);
        if (i > 0 && !has(model, name, ".conv1.weight")) return TD_OK;
        if (resnet->count == MAX_BLOCKS)
            return td_fail(info, TD_ERR_LIMIT, "%s: more than %d blocks", name,
                           MAX_BLOCKS);
        block *made = &resnet->blocks[resnet->count++];
        uint32_t stride = stage > 1 && i == 0 && !dilate ? 2 : 1;
        TD_TRY(load_block(model, name, stride, dilate && i > 0 ? 2 : 1, made,
                          info));
        TD_TRY(check_block(name, made, *channels, info));
        *channels = made->convs[made->count - 1].out;
    }
}

td_err td_native_resnet_load(td_native_model *model, const char *prefix,
                             bool dilate, td_native_resnet **ret_resnet,
                             td_errinfo *info)
{
    char name[TD_NATIVE_NAME_BYTES], norm[TD_NATIVE_NAME_BYTES];
    TD_AUTO(td_native_resnet) *resnet = calloc(1, sizeof *resnet);
    if (!resnet) return TD_ERR_NOMEM;
    td_native_params_name(name, "%s.conv1.weight", prefix);
    td_native_params_name(norm, "%s.bn1", prefix);
    resnet->stem.stride = 2;
    resnet->stem.dilation = 1;
    TD_TRY(load_conv(model, name, norm, &resnet->stem, info));
    if (resnet->stem.in != 3)
        return td_fail(info, TD_ERR_MISMATCH, "%s: wants %u colours, not 3",
                       name, resnet->stem.in);
    uint32_t channels = resnet->stem.out;
    for (uint32_t stage = 1; stage <= STAGES; stage++)
        TD_TRY(load_stage(resnet, model, prefix, stage,
                          dilate && stage == STAGES, &channels, info));
    *ret_resnet = TD_TAKE(resnet);
    return TD_OK;
}

void td_native_resnet_free(td_native_resnet *resnet)
{
    free(resnet);
}

// A map on its way: sides and channels.
typedef struct map {
    uint32_t height, width, channels;
} map;

static map after(map from, const conv *of)
{
    return (map){
        td_ops_conv_size(from.height, of->kernel, of->stride, of->pad,
                         of->dilation),
        td_ops_conv_size(from.width, of->kernel, of->stride, of->pad,
                         of->dilation),
        of->out,
    };
}

static map after_stem(const td_native_resnet *resnet, uint32_t height,
                      uint32_t width)
{
    map made = after((map){height, width, 3}, &resnet->stem);
    made.height = td_ops_conv_size(made.height, 3, 2, 1, 1);
    made.width = td_ops_conv_size(made.width, 3, 2, 1, 1);
    return made;
}

static size_t numbers(map of)
{
    return (size_t)of.height * of.width * of.channels;
}

td_native_resnet_shape td_native_resnet_shape_of(const td_native_resnet *resnet,
                                                 uint32_t height,
                                                 uint32_t width)
{
    map at = after_stem(resnet, height, width);
    td_native_resnet_shape shape = {.most = numbers(at)};
    for (uint32_t i = 0; i < resnet->count; i++) {
        const block *of = &resnet->blocks[i];
        for (uint32_t k = 0; k < of->count; k++) {
            at = after(at, &of->convs[k]);
            if (numbers(at) > shape.most) shape.most = numbers(at);
        }
        if (of->count + 1 > shape.maps) shape.maps = of->count + 1;
    }
    shape.rows = at.height;
    shape.cols = at.width;
    shape.channels = at.channels;
    return shape;
}

// Where a block is: its input is map `slot` of so many that take turns.
typedef struct progress {
    const td_native_model *model;
    const td_native_resnet_input *input;
    map at;
    uint32_t slot;
} progress;

static td_ops_view view_of(const progress *now, map of, uint32_t slot)
{
    return td_ops_dense(now->input->maps[slot], now->input->dtype,
                        now->input->frames.batch, of.height * of.width,
                        of.channels);
}

static td_err build_stem(const td_native_resnet *resnet, progress *now,
                         td_errinfo *info)
{
    const td_native_resnet_input *input = now->input;
    now->at = after_stem(resnet, input->height, input->width);
    const td_ops_conv op = {
        .weight = resnet->stem.weight,
        .pixels = &input->pixels,
        .height = input->height,
        .width = input->width,
        .x = input->frames,
        .out = view_of(now, now->at, 0),
        .activation = TD_OPS_RELU,
        .pool = true,
    };
    return now->model->ops->conv(now->model->backend, &op, info);
}

static td_err build_block(const block *of, progress *now, td_errinfo *info)
{
    map first = now->at;
    uint32_t slots = of->count + 1, slot = now->slot;
    for (uint32_t i = 0; i < of->count; i++) {
        bool last = i + 1 == of->count;
        uint32_t next = (slot + 1) % slots;
        map made = after(now->at, &of->convs[i]);
        td_ops_conv op = {
            .weight = of->convs[i].weight,
            .height = now->at.height,
            .width = now->at.width,
            .x = view_of(now, now->at, slot),
            .out = view_of(now, made, next),
            .activation = TD_OPS_RELU,
        };
        if (last && of->shortcut.weight) {
            op.shortcut_weight = of->shortcut.weight;
            op.shortcut_height = first.height;
            op.shortcut_width = first.width;
            op.shortcut = view_of(now, first, now->slot);
        } else if (last) {
            op.add = view_of(now, first, now->slot);
        }
        TD_TRY(now->model->ops->conv(now->model->backend, &op, info));
        now->at = made;
        slot = next;
    }
    now->slot = slot;
    return TD_OK;
}

td_err td_native_resnet_build(const td_native_resnet *resnet,
                              const td_native_model *model,
                              const td_native_resnet_input *input,
                              td_ops_view *ret_features, td_errinfo *info)
{
    progress now = {.model = model, .input = input};
    TD_TRY(build_stem(resnet, &now, info));
    for (uint32_t i = 0; i < resnet->count; i++)
        TD_TRY(build_block(&resnet->blocks[i], &now, info));
    *ret_features = view_of(&now, now.at, now.slot);
    return TD_OK;
}

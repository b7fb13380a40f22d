// SPDX-License-Identifier: Apache-2.0
// ACT from its checkpoint to the backend: options, sizes, inputs, memory.
//
// Options come from config.json and are checked before any weight is read,
// which is also all that `check` does. Sizes come from the tensors and must
// agree with the options. Then, in this order: cameras and the ResNet (which
// say how many tokens there are), projections of the inputs, positions, and the
// layers (act_layers.c); at last the buffers that all layers share.
//
// Cameras in a row with one size and one normalisation are a group, and go
// through the ResNet as one batch. Positions are LeRobot's sines and cosines of
// each feature map, computed once; of the latent only its projection's bias is
// left, since it is zero.
//
// What fails leaves the rest to td_native_act_free(), and the backend frees
// what it gave.
#include "engine/native/act/act_load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WIDTH 8192
#define MAX_TOKENS 32768

typedef struct options {
    uint32_t heads, encoder_layers, decoder_layers;
    bool norm_first, dilate;
    td_ops_activation activation;
} options;

static td_err read_activation(const td_json_at *at,
                              td_ops_activation *ret_activation,
                              td_errinfo *info)
{
    const char *name = NULL;
    TD_TRY(td_json_read_text(at, "feedforward_activation", &name, info));
    if (strcmp(name, "relu") == 0)
        *ret_activation = TD_OPS_RELU;
    else if (strcmp(name, "gelu") == 0)
        *ret_activation = TD_OPS_GELU;
    else
        return td_json_read_fail(at, "feedforward_activation", info,
                                 TD_ERR_UNSUPPORTED,
                                 "must be relu or gelu, got %.32s", name);
    return TD_OK;
}

static td_err read_options(const td_native_checkpoint *of, options *ret_options,
                           td_errinfo *info)
{
    td_json_at at = td_native_policy_options(&of->policy);
    const char *backbone = NULL;
    options read = {0};
    TD_TRY(td_json_read_whole(&at, "n_heads", 1, MAX_WIDTH, &read.heads, info));
    TD_TRY(td_json_read_whole(&at, "n_encoder_layers", 1,
                              TD_NATIVE_ACT_MAX_LAYERS, &read.encoder_layers,
                              info));
    TD_TRY(td_json_read_whole(&at, "n_decoder_layers", 1,
                              TD_NATIVE_ACT_MAX_LAYERS, &read.decoder_layers,
                              info));
    TD_TRY(td_json_read_bool(&at, "pre_norm", &read.norm_first, info));
    TD_TRY(td_json_read_bool(&at, "replace_final_stride_with_dilation",
                             &read.dilate, info));
    TD_TRY(read_activation(&at, &read.activation, info));
    TD_TRY(td_json_read_text(&at, "vision_backbone", &backbone, info));
    if (strncmp(backbone, "resnet", 6) != 0)
        return td_json_read_fail(&at, "vision_backbone", info,
                                 TD_ERR_UNSUPPORTED,
                                 "must be a ResNet, got %.32s", backbone);
    *ret_options = read;
    return TD_OK;
}

td_err td_native_act_check(const td_native_checkpoint *of, td_errinfo *info)
{
    options ignored;
    return read_options(of, &ignored, info);
}

// Sines and cosines of one direction, half of a token, as LeRobot's
// ACTSinusoidalPositionEmbedding2d has them.
static void place(uint32_t at, uint32_t of, uint32_t half, float *to)
{
    float angle = (float)(at + 1) / ((float)of + 1e-6f) * (float)(2 * M_PI);
    for (uint32_t i = 0; i < half; i++) {
        uint32_t even = i - i % 2;
        float power = (float)even / (float)half;
        float turned = angle / powf(10000.0f, power);
        to[i] = i % 2 == 0 ? sinf(turned) : cosf(turned);
    }
}

static void place_map(const td_native_resnet_shape *shape, uint32_t d,
                      float *to)
{
    for (uint32_t row = 0; row < shape->rows; row++)
        for (uint32_t col = 0; col < shape->cols; col++, to += d) {
            place(row, shape->rows, d / 2, to);
            place(col, shape->cols, d / 2, to + d / 2);
        }
}

static uint32_t flat_tokens(const td_native_policy *policy)
{
    return 1 + (policy->state_dim > 0) + (policy->env_dim > 0);
}

static td_err load_positions(td_native_act_loading *load)
{
    td_native_act_network *act = load->act;
    uint32_t flat = flat_tokens(&load->model->checkpoint->policy);
    size_t d = act->width;
    float *table = NULL;
    TD_TRY(td_native_params_floats(
        load->model, "model.encoder_1d_feature_pos_embed.weight", 2,
        (const uint64_t[]){flat, d}, &table, load->info));
    load->positions = malloc(act->tokens * d * sizeof(float));
    if (load->positions)
        memcpy(load->positions, table, flat * d * sizeof(float));
    free(table);
    if (!load->positions) return TD_ERR_NOMEM;
    float *at = load->positions + flat * d;
    for (uint32_t i = 0; i < act->camera_groups; i++)
        for (uint32_t k = 0; k < act->cameras[i].count; k++) {
            const td_native_resnet_shape *shape = &act->cameras[i].shape;
            place_map(shape, act->width, at);
            at += (size_t)shape->rows * shape->cols * d;
        }
    TD_TRY(td_native_act_table_new(load, act->tokens, act->width,
                                   &load->positions_view));
    return td_native_act_table_fill(load, load->positions_view,
                                    load->positions);
}

static td_err load_steps(td_native_act_loading *load)
{
    td_native_act_network *act = load->act;
    TD_TRY(td_native_params_floats(
        load->model, "model.decoder_pos_embed.weight", 2,
        (const uint64_t[]){act->chunk, act->width}, &load->steps, load->info));
    TD_TRY(td_native_act_table_new(load, act->chunk, act->width,
                                   &load->steps_view));
    return td_native_act_table_fill(load, load->steps_view, load->steps);
}

static td_ops_pixels pixels_of(const td_native_model *model, uint32_t camera)
{
    td_native_colours colours =
        td_native_pipeline_colours(model->pipeline, camera);
    td_ops_pixels pixels;
    memcpy(pixels.scale, colours.scale, sizeof pixels.scale);
    memcpy(pixels.shift, colours.bias, sizeof pixels.shift);
    return pixels;
}

static bool same_pixels(const td_ops_pixels *a, const td_ops_pixels *b)
{
    bool same = true;
    for (int i = 0; i < 3; i++)
        same &= a->scale[i] == b->scale[i] && a->shift[i] == b->shift[i];
    return same;
}

static void group_cameras(const td_native_model *model,
                          td_native_act_network *act)
{
    const td_native_policy *policy = &model->checkpoint->policy;
    td_native_act_cameras *last = NULL;
    for (uint32_t i = 0; i < policy->camera_count; i++) {
        const td_native_camera *camera = &policy->cameras[i];
        td_ops_pixels pixels = pixels_of(model, i);
        if (last && last->height == camera->height &&
            last->width == camera->width &&
            same_pixels(&last->pixels, &pixels)) {
            last->count++;
            continue;
        }
        last = &act->cameras[act->camera_groups++];
        *last = (td_native_act_cameras){.first = i,
                                        .count = 1,
                                        .height = camera->height,
                                        .width = camera->width,
                                        .pixels = pixels};
    }
}

static td_err alloc_frames(const td_native_act_loading *load,
                           td_native_act_cameras *of)
{
    td_native_model *model = load->model;
    size_t each = (size_t)of->height * of->width * 3;
    TD_TRY(model->ops->alloc_io(model->backend,
                                each * of->count * model->max_batch,
                                &of->frames, load->info));
    for (uint32_t i = 0; i < of->count; i++)
        model->frames[of->first + i] = (td_native_frames){
            .host = (uint8_t *)of->frames.host + i * each,
            .stride = each * of->count,
        };
    return TD_OK;
}

static td_err alloc_maps(const td_native_act_loading *load)
{
    td_native_act_network *act = load->act;
    td_native_model *model = load->model;
    size_t most = 0;
    uint32_t maps = 0;
    for (uint32_t i = 0; i < act->camera_groups; i++) {
        const td_native_act_cameras *of = &act->cameras[i];
        if (of->count * of->shape.most > most)
            most = of->count * of->shape.most;
        maps = of->shape.maps;
    }
    for (uint32_t i = 0; i < maps; i++)
        TD_TRY(model->ops->alloc(
            model->backend, most * model->max_batch * td_ops_bytes(act->dtype),
            &act->maps[i], load->info));
    return TD_OK;
}

static td_err load_cameras(const td_native_act_loading *load, bool dilate)
{
    td_native_act_network *act = load->act;
    group_cameras(load->model, act);
    act->tokens = flat_tokens(&load->model->checkpoint->policy);
    if (act->camera_groups == 0) return TD_OK;
    TD_TRY(td_native_resnet_load(load->model, "model.backbone", dilate,
                                 &act->resnet, load->info));
    for (uint32_t i = 0; i < act->camera_groups; i++) {
        td_native_act_cameras *of = &act->cameras[i];
        of->shape =
            td_native_resnet_shape_of(act->resnet, of->height, of->width);
        uint64_t more = (uint64_t)of->count * of->shape.rows * of->shape.cols;
        if (act->tokens + more > MAX_TOKENS)
            return td_fail(load->info, TD_ERR_LIMIT,
                           "%s: pictures make more than %d tokens",
                           load->model->checkpoint->folder, MAX_TOKENS);
        act->tokens += (uint32_t)more;
        TD_TRY(alloc_frames(load, of));
    }
    return alloc_maps(load);
}

// The projection of the pictures is a convolution of 1 x 1:
// [d][channels][1][1].
static td_err load_image_proj(const td_native_act_loading *load)
{
    td_native_act_network *act = load->act;
    const char *name = "model.encoder_img_feat_input_proj.weight";
    const char *bias_name = "model.encoder_img_feat_input_proj.bias";
    const td_native_tensor *weight = NULL, *bias = NULL;
    if (act->camera_groups == 0) return TD_OK;
    uint32_t channels = act->cameras[0].shape.channels;
    TD_TRY(td_native_params_tensor(
        load->model, name, 4, (const uint64_t[]){act->width, channels, 1, 1},
        &weight, load->info));
    TD_TRY(td_native_params_tensor(load->model, bias_name, 1,
                                   (const uint64_t[]){act->width}, &bias,
                                   load->info));
    const td_ops_linear_source source = {
        .weight = td_native_params_source(weight, 0),
        .bias = td_native_params_source(bias, 0),
        .in = channels,
        .out = act->width,
    };
    return load->model->ops->linear_weight(load->model->backend, &source,
                                           &act->image_proj, load->info);
}

static td_err load_vector(const td_native_act_loading *load, const char *prefix,
                          uint32_t size, td_ops_linear_weight **ret_weight,
                          td_ops_io *ret_io)
{
    td_native_model *model = load->model;
    if (size == 0) return TD_OK;
    TD_TRY(model->ops->alloc_io(model->backend,
                                (size_t)model->max_batch * size * sizeof(float),
                                ret_io, load->info));
    return td_native_params_linear(model, prefix, size, load->act->width,
                                   ret_weight, load->info);
}

// The latent is zero, and what its projection makes of it is the bias.
static td_err load_latent(const td_native_act_loading *load)
{
    td_native_act_network *act = load->act;
    float *bias = NULL;
    TD_TRY(td_native_params_floats(
        load->model, "model.encoder_latent_input_proj.bias", 1,
        (const uint64_t[]){act->width}, &bias, load->info));
    td_err err = td_native_act_table_repeat(
        load, td_ops_rows(act->embedded, 0, 1), bias);
    free(bias);
    return err;
}

static td_err load_inputs(const td_native_act_loading *load)
{
    td_native_act_network *act = load->act;
    td_native_model *model = load->model;
    const td_native_policy *policy = &model->checkpoint->policy;
    TD_TRY(load_image_proj(load));
    TD_TRY(load_vector(load, "model.encoder_robot_state_input_proj",
                       policy->state_dim, &act->state_proj, &act->state));
    TD_TRY(load_vector(load, "model.encoder_env_state_input_proj",
                       policy->env_dim, &act->env_proj, &act->env));
    model->state = act->state.host;
    model->env = act->env.host;
    TD_TRY(td_native_model_buffer(model, act->tokens, act->width,
                                  &act->embedded, load->info));
    return load_latent(load);
}

static td_err alloc_stream(const td_native_act_loading *load, uint32_t rows,
                           td_native_act_stream *stream)
{
    uint32_t d = load->act->width;
    for (int i = 0; i < 2; i++)
        TD_TRY(td_native_model_buffer(load->model, rows, d, &stream->sums[i],
                                      load->info));
    if (!load->act->norm_first) return TD_OK;
    return td_native_model_buffer(load->model, rows, d, &stream->normed,
                                  load->info);
}

static td_err alloc_rooms(const td_native_act_loading *load)
{
    td_native_act_network *act = load->act;
    td_native_model *model = load->model;
    uint32_t rows = act->tokens > act->chunk ? act->tokens : act->chunk;
    const struct {
        uint32_t cols;
        void **to;
    } each[] = {{3 * act->width, &act->wide},
                {act->width, &act->queries},
                {act->width, &act->attended},
                {act->hidden, &act->raised}};
    for (size_t i = 0; i < TD_COUNT_OF(each); i++) {
        td_ops_view made = {0};
        TD_TRY(td_native_model_buffer(model, rows, each[i].cols, &made,
                                      load->info));
        *each[i].to = made.data;
    }
    TD_TRY(alloc_stream(load, act->tokens, &act->encoding));
    TD_TRY(alloc_stream(load, act->chunk, &act->decoding));
    size_t values = (size_t)act->chunk * model->checkpoint->policy.action_dim;
    TD_TRY(model->ops->alloc_io(model->backend,
                                model->max_batch * values * sizeof(float),
                                &act->actions, load->info));
    model->actions = act->actions.host;
    model->action_stride = model->checkpoint->policy.action_dim;
    return TD_OK;
}

// Sizes are the tensors', and must agree with what config.json says.
static td_err read_sizes(const td_native_model *model,
                         td_native_act_network *act, td_errinfo *info)
{
    uint64_t latent[2], raised[2];
    const td_native_policy *policy = &model->checkpoint->policy;
    TD_TRY(td_native_params_shape(
        model, "model.encoder_latent_input_proj.weight", 2, latent, info));
    TD_TRY(td_native_params_shape(
        model, "model.encoder.layers.0.linear1.weight", 2, raised, info));
    act->width = (uint32_t)latent[0];
    act->hidden = (uint32_t)raised[0];
    act->chunk = policy->chunk_rows;
    if (act->width > MAX_WIDTH || act->width % act->heads != 0 ||
        act->width % 4 != 0)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "%s: dim_model: %u with %u heads", policy->file,
                       act->width, act->heads);
    return TD_OK;
}

static td_err load_all(td_native_act_loading *load, const options *opts)
{
    TD_TRY(read_sizes(load->model, load->act, load->info));
    TD_TRY(load_cameras(load, opts->dilate));
    TD_TRY(load_inputs(load));
    TD_TRY(load_positions(load));
    TD_TRY(load_steps(load));
    TD_TRY(td_native_act_layers_load(load));
    return alloc_rooms(load);
}

td_err td_native_act_load(td_native_model *model, td_errinfo *info)
{
    options opts = {0};
    td_ops_info backend;
    TD_TRY(read_options(model->checkpoint, &opts, info));
    td_native_act_network *act = calloc(1, sizeof *act);
    if (!act) return TD_ERR_NOMEM;
    model->network = act;
    model->ops->info(model->backend, &backend);
    act->dtype = backend.dtype;
    act->heads = opts.heads;
    act->encoder_layers = opts.encoder_layers;
    act->decoder_layers = opts.decoder_layers;
    act->norm_first = opts.norm_first;
    act->activation = opts.activation;
    td_native_act_loading load = {.model = model, .act = act, .info = info};
    td_err err = load_all(&load, &opts);
    free(load.positions);
    free(load.steps);
    return err;
}

void td_native_act_free(void *network)
{
    td_native_act_network *act = network;
    if (act->resnet) td_native_resnet_free(act->resnet);
    free(act);
}

// SPDX-License-Identifier: Apache-2.0
// SigLIP, once for all policies that look through it.
//
// Load reads the sizes from the tensors' shapes and checks them before anything
// is allocated: the width must split into heads and the side into patches. Two
// things are put in order then, so that nothing is left to do for a picture:
//
//   The patches' convolution is a linear over cut blocks. A checkpoint keeps
//   its weight with colours first, a picture has them last, so the weight is
//   turned once.
//
//   Positions become a table of one row a patch. SmolVLM spreads the positions
//   that it learned over pictures of another side (position_of()); the others
//   take them as they are.
//
// Build adds the operations for all pictures of a batch, each a member: cut,
// embed and add positions, then a layer after the other. A norm is part of the
// linear before it, so that a layer is five operations. All passes share one
// set of memory; the caller copies what it wants to keep.
//
// Threads: none. Load and build run where the model is opened.
#include "engine/native/flow/siglip.h"

#include "engine/native/params.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLOURS 3
#define MAX_WIDTH 8192
#define MAX_PATCHES 4096

typedef struct layer {
    td_ops_norm *norms[2];
    td_ops_linear_weight *qkv, *out, *up, *down;
} layer;

struct td_native_siglip {
    uint32_t width, heads, hidden, layers;
    uint32_t side, patch, across; // pixels, pixels, patches
    td_ops_linear_weight *embed;
    float *embed_weight;   // of whoever borrows it: [width][patch][patch][3]
    td_ops_view positions; // [patches][width]
    layer *each;
    td_ops_norm *last;
    void *patches, *sums, *normed, *wide, *attended, *raised;
};

void td_native_siglip_free(td_native_siglip *siglip)
{
    free(siglip->embed_weight);
    free(siglip->each);
    free(siglip);
}
TD_AUTO_FREE(td_native_siglip, td_native_siglip_free)

td_native_siglip_shape td_native_siglip_shape_of(const td_native_siglip *of)
{
    return (td_native_siglip_shape){of->width, of->across};
}

// What a load works with.
typedef struct loading {
    td_native_model *model;
    const td_native_siglip_config *config;
    td_native_siglip *to;
    td_errinfo *info;
} loading;

// The weight of the patches with colours last, as pictures have them.
static td_err load_embed(const loading *load)
{
    td_native_siglip *to = load->to;
    char name[TD_NATIVE_NAME_BYTES];
    const uint64_t d = to->width, p = to->patch;
    const td_native_tensor *bias = NULL;
    float *from = NULL;
    td_native_params_name(name, "%s.embeddings.patch_embedding.bias",
                          load->config->prefix);
    TD_TRY(
        td_native_params_tensor(load->model, name, 1, &d, &bias, load->info));
    td_native_params_name(name, "%s.embeddings.patch_embedding.weight",
                          load->config->prefix);
    TD_TRY(td_native_params_floats(load->model, name, 4,
                                   (const uint64_t[]){d, COLOURS, p, p}, &from,
                                   load->info));
    uint64_t area = p * p, each = COLOURS * area;
    to->embed_weight = malloc(d * each * sizeof *from);
    for (uint64_t i = 0; to->embed_weight && i < d * each; i++)
        to->embed_weight[i / each * each + i % area * COLOURS +
                         i % each / area] = from[i];
    free(from);
    if (!to->embed_weight) return TD_ERR_NOMEM;
    const td_ops_linear_source source = {
        .weight = {to->embed_weight, TD_OPS_F32},
        .bias = td_native_params_source(bias, 0),
        .in = (uint32_t)each,
        .out = to->width,
    };
    return load->model->ops->linear_weight(load->model->backend, &source,
                                           &to->embed, load->info);
}

// Which of `known` positions along a side is that of patch `at` of `across`:
// SmolVLM takes a part of the side, in float32, and the last position that does
// not begin beyond it.
static uint32_t position_of(uint32_t at, uint32_t across, uint32_t known)
{
    float part = (float)at * (1.0f / (float)across);
    double each = 1.0 / (double)known;
    uint32_t place = 0;
    if (part > (float)(1.0 - 1e-6)) part = (float)(1.0 - 1e-6);
    while (place + 1 < known && (float)(each + place * each) <= part)
        place++;
    return place;
}

static td_err load_positions(const loading *load)
{
    td_native_siglip *to = load->to;
    char name[TD_NATIVE_NAME_BYTES];
    uint64_t shape[2];
    float *from = NULL;
    td_native_params_name(name, "%s.embeddings.position_embedding.weight",
                          load->config->prefix);
    TD_TRY(td_native_params_shape(load->model, name, 2, shape, load->info));
    uint32_t known = (uint32_t)lround(sqrt((double)shape[0]));
    if ((uint64_t)known * known != shape[0] || shape[1] != to->width ||
        (!load->config->spreads && known != to->across))
        return td_fail(load->info, TD_ERR_MISMATCH,
                       "%s: %s: is no square of positions of %u numbers, of "
                       "%u a side",
                       load->model->checkpoint->folder, name, to->width,
                       to->across);
    TD_TRY(td_native_params_floats(load->model, name, 2, shape, &from,
                                   load->info));
    size_t d = to->width, rows = (size_t)to->across * to->across;
    float *table = malloc(rows * d * sizeof *table);
    for (uint32_t i = 0; table && i < rows; i++) {
        uint32_t down = i / to->across, right = i % to->across;
        if (load->config->spreads) {
            down = position_of(down, to->across, known);
            right = position_of(right, to->across, known);
        }
        memcpy(table + i * d, from + ((size_t)down * known + right) * d,
               d * sizeof *table);
    }
    td_err err =
        table ? td_native_params_table(load->model, (uint32_t)rows, to->width,
                                       table, &to->positions, load->info)
              : TD_ERR_NOMEM;
    free(from);
    free(table);
    return err;
}

static td_err load_norm(const loading *load, const char *prefix,
                        const char *rest, td_ops_norm **ret_norm)
{
    const td_native_params_norm_kind kind = {
        .cols = load->to->width,
        .epsilon = load->config->epsilon,
    };
    char name[TD_NATIVE_NAME_BYTES];
    td_native_params_name(name, "%s.%s", prefix, rest);
    return td_native_params_norm_of(load->model, name, &kind, ret_norm,
                                    load->info);
}

static td_err load_layer(const loading *load, uint32_t index)
{
    td_native_siglip *to = load->to;
    layer *of = &to->each[index];
    char prefix[TD_NATIVE_NAME_BYTES], name[TD_NATIVE_NAME_BYTES];
    const td_native_params_rows qkv[] = {{"self_attn.q_proj", to->width},
                                         {"self_attn.k_proj", to->width},
                                         {"self_attn.v_proj", to->width}};
    td_native_params_name(prefix, "%s.encoder.layers.%u", load->config->prefix,
                          index);
    TD_TRY(load_norm(load, prefix, "layer_norm1", &of->norms[0]));
    TD_TRY(load_norm(load, prefix, "layer_norm2", &of->norms[1]));
    const td_native_params_stack stack = {
        .rows = qkv, .count = 3, .in = to->width, .biased = true};
    TD_TRY(td_native_params_stacked(load->model, prefix, &stack, &of->qkv,
                                    load->info));
    td_native_params_name(name, "%s.self_attn.out_proj", prefix);
    TD_TRY(td_native_params_linear(load->model, name, to->width, to->width,
                                   &of->out, load->info));
    td_native_params_name(name, "%s.mlp.fc1", prefix);
    TD_TRY(td_native_params_linear(load->model, name, to->width, to->hidden,
                                   &of->up, load->info));
    td_native_params_name(name, "%s.mlp.fc2", prefix);
    return td_native_params_linear(load->model, name, to->hidden, to->width,
                                   &of->down, load->info);
}

static td_err read_sizes(const loading *load)
{
    td_native_siglip *to = load->to;
    char name[TD_NATIVE_NAME_BYTES];
    uint64_t patch[4], up[2];
    td_native_params_name(name, "%s.embeddings.patch_embedding.weight",
                          load->config->prefix);
    TD_TRY(td_native_params_shape(load->model, name, 4, patch, load->info));
    td_native_params_name(name, "%s.encoder.layers.0.mlp.fc1.weight",
                          load->config->prefix);
    TD_TRY(td_native_params_shape(load->model, name, 2, up, load->info));
    to->width = (uint32_t)patch[0];
    to->patch = (uint32_t)patch[3];
    to->hidden = (uint32_t)up[0];
    to->heads = load->config->heads;
    to->side = load->config->side;
    to->across = to->side / to->patch;
    td_native_params_name(name, "%s.encoder.layers", load->config->prefix);
    to->layers = td_native_params_layers(load->model, name, "mlp.fc1.weight");
    if (to->width > MAX_WIDTH || to->width % to->heads != 0 ||
        to->side % to->patch != 0 ||
        (uint64_t)to->across * to->across > MAX_PATCHES)
        return td_fail(load->info, TD_ERR_UNSUPPORTED,
                       "%s: pictures of %u pixels a side in patches of %u, %u "
                       "numbers in %u heads",
                       load->model->checkpoint->folder, to->side, to->patch,
                       to->width, to->heads);
    return TD_OK;
}

static td_err alloc_rooms(const loading *load)
{
    td_native_siglip *to = load->to;
    td_native_model *model = load->model;
    td_ops_info backend;
    model->ops->info(model->backend, &backend);
    size_t rows = (size_t)load->config->pictures * to->across * to->across;
    const struct {
        uint32_t cols;
        void **to;
    } each[] = {{COLOURS * to->patch * to->patch, &to->patches},
                {to->width, &to->sums},
                {to->width, &to->normed},
                {3 * to->width, &to->wide},
                {to->width, &to->attended},
                {to->hidden, &to->raised}};
    for (size_t i = 0; i < TD_COUNT_OF(each); i++) {
        // Rows lie a multiple of 8 apart.
        size_t cols = ((size_t)each[i].cols + 7) / 8 * 8;
        TD_TRY(model->ops->alloc(model->backend,
                                 rows * cols * td_ops_bytes(backend.dtype),
                                 each[i].to, load->info));
    }
    return TD_OK;
}

static td_err load_all(const loading *load)
{
    td_native_siglip *to = load->to;
    TD_TRY(read_sizes(load));
    to->each = calloc(to->layers, sizeof *to->each);
    if (!to->each) return TD_ERR_NOMEM;
    TD_TRY(load_embed(load));
    TD_TRY(load_positions(load));
    for (uint32_t i = 0; i < to->layers; i++)
        TD_TRY(load_layer(load, i));
    TD_TRY(load_norm(load, load->config->prefix, "post_layernorm", &to->last));
    return alloc_rooms(load);
}

td_err td_native_siglip_load(td_native_model *model,
                             const td_native_siglip_config *config,
                             td_native_siglip **ret_siglip, td_errinfo *info)
{
    TD_AUTO(td_native_siglip) *siglip = calloc(1, sizeof *siglip);
    if (!siglip) return TD_ERR_NOMEM;
    const loading load = {model, config, siglip, info};
    TD_TRY(load_all(&load));
    *ret_siglip = TD_TAKE(siglip);
    return TD_OK;
}

static td_err build_embed(const td_native_siglip *of,
                          const td_native_graph *graph, td_ops_view pictures,
                          td_ops_view sums)
{
    td_ops_view patches = td_native_graph_room(graph, of->patches, sums.rows,
                                               COLOURS * of->patch * of->patch);
    patches.row_stride = ((size_t)patches.cols + 7) / 8 * 8;
    patches.batch_stride = patches.rows * patches.row_stride;
    const td_ops_blocks cut = {
        .height = of->side,
        .width = of->side,
        .side = of->patch,
        .scale = 2, // from -1 to 1
        .shift = -1,
        .x = pictures,
        .out = patches,
    };
    TD_TRY(graph->ops->blocks(graph->backend, &cut, graph->info));
    const td_ops_linear embed = {
        .weight = of->embed,
        .x = patches,
        .add = td_native_graph_shared(graph, of->positions),
        .out = sums,
        .norm = of->each[0].norms[0],
        .normed = td_native_graph_room(graph, of->normed, sums.rows, of->width),
    };
    return td_native_graph_linear(graph, &embed);
}

static td_err build_attention(const td_native_siglip *of,
                              const td_native_graph *graph, const layer *each,
                              td_ops_view sums, td_ops_view normed)
{
    uint32_t d = of->width;
    const td_ops_linear qkv = {
        .weight = each->qkv,
        .x = normed,
        .out = td_native_graph_room(graph, of->wide, sums.rows, 3 * d),
    };
    const td_ops_attention attend = {
        .q = td_ops_cols(qkv.out, 0, d),
        .k = td_ops_cols(qkv.out, d, d),
        .v = td_ops_cols(qkv.out, 2 * d, d),
        .out = td_native_graph_room(graph, of->attended, sums.rows, d),
        .heads = of->heads,
        .scale = 1.0f / sqrtf((float)d / (float)of->heads),
    };
    const td_ops_linear out = {
        .weight = each->out,
        .x = attend.out,
        .add = sums,
        .out = sums,
        .norm = each->norms[1],
        .normed = normed,
    };
    TD_TRY(td_native_graph_linear(graph, &qkv));
    TD_TRY(graph->ops->attention(graph->backend, &attend, graph->info));
    return td_native_graph_linear(graph, &out);
}

td_err td_native_siglip_build(const td_native_siglip *siglip,
                              const td_native_graph *graph,
                              td_ops_view pictures, td_ops_view *ret_features)
{
    td_native_graph own = *graph;
    own.batch = pictures.batch;
    uint32_t rows = siglip->across * siglip->across;
    td_ops_view sums =
        td_native_graph_room(&own, siglip->sums, rows, siglip->width);
    td_ops_view normed =
        td_native_graph_room(&own, siglip->normed, rows, siglip->width);
    TD_TRY(build_embed(siglip, &own, pictures, sums));
    for (uint32_t i = 0; i < siglip->layers; i++) {
        const layer *each = &siglip->each[i];
        const td_ops_linear up = {
            .weight = each->up,
            .x = normed,
            .activation = TD_OPS_GELU_TANH,
            .out = td_native_graph_room(&own, siglip->raised, rows,
                                        siglip->hidden),
        };
        const td_ops_linear down = {
            .weight = each->down,
            .x = up.out,
            .add = sums,
            .out = sums,
            .norm = i + 1 < siglip->layers ? each[1].norms[0] : siglip->last,
            .normed = normed,
        };
        TD_TRY(build_attention(siglip, &own, each, sums, normed));
        TD_TRY(td_native_graph_linear(&own, &up));
        TD_TRY(td_native_graph_linear(&own, &down));
    }
    *ret_features = normed;
    return TD_OK;
}

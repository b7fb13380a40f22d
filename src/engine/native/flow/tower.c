// SPDX-License-Identifier: Apache-2.0
// Decoder layers, as language models and action experts have them.
//
// Load reads the sizes from the first layer's tensors and checks them before
// anything is allocated. q, k and v become one weight, gate and up another. A
// layer that attends to what is not its own (is_cross) has no k and v here, and
// the last layer of a tower that only fills a cache has nothing else.
//
// Build adds one layer at a time, because what a layer attends to is the
// policy's to say (td_native_tower_step): a prefix writes k and v into its
// cache, an expert reads them as `past` and writes its own beside them. A norm
// belongs to the linear before it, so a layer ends with the next one's norm,
// and the first norm has td_native_tower_begin().
//
// With AdaRMS the norms have no weights of their own: scale, shift and gate are
// tables that the step carries, a row for each time of the denoising.
//
// The tower's memory is that of `rows` rows for each member of the largest
// batch, shared by its layers and by all graphs. Threads: none. Load and build
// run where the model is opened.
#include "engine/native/flow/tower.h"

#include <math.h>
#include <stdlib.h>

#define MAX_WIDTH 32768

// What a load works with.
typedef struct loading {
    td_native_model *model;
    const td_native_tower_config *config;
    td_native_tower *to;
    td_errinfo *info;
} loading;

static bool is_cross(const td_native_tower_config *config, uint32_t layer)
{
    return config->is_cross && config->is_cross(config->user, layer);
}

static td_err load_norm(const loading *load, const char *name,
                        td_ops_norm **ret_norm)
{
    td_native_params_norm_kind kind = load->config->norm;
    kind.cols = load->to->width;
    if (!load->config->modulated)
        return td_native_params_norm_of(load->model, name, &kind, ret_norm,
                                        load->info);
    const td_ops_norm_source bare = {
        .cols = kind.cols, .epsilon = kind.epsilon, .kind = TD_OPS_RMS_NORM};
    return load->model->ops->norm_weight(load->model->backend, &bare, ret_norm,
                                         load->info);
}

static td_err load_stack(const loading *load, const char *prefix,
                         const td_native_params_rows *rows, uint32_t count,
                         bool gated, td_ops_linear_weight **ret_weight)
{
    const td_native_params_stack stack = {
        .rows = rows, .count = count, .in = load->to->width, .gated = gated};
    return td_native_params_stacked(load->model, prefix, &stack, ret_weight,
                                    load->info);
}

static td_err load_back(const loading *load, const char *prefix,
                        const char *name, uint32_t in,
                        td_ops_linear_weight **ret_weight)
{
    const td_native_params_rows rows = {name, load->to->width};
    const td_native_params_stack stack = {.rows = &rows, .count = 1, .in = in};
    return td_native_params_stacked(load->model, prefix, &stack, ret_weight,
                                    load->info);
}

static td_err load_layer(const loading *load, uint32_t index)
{
    td_native_tower *to = load->to;
    td_native_tower_layer *of = &to->each[index];
    uint32_t wide = to->heads * to->size, narrow = to->kv_heads * to->size;
    const td_native_params_rows qkv[] = {{"self_attn.q_proj", wide},
                                         {"self_attn.k_proj", narrow},
                                         {"self_attn.v_proj", narrow}};
    const td_native_params_rows gated[] = {{"mlp.gate_proj", to->hidden},
                                           {"mlp.up_proj", to->hidden}};
    bool last = load->config->ends_with_kv && index + 1 == to->layers;
    char prefix[TD_NATIVE_NAME_BYTES], name[TD_NATIVE_NAME_BYTES];
    td_native_params_name(prefix, "%s.%u", load->config->prefix, index);
    td_native_params_name(name, "%s.input_layernorm", prefix);
    TD_TRY(load_norm(load, name, &of->norms[0]));
    if (last) return load_stack(load, prefix, qkv + 1, 2, false, &of->kv);
    td_native_params_name(name, "%s.post_attention_layernorm", prefix);
    TD_TRY(load_norm(load, name, &of->norms[1]));
    TD_TRY(load_stack(load, prefix, qkv, is_cross(load->config, index) ? 1 : 3,
                      false, &of->qkv));
    TD_TRY(load_back(load, prefix, "self_attn.o_proj", wide, &of->out));
    TD_TRY(load_stack(load, prefix, gated, 2, true, &of->gated));
    return load_back(load, prefix, "mlp.down_proj", to->hidden, &of->down);
}

static td_err read_shape(const loading *load, const char *rest,
                         uint64_t ret_shape[2])
{
    char name[TD_NATIVE_NAME_BYTES];
    td_native_params_name(name, "%s.0.%s.weight", load->config->prefix, rest);
    return td_native_params_shape(load->model, name, 2, ret_shape, load->info);
}

// Sizes are the tensors', of the first layer, which is no cross layer.
static td_err read_sizes(const loading *load)
{
    td_native_tower *to = load->to;
    uint64_t q[2], k[2], up[2];
    TD_TRY(read_shape(load, "self_attn.q_proj", q));
    TD_TRY(read_shape(load, "self_attn.k_proj", k));
    TD_TRY(read_shape(load, "mlp.up_proj", up));
    to->size = load->config->size ? load->config->size : (uint32_t)k[0];
    to->width = (uint32_t)q[1];
    to->hidden = (uint32_t)up[0];
    to->heads = (uint32_t)q[0] / to->size;
    to->kv_heads = (uint32_t)k[0] / to->size;
    to->layers = load->config->layers;
    to->rows = load->config->rows;
    to->activation = load->config->activation;
    if (to->size % 2 != 0 || q[0] % to->size != 0 || k[0] % to->size != 0 ||
        to->kv_heads == 0 || to->heads % to->kv_heads != 0 ||
        to->width > MAX_WIDTH || to->layers > TD_NATIVE_MOST_LAYERS)
        return td_fail(
            load->info, TD_ERR_UNSUPPORTED,
            "%s: %s: heads of %u numbers for %llu of q and %llu of k",
            load->model->checkpoint->folder, load->config->prefix, to->size,
            (unsigned long long)q[0], (unsigned long long)k[0]);
    return TD_OK;
}

static td_err alloc_rooms(const loading *load)
{
    td_native_tower *to = load->to;
    uint32_t wide = to->heads * to->size;
    const struct {
        uint32_t cols;
        void **to;
    } each[] = {{to->width, &to->sums},
                {to->width, &to->normed},
                {wide, &to->queries},
                {wide, &to->attended},
                {to->hidden, &to->raised}};
    for (size_t i = 0; i < TD_COUNT_OF(each); i++) {
        td_ops_view made = {0};
        TD_TRY(td_native_model_buffer(load->model, to->rows, each[i].cols,
                                      &made, load->info));
        *each[i].to = made.data;
    }
    return TD_OK;
}

td_err td_native_tower_load(td_native_model *model,
                            const td_native_tower_config *config,
                            td_native_tower *tower, td_errinfo *info)
{
    const loading load = {model, config, tower, info};
    TD_TRY(read_sizes(&load));
    tower->each = calloc(tower->layers, sizeof *tower->each);
    if (!tower->each) return TD_ERR_NOMEM;
    for (uint32_t i = 0; i < tower->layers; i++)
        TD_TRY(load_layer(&load, i));
    if (config->last) TD_TRY(load_norm(&load, config->last, &tower->last));
    return alloc_rooms(&load);
}

void td_native_tower_done(td_native_tower *tower)
{
    free(tower->each);
}

td_ops_view td_native_tower_sums(const td_native_tower *tower,
                                 const td_native_graph *graph, uint32_t rows)
{
    return td_native_graph_room(graph, tower->sums, rows, tower->width);
}

td_ops_view td_native_tower_normed(const td_native_tower *tower,
                                   const td_native_graph *graph, uint32_t rows)
{
    return td_native_graph_room(graph, tower->normed, rows, tower->width);
}

td_err td_native_tower_begin(const td_native_tower *tower,
                             const td_native_graph *graph, uint32_t rows,
                             const td_ops_modulation *modulation)
{
    const td_ops_norm *norm = tower->each[0].norms[0];
    td_ops_view sums = td_native_tower_sums(tower, graph, rows);
    td_ops_view normed = td_native_tower_normed(tower, graph, rows);
    if (modulation->table.data)
        return graph->ops->modulate(graph->backend, norm, modulation, &sums,
                                    &normed, graph->info);
    return graph->ops->norm(graph->backend, norm, &sums, &normed, graph->info);
}

// q into memory of the tower's, k and v beside each other where they belong.
static td_err build_qkv(const td_native_tower *tower,
                        const td_native_graph *graph,
                        const td_native_tower_layer *of,
                        const td_native_tower_step *step, td_ops_view *ret_q)
{
    td_ops_linear op = {
        .weight = of->qkv,
        .x = td_native_tower_normed(tower, graph, step->rows),
        .out = td_native_graph_room(graph, tower->queries, step->rows,
                                    tower->heads * tower->size),
        .rotary = step->rotary,
    };
    op.rotary.size = tower->size;
    op.rotary.cols = op.out.cols;
    if (step->kv.data) {
        op.rest = step->kv;
        op.rotary.cols += tower->kv_heads * tower->size;
    }
    *ret_q = op.out;
    return td_native_graph_linear(graph, &op);
}

static td_err build_kv(const td_native_tower *tower,
                       const td_native_graph *graph,
                       const td_native_tower_layer *of,
                       const td_native_tower_step *step)
{
    td_ops_linear op = {
        .weight = of->kv,
        .x = td_native_tower_normed(tower, graph, step->rows),
        .out = step->kv,
        .rotary = step->rotary,
    };
    op.rotary.size = tower->size;
    op.rotary.cols = tower->kv_heads * tower->size;
    return td_native_graph_linear(graph, &op);
}

static td_err build_attention(const td_native_tower *tower,
                              const td_native_graph *graph,
                              const td_native_tower_layer *of,
                              const td_native_tower_step *step)
{
    td_ops_view sums = td_native_tower_sums(tower, graph, step->rows);
    td_ops_attention attend = step->attention;
    TD_TRY(build_qkv(tower, graph, of, step, &attend.q));
    attend.out =
        td_native_graph_room(graph, tower->attended, step->rows, attend.q.cols);
    attend.heads = tower->heads;
    attend.kv_heads = tower->kv_heads;
    attend.scale = 1.0f / sqrtf((float)tower->size);
    TD_TRY(graph->ops->attention(graph->backend, &attend, graph->info));
    const td_ops_linear out = {
        .weight = of->out,
        .x = attend.out,
        .add = sums,
        .out = sums,
        .norm = of->norms[1],
        .normed = td_native_tower_normed(tower, graph, step->rows),
        .gate = step->modulations[0],
        .modulation = step->modulations[1],
    };
    return td_native_graph_linear(graph, &out);
}

td_err td_native_tower_build(const td_native_tower *tower,
                             const td_native_graph *graph, uint32_t layer,
                             const td_native_tower_step *step)
{
    const td_native_tower_layer *of = &tower->each[layer];
    const td_ops_norm *next =
        layer + 1 < tower->layers ? of[1].norms[0] : tower->last;
    td_ops_view sums = td_native_tower_sums(tower, graph, step->rows);
    td_ops_view normed = td_native_tower_normed(tower, graph, step->rows);
    if (of->kv) return build_kv(tower, graph, of, step);
    TD_TRY(build_attention(tower, graph, of, step));
    const td_ops_linear gated = {
        .weight = of->gated,
        .x = normed,
        .activation = tower->activation,
        .out = td_native_graph_room(graph, tower->raised, step->rows,
                                    tower->hidden),
    };
    const td_ops_linear down = {
        .weight = of->down,
        .x = gated.out,
        .add = sums,
        .out = sums,
        .norm = next,
        .normed = normed,
        .gate = step->modulations[1],
        .modulation = step->modulations[2],
    };
    TD_TRY(td_native_graph_linear(graph, &gated));
    return td_native_graph_linear(graph, &down);
}

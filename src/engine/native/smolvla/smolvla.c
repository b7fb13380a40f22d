// SPDX-License-Identifier: Apache-2.0
// SmolVLA, as LeRobot has it.
//
// The prefix: pictures through SigLIP, patches of 4 x 4 joined and projected,
// one row each; the task's tokens; the robot's state. Rows of pictures and text
// see each other and not the state, which sees all. It lies first here, since
// texts differ in length; its position is the last. The language model's layers
// leave keys and values of every row, and nothing else is wanted of them.
//
// The suffix: noise, a row for each action, with the step's time mixed in;
// through the expert's layers, which attend to the prefix's keys and values,
// and in all but the cross layers to earlier actions; out comes a velocity, by
// which the noise becomes actions, step by step.
//
// build() adds the operations of one half, top to bottom. Nothing is computed
// here. Weights and tables are there already (smolvla_load.c).
#include "engine/native/smolvla/smolvla.h"

#include <math.h>

static td_err look(const void *network, const td_native_graph *graph,
                   uint32_t first, uint32_t count, td_ops_view to)
{
    const td_native_smolvla_network *of = network;
    const td_native_flow *flow = &of->flow;
    td_native_siglip_shape seen = td_native_siglip_shape_of(of->siglip);
    uint32_t area = of->shuffle * of->shuffle, pixels = flow->side * flow->side;
    td_ops_view features = {0};
    td_ops_view pictures = td_ops_dense((float *)flow->pictures.device +
                                            (size_t)first * pixels * 3,
                                        TD_OPS_F32, count, pixels, 3);
    TD_TRY(td_native_siglip_build(of->siglip, graph, pictures, &features));
    const td_ops_blocks shuffle = {
        .height = seen.across,
        .width = seen.across,
        .side = of->shuffle,
        .scale = 1,
        .x = features,
        .out = td_ops_dense(of->shuffled, graph->dtype, count, of->picture_rows,
                            seen.width * area),
    };
    TD_TRY(graph->ops->blocks(graph->backend, &shuffle, graph->info));
    // Pictures of a member are rows of it.
    td_ops_view rows = td_ops_dense(of->shuffled, graph->dtype, to.batch,
                                    to.rows, shuffle.out.cols);
    const td_ops_linear connect = {
        .weight = of->connector,
        .x = rows,
        .out = to,
        .scale = of->picture_scale,
    };
    return td_native_graph_linear(graph, &connect);
}

static td_err embed_prefix(const td_native_smolvla_network *of,
                           const td_native_graph *graph, uint32_t text_rows,
                           td_ops_view sums)
{
    const td_native_flow *flow = &of->flow;
    const td_native_flow_look looks = {look, of};
    td_ops_view ids = td_native_graph_input(graph, &flow->ids, TD_OPS_U32,
                                            flow->text_rows, 1);
    const td_ops_view some = td_ops_rows(ids, 0, text_rows);
    const td_ops_view text = td_ops_rows(sums, flow->text_first, text_rows);
    const td_ops_linear state = {
        .weight = of->state_proj,
        .x = td_native_graph_input(graph, &flow->state, TD_OPS_F32, 1,
                                   flow->config.state_width),
        .out = td_ops_rows(sums, 0, 1),
    };
    TD_TRY(td_native_flow_take_prefix(flow, graph));
    TD_TRY(td_native_flow_look_at_all(flow, graph, &looks, sums));
    TD_TRY(graph->ops->embed(graph->backend, of->embedding, &some, &text,
                             graph->info));
    return td_native_graph_linear(graph, &state);
}

// What the expert's cross layer makes of a layer's keys and values, in the
// place where they are kept.
static td_err project_kv(const td_native_smolvla_network *of,
                         const td_native_graph *graph, uint32_t layer,
                         td_ops_view kv, td_ops_view cache)
{
    uint32_t half = kv.cols / 2;
    const td_ops_linear k = {
        .weight = of->cross_k[layer],
        .x = td_ops_cols(kv, 0, half),
        .out = td_ops_cols(cache, 0, half),
    };
    const td_ops_linear v = {
        .weight = of->cross_v[layer],
        .x = td_ops_cols(kv, half, half),
        .out = td_ops_cols(cache, half, half),
    };
    TD_TRY(td_native_graph_linear(graph, &k));
    return td_native_graph_linear(graph, &v);
}

static td_err build_prefix(const td_native_smolvla_network *of,
                           const td_native_graph *graph, uint32_t text_rows)
{
    const td_native_flow *flow = &of->flow;
    uint32_t rows = flow->text_first + text_rows;
    uint32_t half = flow->config.kv_cols / 2;
    const td_ops_modulation none = {0};
    TD_TRY(embed_prefix(of, graph, text_rows,
                        td_native_tower_sums(&of->text, graph, rows)));
    TD_TRY(td_native_tower_begin(&of->text, graph, rows, &none));
    for (uint32_t i = 0; i < of->text.layers; i++) {
        td_ops_view cache = td_native_flow_cache(flow, graph, i, rows);
        bool cross = td_native_smolvla_is_cross(&of->options, i);
        td_native_tower_step step = {
            .rows = rows,
            .kv = cross ? td_native_graph_room(graph, of->kv, rows,
                                               flow->config.kv_cols)
                        : cache,
            .rotary = {.table = of->angles,
                       .positions = td_native_flow_places(flow, graph, rows)},
        };
        step.attention.k = td_ops_cols(step.kv, 0, half);
        step.attention.v = td_ops_cols(step.kv, half, half);
        step.attention.lengths = td_native_flow_lengths(flow, graph);
        step.attention.mask = TD_OPS_FIRST_UNSEEN;
        TD_TRY(td_native_tower_build(&of->text, graph, i, &step));
        if (cross) TD_TRY(project_kv(of, graph, i, step.kv, cache));
    }
    return TD_OK;
}

// Noisy actions with the time of the step.
static td_err embed_suffix(const td_native_smolvla_network *of,
                           const td_native_graph *graph, uint32_t index)
{
    const td_native_flow *flow = &of->flow;
    uint32_t rows = flow->chunk, width = of->expert.width;
    const td_ops_linear in = {
        .weight = of->action_in,
        .x = td_native_graph_input(graph, &flow->x, TD_OPS_F32, rows,
                                   flow->config.action_width),
        .out = td_native_graph_room(graph, of->embedded, rows, width),
    };
    const td_ops_linear mix = {
        .weight = of->time_in,
        .x = in.out,
        .add = td_native_graph_repeated(graph, td_ops_rows(of->times, index, 1),
                                        rows),
        .out = td_native_graph_room(graph, of->mixed, rows, width),
        .activation = TD_OPS_SILU,
    };
    const td_ops_linear out = {
        .weight = of->time_out,
        .x = mix.out,
        .out = td_native_tower_sums(&of->expert, graph, rows),
        .norm = of->expert.each[0].norms[0],
        .normed = td_native_tower_normed(&of->expert, graph, rows),
    };
    TD_TRY(td_native_graph_linear(graph, &in));
    TD_TRY(td_native_graph_linear(graph, &mix));
    return td_native_graph_linear(graph, &out);
}

static td_err build_expert(const td_native_smolvla_network *of,
                           const td_native_graph *graph, uint32_t layer)
{
    const td_native_flow *flow = &of->flow;
    uint32_t rows = flow->chunk, half = flow->config.kv_cols / 2;
    bool cross = td_native_smolvla_is_cross(&of->options, layer);
    td_ops_view cache = td_native_flow_cache(flow, graph, layer, flow->rows);
    td_ops_view past_k = td_ops_cols(cache, 0, half);
    td_ops_view past_v = td_ops_cols(cache, half, half);
    td_native_tower_step step = {
        .rows = rows,
        .rotary = {.table = of->angles,
                   .positions = td_native_graph_input(
                       graph, cross ? &flow->from_zero : &flow->own_places,
                       TD_OPS_U32, rows, 1)},
    };
    step.attention.lengths = td_native_flow_lengths(flow, graph);
    if (cross) {
        step.attention.k = past_k;
        step.attention.v = past_v;
    } else {
        step.kv =
            td_native_graph_room(graph, of->kv, rows, flow->config.kv_cols);
        step.attention.k = td_ops_cols(step.kv, 0, half);
        step.attention.v = td_ops_cols(step.kv, half, half);
        step.attention.past_k = past_k;
        step.attention.past_v = past_v;
        step.attention.mask = TD_OPS_SEES_EARLIER;
    }
    return td_native_tower_build(&of->expert, graph, layer, &step);
}

static td_err build_decode(const td_native_smolvla_network *of,
                           const td_native_graph *graph)
{
    const td_native_flow *flow = &of->flow;
    td_ops_view v = td_ops_dense(of->v, TD_OPS_F32, graph->batch, flow->chunk,
                                 flow->config.action_width);
    TD_TRY(td_native_flow_take_suffix(flow, graph));
    for (uint32_t i = 0; i < of->options.steps; i++) {
        TD_TRY(embed_suffix(of, graph, i));
        for (uint32_t layer = 0; layer < of->expert.layers; layer++)
            TD_TRY(build_expert(of, graph, layer));
        const td_ops_linear out = {
            .weight = of->action_out,
            .x = td_native_tower_normed(&of->expert, graph, flow->chunk),
            .out = v,
        };
        TD_TRY(td_native_graph_linear(graph, &out));
        TD_TRY(td_native_flow_step(flow, graph, v, i, of->options.steps));
    }
    return graph->ops->copy_out(graph->backend, &flow->x,
                                graph->batch * v.batch_stride * sizeof(float),
                                graph->info);
}

static td_err build(td_native_model *model, const td_native_build *what,
                    td_errinfo *info)
{
    const td_native_smolvla_network *of = model->network;
    const td_native_graph graph = td_native_graph_of(model, what->batch, info);
    return what->part == TD_NATIVE_PREFIX
               ? build_prefix(of, &graph, what->text_rows)
               : build_decode(of, &graph);
}

const td_native_architecture_ops td_native_smolvla = {
    .type = TD_NATIVE_POLICY_SMOLVLA,
    .check = td_native_smolvla_check,
    .load = td_native_smolvla_load,
    .build = build,
    .free = td_native_smolvla_free,
    .wants_whole = true,
};

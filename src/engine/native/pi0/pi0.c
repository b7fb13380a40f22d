// SPDX-License-Identifier: Apache-2.0
// pi0 and pi0.5, as LeRobot has them.
//
// The prefix: pictures through SigLIP, each patch projected to a row; the
// tokens of the task, and with pi0.5 of the robot's state. All rows see each
// other. The language model's layers leave keys and values of every row, and
// nothing else is wanted of them.
//
// The suffix: noise, a row for each action. In pi0 the robot's state comes
// before them, which the prefix and itself is all it sees, and the step's time
// is mixed into each action; in pi0.5 the time modulates the norms. Through the
// expert's layers, which attend to the prefix's keys and values and to all of
// the suffix; out comes a velocity, by which the noise becomes actions, step by
// step. In rows that a robot has promised (held) the actions are clean already,
// and the time is that of the end.
//
// build() adds the operations of one half, top to bottom. Nothing is computed
// here. Weights and tables are there already (pi0_load.c).
#include "engine/native/pi0/pi0.h"

static td_err look(const void *network, const td_native_graph *graph,
                   uint32_t first, uint32_t count, td_ops_view to)
{
    const td_native_pi0_network *of = network;
    const td_native_flow *flow = &of->flow;
    uint32_t pixels = flow->side * flow->side;
    td_ops_view features = {0};
    td_ops_view pictures = td_ops_dense((float *)flow->pictures.device +
                                            (size_t)first * pixels * 3,
                                        TD_OPS_F32, count, pixels, 3);
    TD_TRY(td_native_siglip_build(of->siglip, graph, pictures, &features));
    // Pictures of a member are rows of it.
    const td_ops_linear project = {
        .weight = of->projector,
        .x = td_ops_dense(features.data, graph->dtype, to.batch, to.rows,
                          features.cols),
        .out = to,
    };
    return td_native_graph_linear(graph, &project);
}

static td_err embed_prefix(const td_native_pi0_network *of,
                           const td_native_graph *graph, uint32_t text_rows,
                           td_ops_view sums)
{
    const td_native_flow *flow = &of->flow;
    const td_native_flow_look looks = {look, of};
    td_ops_view ids = td_native_graph_input(graph, &flow->ids, TD_OPS_U32,
                                            flow->text_rows, 1);
    const td_ops_view some = td_ops_rows(ids, 0, text_rows);
    const td_ops_view text = td_ops_rows(sums, flow->text_first, text_rows);
    TD_TRY(td_native_flow_take_prefix(flow, graph));
    TD_TRY(td_native_flow_look_at_all(flow, graph, &looks, sums));
    return graph->ops->embed(graph->backend, of->embedding, &some, &text,
                             graph->info);
}

static td_err build_prefix(const td_native_pi0_network *of,
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
        td_native_tower_step step = {
            .rows = rows,
            .kv = td_native_flow_cache(flow, graph, i, rows),
            .rotary = {.table = of->angles,
                       .positions = td_native_flow_places(flow, graph, rows)},
        };
        step.attention.k = td_ops_cols(step.kv, 0, half);
        step.attention.v = td_ops_cols(step.kv, half, half);
        step.attention.lengths = td_native_flow_lengths(flow, graph);
        TD_TRY(td_native_tower_build(&of->text, graph, i, &step));
    }
    return TD_OK;
}

// pi0's rows: the state, and noisy actions with the time of the step.
static td_err embed_state_and_actions(const td_native_pi0_network *of,
                                      const td_native_graph *graph,
                                      uint32_t index, td_ops_view actions)
{
    const td_native_flow *flow = &of->flow;
    uint32_t rows = flow->chunk, width = of->expert.width;
    td_ops_view sums =
        td_native_tower_sums(&of->expert, graph, flow->config.suffix_rows);
    const td_ops_linear state = {
        .weight = of->state_proj,
        .x = td_native_graph_input(graph, &flow->state, TD_OPS_F32, 1,
                                   flow->config.state_width),
        .out = td_ops_rows(sums, 0, 1),
    };
    const td_ops_linear mix = {
        .weight = of->time_in,
        .x = actions,
        .add = td_native_graph_repeated(graph, td_ops_rows(of->times, index, 1),
                                        rows),
        .out = td_native_graph_room(graph, of->mixed, rows, width),
        .activation = TD_OPS_SILU,
    };
    const td_ops_linear out = {
        .weight = of->time_out,
        .x = mix.out,
        .out = td_ops_rows(sums, 1, rows),
    };
    TD_TRY(td_native_graph_linear(graph, &state));
    TD_TRY(td_native_graph_linear(graph, &mix));
    return td_native_graph_linear(graph, &out);
}

// What modulates norm `norm` in step `index`; nothing in pi0.
static td_ops_modulation modulation_of(const td_native_pi0_network *of,
                                       const td_native_graph *graph,
                                       uint32_t norm, uint32_t index)
{
    if (!of->options.modulated) return (td_ops_modulation){0};
    return (td_ops_modulation){
        .table = td_native_graph_shared(
            graph, td_ops_rows(of->modulations[norm], 2 * index, 2)),
        .choice = td_native_graph_input(graph, &of->flow.held, TD_OPS_U32,
                                        of->flow.chunk, 1),
    };
}

static td_err embed_suffix(const td_native_pi0_network *of,
                           const td_native_graph *graph, uint32_t index)
{
    const td_native_flow *flow = &of->flow;
    uint32_t rows = flow->config.suffix_rows;
    const td_ops_modulation first = modulation_of(of, graph, 0, index);
    td_ops_linear in = {
        .weight = of->action_in,
        .x = td_native_graph_input(graph, &flow->x, TD_OPS_F32, flow->chunk,
                                   flow->config.action_width),
        .out = td_native_tower_sums(&of->expert, graph, rows),
    };
    if (!of->options.modulated)
        in.out = td_native_graph_room(graph, of->embedded, flow->chunk,
                                      of->expert.width);
    TD_TRY(td_native_graph_linear(graph, &in));
    if (!of->options.modulated)
        TD_TRY(embed_state_and_actions(of, graph, index, in.out));
    return td_native_tower_begin(&of->expert, graph, rows, &first);
}

static td_err build_expert(const td_native_pi0_network *of,
                           const td_native_graph *graph, uint32_t index,
                           uint32_t layer)
{
    const td_native_flow *flow = &of->flow;
    uint32_t rows = flow->config.suffix_rows, half = flow->config.kv_cols / 2;
    td_ops_view cache = td_native_flow_cache(flow, graph, layer, flow->rows);
    td_native_tower_step step = {
        .rows = rows,
        .kv = td_native_graph_room(graph, of->kv, rows, flow->config.kv_cols),
        .rotary = {.table = of->angles,
                   .positions = td_native_graph_input(graph, &flow->own_places,
                                                      TD_OPS_U32, rows, 1)},
    };
    for (uint32_t i = 0; i < TD_COUNT_OF(step.modulations); i++)
        step.modulations[i] = modulation_of(of, graph, 2 * layer + i, index);
    step.attention.past_k = td_ops_cols(cache, 0, half);
    step.attention.past_v = td_ops_cols(cache, half, half);
    step.attention.lengths = td_native_flow_lengths(flow, graph);
    step.attention.k = td_ops_cols(step.kv, 0, half);
    step.attention.v = td_ops_cols(step.kv, half, half);
    step.attention.mask =
        of->options.modulated ? TD_OPS_SEES_ALL : TD_OPS_FIRST_SEES_SELF;
    return td_native_tower_build(&of->expert, graph, layer, &step);
}

static td_err build_decode(const td_native_pi0_network *of,
                           const td_native_graph *graph)
{
    const td_native_flow *flow = &of->flow;
    uint32_t rows = flow->config.suffix_rows;
    td_ops_view v = td_ops_dense(of->v, TD_OPS_F32, graph->batch, flow->chunk,
                                 flow->config.action_width);
    TD_TRY(td_native_flow_take_suffix(flow, graph));
    for (uint32_t i = 0; i < of->options.steps; i++) {
        TD_TRY(embed_suffix(of, graph, i));
        for (uint32_t layer = 0; layer < of->expert.layers; layer++)
            TD_TRY(build_expert(of, graph, i, layer));
        const td_ops_linear out = {
            .weight = of->action_out,
            .x = td_ops_rows(td_native_tower_normed(&of->expert, graph, rows),
                             rows - flow->chunk, flow->chunk),
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
    const td_native_pi0_network *of = model->network;
    const td_native_graph graph = td_native_graph_of(model, what->batch, info);
    return what->part == TD_NATIVE_PREFIX
               ? build_prefix(of, &graph, what->text_rows)
               : build_decode(of, &graph);
}

const td_native_architecture_ops td_native_pi0 = {
    .type = TD_NATIVE_POLICY_PI0,
    .check = td_native_pi0_check,
    .load = td_native_pi0_load,
    .build = build,
    .free = td_native_pi0_free,
    .wants_whole = true,
};

const td_native_architecture_ops td_native_pi05 = {
    .type = TD_NATIVE_POLICY_PI05,
    .check = td_native_pi0_check,
    .load = td_native_pi0_load,
    .build = build,
    .free = td_native_pi0_free,
    .wants_whole = true,
};

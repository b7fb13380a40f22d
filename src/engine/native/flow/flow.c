// SPDX-License-Identifier: Apache-2.0
// Inputs of policies that denoise, and the cache between their halves.
//
// load() takes all memory: of the inputs in memory of both machines, of the
// cache and of the kept prefixes in the backend's. observe() writes what the
// first half reads (pictures fitted, ids, positions, lengths, the state) and
// remembers what the second wants of a member (its length, its state), so that
// a kept prefix is the member's part of the cache and this. The second half's
// own inputs (noise, what guides it) are written before each run, and used up
// by it: on the processor the noise becomes the chunk in its place.
#include "engine/native/flow/flow.h"

#include "base/finite.h"
#include "engine/native/flow/noise.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ROWS 16384

static td_err io(td_native_model *model, size_t numbers_each, td_ops_io *ret_io,
                 td_errinfo *info)
{
    return model->ops->alloc_io(
        model->backend, model->max_batch * numbers_each * 4, ret_io, info);
}

static td_err open_camera(const td_native_model *model, td_native_flow *flow,
                          const td_native_camera *camera, uint32_t index,
                          td_errinfo *info)
{
    const td_native_policy *policy = &model->checkpoint->policy;
    td_native_colours colours =
        td_native_pipeline_colours(model->pipeline, index);
    td_media_fit_config config = {
        .from = {.height = camera->height, .width = camera->width},
        .to = policy->fit,
        .place = policy->fit_place,
        .clamps = policy->fit_place == TD_MEDIA_MIDDLE &&
                  (camera->height != policy->fit.height ||
                   camera->width != policy->fit.width),
    };
    memcpy(config.scale, colours.scale, sizeof config.scale);
    memcpy(config.bias, colours.bias, sizeof config.bias);
    td_err err = td_media_fitter_new(&config, &flow->fitters[flow->cameras]);
    if (err != TD_OK)
        return td_fail(info, err, "%s: %s: %u x %u pixels do not fit %u x %u",
                       policy->file, camera->key, camera->width, camera->height,
                       policy->fit.width, policy->fit.height);
    return TD_OK;
}

// Of the policy's cameras those that a robot has; the others are masked, which
// is as if they were not there.
static td_err open_cameras(td_native_model *model, td_native_flow *flow,
                           td_errinfo *info)
{
    const td_native_policy *policy = &model->checkpoint->policy;
    for (uint32_t i = 0; i < policy->camera_count; i++) {
        const td_native_camera *camera = &policy->cameras[i];
        if (camera->empty) continue;
        size_t each = (size_t)camera->height * camera->width * 3;
        uint8_t *frames = calloc(model->max_batch, each);
        if (!frames) return TD_ERR_NOMEM;
        flow->frames[flow->cameras] = frames;
        model->frames[flow->cameras] = (td_native_frames){frames, each};
        TD_TRY(open_camera(model, flow, camera, i, info));
        flow->cameras++;
    }
    if (flow->cameras == 0)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "%s: input_features: there is no camera", policy->file);
    return TD_OK;
}

static td_err count_rows(const td_native_model *model, td_native_flow *flow,
                         td_errinfo *info)
{
    const td_native_step *step = td_native_steps_find(
        &model->checkpoint->before, TD_NATIVE_STEP_TOKENIZE);
    if (!step)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "%s: there is no tokenizer_processor",
                       model->checkpoint->before.file);
    uint64_t first = (uint64_t)flow->cameras * flow->config.picture_rows +
                     flow->config.state_in_prefix;
    if (first + step->most_tokens > MAX_ROWS)
        return td_fail(info, TD_ERR_LIMIT,
                       "%s: pictures and text make more than %d rows",
                       model->checkpoint->folder, MAX_ROWS);
    flow->text_first = (uint32_t)first;
    flow->text_rows = step->most_tokens;
    flow->rows = flow->text_first + flow->text_rows;
    return TD_OK;
}

static td_err alloc_inputs(td_native_model *model, td_native_flow *flow,
                           td_errinfo *info)
{
    const td_native_flow_config *config = &flow->config;
    size_t chunk = (size_t)flow->chunk * config->action_width;
    size_t pixels = (size_t)flow->side * flow->side * 3;
    const struct {
        td_ops_io *io;
        size_t each;
    } all[] = {
        {&flow->pictures, flow->cameras * pixels},
        {&flow->ids, flow->text_rows},
        {&flow->places, flow->rows},
        {&flow->lengths, 1},
        {&flow->state, config->state_width ? config->state_width : 1},
        {&flow->x, chunk},
        {&flow->tail, chunk},
        {&flow->weights, flow->chunk},
        {&flow->held, flow->chunk},
        {&flow->own_places, config->suffix_rows},
        {&flow->from_zero, config->suffix_rows},
    };
    for (size_t i = 0; i < TD_COUNT_OF(all); i++)
        TD_TRY(io(model, all[i].each, all[i].io, info));
    uint32_t *place = flow->from_zero.host;
    for (uint32_t i = 0; i < model->max_batch * config->suffix_rows; i++)
        place[i] = i % config->suffix_rows;
    flow->members = calloc(model->max_batch, sizeof *flow->members);
    return flow->members ? TD_OK : TD_ERR_NOMEM;
}

static size_t layer_bytes(const td_native_flow *flow, td_ops_dtype dtype)
{
    return (size_t)flow->rows * flow->config.kv_cols * td_ops_bytes(dtype);
}

// Room for those that run too, since a server lets go of an old one only once
// there is a new one.
static td_err alloc_cache(td_native_model *model, td_native_flow *flow,
                          td_errinfo *info)
{
    td_ops_info backend;
    void *data = NULL;
    model->ops->info(model->backend, &backend);
    flow->member_bytes = layer_bytes(flow, backend.dtype) * flow->config.layers;
    TD_TRY(model->ops->alloc(
        model->backend, flow->member_bytes * model->max_batch, &data, info));
    flow->cache = data;
    if (model->kept_bytes == 0) return TD_OK;
    uint64_t slots =
        model->kept_bytes / flow->member_bytes + 2 * (uint64_t)model->max_batch;
    if (slots > UINT16_MAX) slots = UINT16_MAX;
    flow->kept = calloc(slots, sizeof *flow->kept);
    if (!flow->kept) return TD_ERR_NOMEM;
    TD_TRY(model->ops->alloc(model->backend, flow->member_bytes * slots, &data,
                             info));
    flow->pool = data;
    flow->slots = (uint32_t)slots;
    return TD_OK;
}

static td_err check_sizes(const td_native_model *model,
                          const td_native_flow *flow, td_errinfo *info)
{
    const td_native_policy *policy = &model->checkpoint->policy;
    const td_native_flow_config *config = &flow->config;
    if (!policy->fits || policy->fit.width != policy->fit.height)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "%s: pictures must be brought to a square of their own",
                       policy->file);
    if ((uint64_t)flow->chunk * config->action_width < TD_NATIVE_NOISE_LEAST)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "%s: chunk_size: a chunk of fewer than %d numbers",
                       policy->file, TD_NATIVE_NOISE_LEAST);
    if (policy->action_dim > config->action_width ||
        (config->state_width && policy->state_dim > config->state_width) ||
        config->state_width > TD_NATIVE_FLOW_MOST_STATE)
        return td_fail(info, TD_ERR_MISMATCH,
                       "%s: %u actions and %u states, at most %u and %u",
                       policy->file, policy->action_dim, policy->state_dim,
                       config->action_width, config->state_width);
    return TD_OK;
}

td_err td_native_flow_load(td_native_model *model,
                           const td_native_flow_config *config,
                           td_native_flow *flow, td_errinfo *info)
{
    const td_native_policy *policy = &model->checkpoint->policy;
    flow->config = *config;
    flow->side = policy->fit.width;
    flow->chunk = policy->chunk_rows;
    TD_TRY(check_sizes(model, flow, info));
    TD_TRY(open_cameras(model, flow, info));
    TD_TRY(count_rows(model, flow, info));
    TD_TRY(alloc_inputs(model, flow, info));
    TD_TRY(alloc_cache(model, flow, info));
    model->flow = flow;
    model->actions = flow->x.host;
    model->action_stride = config->action_width;
    return TD_OK;
}

void td_native_flow_done(td_native_flow *flow)
{
    for (uint32_t i = 0; i < TD_WIRE_MAX_IMAGES; i++) {
        free(flow->frames[i]);
        if (flow->fitters[i]) td_media_fitter_free(flow->fitters[i]);
    }
    free(flow->members);
    free(flow->kept);
}

uint32_t td_native_flow_buckets(const td_native_flow *flow,
                                uint32_t ret_rows[TD_NATIVE_FLOW_BUCKETS])
{
    uint32_t count = 0, last = 0;
    for (uint32_t i = 1; i <= TD_NATIVE_FLOW_BUCKETS; i++) {
        uint32_t rows =
            (flow->text_rows * i / TD_NATIVE_FLOW_BUCKETS + 7) / 8 * 8;
        if (rows > flow->text_rows || i == TD_NATIVE_FLOW_BUCKETS)
            rows = flow->text_rows;
        if (rows == last) continue;
        ret_rows[count++] = last = rows;
    }
    return count;
}

static td_err take_text(td_native_model *model, td_native_flow *flow,
                        uint32_t member, const td_native_model_input *input,
                        td_errinfo *info)
{
    uint32_t *ids =
        (uint32_t *)flow->ids.host + (size_t)member * flow->text_rows;
    if (input->id_count > flow->text_rows)
        return td_fail(info, TD_ERR_LIMIT, "a text of %u tokens, at most %u",
                       input->id_count, flow->text_rows);
    for (uint32_t i = 0; i < input->id_count; i++)
        if (input->ids[i] >= flow->config.vocabulary)
            return td_fail(info, TD_ERR_INVALID,
                           "token %u of the text is %u, the policy knows %u: "
                           "the tokenizer is another policy's",
                           i, input->ids[i], flow->config.vocabulary);
    memset(ids, 0, flow->text_rows * sizeof *ids);
    memcpy(ids, input->ids, input->id_count * sizeof *ids);
    model->members_text[member] = input->id_count;
    return TD_OK;
}

static void take_places(td_native_flow *flow, uint32_t member, uint32_t length)
{
    uint32_t *places =
        (uint32_t *)flow->places.host + (size_t)member * flow->rows;
    uint32_t ahead = flow->config.state_in_prefix ? 1 : 0;
    for (uint32_t i = 0; i < flow->rows; i++)
        places[i] = i - ahead;
    if (ahead) places[0] = length - 1; // the state stands behind the text
}

// Of each member as it stands, since a batch may be made of kept ones.
static void place_suffix(const td_native_flow *flow, uint32_t member)
{
    const td_native_flow_kept *of = &flow->members[member];
    uint32_t rows = flow->config.suffix_rows;
    uint32_t *places =
        (uint32_t *)flow->own_places.host + (size_t)member * rows;
    float *state =
        (float *)flow->state.host + (size_t)member * flow->config.state_width;
    for (uint32_t i = 0; i < rows; i++)
        places[i] = of->length + i;
    ((uint32_t *)flow->lengths.host)[member] = of->length;
    memcpy(state, of->state, flow->config.state_width * sizeof *state);
}

td_err td_native_flow_observe(td_native_model *model, td_native_flow *flow,
                              uint32_t member,
                              const td_native_model_input *input,
                              td_errinfo *info)
{
    size_t pixels = (size_t)flow->side * flow->side * 3;
    float *pictures =
        (float *)flow->pictures.host + (size_t)member * flow->cameras * pixels;
    td_native_flow_kept *of = &flow->members[member];
    size_t states = model->checkpoint->policy.state_dim;
    if (!td_finite_f32(input->state, states))
        return td_fail(info, TD_ERR_INVALID, "state: is not finite");
    TD_TRY(take_text(model, flow, member, input, info));
    for (uint32_t i = 0; i < flow->cameras; i++)
        td_media_fit(flow->fitters[i], td_native_model_frame(model, member, i),
                     pictures + i * pixels);
    of->length = flow->text_first + input->id_count;
    memset(of->state, 0, sizeof of->state);
    if (flow->config.state_width)
        memcpy(of->state, input->state, states * sizeof *of->state);
    take_places(flow, member, of->length);
    place_suffix(flow, member);
    return TD_OK;
}

float *td_native_flow_noise(const td_native_flow *flow, uint32_t member)
{
    return (float *)flow->x.host +
           (size_t)member * flow->chunk * flow->config.action_width;
}

void td_native_flow_unguide(td_native_flow *flow, uint32_t member)
{
    memset((float *)flow->weights.host + (size_t)member * flow->chunk, 0,
           flow->chunk * sizeof(float));
    memset((uint32_t *)flow->held.host + (size_t)member * flow->chunk, 0,
           flow->chunk * sizeof(uint32_t));
}

// Promised rows as they are, of a policy that was trained for it.
static td_err hold(td_native_flow *flow, uint32_t member,
                   const td_native_model_left *left, uint32_t columns,
                   td_errinfo *info)
{
    const td_native_guide *guide = &flow->config.guide;
    size_t width = flow->config.action_width;
    float *x = td_native_flow_noise(flow, member);
    uint32_t *held = (uint32_t *)flow->held.host + (size_t)member * flow->chunk;
    if (left->delay > guide->most_delay || left->delay >= flow->chunk ||
        left->delay > left->count)
        return td_fail(info, TD_ERR_INVALID,
                       "rtc: %u rows are to be kept of %u that are left: the "
                       "policy was trained for at most %u, of %u",
                       left->delay, left->count, guide->most_delay,
                       flow->chunk);
    memset(x, 0, left->delay * width * sizeof *x);
    for (uint32_t i = 0; i < left->delay; i++) {
        memcpy(x + i * width, left->rows + (size_t)i * columns,
               columns * sizeof *x);
        held[i] = 1;
    }
    return TD_OK;
}

td_err td_native_flow_guide(td_native_flow *flow, uint32_t member,
                            const td_native_model_left *left, uint32_t columns,
                            td_errinfo *info)
{
    const td_native_guide *guide = &flow->config.guide;
    size_t width = flow->config.action_width;
    float *tail =
        (float *)flow->tail.host + (size_t)member * flow->chunk * width;
    uint32_t rows = left->count < flow->chunk ? left->count : flow->chunk;
    td_native_flow_unguide(flow, member);
    if (guide->trained) return hold(flow, member, left, columns, info);
    memset(tail, 0, flow->chunk * width * sizeof *tail);
    for (uint32_t i = 0; i < rows; i++)
        memcpy(tail + i * width, left->rows + (size_t)i * columns,
               columns * sizeof *tail);
    td_native_guide_weights(
        guide, left->delay, left->horizon ? left->horizon : guide->horizon,
        rows, flow->chunk,
        (float *)flow->weights.host + (size_t)member * flow->chunk);
    return TD_OK;
}

td_err td_native_flow_keep(td_native_model *model, td_native_flow *flow,
                           uint32_t member, uint32_t slot, td_errinfo *info)
{
    flow->kept[slot] = flow->members[member];
    return model->ops->copy(
        model->backend, flow->pool + slot * flow->member_bytes,
        flow->cache + member * flow->member_bytes, flow->member_bytes, info);
}

td_err td_native_flow_restore(td_native_model *model, td_native_flow *flow,
                              uint32_t slot, uint32_t member, td_errinfo *info)
{
    flow->members[member] = flow->kept[slot];
    place_suffix(flow, member);
    return model->ops->copy(
        model->backend, flow->cache + member * flow->member_bytes,
        flow->pool + slot * flow->member_bytes, flow->member_bytes, info);
}

td_ops_view td_native_flow_places(const td_native_flow *flow,
                                  const td_native_graph *graph, uint32_t rows)
{
    td_ops_view all =
        td_native_graph_input(graph, &flow->places, TD_OPS_U32, flow->rows, 1);
    return td_ops_rows(all, 0, rows);
}

td_ops_view td_native_flow_lengths(const td_native_flow *flow,
                                   const td_native_graph *graph)
{
    return td_native_graph_input(graph, &flow->lengths, TD_OPS_U32, 1, 1);
}

td_ops_view td_native_flow_cache(const td_native_flow *flow,
                                 const td_native_graph *graph, uint32_t layer,
                                 uint32_t rows)
{
    size_t bytes = layer_bytes(flow, graph->dtype);
    td_ops_view view = td_native_graph_room(graph, flow->cache + layer * bytes,
                                            rows, flow->config.kv_cols);
    view.batch_stride = flow->member_bytes / td_ops_bytes(graph->dtype);
    return view;
}

td_err td_native_flow_look_at_all(const td_native_flow *flow,
                                  const td_native_graph *graph,
                                  const td_native_flow_look *look,
                                  td_ops_view sums)
{
    td_ops_info backend;
    uint32_t each = flow->config.picture_rows;
    td_ops_view rows = td_ops_rows(sums, flow->config.state_in_prefix ? 1 : 0,
                                   flow->cameras * each);
    graph->ops->info(graph->backend, &backend);
    if (!backend.apart)
        return look->build(look->network, graph, 0,
                           graph->batch * flow->cameras, rows);
    for (uint32_t i = 0; i < graph->batch * flow->cameras; i++) {
        uint32_t member = i / flow->cameras, camera = i % flow->cameras;
        td_ops_view one = td_ops_rows(rows, camera * each, each);
        one.data = (char *)one.data +
                   member * one.batch_stride * td_ops_bytes(one.dtype);
        one.batch = 1;
        TD_TRY(look->build(look->network, graph, i, 1, one));
    }
    return TD_OK;
}

uint32_t td_native_flow_pass(const td_native_model *model)
{
    const td_native_policy *policy = &model->checkpoint->policy;
    uint32_t cameras = 0;
    td_ops_info backend;
    model->ops->info(model->backend, &backend);
    for (uint32_t i = 0; i < policy->camera_count; i++)
        cameras += !policy->cameras[i].empty;
    return backend.apart ? 1 : cameras * model->max_batch;
}

static td_err take(const td_native_graph *graph, const td_ops_io *from,
                   size_t numbers_each)
{
    return graph->ops->copy_in(graph->backend, from,
                               graph->batch * numbers_each * 4, graph->info);
}

static td_err take_state(const td_native_flow *flow,
                         const td_native_graph *graph)
{
    if (flow->config.state_width == 0) return TD_OK;
    return take(graph, &flow->state, flow->config.state_width);
}

td_err td_native_flow_take_prefix(const td_native_flow *flow,
                                  const td_native_graph *graph)
{
    size_t pixels = (size_t)flow->side * flow->side * 3;
    TD_TRY(take(graph, &flow->pictures, flow->cameras * pixels));
    TD_TRY(take(graph, &flow->ids, flow->text_rows));
    TD_TRY(take(graph, &flow->places, flow->rows));
    TD_TRY(take(graph, &flow->lengths, 1));
    return flow->config.state_in_prefix ? take_state(flow, graph) : TD_OK;
}

td_err td_native_flow_take_suffix(const td_native_flow *flow,
                                  const td_native_graph *graph)
{
    size_t chunk = (size_t)flow->chunk * flow->config.action_width;
    TD_TRY(take(graph, &flow->x, chunk));
    TD_TRY(take(graph, &flow->tail, chunk));
    TD_TRY(take(graph, &flow->weights, flow->chunk));
    TD_TRY(take(graph, &flow->lengths, 1));
    TD_TRY(take(graph, &flow->own_places, flow->config.suffix_rows));
    TD_TRY(take(graph, &flow->from_zero, flow->config.suffix_rows));
    if (flow->config.holds) TD_TRY(take(graph, &flow->held, flow->chunk));
    return flow->config.state_in_prefix ? TD_OK : take_state(flow, graph);
}

td_err td_native_flow_step(const td_native_flow *flow,
                           const td_native_graph *graph, td_ops_view v,
                           uint32_t index, uint32_t steps)
{
    uint32_t width = flow->config.action_width;
    double dt = -1.0 / (double)steps, time = 1.0 + index * dt;
    td_ops_step step = {
        .x = td_native_graph_input(graph, &flow->x, TD_OPS_F32, flow->chunk,
                                   width),
        .v = v,
        .tail = td_native_graph_input(graph, &flow->tail, TD_OPS_F32,
                                      flow->chunk, width),
        .weight = td_native_graph_input(graph, &flow->weights, TD_OPS_F32,
                                        flow->chunk, 1),
        .time = (float)time,
        .dt = (float)dt,
        .guidance = td_native_guide_strength(&flow->config.guide, time),
    };
    if (flow->config.holds)
        step.kept = td_native_graph_input(graph, &flow->held, TD_OPS_U32,
                                          flow->chunk, 1);
    return graph->ops->step(graph->backend, &step, graph->info);
}

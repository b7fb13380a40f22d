// SPDX-License-Identifier: Apache-2.0
// A policy on a backend: its architecture's functions, and its graphs.
//
// open() finds the architecture, opens the backend, lets the architecture load
// and then builds every graph that will ever run: one for each batch size, and
// of a policy with halves one of the first half for each number of text rows
// and one of the second. A run takes the smallest that all its members fit.
//
// What is kept of first halves lies in the flow's pool (flow/flow.h), by the
// number of a slot, which the caller gives.
#include "engine/native/model.h"

#include "engine/native/flow/flow.h"

#include <stdlib.h>
#include <string.h>

static const td_native_architecture_ops *const architectures[] = {
    &td_native_act,
    &td_native_smolvla,
    &td_native_pi0,
    &td_native_pi05,
};

// NULL: there is none.
static const td_native_architecture_ops *
find_architecture(const td_native_checkpoint *of)
{
    for (size_t i = 0; i < TD_COUNT_OF(architectures); i++)
        if (architectures[i]->type == of->policy.type) return architectures[i];
    return NULL;
}

td_err td_native_model_check(const td_native_checkpoint *of, td_errinfo *info)
{
    const td_native_architecture_ops *ops = find_architecture(of);
    if (ops) return ops->check(of, info);
    return td_fail(info, TD_ERR_UNSUPPORTED,
                   "%s: the native engine does not run policies of type %s",
                   of->policy.file, td_native_policy_name(of->policy.type));
}

// Batch sizes that have a graph: all of them, or powers of two and the last.
static bool has_graph(const td_native_model *model, bool exact, uint32_t n)
{
    return exact || (n & (n - 1)) == 0 || n == model->max_batch;
}

static td_err build_graph(td_native_model *model, const td_native_build *of,
                          td_ops_graph **ret_graph, td_errinfo *info)
{
    TD_TRY(model->ops->begin(model->backend, info));
    TD_TRY(model->architecture->build(model, of, info));
    return model->ops->end(model->backend, ret_graph, info);
}

// All batch sizes of one part; `graphs` by batch size.
static td_err build_sizes(td_native_model *model, td_native_part part,
                          uint32_t text_rows, td_ops_graph **graphs,
                          td_errinfo *info)
{
    td_ops_info backend;
    model->ops->info(model->backend, &backend);
    for (uint32_t n = model->max_batch; n > 0; n--) {
        const td_native_build of = {part, n, text_rows};
        graphs[n] = graphs[n + 1];
        if (has_graph(model, backend.exact_batches, n))
            TD_TRY(build_graph(model, &of, &graphs[n], info));
    }
    return TD_OK;
}

static td_err build_graphs(td_native_model *model, td_errinfo *info)
{
    if (!model->flow)
        return build_sizes(model, TD_NATIVE_WHOLE, 0, model->graphs[0], info);
    model->bucket_count = td_native_flow_buckets(model->flow, model->buckets);
    for (uint32_t i = 0; i < model->bucket_count; i++)
        TD_TRY(build_sizes(model, TD_NATIVE_PREFIX, model->buckets[i],
                           model->graphs[i], info));
    return build_sizes(model, TD_NATIVE_DECODE, 0, model->decodes, info);
}

static td_err check_config(const td_native_model_config *config,
                           td_errinfo *info)
{
    const td_native_architecture_ops *ops =
        find_architecture(config->checkpoint);
    if (config->max_batch < 1 || config->max_batch > TD_ENGINE_MAX_BATCH)
        return td_fail(info, TD_ERR_INVALID, "a batch of %u is not possible",
                       config->max_batch);
    if (ops->wants_whole && !td_ops_is_whole(config->ops))
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "%s: policies of type %s do not run on %s yet: it lacks "
                       "operations that they are made of",
                       config->checkpoint->policy.file,
                       td_native_policy_name(ops->type), config->ops->name);
    return TD_OK;
}

td_err td_native_model_open(const td_native_model_config *config,
                            td_native_model **ret_model, td_errinfo *info)
{
    TD_TRY(td_native_model_check(config->checkpoint, info));
    TD_TRY(check_config(config, info));
    TD_AUTO(td_native_model) *model = calloc(1, sizeof *model);
    if (!model) return TD_ERR_NOMEM;
    model->checkpoint = config->checkpoint;
    model->pipeline = config->pipeline;
    model->ops = config->ops;
    model->max_batch = config->max_batch;
    model->kept_bytes = config->kept_bytes;
    model->architecture = find_architecture(config->checkpoint);
    TD_TRY(config->ops->open(&config->backend, &model->backend, info));
    TD_TRY(model->architecture->load(model, info));
    TD_TRY(build_graphs(model, info));
    *ret_model = TD_TAKE(model);
    return TD_OK;
}

void td_native_model_close(td_native_model *model)
{
    if (model->network) model->architecture->free(model->network);
    if (model->backend) model->ops->close(model->backend);
    free(model);
}

const td_native_policy *td_native_model_policy(const td_native_model *model)
{
    return &model->checkpoint->policy;
}

size_t td_native_model_prefix_bytes(const td_native_model *model)
{
    return model->flow ? model->flow->member_bytes : 0;
}

uint32_t td_native_model_slots(const td_native_model *model)
{
    return model->flow ? model->flow->slots : 0;
}

uint8_t *td_native_model_frame(const td_native_model *model, uint32_t member,
                               uint32_t camera)
{
    const td_native_frames *frames = &model->frames[camera];
    return frames->host + member * frames->stride;
}

td_err td_native_model_observe(td_native_model *model, uint32_t member,
                               const td_native_model_input *input,
                               td_errinfo *info)
{
    const td_native_policy *policy = &model->checkpoint->policy;
    if (model->flow)
        return td_native_flow_observe(model, model->flow, member, input, info);
    if (model->state)
        memcpy(model->state + (size_t)member * policy->state_dim, input->state,
               policy->state_dim * sizeof(float));
    if (model->env)
        memcpy(model->env + (size_t)member * policy->env_dim, input->env,
               policy->env_dim * sizeof(float));
    return TD_OK;
}

uint32_t td_native_model_noise_count(const td_native_model *model)
{
    const td_native_flow *flow = model->flow;
    return flow ? flow->chunk * flow->config.action_width : 0;
}

float *td_native_model_noise(const td_native_model *model, uint32_t member)
{
    return td_native_flow_noise(model->flow, member);
}

bool td_native_model_can_guide(const td_native_model *model)
{
    return model->flow != NULL;
}

td_err td_native_model_guide(td_native_model *model, uint32_t member,
                             const td_native_model_left *left, td_errinfo *info)
{
    if (left)
        return td_native_flow_guide(model->flow, member, left,
                                    model->checkpoint->policy.action_dim, info);
    td_native_flow_unguide(model->flow, member);
    return TD_OK;
}

// The graph of the first half that the longest text fits.
static td_ops_graph *prefix_graph(const td_native_model *model, uint32_t count)
{
    uint32_t longest = 0, bucket = 0;
    for (uint32_t i = 0; i < count; i++)
        if (model->members_text[i] > longest) longest = model->members_text[i];
    while (bucket + 1 < model->bucket_count && model->buckets[bucket] < longest)
        bucket++;
    return model->graphs[bucket][count];
}

td_err td_native_model_run(td_native_model *model, td_native_part part,
                           uint32_t count, td_errinfo *info)
{
    if (count < 1 || count > model->max_batch)
        return td_fail(info, TD_ERR_INVALID, "a batch of %u, at most %u", count,
                       model->max_batch);
    if (part != TD_NATIVE_DECODE)
        TD_TRY(
            model->ops->run(model->backend, prefix_graph(model, count), info));
    if (part == TD_NATIVE_PREFIX || !model->flow) return TD_OK;
    return model->ops->run(model->backend, model->decodes[count], info);
}

td_err td_native_model_keep(td_native_model *model, uint32_t member,
                            uint32_t slot, td_errinfo *info)
{
    return td_native_flow_keep(model, model->flow, member, slot, info);
}

td_err td_native_model_restore(td_native_model *model, uint32_t slot,
                               uint32_t member, td_errinfo *info)
{
    return td_native_flow_restore(model, model->flow, slot, member, info);
}

void td_native_model_actions(const td_native_model *model, uint32_t member,
                             float *ret_actions)
{
    const td_native_policy *policy = &model->checkpoint->policy;
    const float *from = model->actions + (size_t)member * policy->chunk_rows *
                                             model->action_stride;
    for (uint32_t row = 0; row < policy->chunk_rows; row++)
        memcpy(ret_actions + (size_t)row * policy->action_dim,
               from + (size_t)row * model->action_stride,
               policy->action_dim * sizeof(float));
}

void td_native_model_info(const td_native_model *model, td_ops_info *ret_info)
{
    model->ops->info(model->backend, ret_info);
}

td_err td_native_model_buffer(td_native_model *model, uint32_t rows,
                              uint32_t cols, td_ops_view *ret_view,
                              td_errinfo *info)
{
    td_ops_info backend;
    void *data = NULL;
    model->ops->info(model->backend, &backend);
    size_t count = (size_t)model->max_batch * rows * cols;
    TD_TRY(model->ops->alloc(model->backend,
                             count * td_ops_bytes(backend.dtype), &data, info));
    *ret_view = td_ops_dense(data, backend.dtype, model->max_batch, rows, cols);
    return TD_OK;
}

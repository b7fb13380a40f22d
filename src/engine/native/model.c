// SPDX-License-Identifier: Apache-2.0
#include "engine/native/model.h"

#include "engine/native/architecture.h"

#include <stdlib.h>

static const td_native_architecture_ops *const architectures[] = {
    &td_native_act,
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

static td_err build_graphs(td_native_model *model, td_errinfo *info)
{
    td_ops_info backend;
    model->ops->info(model->backend, &backend);
    for (uint32_t n = model->max_batch; n > 0; n--) {
        if (!has_graph(model, backend.exact_batches, n)) {
            model->graphs[n] = model->graphs[n + 1];
            continue;
        }
        TD_TRY(model->ops->begin(model->backend, info));
        TD_TRY(model->architecture->build(model, n, info));
        TD_TRY(model->ops->end(model->backend, &model->graphs[n], info));
    }
    return TD_OK;
}

td_err td_native_model_open(const td_native_model_config *config,
                            td_native_model **ret_model, td_errinfo *info)
{
    TD_TRY(td_native_model_check(config->checkpoint, info));
    if (config->max_batch < 1 || config->max_batch > TD_ENGINE_MAX_BATCH)
        return td_fail(info, TD_ERR_INVALID, "a batch of %u is not possible",
                       config->max_batch);
    TD_AUTO(td_native_model) *model = calloc(1, sizeof *model);
    if (!model) return TD_ERR_NOMEM;
    model->checkpoint = config->checkpoint;
    model->pipeline = config->pipeline;
    model->ops = config->ops;
    model->max_batch = config->max_batch;
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

uint8_t *td_native_model_frame(const td_native_model *model, uint32_t member,
                               uint32_t camera)
{
    const td_native_frames *frames = &model->frames[camera];
    return frames->host + member * frames->stride;
}

static float *member_of(float *first, uint32_t member, size_t each)
{
    return first ? first + member * each : NULL;
}

float *td_native_model_state(const td_native_model *model, uint32_t member)
{
    return member_of(model->state, member, model->checkpoint->policy.state_dim);
}

float *td_native_model_env(const td_native_model *model, uint32_t member)
{
    return member_of(model->env, member, model->checkpoint->policy.env_dim);
}

td_err td_native_model_run(td_native_model *model, uint32_t count,
                           td_errinfo *info)
{
    if (count < 1 || count > model->max_batch)
        return td_fail(info, TD_ERR_INVALID, "a batch of %u, at most %u", count,
                       model->max_batch);
    return model->ops->run(model->backend, model->graphs[count], info);
}

const float *td_native_model_actions(const td_native_model *model,
                                     uint32_t member)
{
    const td_native_policy *policy = &model->checkpoint->policy;
    return member_of(model->actions, member,
                     (size_t)policy->chunk_rows * policy->action_dim);
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

// SPDX-License-Identifier: Apache-2.0
#include "engine/native/model.h"

#include "engine/native/architecture.h"

#include <stdlib.h>

static const td_native_body_ops *const bodies[] = {
    &td_native_act,
};

// NULL: there is none.
static const td_native_body_ops *find_body(const td_native_checkpoint *of)
{
    for (size_t i = 0; i < TD_COUNT_OF(bodies); i++)
        if (bodies[i]->type == of->policy.type) return bodies[i];
    return NULL;
}

td_err td_native_model_check(const td_native_checkpoint *of, td_errinfo *info)
{
    const td_native_body_ops *ops = find_body(of);
    if (ops) return ops->check(of, info);
    return td_fail(info, TD_ERR_UNSUPPORTED,
                   "%s: the native engine does not run policies of type %s",
                   of->policy.file, td_native_policy_name(of->policy.type));
}

// Batch sizes that have a program: all of them, or powers of two and the last.
static bool has_program(const td_native_model *model, bool exact, uint32_t n)
{
    return exact || (n & (n - 1)) == 0 || n == model->max_batch;
}

static td_err record_all(td_native_model *model, td_errinfo *info)
{
    td_ops_info side;
    model->side_ops->info(model->side, &side);
    for (uint32_t n = model->max_batch; n > 0; n--) {
        if (!has_program(model, side.exact_batches, n)) {
            model->programs[n] = model->programs[n + 1];
            continue;
        }
        TD_TRY(model->side_ops->begin(model->side, info));
        TD_TRY(model->ops->record(model, n, info));
        TD_TRY(model->side_ops->end(model->side, &model->programs[n], info));
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
    model->side_ops = config->ops;
    model->max_batch = config->max_batch;
    model->ops = find_body(config->checkpoint);
    TD_TRY(config->ops->open(&config->side, &model->side, info));
    TD_TRY(model->ops->load(model, info));
    TD_TRY(record_all(model, info));
    *ret_model = TD_TAKE(model);
    return TD_OK;
}

void td_native_model_close(td_native_model *model)
{
    if (model->body) model->ops->free(model->body);
    if (model->side) model->side_ops->close(model->side);
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
    return model->side_ops->run(model->side, model->programs[count], info);
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
    model->side_ops->info(model->side, ret_info);
}

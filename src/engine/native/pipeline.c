// SPDX-License-Identifier: Apache-2.0
#include "engine/native/pipeline.h"

#include <stdlib.h>
#include <string.h>

struct td_native_pipeline {
    const td_native_checkpoint *from;
    td_native_colours colours[TD_WIRE_MAX_IMAGES];
};

// A byte is x = byte / 255 to LeRobot, and then normalised.
static td_native_colours colours_of(const td_native_norm *norm)
{
    td_native_colours colours;
    for (int i = 0; i < 3; i++) {
        double scale = 1, bias = 0;
        if (norm && norm->mode != TD_NATIVE_IDENTITY) {
            bool centred = norm->mode == TD_NATIVE_MEAN_STD;
            scale = (centred ? 1 : 2) / (double)norm->span[i];
            bias = -(double)norm->low[i] * scale - (centred ? 0 : 1);
        }
        colours.scale[i] = (float)(scale / 255);
        colours.bias[i] = (float)bias;
    }
    return colours;
}

static void find_colours(td_native_pipeline *pipeline)
{
    const td_native_step *step =
        td_native_steps_find(&pipeline->from->before, TD_NATIVE_STEP_NORMALIZE);
    for (uint32_t i = 0; i < pipeline->from->policy.camera_count; i++)
        pipeline->colours[i] =
            colours_of(step ? &step->norms->cameras[i] : NULL);
}

td_native_colours td_native_pipeline_colours(const td_native_pipeline *pipeline,
                                             uint32_t camera)
{
    return pipeline->colours[camera];
}

// Text becomes ids elsewhere until there is a tokenizer here.
static td_err check_text(const td_native_checkpoint *from, td_errinfo *info)
{
    if (!td_native_steps_find(&from->before, TD_NATIVE_STEP_TOKENIZE))
        return TD_OK;
    return td_fail(info, TD_ERR_UNSUPPORTED,
                   "%s: %s: there is no tokenizer in this engine",
                   from->before.file,
                   td_native_step_name(TD_NATIVE_STEP_TOKENIZE));
}

td_err td_native_pipeline_new(const td_native_checkpoint *from,
                              const char *tokenizer,
                              td_native_pipeline **ret_pipeline,
                              td_errinfo *info)
{
    (void)tokenizer;
    TD_TRY(check_text(from, info));
    TD_AUTO(td_native_pipeline) *pipeline = calloc(1, sizeof *pipeline);
    if (!pipeline) return TD_ERR_NOMEM;
    pipeline->from = from;
    find_colours(pipeline);
    *ret_pipeline = TD_TAKE(pipeline);
    return TD_OK;
}

void td_native_pipeline_free(td_native_pipeline *pipeline)
{
    free(pipeline);
}

static void take_step(const td_native_pipeline *pipeline,
                      const td_native_step *step, td_native_taken *taken)
{
    uint32_t state_dim = pipeline->from->policy.state_dim;
    if (step->kind == TD_NATIVE_STEP_NORMALIZE) {
        td_native_norm_apply(&step->norms->state, 1, taken->state);
        td_native_norm_apply(&step->norms->env, 1, taken->env);
    }
    if (step->kind == TD_NATIVE_STEP_RELATIVE)
        memcpy(taken->base, taken->state, state_dim * sizeof *taken->base);
}

td_err td_native_pipeline_before(const td_native_pipeline *pipeline,
                                 const td_native_given *given,
                                 td_native_taken *ret_taken, td_errinfo *info)
{
    const td_native_policy *policy = &pipeline->from->policy;
    const td_native_steps *steps = &pipeline->from->before;
    (void)info;
    ret_taken->id_count = 0;
    if (policy->state_dim > 0)
        memcpy(ret_taken->state, given->state,
               policy->state_dim * sizeof *given->state);
    if (policy->env_dim > 0)
        memcpy(ret_taken->env, given->env,
               policy->env_dim * sizeof *given->env);
    for (uint32_t i = 0; i < steps->count; i++)
        take_step(pipeline, &steps->each[i], ret_taken);
    return TD_OK;
}

static void add_base(const td_native_pipeline *pipeline,
                     const td_native_taken *taken, uint32_t rows,
                     float *actions)
{
    uint32_t dim = pipeline->from->policy.action_dim;
    const bool *mask =
        td_native_steps_find(&pipeline->from->before, TD_NATIVE_STEP_RELATIVE)
            ->mask;
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t i = 0; i < dim; i++)
            if (mask[i]) actions[row * dim + i] += taken->base[i];
}

void td_native_pipeline_after(const td_native_pipeline *pipeline,
                              const td_native_taken *taken, uint32_t rows,
                              float *actions)
{
    const td_native_steps *steps = &pipeline->from->after;
    for (uint32_t i = 0; i < steps->count; i++) {
        const td_native_step *step = &steps->each[i];
        if (step->kind == TD_NATIVE_STEP_UNNORMALIZE)
            td_native_norm_undo(&step->norms->action, rows, actions);
        if (step->kind == TD_NATIVE_STEP_ABSOLUTE && step->enabled)
            add_base(pipeline, taken, rows, actions);
    }
}

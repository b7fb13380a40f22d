// SPDX-License-Identifier: Apache-2.0
#include "engine/native/pipeline/pipeline.h"

#include "engine/native/checkpoint/hub.h"
#include "engine/native/pipeline/prompt.h"
#include "engine/native/pipeline/tokenizer.h"

#include <stdlib.h>
#include <string.h>

struct td_native_pipeline {
    const td_native_checkpoint *from;
    td_native_tokenizer *tokenizer; // NULL: there is no text
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

static td_err no_tokenizer(const td_native_step *step, const char *path,
                           td_errinfo *info)
{
    const char *name = step->tokenizer;
    if (!name || !td_native_hub_is_name(name))
        return td_fail(info, TD_ERR_NOTFOUND,
                       "%s: is not there, and the policy takes text: put the "
                       "tokenizer.json of its language model there, or name it "
                       "in the manifest as engine.tokenizer",
                       path);
    return td_fail(info, TD_ERR_NOTFOUND,
                   "%s: is not there, and the policy takes text: get it with "
                   "`hf download %s tokenizer.json`, put it there, or name it "
                   "in the manifest as engine.tokenizer",
                   path, name);
}

static td_err open_tokenizer(td_native_pipeline *pipeline, const char *given,
                             td_errinfo *info)
{
    const td_native_step *step =
        td_native_steps_find(&pipeline->from->before, TD_NATIVE_STEP_TOKENIZE);
    if (!step && given)
        return td_fail(info, TD_ERR_INVALID,
                       "tokenizer: %s is given, and the policy of %s takes no "
                       "text",
                       given, pipeline->from->folder);
    if (!step) return TD_OK;
    char path[TD_NATIVE_MAX_PATH];
    TD_TRY(td_native_checkpoint_tokenizer(pipeline->from, path, info));
    if (!given) given = path;
    td_err err = td_native_tokenizer_open(given, step->most_tokens,
                                          &pipeline->tokenizer, info);
    return err == TD_ERR_NOTFOUND ? no_tokenizer(step, given, info) : err;
}

td_err td_native_pipeline_new(const td_native_checkpoint *from,
                              const char *tokenizer,
                              td_native_pipeline **ret_pipeline,
                              td_errinfo *info)
{
    TD_AUTO(td_native_pipeline) *pipeline = calloc(1, sizeof *pipeline);
    if (!pipeline) return TD_ERR_NOMEM;
    pipeline->from = from;
    find_colours(pipeline);
    TD_TRY(open_tokenizer(pipeline, tokenizer, info));
    *ret_pipeline = TD_TAKE(pipeline);
    return TD_OK;
}

void td_native_pipeline_free(td_native_pipeline *pipeline)
{
    if (pipeline->tokenizer) td_native_tokenizer_close(pipeline->tokenizer);
    free(pipeline);
}

static td_err take_step(const td_native_pipeline *pipeline,
                        const td_native_step *step, td_native_prompt *prompt,
                        td_native_pipeline_prepared *prepared, td_errinfo *info)
{
    uint32_t state_dim = pipeline->from->policy.state_dim;
    switch (step->kind) {
    case TD_NATIVE_STEP_NORMALIZE:
        td_native_norm_apply(&step->norms->state, 1, prepared->state);
        td_native_norm_apply(&step->norms->env, 1, prepared->env);
        return TD_OK;
    case TD_NATIVE_STEP_RELATIVE:
        memcpy(prepared->base, prepared->state,
               state_dim * sizeof *prepared->base);
        return TD_OK;
    case TD_NATIVE_STEP_NEW_LINE:
    case TD_NATIVE_STEP_PI0_NEW_LINE:
        td_native_prompt_end_line(prompt);
        return TD_OK;
    case TD_NATIVE_STEP_STATE_TO_TEXT:
        td_native_prompt_add_state(prompt, prepared->state, state_dim);
        return TD_OK;
    case TD_NATIVE_STEP_TOKENIZE:
        return td_native_tokenizer_encode(
            pipeline->tokenizer, (td_slice){prompt->text, prompt->size},
            prepared->ids, &prepared->id_count, info);
    default:
        return TD_OK; // where things lie, and what they are called
    }
}

td_err td_native_pipeline_preprocess(const td_native_pipeline *pipeline,
                                     const td_native_pipeline_input *input,
                                     td_native_pipeline_prepared *ret_prepared,
                                     td_errinfo *info)
{
    const td_native_policy *policy = &pipeline->from->policy;
    const td_native_steps *steps = &pipeline->from->before;
    td_native_prompt prompt;
    TD_TRY(td_native_prompt_init(&prompt, input->task, info));
    ret_prepared->id_count = 0;
    if (policy->state_dim > 0)
        memcpy(ret_prepared->state, input->state,
               policy->state_dim * sizeof *input->state);
    if (policy->env_dim > 0)
        memcpy(ret_prepared->env, input->env,
               policy->env_dim * sizeof *input->env);
    for (uint32_t i = 0; i < steps->count; i++)
        TD_TRY(
            take_step(pipeline, &steps->each[i], &prompt, ret_prepared, info));
    return TD_OK;
}

// What actions are relative to, added or, with -1, taken off.
static void add_base(const td_native_pipeline *pipeline, const float *base,
                     float sign, uint32_t rows, float *actions)
{
    uint32_t dim = pipeline->from->policy.action_dim;
    const bool *mask =
        td_native_steps_find(&pipeline->from->before, TD_NATIVE_STEP_RELATIVE)
            ->mask;
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t i = 0; i < dim; i++)
            if (mask[i]) actions[row * dim + i] += sign * base[i];
}

void td_native_pipeline_postprocess(const td_native_pipeline *pipeline,
                                    const td_native_pipeline_prepared *prepared,
                                    uint32_t rows, float *actions)
{
    const td_native_steps *steps = &pipeline->from->after;
    for (uint32_t i = 0; i < steps->count; i++) {
        const td_native_step *step = &steps->each[i];
        if (step->kind == TD_NATIVE_STEP_UNNORMALIZE)
            td_native_norm_undo(&step->norms->action, rows, actions);
        if (step->kind == TD_NATIVE_STEP_ABSOLUTE && step->enabled)
            add_base(pipeline, prepared->base, 1, rows, actions);
    }
}

void td_native_pipeline_renormalize(const td_native_pipeline *pipeline,
                                    const float *base, uint32_t rows,
                                    float *actions)
{
    const td_native_steps *steps = &pipeline->from->after;
    for (uint32_t i = steps->count; i-- > 0;) {
        const td_native_step *step = &steps->each[i];
        if (step->kind == TD_NATIVE_STEP_ABSOLUTE && step->enabled)
            add_base(pipeline, base, -1, rows, actions);
        if (step->kind == TD_NATIVE_STEP_UNNORMALIZE)
            td_native_norm_apply(&step->norms->action, rows, actions);
    }
}

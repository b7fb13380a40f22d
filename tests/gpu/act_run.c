// SPDX-License-Identifier: Apache-2.0
// Runs an ACT checkpoint over inputs in files, for tests/gpu/check.py:
//
//   act_run SIDE CHECKPOINT FRAMES STATES OUT BATCH COUNT
//
// Frames are bytes, states and what goes to OUT floats, all of them normalised
// and one observation after the other.
#include "engine/native/cuda/library.h"
#include "engine/native/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    const char *backend, *checkpoint;
    FILE *frames, *states, *out;
    uint32_t batch, count;
} job;

static td_err read_member(const job *of, const td_native_policy *policy,
                          td_native_model *model, uint32_t member)
{
    const td_native_camera *camera = &policy->cameras[0];
    size_t bytes = (size_t)camera->height * camera->width * 3;
    float state[TD_WIRE_MAX_CHANNELS];
    const td_native_model_input input = {.state = state};
    if (fread(td_native_model_frame(model, member, 0), 1, bytes, of->frames) !=
            bytes ||
        fread(state, sizeof *state, policy->state_dim, of->states) !=
            policy->state_dim)
        return TD_ERR_IO;
    return td_native_model_observe(model, member, &input, NULL);
}

static td_err run_batch(const job *of, const td_native_policy *policy,
                        td_native_model *model, td_errinfo *info)
{
    size_t values = (size_t)policy->chunk_rows * policy->action_dim;
    for (uint32_t i = 0; i < of->batch; i++)
        TD_TRY(read_member(of, policy, model, i));
    float *actions = malloc(values * sizeof *actions);
    td_err err =
        actions ? td_native_model_run(model, TD_NATIVE_WHOLE, of->batch, info)
                : TD_ERR_NOMEM;
    for (uint32_t i = 0; err == TD_OK && i < of->batch; i++) {
        td_native_model_actions(model, i, actions);
        if (fwrite(actions, sizeof *actions, values, of->out) != values)
            err = TD_ERR_IO;
    }
    free(actions);
    return err;
}

static td_err run(const job *of, td_errinfo *info)
{
    const bool is_cuda = strcmp(of->backend, "cuda") == 0;
    TD_AUTO(td_native_checkpoint) *checkpoint = NULL;
    TD_AUTO(td_native_pipeline) *pipeline = NULL;
    TD_AUTO(td_native_model) *model = NULL;
    TD_TRY(td_native_checkpoint_open(of->checkpoint, &checkpoint, info));
    TD_TRY(td_native_pipeline_new(checkpoint, NULL, &pipeline, info));
    td_native_model_config config = {
        .checkpoint = checkpoint,
        .pipeline = pipeline,
        .ops = &td_ops_cpu,
        .backend = {.precision = is_cuda ? TD_OPS_BF16 : TD_OPS_F32,
                    .threads = 8},
        .max_batch = of->batch,
    };
    if (is_cuda) TD_TRY(td_native_cuda_library_load(&config.ops, info));
    TD_TRY(td_native_model_open(&config, &model, info));
    for (uint32_t i = 0; i + of->batch <= of->count; i += of->batch)
        TD_TRY(run_batch(of, &checkpoint->policy, model, info));
    return TD_OK;
}

int main(int argc, char **argv)
{
    if (argc != 8) return 2;
    job of = {
        .backend = argv[1],
        .checkpoint = argv[2],
        .frames = fopen(argv[3], "rb"),
        .states = fopen(argv[4], "rb"),
        .out = fopen(argv[5], "wb"),
        .batch = (uint32_t)strtoul(argv[6], NULL, 10),
        .count = (uint32_t)strtoul(argv[7], NULL, 10),
    };
    td_errinfo info = {.text = ""};
    td_err err = TD_ERR_IO;
    if (of.frames && of.states && of.out) err = run(&of, &info);
    if (of.frames) (void)fclose(of.frames);
    if (of.states) (void)fclose(of.states);
    if (of.out && fclose(of.out) != 0) err = TD_ERR_IO;
    if (err != TD_OK)
        (void)fprintf(stderr, "act_run: %s: %s\n", td_err_text(err), info.text);
    return err != TD_OK;
}

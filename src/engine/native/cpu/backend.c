// SPDX-License-Identifier: Apache-2.0
// The side of the processor: weights of linears stay where they are, in the
// mapped file, and are packed in passing; those of convolutions are kept in the
// order in which they are read.
#include "engine/native/cpu/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN_BYTES 64

typedef struct block {
    struct block *next;
    _Alignas(ALIGN_BYTES) char data[];
} block;

struct td_ops_program {
    td_ops_program *next;
    td_native_cpu_step *steps;
    size_t count, room;
};

struct td_ops_side {
    const td_native_cpu_kernel *kernel;
    td_native_cpu_pool *pool;
    uint32_t threads;
    block *blocks;
    size_t bytes;
    td_ops_program *programs;
    td_ops_program *recording; // the first of them, or NULL
    size_t scratch_floats;     // of a thread
    float **scratch;           // [threads]
};

static void free_programs(td_ops_program *program)
{
    while (program) {
        td_ops_program *next = program->next;
        free(program->steps);
        free(program);
        program = next;
    }
}

static void close_side(td_ops_side *side)
{
    if (side->pool) td_native_cpu_pool_free(side->pool);
    while (side->blocks) {
        block *next = side->blocks->next;
        free(side->blocks);
        side->blocks = next;
    }
    for (uint32_t i = 0; side->scratch && i < side->threads; i++)
        free(side->scratch[i]);
    free(side->scratch);
    free_programs(side->programs);
    free(side);
}
TD_AUTO_FREE(td_ops_side, close_side)

td_err td_native_cpu_side_open(const td_native_cpu_kernel *kernel,
                               const td_ops_config *config,
                               td_ops_side **ret_side, td_errinfo *info)
{
    if (config->precision != TD_OPS_F32)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "the processor computes in float32 only");
    TD_AUTO(td_ops_side) *side = calloc(1, sizeof *side);
    if (!side) return TD_ERR_NOMEM;
    side->kernel = kernel;
    side->threads = config->threads;
    TD_TRY(td_native_cpu_pool_new(config->threads, &side->pool, info));
    side->scratch = calloc(config->threads, sizeof *side->scratch);
    if (!side->scratch) return TD_ERR_NOMEM;
    *ret_side = TD_TAKE(side);
    return TD_OK;
}

static td_err open_side(const td_ops_config *config, td_ops_side **ret_side,
                        td_errinfo *info)
{
    return td_native_cpu_side_open(td_native_cpu_kernel_best(), config,
                                   ret_side, info);
}

static void say_info(const td_ops_side *side, td_ops_info *ret_info)
{
    *ret_info = (td_ops_info){
        .dtype = TD_OPS_F32,
        .exact_batches = true,
        .bytes = side->bytes,
    };
    (void)snprintf(ret_info->device, sizeof ret_info->device, "%u thread%s, %s",
                   side->threads, side->threads == 1 ? "" : "s",
                   side->kernel->name);
}

// NULL when there is none.
static void *take(td_ops_side *side, size_t bytes)
{
    size_t whole =
        (sizeof(block) + bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    block *made = aligned_alloc(ALIGN_BYTES, whole);
    if (!made) return NULL;
    memset(made, 0, whole);
    made->next = side->blocks;
    side->blocks = made;
    side->bytes += whole;
    return made->data;
}

td_err td_native_cpu_side_alloc(td_ops_side *side, size_t bytes,
                                void **ret_data, td_errinfo *info)
{
    void *data = take(side, bytes);
    if (!data)
        return td_fail(info, TD_ERR_NOMEM, "no memory for %zu bytes", bytes);
    *ret_data = data;
    return TD_OK;
}

static td_err alloc_io(td_ops_side *side, size_t bytes, td_ops_io *ret_io,
                       td_errinfo *info)
{
    void *data = NULL;
    TD_TRY(td_native_cpu_side_alloc(side, bytes, &data, info));
    *ret_io = (td_ops_io){.host = data, .device = data};
    return TD_OK;
}

// Numbers of a checkpoint as floats; NULL where there are none.
static td_err copy_source(td_ops_side *side, const td_ops_source *from,
                          size_t count, float **ret_floats)
{
    if (!from->data) {
        *ret_floats = NULL;
        return TD_OK;
    }
    float *floats = take(side, count * sizeof *floats);
    if (!floats) return TD_ERR_NOMEM;
    for (size_t i = 0; i < count; i++)
        floats[i] = td_native_cpu_number(from, i);
    *ret_floats = floats;
    return TD_OK;
}

static td_err make_linear(td_ops_side *side, const td_ops_linear_source *source,
                          td_ops_linear_weight **ret_weight, td_errinfo *info)
{
    (void)info;
    td_ops_linear_weight *weight = take(side, sizeof *weight);
    if (!weight) return TD_ERR_NOMEM;
    weight->source = *source;
    TD_TRY(copy_source(side, &source->bias, source->out, &weight->bias));
    *ret_weight = weight;
    return TD_OK;
}

static td_err make_norm(td_ops_side *side, const td_ops_norm_source *source,
                        td_ops_norm **ret_norm, td_errinfo *info)
{
    (void)info;
    td_ops_norm *norm = take(side, sizeof *norm);
    if (!norm) return TD_ERR_NOMEM;
    norm->cols = source->cols;
    norm->epsilon = source->epsilon;
    TD_TRY(copy_source(side, &source->weight, source->cols, &norm->weight));
    TD_TRY(copy_source(side, &source->bias, source->cols, &norm->bias));
    *ret_norm = norm;
    return TD_OK;
}

static td_err make_conv(td_ops_side *side, const td_ops_conv_source *source,
                        td_ops_conv_weight **ret_weight, td_errinfo *info)
{
    (void)info;
    const td_ops_source scale = {source->scale, TD_OPS_F32};
    const td_ops_source bias = {source->bias, TD_OPS_F32};
    td_ops_conv_weight *weight = take(side, sizeof *weight);
    if (!weight) return TD_ERR_NOMEM;
    weight->source = *source;
    TD_TRY(copy_source(side, &scale, source->out, &weight->scale));
    TD_TRY(copy_source(side, &bias, source->out, &weight->bias));
    weight->zeros = take(side, source->in * sizeof(float));
    if (!weight->zeros) return TD_ERR_NOMEM;
    *ret_weight = weight;
    return TD_OK;
}

static td_err upload(td_ops_side *side, const td_ops_view *to,
                     const float *from, td_errinfo *info)
{
    (void)side;
    (void)info;
    uint32_t members = to->batch_stride == 0 ? 1 : to->batch;
    for (uint32_t member = 0; member < members; member++)
        for (uint32_t row = 0; row < to->rows; row++, from += to->cols)
            memcpy(td_native_cpu_row(to, member, row), from,
                   to->cols * sizeof(float));
    return TD_OK;
}

static td_err begin(td_ops_side *side, td_errinfo *info)
{
    if (side->recording)
        return td_fail(info, TD_ERR_INVALID, "a program is being recorded");
    td_ops_program *program = calloc(1, sizeof *program);
    if (!program) return TD_ERR_NOMEM;
    program->next = side->programs;
    side->programs = side->recording = program;
    return TD_OK;
}

td_err td_native_cpu_side_add(td_ops_side *side, const td_native_cpu_step *step,
                              size_t scratch_floats, td_errinfo *info)
{
    td_ops_program *program = side->recording;
    if (!program)
        return td_fail(info, TD_ERR_INVALID, "no program is being recorded");
    if (program->count == program->room) {
        size_t room = program->room ? 2 * program->room : 16;
        void *grown = realloc(program->steps, room * sizeof *program->steps);
        if (!grown) return TD_ERR_NOMEM;
        program->steps = grown;
        program->room = room;
    }
    program->steps[program->count++] = *step;
    if (scratch_floats > side->scratch_floats)
        side->scratch_floats = scratch_floats;
    return TD_OK;
}

// Of one memory both ends are the same.
static td_err move(td_ops_side *side, const td_ops_io *io, size_t bytes,
                   td_errinfo *info)
{
    (void)side;
    (void)io;
    (void)bytes;
    (void)info;
    return TD_OK;
}

static td_err grow_scratch(td_ops_side *side)
{
    size_t bytes =
        td_native_cpu_ceil(side->scratch_floats * sizeof(float), ALIGN_BYTES) *
        (size_t)ALIGN_BYTES;
    for (uint32_t i = 0; i < side->threads; i++) {
        free(side->scratch[i]);
        side->scratch[i] = aligned_alloc(ALIGN_BYTES, bytes + ALIGN_BYTES);
        if (!side->scratch[i]) return TD_ERR_NOMEM;
    }
    return TD_OK;
}

static td_err end(td_ops_side *side, td_ops_program **ret_program,
                  td_errinfo *info)
{
    td_ops_program *program = side->recording;
    if (!program)
        return td_fail(info, TD_ERR_INVALID, "no program is being recorded");
    side->recording = NULL;
    TD_TRY(grow_scratch(side));
    *ret_program = program;
    return TD_OK;
}

typedef struct running {
    const td_ops_side *side;
    const td_native_cpu_step *step;
} running;

static void run_task(void *user, uint32_t task, uint32_t thread)
{
    const running *now = user;
    now->step->task(now->step, task, now->side->scratch[thread]);
}

static td_err run(td_ops_side *side, td_ops_program *program, td_errinfo *info)
{
    (void)info;
    for (size_t i = 0; i < program->count; i++) {
        running now = {.side = side, .step = &program->steps[i]};
        td_native_cpu_pool_run(side->pool, now.step->tasks, run_task, &now);
    }
    return TD_OK;
}

td_native_cpu_step td_native_cpu_side_step(const td_ops_side *side)
{
    return (td_native_cpu_step){.kernel = side->kernel};
}

td_native_cpu_pool *td_native_cpu_side_pool(const td_ops_side *side)
{
    return side->pool;
}

uint32_t td_native_cpu_side_threads(const td_ops_side *side)
{
    return side->threads;
}

const td_ops td_ops_cpu = {
    .name = "cpu",
    .open = open_side,
    .close = close_side,
    .info = say_info,
    .alloc = td_native_cpu_side_alloc,
    .alloc_io = alloc_io,
    .linear_weight = make_linear,
    .conv_weight = make_conv,
    .norm_weight = make_norm,
    .upload = upload,
    .begin = begin,
    .fetch = move,
    .give = move,
    .linear = td_native_cpu_linear,
    .conv = td_native_cpu_conv,
    .norm = td_native_cpu_norm,
    .attention = td_native_cpu_attention,
    .end = end,
    .run = run,
};
